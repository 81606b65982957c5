//! Builds the tree: levels, indices and siblings.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;

use super::backlogged::Backlogged;
use super::bucket::Bucket;
use super::class::{Bound, Class, Leaf, Mode, Tally};
use super::{Own, Plan, Sharing, Slack};
use crate::sched::heap::Heap;
use crate::{Backlog, Node};

impl<P: Packet> Sharing<P> {
    /// The tree of these plans. `queues` belong to the leaves, in the order of the plans. Siblings
    /// are consecutive.
    pub(crate) fn new(
        kind: &'static str,
        plans: &[Plan],
        queues: Vec<Node<P>>,
        link_layer: &LinkLayer,
        slack: Slack,
    ) -> Self {
        let mut depths: Vec<usize> = Vec::with_capacity(plans.len());
        let mut children = vec![(0_u32, 0_u32); plans.len()];
        for (id, plan) in plans.iter().enumerate() {
            depths.push(plan.parent.map_or(0, |parent| depths[parent] + 1));
            if let Some(parent) = plan.parent {
                let (first, count) = &mut children[parent];
                *first = if *count == 0 { id as u32 } else { *first };
                *count += 1;
            }
        }
        // The lowest inner class has level 1.
        let top = (0..plans.len()).filter(|id| children[*id].1 > 0).map(|id| depths[id] + 1).max().unwrap_or(0);
        let mut levels = vec![Vec::new(); top + 1];
        let (mut classes, mut borrowers, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        let mut queues = queues.into_iter();
        for (id, plan) in plans.iter().enumerate() {
            let (first_child, count) = children[id];
            let level = if count == 0 { 0 } else { top - depths[id] };
            let content_index = if count == 0 {
                let queue = queues.next().expect("a queue for each leaf");
                let quantum = i64::try_from(plan.quantum).unwrap_or(i64::MAX);
                leaves.push(Leaf { last_backlog: queue.backlog(), queue, quantum, deficits: vec![0; depths[id] + 1] });
                leaves.len() - 1
            } else {
                borrowers.push(Backlogged::new(count as usize));
                borrowers.len() - 1
            };
            let parent = plan.parent.map(|parent| parent as u32);
            // A root class cannot borrow, so a ceiling equal to its own rate needs no second
            // bucket.
            let ceil_is_own = parent.is_none() && plan.ceil.is_some_and(|ceil| plan.own == Own::Rate(ceil));
            classes.push(Class {
                mode: Mode::CanSend,
                active: 0,
                priority: plan.priority,
                borrows: plan.borrows && parent.is_some(),
                isolated: plan.isolated,
                level: level as u8,
                parent,
                index_in_level: levels[level].len() as u32,
                index_among_siblings: plan.parent.map_or(0, |parent| id as u32 - children[parent].0),
                first_child,
                content_index: content_index as u32,
                own: match plan.own {
                    Own::Everything => Bound::None,
                    Own::Rate(tokens) => Bound::Bucket(Bucket::new(tokens.rate, tokens.burst)),
                    Own::Nothing => Bound::Closed,
                },
                ceil: plan.ceil.filter(|_| !ceil_is_own).map(|tokens| Bucket::new(tokens.rate, tokens.burst)),
                ceil_is_own,
                tally: Tally::default(),
            });
            levels[level].push(id as u32);
        }
        Self {
            kind,
            link_layer: *link_layer,
            slack,
            events: Heap::new(classes.len()),
            lenders: levels.iter().map(|level| Backlogged::new(level.len())).collect(),
            indices: plans.iter().map(|plan| plan.index).collect(),
            classes,
            leaves,
            borrowers,
            levels,
            backlog: Backlog::default(),
        }
    }
}

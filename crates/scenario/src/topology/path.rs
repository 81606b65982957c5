//! The path between two nodes.

use std::collections::VecDeque;

use lastmile_model::{Link, Node, NodeIndex};

/// The links of the way from `from` to `to`, if there is one.
pub(crate) fn path(nodes: &[Node], links: &[Link], from: NodeIndex, to: NodeIndex) -> Option<Vec<usize>> {
    let mut came_by: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut out = vec![Vec::new(); nodes.len()];
    for (index, link) in links.iter().enumerate() {
        out[link.from].push(index);
    }
    let mut frontier = VecDeque::from([from]);
    while let Some(node) = frontier.pop_front() {
        for &link in &out[node] {
            let next = links[link].to;
            if next != from && came_by[next].is_none() {
                came_by[next] = Some(link);
                frontier.push_back(next);
            }
        }
    }
    let mut way = Vec::new();
    let mut node = to;
    while node != from {
        let link = came_by[node]?;
        way.push(link);
        node = links[link].from;
    }
    way.reverse();
    Some(way)
}

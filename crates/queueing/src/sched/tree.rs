//! A tree of named classes as plain data, for the schedulers that share a link by one
//! ([`crate::Htb`], [`crate::Cbq`]).
//!
//! Classes form a flat list, each with the name of its parent, so that rules and other files can
//! name them. [`Rule`]s are tried in their order, and the first that matches names the leaf.
//!
//! Cost of a classification: a binary search for rules for single flows, a look-up for rules for a
//! packet's class, and one test for each other rule.

use core::fmt;
use std::collections::{BTreeMap, VecDeque};

use lastmile_packet::{FlowId, Packet};
use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::classify::{Condition, Match, Matcher as _, Packets};
use crate::sched::sharing::PRIORITIES;
use crate::spec::{Limiter, Problem, Shaper, Site, Spec};
use crate::{BuildError, Environment, Node};

/// A class of a tree. `S` are the parameters of the scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class<S> {
    /// The name of the class: unique, and not empty.
    pub name: String,
    /// The name of its parent. `None`: a class on the link itself.
    pub parent: Option<String>,
    /// The parameters of the class in the scheduler.
    pub share: S,
    /// The queue of a leaf. `None` for a class with children.
    pub queue: Option<Spec>,
}

/// Assigns packets to a leaf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The packets that the rule matches.
    pub matches: Match,
    /// The name of the leaf.
    pub class: String,
}

/// Classes, and the rules that assign packets to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree<S> {
    /// The classes, from 1 to [`MAX_CLASSES`], in any order. Siblings take turns in this order.
    pub classes: Vec<Class<S>>,
    /// The rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// The leaf for packets that no rule matches. `None`: the scheduler has a default of its own.
    pub default: Option<String>,
}

/// Maximum number of classes in a tree.
pub const MAX_CLASSES: usize = 65_000;
/// Maximum depth of a tree; `sch_htb` of Linux has 8.
pub const MAX_DEPTH: usize = 64;

/// A tree that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TreeError {
    /// No class, or too many.
    #[error("{0} classes; there must be from 1 to {MAX_CLASSES}")]
    Count(usize),
    /// An invalid class.
    #[error("class \"{class}\": {wrong}")]
    Class {
        /// The name of the class.
        class: String,
        /// The reason.
        wrong: Wrong,
    },
    /// A rule or the default names an unknown class.
    #[error("there is no class \"{0}\"")]
    Unknown(String),
    /// A rule or the default names a class without a queue.
    #[error("class \"{0}\" has classes below it, so it takes no packets itself; name one of those")]
    NoLeaf(String),
    /// The guarantees of the classes on the link exceed its rate.
    #[error("the classes on the link are guaranteed {given} together, and the link has {available}")]
    MoreThanLink {
        /// The sum of guarantees.
        given: BitRate,
        /// The rate of the link.
        available: BitRate,
    },
    /// The rate of which shares are shares exceeds that of the link.
    #[error("shares of {whole}, and the line has {available}")]
    SharesOfMore {
        /// The rate of which shares are shares.
        whole: BitRate,
        /// The rate of the link.
        available: BitRate,
    },
    /// The real-time curves exceed the service of the link.
    #[error("the real-time curves ask for {given} together {span}, and the link has {available}")]
    RealTime {
        /// The sum of the curves, as a mean rate.
        given: BitRate,
        /// The rate of the link.
        available: BitRate,
        /// When they exceed it.
        span: Span,
    },
}

/// A part of service curves that all begin at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// The first slopes of the curves.
    Beginning,
    /// The means of the curves over this time from their begin.
    First(Duration),
    /// The last slopes of the curves.
    LongRun,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning => f.write_str("at first"),
            Self::First(span) => write!(f, "in the first {span}"),
            Self::LongRun => f.write_str("in the long run"),
        }
    }
}

/// Errors of one class.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Wrong {
    /// A class without a name.
    #[error("a class needs a name")]
    NoName,
    /// Two classes with one name.
    #[error("there are two classes of this name")]
    NameTwice,
    /// The parent does not exist.
    #[error("its parent \"{0}\" is no class")]
    UnknownParent(String),
    /// The class is its own ancestor.
    #[error("its parents lead round in a circle, and never to the link")]
    Circle,
    /// Too many ancestors.
    #[error("more than {MAX_DEPTH} classes above one another")]
    TooDeep,
    /// A class with children has a queue.
    #[error("it has classes below it, so its own queue would take no packet")]
    QueueOfInner,
    /// A leaf without a queue.
    #[error("it has neither a queue nor classes below it")]
    NoQueue,
    /// A priority out of range.
    #[error("a priority of {0}; it is from 0, the most urgent, to {max}", max = PRIORITIES - 1)]
    Priority(u8),
    /// The ceiling is below the guaranteed rate.
    #[error("a ceil of {ceil} is below its rate of {rate}")]
    CeilBelowRate {
        /// The ceiling.
        ceil: BitRate,
        /// The guaranteed rate.
        rate: BitRate,
    },
    /// The guarantees of the children exceed that of the class.
    #[error("the classes below it are guaranteed {given} together, and it has {available}")]
    MoreThanRate {
        /// The sum of guarantees.
        given: BitRate,
        /// The guarantee of the class.
        available: BitRate,
    },
    /// A burst smaller than the largest packet.
    #[error("a burst of {burst} is smaller than the largest packet, which takes {needed}")]
    BurstTooSmall {
        /// The burst.
        burst: WireBytes,
        /// Size of the largest packet on the wire.
        needed: WireBytes,
    },
    /// A burst of the ceiling that is smaller than a packet.
    #[error("a burst of {burst} is smaller than the largest packet, which takes {needed}")]
    CeilBurstTooSmall {
        /// The burst.
        burst: WireBytes,
        /// The size of the largest packet on the wire.
        needed: WireBytes,
    },
    /// A quantum of zero.
    #[error("a quantum of zero: it would never have a turn")]
    ZeroQuantum,
    /// A leaf that no criterion of HFSC serves.
    #[error("it has neither a real-time curve (rt) nor a share (ls), so it would never send")]
    NoCurve,
    /// A guarantee of a class that takes no packets.
    #[error("it has classes below it, so a real-time curve would guarantee nothing; give it to those")]
    RealTimeOfInner,
    /// A class whose children no share reaches.
    #[error("it has classes below it, and no share (ls) that they could divide")]
    InnerWithoutShare,
    /// An upper limit of nothing.
    #[error("an upper limit (ul) without a share (ls): it limits shares, and not guarantees")]
    LimitWithoutShare,
    /// A first piece that is no piece.
    #[error("a first piece of no time (d); leave it out for a straight line")]
    EmptyPiece,
    /// A share that rounds to zero bit/s.
    #[error("its share is less than a bit per second")]
    NoShare,
}

impl Wrong {
    pub(super) fn with(self, class: &str) -> TreeError {
        TreeError::Class { class: class.into(), wrong: self }
    }
}

/// Parents, children and order of the classes of a tree, by number.
#[derive(Debug)]
pub(super) struct Shape {
    /// Numbers of classes: parents before their children, siblings consecutive and in the order of
    /// the configuration.
    pub(super) order: Vec<usize>,
    /// By class: its parent.
    pub(super) parents: Vec<Option<usize>>,
    /// By class: its children.
    pub(super) children: Vec<Vec<usize>>,
    /// The leaf of each rule.
    rules: Vec<usize>,
    /// The leaf for packets that no rule matches.
    pub(super) default: Option<usize>,
}

impl Shape {
    /// By class: its position in [`Shape::order`].
    pub(super) fn positions(&self) -> Vec<usize> {
        let mut positions = vec![0; self.order.len()];
        for (position, class) in self.order.iter().enumerate() {
            positions[*class] = position;
        }
        positions
    }

    /// By class: its position in [`Shape::order`], for leaves; and the queues of the leaves in that
    /// order.
    ///
    /// `queues` are in the order of the classes.
    pub(super) fn leaves<Q>(&self, queues: Vec<Q>) -> (Vec<Option<u32>>, Vec<Q>) {
        let is_leaf = |class: &usize| self.children[*class].is_empty();
        let mut positions = vec![None; self.order.len()];
        for (position, class) in self.order.iter().enumerate().filter(|(_, class)| is_leaf(class)) {
            positions[*class] = Some(position as u32);
        }
        let mut by_position: Vec<(Option<u32>, Q)> =
            (0..self.order.len()).filter(is_leaf).map(|class| positions[class]).zip(queues).collect();
        by_position.sort_by_key(|(position, _)| *position);
        (positions, by_position.into_iter().map(|(_, queue)| queue).collect())
    }
}

impl<S> Tree<S> {
    /// Resolves names, and checks the tree.
    pub(super) fn shape(&self) -> Result<Shape, TreeError> {
        let classes = &self.classes;
        if classes.is_empty() || classes.len() > MAX_CLASSES {
            return Err(TreeError::Count(classes.len()));
        }
        let mut names = BTreeMap::new();
        for (number, class) in classes.iter().enumerate() {
            if class.name.is_empty() {
                return Err(Wrong::NoName.with(""));
            }
            if names.insert(class.name.as_str(), number).is_some() {
                return Err(Wrong::NameTwice.with(&class.name));
            }
        }
        let mut parents = Vec::with_capacity(classes.len());
        let mut children = vec![Vec::new(); classes.len()];
        for (number, class) in classes.iter().enumerate() {
            let parent = match &class.parent {
                None => None,
                Some(name) => match names.get(name.as_str()) {
                    Some(parent) => Some(*parent),
                    None => return Err(Wrong::UnknownParent(name.clone()).with(&class.name)),
                },
            };
            if let Some(parent) = parent {
                children[parent].push(number);
            }
            parents.push(parent);
        }
        let order = self.order_outwards(&parents, &children)?;
        for (class, children) in classes.iter().zip(&children) {
            match (&class.queue, children.is_empty()) {
                (None, true) => return Err(Wrong::NoQueue.with(&class.name)),
                (Some(_), false) => return Err(Wrong::QueueOfInner.with(&class.name)),
                _ => {}
            }
        }
        let leaf = |name: &String| match names.get(name.as_str()) {
            None => Err(TreeError::Unknown(name.clone())),
            Some(number) if !children[*number].is_empty() => Err(TreeError::NoLeaf(name.clone())),
            Some(number) => Ok(*number),
        };
        let rules = self.rules.iter().map(|rule| leaf(&rule.class)).collect::<Result<_, _>>()?;
        let default = self.default.as_ref().map(leaf).transpose()?;
        Ok(Shape { order, parents, children, rules, default })
    }

    /// All classes, parents first.
    fn order_outwards(&self, parents: &[Option<usize>], children: &[Vec<usize>]) -> Result<Vec<usize>, TreeError> {
        let mut depths = vec![None; parents.len()];
        let mut order = Vec::with_capacity(parents.len());
        let mut next: VecDeque<(usize, usize)> =
            (0..parents.len()).filter(|class| parents[*class].is_none()).map(|class| (class, 1)).collect();
        while let Some((class, depth)) = next.pop_front() {
            if depth > MAX_DEPTH {
                return Err(Wrong::TooDeep.with(&self.classes[class].name));
            }
            depths[class] = Some(depth);
            order.push(class);
            next.extend(children[class].iter().map(|child| (*child, depth + 1)));
        }
        match depths.iter().position(Option::is_none) {
            Some(class) => Err(Wrong::Circle.with(&self.classes[class].name)),
            None => Ok(order),
        }
    }

    /// The rules in effect.
    pub(super) fn rules(&self, shape: &Shape, environment: &Environment) -> TreeRules {
        let otherwise = shape.default;
        let mut rules = TreeRules { by_flow: BTreeMap::new(), by_class: Vec::new(), conditions: Vec::new(), otherwise };
        for (number, (rule, &class)) in self.rules.iter().zip(&shape.rules).enumerate() {
            match &rule.matches {
                Match::Flow(flow) => {
                    rules.by_flow.entry(*flow).or_insert((number, class));
                }
                Match::Class(packet_class) => {
                    let packet_class = usize::from(*packet_class);
                    rules.by_class.resize(rules.by_class.len().max(packet_class + 1), None);
                    rules.by_class[packet_class].get_or_insert((number, class));
                }
                other => rules.conditions.push((number, Condition::new(other, environment), class)),
            }
        }
        rules
    }
}

/// The rules of a tree: the first that matches names the class.
#[derive(Clone, Debug)]
pub(super) struct TreeRules {
    /// By flow: the first rule for it, as (number of the rule, class).
    by_flow: BTreeMap<FlowId, (usize, usize)>,
    /// By class of the packet: the first rule for it.
    by_class: Vec<Option<(usize, usize)>>,
    /// All other rules, in their order.
    conditions: Vec<(usize, Condition, usize)>,
    /// The class of packets that no rule matches.
    otherwise: Option<usize>,
}

impl TreeRules {
    /// The number of the class in [`Tree::classes`] of `packet`, which arrives at `now`.
    // Nearly every tree whose packets are already classified needs one look-up.
    #[inline(always)]
    pub(super) fn classify<P: Packet>(&mut self, now: Instant, packet: &P) -> Option<usize> {
        let class = packet.meta().class;
        let by_class_rule = class.and_then(|class| self.by_class.get(usize::from(class))?.as_ref());
        if self.by_flow.is_empty() && self.conditions.is_empty() {
            return by_class_rule.map(|(_, class)| *class).or(self.otherwise);
        }
        self.first_match(now, packet, by_class_rule.copied())
    }

    /// The class of the first rule that matches; `by_class_rule` is the first rule for the class of the
    /// packet.
    fn first_match<P: Packet>(
        &mut self,
        now: Instant,
        packet: &P,
        by_class_rule: Option<(usize, usize)>,
    ) -> Option<usize> {
        let flow = self.by_flow.get(&packet.meta().flow).copied();
        let known = match (flow, by_class_rule) {
            (Some(flow), Some(by_class_rule)) => Some(if flow.0 < by_class_rule.0 { flow } else { by_class_rule }),
            (flow, by_class_rule) => flow.or(by_class_rule),
        };
        let before = known.map_or(usize::MAX, |(number, _)| number);
        for (number, condition, class) in &mut self.conditions {
            if *number > before {
                break;
            }
            if condition.matches(now, packet) {
                return Some(*class);
            }
        }
        known.map(|(_, class)| class).or(self.otherwise)
    }
}

impl<S> Tree<S> {
    /// The shapers that each of `packets` passes: `own` is that of a class, given the numbers of those below it and
    /// its own, and those of the leaves to which the packets may go. `rest` is the leaf of packets that no rule
    /// matches; `None`: they pass no class.
    pub(super) fn shapers_of(
        &self,
        packets: &Packets,
        rest: Option<usize>,
        own: impl Fn(usize, &[usize], &[usize]) -> Option<Shaper>,
    ) -> Vec<Shaper> {
        let Ok(shape) = self.shape() else { return Vec::new() };
        let Some(leaves) = self.leaves_of(packets, &shape, rest) else { return Vec::new() };
        let is_in = |class: usize, leaf: usize| {
            core::iter::successors(Some(leaf), |class| shape.parents[*class]).any(|above| above == class)
        };
        let mut shapers: Vec<Shaper> = Vec::new();
        for class in &shape.order {
            if !leaves.iter().all(|leaf| is_in(*class, *leaf)) {
                continue;
            }
            let within: Vec<usize> = shape.order.iter().copied().filter(|other| is_in(*class, *other)).collect();
            let slower = |shaper: &Shaper| shapers.iter().all(|above| shaper.rate < above.rate);
            if let Some(shaper) = own(*class, &within, &leaves).filter(slower) {
                // Each packet passes the only class on the link.
                let is_whole = within.len() == self.classes.len();
                let by = if is_whole { shaper.by } else { Limiter::Class(self.classes[*class].name.as_str().into()) };
                shapers.push(Shaper { by, ..shaper });
            }
        }
        if let [leaf] = *leaves {
            let queue = self.classes[leaf].queue.as_ref();
            shapers.extend(queue.into_iter().flat_map(|queue| queue.shapers_of(&packets.joining(leaf))));
        }
        shapers
    }

    /// The leaves to which some of `packets` may go; `None` where some may go to none.
    fn leaves_of(&self, packets: &Packets, shape: &Shape, rest: Option<usize>) -> Option<Vec<usize>> {
        let mut leaves = Vec::new();
        for (rule, leaf) in self.rules.iter().zip(&shape.rules) {
            let answer = packets.answer(&rule.matches);
            if answer != Some(false) && !leaves.contains(leaf) {
                leaves.push(*leaf);
            }
            if answer == Some(true) {
                return Some(leaves);
            }
        }
        let rest = shape.default.or(rest)?;
        if !leaves.contains(&rest) {
            leaves.push(rest);
        }
        Some(leaves)
    }

    /// The number of the class on the link, if there is one alone.
    pub(super) fn root(&self) -> Option<usize> {
        let mut on_link = (0..self.classes.len()).filter(|class| self.classes[*class].parent.is_none());
        on_link.next().filter(|_| on_link.next().is_none())
    }

    /// The number of the last leaf.
    pub(super) fn last_leaf(&self) -> Option<usize> {
        self.classes.iter().rposition(|class| class.queue.is_some())
    }

    /// Refuses conditions that cannot be.
    pub(super) fn check_rules(&self) -> Result<(), Problem> {
        Ok(self.rules.iter().try_for_each(|rule| rule.matches.check())?)
    }

    /// The queues of the leaves, in the order of the classes.
    pub(super) fn queues(&self) -> Vec<&Spec> {
        self.classes.iter().filter_map(|class| class.queue.as_ref()).collect()
    }

    /// The name of a class.
    pub(super) fn name(&self, class: u16) -> Option<String> {
        self.classes.get(usize::from(class)).map(|class| class.name.clone())
    }

    /// Builds the queues of the leaves, in the order of the classes.
    pub(super) fn build_leaves<P: Packet + Send + 'static>(
        &self,
        site: &mut Site<'_>,
    ) -> Result<Vec<Node<P>>, BuildError> {
        let leaves = self.classes.iter().enumerate().filter_map(|(index, class)| Some((index, class.queue.as_ref()?)));
        leaves.map(|(index, queue)| site.class_queue(index, queue)).collect()
    }
}

#[cfg(test)]
mod tests;

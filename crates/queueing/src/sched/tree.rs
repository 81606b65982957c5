//! A tree of named classes as plain data, for the schedulers that share a link by one ([`crate::Htb`], [`crate::Cbq`]).
//!
//! Classes stand in a flat list, each with the name of the class above it, so that rules, and other files, can name them.
//! [`Rule`]s are tried in their order, and the first that matches names the leaf.
//!
//! Cost of a classification: rules for single flows a binary search, those for classes that rules above give a look-up; all others one
//! after the other.

use std::collections::{BTreeMap, VecDeque};

use lastmile_packet::{FlowId, Packet};
use lastmile_units::{BitRate, Instant, WireBytes};

use crate::classify::{ClassIndex, Classifier, Condition, Match, Matcher as _};
use crate::sched::sharing::PRIORITIES;
use crate::spec::{Problem, Site, Spec};
use crate::{BuildError, Environment, Node};

/// A class of a tree. `S` is what the scheduler wants to know of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class<S> {
    /// Its name: of its own, and not empty.
    pub name: String,
    /// The name of the class above. `None`: it stands on the link itself.
    pub parent: Option<String>,
    /// Its share of the link.
    pub share: S,
    /// Where its packets wait, for a leaf. `None` for a class that has classes below.
    pub queue: Option<Spec>,
}

/// Packets that belong to a leaf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Which packets.
    pub matches: Match,
    /// The name of the leaf.
    pub class: String,
}

/// Classes and the rules that tell whose a packet is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree<S> {
    /// The classes, from 1 to [`MAX_CLASSES`], in any order. Siblings take turns in this order.
    pub classes: Vec<Class<S>>,
    /// The rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// The leaf of what no rule matches. `None`: what the scheduler says.
    pub default: Option<String>,
}

/// Classes in one tree.
pub const MAX_CLASSES: usize = 65_000;
/// Classes above one another; `sch_htb` of Linux has 8.
pub const MAX_DEPTH: usize = 64;

/// A tree that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TreeError {
    /// No class, or too many.
    #[error("{0} classes; there must be from 1 to {MAX_CLASSES}")]
    Count(usize),
    /// One class is at fault.
    #[error("class \"{class}\": {wrong}")]
    Class {
        /// Its name.
        class: String,
        /// Why.
        wrong: Wrong,
    },
    /// A rule, or the default, names a class that is none.
    #[error("there is no class \"{0}\"")]
    Unknown(String),
    /// A rule, or the default, names a class that has no queue.
    #[error("class \"{0}\" has classes below it, so it takes no packets itself; name one of those")]
    NoLeaf(String),
    /// The classes on the link are promised more than it has.
    #[error("the classes on the link are guaranteed {given} together, and the link has {available}")]
    MoreThanLink {
        /// The sum.
        given: BitRate,
        /// What there is.
        available: BitRate,
    },
}

/// What is wrong with a class.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Wrong {
    /// Nothing could refer to it.
    #[error("a class needs a name")]
    NoName,
    /// Two classes of one name.
    #[error("there are two classes of this name")]
    NameTwice,
    /// The class above does not exist.
    #[error("its parent \"{0}\" is no class")]
    UnknownParent(String),
    /// It stands above itself.
    #[error("its parents lead round in a circle, and never to the link")]
    Circle,
    /// Too many classes above it.
    #[error("more than {MAX_DEPTH} classes above one another")]
    TooDeep,
    /// A class that is no leaf with a queue.
    #[error("it has classes below it, so its own queue would take no packet")]
    QueueOfInner,
    /// A leaf without a queue.
    #[error("it has neither a queue nor classes below it")]
    NoQueue,
    /// A priority that is none.
    #[error("a priority of {0}; it is from 0, the most urgent, to {max}", max = PRIORITIES - 1)]
    Priority(u8),
    /// The ceiling is below the guarantee.
    #[error("a ceil of {ceil} is below its rate of {rate}")]
    CeilBelowRate {
        /// The ceiling.
        ceil: BitRate,
        /// The guarantee.
        rate: BitRate,
    },
    /// Classes below are promised more than there is.
    #[error("the classes below it are guaranteed {given} together, and it has {available}")]
    MoreThanRate {
        /// The sum.
        given: BitRate,
        /// What there is.
        available: BitRate,
    },
    /// A burst that is smaller than a packet.
    #[error("a burst of {burst} is smaller than the largest packet, which takes {needed}")]
    BurstTooSmall {
        /// The burst.
        burst: WireBytes,
        /// What the largest packet takes on the wire.
        needed: WireBytes,
    },
    /// A burst of the ceiling that is smaller than a packet.
    #[error("a burst of {burst} is smaller than the largest packet, which takes {needed}")]
    CeilBurstTooSmall {
        /// The burst.
        burst: WireBytes,
        /// What the largest packet takes on the wire.
        needed: WireBytes,
    },
    /// A turn in which nothing is sent.
    #[error("a quantum of zero: it would never have a turn")]
    ZeroQuantum,
    /// A share that rounds to nothing.
    #[error("its share is less than a bit per second")]
    NoShare,
}

impl Wrong {
    pub(super) fn with(self, class: &str) -> TreeError {
        TreeError::Class { class: class.into(), wrong: self }
    }
}

/// How the classes of a tree hang together.
#[derive(Debug)]
pub(super) struct Shape {
    /// Numbers of classes, parents before their children, siblings together and in the order of the configuration.
    pub(super) order: Vec<usize>,
    /// By class: the one above.
    pub(super) parents: Vec<Option<usize>>,
    /// By class: those below.
    pub(super) children: Vec<Vec<usize>>,
    /// The leaf of each rule.
    rules: Vec<usize>,
    /// The leaf of what no rule matches.
    pub(super) default: Option<usize>,
}

impl Shape {
    /// By class: its place in [`Shape::order`].
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.order.len()];
        for (place, class) in self.order.iter().enumerate() {
            places[*class] = place;
        }
        places
    }

    /// By class: its place in [`Shape::order`], for leaves; and the queues of the leaves in that order.
    ///
    /// `queues` come in the order of the classes.
    pub(super) fn leaves<Q>(&self, queues: Vec<Q>) -> (Vec<Option<u32>>, Vec<Q>) {
        let is_leaf = |class: &usize| self.children[*class].is_empty();
        let mut places = vec![None; self.order.len()];
        for (place, class) in self.order.iter().enumerate().filter(|(_, class)| is_leaf(class)) {
            places[*class] = Some(place as u32);
        }
        let mut by_place: Vec<(Option<u32>, Q)> =
            (0..self.order.len()).filter(is_leaf).map(|class| places[class]).zip(queues).collect();
        by_place.sort_by_key(|(place, _)| *place);
        (places, by_place.into_iter().map(|(_, queue)| queue).collect())
    }
}

impl<S> Tree<S> {
    /// Finds parents and leaves by name.
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

    /// Every class, from the link outwards.
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

    /// The classifier of these rules; what none matches is of class `otherwise`.
    pub(super) fn classifier(&self, shape: &Shape, otherwise: ClassIndex, environment: &Environment) -> Rules {
        let otherwise = shape.default.map_or(otherwise, |class| ClassIndex::new(class as u16));
        let mut rules = Rules { flows: BTreeMap::new(), marks: Vec::new(), others: Vec::new(), otherwise };
        for (number, (rule, class)) in self.rules.iter().zip(&shape.rules).enumerate() {
            let class = ClassIndex::new(*class as u16);
            match &rule.matches {
                Match::Flow(flow) => {
                    rules.flows.entry(*flow).or_insert((number, class));
                }
                Match::Class(mark) => {
                    let mark = usize::from(*mark);
                    rules.marks.resize(rules.marks.len().max(mark + 1), None);
                    rules.marks[mark].get_or_insert((number, class));
                }
                other => rules.others.push((number, Condition::new(other, environment), class)),
            }
        }
        rules
    }
}

/// The rules of a tree: the first that matches names the class.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The first rule for each flow that has one.
    flows: BTreeMap<FlowId, (usize, ClassIndex)>,
    /// The first rule for each class that rules above give, by its number.
    marks: Vec<Option<(usize, ClassIndex)>>,
    /// All others, in their order.
    others: Vec<(usize, Condition, ClassIndex)>,
    otherwise: ClassIndex,
}

impl<P: Packet> Classifier<P> for Rules {
    // For nearly every tree below rules it is one look-up.
    #[inline(always)]
    fn classify(&mut self, now: Instant, packet: &P) -> ClassIndex {
        let class = packet.meta().class;
        let mark = class.and_then(|class| self.marks.get(usize::from(class))?.as_ref());
        if self.flows.is_empty() && self.others.is_empty() {
            return mark.map_or(self.otherwise, |(_, class)| *class);
        }
        self.first_of(now, packet, mark.copied())
    }
}

impl Rules {
    /// The class of the first rule that matches, where `mark` is the first of those for the mark of the packet.
    fn first_of<P: Packet>(&mut self, now: Instant, packet: &P, mark: Option<(usize, ClassIndex)>) -> ClassIndex {
        let flow = self.flows.get(&packet.meta().flow).copied();
        let known = match (flow, mark) {
            (Some(flow), Some(mark)) => Some(if flow.0 < mark.0 { flow } else { mark }),
            (flow, mark) => flow.or(mark),
        };
        let before = known.map_or(usize::MAX, |(number, _)| number);
        for (number, condition, class) in &mut self.others {
            if *number > before {
                break;
            }
            if condition.matches(now, packet) {
                return *class;
            }
        }
        known.map_or(self.otherwise, |(_, class)| class)
    }
}

impl<S> Tree<S> {
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

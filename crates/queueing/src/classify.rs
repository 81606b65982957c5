//! Classifiers: they give a packet its class of a scheduler.
//!
//! A [`Matcher`] answers yes or no, and a [`Classifier`] names a class. In a [`FirstMatch`] the
//! first matching rule decides, as in the filters of tc(8). In [`Rules`] the last matching rule
//! decides.
//!
//! A [`Match`] is a condition as plain data, as configurations hold it. A [`Condition`] evaluates
//! it: it holds the [`Environment`](crate::Environment), which knows the addresses of simulated
//! flows, and the state of connections and hosts.
//!
//! Cost of [`FirstMatch`]: the rules up to the first that matches.

mod condition;
mod ftp;
mod matching;
mod packets;
pub mod rules;
mod tracker;
mod verdict;

use lastmile_units::Instant;

pub use condition::Condition;
pub use matching::{Bound, End, Match, MatchError, Pattern, Prefix};
pub use packets::{Data, Packets};
pub use rules::Rules;

/// A class of a scheduler, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct ClassIndex(u16);

impl ClassIndex {
    /// The class with this index.
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// The index of the class.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names the class of a packet.
pub trait Classifier<P> {
    /// The class of `packet`, which arrives at `now`. A scheduler takes an index above its classes for its last class.
    fn classify(&mut self, now: Instant, packet: &P) -> ClassIndex;
}

impl<P, F: FnMut(&P) -> ClassIndex> Classifier<P> for F {
    fn classify(&mut self, _now: Instant, packet: &P) -> ClassIndex {
        self(packet)
    }
}

/// A condition on packets.
pub trait Matcher<P> {
    /// True when `packet`, which arrives at `now`, meets the condition.
    fn matches(&mut self, now: Instant, packet: &P) -> bool;
}

impl<P, F: FnMut(&P) -> bool> Matcher<P> for F {
    fn matches(&mut self, _now: Instant, packet: &P) -> bool {
        self(packet)
    }
}

/// A list of rules of which the first that matches names the class.
pub struct FirstMatch<P> {
    rules: Vec<(Box<dyn Matcher<P> + Send>, ClassIndex)>,
    otherwise: ClassIndex,
}

impl<P> FirstMatch<P> {
    /// A list without rules: every packet is of class `otherwise`.
    #[must_use]
    pub const fn new(otherwise: ClassIndex) -> Self {
        Self { rules: Vec::new(), otherwise }
    }

    /// Adds a rule at the end of the list.
    #[must_use]
    pub fn rule(mut self, matcher: impl Matcher<P> + Send + 'static, class: ClassIndex) -> Self {
        self.rules.push((Box::new(matcher), class));
        self
    }
}

impl<P> Classifier<P> for FirstMatch<P> {
    fn classify(&mut self, now: Instant, packet: &P) -> ClassIndex {
        for (matcher, class) in &mut self.rules {
            if matcher.matches(now, packet) {
                return *class;
            }
        }
        self.otherwise
    }
}

#[cfg(test)]
mod tests;

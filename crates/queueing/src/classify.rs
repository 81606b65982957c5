//! Classifiers: which class of a scheduler a packet belongs to.
//!
//! A [`Matcher`] answers yes or no, a [`Classifier`] names a class, and [`FirstMatch`] makes the one from the other, as the
//! filters of tc(8) do: the first rule that matches decides. [`Rules`] instead ask every rule, and the last that matches
//! decides.
//!
//! A configuration writes conditions as [`Match`], plain data; a [`Condition`] is one at work: it knows the
//! [`Environment`](crate::Environment) that it was built for, which tells the addresses of simulated flows, and keeps what it has to remember.
//!
//! Cost: the rules up to the first that matches.

mod candidates;
mod condition;
mod ftp;
mod matching;
mod memo;
pub mod rules;
mod tracker;

use lastmile_units::Instant;

pub use condition::Condition;
pub use matching::{Bound, End, Match, MatchError, Pattern, Prefix};
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
    /// The class of `packet`, which comes at `now`. A scheduler takes an index that it does not have for its last class.
    fn classify(&mut self, now: Instant, packet: &P) -> ClassIndex;
}

impl<P, F: FnMut(&P) -> ClassIndex> Classifier<P> for F {
    fn classify(&mut self, _now: Instant, packet: &P) -> ClassIndex {
        self(packet)
    }
}

/// Says whether a packet is meant.
pub trait Matcher<P> {
    /// True when `packet`, which comes at `now`, is meant.
    fn matches(&mut self, now: Instant, packet: &P) -> bool;
}

impl<P, F: FnMut(&P) -> bool> Matcher<P> for F {
    fn matches(&mut self, _now: Instant, packet: &P) -> bool {
        self(packet)
    }
}

/// The first rule that matches names the class.
pub struct FirstMatch<P> {
    rules: Vec<(Box<dyn Matcher<P> + Send>, ClassIndex)>,
    otherwise: ClassIndex,
}

impl<P> FirstMatch<P> {
    /// No rule yet: every packet is of class `otherwise`.
    #[must_use]
    pub const fn new(otherwise: ClassIndex) -> Self {
        Self { rules: Vec::new(), otherwise }
    }

    /// Adds a rule behind those that stand.
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

//! What a list of rules has decided about packets of one kind, so that the next of that kind need not be asked about.
//!
//! A kind is all that most rules look at: the fields of a packet and its connection by which candidates are told ([`Places`]), and
//! where it stands to the lengths, bytes and rates that rules name. As long as the rules that were asked look at nothing else, the next packet of
//! the kind gets the same answers. Other rules (addresses, payload, new connections) are asked each time.
//!
//! Bounded: [`KINDS`] kinds, each at one place, where another takes over from it. Nothing else makes it go: rules never change, a
//! new list has a memo of its own.
//! Cost: a comparison for each length, byte count or rate that rules name, and one look-up.

use super::candidates::Places;
use super::condition::{Check, Facts};
use super::matching::{Bound, Match};
use super::rules::MOST;
use super::tracker::Connection;

/// Kinds that are remembered at most, a power of two: traffic has few, and a list needs four kilobytes for so many.
const KINDS: usize = 64;
/// Conditions on lengths, bytes and rates that a kind tells apart: a bit each.
const MEASURES: usize = (u64::BITS - Places::BITS) as usize;

/// All that a decision depends on, if no rule that was asked looks at more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind(u64);

impl Kind {
    /// No packet is of it.
    const NONE: Self = Self(0);

    #[inline]
    fn place(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - KINDS.trailing_zeros())) as usize
    }
}

/// Which rules matched a packet, and which of them decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    /// A bit for each rule.
    matched: [u64; MOST.div_ceil(64)],
    pub(super) decider: Option<u8>,
    pub(super) class: u16,
}

impl Outcome {
    /// No rule has matched yet.
    pub(super) const fn of_none(class: u16) -> Self {
        Self { matched: [0; MOST.div_ceil(64)], decider: None, class }
    }

    /// A rule matches after those before it.
    pub(super) const fn add(&mut self, rule: usize, class: u16) {
        self.matched[rule / 64] |= 1 << (rule % 64);
        self.decider = Some(rule as u8);
        self.class = class;
    }

    /// The rules that matched.
    pub(super) fn rules(&self) -> impl Iterator<Item = usize> {
        (0..).step_by(64).zip(self.matched).flat_map(|(first, mut left)| {
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(first + bit)
            })
        })
    }

    pub(super) const fn has_matched(&self, rule: usize) -> bool {
        self.matched[rule / 64] >> (rule % 64) & 1 != 0
    }
}

/// A decision, and how often it was taken without asking.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Remembered {
    kind: Kind,
    pub(super) outcome: Outcome,
    pub(super) times: u64,
}

/// The decisions of a list.
#[derive(Clone, Debug)]
pub(super) struct Memo {
    /// At most [`MEASURES`].
    measures: Vec<Measure>,
    places: Box<[Remembered; KINDS]>,
}

impl Memo {
    /// Nothing remembered, for rules that ask these checks.
    pub(super) fn new<'a>(checks: impl Iterator<Item = &'a Check>) -> Self {
        let mut measures = Vec::new();
        checks.for_each(|check| gather(check, &mut measures));
        let nothing = Remembered { kind: Kind::NONE, outcome: Outcome::of_none(0), times: 0 };
        Self { measures, places: Box::new([nothing; KINDS]) }
    }

    /// Whether packets of one kind all get the same answer from this check.
    pub(super) fn tells(&self, check: &Check) -> bool {
        match check {
            Check::Plain(condition) => match Measure::of(condition) {
                Some(measure) => self.measures.contains(&measure),
                None => matches!(
                    condition,
                    Match::Any
                        | Match::Never
                        | Match::PureAck
                        | Match::SackAck
                        | Match::Protocol(_)
                        | Match::Dscp(_)
                        | Match::TrafficClass { .. }
                        | Match::TcpFlags(_)
                        | Match::TcpFlagsOf { .. }
                        | Match::Port(..)
                        | Match::FtpData
                ),
            },
            Check::FirstPayload(_) | Check::NewConnections(_) => false,
            Check::Not(inner) => self.tells(inner),
            Check::All(inner) | Check::OneOf(inner) => inner.iter().all(|check| self.tells(check)),
        }
    }

    /// The kind of a packet. `None`: it has no ports to be told by.
    #[inline]
    pub(super) fn kind_of(&self, places: Places, facts: &Facts<'_>) -> Option<Kind> {
        let mut packed = places.packed()?;
        for (bit, measure) in (Places::BITS..).zip(&self.measures) {
            packed |= u64::from(measure.holds(facts)) << bit;
        }
        Some(Kind(packed))
    }

    /// What was decided for this kind, which counts as decided once more.
    #[inline]
    pub(super) fn recall(&mut self, kind: Kind) -> Option<u16> {
        let remembered = &mut self.places[kind.place()];
        if remembered.kind != kind {
            return None;
        }
        remembered.times += 1;
        Some(remembered.outcome.class)
    }

    /// Remembers a decision; returns what had to go for it.
    pub(super) fn remember(&mut self, kind: Kind, outcome: Outcome) -> Remembered {
        std::mem::replace(&mut self.places[kind.place()], Remembered { kind, outcome, times: 0 })
    }

    /// How often an outcome that is `meant` was remembered.
    pub(super) fn times(&self, meant: impl Fn(&Outcome) -> bool) -> u64 {
        self.places.iter().filter(|remembered| meant(&remembered.outcome)).map(|remembered| remembered.times).sum()
    }
}

/// A condition on a number that is another for each packet of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Measure {
    AtMostBytes(u16),
    AtLeastBytes(u16),
    ConnectionBytes(Bound, u64),
    /// Bits in the last whole second.
    ConnectionRate(Bound, u64),
}

impl Measure {
    fn of(condition: &Match) -> Option<Self> {
        match condition {
            Match::AtMostBytes(bytes) => Some(Self::AtMostBytes(*bytes)),
            Match::AtLeastBytes(bytes) => Some(Self::AtLeastBytes(*bytes)),
            Match::ConnectionBytes(bound, limit) => Some(Self::ConnectionBytes(*bound, limit.as_u64())),
            Match::ConnectionRate(bound, limit) => Some(Self::ConnectionRate(*bound, limit.as_bps())),
            _ => None,
        }
    }

    /// As the condition; as many instructions as it takes where nothing else may stand here.
    #[inline]
    fn holds(self, facts: &Facts<'_>) -> bool {
        let of_connection = |bound: Bound, amount: fn(&Connection) -> u64, limit| {
            facts.connection().is_some_and(|connection| bound.holds(amount(connection), limit))
        };
        match self {
            Self::AtMostBytes(bytes) => facts.meta.ip_len <= bytes,
            Self::AtLeastBytes(bytes) => facts.meta.ip_len >= bytes,
            Self::ConnectionBytes(bound, limit) => of_connection(bound, |connection| connection.bytes, limit),
            Self::ConnectionRate(bound, limit) => {
                of_connection(bound, |connection| connection.bytes_in_last_second * 8, limit)
            }
        }
    }
}

/// Adds the measures among the parts of a check, up to as many as a kind tells apart.
fn gather(check: &Check, measures: &mut Vec<Measure>) {
    match check {
        Check::Plain(condition) => {
            let measure = Measure::of(condition).filter(|measure| !measures.contains(measure));
            measures.extend(measure.filter(|_| measures.len() < MEASURES));
        }
        Check::FirstPayload(_) | Check::NewConnections(_) => {}
        Check::Not(inner) => gather(inner, measures),
        Check::All(inner) | Check::OneOf(inner) => inner.iter().for_each(|check| gather(check, measures)),
    }
}

const _: () = assert!(size_of::<Remembered>() == 64, "a kind takes one cache line");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_remembered_until_another_takes_its_place() {
        let mut memo = Memo::new(std::iter::empty());
        let first = Kind(1);
        let second = (2..).map(Kind).find(|other| other.place() == first.place()).expect("one of 64");
        let apart = (2..).map(Kind).find(|other| other.place() != first.place()).expect("another place");
        let mut outcome = Outcome::of_none(7);
        outcome.add(100, 3);
        assert_eq!(memo.remember(first, outcome).times, 0);
        memo.remember(apart, Outcome::of_none(7));
        assert_eq!([first, second, apart, first].map(|kind| memo.recall(kind)), [Some(3), None, Some(7), Some(3)]);
        assert_eq!(memo.times(|outcome| outcome.has_matched(100) && outcome.decider == Some(100)), 2);
        let gone = memo.remember(second, Outcome::of_none(7));
        assert_eq!((gone.outcome, gone.times), (outcome, 2));
        assert_eq!((memo.recall(first), memo.times(|outcome| outcome.has_matched(100))), (None, 0));
    }

    #[test]
    fn the_rules_that_matched_are_told_in_order() {
        let mut outcome = Outcome::of_none(0);
        let rules = [0, 1, 63, 64, 200, 255];
        rules.into_iter().for_each(|rule| outcome.add(rule, 9));
        assert!(outcome.rules().eq(rules));
        assert_eq!((outcome.decider, outcome.class), (Some(255), 9));
    }
}

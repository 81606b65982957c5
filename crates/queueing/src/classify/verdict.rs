//! The verdict of a list of rules about one direction of a connection, kept with the connection.
//!
//! A verdict has two levels, since two things change at different times. Ports, addresses and
//! protocol never change within a connection; the rules that they do not rule out are open. Traffic
//! class, flags and the kind of ACK (the look of a packet) change now and then. They decide most
//! open rules: lengths, byte counts, rates and new connections are left to evaluate.

use lastmile_packet::{Meta, TcpFlags};

use super::matching::MOST_RULES;

const WORDS: usize = MOST_RULES.div_ceil(64);

/// A set of rules, by their index in the list: one bit a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RuleSet([u64; WORDS]);

impl RuleSet {
    pub(super) const fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    pub(super) const fn contains(&self, rule: usize) -> bool {
        self.0[rule / 64] >> (rule % 64) & 1 != 0
    }
}

impl FromIterator<usize> for RuleSet {
    fn from_iter<I: IntoIterator<Item = usize>>(rules: I) -> Self {
        let mut set = Self::default();
        rules.into_iter().for_each(|rule| set.insert(rule));
        set
    }
}

/// The rules in the order of the list.
impl Iterator for RuleSet {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        for (index, word) in self.0.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(64 * index + bit);
            }
        }
        None
    }
}

/// Fields of a TCP or UDP packet that change between packets of a connection and take few values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Look {
    traffic_class: u8,
    flags: TcpFlags,
    pure_ack: bool,
    sack: bool,
}

impl Look {
    pub(super) fn of(meta: &Meta) -> Self {
        let (pure_ack, sack) = (meta.is_pure_ack(), meta.options().sack_count() > 0);
        Self { traffic_class: meta.traffic_class, flags: meta.flags, pure_ack, sack }
    }
}

/// The verdict about packets of one look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Verdict {
    /// Rules that match without evaluation.
    pub(super) matched: RuleSet,
    /// Rules that match or have to be evaluated.
    pub(super) possible: RuleSet,
}

/// State of the rules for one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Kept {
    /// No packet yet.
    #[default]
    Nothing,
    /// One packet. Its rules were all evaluated: many connections have no second packet.
    Once,
    /// Two packets or more.
    Open {
        /// The rules that the connection leaves open.
        open: RuleSet,
        /// The verdict about the last look.
        last: Option<(Look, Verdict)>,
    },
}

impl Kept {
    /// Forgets the verdict about looks: something else of the connection has changed.
    pub(super) const fn forget_look(&mut self) {
        if let Self::Open { last, .. } = self {
            *last = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_in_the_order_of_the_list() {
        let rules = [0, 1, 63, 64, 200, 255];
        let set: RuleSet = rules.into_iter().rev().collect();
        assert!(set.eq(rules));
        assert!(set.contains(200) && !set.contains(201));
        assert_eq!(RuleSet::default().next(), None);
    }
}

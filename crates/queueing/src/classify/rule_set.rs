//! Sets of the rules of one list.

use super::rules::MOST;

const WORDS: usize = MOST.div_ceil(64);

/// A set of rules, by their index in the list: one bit a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RuleSet([u64; WORDS]);

impl RuleSet {
    pub(super) const fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    /// The rules in the order of the list.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..).step_by(64).zip(self.0).flat_map(|(first, mut left)| {
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(first + bit)
            })
        })
    }
}

impl FromIterator<usize> for RuleSet {
    fn from_iter<I: IntoIterator<Item = usize>>(rules: I) -> Self {
        let mut set = Self::default();
        rules.into_iter().for_each(|rule| set.insert(rule));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_in_the_order_of_the_list() {
        let rules = [0, 1, 63, 64, 200, 255];
        let set: RuleSet = rules.into_iter().rev().collect();
        assert!(set.iter().eq(rules));
        assert_eq!(RuleSet::default().iter().next(), None);
    }
}

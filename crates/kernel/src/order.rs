//! From "the last matching rule decides, and a final one ends the list" to "the first matching
//! filter decides".
//!
//! A matching final rule decides: no rule after it is evaluated, and it overrides those before.
//! Without one every rule is evaluated, and the last match decides. So the final rules come first,
//! in their order, and the others follow in reverse.

use lastmile_queueing::classify::rules::Rule;

/// Indices of the rules in the order in which a first match decides.
pub(crate) fn first_match(rules: &[Rule]) -> Vec<usize> {
    let finals = (0..rules.len()).filter(|place| rules[*place].last);
    let others = (0..rules.len()).rev().filter(|place| !rules[*place].last);
    finals.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use lastmile_queueing::Match;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For any matches and final rules, both orders select the same rule.
        #[test]
        fn both_orders_name_one_rule(list in prop::collection::vec((any::<bool>(), any::<bool>()), 0..12)) {
            let rule = |(number, (last, _)): (usize, &(bool, bool))| Rule {
                matches: Match::Any,
                class: u16::try_from(number).unwrap(),
                last: *last,
            };
            let rules: Vec<Rule> = list.iter().enumerate().map(rule).collect();
            let mut asked = None;
            for (number, (last, matches)) in list.iter().enumerate() {
                if *matches {
                    asked = Some(number);
                    if *last {
                        break;
                    }
                }
            }
            let first = first_match(&rules).into_iter().find(|place| list[*place].1);
            prop_assert_eq!(first, asked);
        }
    }
}

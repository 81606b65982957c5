//! The provider's shaper or policer, as the queue of a direction: `lastmile measure --detect` writes the line behind it
//! so.
//!
//! A policy takes the smaller of the two rates, since a queue forms where packets wait. A policy in the modem does not
//! remove what the provider has: it takes the place of the queue within.

use lastmile_model::Hop;
use lastmile_queueing::Match;
use lastmile_queueing::line::trace::Trace;
use lastmile_queueing::meter;
use lastmile_queueing::meter::policer::{Action, Rule};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::BitRate;

/// The rate of the line, or that of the provider's shaper or policer where it is smaller.
pub(crate) fn rate(hop: &Hop) -> Option<BitRate> {
    let line = hop.line.rate?;
    Some(limit(&hop.queue).map_or(line, |limit| limit.min(line)))
}

/// The best rate of the line over time, within that of the provider's shaper or policer.
pub(crate) fn best_rate(hop: &Hop) -> Option<BitRate> {
    let best = hop.line.trace.as_ref().and_then(Trace::peak_rate).or(hop.line.rate)?;
    Some(limit(&hop.queue).map_or(best, |limit| limit.min(best)))
}

/// The rate of a shaper or policer of all packets.
fn limit(queue: &Spec) -> Option<BitRate> {
    match queue {
        Spec::Tbf(tbf) => Some(limit(&tbf.queue).map_or(tbf.config.rate, |within| within.min(tbf.config.rate))),
        Spec::Policer(policer) => match policer.config.rules.as_slice() {
            [Rule { matches: Match::Any, meter: meter::Config::TokenBucket { rate, .. }, exceed, .. }]
                if *exceed == Action::DROP =>
            {
                Some(limit(&policer.queue).map_or(*rate, |within| within.min(*rate)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The queue of the modem with a policy in it: `policy` in place of `queue`, or of the queue within the provider's
/// shaper or policer.
pub(crate) fn with_policy(queue: &Spec, policy: &Spec) -> Spec {
    match queue {
        Spec::Tbf(tbf) => Spec::Tbf(Over::new(tbf.config.clone(), with_policy(&tbf.queue, policy))),
        // The provider's policer is behind the modem. It drops nothing behind a policy that shapes to its rate, and is
        // left out. Without a shaper, packets reach it at the rate of the line, so it may be in front of the queue.
        Spec::Policer(policer) if limit(queue).is_some() && policy.shapers().is_empty() => {
            Spec::Policer(Over::new(policer.config.clone(), with_policy(&policer.queue, policy)))
        }
        _ => policy.clone(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    use super::*;

    fn up(queue: &str, policy: &str) -> (BitRate, BitRate, Spec) {
        let text = format!(
            "duration = \"1 s\"\n[access]\npolicy = {policy:?}\ndown = {{ rate = \"80 Mbit/s\", queue = {{ kind = \
             \"policer\", meter = {{ kind = \"token-bucket\", rate = \"40 Mbit/s\", burst = \"50000 wire bytes\" }} }} \
             }}\nup = {{ rate = \"20 Mbit/s\", queue = {queue} }}\n"
        );
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        let access = scenario.access().expect("an access line");
        let line = access.policy.as_ref().expect("a policy").line;
        (line.up.expect("a rate"), line.down.expect("a rate"), access.up.queue.clone())
    }

    /// The rates of the shaper and of the policer, not those of the lines behind them.
    #[test]
    fn a_policy_takes_the_rate_of_the_shaper_before_the_line() {
        let shaper =
            "{ kind = \"tbf\", rate = \"10 Mbit/s\", burst = \"64000 wire bytes\", queue = { limit = \"64 kB\" } }";
        let (mbit, faster) = (BitRate::from_mbit_per_s, shaper.replace("10 Mbit/s", "30 Mbit/s"));
        let (up_rate, down_rate, queue) = up(shaper, "cake");
        assert_eq!((up_rate, down_rate), (mbit(10), mbit(40)));
        // A middlebox leaves the queue of the shaper.
        assert!(matches!(queue, Spec::Tbf(tbf) if matches!(*tbf.queue, Spec::Fifo(_))));
        // A shaper faster than the line limits nothing.
        assert_eq!(up(&faster, "cake").0, mbit(20));
        assert_eq!(up("{ limit = \"64 kB\" }", "cake").0, mbit(20));
    }

    /// In the modem, a policy takes the place of the queue within: the shaper stays.
    #[test]
    fn a_policy_in_the_modem_leaves_the_shaper() {
        let shaper =
            "{ kind = \"tbf\", rate = \"10 Mbit/s\", burst = \"64000 wire bytes\", queue = { limit = \"64 kB\" } }";
        let (_, _, queue) = up(shaper, "sad");
        assert!(matches!(&queue, Spec::Tbf(tbf) if matches!(*tbf.queue, Spec::Sad(_))), "{queue:?}");
        let policer = "{ kind = \"policer\", meter = { kind = \"token-bucket\", rate = \"10 Mbit/s\", burst = \"64000 \
                       wire bytes\" } }";
        let (rate, _, queue) = up(policer, "sad");
        assert_eq!(rate, BitRate::from_mbit_per_s(10));
        assert!(matches!(&queue, Spec::Policer(policer) if matches!(*policer.queue, Spec::Sad(_))), "{queue:?}");
        // What shapes to the rate of the policer passes it.
        let (_, _, queue) = up(policer, "ack-priority");
        assert!(!matches!(queue, Spec::Policer(_)), "{queue:?}");
    }
}

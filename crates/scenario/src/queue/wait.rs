//! A queue whose target lies below the wait for grants: it drops packets of a line that is not full.

use lastmile_queueing::line::Config;
use lastmile_queueing::spec::Spec;
use lastmile_units::Duration;

use crate::reader::Table;

/// A target of a queue: its key, the value in the file, and the target that it means.
struct Target {
    kind: &'static str,
    key: &'static str,
    target: Duration,
    /// CoDel's: it must be well above the target.
    interval: Option<Duration>,
}

impl Target {
    fn of(queue: &Spec) -> Option<Self> {
        let target = |kind, target, interval| Some(Self { kind, key: "target", target, interval });
        match queue {
            Spec::Codel(codel) => target("codel", codel.target, Some(codel.interval)),
            Spec::FqCodel(codel) => target("fq-codel", codel.target, Some(codel.interval)),
            Spec::Pie(pie) => target("pie", pie.control.target, None),
            Spec::FqPie(pie) => target("fq-pie", pie.control.target, None),
            Spec::DualPi2(dual) => target("dualpi2", dual.target, None),
            // CAKE's target is a twentieth of its round-trip time.
            Spec::Cake(cake) => Some(Self { kind: "cake", key: "rtt", target: cake.rtt / 20, interval: None }),
            _ => None,
        }
    }

    /// The first below `wait` in a tree of queues.
    fn below(queue: &Spec, wait: Duration) -> Option<Self> {
        let own = Self::of(queue).filter(|own| own.target < wait);
        own.or_else(|| queue.below().into_iter().find_map(|queue| Self::below(queue, wait)))
    }

    /// The keys with a target of at least `wait`, in whole milliseconds.
    fn for_wait(&self, wait: Duration) -> String {
        let ms = wait.as_ps().div_ceil(Duration::from_ms(1).as_ps());
        match (self.key, self.interval) {
            ("rtt", _) => format!("rtt = \"{} ms\"", 20 * ms),
            // RFC 8289 recommends a target of 5 to 10 % of the interval.
            (_, Some(interval)) if interval < Duration::from_ms(10 * ms) => {
                format!("target = \"{ms} ms\", interval = \"{} ms\"", 10 * ms)
            }
            _ => format!("target = \"{ms} ms\""),
        }
    }
}

/// Warns of a target below the wait for grants of `line`, at `key` of the table, which holds the queue or names its
/// policy. Behind a queue that shapes, packets wait for grants in a buffer, which no queue counts.
pub(crate) fn warn_of_grants(table: &Table<'_>, key: &'static str, line: &Config, queue: &Spec) {
    let Some(grants) = line.grants.as_ref().filter(|_| queue.shapers().is_empty()) else { return };
    let (Some(wait), longest) = (grants.wait_under_load(), grants.longest_wait_under_load()) else { return };
    let Some(found) = Target::below(queue, wait) else { return };
    let Target { kind, key: own, target, .. } = found;
    let meaning = if own == "rtt" { " (a twentieth of rtt)" } else { "" };
    let message = format!(
        "{}.{own} of {kind}: a target of {target}{meaning}, where packets wait {wait} for grants: packets of a \
         line that is not full are dropped",
        table.path(key)
    );
    table.warning(key, message, Some(found.for_wait(longest)));
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    fn warnings(grants: &str, queue: &str) -> String {
        let text = format!(
            "duration = \"1 s\"\n[access]\ndown = {{ rate = \"50 Mbit/s\" }}\nup = {{ rate = \"50 Mbit/s\", grants = \
             {grants}, queue = {queue} }}\n"
        );
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        scenario.warnings().to_string()
    }

    /// 3 ms of answer and a slot of 2 ms; an opportunity in 2 ms more is the most.
    #[test]
    fn a_target_below_the_wait_for_grants_is_told() {
        let told = warnings("\"docsis-3.1\"", "{ kind = \"codel\", target = \"4 ms\" }");
        let expected = "access.up.queue.target of codel: a target of 4 ms, where packets wait 5 ms for grants";
        assert!(told.contains(expected) && told.ends_with("hint: target = \"7 ms\""), "{told}");
        for queue in ["codel", "fq-codel", "pie", "fq-pie", "dualpi2"] {
            let told = warnings("\"docsis-3.1\"", &format!("{{ kind = {queue:?}, target = \"3 ms\" }}"));
            assert!(told.contains(&format!("target of {queue}: a target of 3 ms")), "{told}");
            assert_eq!(warnings("\"docsis-3.1\"", &format!("{{ kind = {queue:?}, target = \"5 ms\" }}")), "");
        }
        let cake = warnings("\"docsis-3.1\"", "{ kind = \"cake\", rtt = \"60 ms\" }");
        assert!(cake.contains("access.up.queue.rtt of cake: a target of 3 ms (a twentieth of rtt)"), "{cake}");
        assert!(cake.ends_with("hint: rtt = \"140 ms\""), "{cake}");
    }

    /// 8 ms and a slot of 1 ms; with 10 ms for an opportunity, 19 ms, of which 190 ms are ten times.
    #[test]
    fn the_interval_grows_with_the_target() {
        let told = warnings("\"lte\"", "{ kind = \"ack-pacing\", rate = \"10 Mbit/s\", queue = { kind = \"codel\" } }");
        assert!(told.contains("access.up.queue.target of codel: a target of 5 ms, where packets wait 9 ms"), "{told}");
        assert!(told.ends_with("hint: target = \"19 ms\", interval = \"190 ms\""), "{told}");
        assert_eq!(warnings("\"lte\"", "{ kind = \"codel\", target = \"19 ms\", interval = \"190 ms\" }"), "");
    }

    /// DOCSIS-PIE reckons by the backlog. Behind a shaper packets wait in a buffer. A station that never asks waits for
    /// its slots only.
    #[test]
    fn queues_that_do_not_count_the_wait_are_not_told() {
        assert_eq!(
            warnings("\"docsis-3.1\"", "{ kind = \"docsis-pie\", sustained = \"50 Mbit/s\", target = \"1 ms\" }"),
            ""
        );
        assert_eq!(warnings("\"docsis-3.1\"", "{ kind = \"cake\", rtt = \"20 ms\", bandwidth = \"40 Mbit/s\" }"), "");
        assert_eq!(warnings("\"docsis-3.1\"", "{ kind = \"fifo\" }"), "");
    }
}

//! Queues that count the wait for grants as if it were a backlog: they drop or mark packets of a line that is not full.

use lastmile_queueing::line::Config;
use lastmile_queueing::spec::Spec;
use lastmile_units::Duration;

use super::{Wait, Waits, waits};
use crate::reader::Table;

/// The first wait in a tree of queues that is at most `wait`, and the kind of its queue.
fn reached(queue: &Spec, wait: Duration, of: fn(Waits) -> Option<Wait>) -> Option<(&'static str, Wait)> {
    let own = waits(queue).and_then(|(kind, waits)| Some((kind, of(waits)?)));
    own.filter(|(_, own)| own.wait <= wait)
        .or_else(|| queue.below().into_iter().find_map(|queue| reached(queue, wait, of)))
}

impl Wait {
    /// The keys with a value above `wait`, in whole milliseconds.
    fn above(&self, wait: Duration) -> String {
        let ms = wait.as_ps() / Duration::from_ms(1).as_ps() + 1;
        match (self.key, self.interval) {
            ("rtt", _) => format!("rtt = \"{} ms\"", 20 * ms),
            ("step_thresh", _) => format!("delay = \"predicted\", as DOCSIS has it, or step_thresh = \"{ms} ms\""),
            // RFC 8289 recommends a target of 5 to 10 % of the interval.
            (_, Some(interval)) if interval < Duration::from_ms(10 * ms) => {
                format!("target = \"{ms} ms\", interval = \"{} ms\"", 10 * ms)
            }
            (key, _) => format!("{key} = \"{ms} ms\""),
        }
    }
}

/// Warns of a target that packets which wait for grants of `line` reach, and of a threshold that a single packet
/// reaches, at `key` of the table, which holds the queue or names its policy. Behind a queue that shapes, packets wait
/// for grants in a buffer, which no queue counts.
pub(crate) fn warn_of_grants(table: &Table<'_>, key: &'static str, line: &Config, queue: &Spec) {
    let Some(grants) = line.grants.as_ref().filter(|_| queue.shapers().is_empty()) else { return };
    if grants.requests.is_none() {
        return;
    }
    let wait = grants.longest_wait_under_load();
    if let Some((kind, found)) = reached(queue, wait, |waits| waits.target) {
        let Wait { key: own, wait: target, .. } = found;
        let meaning = if own == "rtt" { " (a twentieth of rtt)" } else { "" };
        let message = format!(
            "{}.{own} of {kind}: a target of {target}{meaning}, where packets wait up to {wait} for grants: packets of \
             a line that is not full are dropped",
            table.path(key)
        );
        table.warning(key, message, Some(found.above(wait)));
    }
    let wait = grants.longest_wait();
    if let Some((kind, found)) = reached(queue, wait, |waits| waits.threshold) {
        let Wait { key: own, wait: threshold, .. } = found;
        let message = format!(
            "{}.{own} of {kind}: {threshold}, where a single packet waits up to {wait} for a grant: packets of a line \
             that is not full are marked",
            table.path(key)
        );
        table.warning(key, message, Some(found.above(wait)));
    }
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

    /// 3 ms of answer, a slot of 2 ms, and 2 ms for an opportunity are 7 ms at most.
    #[test]
    fn a_target_that_the_wait_for_grants_reaches_is_told() {
        let told = warnings("\"docsis-3.1\"", "{ kind = \"codel\", target = \"7 ms\" }");
        let expected = "access.up.queue.target of codel: a target of 7 ms, where packets wait up to 7 ms for grants";
        assert!(told.contains(expected) && told.ends_with("hint: target = \"8 ms\""), "{told}");
        for queue in ["codel", "fq-codel", "pie", "fq-pie"] {
            let told = warnings("\"docsis-3.1\"", &format!("{{ kind = {queue:?}, target = \"5 ms\" }}"));
            assert!(told.contains(&format!("target of {queue}: a target of 5 ms")), "{told}");
            assert_eq!(warnings("\"docsis-3.1\"", &format!("{{ kind = {queue:?}, target = \"8 ms\" }}")), "");
        }
        let dual = |target| format!("{{ kind = \"dualpi2\", delay = \"predicted\", target = \"{target} ms\" }}");
        assert!(warnings("\"docsis-3.1\"", &dual(5)).contains("target of dualpi2: a target of 5 ms"));
        assert_eq!(warnings("\"docsis-3.1\"", &dual(8)), "");
        for grants in ["\"docsis-3.1\"", "{ kind = \"docsis-3.1\", sustained = \"25 Mbit/s\" }"] {
            let cake = warnings(grants, "{ kind = \"cake\" }");
            assert!(cake.contains("access.up.queue.rtt of cake: a target of 5 ms (a twentieth of rtt)"), "{cake}");
            assert!(cake.ends_with("hint: rtt = \"160 ms\""), "{cake}");
        }
        // 5 and 2.5 ms, and a round of 2.5 ms.
        let tdd = warnings("\"5g-tdd\"", "{ kind = \"fq-codel\" }");
        assert!(tdd.contains("a target of 5 ms, where packets wait up to 10 ms for grants"), "{tdd}");
    }

    /// 10 ms for an opportunity, 8 ms and a slot of 1 ms are 19 ms.
    #[test]
    fn the_interval_grows_with_the_target() {
        let told = warnings("\"lte\"", "{ kind = \"ack-pacing\", rate = \"10 Mbit/s\", queue = { kind = \"codel\" } }");
        assert!(
            told.contains("access.up.queue.target of codel: a target of 5 ms, where packets wait up to 19 ms"),
            "{told}"
        );
        assert!(told.ends_with("hint: target = \"20 ms\", interval = \"200 ms\""), "{told}");
        assert_eq!(warnings("\"lte\"", "{ kind = \"codel\", target = \"20 ms\", interval = \"200 ms\" }"), "");
    }

    /// On `docsis-lld` a packet waits for an opportunity, an answer and a slot of 1 ms each.
    #[test]
    fn a_threshold_that_a_single_packet_reaches_is_told() {
        let told = warnings("\"docsis-lld\"", "{ kind = \"dualpi2\", step_thresh = \"3 ms\" }");
        let expected = "queue.step_thresh of dualpi2: 3 ms, where a single packet waits up to 3 ms for a grant";
        assert!(told.contains(expected) && told.contains("hint: delay = \"predicted\""), "{told}");
        assert!(told.ends_with("step_thresh = \"4 ms\""), "{told}");
        assert_eq!(warnings("\"docsis-lld\"", "{ kind = \"dualpi2\", step_thresh = \"4 ms\" }"), "");
        assert_eq!(warnings("\"docsis-lld\"", "{ kind = \"dualpi2\", delay = \"predicted\" }"), "");
        for queue in ["codel", "fq-codel"] {
            let told = warnings("\"docsis-lld\"", &format!("{{ kind = {queue:?}, ce_threshold = \"1 ms\" }}"));
            assert!(told.contains(&format!("ce_threshold of {queue}: 1 ms")), "{told}");
            assert!(told.ends_with("hint: ce_threshold = \"4 ms\""), "{told}");
        }
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

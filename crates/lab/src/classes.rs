//! The classes of a policy on a live line, in an interval.

use std::collections::BTreeMap;

use lastmile_live::bump::{CounterValue, Interval, Waited, per_second};
use lastmile_scenario::policy::{Class, Numbers, class_at};
use lastmile_units::BitRate;

/// One class of a hop in an interval.
pub struct ClassInterval<'a> {
    /// The class.
    pub class: &'a Class,
    /// Its ceiling at the present rate of the shaper.
    pub ceil: BitRate,
    /// Bits in a second: on the wire, or of IP where the scheduler does not count the wire.
    pub sent_bps: Option<f64>,
    /// The backlog of its queue.
    pub backlog_bytes: Option<f64>,
    /// Waits in its queue.
    pub waited: Waited,
    /// Packets that its queue, or one below that, has dropped so far, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Packets that its queue has dropped in the interval.
    pub dropped_lately: u64,
}

impl ClassInterval<'_> {
    /// Packets that its queue has dropped so far.
    pub fn dropped_packets(&self) -> u64 {
        packets(&self.dropped)
    }
}

fn packets(dropped: &[(&str, u64)]) -> u64 {
    dropped.iter().map(|(_, packets)| packets).sum()
}

/// The counters of one class of a scheduler.
#[derive(Clone, Default)]
struct Counted {
    sent_wire_bytes: Option<u64>,
    sent_bytes: Option<u64>,
    dropped: Vec<(&'static str, u64)>,
}

/// The classes in these counters by their numbers there, in one pass: a policy may have a hundred.
fn counted(counters: &[CounterValue]) -> BTreeMap<usize, Counted> {
    let mut classes: BTreeMap<usize, Counted> = BTreeMap::new();
    for CounterValue { path, name, value, .. } in counters {
        let Some((number, rest)) = class_at(path) else { continue };
        let class = classes.entry(number).or_default();
        match name.strip_prefix("dropped_") {
            Some(reason) if rest.starts_with(".queue") => class.dropped.push((reason, *value)),
            None if rest.is_empty() && *name == "sent_wire_bytes" => class.sent_wire_bytes = Some(*value),
            None if rest.is_empty() && *name == "sent_bytes" => class.sent_bytes = Some(*value),
            _ => {}
        }
    }
    classes
}

/// The classes with a queue in an interval, below a shaper that was built with the rate `shaper`.
pub fn classes<'a>(classes: &'a [Class], shaper: Option<BitRate>, hop: &Interval<'_>) -> Vec<ClassInterval<'a>> {
    let counters = &hop.now.queue_counters;
    let places = Numbers::of(classes, counters.iter().map(|c| (c.path.as_str(), c.kind)));
    let [before, now] = [&hop.before.queue_counters, counters].map(|counters| counted(counters));
    let with_queue = classes.iter().enumerate().filter(|(_, class)| class.queue.is_some());
    let interval = with_queue.map(|(index, class)| {
        let number = places.get(index);
        let of = |counts: &BTreeMap<usize, Counted>| number.and_then(|number| counts.get(&number).cloned());
        let (before, now) = (of(&before).unwrap_or_default(), of(&now).unwrap_or_default());
        let bytes = match now.sent_wire_bytes {
            Some(bytes) => Some((before.sent_wire_bytes, bytes)),
            None => now.sent_bytes.map(|bytes| (before.sent_bytes, bytes)),
        };
        // A class of a new queue has no earlier count.
        let sent = bytes.map(|(then, now)| (then.filter(|then| *then <= now).unwrap_or(now), now));
        let backlog = hop.now.class_queued.iter().find(|(place, _)| Some(*place) == number);
        let waited = hop.now.class_waited.get(index);
        let [dropped_before, dropped_now] = [&before, &now].map(|counted| packets(&counted.dropped));
        #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
        ClassInterval {
            class,
            ceil: class.rates(shaper, hop.now.shaper_rate).1,
            sent_bps: sent.map(|(then, now)| 8.0 * per_second(then, now, hop.seconds)),
            backlog_bytes: backlog.map(|(_, backlog)| backlog.bytes.as_u64() as f64),
            waited: waited.map(|now| Waited::of(hop.before.class_waited.get(index), now)).unwrap_or_default(),
            dropped: now.dropped,
            // The counts of another queue begin anew.
            dropped_lately: dropped_now.checked_sub(dropped_before).unwrap_or(dropped_now),
        }
    });
    interval.collect()
}

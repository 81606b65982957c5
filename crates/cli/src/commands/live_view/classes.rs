//! The table of a policy's classes.

use lastmile_live::bump::CounterValue;
use lastmile_scenario::policy::Class;
use lastmile_terminal::Unit;
use lastmile_text::table::{Kind, Table};

use super::hops::{Interval, Waited, per_second, reasons};

/// The classes of the scheduler in one direction: their numbers in the paths of its counters.
pub(in crate::commands) struct Numbers(Vec<Option<usize>>);

impl Numbers {
    /// The numbers of `classes` in these counters, each a path and the kind of its discipline.
    pub(in crate::commands) fn of<'a>(
        classes: &[Class],
        counters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let is_scheduler = |path: &str| at(path).is_some_and(|(_, rest)| rest.is_empty());
        let kind = counters.into_iter().find(|(path, _)| is_scheduler(path)).map(|(_, kind)| kind);
        let number = |(index, class): (usize, &Class)| match kind? {
            // In rate-based trees the line itself is class 0.
            "htb" | "cbq" | "hfsc" => Some(index + 1),
            // A scheduler by priority has its own order.
            "priority" => {
                let before =
                    |(other, c): (usize, &Class)| c.queue.is_some() && (c.priority, other) < (class.priority, index);
                Some(classes.iter().enumerate().filter(|&pair| before(pair)).count())
            }
            _ => Some(index),
        };
        Self(classes.iter().enumerate().map(number).collect())
    }

    /// The number of the class at this place in the policy.
    pub(in crate::commands) fn get(&self, index: usize) -> Option<usize> {
        *self.0.get(index)?
    }
}

/// The number of the class in a path such as `queue.classes.3.queue`, and the rest of the path.
pub(in crate::commands) fn at(path: &str) -> Option<(usize, &str)> {
    let (_, class) = path.split_once("classes.")?;
    let end = class.find('.').unwrap_or(class.len());
    Some((class[..end].parse().ok()?, &class[end..]))
}

/// The classes with a queue in an interval: rate on the wire, backlog and its time at the ceiling
/// of the class, delays, drops since the start.
pub(in crate::commands) fn table(title: &str, classes: &[Class], hop: &Interval<'_>) -> Table {
    let numbers = ["rate", "backlog B", "ms", "p50 ms", "p99 ms"].map(|name| (name, Kind::Number));
    let drops = ("drops", Kind::Text);
    let mut table = Table::new([(title, Kind::Name)].into_iter().chain(numbers).chain([drops]));
    let counters = &hop.now.queue_counters;
    let places = Numbers::of(classes, counters.iter().map(|c| (c.path.as_str(), c.kind)));
    for (index, class) in classes.iter().enumerate().filter(|(_, class)| class.queue.is_some()) {
        let own = Own { number: places.get(index) };
        let backlog = hop.now.class_queued.iter().find(|(number, _)| Some(*number) == own.number);
        let bytes = backlog.map(|(_, backlog)| backlog.bytes.as_u64());
        #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
        let ms = bytes.map(|bytes| bytes as f64 * hop.wire_per_byte() * 8e3 / class.ceil.as_bps() as f64);
        let waited = hop.now.class_waited.get(index);
        let waited = waited.map(|now| Waited::of(hop.before.class_waited.get(index), now)).unwrap_or_default().cells();
        let sent = own.sent_bits(hop);
        let or_none = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let cells = [
            class.name.clone(),
            or_none(sent.map(|bps| Unit::BitsPerSecond.show(bps))),
            or_none(bytes.map(|bytes| bytes.to_string())),
            or_none(ms.map(|ms| format!("{ms:.1}"))),
        ];
        table.row(cells.into_iter().chain(waited).chain([own.drops(counters)]));
    }
    table
}

/// A class in the counters of its scheduler.
struct Own {
    number: Option<usize>,
}

impl Own {
    fn value(&self, counters: &[CounterValue], wanted: &str) -> Option<u64> {
        let is_own = |c: &&CounterValue| {
            c.name == wanted && at(&c.path).is_some_and(|(number, rest)| rest.is_empty() && Some(number) == self.number)
        };
        counters.iter().find(is_own).map(|c| c.value)
    }

    /// Bits in a second: on the wire, or of IP where the scheduler does not count the wire.
    fn sent_bits(&self, hop: &Interval<'_>) -> Option<f64> {
        ["sent_wire_bytes", "sent_bytes"].into_iter().find_map(|name| {
            let now = self.value(&hop.now.queue_counters, name)?;
            // A class of a new queue has no earlier count.
            let before = self.value(&hop.before.queue_counters, name).filter(|before| *before <= now).unwrap_or(now);
            Some(per_second(before, now, hop.seconds) * 8.0)
        })
    }

    /// Drops of its queue so far, by reason.
    fn drops(&self, counters: &[CounterValue]) -> String {
        reasons(counters.iter().filter_map(|c| {
            let (number, rest) = at(&c.path)?;
            let reason = c.name.strip_prefix("dropped_")?;
            (rest.starts_with(".queue") && Some(number) == self.number).then_some((reason, c.value))
        }))
    }
}

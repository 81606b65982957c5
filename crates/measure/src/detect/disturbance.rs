//! Loss and traffic of others: both take time of the busy line, so that its rate looks too low.
//!
//! **Loss.** Small packets at a part of the rate fill no queue. A packet of them that does not
//! arrive was lost on the wire, by the share that packets of a busy line are lost, too. A loss
//! behind the queue takes time of the line; one before it does not. Trains do not show the place,
//! so the interval of the rate covers both.
//!
//! **Others.** A queue that drops at one size divides the line by what is offered. Packets of ours
//! come through at one each `T + c * interval`: `T` is the time of a packet, and `c` the share of
//! the line that others ask for. Two overloads, a slight and a heavy one, give both. This assumes
//! that others offer equally much during both, and that the line keeps its rate: the slight overload is
//! repeated, and where it finds another time, the rate changes. A queue that counts bytes has room for a small packet
//! where a large one is dropped, so the heavy overload consists of small packets, which leave others
//! none.

use super::losses::Losses;
use super::rate::Sustained;
use super::train::{Plan, paced, steady};
use crate::error::Error;
use crate::report::Estimate;
use crate::statistics::Z;
use crate::train::{Path, Way};

/// Offered part of the rate that fills no queue, if others take less than a fifth.
const LIGHT: f64 = 0.75;
/// Longest light train in seconds.
pub(super) const LONGEST_S: f64 = 4.0;
/// Most packets of a light train.
const MOST: usize = 20_000;
/// Offered rate of the heavy overload, as a multiple of the line's.
const HEAVY: f64 = 4.0;
/// Largest share of the sender's packets per second in a heavy overload of small packets.
const SPARED: f64 = 0.5;
/// Length of the heavy overload once the queue is full: seconds, and packets that arrive.
const FULL: (f64, f64) = (1.5, 60.0);
/// Standard errors, and share of the line, from which traffic of others is reported.
const SEEN: (f64, f64) = (4.0, 0.005);

/// Packets of `size` on an idle way on which each takes `packet_s`.
pub(super) fn light(
    path: &mut dyn Path,
    way: Way,
    (size, packet_s): (u16, f64),
    packets_per_second: f64,
) -> Result<Losses, Error> {
    let interval = (packet_s / LIGHT).max(1.0 / packets_per_second);
    let count = ((LONGEST_S / interval) as usize).clamp(16, MOST);
    let mut plan = Plan::default();
    (0..count).for_each(|_| plan.packet(size, interval));
    let seen = plan.send(path, way)?;
    Ok(Losses { sent: seen.len(), lost: seen.iter().filter(|seen| seen.arrived.is_none()).count() })
}

/// Traffic of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others {
    /// Share of the line that they ask for.
    pub(super) share: f64,
    /// Seconds per packet of ours under heavy overload: at least the line's.
    pub(super) beside_s: f64,
    /// Seconds per packet of the line alone, and the standard error.
    pub(super) packet_s: f64,
    pub(super) error_s: f64,
}

impl Others {
    /// The rate of the line alone for `bits` of a packet. The interval reaches to the rate that came
    /// through, and as far to the other side.
    pub(super) fn rate(self, bits: f64) -> Estimate {
        let reach = (self.beside_s - self.packet_s).max(0.0) + Z * self.error_s;
        let packet_s = self.packet_s;
        Estimate { value: bits / packet_s, low: bits / (packet_s + reach), high: bits / (packet_s - reach) }
    }
}

/// Why packets came through faster under a heavy overload than under a slight one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Faster {
    /// Others were there.
    Others(Others),
    /// The rate changed: the least and the most seconds per packet of the largest size.
    Changed(f64, f64),
}

impl Faster {
    /// The reason, by the time and error of the slight overload `again`: beside others it has the time of the first
    /// one, nearer than half of the way to that of the heavy one.
    pub(super) fn why(sustained: &Sustained, others: Others, (again_s, again_error): (f64, f64)) -> Self {
        let slow = sustained.packet_s;
        // A line that is no longer overloaded has the time between departures.
        let half = 0.5 * (slow - others.beside_s.max(sustained.interval_s));
        if (slow - again_s).abs() > half.max(SEEN.0 * sustained.error_s.hypot(again_error)) {
            Self::Changed(others.beside_s.min(again_s), slow.max(again_s))
        } else {
            Self::Others(others)
        }
    }
}

/// Seconds that [`again`] takes.
pub(super) fn again_s(sustained: &Sustained) -> f64 {
    FULL.0.max(FULL.1 * sustained.packet_s)
}

/// The slight overload once more: seconds per packet of the largest `size`, and the standard error.
pub(super) fn again(
    path: &mut dyn Path,
    way: Way,
    size: u16,
    sustained: &Sustained,
    most: usize,
) -> Result<Option<(f64, f64)>, Error> {
    let count = ((again_s(sustained) / sustained.interval_s) as usize).min(most);
    let seen = steady(size, sustained.interval_s, count).send(path, way)?;
    Ok(paced(&seen[count / 3..]))
}

/// Seconds that [`others`] takes at most, with a queue that holds `wait_s`.
pub(super) fn cost_s(sustained: &Sustained, wait_s: f64) -> f64 {
    FULL.0.max(FULL.1 * sustained.packet_s) + 2.0 * wait_s + 0.5
}

/// A size of packets, and how many times as long a packet of the largest size takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) bytes: u16,
    pub(super) times: f64,
}

impl Size {
    /// The smallest of `sizes` of which a heavy overload spares the sender; else the last.
    pub(super) fn smallest(
        sizes: core::ops::RangeInclusive<u16>,
        packet_s: impl Fn(u16) -> f64,
        packets_per_second: f64,
    ) -> Self {
        let full = *sizes.end();
        let spares = |size: &u16| HEAVY / packet_s(*size) < SPARED * packets_per_second;
        let bytes = sizes.into_iter().find(spares).unwrap_or(full);
        Self { bytes, times: packet_s(full) / packet_s(bytes) }
    }
}

/// Traffic of others on a way whose queue holds `wait_s`; `None` where there is none to see.
pub(super) fn others(
    path: &mut dyn Path,
    way: Way,
    size: Size,
    sustained: &Sustained,
    wait_s: f64,
    (packets_per_second, most): (f64, usize),
) -> Result<Option<Others>, Error> {
    let slow = sustained.packet_s;
    let interval = (slow / size.times / HEAVY).max(1.0 / packets_per_second);
    let heavy = slow / size.times / interval;
    if heavy < 1.3 {
        return Ok(None);
    }
    let filling = 1.2 * wait_s / (heavy - 1.0);
    let length = filling + FULL.0.max(FULL.1 * slow);
    let count = ((length / interval) as usize).min(most);
    let mut plan = Plan::default();
    (0..count).for_each(|_| plan.packet(size.bytes, interval));
    let seen = plan.send(path, way)?;
    let full = &seen[((filling / length * count as f64) as usize).min(count / 2)..];
    let (Some(beside), Some((first, last))) = (paced(full), full.first().zip(full.last())) else {
        return Ok(None);
    };
    let (beside_s, error_s) = (beside.0 * size.times, beside.1 * size.times);
    // A sender that is late now and then offers less than it should.
    let offered = (last.sent - first.sent) / (full.len() - 1) as f64 * size.times;
    let lever = sustained.interval_s - offered;
    let share = (slow - beside_s) / lever;
    let share_error = sustained.error_s.hypot(error_s) / lever;
    if lever < 0.2 * sustained.interval_s || share < SEEN.1.max(SEEN.0 * share_error) {
        return Ok(None);
    }
    let packet_s = beside_s - share * offered;
    Ok(Some(Others { share, beside_s, packet_s, error_s: error_s.hypot(share_error * offered) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1500 bytes at 100 Mbit/s, offered with 115 %. A heavy overload finds 150 Mbit/s.
    fn why(again_mbit: f64, again_error: f64) -> Faster {
        let time = |mbit: f64| 12e-3 / mbit;
        let sustained = Sustained {
            packet_s: time(100.0),
            error_s: 1e-8,
            interval_s: time(115.0),
            burst: None,
            losses: Losses::default(),
        };
        let others = Others { share: 0.54, beside_s: time(150.0), packet_s: time(188.0), error_s: 1e-8 };
        Faster::why(&sustained, others, (time(again_mbit), again_error))
    }

    #[test]
    fn a_slight_overload_once_more_tells_others_from_a_rate_that_changes() {
        assert!(matches!(why(100.0, 1e-8), Faster::Others(_)));
        assert!(matches!(why(101.0, 1e-8), Faster::Others(_)));
        // The line carries all that the slight overload offers; or it has become slower than at first.
        let Faster::Changed(least, most) = why(115.0, 1e-8) else { panic!("others") };
        assert_eq!((least, most), (12e-3 / 150.0, 12e-3 / 100.0));
        let Faster::Changed(least, most) = why(60.0, 1e-8) else { panic!("others") };
        assert_eq!((least, most), (12e-3 / 150.0, 12e-3 / 60.0));
        // Times that are not known well enough.
        assert!(matches!(why(115.0, 1e-5), Faster::Others(_)));
    }
}

//! The sustained rate of a way: the offered rate rises until packets wait or are lost, then a long
//! overload shows whether the rate stays.

use super::losses::Losses;
use super::train::{Pace, Plan, Seen, lost_share, pace, paced, steady};
use crate::error::Error;
use crate::train::{Path, Way};

/// The lowest offered rate of the search, bit/s of IP packets.
const LOWEST: f64 = 200e3;
/// The factor between two offered rates.
const STEP: f64 = 3.0;
/// Length of a search train in seconds, and its fewest packets.
const TRAIN: (f64, usize) = (0.3, 12);
/// Offered rate of the long overload, as a multiple of the rate that the search found.
const OVERLOAD: f64 = 1.15;
/// Least drop of the rate that counts as the end of a burst.
const DROP: f64 = 0.03;

/// The rate of one way under overload, for packets of the largest size.
#[derive(Clone, Debug)]
pub(super) struct Sustained {
    /// Seconds per packet of the largest size.
    pub(super) packet_s: f64,
    /// Standard error of `packet_s`.
    pub(super) error_s: f64,
    /// Seconds between two departures of that overload.
    pub(super) interval_s: f64,
    /// The burst before the rate fell.
    pub(super) burst: Option<Burst>,
    /// Packets below saturation.
    pub(super) losses: Losses,
}

/// A faster start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// Seconds per packet of the largest size.
    pub(super) packet_s: f64,
    /// Its length in seconds.
    pub(super) length_s: f64,
    /// Whether more was offered than it carried: `packet_s` is the line's.
    pub(super) bounded: bool,
}

impl Burst {
    /// Idle seconds after which the whole burst is possible again.
    pub(super) fn refill_s(&self, sustained: &Sustained) -> f64 {
        self.length_s * (sustained.packet_s / self.packet_s - 1.0)
    }

    /// Whether it is one of about `length_s` with `packet_s` a packet.
    pub(super) fn agrees(&self, length_s: f64, packet_s: f64) -> bool {
        let length = self.length_s / length_s;
        0.5 < length && length < 2.0 && (self.packet_s / packet_s - 1.0).abs() < 0.1
    }
}

/// The outcome of the search.
pub(super) enum Found {
    /// The way was overloaded.
    Rate(Sustained),
    /// The senders did not fill the path, which carried at least this rate in bit/s of IP packets.
    Above(f64),
}

/// The sustained rate for packets of `size` bytes. `packets_per_second` bounds the sender, and
/// `long_s` seconds and `most` packets the long overload.
pub(super) fn sustained(
    path: &mut dyn Path,
    way: Way,
    size: u16,
    packets_per_second: f64,
    (long_s, most): (f64, usize),
) -> Result<Found, Error> {
    let highest = packets_per_second * f64::from(size) * 8.0;
    let mut offered = LOWEST;
    let mut losses = Losses::default();
    loop {
        let interval = f64::from(size) * 8.0 / offered;
        let count = ((TRAIN.0 / interval) as usize).max(TRAIN.1);
        let seen = steady(size, interval, count).send(path, way)?;
        if let Some(pace) = overloaded(&seen) {
            let interval = (pace.seconds / OVERLOAD).max(1.0 / packets_per_second);
            let count = ((long_s / interval) as usize).clamp(4 * TRAIN.1, most.max(4 * TRAIN.1));
            let seen = steady(size, interval, count).send(path, way)?;
            let half = &seen[seen.len() / 2..];
            let later = self::pace(half).ok_or_else(nothing)?;
            if lost_share(half) > 0.05 || later.seconds > 1.05 * spacing(half) {
                return Ok(Found::Rate(regimes(&seen, losses)?));
            }
            // A loss or a delay deceived the search: it goes on from there.
        } else {
            let lost = seen.iter().filter(|seen| seen.arrived.is_none()).count();
            losses = losses.and(Losses { sent: count, lost });
        }
        if offered >= highest {
            // A path a little slower than the senders delays packets by less than shows as an overload.
            let half = &seen[seen.len() / 2..];
            let carried = pace(half).map_or(LOWEST, |pace| f64::from(size) * 8.0 / (pace.seconds + 3.0 * pace.error));
            return Ok(Found::Above(carried.min(offered)));
        }
        offered = (offered * STEP).min(highest);
    }
}

fn nothing() -> Error {
    Error::Unsupported("an overloaded path carries nothing".into())
}

/// Mean time between departures.
fn spacing(seen: &[Seen]) -> f64 {
    (seen[seen.len() - 1].sent - seen[0].sent) / (seen.len() - 1) as f64
}

/// The pace of a train whose packets waited or were lost.
fn overloaded(seen: &[Seen]) -> Option<Pace> {
    let half = &seen[seen.len() / 2..];
    let pace = pace(half)?;
    let lost = half.iter().filter(|seen| seen.arrived.is_none()).count();
    let waits = pace.seconds - 3.0 * pace.error > 1.1 * spacing(half);
    (waits || lost >= 3 && lost_share(half) > 0.1).then_some(pace)
}

/// The burst of another overload after `pause_s`, as fast as the one that `found` is from. It lasts for `length_s`, and
/// has `most` packets at most.
pub(super) fn burst(
    path: &mut dyn Path,
    way: Way,
    size: u16,
    found: &Sustained,
    (pause_s, length_s, most): (f64, f64, usize),
) -> Result<Option<Burst>, Error> {
    let count = ((length_s / found.interval_s) as usize).clamp(4 * TRAIN.1, most.max(4 * TRAIN.1));
    let mut plan = Plan::default();
    plan.packet(size, pause_s);
    (0..count).for_each(|_| plan.packet(size, found.interval_s));
    let seen = plan.send(path, way)?;
    Ok(regimes(&seen[1..], Losses::default())?.burst)
}

/// One rate, or a higher rate first: the best division of the train into two.
fn regimes(seen: &[Seen], losses: Losses) -> Result<Sustained, Error> {
    let arrived: Vec<Seen> = seen.iter().copied().filter(|seen| seen.arrived.is_some()).collect();
    let windows: Vec<&[Seen]> = arrived.chunks(arrived.len().div_ceil(60).max(8)).collect();
    let paces: Vec<Pace> = windows.iter().filter_map(|window| pace(window)).collect();
    let (packet_s, error_s) = paced(&arrived).ok_or_else(nothing)?;
    let one = Sustained { packet_s, error_s, interval_s: spacing(seen), burst: None, losses };
    let squares = |paces: &[Pace]| {
        let mean = paces.iter().map(|pace| pace.seconds).sum::<f64>() / paces.len().max(1) as f64;
        (mean, paces.iter().map(|pace| (pace.seconds - mean).powi(2)).sum::<f64>())
    };
    let total = squares(&paces).1;
    let divide = |at: usize| (at, squares(&paces[..at]), squares(&paces[at..]));
    let best =
        (1..paces.len().saturating_sub(3)).map(divide).min_by(|a, b| (a.1.1 + a.2.1).total_cmp(&(b.1.1 + b.2.1)));
    let Some((at, first, second)) = best else { return Ok(one) };
    let rest = first.1 + second.1;
    let strength = (total - rest) / (rest / (paces.len() as f64 - 2.0)).max(1e-30);
    if second.0 < first.0 * (1.0 + DROP) || strength < 30.0 {
        return Ok(one);
    }
    // The window in which the rate falls belongs to neither.
    let index = |window: usize| windows[..window].iter().map(|window| window.len()).sum::<usize>();
    let (packet_s, error_s) = paced(&arrived[index(at + 1)..]).unwrap_or((packet_s, error_s));
    let earlier = first.0;
    let start = arrived[0].arrived.unwrap_or_default();
    let end = arrived[index(at)].arrived.unwrap_or_default();
    // A burst that carried all that was offered may be faster still.
    let bounded = earlier > 1.04 * spacing(seen);
    let burst = Burst { packet_s: earlier, length_s: end - start, bounded };
    Ok(Sustained { packet_s, error_s, burst: Some(burst), ..one })
}

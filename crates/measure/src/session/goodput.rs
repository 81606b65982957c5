//! From counts of arrived bytes to the goodput of a phase.
//!
//! Counts are cumulative, so the goodput after the ramp is the bytes after the ramp over their time. The bytes at the
//! end of the ramp, and at that of the phase, lie between two counts in proportion to time.

use std::time::Duration;

use crate::load::{Arrived, Transferred};
use crate::report::{Estimate, Throughput};
use crate::statistics;

/// Time between two samples of the throughput.
pub const SAMPLING: Duration = Duration::from_millis(200);

/// Least time between two reports of the server that are samples. Ten come in a second, and timers are late.
const APART: Duration = Duration::from_millis(150);

/// The counts of both directions in a phase, in their order of time.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Counts {
    pub(super) down: Vec<Arrived>,
    pub(super) up: Vec<Arrived>,
    /// Whether the server reports the bytes of an upload with the times of its counts.
    is_reported: bool,
}

/// The part of a phase that a goodput is about, from the start of its load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Span {
    /// End of the ramp.
    pub(super) ramp: Duration,
    /// End of the phase.
    pub(super) end: Duration,
}

impl Default for Counts {
    fn default() -> Self {
        Self { down: vec![Arrived::default()], up: vec![Arrived::default()], is_reported: false }
    }
}

impl Counts {
    /// Reads what has arrived, and returns the rates since the last time.
    pub(super) fn read(&mut self, transferred: &Transferred) -> (f64, f64) {
        let latest = |counts: &[Arrived]| counts.last().copied().unwrap_or_default();
        let before = (latest(&self.down), latest(&self.up));
        let now = transferred.arrived();
        self.down.push(now.0);
        self.reported(transferred.take_reports());
        if !self.is_reported {
            self.up.push(now.1);
        }
        let rate = |before: Arrived, now: Arrived| rate(before, now).unwrap_or(0.0);
        (rate(before.0, now.0), rate(before.1, latest(&self.up)))
    }

    /// Takes reports of the server, perhaps late and several at once. A sample is as long as those of other counts.
    fn reported(&mut self, reports: Vec<Arrived>) {
        for report in reports {
            self.is_reported = true;
            if let [.., before, last] = &self.up[..]
                && last.at < before.at + APART
            {
                self.up.pop();
            }
            self.up.push(report);
        }
    }

    /// Takes what came after the last reading. A load that ran to its `end` had no more bytes after its last ones.
    pub(super) fn close(&mut self, transferred: &Transferred, end: Option<Duration>) {
        self.reported(transferred.take_reports());
        let up = transferred.arrived().1;
        // A server may count an upload for itself, and report it at the end.
        if !self.is_reported && self.up.iter().all(|count| count.bytes == 0) {
            self.up.push(up);
        }
        let Some(end) = end else { return };
        let own = [Some(&mut self.down), (!self.is_reported).then_some(&mut self.up)];
        for counts in own.into_iter().flatten() {
            if let Some(last) = counts.last().copied()
                && end > last.at + SAMPLING
            {
                counts.push(Arrived { at: end, ..last });
            }
        }
    }

    /// Whether the intervals of all rates are within `share` of the rate on either side.
    pub(super) fn are_enough(&self, span: Span, share: f64) -> bool {
        let both = [&self.down, &self.up].map(|counts| throughput(counts, span, 1));
        let known: Vec<Throughput> = both.into_iter().flatten().collect();
        !known.is_empty()
            && known.iter().all(
                |Throughput { goodput_bps: Estimate { value, high, .. }, ramp_included, samples, .. }| {
                    let after = samples.iter().filter(|(end_s, _)| *end_s > span.ramp.as_secs_f64()).count();
                    !ramp_included && after >= statistics::FEWEST && high - value <= share * value
                },
            )
    }
}

/// Payload rate between two counts, bit/s; `None` without time between them.
pub(super) fn rate(before: Arrived, now: Arrived) -> Option<f64> {
    let (bits, time_s) = part(before, now);
    (time_s > 0.0).then(|| bits / time_s)
}

/// Bits and seconds between two counts.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn part(before: Arrived, now: Arrived) -> (f64, f64) {
    let bits = now.bytes.saturating_sub(before.bytes) as f64 * 8.0;
    (bits, now.at.saturating_sub(before.at).as_secs_f64())
}

/// The throughput of a direction; `None` where no byte arrived.
pub(super) fn throughput(counts: &[Arrived], span: Span, streams: u32) -> Option<Throughput> {
    let counts = until(&distinct(counts), span.end);
    let bytes = counts.last()?.bytes;
    if bytes == 0 {
        return None;
    }
    let samples: Vec<(f64, f64)> =
        counts.windows(2).filter_map(|pair| Some((pair[1].at.as_secs_f64(), rate(pair[0], pair[1])?))).collect();
    let (goodput_bps, ramp_included) = goodput(&counts, span)?;
    Some(Throughput { bytes, streams, congestion: None, goodput_bps, ramp_included, samples })
}

/// Counts with new bytes, and the last one. One without new bytes adds nothing: the next one covers its time.
fn distinct(counts: &[Arrived]) -> Vec<Arrived> {
    let mut distinct = counts.to_vec();
    distinct.dedup_by_key(|count| count.bytes);
    if let (Some(last), Some(kept)) = (counts.last(), distinct.last())
        && last.at > kept.at + SAMPLING
    {
        distinct.push(*last);
    }
    distinct
}

/// Counts until the end of the phase: reports go on until the server has heard of it.
fn until(counts: &[Arrived], end: Duration) -> Vec<Arrived> {
    let within = counts.partition_point(|count| count.at <= end);
    let mut kept = counts[..within].to_vec();
    if let (Some(before), Some(after)) = (kept.last().copied(), counts.get(within)) {
        // The only count of a load is that of all of it.
        kept.push(if within > 1 { between(before, *after, end) } else { *after });
    }
    kept
}

/// The count at a time between two counts.
fn between(before: Arrived, after: Arrived, at: Duration) -> Arrived {
    let (passed, time) = (at.saturating_sub(before.at).as_nanos(), after.at.saturating_sub(before.at).as_nanos());
    let bytes = u128::from(after.bytes.saturating_sub(before.bytes)) * passed / time.max(1);
    Arrived { bytes: before.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)), at }
}

/// The rate after the ramp with the interval of the rates of its parts, and whether it is that of all bytes instead, as
/// the counts cover less than half of the time after the ramp.
fn goodput(counts: &[Arrived], Span { ramp, end }: Span) -> Option<(Estimate, bool)> {
    let covered = counts.last()?.at.saturating_sub(ramp);
    let ramp_included = covered.is_zero() || 2 * covered < end.saturating_sub(ramp);
    let during = counts.partition_point(|count| count.at <= ramp);
    let counted = match during.checked_sub(1) {
        Some(last) if !ramp_included => {
            let start = between(counts[last], counts[during], ramp);
            std::iter::once(start).chain(counts[during..].iter().copied()).collect()
        }
        _ => counts.to_vec(),
    };
    let parts: Vec<(f64, f64)> = counted.windows(2).map(|pair| part(pair[0], pair[1])).collect();
    let Estimate { value, low, high } = statistics::rate(&parts)?;
    Some((Estimate { value, low: low.max(0.0), high }, ramp_included))
}

#[cfg(test)]
mod tests;

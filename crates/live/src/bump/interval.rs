//! Hops in the interval between two moments.

use std::collections::BTreeMap;

use lastmile_queueing::DropReason;
use lastmile_queueing::line::grants::Counts;
use lastmile_units::{BitRate, Duration};
use serde::Serialize;

use super::report::{HopState, States};
use super::waits::WaitCounts;

/// A wait in a queue that is worth a look.
pub const NOTABLE: Duration = Duration::from_ms(1);

/// A hop in the interval between two moments.
#[derive(Clone, Copy)]
pub struct Interval<'a> {
    /// The length of the interval.
    pub seconds: f64,
    /// The hop at the beginning.
    pub before: &'a HopState,
    /// The hop at the end.
    pub now: &'a HopState,
}

/// The hops in the interval between `before` and `now`, those up and then those down. Without
/// `before` the interval is empty.
pub fn intervals<'a>(before: Option<&'a States>, now: &'a States) -> Vec<Interval<'a>> {
    let before = before.unwrap_or(now);
    let seconds = now.at.since(before.at).as_secs_f64();
    before.hops.iter().zip(&now.hops).map(|(before, now)| Interval { seconds, before, now }).collect()
}

/// The median, the 99th percentile and the maximum of waits in an interval, in seconds; `None` without any.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize)]
pub struct Waited {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
}

impl Waited {
    /// Of the waits since `before`, or of all.
    pub fn of(before: Option<&WaitCounts>, now: &WaitCounts) -> Self {
        let waits = before.map_or_else(|| now.clone(), |before| now.since(before));
        #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
        let quantile = |q: f64| (!waits.is_empty()).then(|| waits.value_at_quantile(q) as f64 / 1e9);
        Self { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1.0) }
    }
}

/// Requests and grants of a line in an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GrantRates {
    /// Requests in a second.
    pub requests: f64,
    /// Collided requests in a second.
    pub collisions: f64,
    /// Grants in a second.
    pub grants: f64,
    /// Bits of grants in a second that passed unused.
    pub unused_bps: f64,
}

/// Events in a second.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
pub fn per_second(before: u64, now: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
}

impl Interval<'_> {
    /// Bits on the wire in a second.
    pub fn rate_bps(&self) -> f64 {
        per_second(self.before.wire_bits, self.now.wire_bits, self.seconds)
    }

    /// Requests and grants, of a line that has them.
    pub fn grants(&self) -> Option<GrantRates> {
        let (before, now) = self.before.grants.as_ref().zip(self.now.grants.as_ref())?;
        let per_s = |of: fn(&Counts) -> u64| per_second(of(before), of(now), self.seconds);
        Some(GrantRates {
            requests: per_s(|counts| counts.requests),
            collisions: per_s(|counts| counts.collisions),
            grants: per_s(|counts| counts.grants),
            unused_bps: per_s(|counts| 8 * counts.unused),
        })
    }

    /// The backlog in bytes, and its time in seconds at the rate that a controller has given the shaper, or else at
    /// this rate on the wire.
    #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
    pub fn backlog(&self, rate_bps: Option<u64>) -> (f64, Option<f64>) {
        let bytes = self.now.queued.bytes.as_u64() as f64;
        let rate_bps = self.now.shaper_rate.map(BitRate::as_bps).or(rate_bps);
        (bytes, rate_bps.map(|rate| bytes * self.wire_per_byte() * 8.0 / rate as f64))
    }

    /// Bytes on the wire for one byte of IP: of the packets of the interval, without any of those so far.
    #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
    pub fn wire_per_byte(&self) -> f64 {
        let [before, now] =
            [&self.before.line, &self.now.line].map(|line| [line.wire_bytes.as_u64(), line.transmitted.bytes]);
        let lately = [0, 1].map(|index| now[index].saturating_sub(before[index]));
        let [wire, ip] = if lately[1] > 0 { lately } else { now };
        if ip > 0 { wire as f64 / ip as f64 } else { 1.0 }
    }

    /// Packets dropped in the interval for reasons that are `wanted`, by reason, without zeros.
    pub fn dropped(&self, wanted: impl Fn(DropReason) -> bool) -> BTreeMap<&'static str, u64> {
        let packets = |state: &HopState, reason: DropReason| state.line.dropped[reason.index()].packets;
        let reasons = DropReason::ALL.into_iter().filter(|reason| wanted(*reason));
        let counts = reasons
            .map(|reason| (reason.name(), packets(self.now, reason).saturating_sub(packets(self.before, reason))));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Packets dropped in the interval by reason, without those of ACK regulation and without zeros.
    pub fn lost(&self) -> BTreeMap<&'static str, u64> {
        self.dropped(|reason| !reason.is_ack_regulation())
    }

    /// Packets that the ports beside the hop have dropped, by reason: before the interval, and by its end.
    pub fn port_drops(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        self.before.port_drops.iter().zip(&self.now.port_drops).map(|((_, then), (name, now))| (*name, *then, *now))
    }

    /// True for a hop that holds packets or has dropped some.
    pub fn is_notable(&self) -> bool {
        self.now.queued.bytes.as_u64() > 0 || self.now.dropped_packets() > 0
    }

    /// True for a hop that has dropped packets, or let one wait for [`NOTABLE`], so far.
    pub fn has_mattered(&self) -> bool {
        Duration::from_ns(self.now.waited.max()) >= NOTABLE || self.now.dropped_packets() > 0
    }
}

#[cfg(test)]
mod tests {
    use lastmile_queueing::Backlog;
    use lastmile_queueing::line::{Count, Stats};
    use lastmile_units::{ByteCount, PacketCount, WireBytes};

    use super::*;

    /// 125 kB take a second at 1 Mbit/s, and four where a controller has given the shaper a quarter of it.
    #[test]
    fn the_backlog_as_time_is_at_the_rate_of_a_shaper_that_is_steered() {
        let queued = Backlog { bytes: ByteCount::new(125_000), packets: PacketCount::new(100) };
        let time = |shaper_rate, rate_bps| {
            let state = HopState { queued, shaper_rate, ..HopState::default() };
            Interval { seconds: 1.0, before: &state, now: &state }.backlog(rate_bps)
        };
        let quarter = BitRate::from_bps(250_000);
        assert_eq!(time(None, Some(1_000_000)), (125_000.0, Some(1.0)));
        assert_eq!(time(quarter, Some(1_000_000)), (125_000.0, Some(4.0)));
        assert_eq!((time(quarter, None).1, time(None, None).1), (Some(4.0), None));
    }

    /// An hour of full packets of 1500 bytes, 1696 each in ATM cells, and then ACKs of 40 bytes, 106 each. A backlog
    /// of 4000 bytes in such ACKs takes 84.8 ms at 1 Mbit/s.
    #[test]
    fn the_backlog_as_time_is_that_of_packets_such_as_those_of_the_interval() {
        let queued = Backlog { bytes: ByteCount::new(4000), packets: PacketCount::new(100) };
        let line = |full: u64, acks: u64| {
            let transmitted = Count { packets: full + acks, bytes: 1500 * full + 40 * acks };
            Stats { transmitted, wire_bytes: WireBytes::new(1696 * full + 106 * acks), ..Stats::default() }
        };
        let state = |full, acks| HopState { queued, line: line(full, acks), ..HopState::default() };
        let (start, before, now) = (state(0, 0), state(100_000, 0), state(100_000, 50));
        let ms = |before, now| {
            let hop = Interval { seconds: 1.0, before, now };
            (hop.backlog(Some(1_000_000)).1.unwrap() * 1e6).round() / 1e3
        };
        // Without packets in the interval as those so far, and without any as on a wire without encapsulation.
        assert_eq!((ms(&before, &now), ms(&before, &before), ms(&start, &start)), (84.8, 36.181, 32.0));
    }
}

//! Detects a standing queue at the far end of a line from arrivals at the near end alone.
//!
//! While packets are queued at the far end they arrive back to back: the gap between two arrivals
//! is the transmission time of the second. The line was idle for the rest of a longer gap. A queue
//! that empties now and then leaves idle time; a standing queue leaves none (the criterion of
//! CoDel, RFC 8289, section 3.2, seen from the other end of the wire).

use lastmile_linklayer::{LinkLayer, WireMeter};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio, Serialiser, WireBytes};

/// A bucket of idle time. Idle time fills it; elapsed time empties it, at the required share of
/// idle time.
///
/// Arrivals are work of the line, one packet after the other, and only the time between the end of
/// that work and the next packet is idle. Packets that arrive together, faster than the line could
/// carry them, thus use time that is still to come. Such bunches occur where the line is a token
/// bucket, where a modem or a driver delivers several packets at once, or where time stamps are
/// late. A bunch does not count as a queue, and the pause after it does not count as idle time.
#[derive(Clone, Debug)]
pub(super) struct Idleness {
    line: Serialiser,
    meter: WireMeter,
    required: Ratio,
    /// Transmission time of the largest packet: the line cannot be busy for longer with a packet
    /// that has not arrived.
    largest: Duration,
    level: Duration,
    full: Duration,
    /// Capacity of the bucket: `full`, and more after a drain that was given up.
    capacity: Duration,
    /// The end of the work that has arrived; the line's time is accounted for until then. `None`:
    /// before the first arrival.
    busy_until: Option<Instant>,
    /// Maximum of `busy_until` after the last arrival, so that a line faster than configured does not
    /// count as busy for long.
    max_lead: Duration,
}

impl Idleness {
    /// A full bucket, which lasts for `patience` without idle time.
    pub(super) fn new(
        rate: BitRate,
        link_layer: LinkLayer,
        required: Ratio,
        patience: Duration,
        largest: ByteCount,
    ) -> Self {
        let full = Duration::from_ps(required.of(patience.as_ps()));
        Self {
            line: Serialiser::new(rate),
            meter: WireMeter::new(link_layer),
            required,
            largest: rate.time_for(link_layer.on_wire(largest)),
            level: full,
            full,
            capacity: full,
            busy_until: None,
            max_lead: patience,
        }
    }

    /// Accounts for a packet that arrived at `at`; returns its size on the wire.
    pub(super) fn arrival(&mut self, at: Instant, size: ByteCount) -> WireBytes {
        let wire = self.meter.on_wire(size);
        let busy = self.line.advance(wire);
        let end = self.busy_until.map_or(at, |busy_until| {
            let end = busy_until.saturating_add(busy).min(at.saturating_add(self.max_lead)).max(at).max(busy_until);
            let span = end.since(busy_until);
            self.elapse(span, busy.min(span));
            end
        });
        self.busy_until = Some(end);
        wire
    }

    /// Accounts for the absence of arrivals until `now`, except for the time of a packet that may
    /// still be on the wire.
    pub(super) fn silence(&mut self, now: Instant) {
        let Some(busy_until) = self.busy_until else { return };
        let idle = now.since(busy_until).saturating_sub(self.largest);
        if !idle.is_zero() {
            self.elapse(idle, Duration::ZERO);
            self.busy_until = Some(busy_until.saturating_add(idle));
        }
    }

    fn elapse(&mut self, span: Duration, busy: Duration) {
        let owed = Duration::from_ps(self.required.of(span.as_ps()).saturating_add(busy.as_ps()));
        self.level =
            Duration::from_ps(self.level.as_ps().saturating_add(span.as_ps())).saturating_sub(owed).min(self.capacity);
    }

    /// No idle time is left: the far end has a standing queue.
    pub(super) fn is_empty(&self) -> bool {
        self.level.is_zero()
    }

    /// The idle time seen fills the bucket.
    pub(super) fn is_full(&self) -> bool {
        self.level >= self.full
    }

    /// Fills the bucket, and makes it last for `times` the patience.
    pub(super) fn refill(&mut self, times: u64) {
        self.capacity = self.full.saturating_mul(times);
        self.level = self.capacity;
    }
}

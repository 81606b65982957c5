//! Whether a line has a standing queue at its far end, judged from arrivals at the near end alone.
//!
//! While packets wait at the far end they come back to back: the gap between two arrivals is what the second takes on the wire.
//! What a gap has beyond that, the line was idle. A queue that empties now and then leaves idle time; a queue that stands leaves none
//! (the criterion of CoDel, RFC 8289, section 3.2, seen from the other end of the wire).

use lastmile_linklayer::{LinkLayer, WireMeter};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio, Serialiser, WireBytes};

/// A bucket of idle time: idle time fills it, time empties it at the share that is wanted.
///
/// What has come is work of the line, one packet after the other, and only what lies between the end of that work and the next packet
/// is idle. So packets that come together, faster than the line could carry them, take up time that is still to come: where the line
/// is a token bucket, where a modem or a driver hands over several at once, or where stamps are late, a bunch is neither taken
/// for a queue, nor is the pause after it taken for idle time.
#[derive(Clone, Debug)]
pub(super) struct Idleness {
    line: Serialiser,
    meter: WireMeter,
    wanted: Ratio,
    /// What the largest packet takes: no longer can a line be busy with something that has not come.
    largest: Duration,
    level: Duration,
    full: Duration,
    /// What the bucket holds at most: `full`, and more after a drain that came to nothing.
    most: Duration,
    /// Up to when the line's time is accounted for: the end of what has come. `None`: before the first arrival.
    until: Option<Instant>,
    /// How far that may lie ahead of the last arrival, so that a line which is faster than told is not taken for busy for long.
    ahead: Duration,
}

impl Idleness {
    /// A full bucket, which lasts for `patience` without idle time.
    pub(super) fn new(
        rate: BitRate,
        link_layer: LinkLayer,
        wanted: Ratio,
        patience: Duration,
        largest: ByteCount,
    ) -> Self {
        let full = Duration::from_ps(wanted.of(patience.as_ps()));
        Self {
            line: Serialiser::new(rate),
            meter: WireMeter::new(link_layer),
            wanted,
            largest: rate.time_for(link_layer.on_wire(largest)),
            level: full,
            full,
            most: full,
            until: None,
            ahead: patience,
        }
    }

    /// Takes note of a packet that came at `at`; returns what it took on the wire.
    pub(super) fn arrival(&mut self, at: Instant, size: ByteCount) -> WireBytes {
        let wire = self.meter.on_wire(size);
        let busy = self.line.advance(wire);
        let end = self.until.map_or(at, |until| {
            let end = until.saturating_add(busy).min(at.saturating_add(self.ahead)).max(at).max(until);
            let span = end.since(until);
            self.account(span, busy.min(span));
            end
        });
        self.until = Some(end);
        wire
    }

    /// Takes note that nothing more has come by `now`. What may still be on the wire is left out.
    pub(super) fn silence(&mut self, now: Instant) {
        let Some(until) = self.until else { return };
        let idle = now.since(until).saturating_sub(self.largest);
        if !idle.is_zero() {
            self.account(idle, Duration::ZERO);
            self.until = Some(until.saturating_add(idle));
        }
    }

    fn account(&mut self, span: Duration, busy: Duration) {
        let owed = Duration::from_ps(self.wanted.of(span.as_ps()).saturating_add(busy.as_ps()));
        self.level =
            Duration::from_ps(self.level.as_ps().saturating_add(span.as_ps())).saturating_sub(owed).min(self.most);
    }

    /// No idle time is left: a queue stands at the far end.
    pub(super) fn is_empty(&self) -> bool {
        self.level.is_zero()
    }

    /// As much idle time was seen as fills the bucket.
    pub(super) fn is_full(&self) -> bool {
        self.level >= self.full
    }

    /// A bucket that lasts for `times` the patience, and is full.
    pub(super) fn refill(&mut self, times: u64) {
        self.most = self.full.saturating_mul(times);
        self.level = self.most;
    }
}

//! The shaper of CAKE, in deficit mode: after a packet departs, the next may depart once the line would have carried
//! the first. No bucket, no burst.
//!
//! Behind the slow line, `ingress` charges dropped packets too: the line has carried them. Drops alone cannot stop the
//! queue: what is sent gets at least two thirds of the rate (Linux: `failsafe_next_packet`).

use lastmile_units::{BitRate, Duration, Instant, Serialiser, WireBytes};

/// The fate of a packet that is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Sent,
    Dropped,
}

/// A shaper.
#[derive(Debug)]
pub(super) struct Shaper {
    rate: Serialiser,
    /// Maximum lateness of a caller that does not cost rate.
    catch_up: Duration,
    /// The time at which the line would have carried all that was charged.
    next: Instant,
    /// The time at which a line of two thirds of the rate would have carried all that was sent.
    failsafe: Instant,
}

impl Shaper {
    pub(super) fn new(rate: BitRate, catch_up: Duration) -> Self {
        Self { rate: Serialiser::new(rate), catch_up, next: Instant::ZERO, failsafe: Instant::ZERO }
    }

    /// The time at which the next packet may depart.
    pub(super) fn ready(&self) -> Instant {
        self.next.min(self.failsafe)
    }

    /// A packet arrives at an empty queue: rate that was not used before is lost.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
            self.rate.restart();
        }
    }

    /// Changes the rate at `now`: charged bytes that the line has not carried yet take as long as they do at `rate`.
    pub(super) fn set_rate(&mut self, now: Instant, rate: BitRate) {
        let before = u128::from(self.rate.rate().as_bps());
        let left = u128::from(self.failsafe.since(now).as_ps()) * before / u128::from(rate.as_bps());
        let left = Duration::from_ps(u64::try_from(left).unwrap_or(u64::MAX));
        self.failsafe = self.failsafe.min(now).saturating_add(left);
        let left = self.rate.change_rate(rate, self.next.since(now));
        self.next = self.next.min(now).saturating_add(left);
    }

    /// Charges a packet.
    pub(super) fn charge(&mut self, now: Instant, wire: WireBytes, fate: Fate) {
        let earliest = Instant::from_ps(now.as_ps().saturating_sub(self.catch_up.as_ps()));
        if self.next < earliest {
            self.next = earliest;
            self.rate.restart();
        }
        let span = self.rate.advance(wire);
        self.next = self.next.saturating_add(span);
        if fate == Fate::Sent {
            self.failsafe = self.failsafe.max(earliest).saturating_add(span).saturating_add(span / 2);
        }
    }
}

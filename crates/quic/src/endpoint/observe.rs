//! The state that an endpoint reports.

use lastmile_tcp::{Limit, LimitedTime, RoundTrips};
use lastmile_units::{BitRate, Duration, Instant};

use super::Endpoint;
use crate::Stats;

/// Reports of the state. Octets are those of the stream, bytes those of packets.
impl Endpoint {
    /// This end may send application data.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.handshake.is_established()
    }

    /// Bytes of a connection ID.
    #[must_use]
    pub fn connection_id(&self) -> u8 {
        self.config.connection_id
    }

    /// The stream is finished in both directions.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.send.is_finished() && self.receive.is_finished()
    }

    /// The peer's part of the stream has arrived whole: time for the application to end its own.
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.receive.is_finished()
    }

    /// Octets handed to the application, in order.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.receive.read()
    }

    /// Octets that have arrived, in order or not.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.receive.arrived()
    }

    /// The octets from `start` to `end` have arrived, whatever is missing before them. An application with several
    /// streams keeps each in a range of octets of its own.
    #[must_use]
    pub fn has_received(&self, start: u64, end: u64) -> bool {
        self.receive.holds(start, end)
    }

    /// Octets of this end that the peer has acknowledged without a gap.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.send.acked()
    }

    /// Octets of this end that were sent at least once.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.send.sent()
    }

    /// Octets that the application has offered and that were never sent.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.send.offered() - self.send.sent()
    }

    /// Congestion window in bytes.
    #[must_use]
    pub fn cwnd_bytes(&self) -> u32 {
        self.controller.window()
    }

    /// Slow start threshold in bytes; `None` before the first loss.
    #[must_use]
    pub fn ssthresh_bytes(&self) -> Option<u32> {
        self.controller.threshold()
    }

    /// Bytes of packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.controller.in_flight()
    }

    /// The rate at which packets are paced; `None` before there is one.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<BitRate> {
        self.controller.pacing_rate().and_then(|rate| BitRate::from_bps(rate.saturating_mul(8)))
    }

    /// The phase of a congestion control that models the path.
    #[must_use]
    pub fn model_phase(&self) -> Option<&'static str> {
        self.controller.phase()
    }

    /// Smoothed round-trip time, once there is one.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// The round trips of the octets of delivered packets, headers included; those in flight do not count.
    #[must_use]
    pub fn round_trips(&self) -> RoundTrips {
        self.round_trips
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The reason why this end does not send more; `None` before it opens and once its stream is delivered.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.limits.current()
    }

    /// The time for which each reason limited this end, up to `now`.
    #[must_use]
    pub fn limited_by(&self, now: Instant) -> LimitedTime {
        self.limits.until(now)
    }
}

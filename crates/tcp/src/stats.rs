//! The counters of an endpoint, and the account of the reasons that limit its sender.

use lastmile_units::{Duration, Instant};

/// The counters of an endpoint. Bytes are payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Segments sent with payload, retransmissions included.
    pub data_packets: u64,
    /// Payload bytes sent, retransmissions included.
    pub data_bytes_sent: u64,
    /// Retransmitted payload bytes. Window probes do not count, nor do segments that begin with the byte of a probe.
    pub retransmitted_bytes: u64,
    /// Pure acknowledgements sent: no payload, no flag but ACK, ECE and CWR.
    pub acks_sent: u64,
    /// Segments received without payload and without SYN, FIN or RST.
    pub acks_received: u64,
    /// Segments received with payload.
    pub data_received: u64,
    /// Retransmitted segments: they begin with payload or a FIN sent before.
    pub retransmissions: u32,
    /// Expiries of the retransmission timer, those of SYN and FIN included.
    pub timeouts: u32,
    /// Entries into fast retransmit.
    pub fast_retransmits: u32,
    /// Received duplicate acknowledgements (RFC 5681, section 2; with SACK in use as RFC 6675, section 2).
    pub dup_acks_received: u32,
    /// Received data segments that began past the next expected byte.
    pub out_of_order_received: u32,
    /// Received data segments without new octets.
    pub duplicates_received: u32,
    /// Zero-window probes sent.
    pub window_probes: u32,
    /// Window reductions for ECN echoes (RFC 3168).
    pub ecn_reductions: u32,
}

/// The reason why a sender does not send more at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Limit {
    /// The congestion window is full.
    CongestionWindow,
    /// The receiver's window is full, and is no larger than the congestion window.
    ReceiveWindow,
    /// The send buffer is full of octets that are sent and not acknowledged.
    SendBuffer,
    /// The application has offered nothing more.
    Application,
    /// The windows admit a segment, whose time at the pacing rate has not come.
    Pacing,
    /// A SYN, a FIN or a retransmission after a timeout is unanswered, and no segment may be sent.
    AwaitingAck,
}

/// Sums over a connection. Their growth between two points in time has the mean round trips of octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundTrips {
    /// Octets that were sent; SYN and FIN count.
    pub sent: u64,
    /// Octets that the peer has acknowledged.
    pub acknowledged: u64,
    /// Microseconds from the transmission of each acknowledged octet to its acknowledgement, those that were
    /// retransmitted with the smoothed round trip; zero by the timeout of RFC 6298, which measures one octet a round
    /// trip.
    pub measured_us: u64,
    /// Microseconds for which octets were in flight, from their first transmission to the cumulative acknowledgement.
    /// Wraps: only differences have a meaning.
    pub in_flight_us: u64,
}

impl RoundTrips {
    /// `octets` are acknowledged after `trip`, and no others were in flight.
    pub fn add(&mut self, octets: u64, trip: Duration) {
        self.sent += octets;
        self.acknowledged += octets;
        let us = octets.saturating_mul(trip.as_us());
        self.measured_us = self.measured_us.saturating_add(us);
        self.in_flight_us = self.in_flight_us.wrapping_add(us);
    }

    /// The growth since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(before.sent),
            acknowledged: self.acknowledged.saturating_sub(before.acknowledged),
            measured_us: self.measured_us.saturating_sub(before.measured_us),
            in_flight_us: self.in_flight_us.wrapping_sub(before.in_flight_us),
        }
    }

    /// The mean round trip of the acknowledged octets in seconds; `None` without one or where it was not measured.
    #[must_use]
    pub fn measured_s(self) -> Option<f64> {
        mean_s(self.measured_us, 2 * self.acknowledged)
    }

    /// The mean time in seconds for which an octet is in flight (Little's law: half of the octets that are in flight at
    /// one of the ends count); `None` without one.
    #[must_use]
    pub fn in_flight_s(self) -> Option<f64> {
        mean_s(self.in_flight_us, self.sent + self.acknowledged)
    }

    /// The sum over two spans.
    #[must_use]
    pub fn plus(self, next: Self) -> Self {
        Self {
            sent: self.sent + next.sent,
            acknowledged: self.acknowledged + next.acknowledged,
            measured_us: self.measured_us.saturating_add(next.measured_us),
            in_flight_us: self.in_flight_us.wrapping_add(next.in_flight_us),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn mean_s(sum_us: u64, twice: u64) -> Option<f64> {
    (sum_us > 0 && twice > 0).then(|| sum_us as f64 / (twice as f64 / 2.0) / 1e6)
}

/// The time for which each reason limited a sender, from the first SYN until its FIN is acknowledged or the
/// connection fails.
///
/// Each time the endpoint has nothing more to send
/// ([`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit) returns `None`) its reason holds until the
/// next such time. If the owner leaves segments unsent, the earlier reason holds on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitedTime {
    /// See [`Limit::CongestionWindow`].
    pub congestion_window: Duration,
    /// See [`Limit::ReceiveWindow`].
    pub receive_window: Duration,
    /// See [`Limit::SendBuffer`].
    pub send_buffer: Duration,
    /// See [`Limit::Application`].
    pub application: Duration,
    /// See [`Limit::Pacing`].
    pub pacing: Duration,
    /// See [`Limit::AwaitingAck`].
    pub awaiting_ack: Duration,
}

impl LimitedTime {
    fn add(&mut self, limit: Limit, span: Duration) {
        *match limit {
            Limit::CongestionWindow => &mut self.congestion_window,
            Limit::ReceiveWindow => &mut self.receive_window,
            Limit::SendBuffer => &mut self.send_buffer,
            Limit::Application => &mut self.application,
            Limit::Pacing => &mut self.pacing,
            Limit::AwaitingAck => &mut self.awaiting_ack,
        } += span;
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            congestion_window: self.congestion_window + other.congestion_window,
            receive_window: self.receive_window + other.receive_window,
            send_buffer: self.send_buffer + other.send_buffer,
            application: self.application + other.application,
            pacing: self.pacing + other.pacing,
            awaiting_ack: self.awaiting_ack + other.awaiting_ack,
        }
    }

    /// The sum over all reasons: the lifetime of the sender.
    #[must_use]
    pub fn total(&self) -> Duration {
        let windows = self.congestion_window + self.receive_window + self.send_buffer;
        windows + self.application + self.pacing + self.awaiting_ack
    }
}

/// The part of [`Stats`] that each sending half counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendStats {
    pub(crate) acks_received: u64,
    pub(crate) retransmissions: u32,
    pub(crate) timeouts: u32,
}

/// The part of [`Stats`] that a sender of data counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DataStats {
    pub(crate) data_packets: u64,
    pub(crate) data_bytes_sent: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) fast_retransmits: u32,
    pub(crate) dup_acks_received: u32,
    pub(crate) window_probes: u32,
    pub(crate) ecn_reductions: u32,
}

/// The part of [`Stats`] that a receiver counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReceiveStats {
    pub(crate) data_received: u64,
    pub(crate) acks_sent: u64,
    pub(crate) out_of_order: u32,
    pub(crate) duplicates: u32,
}

/// The running account: one comparison for each event, an addition when the reason changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitClock {
    past: LimitedTime,
    /// When `current` began.
    since: Instant,
    current: Option<Limit>,
}

impl LimitClock {
    /// From `now` on this reason holds; `None`: no reason is counted.
    #[inline]
    pub fn set(&mut self, now: Instant, limit: Option<Limit>) {
        if limit != self.current {
            self.past = self.until(now);
            (self.since, self.current) = (now, limit);
        }
    }

    /// The reason that holds.
    #[must_use]
    pub fn current(&self) -> Option<Limit> {
        self.current
    }

    /// The account up to `now`.
    #[must_use]
    pub fn until(&self, now: Instant) -> LimitedTime {
        let mut total = self.past;
        if let Some(current) = self.current {
            total.add(current, now.since(self.since));
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_gets_the_time_until_the_next() {
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let mut clock = LimitClock::default();
        clock.set(at(10), Some(Limit::AwaitingAck));
        clock.set(at(30), Some(Limit::CongestionWindow));
        clock.set(at(50), Some(Limit::CongestionWindow));
        clock.set(at(60), Some(Limit::ReceiveWindow));
        let so_far = clock.until(at(65));
        assert_eq!(so_far.awaiting_ack, Duration::from_ms(20));
        assert_eq!(so_far.congestion_window, Duration::from_ms(30));
        assert_eq!(so_far.receive_window, Duration::from_ms(5));
        clock.set(at(70), None);
        assert_eq!(clock.until(at(500)).total(), Duration::from_ms(60));
    }
}

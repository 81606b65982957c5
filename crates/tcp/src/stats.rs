//! Counters of an endpoint, and the account of what held its sender back.

use lastmile_units::{Duration, Instant};

use crate::aside::Aside;

/// What an endpoint counted since it was made. Bytes are payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Segments sent with payload, those sent again included.
    pub data_packets: u64,
    /// Payload bytes sent, those sent again included.
    pub data_bytes_sent: u64,
    /// Payload bytes that were sent before. A window probe is none, nor is a segment that begins with its byte.
    pub retransmitted_bytes: u64,
    /// Pure acknowledgements sent: no payload, no flag but ACK, ECE and CWR.
    pub acks_sent: u64,
    /// Segments received without payload and without SYN, FIN or RST.
    pub acks_received: u64,
    /// Segments received with payload.
    pub data_received: u64,
    /// Segments sent that began with payload or a FIN sent before.
    pub retransmissions: u32,
    /// Expiries of the retransmission timer, those of SYN and FIN included.
    pub timeouts: u32,
    /// Losses that duplicate acknowledgements told: entries into fast retransmit.
    pub fast_retransmits: u32,
    /// Received duplicate acknowledgements (RFC 5681, section 2; with SACK in use as RFC 6675, section 2).
    pub dup_acks_received: u32,
    /// Received data segments that began past the next expected byte.
    pub out_of_order_received: u32,
    /// Received data segments that held nothing new.
    pub duplicates_received: u32,
    /// Zero-window probes sent.
    pub window_probes: u32,
    /// Window reductions for ECN echoes (RFC 3168).
    pub ecn_reductions: u32,
}

/// What keeps a sender from sending more at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Limit {
    /// The congestion window is full.
    CongestionWindow,
    /// The receiver's window is full, and is no larger than the congestion window.
    ReceiveWindow,
    /// The application has offered nothing more.
    Application,
    /// Nothing may be sent whatever the windows say: a SYN or FIN is unanswered, or a retransmission after a timeout
    /// is.
    AwaitingAck,
}

/// How long a sender was limited by what, from the first SYN until its FIN is acknowledged or the connection fails.
///
/// Each time the endpoint has nothing more to send ([`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit) says
/// `None`) the reason holds until the next such time. A sender that its owner leaves with segments to send keeps the
/// reason before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitedTime {
    /// See [`Limit::CongestionWindow`].
    pub congestion_window: Duration,
    /// See [`Limit::ReceiveWindow`].
    pub receive_window: Duration,
    /// See [`Limit::Application`].
    pub application: Duration,
    /// See [`Limit::AwaitingAck`].
    pub awaiting_ack: Duration,
}

impl LimitedTime {
    fn add(&mut self, limit: Limit, span: Duration) {
        *match limit {
            Limit::CongestionWindow => &mut self.congestion_window,
            Limit::ReceiveWindow => &mut self.receive_window,
            Limit::Application => &mut self.application,
            Limit::AwaitingAck => &mut self.awaiting_ack,
        } += span;
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            congestion_window: self.congestion_window + other.congestion_window,
            receive_window: self.receive_window + other.receive_window,
            application: self.application + other.application,
            awaiting_ack: self.awaiting_ack + other.awaiting_ack,
        }
    }

    /// All together: the life of the sender.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.congestion_window + self.receive_window + self.application + self.awaiting_ack
    }
}

/// What a sender counts of [`Stats`] as it goes. What few count is in [`Aside`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SendStats {
    pub(crate) data_bytes_sent: u64,
    pub(crate) retransmitted_bytes: u64,
    /// The low 32 of 48 bits, enough for 2^48 packets, of which no run comes to an end; the others are in [`Aside`].
    data_packets: u32,
    acks_received: u32,
    pub(crate) retransmissions: u32,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) dup_acks_received: u32,
}

impl SendStats {
    /// Counts a segment with payload that goes out.
    #[inline]
    pub(crate) fn count_data(&mut self, aside: &mut Aside) {
        self.data_packets = self.data_packets.wrapping_add(1);
        if self.data_packets == 0 {
            aside.rare().data_packets += 1;
        }
    }

    /// Counts a segment that came without payload.
    #[inline]
    pub(crate) fn count_ack(&mut self, aside: &mut Aside) {
        self.acks_received = self.acks_received.wrapping_add(1);
        if self.acks_received == 0 {
            aside.rare().acks_received += 1;
        }
    }

    /// Segments sent with payload.
    pub(crate) fn data_packets(&self, aside: &Aside) -> u64 {
        aside.get().map_or(0, |rare| u64::from(rare.data_packets)) << 32 | u64::from(self.data_packets)
    }

    /// Segments received without payload.
    pub(crate) fn acks_received(&self, aside: &Aside) -> u64 {
        aside.get().map_or(0, |rare| u64::from(rare.acks_received)) << 32 | u64::from(self.acks_received)
    }

    /// As if so many segments had come without payload.
    pub(crate) fn set_acks_received(&mut self, count: u16) {
        self.acks_received = u32::from(count);
    }
}

/// The running account: one comparison for each event, an addition when the reason changes. The reason itself is kept
/// by the owner, which has room for a byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LimitClock {
    past: LimitedTime,
    since: Instant,
}

impl LimitClock {
    pub(crate) fn new() -> Self {
        Self { past: LimitedTime::default(), since: Instant::ZERO }
    }

    /// An account that begins.
    pub(crate) fn since(since: Instant) -> Self {
        Self { past: LimitedTime::default(), since }
    }

    /// The account of a sender that awaited an acknowledgement between these times.
    pub(crate) fn since_awaited(opened: Instant, established: Instant) -> Self {
        let past = LimitedTime { awaiting_ack: established.since(opened), ..LimitedTime::default() };
        Self { past, since: established }
    }

    #[inline]
    pub(crate) fn set(&mut self, now: Instant, current: &mut Option<Limit>, limit: Option<Limit>) {
        if limit != *current {
            self.change(now, *current);
            *current = limit;
        }
    }

    fn change(&mut self, now: Instant, current: Option<Limit>) {
        if let Some(current) = current {
            self.past.add(current, now.since(self.since));
        }
        self.since = now;
    }

    /// The point up to which the account is settled.
    pub(crate) fn settled(&self) -> Instant {
        self.since
    }

    pub(crate) fn until(&self, now: Instant, current: Option<Limit>) -> LimitedTime {
        let mut total = self.past;
        if let Some(current) = current {
            total.add(current, now.since(self.since));
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_beyond_32_bits() {
        let mut stats = SendStats { data_packets: u32::MAX, acks_received: u32::MAX - 1, ..SendStats::default() };
        let mut aside = Aside::default();
        stats.count_data(&mut aside);
        stats.count_ack(&mut aside);
        stats.count_ack(&mut aside);
        stats.count_ack(&mut aside);
        assert_eq!((stats.data_packets(&aside), stats.acks_received(&aside)), (1 << 32, (1 << 32) + 1));
    }

    #[test]
    fn each_reason_gets_the_time_until_the_next() {
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let (mut clock, mut current) = (LimitClock::new(), None);
        clock.set(at(10), &mut current, Some(Limit::AwaitingAck));
        clock.set(at(30), &mut current, Some(Limit::CongestionWindow));
        clock.set(at(50), &mut current, Some(Limit::CongestionWindow));
        clock.set(at(60), &mut current, Some(Limit::ReceiveWindow));
        let so_far = clock.until(at(65), current);
        assert_eq!(so_far.awaiting_ack, Duration::from_ms(20));
        assert_eq!(so_far.congestion_window, Duration::from_ms(30));
        assert_eq!(so_far.receive_window, Duration::from_ms(5));
        clock.set(at(70), &mut current, None);
        assert_eq!(clock.until(at(500), current).total(), Duration::from_ms(60));
    }
}

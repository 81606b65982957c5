//! The state that an endpoint reports.

use lastmile_packet::FlowId;
use lastmile_units::{BitRate, Duration, Instant};

use super::{Endpoint, State};
use crate::config::MAX_WINDOW;
use crate::{Limit, LimitedTime, RoundTrips, Stats};

/// Reports of the state. Bytes are payload bytes.
impl Endpoint {
    /// The state of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The handshake has succeeded and the connection has not ended.
    #[must_use]
    pub fn is_established(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// No connection exists, before or after one: only resets are sent, and no timer runs.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The connection is over for the application: closed or in TIME-WAIT.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::TimeWait) || (self.is_closed() && (self.snd.is_opened() || self.failed))
    }

    /// The connection was reset, or given up after too many retransmissions.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The peer has closed and all its data have arrived: time for the application to close too.
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.rcv.is_finished()
    }

    /// Bytes handed to the application, in order.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.rcv.delivered()
    }

    /// Bytes received in order, read by the application or not.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.rcv.received()
    }

    /// Bytes that have arrived, in order or not.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.rcv.arrived()
    }

    /// Bytes of this end that the peer has acknowledged.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.snd.acked()
    }

    /// Bytes of this end that were sent at least once.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.snd.sent()
    }

    /// Bytes that the application has offered and that were never sent.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.snd.unsent()
    }

    /// Congestion window.
    #[must_use]
    pub fn cwnd_bytes(&self) -> u32 {
        self.snd.congestion(&self.config).cwnd()
    }

    /// Slow start threshold; `None` while it is the largest window, as at the start (RFC 5681, section 3.1).
    #[must_use]
    pub fn ssthresh_bytes(&self) -> Option<u32> {
        Some(self.snd.congestion(&self.config).ssthresh()).filter(|bytes| *bytes < MAX_WINDOW)
    }

    /// The rate at which segments are paced, of their payload; `None` without pacing.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<BitRate> {
        self.snd.pacing_rate().and_then(|rate| BitRate::from_bps(rate.octets_per_s().saturating_mul(8)))
    }

    /// The phase of a congestion control that models the path: `startup`, `drain`, `probe_bw`, `probe_rtt`. `None` for
    /// other variants.
    #[must_use]
    pub fn model_phase(&self) -> Option<&'static str> {
        self.snd.congestion(&self.config).phase()
    }

    /// Smoothed round-trip time, once there is one.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.snd.srtt()
    }

    /// Retransmission timeout, doublings included.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.snd.rto()
    }

    /// Octets in the network by the sender's estimate: the pipe of RFC 6675 while SACK decides, else those
    /// sent beyond the cumulative acknowledgement or since the sender went back there. A FIN counts as one.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.snd.in_flight()
    }

    /// Octets that the receiver's window still admits beyond all that was sent.
    #[must_use]
    pub fn window_left(&self) -> u64 {
        self.snd.window_left()
    }

    /// The receiver's window: octets that it admits from the first that is not acknowledged on.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.snd.peer_window()
    }

    /// The round trips of the octets that the peer has acknowledged.
    #[must_use]
    pub fn round_trips(&self, now: Instant) -> RoundTrips {
        self.snd.round_trips(now)
    }

    /// Payload of this end's full segments, once agreed.
    #[must_use]
    pub fn mss(&self) -> u16 {
        self.snd.mss()
    }

    /// Ranges of bytes that wait out of order.
    #[must_use]
    pub fn gaps(&self) -> usize {
        self.rcv.gaps()
    }

    /// The flow that this endpoint's segments carry.
    #[must_use]
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (sent, data, received) = (self.snd.stats(), self.snd.data_stats(), self.rcv.stats());
        Stats {
            data_packets: data.data_packets,
            data_bytes_sent: data.data_bytes_sent,
            retransmitted_bytes: data.retransmitted_bytes,
            acks_sent: received.acks_sent,
            acks_received: sent.acks_received,
            data_received: received.data_received,
            retransmissions: sent.retransmissions,
            timeouts: sent.timeouts,
            fast_retransmits: data.fast_retransmits,
            dup_acks_received: data.dup_acks_received,
            out_of_order_received: received.out_of_order,
            duplicates_received: received.duplicates,
            window_probes: data.window_probes,
            ecn_reductions: data.ecn_reductions,
        }
    }

    /// The reason why the sender does not send more; `None` before it opens and after its FIN is acknowledged.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.snd.limit()
    }

    /// The time for which each reason limited the sender, up to `now`.
    #[must_use]
    pub fn limited_by(&self, now: Instant) -> LimitedTime {
        self.snd.limited_by(now)
    }
}

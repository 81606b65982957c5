//! What an endpoint shows of itself.

use lastmile_packet::FlowId;
use lastmile_units::{Duration, Instant};

use crate::endpoint::{Endpoint, State};
use crate::flags::Flag;
use crate::sender::Sender;
use crate::sending::Sending;
use crate::{Limit, LimitedTime, Stats};

/// What the endpoint shows. Bytes are payload bytes.
impl Endpoint {
    /// Reads a word from each part of what is here and folds them together. An owner of very many endpoints calls this a
    /// little before it hands a segment in, so that memory fetches all of it at once.
    #[must_use]
    #[inline]
    pub fn touch(&self) -> u64 {
        self.rcv.next ^ u64::from(self.rcv.forced) ^ u64::from(self.ip_id) ^ u64::from(self.flow.index())
    }

    /// The same for what is a pointer away, a little later, when the pointers are here.
    #[must_use]
    #[inline]
    pub fn touch_further(&self) -> u64 {
        let sender = match &self.snd {
            Sending::Active(snd) => snd.touch(),
            _ => 0,
        };
        sender ^ self.rcv.reassembly.as_ref().map_or(0, |held| held.touch())
    }

    /// The state of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Data may flow, or could and are done: the handshake has succeeded and the connection has not ended.
    #[must_use]
    pub fn is_established(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// No connection, before or after: nothing will be sent but resets, no timer runs.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The connection is over for the application: closed or in TIME-WAIT.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::TimeWait) || (self.is_closed() && self.see(|snd| snd.max > 0 || snd.failed))
    }

    /// The connection was reset, or given up after too many retransmissions.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.see(|snd| snd.failed)
    }

    /// The peer has closed and all its data have arrived: time for the application to close too.
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.rcv.flags.has(Flag::Finished)
    }

    /// Bytes handed to the application, in order.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.received() - u64::from(self.rcv.unread())
    }

    /// Bytes received in order, read by the application or not.
    #[must_use]
    pub fn received(&self) -> u64 {
        (self.rcv.next - u64::from(self.rcv.flags.has(Flag::Finished))).saturating_sub(1)
    }

    /// Bytes of this end that the peer has acknowledged.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.see(|snd| snd.una.min(snd.end).saturating_sub(1))
    }

    /// Bytes of this end that were sent at least once.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.see(|snd| snd.max.min(snd.end).saturating_sub(1))
    }

    /// Bytes that the application has offered and that were never sent.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.see(|snd| snd.end.saturating_sub(snd.max.max(1)))
    }

    /// Congestion window.
    #[must_use]
    pub fn cwnd_bytes(&self) -> u32 {
        self.see(|snd| snd.congestion.cwnd())
    }

    /// Slow start threshold; 1 GiB where nothing has set it.
    #[must_use]
    pub fn ssthresh_bytes(&self) -> u32 {
        self.see(|snd| snd.congestion.ssthresh())
    }

    /// Smoothed round-trip time, once there is one.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.see(|snd| snd.rtt.srtt())
    }

    /// Retransmission timeout, doublings included.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.see(|snd| snd.rtt.rto())
    }

    /// Octets that the sender takes to be in the network: the pipe of RFC 6675 while SACK decides, else what was sent
    /// since the cumulative acknowledgement or since it went back there. A FIN counts as one.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.see(Sender::in_flight)
    }

    /// Octets that the receiver's window still admits beyond all that was sent.
    #[must_use]
    pub fn window_left(&self) -> u64 {
        self.see(|snd| snd.edge().saturating_sub(snd.max))
    }

    /// Payload of this end's full segments, once agreed.
    #[must_use]
    pub fn mss(&self) -> u16 {
        self.see(|snd| snd.mss)
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

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (data_received, acks_sent) = self.rcv.counts();
        let (out_of_order_received, duplicates_received) = self.rcv.odd_counts();
        self.see(|Sender { stats: sent, aside, .. }| Stats {
            data_packets: sent.data_packets(aside),
            data_bytes_sent: sent.data_bytes_sent,
            retransmitted_bytes: sent.retransmitted_bytes,
            acks_sent,
            acks_received: sent.acks_received(aside),
            data_received,
            retransmissions: sent.retransmissions,
            timeouts: sent.timeouts,
            fast_retransmits: sent.fast_retransmits,
            dup_acks_received: sent.dup_acks_received,
            out_of_order_received,
            duplicates_received,
            window_probes: aside.get().map_or(0, |rare| rare.window_probes),
            ecn_reductions: aside.get().map_or(0, |rare| rare.ecn_reductions),
        })
    }

    /// What keeps the sender from sending more; `None` before it opens and after its FIN is acknowledged.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.see(|snd| snd.limit)
    }

    /// How long the sender was limited by what, up to `now`.
    #[must_use]
    pub fn limited_by(&self, now: Instant) -> LimitedTime {
        self.see(|snd| snd.limited_by(now))
    }
}

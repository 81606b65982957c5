//! The SYNs of a direction, and packets of earlier connections on the same ports.

use lastmile_packet::{Meta, SeqNumber, TcpFlags};
use lastmile_units::Instant;

use super::Half;
use super::state::{Opening, Stream};
use crate::outstanding::Outstanding;

impl Half {
    /// Follows the handshake. True for the SYN with an ACK that answers the SYN of the other side, where both have
    /// opened the connection (RFC 9293, section 3.5, figure 8): it repeats this side's SYN, and is no retransmission.
    pub(super) fn open(&mut self, now: Instant, packet: &Meta) -> bool {
        let (syn, ack) = (packet.flags.contains(TcpFlags::SYN), packet.flags.contains(TcpFlags::ACK));
        if syn && ack && self.times.last_ack.is_none() && self.is_another(packet) {
            // SYN cookies have a number for each answer. Nothing of the earlier one is acknowledged.
            self.stream = Stream { opening: self.stream.opening, ..Stream::default() };
            self.sent = Outstanding::default();
        }
        if syn && !ack {
            self.stream.opening = Opening::Unanswered;
        } else if self.stream.opening == Opening::Unanswered && ack {
            self.account(now, None);
            self.stream.opening = Opening::Answered(now);
            self.limit = Some(self.limit_now());
            return syn && self.initial() == Some(packet.seq);
        }
        false
    }

    /// True while this side waits for the answer to its SYN: SYN-SENT.
    pub(crate) fn is_connecting(&self) -> bool {
        self.stream.opening == Opening::Unanswered && self.stream.is_syn(self.stream.una)
    }

    /// True if packets of this direction or ACKs of them were captured that have sequence numbers.
    pub(crate) fn has_begun(&self) -> bool {
        self.stream.base.is_some()
    }

    /// True for an ACK of an earlier connection on the same ports, which a side that waits for the answer to its SYN
    /// discards (RFC 9293, section 3.10.7.3).
    pub(crate) fn discards(&self, packet: &Meta) -> bool {
        let has_ack = packet.flags.contains(TcpFlags::ACK) && !packet.flags.contains(TcpFlags::RST);
        has_ack && self.is_connecting() && !self.has_sent(packet.ack)
    }

    /// True for the RST by which it answers such an ACK, whose number it has.
    pub(crate) fn resets_an_earlier(&self, packet: &Meta) -> bool {
        let is_answer = packet.flags.contains(TcpFlags::RST) && !packet.flags.contains(TcpFlags::ACK);
        is_answer && self.is_connecting() && !self.has_sent(packet.seq)
    }

    /// True for the SYN-ACK of another connection than that of the packets so far.
    pub(crate) fn is_left_by(&self, syn_ack: &Meta) -> bool {
        let is_used = self.out.volume.data_packets > 0 || self.stream.fin.is_some() || self.times.last_ack.is_some();
        is_used && self.is_another(syn_ack)
    }

    /// True for a SYN of another sequence number. Without a captured SYN, one below the first number may be late.
    fn is_another(&self, syn: &Meta) -> bool {
        let offset = self.stream.base.map(|base| self.offset(base, 0, syn.seq));
        offset.is_some_and(|offset| if self.stream.origin == 1 { offset != 0 } else { offset > 0 })
    }

    /// True for a number above the SYN, up to the end of what was sent.
    fn has_sent(&self, number: SeqNumber) -> bool {
        let offset = self.stream.base.map(|base| self.offset(base, self.stream.una, number));
        offset.is_some_and(|offset| (1..=self.stream.next).contains(&offset))
    }
}

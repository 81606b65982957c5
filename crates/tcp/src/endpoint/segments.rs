//! The segments of an established connection: data and acknowledgements, with their options; and resets.
//!
//! Published: RFC 9293, section 3.1; RFC 7323 (timestamps), RFC 2018 (SACK), RFC 3168, section 6.1 (ECN).
//! Differs: nothing.
//! Cost: a copy of a prepared header, and the options where data are out of order or timestamps are in use.

use lastmile_packet::{Mark, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_units::Instant;

use super::{Endpoint, State};
use crate::sender::Plan;

/// A reset: its sequence number, and its acknowledgement number if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reset {
    pub(super) seq: SeqNumber,
    pub(super) ack: Option<SeqNumber>,
}

impl Endpoint {
    #[inline]
    pub(super) fn data_segment(&mut self, now: Instant, plan: Plan) -> Meta {
        let info = self.snd.describe(&self.config, plan, self.ecn);
        if info.len > 0 {
            self.rcv.acks_mut().on_data_sent(now, &self.config);
        }
        let mut flags = TcpFlags::ACK;
        if info.push {
            flags = flags.with(TcpFlags::PSH);
        }
        if info.fin {
            flags = flags.with(TcpFlags::FIN);
            self.on_fin_sent();
        }
        if info.cwr {
            flags = flags.with(TcpFlags::CWR);
        }
        let mut segment = self.segment(now, self.snd.wire(plan.start), flags, info.len);
        if plan.again {
            segment.mark.set_retransmission();
        }
        if info.ecn_capable {
            segment.traffic_class |= 2;
        }
        segment
    }

    #[cold]
    fn on_fin_sent(&mut self) {
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
    }

    #[inline]
    pub(super) fn acknowledgement(&mut self, now: Instant) -> Meta {
        self.rcv.on_pure_ack_sent();
        self.segment(now, self.snd.wire_max(), TcpFlags::ACK, 0)
    }

    #[inline]
    fn segment(&mut self, now: Instant, seq: SeqNumber, flags: TcpFlags, len: u16) -> Meta {
        let (ack, window) = self.rcv.take_acknowledgement(&self.config);
        let flags = if self.rcv.echoes_congestion() { flags.with(TcpFlags::ECE) } else { flags };
        let mut segment = self.bare_segment(seq, ack, flags, window, len);
        if self.rcv.has_options() {
            let options = self.rcv.options(self.config.timestamp(now));
            segment.set_options(options);
            segment.header_len += options.header_bytes();
            segment.ip_len += u16::from(options.header_bytes());
        }
        segment
    }

    /// The reset that is due, if any.
    pub(super) fn reset_segment(&mut self) -> Option<Meta> {
        let Reset { seq, ack } = self.reset.take()?;
        let flags = if ack.is_some() { TcpFlags::RST.with(TcpFlags::ACK) } else { TcpFlags::RST };
        Some(self.bare_segment(seq, ack.unwrap_or_default(), flags, 0, 0))
    }

    /// A segment without options.
    #[inline]
    pub(super) fn bare_segment(
        &mut self,
        seq: SeqNumber,
        ack: SeqNumber,
        flags: TcpFlags,
        window: u16,
        len: u16,
    ) -> Meta {
        let mut mark = Mark::default();
        let mut header_len = 40;
        if self.config.ipv6 {
            mark.set_ipv6();
            header_len = 60;
        }
        let ip_id = self.ip_id;
        self.ip_id = ip_id.wrapping_add(1);
        Meta {
            flow: self.flow,
            seq,
            ack,
            ip_len: len + u16::from(header_len),
            ip_id,
            window,
            flags,
            protocol: Protocol::Tcp,
            traffic_class: self.config.dscp << 2,
            header_len,
            mark,
            ..Meta::default()
        }
    }
}

//! The segments of an established connection: data and acknowledgements, with their options; and resets.
//!
//! Published: RFC 9293, section 3.1; RFC 7323 (timestamps), RFC 2018 (SACK), RFC 3168, section 6.1 (ECN); RFC
//! 8257, section 3.2 (DCTCP); RFC 9768, section 3.2 (Accurate ECN).
//! Differs: nothing.
//! Cost: the stores of a header, and a division where timestamps are in use.

use lastmile_packet::{Mark, Meta, Options, Protocol, SeqNumber, TcpFlags};
use lastmile_units::Instant;

use super::{Endpoint, State};
use crate::Ecn;
use crate::receiver::Split;
use crate::sender::Plan;

/// Bytes of the AccECN option with its padding, which data make space for.
const ACCECN_OPTION: u16 = 12;

/// A reset: its sequence number, and its acknowledgement number if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reset {
    pub(super) seq: SeqNumber,
    pub(super) ack: Option<SeqNumber>,
}

/// The fields of a header that change from segment to segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) seq: SeqNumber,
    pub(super) ack: SeqNumber,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
}

impl Endpoint {
    #[inline]
    pub(super) fn data_segment(&mut self, now: Instant, plan: Plan) -> Meta {
        let info = self.snd.describe(&self.config, plan, self.sends_ect());
        if info.len > 0 {
            self.rcv.acks_mut().on_data_sent(now);
        }
        let mut flags = TcpFlags::ACK;
        if info.push {
            flags = flags.with(TcpFlags::PSH);
        }
        if info.fin {
            flags = flags.with(TcpFlags::FIN);
            self.on_fin_sent();
        }
        if info.cwr && self.ecn == Ecn::Classic {
            flags = flags.with(TcpFlags::CWR);
        }
        let segment = self.segment(now, self.snd.wire(plan.start), flags, info.len);
        if plan.again || info.ecn_capable { self.marked(segment, plan.again, info.ecn_capable) } else { segment }
    }

    /// A segment with its marks: of a retransmission, and of an ECN-capable sender.
    fn marked(&self, mut segment: Meta, again: bool, ecn_capable: bool) -> Meta {
        if again {
            segment.mark.set_retransmission();
        }
        if ecn_capable {
            segment.traffic_class |= if self.config.variant.is_l4s() { Meta::ECT_1 } else { Meta::ECT_0 };
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
        if let Some(split) = self.rcv.take_split() {
            return self.split_acknowledgement(now, split);
        }
        self.segment(now, self.snd.wire_max(), TcpFlags::ACK, 0)
    }

    #[inline(always)]
    fn segment(&mut self, now: Instant, seq: SeqNumber, flags: TcpFlags, len: u16) -> Meta {
        if self.ecn != Ecn::Off || self.rcv.has_blocks() {
            return self.segment_with_more(now, seq, flags, len);
        }
        let (ack, window) = self.rcv.take_acknowledgement(&self.config);
        let options = self.rcv.timestamp_option(|| self.config.timers.timestamp(now));
        self.with_options(Header { seq, ack, flags, window }, len, options)
    }

    /// A segment with SACK blocks or the feedback of ECN.
    #[inline(never)]
    fn segment_with_more(&mut self, now: Instant, seq: SeqNumber, mut flags: TcpFlags, len: u16) -> Meta {
        let (ack, window) = self.rcv.take_acknowledgement(&self.config);
        let options = self.rcv.timestamp_option(|| self.config.timers.timestamp(now));
        let mut options = self.rcv.add_blocks(options);
        if self.ecn != Ecn::Off {
            flags = self.ecn_flags(flags, len == 0 && options.sack_count() == 0);
            if self.ecn == Ecn::Accurate && len + ACCECN_OPTION <= self.snd.mss() {
                options = self.rcv.add_accecn_option(now, self.snd.srtt(), options);
            }
        }
        self.with_options(Header { seq, ack, flags, window }, len, options)
    }

    /// RFC 8257, section 3.2: the acknowledgement of the data before a change of the mark.
    #[cold]
    fn split_acknowledgement(&mut self, now: Instant, split: Split) -> Meta {
        let flags = if split.echo { TcpFlags::ACK.with(TcpFlags::ECE) } else { TcpFlags::ACK };
        let options = self.rcv.timestamp_option(|| self.config.timers.timestamp(now));
        let options = self.rcv.add_blocks(options);
        let header = Header { seq: self.snd.wire_max(), ack: split.ack, flags, window: split.window };
        self.with_options(header, 0, options)
    }

    /// The reset that is due, if any.
    pub(super) fn reset_segment(&mut self) -> Option<Meta> {
        let Reset { seq, ack } = self.reset.take()?;
        let flags = if ack.is_some() { TcpFlags::RST.with(TcpFlags::ACK) } else { TcpFlags::RST };
        let header = Header { seq, ack: ack.unwrap_or_default(), flags, window: 0 };
        Some(self.with_options(header, 0, Options::NONE))
    }

    /// A segment with `len` octets of payload.
    #[inline]
    pub(super) fn with_options(&mut self, header: Header, len: u16, options: Options) -> Meta {
        let Header { seq, ack, flags, window } = header;
        let mut mark = Mark::default();
        let mut header_len = 40 + options.header_bytes();
        if self.config.ipv6 {
            mark.set_ipv6();
            header_len += 20;
        }
        let ip_id = self.ip_id;
        self.ip_id = ip_id.wrapping_add(1);
        let mut segment = Meta {
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
        };
        segment.set_options(options);
        segment
    }
}

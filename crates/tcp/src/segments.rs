//! The segments of a connection: data, acknowledgements, and what options they carry.
//!
//! Published: RFC 9293, section 3.1; RFC 7323 (timestamps), RFC 2018 (SACK), RFC 3168, section 6.1 (ECN).
//! Differs: PSH is set where nothing more is offered and, as in Linux with its quick ACKs, once in half a window.
//! Cost: a copy of a prepared header, and the options where something is out of order or timestamps are in use.

use lastmile_packet::{Mark, Meta, Options, Protocol, SackBlock, SeqNumber, TcpFlags};
use lastmile_units::Instant;

use crate::endpoint::{Endpoint, State};
use crate::flags::Flag;
use crate::ranges::Range;
use crate::sending::Sending;
use crate::transmit::Plan;

impl Endpoint {
    #[inline]
    pub(crate) fn data_segment(&mut self, now: Instant, plan: Plan) -> Meta {
        let Sending::Active(snd) = &mut self.snd else { unreachable!("only a sender plans") };
        let data_end = plan.end.min(snd.end);
        let len = (data_end - plan.start) as u16;
        let mut flags = TcpFlags::ACK;
        if len > 0 {
            snd.stats.count_data(&mut snd.aside);
            snd.stats.data_bytes_sent += u64::from(len);
            // Real stacks push at the end of what was written; here that is when nothing more is offered. Linux pushes within a long write,
            // too, and what ends a packet of several segments.
            let half = u64::from(snd.window_max / 2).max(1);
            if data_end == snd.end
                || (self.config.quick_acks && plan.start / half != data_end / half)
                || (self.config.tso_deferral && !plan.again && snd.ends_packet())
            {
                flags = flags.with(TcpFlags::PSH);
            }
            if self.config.quick_acks {
                self.rcv.quick().on_data_sent(now);
            }
        }
        // RFC 3168, sections 6.1.1 and 6.1.5: new data only are ECN-capable; 6.1.2: the first tells of the reduction.
        let capable = self.ecn && len > 0 && !plan.again && !plan.probe;
        let tell_reduced = capable && snd.aside.get().is_some_and(|rare| rare.tell_reduced);
        if tell_reduced {
            snd.aside.end(|rare| rare.tell_reduced = false);
        }
        if plan.again {
            snd.stats.retransmissions += 1;
            snd.stats.retransmitted_bytes += u64::from(len);
        }
        let seq = snd.wire(plan.start);
        if plan.end > snd.end {
            flags = flags.with(TcpFlags::FIN);
            self.on_fin_sent();
        }
        let mut segment = self.segment(now, seq, flags, len);
        if plan.again {
            segment.mark.set_retransmission();
        }
        if capable {
            segment.traffic_class |= 2;
        }
        if tell_reduced {
            segment.flags = segment.flags.with(TcpFlags::CWR);
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

    pub(crate) fn acknowledgement(&mut self, now: Instant) -> Meta {
        self.rcv.forced = self.rcv.forced.saturating_sub(1);
        self.rcv.count_ack();
        let seq = match &self.snd {
            Sending::Quiet(quiet) => quiet.wire_next(),
            Sending::Active(snd) => snd.wire(snd.max),
            _ => self.see(|snd| snd.wire(snd.max)),
        };
        self.segment(now, seq, TcpFlags::ACK, 0)
    }

    /// A segment of an established connection.
    #[inline]
    fn segment(&mut self, now: Instant, seq: SeqNumber, flags: TcpFlags, len: u16) -> Meta {
        let window = self.rcv.take_window(&self.config);
        let flags = if self.rcv.flags.has(Flag::Echo) { flags.with(TcpFlags::ECE) } else { flags };
        let ack = self.rcv.last_ack;
        let mut segment = self.bare_segment(seq, ack, flags, window, len);
        if self.rcv.flags.has(Flag::Timestamps) || self.rcv.reassembly.is_some() {
            self.add_options(now, &mut segment);
        }
        segment
    }

    fn add_options(&mut self, now: Instant, segment: &mut Meta) {
        let mut options = Options::NONE;
        if self.rcv.flags.has(Flag::Timestamps) {
            options = options.with_timestamps(self.config.timestamp(now), self.rcv.ts_recent());
        }
        if self.rcv.flags.has(Flag::Sack) && self.rcv.reassembly.is_some() {
            let mut ranges = [Range { start: 0, end: 0 }; Options::MAX_SACK_BLOCKS];
            let room = match options.timestamps() {
                Some(_) => Options::MAX_SACK_BLOCKS_BESIDE_TIMESTAMPS,
                None => Options::MAX_SACK_BLOCKS,
            };
            let count = self.rcv.take_blocks(&mut ranges[..room]);
            let blocks =
                ranges.map(|range| SackBlock { left: self.rcv.wire(range.start), right: self.rcv.wire(range.end) });
            options = options.with_sack(&blocks[..count]);
        }
        segment.set_options(options);
        segment.header_len += options.header_bytes();
        segment.ip_len += u16::from(options.header_bytes());
    }

    /// A segment without options.
    #[inline]
    pub(crate) fn bare_segment(
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

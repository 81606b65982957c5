//! Opening a connection: SYNs, their options and their loss; and resets for segments of no connection.
//!
//! Published: RFC 9293, sections 3.5 and 3.10.7; RFC 7323, sections 2.2 and 3.2; RFC 2018, section 2; RFC
//! 3168, section 6.1.1; RFC 6298, section 5.
//! Differs: data on a SYN are ignored (no TCP Fast Open).

use lastmile_packet::{Meta, Options, SeqNumber, SynOptions, TcpFlags};
use lastmile_units::Instant;

use super::accecn::EcnHandshake;
use super::segments::{Header, Reset};
use super::{Endpoint, State};
use crate::Ecn;
use crate::config::{MAX_WINDOW_SHIFT, TIMESTAMPS_BYTES};
use crate::receiver::Timestamps;

/// RFC 9293, section 3.7.1: a peer that names no MSS accepts 536 bytes.
const DEFAULT_MSS: u16 = 536;

/// The state of a connection that is being opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Handshake {
    /// A SYN or SYN-ACK is to be sent.
    pub(super) syn_due: bool,
    /// The peer's SYN and this end's both offer window scaling.
    scaled: bool,
    /// Accurate ECN.
    pub(super) ecn: EcnHandshake,
}

impl Endpoint {
    /// A segment arrived before the connection is established. True if it established it and is to be
    /// processed further.
    #[cold]
    pub(super) fn on_unsynchronized(&mut self, now: Instant, segment: &Meta) -> bool {
        match self.state {
            State::Listen => self.on_listen(segment),
            State::SynSent => self.on_syn_sent(now, segment),
            State::SynReceived => return self.on_syn_received(now, segment),
            _ => self.refuse(segment),
        }
        false
    }

    /// RFC 9293, section 3.10.7.1: a reset answers segments of no connection.
    fn refuse(&mut self, segment: &Meta) {
        if segment.flags.contains(TcpFlags::RST) {
            return;
        }
        self.reset = Some(if segment.flags.contains(TcpFlags::ACK) {
            Reset { seq: segment.ack, ack: None }
        } else {
            let taken = u32::from(segment.payload_len())
                + u32::from(segment.flags.contains(TcpFlags::SYN))
                + u32::from(segment.flags.contains(TcpFlags::FIN));
            Reset { seq: SeqNumber::new(0), ack: Some(segment.seq.add(taken)) }
        });
    }

    fn on_listen(&mut self, segment: &Meta) {
        if segment.flags.contains(TcpFlags::RST) {
            return;
        }
        if segment.flags.contains(TcpFlags::ACK) {
            self.refuse(segment);
        } else if segment.flags.contains(TcpFlags::SYN) {
            self.agree(segment);
            self.state = State::SynReceived;
            self.handshake.syn_due = true;
        }
    }

    fn on_syn_sent(&mut self, now: Instant, segment: &Meta) {
        let acknowledges = segment.flags.contains(TcpFlags::ACK);
        if acknowledges && segment.ack != self.snd.wire(1) {
            // RFC 9293, section 3.10.7.3, first: an old segment of another connection.
            self.refuse(segment);
            return;
        }
        if segment.flags.contains(TcpFlags::RST) {
            if acknowledges {
                self.fail(now);
            }
            return;
        }
        if !segment.flags.contains(TcpFlags::SYN) {
            return;
        }
        self.agree(segment);
        if acknowledges {
            self.establish(now);
            self.rcv.acks_mut().force();
        } else {
            // Both ends opened at once: RFC 9293, section 3.5, figure 7.
            self.state = State::SynReceived;
            self.handshake.syn_due = true;
        }
    }

    fn on_syn_received(&mut self, now: Instant, segment: &Meta) -> bool {
        let flags = segment.flags;
        if flags.contains(TcpFlags::RST) {
            if segment.seq == self.rcv.wire_next() {
                self.fail(now);
            }
            return false;
        }
        let answers = flags.contains(TcpFlags::ACK) && segment.ack == self.snd.wire(1) && self.snd.is_opened();
        if flags.contains(TcpFlags::SYN) {
            if segment.seq != self.rcv.irs() {
                return false;
            }
            if answers {
                self.establish(now);
            } else {
                // The SYN-ACK was lost.
                self.note_repeated_syn(segment);
                self.handshake.syn_due = true;
            }
            return false;
        }
        if answers {
            self.read_handshake_ecn(segment);
            self.establish(now);
        } else if flags.contains(TcpFlags::ACK) {
            self.refuse(segment);
        }
        answers
    }

    /// Both SYNs determine the options of the connection.
    fn agree(&mut self, segment: &Meta) {
        let config = &*self.config;
        let options = segment.options();
        let syn = options.syn_options();
        self.rcv.on_syn(segment.seq, config.sack && syn.sack_permitted);
        // RFC 7323, section 2.2: both sides must offer.
        let shifts = config.offered_shift().zip(syn.window_scale);
        if let Some((own, _)) = shifts {
            self.rcv.window_mut().set_shift(config, own);
            self.handshake.scaled = true;
        }
        if let Some((value, _)) = options.timestamps()
            && config.timestamps
        {
            self.rcv.start_timestamps(value);
        }
        let own_options = if self.rcv.timestamps().is_some() { TIMESTAMPS_BYTES } else { 0 };
        let of_peer = syn.mss.unwrap_or(DEFAULT_MSS).saturating_sub(own_options).max(1);
        let mss = config.own_mss().min(of_peer);
        let shift = shifts.map_or(0, |(_, peer)| peer.min(MAX_WINDOW_SHIFT));
        self.snd.on_peer_syn(segment, mss, shift);
        self.agree_ecn(segment);
    }

    /// The peer has acknowledged the SYN.
    fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.handshake.syn_due = false;
        self.snd.on_established(now, &self.config, self.rcv.sends_sack());
        let clock = self.config.timers.timestamp(now);
        if let Some(timestamps) = self.rcv.timestamps_mut() {
            timestamps.on_established(clock);
        }
    }

    /// The timer of the SYN expired. False: the connection is given up.
    #[cold]
    pub(super) fn on_syn_timer(&mut self, now: Instant) -> bool {
        let alive = self.snd.on_syn_timer(now, &self.config);
        self.handshake.syn_due |= alive;
        alive
    }

    #[cold]
    pub(super) fn syn_segment(&mut self, now: Instant) -> Meta {
        let answer = self.state == State::SynReceived;
        self.handshake.syn_due = false;
        let again = self.snd.on_syn_sent(now, &self.config);
        let window = self.rcv.window_mut().for_syn(&self.config);
        let mut flags = TcpFlags::SYN;
        if answer {
            flags = flags.with(TcpFlags::ACK);
        }
        flags = flags.with(self.syn_ecn_flags(answer));
        let ack = if answer { self.rcv.wire_next() } else { SeqNumber::new(0) };
        let options = self.syn_options(now, answer);
        let mut segment = self.with_options(Header { seq: self.snd.wire(0), ack, flags, window }, 0, options);
        if again {
            segment.mark.set_retransmission();
        }
        segment
    }

    /// A SYN-ACK repeats those of the peer's offers that this end accepts.
    fn syn_options(&self, now: Instant, answer: bool) -> Options {
        let config = &self.config;
        let mut options = Options::syn(SynOptions {
            mss: Some(config.offered_mss()),
            window_scale: config.offered_shift().filter(|_| !answer || self.handshake.scaled),
            sack_permitted: if answer { self.rcv.sends_sack() } else { config.sack },
        });
        let accurate = answer && self.ecn == Ecn::Accurate;
        let timestamps = self.rcv.timestamps();
        if if answer { timestamps.is_some() } else { config.timestamps } {
            options = options.with_timestamps(config.timers.timestamp(now), timestamps.map_or(0, Timestamps::recent));
        }
        if accurate { self.rcv.syn_accecn_option(options) } else { options }
    }
}

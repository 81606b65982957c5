//! Opening a connection: SYNs, what they agree on, their loss; and resets for what belongs to none.
//!
//! Published: RFC 9293, sections 3.5 and 3.10.7; RFC 7323, sections 2.2 and 3.2; RFC 2018, section 2; RFC 3168, section
//! 6.1.1; RFC 6298, section 5.
//! Differs: data on a SYN are ignored (no TCP Fast Open).

use lastmile_packet::{Meta, Options, SeqNumber, SynOptions, TcpFlags};
use lastmile_units::Instant;

use crate::config::MAX_WINDOW_SHIFT;
use crate::congestion::{Congestion, Style};
use crate::endpoint::{Endpoint, State};
use crate::flags::Flag;
use crate::ranges::Low;
use crate::rtt::Place;
use crate::timer::Timer;
use crate::trips::Trips;

/// RFC 9293, section 3.7.1: a peer that names no MSS takes 536 bytes.
const DEFAULT_MSS: u16 = 536;

impl Endpoint {
    /// A segment came before the connection is established. True if it established it and is to be processed further.
    #[cold]
    pub(crate) fn on_unsynchronized(&mut self, now: Instant, segment: &Meta) -> bool {
        match self.state {
            State::Listen => self.on_listen(segment),
            State::SynSent => self.on_syn_sent(now, segment),
            State::SynReceived => return self.on_syn_received(now, segment),
            _ => self.refuse(segment),
        }
        false
    }

    /// RFC 9293, section 3.10.7.1: what belongs to no connection is answered by a reset.
    fn refuse(&mut self, segment: &Meta) {
        if segment.flags.contains(TcpFlags::RST) {
            return;
        }
        let reset = if segment.flags.contains(TcpFlags::ACK) {
            (segment.ack, None)
        } else {
            let taken = u32::from(segment.payload_len())
                + u32::from(segment.flags.contains(TcpFlags::SYN))
                + u32::from(segment.flags.contains(TcpFlags::FIN));
            (SeqNumber::new(0), Some(segment.seq.add(taken)))
        };
        self.rcv.rare().reset = Some(reset);
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
            self.change(|snd| snd.syn_due = true);
        }
    }

    fn on_syn_sent(&mut self, now: Instant, segment: &Meta) {
        let acknowledges = segment.flags.contains(TcpFlags::ACK);
        if acknowledges && segment.ack != self.see(|snd| snd.wire(1)) {
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
            self.rcv.force_ack();
        } else {
            // Both ends opened at once: RFC 9293, section 3.5, figure 7.
            self.state = State::SynReceived;
            self.change(|snd| snd.syn_due = true);
        }
    }

    fn on_syn_received(&mut self, now: Instant, segment: &Meta) -> bool {
        let flags = segment.flags;
        let at_next = segment.seq == self.rcv.wire_next();
        if flags.contains(TcpFlags::RST) {
            if at_next {
                self.fail(now);
            }
            return false;
        }
        let fits = self.see(|snd| segment.ack == snd.wire(1) && snd.max == 1);
        let answers = flags.contains(TcpFlags::ACK) && fits;
        if flags.contains(TcpFlags::SYN) {
            if segment.seq != self.rcv.irs {
                return false;
            }
            if answers {
                self.establish(now);
            } else {
                // The SYN-ACK was lost.
                self.change(|snd| snd.syn_due = true);
            }
            return false;
        }
        if flags.contains(TcpFlags::ACK) && !answers {
            self.refuse(segment);
        }
        if answers {
            self.establish(now);
        }
        answers
    }

    /// What both SYNs permit.
    fn agree(&mut self, segment: &Meta) {
        let (config, rcv) = (&*self.config, &mut self.rcv);
        let options = segment.options();
        let syn = options.syn_options();
        rcv.on_syn(segment.seq);
        // RFC 7323, section 2.2: both sides must offer.
        let shifts = config.offered_shift().zip(syn.window_scale);
        if let Some((own, _)) = shifts {
            rcv.set_shift(config, own);
        }
        rcv.flags.put(Flag::Sack, config.sack && syn.sack_permitted);
        if let Some((value, _)) = options.timestamps()
            && config.timestamps
        {
            rcv.start_timestamps(value);
        }
        // RFC 3168, section 6.1.1: an ECN-setup SYN has ECE and CWR, an ECN-setup SYN-ACK has ECE alone.
        let cwr = segment.flags.contains(TcpFlags::CWR);
        let wanted = segment.flags.contains(TcpFlags::ECE) && cwr != segment.flags.contains(TcpFlags::ACK);
        self.ecn = config.ecn && wanted;
        self.snd.change(config, |snd| {
            snd.mss = config.own_mss().min(syn.mss.unwrap_or(DEFAULT_MSS).max(1));
            if let Some((_, peer)) = shifts {
                snd.scaled = true;
                snd.shift = peer.min(MAX_WINDOW_SHIFT);
            }
            // The window of a SYN is not scaled.
            snd.wl1 = segment.seq;
            snd.edge = Low::of(1 + u64::from(segment.window));
            snd.window_max = u32::from(segment.window);
        });
    }

    /// The peer has acknowledged the SYN.
    fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        let (config, sack) = (&*self.config, self.rcv.flags.has(Flag::Sack));
        self.snd.change(config, |snd| {
            snd.style = Style::of(config, sack);
            snd.congestion = Congestion::new(config, snd.mss);
            (snd.una, snd.nxt, snd.max) = (1, Low::of(1), 1);
            snd.timer = Timer::OFF;
            let timed = match &snd.trips {
                Trips::One(timed) => timed.clone(),
                Trips::Each(_) => unreachable!("not before it is established"),
            };
            if timed.running {
                snd.rtt.sample(config.measured(timed.at, now), Place::OPENED, config);
            }
            snd.trips = Trips::established(config, timed.at);
            if snd.backoff > 0 {
                // RFC 5681, section 3.1: if the SYN or SYN-ACK was lost, the initial window is one segment.
                snd.congestion.hold_at(u32::from(snd.mss));
                snd.rtt.after_lost_syn();
                snd.backoff = 0;
            }
            snd.syn_due = false;
            snd.scaled = false;
        });
        if self.rcv.flags.has(Flag::Timestamps) {
            self.rcv.rare().ts_recent_at = config.timestamp(now);
        }
    }

    /// False: give up.
    #[cold]
    pub(crate) fn on_syn_timer(&mut self, now: Instant) -> bool {
        let config = &*self.config;
        let snd = self.snd.active(config);
        if snd.backoff >= config.max_syn_retries {
            return false;
        }
        snd.stats.timeouts += 1;
        snd.backoff += 1;
        snd.rtt.back_off(config);
        snd.timer = Timer::at(config.deadline(now, snd.rtt.rto()));
        snd.syn_due = true;
        true
    }

    #[cold]
    pub(crate) fn syn_segment(&mut self, now: Instant) -> Meta {
        let answer = self.state == State::SynReceived;
        let config = &*self.config;
        let (first, iss, scaled) = self.snd.change(config, |snd| {
            let first = snd.max == 0;
            snd.syn_due = false;
            (snd.nxt, snd.max) = (Low::of(1), 1);
            // Karn's algorithm: nothing is measured over a SYN sent again.
            snd.trips.begin(now, 1);
            if !first {
                snd.trips.give_up();
            }
            if snd.timer.is_off() {
                snd.timer = Timer::at(config.deadline(now, snd.rtt.rto()));
            }
            snd.stats.retransmissions += u32::from(!first);
            (first, snd.iss, snd.scaled)
        });
        let window = self.rcv.syn_window(config);
        let mut flags = TcpFlags::SYN;
        if answer {
            flags = flags.with(TcpFlags::ACK);
        }
        if answer && self.ecn {
            flags = flags.with(TcpFlags::ECE);
        } else if !answer && config.ecn {
            flags = flags.with(TcpFlags::ECE).with(TcpFlags::CWR);
        }
        let ack = if answer { self.rcv.wire_next() } else { SeqNumber::new(0) };
        let mut segment = self.bare_segment(iss, ack, flags, window, 0);
        let options = self.syn_options(now, answer, scaled);
        segment.set_options(options);
        segment.header_len += options.header_bytes();
        segment.ip_len += u16::from(options.header_bytes());
        if !first {
            segment.mark.set_retransmission();
        }
        segment
    }

    /// A SYN-ACK repeats of the peer's offers what this end takes.
    fn syn_options(&self, now: Instant, answer: bool, scaled: bool) -> Options {
        let (config, rcv) = (&self.config, &self.rcv);
        let mut options = Options::syn(SynOptions {
            mss: Some(config.own_mss()),
            window_scale: config.offered_shift().filter(|_| !answer || scaled),
            sack_permitted: if answer { rcv.flags.has(Flag::Sack) } else { config.sack },
        });
        if if answer { rcv.flags.has(Flag::Timestamps) } else { config.timestamps } {
            options = options.with_timestamps(config.timestamp(now), rcv.ts_recent());
        }
        options
    }

    pub(crate) fn reset_segment(&mut self) -> Option<Meta> {
        let (seq, ack) = self.rcv.take_reset()?;
        let flags = if ack.is_some() { TcpFlags::RST.with(TcpFlags::ACK) } else { TcpFlags::RST };
        Some(self.bare_segment(seq, ack.unwrap_or_default(), flags, 0, 0))
    }
}

//! One end of a connection: the states of RFC 9293 around a sender and a receiver.
//!
//! Differs from RFC 9293: no urgent data; one listener takes one connection; a segment without payload from before the
//! next expected octet still has its acknowledgement read, and is answered only if older than the last acknowledgement
//! sent (Linux's rule: the RFC's would answer every reordered acknowledgement). A reset must carry the exact next
//! sequence number, and a SYN within a connection is answered by an acknowledgement (RFC 5961, sections 3 and 4).
//! TIME-WAIT ends after a settable time.

use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};

use crate::flags::Flag;
use crate::receiver::{Arrival, Receiver};
use crate::recovery::{AckInfo, AckVerdict};
use crate::sender::Sender;
use crate::sending::Sending;
use crate::timer::Timer;
use crate::{Config, Limit};

/// Which end an endpoint is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Open {
    /// It sends the first SYN, once [`Endpoint::connect`] is called.
    Active,
    /// It listens for one, from the start.
    Passive,
}

/// State of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// Not open yet, or no more.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN is out.
    SynSent,
    /// A SYN came, a SYN-ACK is out.
    SynReceived,
    /// Data may flow both ways.
    Established,
    /// This end's FIN is out.
    FinWait1,
    /// This end's FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer's FIN came; this end may still send.
    CloseWait,
    /// Both FINs crossed; this end's is out.
    Closing,
    /// The peer closed first; this end's FIN is out.
    LastAck,
    /// Both directions are closed; late segments are answered.
    TimeWait,
}

/// One end of one TCP connection, sender and receiver.
///
/// Time never goes back from call to call; equal is allowed.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) config: Arc<Config>,
    pub(crate) rcv: Receiver,
    pub(crate) snd: Sending,
    pub(crate) flow: FlowId,
    pub(crate) ip_id: u16,
    pub(crate) state: State,
    pub(crate) ecn: bool,
}

impl Endpoint {
    /// An endpoint that sends its segments as `flow_out`, with the initial sequence number `iss`.
    #[must_use]
    pub fn new(config: Arc<Config>, flow_out: FlowId, open: Open, iss: SeqNumber) -> Self {
        Self {
            rcv: Receiver::new(&config),
            snd: Sending::Unopened(iss),
            flow: flow_out,
            ip_id: 0,
            state: match open {
                Open::Active => State::Closed,
                Open::Passive => State::Listen,
            },
            ecn: false,
            config,
        }
    }

    /// The sender, made now if there is none.
    #[inline]
    pub(crate) fn active(&mut self) -> &mut Sender {
        self.snd.active(&self.config)
    }

    /// Changes the sender, there or not.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Sender) -> T) -> T {
        self.snd.change(&self.config, change)
    }

    /// What `look` sees of the sender, or of what it would be.
    pub(crate) fn see<T>(&self, look: impl FnOnce(&Sender) -> T) -> T {
        self.snd.see(&self.config, look)
    }

    /// Active open: a SYN goes out. Does nothing unless the endpoint is new.
    pub fn connect(&mut self, now: Instant) {
        if self.state == State::Closed && self.see(|snd| snd.max == 0 && !snd.failed) {
            self.state = State::SynSent;
            self.change(|snd| {
                snd.syn_due = true;
                snd.set_limit(now, Some(Limit::AwaitingAck));
            });
        }
    }

    /// The application offers `bytes` more to send. Ignored after [`close`](Self::close).
    pub fn write(&mut self, bytes: u64) {
        let snd = self.active();
        if !snd.closing {
            snd.end = snd.end.saturating_add(bytes).min(FOREVER);
        }
    }

    /// The application always has something to send.
    pub fn write_forever(&mut self) {
        self.write(FOREVER);
    }

    /// No more will be written: a FIN follows the last byte. A listening endpoint just closes.
    pub fn close(&mut self) {
        self.active().closing = true;
        if self.state == State::Listen {
            self.state = State::Closed;
        }
    }

    /// The source stops: what was offered and never sent is discarded, and a FIN follows what was sent.
    pub fn abort(&mut self) {
        let snd = self.active();
        if !snd.fin_sent() {
            snd.end = snd.max.max(1);
        }
        self.close();
    }

    /// The application stops or resumes reading. While it does not read, what arrives fills the receive buffer and the
    /// window shuts.
    pub fn set_reading(&mut self, reading: bool) {
        self.rcv.set_reading(&self.config, reading);
    }

    /// A segment arrived. Anything that is no TCP segment is ignored; nothing that a segment says makes this panic.
    #[inline]
    pub fn on_segment(&mut self, now: Instant, segment: &Meta) {
        if segment.protocol != Protocol::Tcp || segment.ip_len < u16::from(segment.header_len) {
            return;
        }
        if matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
            && !self.on_unsynchronized(now, segment)
        {
            return;
        }
        self.on_synchronized(now, segment);
    }

    /// Does what is due by `now`. Harmless when nothing is.
    pub fn on_timer(&mut self, now: Instant) {
        if self.rcv.ack_timer.is_due(now) {
            self.rcv.ack_timer = Timer::OFF;
            if self.config.quick_acks {
                self.on_quick_timer(now);
            } else {
                self.rcv.flags.set(Flag::AckDue);
            }
        }
        if !self.snd.timer(&self.config).is_due(now) {
            return;
        }
        let snd = self.snd.active(&self.config);
        let alive = match self.state {
            State::Closed | State::Listen | State::FinWait2 => {
                snd.timer = Timer::OFF;
                true
            }
            State::TimeWait => {
                self.finish(now);
                true
            }
            State::SynSent | State::SynReceived => self.on_syn_timer(now),
            _ => snd.on_timer(now, &self.config),
        };
        if !alive {
            self.fail(now);
        }
    }

    /// The next segment to send; `None` when nothing may be sent now.
    ///
    /// May change after every call that changes the endpoint. Asking early is harmless.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Meta> {
        match self.state {
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck => {
                if self.rcv.forced > 0 {
                    return Some(self.acknowledgement(now));
                }
                match &mut self.snd {
                    Sending::Active(snd) => match snd.next(now, &self.config) {
                        Ok(plan) => return Some(self.data_segment(now, plan)),
                        Err(limit) => snd.set_limit(now, Some(limit)),
                    },
                    Sending::Quiet(quiet) if quiet.is_idle() => {}
                    _ => self.change(|snd| snd.set_limit(now, Some(Limit::Application))),
                }
                if self.rcv.flags.has(Flag::AckDue) { Some(self.acknowledgement(now)) } else { None }
            }
            State::FinWait2 | State::TimeWait => {
                self.active().set_limit(now, None);
                if self.rcv.forced > 0 || self.rcv.flags.has(Flag::AckDue) {
                    Some(self.acknowledgement(now))
                } else {
                    None
                }
            }
            State::SynSent | State::SynReceived => {
                let syn_due = self.change(|snd| {
                    snd.set_limit(now, Some(Limit::AwaitingAck));
                    snd.syn_due
                });
                if syn_due { Some(self.syn_segment(now)) } else { self.reset_segment() }
            }
            State::Closed | State::Listen => self.reset_segment(),
        }
    }

    /// When [`on_timer`](Self::on_timer) should be called next. `None`: no timer runs.
    ///
    /// May change after every call that changes the endpoint; mostly to later, so an owner may keep its old wake-up and
    /// ask again when it comes.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        self.snd.timer(&self.config).earlier(self.rcv.ack_timer)
    }

    fn on_synchronized(&mut self, now: Instant, segment: &Meta) {
        let len = segment.payload_len();
        let ahead = segment.seq.distance_from(self.rcv.wire_next()).cast_signed();
        let mut echoed = None;
        if self.rcv.flags.has(Flag::Timestamps) && !segment.flags.intersects(TcpFlags::RST) {
            match self.check_timestamps(now, segment, ahead) {
                Some(rtt) => echoed = rtt,
                None => return,
            }
        }
        if segment.flags.intersects(TcpFlags::RST.with(TcpFlags::SYN)) {
            self.on_rst_or_syn(now, segment, ahead);
            return;
        }
        // RFC 9293, section 3.10.7.4, first and fifth: the segment lies in the window and acknowledges something.
        if !segment.flags.contains(TcpFlags::ACK) {
            return;
        }
        if i64::from(ahead) > self.rcv.room() as i64 {
            self.rcv.force_ack();
            return;
        }
        let fin = segment.flags.contains(TcpFlags::FIN);
        let bare = len == 0 && !fin;
        if bare {
            self.snd.count_ack(&self.config);
            if ahead < 0 && segment.seq.before(self.rcv.last_ack) {
                self.rcv.force_ack();
            }
        }
        let ecn_echo = self.ecn && segment.flags.contains(TcpFlags::ECE);
        let info = AckInfo { segment, bare, ecn_echo, echoed };
        let verdict = match &mut self.snd {
            Sending::Quiet(quiet) if !ecn_echo => quiet.on_ack(segment),
            snd => snd.active(&self.config).on_ack(now, &self.config, info),
        };
        match verdict {
            AckVerdict::Unsent => {
                self.rcv.force_ack();
                return;
            }
            AckVerdict::Advanced if self.active().fin_acked() => self.on_fin_acked(now),
            AckVerdict::Advanced | AckVerdict::Unmoved => {}
        }
        if !bare {
            self.on_payload(now, info, ahead, len, fin);
        }
    }

    /// RFC 7323, section 5.3: drops what is from an earlier time (R1), notes what to echo (R3). `None`: drop the
    /// segment; else the round trip that its echo tells.
    fn check_timestamps(&mut self, now: Instant, segment: &Meta, ahead: i32) -> Option<Option<Duration>> {
        // RFC 7323, section 3.2: a segment without timestamps on a connection with them is dropped.
        let (value, echo) = segment.options().timestamps()?;
        let clock = self.config.timestamp(now);
        let tick = self.config.timestamp_tick();
        if self.rcv.is_stale(value, clock, tick.as_ms() as u32) {
            self.rcv.force_ack();
            return None;
        }
        if i64::from(ahead) <= self.rcv.room() as i64 {
            self.rcv.note_timestamp(segment.seq, value, clock);
        }
        let ticks = clock.wrapping_sub(echo);
        // An echo from the future is none of ours.
        if ticks.cast_signed() < 0 { Some(None) } else { Some(Some(tick.saturating_mul(u64::from(ticks.max(1))))) }
    }

    #[inline]
    fn on_payload(&mut self, now: Instant, info: AckInfo<'_>, ahead: i32, len: u16, fin: bool) {
        let segment = info.segment;
        if len > 0 {
            self.rcv.count_data();
            if self.ecn {
                // RFC 3168, section 6.1.3: CWR ends the echo, CE on the same packet begins it again.
                if segment.flags.contains(TcpFlags::CWR) {
                    self.rcv.flags.clear(Flag::Echo);
                }
                if segment.ecn() == 3 {
                    self.rcv.flags.set(Flag::Echo);
                }
            }
        }
        let was_finished = self.rcv.flags.has(Flag::Finished);
        if was_finished && ahead >= 0 {
            // RFC 9293, section 3.10.7.4, seventh: nothing can come after the peer's FIN.
            return;
        }
        let arrival = self.rcv.on_data(now, &self.config, ahead, len, fin);
        if self.config.autotune && arrival == Arrival::InOrder && !self.rcv.flags.has(Flag::Paused) {
            self.rcv.tune_window(now, &self.config, info.echoed);
        }
        match arrival {
            Arrival::InOrder if self.config.quick_acks => {
                let ends = segment.flags.contains(TcpFlags::PSH) || len < self.config.own_mss();
                self.schedule_quick_ack(now, ends);
            }
            Arrival::InOrder => {}
            Arrival::OutOfOrder => self.rcv.count_out_of_order(),
            Arrival::Duplicate if len > 0 => self.rcv.count_duplicate(),
            Arrival::Duplicate | Arrival::Refused => {}
        }
        if self.rcv.flags.has(Flag::Finished) && !was_finished {
            self.on_fin(now);
        } else if self.state == State::TimeWait {
            // RFC 9293, section 3.10.7.4, eighth: a FIN sent again restarts the 2 MSL.
            self.enter_time_wait(now);
        }
    }

    fn on_rst_or_syn(&mut self, now: Instant, segment: &Meta, ahead: i32) {
        let reset = segment.flags.contains(TcpFlags::RST);
        if reset && self.state == State::TimeWait {
            // RFC 1337, section 3, fix 1: the peer has closed, and answers an acknowledgement that came late.
        } else if reset && ahead == 0 {
            self.fail(now);
        } else {
            // RFC 5961, sections 3.2 and 4.2: a challenge ACK.
            self.rcv.force_ack();
        }
    }

    #[cold]
    fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.finish(now),
            _ => {}
        }
    }

    #[cold]
    fn on_fin(&mut self, now: Instant) {
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        let deadline = self.config.deadline(now, self.config.time_wait);
        let snd = self.active();
        snd.timer = Timer::at(deadline);
        snd.set_limit(now, None);
    }

    /// The connection is over.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.state = State::Closed;
        self.rcv.ack_timer = Timer::OFF;
        self.rcv.flags.clear(Flag::AckDue);
        self.rcv.forced = 0;
        let snd = self.active();
        snd.timer = Timer::OFF;
        snd.syn_due = false;
        snd.set_limit(now, None);
    }

    #[cold]
    pub(crate) fn fail(&mut self, now: Instant) {
        self.active().failed = true;
        self.finish(now);
    }
}

/// More than any connection sends.
const FOREVER: u64 = u64::MAX / 2;

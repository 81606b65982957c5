//! One end of a connection: the states of RFC 9293 around a sender and a receiver.
//!
//! These files refer to one another, since they hold the methods of one type, [`Endpoint`]: `handshake` opens a
//! connection, `accecn` negotiates ECN, `gro` joins segments that arrive in a burst, `segments` builds the
//! segments that are sent, `observe` reports the state.
//! Differs from RFC 9293: no urgent data; one listener accepts one connection. The acknowledgement of a
//! segment without payload counts even if the segment lies before the next expected octet. Such a segment
//! is answered only if it is older than the last acknowledgement sent (Linux's rule: the RFC's would answer
//! every reordered acknowledgement). A reset must carry the exact next sequence number, and an
//! acknowledgement answers a SYN within a connection (RFC 5961, sections 3 and 4). TIME-WAIT ends after a
//! settable time.

mod accecn;
mod gro;
mod handshake;
mod observe;
mod segments;

use std::num::NonZeroU32;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_units::Instant;

use crate::receiver::{Data, Pace, Receiver};
use crate::sender::{AckInfo, AckVerdict, Alarm, FOREVER, SendHalf};
use crate::{Config, Ecn, Limit, Variant};
use gro::Burst;
use handshake::Handshake;
use segments::Reset;

/// The role of an endpoint in opening the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Open {
    /// The endpoint sends the first SYN, once [`Endpoint::connect`] is called.
    Active,
    /// The endpoint listens for a SYN from the start.
    Passive,
}

/// State of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// No connection: before the first SYN, or after the end.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN is sent.
    SynSent,
    /// A SYN has arrived, a SYN-ACK is sent.
    SynReceived,
    /// Data may flow both ways.
    Established,
    /// This end's FIN is sent.
    FinWait1,
    /// This end's FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer's FIN has arrived; this end may still send.
    CloseWait,
    /// Both FINs crossed; this end's is not acknowledged.
    Closing,
    /// The peer closed first; this end's FIN is sent.
    LastAck,
    /// Both directions are closed; late segments are answered.
    TimeWait,
}

/// One end of one TCP connection, sender and receiver.
///
/// Time never goes back from call to call; equal is allowed.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Arc<Config>,
    rcv: Receiver,
    snd: SendHalf,
    flow: FlowId,
    ip_id: u16,
    state: State,
    handshake: Handshake,
    /// The ECN that is agreed.
    ecn: Ecn,
    /// The connection ended without FINs.
    failed: bool,
    /// A reset to send.
    reset: Option<Reset>,
    /// Segments that receive offload holds.
    burst: Option<Box<Burst>>,
}

impl Endpoint {
    /// An endpoint that sends its segments as `flow_out`, with the initial sequence number `iss`.
    #[must_use]
    pub fn new(config: Arc<Config>, flow_out: FlowId, open: Open, iss: SeqNumber) -> Self {
        Self {
            rcv: Receiver::new(&config),
            snd: SendHalf::new(&config, iss),
            flow: flow_out,
            ip_id: 0,
            state: match open {
                Open::Active => State::Closed,
                Open::Passive => State::Listen,
            },
            handshake: Handshake::default(),
            ecn: Ecn::Off,
            failed: false,
            reset: None,
            burst: None,
            config,
        }
    }

    /// Active open: a SYN is sent. Does nothing unless the endpoint is new.
    pub fn connect(&mut self, now: Instant) {
        if self.state == State::Closed && !self.snd.is_opened() && !self.failed {
            self.state = State::SynSent;
            self.handshake.syn_due = true;
            self.snd.set_limit(now, Some(Limit::AwaitingAck));
        }
    }

    /// The application offers `bytes` more to send. Ignored after [`close`](Self::close).
    pub fn write(&mut self, bytes: u64) {
        self.snd.offer(&self.config, bytes);
    }

    /// The application always has something to send.
    pub fn write_forever(&mut self) {
        self.write(FOREVER);
    }

    /// No more will be written: a FIN follows the last byte. A listening endpoint just closes.
    pub fn close(&mut self) {
        self.snd.close(&self.config);
        if self.state == State::Listen {
            self.state = State::Closed;
        }
    }

    /// The source stops: data that were offered and never sent are discarded, and a FIN follows the sent ones.
    pub fn abort(&mut self) {
        self.snd.discard_unsent();
        self.close();
    }

    /// The application stops or resumes reading. While it does not read, arriving data fill the receive
    /// buffer and the window shuts.
    pub fn set_reading(&mut self, reading: bool) {
        self.rcv.set_reading(&self.config, reading);
    }

    /// A segment arrived. Packets of other protocols are ignored. No segment makes this panic.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Instant, segment: &Meta) {
        if segment.protocol != Protocol::Tcp || segment.ip_len < u16::from(segment.header_len) {
            return;
        }
        if matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
            && !self.on_unsynchronized(now, segment)
        {
            return;
        }
        if self.config.acks.gro.is_zero() {
            self.on_synchronized(now, segment, 1);
        } else {
            self.gather(now, segment, self.config.acks.gro);
        }
    }

    /// Handles the timers that have expired by `now`. Harmless when none has.
    pub fn on_timer(&mut self, now: Instant) {
        self.rcv.on_timer(now, &self.config, self.snd.rto());
        self.snd.on_pacing_timer(now);
        self.on_burst_timer(now);
        let Some(alarm) = self.snd.timer_due(now) else { return };
        let alive = match alarm {
            Alarm::Syn => self.on_syn_timer(now),
            Alarm::TimeWait => {
                self.finish(now);
                true
            }
            _ => self.snd.on_timer(now, &self.config, alarm),
        };
        if !alive {
            self.fail(now);
        }
    }

    /// The next segment to send; `None` when none may be sent now.
    ///
    /// May change after every call that changes the endpoint. Asking early is harmless.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Meta> {
        if self.snd.is_silent() && !self.rcv.acks().is_owed() { None } else { self.next_segment(now) }
    }

    // Not inlined: most calls for an end that only receives find nothing to send.
    #[inline(never)]
    fn next_segment(&mut self, now: Instant) -> Option<Meta> {
        match self.state {
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck => {
                if self.rcv.acks().is_forced() {
                    return Some(self.acknowledgement(now));
                }
                match self.snd.next(now, &self.config) {
                    Ok(plan) => return Some(self.data_segment(now, plan)),
                    Err(limit) => self.snd.set_limit(now, Some(limit)),
                }
                if self.rcv.acks().is_due() { Some(self.acknowledgement(now)) } else { None }
            }
            State::FinWait2 | State::TimeWait => {
                self.snd.set_limit(now, None);
                let due = self.rcv.acks().is_forced() || self.rcv.acks().is_due();
                if due { Some(self.acknowledgement(now)) } else { None }
            }
            State::SynSent | State::SynReceived => {
                self.snd.set_limit(now, Some(Limit::AwaitingAck));
                if self.handshake.syn_due { Some(self.syn_segment(now)) } else { self.reset_segment() }
            }
            State::Closed | State::Listen => self.reset_segment(),
        }
    }

    /// When [`on_timer`](Self::on_timer) should be called next. `None`: no timer runs.
    ///
    /// May change after every call that changes the endpoint, mostly to a later time. So an owner may keep
    /// its old wake-up and ask once more when that comes.
    #[inline(always)]
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        let least = |one: Option<Instant>, other: Option<Instant>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let timer = least(self.snd.next_timer(), self.rcv.acks().next_timer());
        if self.burst.is_some() { least(timer, self.burst_until()) } else { timer }
    }

    /// A segment of an established connection, which receive offload has joined of `segments`.
    fn on_synchronized(&mut self, now: Instant, segment: &Meta, segments: u16) {
        let len = segment.payload_len();
        let ahead = segment.seq.distance_from(self.rcv.wire_next()).cast_signed();
        let mut echoed = None;
        if self.rcv.timestamps().is_some() && !segment.flags.intersects(TcpFlags::RST) {
            match self.check_timestamps(now, segment, ahead) {
                Some(rtt) => echoed = rtt,
                None => return,
            }
        }
        if segment.flags.intersects(TcpFlags::RST.with(TcpFlags::SYN)) {
            self.on_rst_or_syn(now, segment, ahead);
            return;
        }
        // RFC 9293, section 3.10.7.4, first and fifth: the segment lies in the window and carries an acknowledgement.
        if !segment.flags.contains(TcpFlags::ACK) {
            return;
        }
        if i64::from(ahead) > self.rcv.admitted() as i64 {
            self.rcv.acks_mut().force();
            return;
        }
        let fin = segment.flags.contains(TcpFlags::FIN);
        let bare = len == 0 && !fin;
        if bare {
            self.snd.count_ack();
            if ahead < 0 && segment.seq.before(self.rcv.last_ack()) {
                self.rcv.acks_mut().force();
            }
        }
        let ecn = if self.ecn == Ecn::Off { Ecn::Off } else { self.take_ecn() };
        match self.snd.on_ack(now, &self.config, AckInfo { segment, bare, ecn, echoed }) {
            AckVerdict::Unsent => {
                self.rcv.acks_mut().force();
                return;
            }
            AckVerdict::Advanced if self.snd.fin_acked() => self.on_fin_acked(now),
            AckVerdict::Advanced | AckVerdict::Unmoved => {}
        }
        if !bare {
            let push = segment.flags.contains(TcpFlags::PSH);
            self.on_payload(now, segment, Data { ahead, len, fin, push, echoed, segments });
        }
    }

    /// RFC 7323, section 5.3: drops segments from an earlier time (R1), notes the timestamp to echo (R3).
    /// `None`: drop the segment; else the round trip by its echo, in ticks.
    #[inline]
    fn check_timestamps(&mut self, now: Instant, segment: &Meta, ahead: i32) -> Option<Option<NonZeroU32>> {
        // RFC 7323, section 3.2: a segment without timestamps on a connection with them is dropped.
        let (value, echo) = segment.options().timestamps()?;
        let clock = self.config.timers.timestamp(now);
        let (admitted, last_ack) = (self.rcv.admitted(), self.rcv.last_ack());
        let timestamps = self.rcv.timestamps_mut()?;
        if timestamps.is_stale(value, clock, &self.config.timers) {
            self.rcv.acks_mut().force();
            return None;
        }
        if i64::from(ahead) <= admitted as i64 {
            let end = segment.seq.add(u32::from(segment.payload_len()));
            timestamps.note((segment.seq, end), last_ack, value, clock);
        }
        let ticks = clock.wrapping_sub(echo);
        // An echo from the future is not this end's.
        if ticks.cast_signed() < 0 { Some(None) } else { Some(NonZeroU32::new(ticks.max(1))) }
    }

    #[inline]
    fn on_payload(&mut self, now: Instant, segment: &Meta, data: Data) {
        if data.len > 0 {
            self.rcv.count_data(data.segments);
            if self.ecn != Ecn::Off {
                self.on_ecn_field(segment, data.segments);
            }
        }
        let was_finished = self.rcv.is_finished();
        if was_finished && data.ahead >= 0 {
            // RFC 9293, section 3.10.7.4, seventh: no data can follow the peer's FIN.
            return;
        }
        let snd = &self.snd;
        self.rcv.on_data(now, &self.config, data, || Pace { rto: snd.rto(), srtt: snd.srtt() });
        if self.rcv.is_finished() && !was_finished {
            self.on_fin(now);
        } else if self.state == State::TimeWait {
            // RFC 9293, section 3.10.7.4, eighth: a retransmitted FIN restarts the 2 MSL.
            self.enter_time_wait(now);
        }
    }

    /// Data arrived on a connection with ECN.
    #[cold]
    fn on_ecn_field(&mut self, segment: &Meta, segments: u16) {
        let congested = segment.ecn() == Meta::CE;
        match self.ecn {
            Ecn::Off => {}
            Ecn::Classic if self.config.variant == Variant::Dctcp => self.rcv.on_dctcp_ecn(&self.config, congested),
            Ecn::Classic => self.rcv.on_ecn(segment.flags.contains(TcpFlags::CWR), congested),
            Ecn::Accurate => self.rcv.on_accecn(segment.ecn(), segment.payload_len(), segments),
        }
    }

    fn on_rst_or_syn(&mut self, now: Instant, segment: &Meta, ahead: i32) {
        if segment.flags.contains(TcpFlags::SYN) {
            self.note_repeated_syn(segment);
        }
        let reset = segment.flags.contains(TcpFlags::RST);
        if reset && self.state == State::TimeWait {
            // RFC 1337, section 3, fix 1: the peer has closed, and answers a late acknowledgement.
        } else if reset && ahead == 0 {
            self.fail(now);
        } else {
            // RFC 5961, sections 3.2 and 4.2: a challenge ACK.
            self.rcv.acks_mut().force();
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
        self.snd.enter_time_wait(now, self.config.timers.deadline(now, self.config.timers.time_wait));
    }

    /// The connection is over.
    fn finish(&mut self, now: Instant) {
        self.state = State::Closed;
        self.rcv.acks_mut().cancel();
        self.burst = None;
        self.snd.finish(now);
        self.handshake.syn_due = false;
    }

    #[cold]
    fn fail(&mut self, now: Instant) {
        self.failed = true;
        self.finish(now);
    }
}

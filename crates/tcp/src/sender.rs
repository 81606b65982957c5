//! The sending half: what it knows of the stream and of what is in flight, and its timer.
//!
//! Published: RFC 9293, RFC 6298.
//! Differs: offsets of the stream are 64 bits wide (the SYN is octet 0, the first byte octet 1), so that no stream is too
//! long; only headers wrap.
//! Cost: a dozen stores for each segment sent.

use lastmile_packet::SeqNumber;
use lastmile_units::Instant;

use crate::aside::Aside;
use crate::congestion::{Congestion, Style};
use crate::rack::Rack;
use crate::ranges::{Low, Range};
use crate::repair::Repair;
use crate::rtt::Rtt;
use crate::stats::{LimitClock, SendStats};
use crate::timer::Timer;
use crate::transmit::Plan;
use crate::trips::Trips;
use crate::{Config, Limit, LimitedTime};

/// What the sender is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Slow start or congestion avoidance; duplicate acknowledgements may have come.
    Open,
    /// Fast recovery.
    Recovery,
    /// Going back over what was out when a timeout (or, in Tahoe, a fast retransmit) happened.
    Loss,
}

/// How far the repair is that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Stage {
    Begun,
    /// In fast recovery, the first partial acknowledgement has come.
    Partial,
    /// After a timeout, the answer to the first segment sent again is awaited (F-RTO).
    FirstAnswer,
    /// It came; new data go out, and what answers them decides (F-RTO).
    SecondAnswer,
}

/// What the timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Alarm {
    /// Retransmission.
    Timeout,
    /// What is missing may only be late (RFC 8985, section 6.2).
    Reordering,
    /// Nothing comes back (RFC 8985, section 7).
    Tail,
    /// The receiver's window is shut: it is asked by probes.
    Window,
}

/// What goes out whatever the congestion window says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Urgent {
    Nothing,
    /// The segment at the cumulative acknowledgement, again.
    First,
    /// A window probe.
    Probe,
    /// A tail loss probe.
    Tail,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sender {
    /// First octet that is not acknowledged (SND.UNA).
    pub(crate) una: u64,
    /// One past the highest octet sent (SND.NXT of RFC 9293).
    pub(crate) max: u64,
    /// One past the last octet that the application offered: where the FIN goes.
    pub(crate) end: u64,
    /// Next octet to send; behind `max` while going back.
    pub(crate) nxt: Low,
    /// One past the last octet that the receiver's window admits.
    pub(crate) edge: Low,
    /// `max` when the current or last repair began.
    pub(crate) recover: Low,
    /// For what `alarm` says.
    pub(crate) timer: Timer,
    /// When data last went out.
    pub(crate) last_sent: Instant,
    pub(crate) rtt: Rtt,
    pub(crate) trips: Trips,
    pub(crate) rack: Rack,
    pub(crate) congestion: Congestion,
    pub(crate) repair: Repair,
    pub(crate) aside: Aside,
    pub(crate) stats: SendStats,
    limits: LimitClock,
    pub(crate) iss: SeqNumber,
    /// Sequence number of the segment that last told the window (SND.WL1).
    pub(crate) wl1: SeqNumber,
    /// Largest window that the receiver offered (Max(SND.WND)).
    pub(crate) window_max: u32,
    /// Octets of the packet that is being built, as Linux builds them for itself ([`Config::tso_deferral`]).
    pub(crate) packet: u32,
    pub(crate) mss: u16,
    /// Duplicate acknowledgements in a row, as far as it matters how many.
    pub(crate) dup_acks: u8,
    /// Expiries of the timer in a row.
    pub(crate) backoff: u8,
    /// The peer's window shift.
    pub(crate) shift: u8,
    pub(crate) phase: Phase,
    pub(crate) alarm: Alarm,
    pub(crate) style: Style,
    /// The application offers no more: a FIN follows the last octet.
    pub(crate) closing: bool,
    pub(crate) stage: Stage,
    /// What is SACKed decides: something is, or a repair by SACK is under way.
    pub(crate) sacking: bool,
    pub(crate) urgent: Urgent,
    /// A SYN or SYN-ACK is to be sent.
    pub(crate) syn_due: bool,
    /// Window scaling is agreed; only while the connection is opened.
    pub(crate) scaled: bool,
    /// The connection ended otherwise than by FINs.
    pub(crate) failed: bool,
    /// What keeps it from sending more.
    pub(crate) limit: Option<Limit>,
}

// A box of 296 bytes takes 304 of the heap.
impl Sender {
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        let mss = config.own_mss();
        Self {
            una: 0,
            max: 0,
            end: 1,
            nxt: Low::of(0),
            edge: Low::of(0),
            recover: Low::of(0),
            timer: Timer::OFF,
            last_sent: Instant::ZERO,
            packet: 0,
            rtt: Rtt::new(config),
            trips: Trips::new(),
            rack: Rack::default(),
            congestion: Congestion::new(config, mss),
            repair: Repair::default(),
            aside: Aside::default(),
            stats: SendStats::default(),
            limits: LimitClock::new(),
            iss,
            wl1: SeqNumber::new(0),
            window_max: 0,
            mss,
            dup_acks: 0,
            backoff: 0,
            shift: 0,
            phase: Phase::Open,
            alarm: Alarm::Timeout,
            style: Style::of(config, false),
            closing: false,
            stage: Stage::Begun,
            sacking: false,
            urgent: Urgent::Nothing,
            syn_due: false,
            scaled: false,
            failed: false,
            limit: None,
        }
    }

    /// Accounts for what keeps it from sending more from now on.
    #[inline]
    pub(crate) fn set_limit(&mut self, now: Instant, limit: Option<Limit>) {
        self.limits.set(now, &mut self.limit, limit);
    }

    pub(crate) fn limited_by(&self, now: Instant) -> LimitedTime {
        self.limits.until(now, self.limit)
    }

    /// When what limits it last changed.
    pub(crate) fn limited_since(&self) -> Instant {
        self.limits.settled()
    }

    pub(crate) fn set_limits(&mut self, limits: LimitClock, limit: Option<Limit>) {
        self.limits = limits;
        self.limit = limit;
    }

    /// Next octet to send.
    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt.near(self.una)
    }

    /// One past the last octet that the receiver's window admits.
    #[inline]
    pub(crate) fn edge(&self) -> u64 {
        self.edge.near(self.una)
    }

    /// Reads a word from each part.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.una
            ^ self.last_sent.as_ps()
            ^ self.stats.data_bytes_sent
            ^ u64::from(self.mss)
            ^ self.limits.settled().as_ps()
    }

    /// `una` has moved from `from`: what it left behind must not come to lie further off than half of the low offsets
    /// reach. Done once in 2^30 octets; a window is smaller.
    #[inline]
    pub(crate) fn keep_near(&mut self, from: u64) {
        if (from ^ self.una) >> 30 != 0 {
            let behind = Low::of(self.una - 1);
            for offset in [&mut self.edge, &mut self.recover].into_iter().chain(self.aside.offsets()) {
                if offset.ahead_of(self.una) < -1 {
                    *offset = behind;
                }
            }
        }
    }

    /// The sequence number of an octet.
    #[inline]
    pub(crate) fn wire(&self, offset: u64) -> SeqNumber {
        self.iss.add(offset as u32)
    }

    pub(crate) fn fin_sent(&self) -> bool {
        self.max > self.end
    }

    /// True when the FIN and all before it are acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.una > self.end
    }

    /// What the network holds, as far as this sender can tell: the pipe of RFC 6675 while SACK decides, else what was
    /// sent from `una`, or since it went back there.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        if self.style == Style::Rack {
            return self.rack.pipe(self.max - self.una);
        }
        match self.aside.board() {
            Some(board) if self.sacking => board.pipe(self.una, self.max),
            _ => self.nxt() - self.una,
        }
    }

    /// FlightSize of RFC 5681, for the threshold after a loss.
    pub(crate) fn flight_size(&self) -> u32 {
        u32::try_from(self.max - self.una).unwrap_or(u32::MAX).saturating_sub(self.congestion.limited_sent)
    }

    /// Books a segment as sent.
    #[inline]
    pub(crate) fn note_sent(&mut self, now: Instant, config: &Config, plan: Plan) {
        self.max = self.max.max(self.nxt());
        if config.tso_deferral {
            let joins = !plan.again && now == self.last_sent;
            self.packet = (plan.end - plan.start) as u32 + if joins { self.packet } else { 0 };
        }
        if plan.again {
            self.count_again(now, config, (plan.end - plan.start) as u32);
        }
        if self.rtt.is_linux() {
            if plan.again && self.style == Style::Rack {
                self.send_again_by_time(now, Range { start: plan.start, end: plan.end });
            } else if plan.again {
                self.trips.sent_mut().note_again(now, self.una, plan.start, plan.end);
            } else {
                self.trips.sent_mut().note(now, plan.end);
            }
        } else if plan.again {
            // Karn's algorithm, RFC 6298 (3): nothing is measured over a segment sent again.
            self.trips.give_up();
        } else if self.trips.running().is_none() {
            self.trips.begin(now, plan.end);
        }
        self.last_sent = now;
        // RFC 6298 (5.1) Every time a packet containing data is sent (including a retransmission), if the timer is not
        // running, start it.
        if self.timer.is_off() || self.alarm == Alarm::Window {
            self.arm(now, config, true);
        } else if self.style == Style::Rack {
            // As in Linux: what goes out puts a tail loss probe off, and the first segment sent again the timeout.
            if self.phase == Phase::Open {
                self.put_probe_off(now, config);
            } else if plan.again && plan.start == self.una && self.alarm != Alarm::Reordering {
                self.set_rto(now, config);
            }
        }
    }

    /// RFC 6298: starts the retransmission timer.
    #[inline]
    pub(crate) fn set_rto(&mut self, now: Instant, config: &Config) {
        self.alarm = Alarm::Timeout;
        self.timer = Timer::at(config.deadline(now, self.rtt.rto()));
    }

    /// The timer fired after the handshake. False: give up (R2 of RFC 9293, section 3.8.3).
    pub(crate) fn on_timer(&mut self, now: Instant, config: &Config) -> bool {
        match self.alarm {
            Alarm::Timeout => return self.on_retransmission_timer(now, config),
            Alarm::Window => return self.on_probe_timer(now, config),
            Alarm::Reordering => self.on_reordering_timer(now, config),
            Alarm::Tail => self.on_probe_timeout(now, config),
        }
        true
    }
}

//! Acknowledgements as Linux sends them: one by one at the beginning, after a pause and while the window opens; at once at the end of a burst;
//! otherwise for every second segment, or after about the spacing of segments.
//!
//! Published: the kernel's `tcp_input.c`, `tcp.c` and `tcp_output.c` (quick ACK mode, `tcp_cleanup_rbuf`, `ato`, pingpong mode, compressed
//! SACKs); P. Sarolahti and A. Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002, section 6.
//! The first data of a connection, data after a pause of more than the retransmission timeout, and duplicates bring a grant: as many
//! acknowledgements as half of the window has segments, at most 16, go out one by one. Each segment that makes the window open further is
//! acknowledged alone, too. The other acknowledgements go out when the application has read ([`Config::read_delay`]): for more than one
//! segment, or for one with PSH (or less than full). A connection that answers what it receives is interactive: it waits for its own data to
//! carry the acknowledgement. An acknowledgement that is held back waits for the smoothed spacing of segments, from 40 ms to
//! [`Config::delayed_ack`].
//! Of the segments beyond a hole the first three are acknowledged at once. Later ones are acknowledged together after a twentieth of the round
//! trip, 1 ms at most, or with the 45th of them.
//! Differs: a full segment has [`Config::mss`] bytes, where the kernel learns the size. The window is as large as the buffer, so that the kernel's
//! acknowledgements before a read (where the buffer has room to spare) are those of an opening window alone. Time is exact, where the kernel has
//! ticks of 1 to 10 ms.
//! Cost: a boxed state of 64 bytes, a dozen operations for each data segment, and a timer for each read. Nothing where it is off.

use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::endpoint::Endpoint;
use crate::flags::Flag;
use crate::timer::Timer;

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`.
const LEAST_DELAY: Duration = Duration::from_ms(40);
/// `tcp_comp_sack_delay_ns` with its slack, and `tcp_comp_sack_nr`.
const MOST_JOINED_FOR: Duration = Duration::from_ms(1);
const SLACK: Duration = Duration::from_us(100);
const MOST_JOINED: u8 = 44;
/// Duplicate acknowledgements of a hole that go out one by one: so many make the sender repair it (`TCP_FASTRETRANS_THRESH`).
const ONE_BY_ONE: u8 = 3;
/// `TCP_MAX_QUICKACKS`.
const MOST_QUICK: u32 = 16;

/// What a receiver remembers of the data that came.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct QuickAcks {
    /// When data last came.
    last: Instant,
    /// How long an acknowledgement is held back (`ato`), in microseconds; zero before the first data.
    delay_us: u32,
    /// Acknowledgements that go out one by one.
    left: u8,
    /// This end answers what it receives (pingpong mode).
    interactive: bool,
    /// A burst has ended since the last acknowledgement.
    pushed: bool,
    /// Duplicate acknowledgements of the hole at `hole` that went out one by one.
    duplicates: u8,
    /// Segments beyond the hole that no acknowledgement has reported.
    joined: u8,
    /// The low half of an offset.
    hole: u32,
    /// The smoothed round trip, in microseconds; zero if none was measured.
    trip_us: u32,
    /// When the application reads what came.
    read: Timer,
    /// When the acknowledgement that is held back goes out at the latest.
    due: Timer,
}

/// What the sending half of the endpoint knows of time.
#[derive(Clone, Copy, Debug)]
struct Pace {
    rto: Duration,
    srtt: Option<Duration>,
}

impl QuickAcks {
    fn delay(&self) -> Duration {
        Duration::from_us(u64::from(self.delay_us))
    }

    fn set_delay(&mut self, delay: Duration) {
        self.delay_us = u32::try_from(delay.as_ps() / 1_000_000).unwrap_or(u32::MAX);
    }

    /// So many acknowledgements go out one by one.
    fn grant(&mut self, config: &Config) {
        let segments = config.buffer() / (2 * u32::from(config.own_mss()));
        let quick = if segments == 0 { 2 } else { segments.min(MOST_QUICK) };
        self.left = self.left.max(quick as u8);
    }

    /// Data in order came.
    fn on_data(&mut self, now: Instant, config: &Config, pace: Pace) {
        if self.delay_us == 0 {
            self.grant(config);
            self.set_delay(LEAST_DELAY);
        } else {
            let apart = now.since(self.last);
            let half = Duration::from_ps(self.delay().as_ps() / 2);
            if apart <= Duration::from_ps(LEAST_DELAY.as_ps() / 2) {
                self.set_delay(half + Duration::from_ps(LEAST_DELAY.as_ps() / 2));
            } else if apart < self.delay() {
                self.set_delay((half + apart).min(pace.rto));
            } else if apart > pace.rto {
                self.grant(config);
            }
        }
        self.last = now;
        self.trip_us = pace.srtt.map_or(0, |srtt| u32::try_from(srtt.as_ps() / 1_000_000).unwrap_or(u32::MAX));
    }

    /// How long the acknowledgement of what came last is held back.
    fn held_for(&self, config: &Config, pace: Pace) -> Duration {
        let mut held = self.delay();
        if held > LEAST_DELAY {
            let most = if self.interactive || self.pushed { 200 } else { 500 };
            let trip = pace.srtt.map_or(Duration::from_ms(most), |srtt| srtt.max(LEAST_DELAY));
            held = held.min(trip).min(Duration::from_ms(most));
        }
        held.min(config.delayed_ack)
    }

    /// Data came again, or from outside of the window.
    pub(crate) fn on_duplicate(&mut self, config: &Config) {
        self.grant(config);
        self.interactive = false;
        self.set_delay(LEAST_DELAY);
    }

    /// Acknowledgements go out one by one (quick ACK mode).
    pub(crate) fn is_quick(&self) -> bool {
        self.left > 0 && !self.interactive
    }

    /// The receive window has opened for more than before: this segment is acknowledged at once, to tell the sender.
    pub(crate) fn on_window_opened(&mut self) {
        self.left = self.left.max(1);
    }

    /// Data came beyond a hole that begins at `next`. True: they are reported later, with what follows them.
    pub(crate) fn joins(&mut self, next: u64) -> bool {
        if self.hole != next as u32 {
            (self.hole, self.duplicates) = (next as u32, 0);
        }
        if self.is_quick() || self.joined == MOST_JOINED {
            return false;
        }
        if self.duplicates < ONE_BY_ONE {
            self.duplicates += 1;
            return false;
        }
        self.joined += 1;
        true
    }

    /// For how long data beyond a hole are reported together: a twentieth of the round trip, and 1 ms at most.
    pub(crate) fn joined_for(&self) -> Duration {
        let twentieth = Duration::from_us(u64::from(self.trip_us) / 20);
        SLACK + if self.trip_us == 0 { MOST_JOINED_FOR } else { twentieth.min(MOST_JOINED_FOR) }
    }

    /// Data beyond a hole wait to be reported.
    pub(crate) fn has_joined(&self) -> bool {
        self.joined > 0
    }

    /// What comes first: the application reads, or the acknowledgement goes out.
    fn next(&self) -> Timer {
        self.read.earlier(self.due).map_or(Timer::OFF, Timer::at)
    }

    /// An acknowledgement goes out.
    pub(crate) fn on_ack_sent(&mut self) {
        self.pushed = false;
        self.joined = 0;
        (self.read, self.due) = (Timer::OFF, Timer::OFF);
        if self.left == 1 {
            self.set_delay(LEAST_DELAY);
        }
        self.left = self.left.saturating_sub(1);
    }

    /// The acknowledgement was held back for as long as it may be.
    pub(crate) fn on_timer(&mut self, rto: Duration) {
        if self.interactive {
            self.interactive = false;
            self.set_delay(LEAST_DELAY);
        } else {
            self.set_delay(self.delay().saturating_mul(2).min(rto));
        }
    }

    /// Data go out: soon after some came, they answer them.
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        self.interactive |= self.delay_us > 0 && now.since(self.last) < self.delay();
    }
}

impl Endpoint {
    /// Data in order came, which end a burst (`ends`) or not.
    #[cold]
    pub(crate) fn schedule_quick_ack(&mut self, now: Instant, ends: bool) {
        let pace = self.see(|snd| Pace { rto: snd.rtt.rto(), srtt: snd.rtt.srtt() });
        let config = &self.config;
        let lag = if config.read_delay.is_zero() { Duration::ZERO } else { self.rcv.reading_lag(config) };
        let state = self.rcv.quick();
        state.on_data(now, config, pace);
        state.pushed |= ends;
        if state.is_quick() {
            self.rcv.flags.set(Flag::AckDue);
            return;
        }
        let held = state.held_for(config, pace);
        // One that would go soon anyway goes now.
        let soon = now.saturating_add(Duration::from_ps(held.as_ps() / 4));
        if held.is_zero() || state.due.is_due(soon) {
            self.rcv.flags.set(Flag::AckDue);
            return;
        }
        if let Some(deadline) = state.due.earlier(Timer::at(config.deadline(now, held))) {
            state.due = Timer::at(deadline);
        }
        if lag.is_zero() {
            self.on_read();
        } else if state.read.is_off() {
            state.read = Timer::at(now.saturating_add(lag));
            self.rcv.ack_timer = self.rcv.quick().next();
        }
    }

    /// The application reads all that came.
    fn on_read(&mut self) {
        let segments = u32::from(self.config.ack_every.max(1) - 1) * u32::from(self.config.own_mss());
        let waiting = self.rcv.wire_next().distance_from(self.rcv.last_ack);
        let state = self.rcv.quick();
        state.read = Timer::OFF;
        if waiting > segments || (state.pushed && !state.interactive) {
            self.rcv.flags.set(Flag::AckDue);
        } else {
            self.rcv.ack_timer = self.rcv.quick().next();
        }
    }

    /// The timer of the receiving half has expired.
    #[cold]
    pub(crate) fn on_quick_timer(&mut self, now: Instant) {
        let state = self.rcv.quick();
        let joined = state.has_joined();
        if !joined && !state.due.is_due(now) {
            self.on_read();
            return;
        }
        self.rcv.flags.set(Flag::AckDue);
        // What reports data out of order says nothing of how far segments are apart.
        if !joined {
            let rto = self.see(|snd| snd.rtt.rto());
            self.rcv.quick().on_timer(rto);
        }
    }
}

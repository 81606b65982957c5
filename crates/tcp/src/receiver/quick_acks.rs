//! Linux's timing of acknowledgements: one by one at the beginning, after a pause and while the window
//! opens; at once at the end of a burst; otherwise for every second segment, or after about the spacing of
//! segments.
//!
//! Published: the kernel's `tcp_input.c`, `tcp.c` and `tcp_output.c` (quick ACK mode, `tcp_cleanup_rbuf`,
//! `ato`, pingpong mode, compressed SACKs); P. Sarolahti and A. Kuznetsov, "Congestion Control in Linux
//! TCP", USENIX 2002, section 6.
//!
//! The first data of a connection, data after a pause of more than the retransmission timeout, and
//! duplicates bring a grant: as many acknowledgements as half of the window has segments, at most 16, are
//! sent one by one. Each segment that opens the window further is acknowledged alone, too. The other
//! acknowledgements are sent when the application has read (`AckConfig::read_delay`): for more than one
//! segment, or for one with PSH (or less than full). A connection that answers the data it receives is
//! interactive: its own data carry the acknowledgement. A delayed acknowledgement waits for the smoothed
//! spacing of segments, from 40 ms to `AckConfig::delayed_ack`. The first three segments beyond a hole are
//! acknowledged at once. Later ones are acknowledged together after a twentieth of the round trip, at most
//! 1 ms, or with the 45th of them.
//!
//! Differs: a full segment has [`Config::mss`] bytes, where the kernel learns the size. The window is as
//! large as the buffer, so the only acknowledgements before a read are those of an opening window; the
//! kernel also sends some where the buffer has free space. Time is exact, where the kernel has ticks of 1
//! to 10 ms.
//! Cost: a boxed state of 88 bytes, a dozen operations for each data segment, and a timer for each read that
//! acknowledges. Nothing where it is off.

use lastmile_units::{Duration, Instant};

use crate::Config;

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`.
const LEAST_DELAY: Duration = Duration::from_ms(40);
/// `tcp_comp_sack_delay_ns` with its slack, and `tcp_comp_sack_nr`.
const MOST_JOINED_FOR: Duration = Duration::from_ms(1);
const SLACK: Duration = Duration::from_us(100);
const MOST_JOINED: u8 = 44;
/// Duplicate acknowledgements of a hole that are sent one by one, enough for a fast retransmit
/// (`TCP_FASTRETRANS_THRESH`).
const ONE_BY_ONE: u8 = 3;
/// `TCP_MAX_QUICKACKS`.
const MOST_QUICK: u32 = 16;

/// The state of a receiver that acknowledges as Linux does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct QuickAcks {
    /// When data last arrived.
    last: Instant,
    /// The delay of acknowledgements (`ato`) in microseconds, since the first data.
    delay_us: Option<u32>,
    /// Acknowledgements that are sent one by one.
    left: u8,
    /// This end answers the data that it receives (pingpong mode).
    interactive: bool,
    /// A burst has ended since the last acknowledgement.
    pushed: bool,
    /// Duplicate acknowledgements of the hole at `hole` that were sent one by one.
    duplicates: u8,
    /// Segments beyond the hole that no acknowledgement has reported.
    joined: u8,
    hole: Option<u64>,
    srtt: Option<Duration>,
    /// When the application reads the data. In the past: it has read them, and too few to acknowledge.
    read: Option<Instant>,
    /// When the delayed acknowledgement is sent at the latest.
    due: Option<Instant>,
}

/// The times of the sending half that limit delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) rto: Duration,
    pub(crate) srtt: Option<Duration>,
}

/// Data that arrived in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    /// True if the data end a burst.
    pub(super) ends: bool,
    /// True if the data open the window further.
    pub(super) opens: bool,
    /// Octets that no acknowledgement covers.
    pub(super) waiting: u32,
    /// The time until the application reads.
    pub(super) lag: Duration,
}

impl QuickAcks {
    fn delay(&self) -> Duration {
        Duration::from_us(u64::from(self.delay_us.unwrap_or(0)))
    }

    fn set_delay(&mut self, delay: Duration) {
        self.delay_us = Some(u32::try_from(delay.as_us()).unwrap_or(u32::MAX));
    }

    /// Acknowledgements for half of the window are sent one by one.
    fn grant(&mut self, config: &Config) {
        let segments = config.buffer() / (2 * u32::from(config.own_mss()));
        let quick = if segments == 0 { 2 } else { segments.min(MOST_QUICK) };
        self.left = self.left.max(quick as u8);
    }

    /// Data arrived in order. True: the acknowledgement is due at once.
    pub(super) fn on_data(&mut self, now: Instant, config: &Config, pace: Pace, arrived: Arrived) -> bool {
        self.adapt_delay(now, config, pace);
        if arrived.opens {
            self.on_window_opened();
        }
        self.pushed |= arrived.ends;
        if self.is_quick() {
            return true;
        }
        let held = self.held_for(config, pace);
        // An acknowledgement that is due soon is sent now.
        let soon = now.saturating_add(Duration::from_ps(held.as_ps() / 4));
        if held.is_zero() || self.due.is_some_and(|due| due <= soon) {
            return true;
        }
        let deadline = config.timers.deadline(now, held);
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
        false
    }

    fn adapt_delay(&mut self, now: Instant, config: &Config, pace: Pace) {
        if self.delay_us.is_none() {
            self.grant(config);
            self.set_delay(LEAST_DELAY);
        } else {
            let apart = now.since(self.last);
            let half = Duration::from_ps(self.delay().as_ps() / 2);
            if apart <= LEAST_DELAY / 2 {
                self.set_delay(half + LEAST_DELAY / 2);
            } else if apart < self.delay() {
                self.set_delay((half + apart).min(pace.rto));
            } else if apart > pace.rto {
                self.grant(config);
            }
        }
        self.last = now;
        self.srtt = pace.srtt;
    }

    /// The delay of the next acknowledgement.
    fn held_for(&self, config: &Config, pace: Pace) -> Duration {
        let mut held = self.delay();
        if held > LEAST_DELAY {
            let most = Duration::from_ms(if self.interactive || self.pushed { 200 } else { 500 });
            let trip = pace.srtt.map_or(most, |srtt| srtt.max(LEAST_DELAY));
            held = held.min(trip).min(most);
        }
        held.min(config.acks.delayed_ack)
    }

    /// Duplicate data arrived, or data outside of the window.
    pub(super) fn on_duplicate(&mut self, config: &Config) {
        self.grant(config);
        self.interactive = false;
        self.set_delay(LEAST_DELAY);
    }

    /// Acknowledgements are sent one by one (quick ACK mode).
    pub(super) fn is_quick(&self) -> bool {
        self.left > 0 && !self.interactive
    }

    /// The receive window opens: this segment is acknowledged at once, to inform the sender. As in Linux, an even
    /// grant becomes one larger, so that the segment does not use it (`tcp_grow_window`).
    pub(super) fn on_window_opened(&mut self) {
        self.left |= 1;
    }

    /// Data arrived beyond a hole that begins at `next`. True: a later acknowledgement reports them with others.
    pub(super) fn joins(&mut self, next: u64) -> bool {
        if self.hole != Some(next) {
            (self.hole, self.duplicates) = (Some(next), 0);
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

    /// The time for which data beyond a hole are collected: a twentieth of the round trip, at most 1 ms.
    pub(super) fn joined_for(&self) -> Duration {
        let twentieth = self.srtt.map(|srtt| Duration::from_us(srtt.as_us() / 20));
        SLACK + twentieth.map_or(MOST_JOINED_FOR, |twentieth| twentieth.min(MOST_JOINED_FOR))
    }

    /// The application reads after `lag`, unless an earlier read is still to come.
    pub(super) fn read_after(&mut self, now: Instant, lag: Duration) {
        if self.read.is_none_or(|read| read < now) {
            self.read = Some(now.saturating_add(lag));
        }
    }

    /// The application reads all data. True: the acknowledgement is due.
    pub(super) fn on_read(&mut self, config: &Config, waiting: u32) -> bool {
        self.read = None;
        self.acknowledges(config, waiting)
    }

    /// A read acknowledges `waiting` octets if they are more than `ack_every` - 1 segments, or end a burst.
    fn acknowledges(&self, config: &Config, waiting: u32) -> bool {
        let segments = u32::from(config.acks.ack_every.max(1) - 1) * u32::from(config.own_mss());
        waiting > segments || (self.pushed && !self.interactive)
    }

    /// The next event: a read that acknowledges, or the delayed acknowledgement. No other read has an effect, so
    /// none of them needs a timer.
    pub(super) fn next(&self, config: &Config, waiting: u32) -> Option<Instant> {
        let read = self.read.filter(|_| self.acknowledges(config, waiting));
        read.into_iter().chain(self.due).min()
    }

    /// The timer that expires `now` is that of the read.
    pub(super) fn awaits_read(&self, now: Instant) -> bool {
        self.joined == 0 && self.due.is_none_or(|due| due > now)
    }

    /// An acknowledgement is sent.
    pub(super) fn on_ack_sent(&mut self) {
        self.pushed = false;
        self.joined = 0;
        (self.read, self.due) = (None, None);
        if self.left == 1 {
            self.set_delay(LEAST_DELAY);
        }
        self.left = self.left.saturating_sub(1);
    }

    /// The acknowledgement was delayed for as long as allowed. Reports of data out of order say nothing
    /// about the spacing of segments.
    pub(super) fn on_timer(&mut self, rto: Duration) {
        if self.joined > 0 {
            return;
        }
        if self.interactive {
            self.interactive = false;
            self.set_delay(LEAST_DELAY);
        } else {
            self.set_delay(self.delay().saturating_mul(2).min(rto));
        }
    }

    /// Data are sent: soon after some arrived, they answer them.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        self.interactive |= self.delay_us.is_some() && now.since(self.last) < self.delay();
    }
}

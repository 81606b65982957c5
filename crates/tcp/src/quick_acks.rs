//! Acknowledging as Linux does: one by one at the beginning and after a pause, at once at the end of a burst, otherwise every
//! second segment, held back for about as long as segments are apart.
//!
//! Published: the kernel's `tcp_input.c` and `tcp_output.c` (quick ACK mode, `ato`, pingpong mode); P. Sarolahti and A. Kuznetsov,
//! "Congestion Control in Linux TCP", USENIX 2002, section 6.
//! The first data of a connection, data after a pause of more than the retransmission timeout, and duplicates bring a grant:
//! as many acknowledgements as half of the window has segments, at most 16, go out one by one. A segment that ends what was
//! written (PSH, or less than a full one) is acknowledged at once, since the application reads at once. A connection that
//! answers what it receives is interactive: it waits for its own data to carry the acknowledgement. What is held back is held
//! for the spacing of segments, smoothed, from 40 ms to [`Config::delayed_ack`].
//! Differs: segments are full at [`Config::mss`], where the kernel learns what they are; acknowledgements of data out of order
//! are not compressed; time is exact, where the kernel has ticks of 1 to 10 ms. A sender pushes what ends its data and every half
//! of the largest window, as the kernel does within one long write.
//! Cost: a boxed state of 16 bytes, and a dozen operations for each data segment. Nothing where it is off.

use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::endpoint::Endpoint;
use crate::flags::Flag;
use crate::timer::Timer;

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`.
const LEAST_DELAY: Duration = Duration::from_ms(40);
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

    /// An acknowledgement goes out.
    pub(crate) fn on_ack_sent(&mut self) {
        self.pushed = false;
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
        let waiting = self.rcv.wire_next().distance_from(self.rcv.last_ack);
        let state = self.rcv.quick();
        state.on_data(now, config, pace);
        state.pushed |= ends;
        let at_once = (state.left > 0 || state.pushed) && !state.interactive;
        let held = state.held_for(config, pace);
        let segments = u32::from(config.ack_every.max(1) - 1) * u32::from(config.own_mss());
        let rcv = &mut self.rcv;
        // One that would go soon anyway goes now.
        let soon = now.saturating_add(Duration::from_ps(held.as_ps() / 4));
        if at_once || waiting > segments || held.is_zero() || rcv.ack_timer.is_due(soon) {
            rcv.flags.set(Flag::AckDue);
        } else if let Some(deadline) = rcv.ack_timer.earlier(Timer::at(config.deadline(now, held))) {
            rcv.ack_timer = Timer::at(deadline);
        }
    }
}

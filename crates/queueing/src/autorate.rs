//! cake-autorate: a controller that moves the rates of two shapers with the load and the delay of a line.
//!
//! Source: the script *cake-autorate* (<https://github.com/lynxthecat/cake-autorate>), version 3.5.0: its README,
//! INSTALLATION.md and the defaults of defaults.sh; rules that these omit are those of the script (read in 2026). The
//! names of the parameters are the script's.
//!
//! Pings cross both directions of the line. Rules for each direction, at each reply:
//!
//! - *Baseline* of each reflector: a moving average of its delays that falls fast and rises slowly.
//! - *Bufferbloat*: of the last `bufferbloat_detection_window` replies of any reflector,
//!   `bufferbloat_detection_thr` exceed their baseline by more than `owd_delta_delay_thr`. The rate falls, by 1 to
//!   25 % with the mean excess, and then rests for `bufferbloat_refractory_period`.
//! - *High load*: the shaper has sent more than `high_load_thr` of its rate. The rate rises by up to 4 % for each
//!   measurement of the load (200 ms), less with the mean excess.
//! - *Low load*: the rate returns to the base rate, by 1 % a second.
//! - Thresholds grow by the transmission time of the largest packet, which is significant below 12 Mbit/s.
//! - *Sleep*: no pings after a minute without load. *Stall*: no reply for five replies' time and no load.
//! - *Replacement*: a spare reflector takes the turns of one that is late, or slower than others (`reflectors`).
//!
//! As in the script, times are whole microseconds and rates whole kbit/s; divisions round towards zero.
//!
//! Differs: both directions share their thresholds. The load counts bytes on the wire of the shaper, where the script
//! reads counters of the interface. One-way delays are exact, where ICMP timestamps have whole milliseconds.
//! Reflectors are pinged in the order in which they were named, and their rotation is no random one.
//!
//! The caller sends the pings: [`Pings`], [`Controller::is_pinging`]. This file does no I/O and reads no clock.
//! Cost: O(window) a reply.

mod config;
mod direction;
mod reflectors;

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

pub use config::{
    Adjust, Baseline, Config, ConfigError, Detection, Health, Idle, Load, Method, Pings, Rates, Thresholds,
};
use direction::Direction;
use reflectors::Reflectors;
pub use reflectors::{Reason, Replacement};

/// The delays of a ping, from which the controller is fed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delay {
    /// The round-trip time, of which each direction has half.
    RoundTrip(Duration),
    /// The delays of both directions: down, up.
    OneWay([Duration; 2]),
}

impl Delay {
    /// The delays down and up in microseconds.
    fn one_way_us(self) -> [i64; 2] {
        let us = |delay: Duration| i64::try_from(delay.as_us()).unwrap_or(i64::MAX).min(LONGEST_US);
        match self {
            Self::RoundTrip(delay) => [us(delay) / 2; 2],
            Self::OneWay(delays) => delays.map(us),
        }
    }
}

const MILLION: i64 = 1_000_000;
/// Longer delays, of more than a day, count as this.
const LONGEST_US: i64 = 100_000 * MILLION;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Since when both directions are idle, if they are.
    Running { idle_since: Option<Instant> },
    /// The pings sleep.
    Idle,
    /// No replies since before `since`. `timed_out`: for so long that all reflectors are given up.
    Stalled { since: Instant, timed_out: bool },
}

/// The controller of a line: two shapers, down and up.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    directions: [Direction; 2],
    reflectors: Reflectors,
    state: State,
    last_response: Instant,
    monitored: Instant,
    /// What the shapers had sent by then.
    sent: [WireBytes; 2],
}

impl Controller {
    /// A controller that begins at `start` with the base rates. It has a reflector for each pinger, with the pinger's
    /// number, and so many spare ones, with the next numbers.
    ///
    /// # Errors
    /// As [`Config::check`].
    pub fn new(config: &Config, spares: usize, start: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            directions: [0, 1].map(|index| Direction::new(config, config.rates[index], start)),
            reflectors: Reflectors::new(config, spares, start),
            state: State::Running { idle_since: None },
            last_response: start,
            monitored: start,
            sent: [WireBytes::ZERO; 2],
            config: config.clone(),
        })
    }

    /// The rates of the shapers: down, up.
    #[must_use]
    pub fn rates(&self) -> [BitRate; 2] {
        [0, 1].map(|index| self.directions[index].rate())
    }

    /// False while the pings sleep.
    #[must_use]
    pub fn is_pinging(&self) -> bool {
        self.state != State::Idle
    }

    /// The number of the reflector that a pinger pings.
    #[must_use]
    pub fn reflector(&self, pinger: usize) -> Option<usize> {
        self.reflectors.of(pinger)
    }

    /// The time of the next [`Controller::monitor`]: at most ten times the transmission time of the largest packets.
    #[must_use]
    pub fn next_monitor(&self) -> Instant {
        let packets_us = self.directions.iter().map(Direction::largest_us).sum::<i64>();
        let packets = Duration::from_us(u64::try_from(packets_us).unwrap_or(0)).saturating_mul(10);
        self.monitored.saturating_add(self.config.load.monitor_achieved_rates_interval.max(packets))
    }

    /// The bytes on the wire that the shapers have sent so far: down, up. Returns a reflector that is replaced.
    pub fn monitor(&mut self, now: Instant, sent: [WireBytes; 2]) -> Option<Replacement> {
        let elapsed = now.since(self.monitored);
        if elapsed.is_zero() {
            return None;
        }
        for (direction, (sent, before)) in self.directions.iter_mut().zip(sent.into_iter().zip(self.sent)) {
            let bits = sent.as_u64().saturating_sub(before.as_u64()) * 8;
            direction.achieved(&self.config.load, bits, elapsed);
        }
        (self.monitored, self.sent) = (now, sent);
        let was_running = matches!(self.state, State::Running { .. });
        self.without_response(now);
        was_running.then(|| self.reflectors.check(&self.config.health, now)).flatten()
    }

    /// A ping of the reflector with this number is answered. Nothing follows from a reply of one that was replaced.
    /// Returns a reflector that is replaced.
    pub fn response(&mut self, now: Instant, reflector: usize, delay: Delay) -> Option<Replacement> {
        if !self.reflectors.is_pinged(reflector) {
            return None;
        }
        match self.state {
            State::Running { idle_since } => {
                self.last_response = now;
                self.sample(now, reflector, delay);
                self.state = self.after_sample(now, idle_since);
                return self.reflectors.check(&self.config.health, now);
            }
            State::Idle => self.wake_if_active(now),
            State::Stalled { .. } => {
                self.last_response = now;
                self.state = State::Running { idle_since: None };
            }
        }
        None
    }

    /// Updates baselines, windows and rates.
    fn sample(&mut self, now: Instant, reflector: usize, delay: Delay) {
        let excess = self.reflectors.excess(&self.config.baseline, now, reflector, delay.one_way_us());
        if self.directions.iter().all(Direction::is_low) {
            self.reflectors.average(&self.config.health, reflector, excess);
        }
        for (direction, excess) in self.directions.iter_mut().zip(excess) {
            direction.sample(&self.config, now, excess);
        }
    }

    /// The state after a reply: the pings sleep once both directions have been idle for long enough.
    fn after_sample(&mut self, now: Instant, idle_since: Option<Instant>) -> State {
        let idle = self.directions.iter().all(Direction::is_idle);
        let idle_since = idle.then_some(idle_since.unwrap_or(now));
        match (self.config.idle.sustained_idle_sleep_thr, idle_since) {
            (Some(most), Some(since)) if now.since(since) > most => {
                self.enforce_min_rates();
                State::Idle
            }
            _ => State::Running { idle_since },
        }
    }

    /// A measurement of the load changes the state, but no rate by itself.
    fn without_response(&mut self, now: Instant) {
        let idle = &self.config.idle;
        let stalls = |direction: &Direction| !direction.exceeds(idle.connection_stall_thr);
        let stalled = self.directions.iter().any(stalls);
        let patience = self.config.stall_detection_timeout();
        match &mut self.state {
            State::Running { .. } if stalled && now.since(self.last_response) > patience => {
                self.state = State::Stalled { since: now, timed_out: false };
            }
            State::Running { .. } => {}
            State::Idle => self.wake_if_active(now),
            State::Stalled { .. } if !stalled => self.state = State::Running { idle_since: None },
            State::Stalled { since, timed_out } => {
                let longest = idle.global_ping_response_timeout.saturating_sub(patience);
                if !*timed_out && now.since(*since) > longest {
                    *timed_out = true;
                    self.enforce_min_rates();
                }
            }
        }
    }

    /// The pings begin again once a direction is active.
    fn wake_if_active(&mut self, now: Instant) {
        let threshold = self.config.load.connection_active_thr;
        if self.directions.iter().any(|direction| direction.exceeds(threshold)) {
            self.state = State::Running { idle_since: None };
            self.last_response = now.saturating_add(self.config.pings.reflector_ping_interval.saturating_mul(2));
            self.reflectors.wake(self.last_response);
        }
    }

    fn enforce_min_rates(&mut self) {
        if self.config.idle.min_shaper_rates_enforcement {
            self.directions.iter_mut().for_each(Direction::set_min);
        }
    }
}

#[cfg(test)]
mod tests;

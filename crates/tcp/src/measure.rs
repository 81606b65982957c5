//! Which acknowledgement measures a round trip, and of what.
//!
//! Published: RFC 6298, section 3 (Karn's algorithm); RFC 7323, section 4.1; for Linux's timer see `sent`.
//! Cost: a branch for each acknowledgement, and the rule of the timer.

use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::recovery::News;
use crate::rtt::Place;
use crate::sender::{Alarm, Sender};
use crate::timer::Timer;

impl Sender {
    /// RFC 6298, section 3, and RFC 7323, section 4.1. One measurement a round trip, exact; with timestamps those where
    /// Karn's algorithm would forbid it as well, since the echo tells which transmission was acknowledged. For Linux's
    /// timer every acknowledgement measures, if need be by what it newly SACKs.
    #[inline]
    pub(crate) fn measure(&mut self, now: Instant, config: &Config, echoed: Option<Duration>, from: u64, news: News) {
        let place = Place { una: self.una, max: self.max };
        if self.rtt.is_linux() {
            let age = if news.by_time {
                news.age_us.map(|us| Duration::from_us(u64::from(us)))
            } else {
                let age = self.trips.sent_mut().acknowledge(now, from, self.una);
                age.or_else(|| self.trips.age(now, news.once?))
            };
            if let Some(rtt) = age.map(|age| config.ticked(now, age)).or(echoed) {
                self.rtt.sample(rtt, place, config);
            }
        } else if let Some(timed) = self.trips.running() {
            if timed.end.ahead_of(self.una) <= 0 {
                self.rtt.sample(config.measured(timed.at, now), place, config);
                self.trips.give_up();
            }
        } else if let Some(rtt) = echoed {
            self.rtt.sample(rtt, place, config);
        }
    }

    /// Octets that were sent once are newly SACKed, from `octet` on. Linux's timer takes the round trip, and starts anew
    /// if they went out before the segment at the cumulative acknowledgement was sent again: its answer cannot be here.
    #[cold]
    pub(crate) fn measure_sacked(&mut self, now: Instant, config: &Config, octet: u64) {
        let Some(age) = self.trips.age(now, octet) else { return };
        self.rtt.sample(config.ticked(now, age), Place { una: self.una, max: self.max }, config);
        if self.trips.sent().precedes_first_again(now, age) {
            self.timer = Timer::at(config.deadline(now, self.rtt.rto()));
        }
    }

    /// As [`measure_sacked`](Self::measure_sacked), where losses are found by time.
    #[cold]
    pub(crate) fn measure_delivered(&mut self, now: Instant, config: &Config, news: News) {
        let Some(age) = news.age_us.map(|us| Duration::from_us(u64::from(us))) else { return };
        self.rtt.sample(config.ticked(now, age), Place { una: self.una, max: self.max }, config);
        if age > self.trips.sent().first_age(now) && self.alarm != Alarm::Reordering {
            self.arm(now, config, true);
        }
    }
}

//! The timers, and the clock that they run on.

use std::num::NonZeroU32;

use lastmile_units::{Duration, Instant};

/// How the retransmission timeout follows the round trips.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rto {
    /// RFC 6298: SRTT and four mean deviations, together at least [`TimerConfig::min_rto`]; one measurement a round
    /// trip.
    Rfc6298,
    /// As Linux: SRTT and a variance of at least [`TimerConfig::min_rto`] that rises with the largest deviation of a
    /// round trip and falls slowly. Every acknowledgement measures, and each that covers new data restarts the timer
    /// (Sarolahti and Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002).
    Linux,
}

/// The timers of an endpoint, and the clock that they run on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimerConfig {
    /// How the retransmission timeout is computed. Default [`Rto::Linux`].
    pub rto: Rto,
    /// Least retransmission timeout, with [`Rto::Linux`] of its variance alone. Default 200 ms as Linux;
    /// RFC 6298 (2.4) says 1 s.
    pub min_rto: Duration,
    /// Largest timeout after doublings, at least 60 s by RFC 6298 (2.5). Default 120 s as Linux.
    pub max_rto: Duration,
    /// Timeout before the first measurement. Default 1 s (RFC 6298, 2.1).
    pub initial_rto: Duration,
    /// Tick of the host's clock; zero: exact. With a tick G, round trips are measured in whole ticks (at
    /// least one) and timers fire at multiples of G as in BSD: a timer of n ticks fires at the n-th tick
    /// from now, up to G early. The retransmission timeout is then at least 2 ticks. The 1990s had 500 ms.
    /// Default zero.
    pub clock_granularity: Duration,
    /// Retransmissions of a SYN before the connection fails. Default 6 as Linux.
    pub max_syn_retries: u8,
    /// Retransmissions of a segment or window probe in a row before the connection fails (R2 of RFC 9293,
    /// 3.8.3). Default 15 as Linux.
    pub max_retries: u8,
    /// Duration of TIME-WAIT on the side that closed first. Default 60 s as Linux (RFC 9293: 2 MSL, 4 min).
    pub time_wait: Duration,
}

impl Default for TimerConfig {
    fn default() -> Self {
        Self {
            rto: Rto::Linux,
            min_rto: Duration::from_ms(200),
            max_rto: Duration::from_s(120),
            initial_rto: Duration::from_s(1),
            clock_granularity: Duration::ZERO,
            max_syn_retries: 6,
            max_retries: 15,
            time_wait: Duration::from_s(60),
        }
    }
}

impl TimerConfig {
    /// The deadline of a timer of `span` that starts now, on this host's clock.
    #[inline]
    pub(crate) fn deadline(&self, now: Instant, span: Duration) -> Instant {
        if self.clock_granularity.is_zero() { now.saturating_add(span) } else { self.tick_deadline(now, span) }
    }

    #[cold]
    fn tick_deadline(&self, now: Instant, span: Duration) -> Instant {
        let tick = self.clock_granularity.as_ps();
        let ticks = span.as_ps().div_ceil(tick).max(1);
        let current = now.as_ps() / tick;
        Instant::from_ps(current.saturating_add(ticks).saturating_mul(tick))
    }

    /// The span from `earlier` to `now` on this host's clock.
    pub(crate) fn measured(&self, earlier: Instant, now: Instant) -> Duration {
        let tick = self.clock_granularity.as_ps();
        if tick == 0 {
            return now.since(earlier);
        }
        let ticks = (now.as_ps() / tick).saturating_sub(earlier.as_ps() / tick);
        Duration::from_ps(ticks.max(1).saturating_mul(tick))
    }

    /// A span that ends `now`, on this host's clock.
    #[inline]
    pub(crate) fn ticked(&self, now: Instant, span: Duration) -> Duration {
        if self.clock_granularity.is_zero() {
            return span;
        }
        self.measured(Instant::from_ps(now.as_ps().saturating_sub(span.as_ps())), now)
    }

    /// The reading of the timestamp clock (RFC 7323, section 5.4: a tick of 1 ms to 1 s): milliseconds, or
    /// the ticks of a coarser clock. Starts at 1, since some receivers read an echo of 0 as none.
    #[inline]
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        // Two readings a segment: a constant divisor takes no division.
        let time = now.since(Instant::ZERO);
        let ticks = if self.clock_granularity.is_zero() { time.as_ms() } else { self.coarse_ticks(time) };
        (ticks as u32).wrapping_add(1)
    }

    #[cold]
    #[inline(never)]
    fn coarse_ticks(&self, time: Duration) -> u64 {
        time / self.timestamp_tick()
    }

    /// The round trip by a timestamp echo.
    #[inline]
    pub(crate) fn echoed(&self, ticks: Option<NonZeroU32>) -> Option<Duration> {
        ticks.map(|ticks| self.timestamp_tick().saturating_mul(u64::from(ticks.get())))
    }

    /// The tick of the timestamp clock.
    #[inline]
    pub(crate) fn timestamp_tick(&self) -> Duration {
        self.clock_granularity.clamp(Duration::from_ms(1), Duration::from_s(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BSD's timers: three ticks of 500 ms, set 700 ms in, end at the tick of 2 s.
    #[test]
    fn a_coarse_clock_fires_at_its_ticks_and_measures_in_them() {
        let timers = TimerConfig { clock_granularity: Duration::from_ms(500), ..TimerConfig::default() };
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        assert_eq!(timers.deadline(at(700), Duration::from_ms(1500)), at(2000));
        assert_eq!(timers.deadline(at(700), Duration::from_ms(1)), at(1000));
        assert_eq!(timers.measured(at(700), at(1100)), Duration::from_ms(500));
        assert_eq!(timers.measured(at(700), at(800)), Duration::from_ms(500), "a round trip takes a tick at least");
    }
}

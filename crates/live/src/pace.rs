//! The times at which a loop that carries packets is awake, so as to be punctual, and at which it must rest.
//!
//! A real-time thread that never sleeps is stopped by the kernel for what is left of each period
//! (`kernel.sched_rt_runtime_us` of `kernel.sched_rt_period_us`, 950 of 1000 ms; since Linux 6.12
//! also by the fair server, where others wait): 50 ms in one piece. [`Rest`] measures the time on
//! the processor and sleeps for a fraction of a millisecond at a time instead.
//!
//! Staying awake before each departure costs a constant time for each: nothing on a slow line, all
//! of a processor on a fast one, where departures lie closer together than that. [`Spin`] keeps to
//! a share of the time.

use std::{fs, thread};

use lastmile_units::{Duration, Instant};

use crate::error::{Context, Error};
use crate::sys::wait;

/// The share of the kernel's budget for real-time threads that a program leaves to others.
const RESERVE_PERMILLE: u64 = 50;
/// A kernel that gives less has no use for real-time threads that carry packets.
const LEAST_PERMILLE: u64 = 500;

/// How hard to try to be on time.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Stay awake for this long before each departure: more punctual, and costs CPU time. Zero: sleep until it is due.
    pub spin: Duration,
    /// The largest share of the time, in percent, that the program stays awake for `spin`. Where departures are so
    /// close that more is needed, some are late by a wake-up. 100: no limit.
    pub spin_percent: u8,
    /// Stay awake for this long after each packet too, so that the next need not wake anybody up.
    /// Zero: not. Where packets carry no receive stamp, waking up is what delays them most.
    pub awake: Duration,
    /// Run before every ordinary thread (`SCHED_FIFO`).
    pub realtime: bool,
}

/// Awake in time where there is another processor for all else, for a twentieth of the time at
/// most; asleep when nothing is due; ordinary priority.
impl Default for Tuning {
    fn default() -> Self {
        let spin = if several_processors() { Self::WAKE_UP } else { Duration::ZERO };
        Self { spin, spin_percent: Self::SPIN_PERCENT, awake: Duration::ZERO, realtime: false }
    }
}

fn several_processors() -> bool {
    thread::available_parallelism().is_ok_and(|count| count.get() > 1)
}

impl Tuning {
    /// Wake-ups that are asked for come late by less than this, but for one in a hundred (a virtual
    /// machine, timer slack of a nanosecond: 46 microseconds in the median).
    const WAKE_UP: Duration = Duration::from_us(150);

    /// The default share of a processor for punctuality: all that lines below 5 Mbit/s need.
    const SPIN_PERCENT: u8 = 5;

    /// A pace that is awake for `spin` before each departure if that is given, whatever it costs.
    #[must_use]
    pub fn with_spin(self, spin: Option<Duration>) -> Self {
        match spin {
            Some(spin) => Self { spin, spin_percent: 100, ..self },
            None => self,
        }
    }

    /// The default time for which a measured emulated line stays awake after a packet: from one ping to the next
    /// at five a second, where there is another processor for all else.
    #[must_use]
    pub fn awake_between_packets() -> Duration {
        if several_processors() { Duration::from_ms(250) } else { Duration::ZERO }
    }

    /// Without real-time priority where the kernel refuses it: root alone is not enough in some containers.
    #[must_use]
    pub fn as_allowed(self) -> Self {
        // The priority ends with the thread that tries it.
        let tried = || thread::scope(|scope| scope.spawn(|| wait::run_first().is_ok()).join().unwrap_or(false));
        Self { realtime: self.realtime && Pace::new(self).is_ok() && tried(), ..self }
    }

    /// Gives the calling thread punctual timers and, if asked for, a higher priority. It keeps both.
    ///
    /// # Errors
    /// The kernel refuses the priority.
    pub fn apply(&self) -> Result<(), Error> {
        wait::wake_punctually().context(|| "setting the timer slack")?;
        if self.realtime {
            wait::run_first().context(|| "running with real-time priority")?;
        }
        Ok(())
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) tuning: Tuning,
    pub(crate) spin: Spin,
    rest: Option<Rest>,
}

impl Pace {
    /// # Errors
    /// Real-time priority is asked for, and the kernel gives such threads too little time.
    pub(crate) fn new(tuning: Tuning) -> Result<Self, Error> {
        let rest = if tuning.realtime { Some(Rest::new(allowed_permille(&budget())?)) } else { None };
        Ok(Self { tuning, spin: Spin::new(tuning.spin, tuning.spin_percent), rest })
    }

    /// Sleeps, if it is time for that.
    pub(crate) fn rest(&mut self, now: Instant) -> Result<(), Error> {
        let Some(rest) = self.rest.as_mut().filter(|rest| rest.is_due(now)) else { return Ok(()) };
        let used = wait::thread_time();
        if let Some(owed) = rest.owed(now, used) {
            wait::readable::<0>([], Some(crate::clock::std_span(owed))).context(|| "resting")?;
        }
        Ok(())
    }
}

/// The kernel's budget: microseconds for real-time threads, and their period. `None` where the kernel does not say.
fn budget() -> [Option<i64>; 2] {
    ["runtime", "period"]
        .map(|name| fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?.trim().parse().ok())
}

/// The share of the time that the loop may be awake, in thousandths.
fn allowed_permille(budget: &[Option<i64>; 2]) -> Result<u64, Error> {
    // Without a limit of its own (-1) a newer kernel has the fair server's.
    let usual = 950;
    let given = match *budget {
        [Some(runtime), Some(period)] if runtime >= 0 && period > 0 => {
            u64::try_from(runtime.saturating_mul(1000) / period).unwrap_or(usual).min(usual)
        }
        _ => usual,
    };
    if given < LEAST_PERMILLE {
        let [runtime_us, period_us] = budget.map(Option::unwrap_or_default);
        return Err(Error::NoRealtimeBudget { runtime_us, period_us });
    }
    Ok(given - RESERVE_PERMILLE)
}

/// Keeps the time on the processor below a share.
#[derive(Clone, Copy, Debug)]
struct Rest {
    permille: u64,
    /// The time of the last measurement, and the start of the window that is measured, with the
    /// processor time at that start.
    looked: Instant,
    since: Option<(Instant, Duration)>,
}

impl Rest {
    /// A thread that has not rested is measured so often.
    const LOOK: Duration = Duration::from_ms(1);
    /// Time that was not used is kept for so long.
    const WINDOW: Duration = Duration::from_ms(50);

    fn new(permille: u64) -> Self {
        Self { permille, looked: Instant::ZERO, since: None }
    }

    fn is_due(&self, now: Instant) -> bool {
        now.since(self.looked) >= Self::LOOK
    }

    /// The sleep that is due after `used` time on the processor.
    fn owed(&mut self, now: Instant, used: Duration) -> Option<Duration> {
        self.looked = now;
        let (since, before) = *self.since.get_or_insert((now, used));
        let elapsed = now.since(since);
        if elapsed >= Self::WINDOW {
            self.since = Some((now, used));
        }
        let needed = Duration::from_ps(used.saturating_sub(before).as_ps() / self.permille * 1000);
        (needed > elapsed).then(|| needed - elapsed)
    }
}

/// Keeps the time of staying awake before departures to a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    span: Duration,
    percent: u8,
    credit: Duration,
    at: Instant,
    /// The departure that is being waited for awake.
    paid: Option<Instant>,
}

impl Spin {
    /// Spans that a burst of departures after a silence may use.
    const SAVED: u64 = 20;

    fn new(span: Duration, percent: u8) -> Self {
        Self { span, percent, credit: span * Self::SAVED, at: Instant::ZERO, paid: None }
    }

    /// The time before the departure `due` at which to be awake.
    pub(crate) fn before(&mut self, now: Instant, due: Instant) -> Duration {
        if self.span.is_zero() || self.percent >= 100 {
            return self.span;
        }
        let earned = Duration::from_ps(now.since(self.at).as_ps() / 100 * u64::from(self.percent));
        self.credit = (self.credit + earned).min(self.span * Self::SAVED);
        self.at = now;
        let left = due.since(now);
        if left.is_zero() || self.paid == Some(due) {
            return self.span;
        }
        if left > self.span {
            // Asleep until then, and asked again.
            return if self.credit >= self.span { self.span } else { Duration::ZERO };
        }
        if self.credit < left {
            return Duration::ZERO;
        }
        self.credit -= left;
        self.paid = Some(due);
        self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    /// Departures every `gap_us` for a second, on a machine that wakes up 50 us late: how many were
    /// waited for awake, and for how long.
    fn spun(gap_us: u64, percent: u8) -> (u64, Duration) {
        let mut spin = Spin::new(Duration::from_us(150), percent);
        let (mut count, mut time) = (0, Duration::ZERO);
        let mut now = at(1_000_000);
        for due in (1..=1_000_000 / gap_us).map(|number| at(1_000_000 + number * gap_us)) {
            let early = spin.before(now, due);
            if due.since(now) > early {
                now = Instant::from_ps((due + Duration::from_us(50)).as_ps() - early.as_ps());
            }
            if !spin.before(now, due).is_zero() && due > now {
                count += 1;
                time += due.since(now);
            }
            now = now.max(due);
        }
        (count, time)
    }

    /// 512 kbit/s: 26.5 ms a packet. 100 Mbit/s: 120 us a packet, of which 150 us would be all.
    #[test]
    fn slow_lines_are_punctual_and_fast_ones_cost_a_share_of_a_processor() {
        let (count, _) = spun(26_500, 5);
        assert_eq!(count, 37, "all of them");
        let (_, time) = spun(120, 5);
        assert!(time <= Duration::from_ms(53) && time > Duration::from_ms(30), "{time}");
        let (count, time) = spun(120, 100);
        assert!(count > 8_000 && time > Duration::from_ms(400), "{count} {time}: as asked for");
    }

    /// A thread that never sleeps by itself, for three seconds.
    #[test]
    fn a_thread_that_spins_rests_in_small_pieces_and_keeps_below_its_share() {
        let mut rest = Rest::new(900);
        let (mut now, mut used) = (at(1_000_000), Duration::ZERO);
        let (begin, mut longest) = (now, Duration::ZERO);
        while now.since(begin) < Duration::from_s(3) {
            now += Duration::from_us(10);
            used += Duration::from_us(10);
            if rest.is_due(now)
                && let Some(owed) = rest.owed(now, used)
            {
                longest = longest.max(owed);
                now += owed;
            }
        }
        let share = used.as_secs_f64() / now.since(begin).as_secs_f64();
        assert!(share < 0.902 && share > 0.88, "{share}");
        assert!(longest < Duration::from_us(300), "{longest}");
    }

    #[test]
    fn the_kernels_budget_is_kept_with_a_reserve_or_it_is_too_small() {
        assert_eq!(allowed_permille(&[Some(950_000), Some(1_000_000)]).ok(), Some(900));
        assert_eq!(allowed_permille(&[Some(700_000), Some(1_000_000)]).ok(), Some(650));
        assert_eq!(allowed_permille(&[Some(-1), Some(1_000_000)]).ok(), Some(900));
        assert_eq!(allowed_permille(&[None, None]).ok(), Some(900));
        let refused = allowed_permille(&[Some(0), Some(1_000_000)]).unwrap_err();
        assert!(refused.to_string().contains("0 of every 1000000 us") && refused.hint().is_some(), "{refused}");
    }
}

//! The loop of a live program: waits for packets of two ports, for the next departure and for
//! whatever else may end the wait.

use std::os::fd::BorrowedFd;
use std::thread;

use lastmile_units::{Duration, Instant};

use crate::bump::Bump;
use crate::clock::{Clock, MonotonicClock, std_span};
use crate::error::{Context, Error};
use crate::io::Device;
use crate::pace::Pace;
use crate::sys::wait;

/// How hard to try to be on time.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Stay awake for this long before each departure: more punctual, and costs CPU time. Zero: sleep until it is due.
    pub spin: Duration,
    /// Of the time, at most this part in staying awake so: where departures follow one another
    /// closely, some come late by a wake-up instead. 100: no limit.
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

/// How often ports are asked for packets where nothing comes: only then a packet socket notices
/// that its device was removed after it went down.
const LOOK: Duration = Duration::from_s(1);

/// Why the loop came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The watched descriptor of this index is readable.
    Watched(usize),
    /// The time was up.
    Time,
}

/// Carries packets between the ports until one of `watched` is readable or it is `until`. Packets
/// that have arrived when a watched descriptor becomes readable are left for the next call.
pub(crate) fn carry(
    bump: &mut Bump,
    clock: &MonotonicClock,
    pace: &mut Pace,
    [a, b]: [&mut dyn Device; 2],
    watched: [Option<BorrowedFd<'_>>; 3],
    until: Option<Instant>,
) -> Result<Woken, Error> {
    let mut latest = None;
    let tuning = pace.tuning;
    loop {
        pace.rest(clock.now())?;
        let now = clock.now();
        if until.is_some_and(|until| until <= now) {
            return Ok(Woken::Time);
        }
        let departure = bump.next_wake().map(|due| due.since(now).saturating_sub(pace.spin.before(now, due)));
        let end = until.map(|until| until.since(now));
        let awake = latest.filter(|latest| now.since(*latest) < tuning.awake).map(|_| Duration::ZERO);
        let timeout = [departure, end, awake, Some(LOOK)].into_iter().flatten().min();
        let [first, second, third] = watched;
        let ready = wait::readable([first, second, third, Some(a.as_fd()), Some(b.as_fd())], timeout.map(std_span))
            .context(|| "waiting for packets")?;
        if let Some(index) = ready[..watched.len()].iter().position(|&ready| ready) {
            return Ok(Woken::Watched(index));
        }
        let packets_wait = ready[watched.len()..].contains(&true);
        if packets_wait && !tuning.awake.is_zero() {
            latest = Some(clock.now());
        } else if awake.is_some() && departure != Some(Duration::ZERO) {
            // Nothing came and nothing is due.
            continue;
        }
        bump.turn(clock, a, b).context(|| "reading packets")?;
    }
}

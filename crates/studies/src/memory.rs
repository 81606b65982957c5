//! Memory of simulations: estimated before they begin, and checked while they run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use lastmile_model::Network;
use lastmile_model::outcome::Outcome;
use lastmile_scenario::{Diagnostic, Need, Report, Scenario};
use lastmile_sim::Simulation;
use lastmile_sim::memory::{Held, Holder};
use lastmile_units::ByteCount;

use crate::error::Error;

/// The expected need from which a command reports it before it begins.
const WORTH_TELLING: u64 = 1 << 30;
/// Bytes of a sample of a series.
const SAMPLE: u64 = 16;

/// The memory of several runs together.
#[derive(Debug)]
pub struct Memory {
    limit: u64,
    /// Resident memory of the process before the runs, such as that of a notebook's data.
    before: u64,
    /// The option that grants more, such as `--memory`.
    option: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The memory of each run.
    runs: BTreeMap<usize, Share>,
    /// Set when the limit is exceeded: every run ends.
    passed: Option<Error>,
}

/// The memory of a run.
#[derive(Debug)]
struct Share {
    bytes: u64,
    /// The largest part of it, in words, and a setting with a smaller need.
    most: Option<(u64, String, &'static str)>,
}

/// The run must end, because the limit is exceeded. [`Memory::outcome`] has the reason.
#[derive(Debug)]
pub struct Passed;

impl Memory {
    /// A limit without runs, and the option by which a user grants more.
    #[must_use]
    pub fn new(limit: ByteCount, option: &'static str) -> Self {
        Self { limit: limit.as_u64(), before: resident().unwrap_or(0), option, state: Mutex::default() }
    }

    /// No limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(ByteCount::new(u64::MAX), "")
    }

    /// Refuses runs that need too much, and returns a large need in words. Stored results count for all runs,
    /// the rest for the number of concurrent runs.
    ///
    /// # Errors
    /// The runs need more than the limit.
    pub fn admit(&self, scenarios: &[Scenario], threads: Option<NonZeroUsize>) -> Result<Option<String>, Error> {
        let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let sum =
            |needs: &mut dyn Iterator<Item = &Need>| needs.fold(0_u64, |sum, need| sum.saturating_add(need.bytes));
        let kept = |scenario: &Scenario| sum(&mut scenario.needs().iter().filter(|need| need.is_kept));
        let mut passing: Vec<u64> =
            scenarios.iter().map(|one| sum(&mut one.needs().iter().filter(|need| !need.is_kept))).collect();
        passing.sort_unstable_by(|a, b| b.cmp(a));
        let all = scenarios.iter().map(kept).chain(passing.into_iter().take(threads));
        let need = all.fold(0_u64, u64::saturating_add);
        let largest = scenarios.iter().flat_map(Scenario::needs).max_by_key(|need| need.bytes);
        let runs = if scenarios.len() == 1 { String::new() } else { format!(" in {} runs", scenarios.len()) };
        self.admit_need(need, largest, &runs)
    }

    /// As [`Memory::admit`], for runs that leave nothing in memory: `largest` has the needs of those with the largest
    /// ones, at most one for each concurrent run.
    ///
    /// # Errors
    /// The runs need more than the limit.
    pub fn admit_in_turn(&self, largest: &[Vec<Need>]) -> Result<Option<String>, Error> {
        let all = largest.iter().flatten();
        let need = all.clone().fold(0_u64, |sum, need| sum.saturating_add(need.bytes));
        let runs = if largest.len() < 2 { String::new() } else { format!(" in {} concurrent runs", largest.len()) };
        self.admit_need(need, all.max_by_key(|need| need.bytes), &runs)
    }

    /// Refuses a need above the limit, whose largest part is `largest`.
    fn admit_need(&self, need: u64, largest: Option<&Need>, runs: &str) -> Result<Option<String>, Error> {
        if need <= self.limit {
            return Ok((need >= WORTH_TELLING).then(|| format!("memory: at least {}", amount(need))));
        }
        let Some(Need { what, bytes, key, place, hint, .. }) = largest else { return Ok(None) };
        let message = format!(
            "{key}: {what} need {}; all together{runs} {}, and simulations may take {}",
            amount(*bytes),
            amount(need),
            amount(self.limit)
        );
        let hint = format!("{hint}; or grant more with {}", self.option);
        Err(Error::Report(Report::of(Diagnostic::error(place.clone(), message).about(key.clone()).hint(hint))))
    }

    /// Checks the memory of a run.
    ///
    /// # Errors
    /// The runs hold more than the limit.
    pub fn look(&self, run: usize, network: &Network, simulation: &Simulation<'_>) -> Result<(), Passed> {
        let held = simulation.held();
        let most =
            held.iter().max_by_key(|held| held.bytes).map(|most| (most.bytes, words(most, network), remedy(most)));
        let bytes = held.iter().map(|held| held.bytes).fold(0, u64::saturating_add);
        let mut state = self.state();
        state.runs.insert(run, Share { bytes, most });
        if state.passed.is_some() {
            return Err(Passed);
        }
        let counted = state.runs.values().fold(0_u64, |sum, share| sum.saturating_add(share.bytes));
        // Memory that is not counted shows in the growth of the process.
        let grown = resident().unwrap_or(0).saturating_sub(self.before);
        let taken = counted.max(grown);
        if taken <= self.limit {
            return Ok(());
        }
        let largest = state.runs.values().filter_map(|share| share.most.as_ref()).max_by_key(|(bytes, ..)| *bytes);
        let (part, remedy) = largest.map_or((String::new(), "a shorter duration"), |(bytes, words, remedy)| {
            let share = if *bytes > taken / 2 { "most of it" } else { "the largest known part" };
            (format!("; {share}, {}: {words}", amount(*bytes)), *remedy)
        });
        let holds = if grown > counted {
            format!("the process has grown by {} since simulations began, and", amount(grown))
        } else {
            format!("simulations hold {}, and", amount(counted))
        };
        let message = format!(
            "out of memory after {} of simulated time: {holds} may take {}{part}",
            simulation.now(),
            amount(self.limit)
        );
        state.passed = Some(Error::new(message).hint(format!("{remedy}; or grant more with {}", self.option)));
        Err(Passed)
    }

    /// Records that a run has ended, and the memory of its results.
    pub fn keep(&self, run: usize, outcome: &Outcome) {
        let samples: u64 = outcome.series.iter().map(|series| series.points.len() as u64).sum();
        self.state().runs.insert(run, Share { bytes: samples * SAMPLE, most: None });
    }

    /// Records that the results of a run have left the memory.
    pub fn forget(&self, run: usize) {
        self.state().runs.remove(&run);
    }

    /// Nothing, unless the runs ended for lack of memory.
    ///
    /// # Errors
    /// The part that took most of the memory.
    pub fn outcome(&self) -> Result<(), Error> {
        self.state().passed.clone().map_or(Ok(()), Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The held objects, with the names of links.
fn words(held: &Held, network: &Network) -> String {
    let Held { holder, count, .. } = held;
    let name = |link: usize| &network.links[link].hop.name;
    match *holder {
        Holder::Queue(link) => format!("{count} packets wait in the queue of link \"{}\"", name(link)),
        Holder::Wire(link) => format!("{count} packets are on the wire of link \"{}\"", name(link)),
        Holder::Cells => format!("{count} packets wait at virtual channels, or are cells"),
        Holder::Series => format!("{count} samples of series"),
        Holder::Probes => format!("{count} replies to pings and web users"),
        Holder::Flows => format!("{count} flows"),
        Holder::Snapshots => format!("{count} entries for flows and links at changes of the traffic"),
    }
}

/// A setting with a smaller need.
fn remedy(held: &Held) -> &'static str {
    match held.holder {
        Holder::Queue(_) => "a smaller limit of that queue, less traffic, or a shorter duration",
        Holder::Wire(_) => "a lower rate or a shorter delay of that link",
        Holder::Cells => "less traffic, faster virtual channels, or a shorter duration",
        Holder::Series => "a longer record.interval, or record.series = false",
        Holder::Probes => "a longer interval, or a shorter duration",
        Holder::Flows => "fewer flows",
        Holder::Snapshots => "a smaller record.flows",
    }
}

/// Resident memory of the process: the second number of proc_pid_statm(5), in pages.
fn resident() -> Option<u64> {
    /// The page size of nearly all machines that lastmile runs on; with larger pages the limit is
    /// noticed slightly later.
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split(' ').nth(1)?.parse::<u64>().ok()? * PAGE)
}

/// An amount such as `3.2 GiB`.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
fn amount(bytes: u64) -> String {
    let unit = |name: &str, size: u64| format!("{:.3} {name}", bytes as f64 / size as f64);
    match bytes {
        0..0x10_0000 => unit("KiB", 1 << 10),
        0x10_0000..0x4000_0000 => unit("MiB", 1 << 20),
        _ => unit("GiB", 1 << 30),
    }
}

//! How much memory simulations may take together: counted before they begin, and watched while they go on.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use clap::Args;
use lastmile_model::Network;
use lastmile_model::outcome::Outcome;
use lastmile_scenario::{Diagnostic, Need, Report, Scenario};
use lastmile_sim::Simulation;
use lastmile_sim::memory::{Held, Holder};
use lastmile_units::ByteCount;

use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// From so much on, what a command will need is told before it begins.
const WORTH_TELLING: u64 = 1 << 30;
/// A sample of a series.
const SAMPLE: u64 = 16;

/// What the user grants.
#[derive(Args, Clone, Debug)]
pub(crate) struct Grant {
    /// Memory that the simulations may take together; what would need more is refused, and what comes to need more is ended
    #[arg(long, value_name = "SIZE", default_value = "4 GiB")]
    memory: ByteCount,
}

impl Default for Grant {
    fn default() -> Self {
        Self { memory: ByteCount::new(4 << 30) }
    }
}

/// The memory of all simulations of a command.
pub(crate) struct Memory {
    limit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By run: what it holds.
    runs: BTreeMap<usize, Share>,
    /// The limit is passed: every run ends.
    passed: Option<Failure>,
}

/// What a run holds.
struct Share {
    bytes: u64,
    /// The largest part of it, in words, and what would be less.
    most: Option<(u64, String, &'static str)>,
}

/// The run is to end, since the limit is passed. [`Memory::outcome`] tells why.
#[derive(Debug)]
pub(crate) struct Passed;

impl Memory {
    /// All that is granted.
    pub(crate) fn new(grant: &Grant) -> Self {
        Self { limit: grant.memory.as_u64(), state: Mutex::default() }
    }

    /// Refuses runs that need too much, and tells of those that need a lot. What is kept of each is counted for all, the rest for so many
    /// as run at a time.
    pub(crate) fn admit(
        &self,
        scenarios: &[Scenario],
        threads: Option<NonZeroUsize>,
        printer: &mut Printer,
    ) -> Result<()> {
        let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let sum =
            |needs: &mut dyn Iterator<Item = &Need>| needs.fold(0_u64, |sum, need| sum.saturating_add(need.bytes));
        let kept = |scenario: &Scenario| sum(&mut scenario.needs().iter().filter(|need| need.is_kept));
        let mut passing: Vec<u64> =
            scenarios.iter().map(|one| sum(&mut one.needs().iter().filter(|need| !need.is_kept))).collect();
        passing.sort_unstable_by(|a, b| b.cmp(a));
        let all = scenarios.iter().map(kept).chain(passing.into_iter().take(threads));
        let need = all.fold(0_u64, u64::saturating_add);
        if need <= self.limit {
            if need >= WORTH_TELLING {
                printer.talk(&format!("memory: at least {}", amount(need)));
            }
            return Ok(());
        }
        let largest = scenarios.iter().flat_map(Scenario::needs).max_by_key(|need| need.bytes);
        let Some(Need { what, bytes, key, place, hint, .. }) = largest else { return Ok(()) };
        let runs = if scenarios.len() == 1 { String::new() } else { format!(" in {} runs", scenarios.len()) };
        let message = format!(
            "{key}: {what} need {}; all together{runs} {}, and simulations may take {}",
            amount(*bytes),
            amount(need),
            amount(self.limit)
        );
        let hint = format!("{hint}; or grant more with --memory");
        Err(Failure::Report(Report::of(Diagnostic::error(place.clone(), message).about(key.clone()).hint(hint))))
    }

    /// Looks at what a run holds.
    pub(crate) fn look(
        &self,
        run: usize,
        network: &Network,
        simulation: &Simulation<'_>,
    ) -> std::result::Result<(), Passed> {
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
        // What is not counted is seen at last by what the process takes.
        let taken = counted.max(resident().unwrap_or(0));
        if taken <= self.limit {
            return Ok(());
        }
        let largest = state.runs.values().filter_map(|share| share.most.as_ref()).max_by_key(|(bytes, ..)| *bytes);
        let (part, remedy) = largest.map_or((String::new(), "a shorter duration"), |(bytes, words, remedy)| {
            (format!("; most of it, {}: {words}", amount(*bytes)), *remedy)
        });
        let message = format!(
            "out of memory after {} of simulated time: simulations hold {}, and may take {}{part}",
            simulation.now(),
            amount(taken),
            amount(self.limit)
        );
        state.passed = Some(Failure::new(message).hint(format!("{remedy}; or grant more with --memory")));
        Err(Passed)
    }

    /// A run is over, and this is kept of it.
    pub(crate) fn keep(&self, run: usize, outcome: &Outcome) {
        let samples: u64 = outcome.series.iter().map(|series| series.points.len() as u64).sum();
        self.state().runs.insert(run, Share { bytes: samples * SAMPLE, most: None });
    }

    /// Why the runs ended, if it was for want of memory.
    pub(crate) fn outcome(&self) -> Result<()> {
        self.state().passed.take().map_or(Ok(()), Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is held, with the names of links.
fn words(held: &Held, network: &Network) -> String {
    let Held { holder, count, .. } = held;
    let name = |link: usize| &network.links[link].name;
    match *holder {
        Holder::Queue(link) => format!("{count} packets wait in the queue of link \"{}\"", name(link)),
        Holder::Wire(link) => format!("{count} packets are on the wire of link \"{}\"", name(link)),
        Holder::Cells => format!("{count} packets wait at virtual channels, or are cells"),
        Holder::Series => format!("{count} samples of series"),
        Holder::Probes => format!("{count} replies to pings and web users"),
        Holder::Flows => format!("{count} flows"),
        Holder::Snapshots => format!("{count} entries of what flows and links had done when the traffic changed"),
    }
}

/// What would hold less.
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

/// What the process has in memory: the second number of proc_pid_statm(5), in pages.
fn resident() -> Option<u64> {
    /// Of all machines that lastmile runs on but few; with larger pages the limit is found a little late.
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split(' ').nth(1)?.parse::<u64>().ok()? * PAGE)
}

/// `3.2 GiB`.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
fn amount(bytes: u64) -> String {
    let unit = |name: &str, size: u64| format!("{:.3} {name}", bytes as f64 / size as f64);
    match bytes {
        0..0x10_0000 => unit("KiB", 1 << 10),
        0x10_0000..0x4000_0000 => unit("MiB", 1 << 20),
        _ => unit("GiB", 1 << 30),
    }
}

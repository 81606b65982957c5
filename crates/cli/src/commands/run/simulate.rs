//! One run: advances simulated time in steps, shows a progress bar on a terminal, and checks for
//! signals.

use std::path::Path;
use std::time::Instant as WallClock;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lastmile_model::Network;
use lastmile_results::schema::{Document, Inputs, Timing};
use lastmile_results::{Origin, Run, Series, summarise};
use lastmile_scenario::Scenario;
use lastmile_scenario::file::{self, Reading};
use lastmile_sim::{Advance, Simulation};
use lastmile_units::Instant;

use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::memory::Memory;

use super::arguments::Arguments;
use super::capture::Captures;
use super::variants::{Variant, pairs};

/// Steps of a run: the progress bar moves after each.
const STEPS: u64 = 1000;
/// Events and packets between checks for signals: about a millisecond of work.
const WORK: u64 = 4096;
/// Events and packets between checks of memory. They take far less than a gigabyte.
const MEMORY_WORK: u64 = 1 << 18;

/// State that the runs of a command share.
pub(super) struct Shared<'a> {
    pub(super) interrupt: &'a Interrupt,
    pub(super) memory: &'a Memory,
    pub(super) bars: &'a MultiProgress,
}

/// A finished run, and its files that are not yet written.
pub(in crate::commands) struct Done {
    pub(in crate::commands) run: Run,
    pub(super) timing: Timing,
    /// Complete captures without their final names.
    pub(super) captures: Option<Captures>,
}

impl Done {
    /// The document that `--json` prints for the run.
    pub(in crate::commands) fn document(&self) -> Document<'_> {
        Document { summary: &self.run.summary, timing: Some(self.timing) }
    }

    /// The run, after its captures have got their final names.
    pub(in crate::commands) fn into_run(self) -> Result<Run> {
        if let Some(captures) = self.captures {
            captures.commit()?;
        }
        Ok(self.run)
    }

    /// The speed of the run, in words.
    pub(super) fn speed(&self) -> String {
        let Timing { wall_s, events_per_s, .. } = self.timing;
        let label = if self.run.label.is_empty() { String::new() } else { format!("{}: ", self.run.label) };
        let (simulated, millions) = (self.run.summary.run.duration_s, events_per_s / 1e6);
        format!("{label}{simulated} s simulated in {wall_s:.3} s, {millions:.1} million events/s")
    }
}

/// Why a run ended early.
pub(super) enum Early {
    /// A signal, with the exit code.
    Signal(Exit),
    /// Lack of memory; [`Memory::outcome`] has the reason.
    Memory,
}

/// Simulates `scenario` as the run of this number.
pub(super) fn simulate(
    arguments: &Arguments,
    (number, variant): (usize, &Variant),
    scenario: &Scenario,
    directory: Option<&Path>,
    shared: &Shared<'_>,
) -> Result<std::result::Result<Done, Early>> {
    let network = scenario.network_ref();
    let captures = match directory {
        Some(directory) if !arguments.files.capture.is_empty() => {
            Some(Captures::create(directory, network, &arguments.files.capture, arguments.files.whole_packets)?)
        }
        _ => None,
    };
    let started = WallClock::now();
    let sink = captures.as_ref().map(Captures::sink);
    let mut simulation = Simulation::new(network, sink).map_err(Failure::new)?;
    let progress = shared.bars.add(progress(variant));
    let ended = advance((number, network), &mut simulation, captures.as_ref(), shared, &progress);
    progress.finish_and_clear();
    if let Err(early) = ended? {
        return Ok(Err(early));
    }
    let outcome = simulation.finish();
    shared.memory.keep(number, &outcome);
    let wall_s = started.elapsed().as_secs_f64();

    let origin = origin(&arguments.scenario, variant, scenario);
    let summary = summarise(&origin, network, &outcome);
    let rate = |amount: f64| if wall_s > 0.0 { amount / wall_s } else { 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "for printing")]
    let timing = Timing {
        wall_s,
        events_per_s: rate(outcome.events as f64),
        speed: rate(outcome.duration.as_secs_f64()),
        memory_bytes: peak_memory(),
    };
    let series = outcome.series.iter().map(Series::from).collect();
    let run = Run { label: variant.label.clone(), own: pairs(&variant.own), summary, series };
    Ok(Ok(Done { run, timing, captures }))
}

/// Runs the simulation of this number to the end of its duration.
fn advance(
    (number, network): (usize, &Network),
    simulation: &mut Simulation<'_>,
    captures: Option<&Captures>,
    shared: &Shared<'_>,
    progress: &ProgressBar,
) -> Result<std::result::Result<(), Early>> {
    // The first check measures the memory of the network itself.
    let mut unseen = MEMORY_WORK;
    for step in 1..=STEPS {
        loop {
            let came = simulation.advance_by(part(network, step), WORK);
            if let Some(exit) = shared.interrupt.requested() {
                return Ok(Err(Early::Signal(exit)));
            }
            unseen += WORK;
            if unseen >= MEMORY_WORK {
                unseen = 0;
                if shared.memory.look(number, network, simulation).is_err() {
                    return Ok(Err(Early::Memory));
                }
                captures.map_or(Ok(()), Captures::check)?;
            }
            if came == Advance::Reached {
                break;
            }
        }
        progress.set_position(step);
    }
    Ok(Ok(()))
}

/// The time at which `step` of [`STEPS`] ends.
fn part(network: &Network, step: u64) -> Instant {
    let ps = u128::from(network.duration.as_ps()) * u128::from(step) / u128::from(STEPS);
    Instant::from_ps(u64::try_from(ps).expect("a part of a duration is no longer than it"))
}

fn progress(variant: &Variant) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {percent:>3} %  {eta} left")
        .expect("the template is a constant")
        .progress_chars("━━ ");
    let message =
        if variant.label.is_empty() { "simulating".to_owned() } else { format!("simulating {}", variant.label) };
    ProgressBar::new(STEPS).with_style(style).with_message(lastmile_text::shown::line(&message).into_owned())
}

/// The origin of a run of the scenario in `file`.
pub(in crate::commands) fn origin(path: &Path, variant: &Variant, scenario: &Scenario) -> Origin {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Origin {
        scenario: scenario.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: Inputs { file: name, set: pairs(&variant.overrides), text: file::read(path, Reading::Again).ok() },
    }
}

/// Largest resident memory of this process so far: `VmHWM` of proc_pid_status(5). `None` if the
/// system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

//! One run: simulated time advances in slices, between which the caller looks for signals and shows progress.
//!
//! Pauses between slices do not change the result. A slice is about a millisecond of work.

use std::path::Path;
use std::time::Instant as WallClock;

use lastmile_model::outcome::Outcome;
use lastmile_model::{BuildError, Network, Observer};
use lastmile_packet::Meta;
use lastmile_results::schema::{Document, Inputs, Timing};
use lastmile_results::{Origin, Run, Series, summarise};
use lastmile_scenario::Scenario;
use lastmile_scenario::file::{self, Reading};
use lastmile_sim::{Advance, Simulation};
use lastmile_units::Instant;

use crate::memory::Memory;
use crate::variant::{Variant, pairs};

/// Steps of a run: progress is reported after each.
pub const STEPS: u64 = 1000;
/// Events and packets of a slice.
const WORK: u64 = 4096;
/// Events and packets between checks of memory. They take far less than a gigabyte.
const MEMORY_WORK: u64 = 1 << 18;

/// The caller between the slices of a run.
pub trait Watch {
    /// Why the caller ends the run.
    type Stop;

    /// Called after each slice.
    ///
    /// # Errors
    /// The run must end.
    fn pause(&mut self) -> Result<(), Self::Stop>;

    /// Called after each of [`STEPS`] equal parts of the simulated time, from 1 on.
    ///
    /// # Errors
    /// The run must end.
    fn progress(&mut self, step: u64) -> Result<(), Self::Stop>;
}

/// Why a run ended early.
#[derive(Debug)]
pub enum Early<S> {
    /// The caller ended it.
    Stop(S),
    /// Lack of memory; [`Memory::outcome`] has the reason.
    Memory,
    /// The network cannot be simulated.
    Refused(BuildError),
}

/// The file of a scenario, as results record it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Input {
    /// Its name, without its folder.
    pub file: Option<String>,
    /// Its text.
    pub text: Option<String>,
}

impl Input {
    /// The file at `path`. Its text is unknown if it can be read only once.
    #[must_use]
    pub fn of_file(path: &Path) -> Self {
        Self {
            file: path.file_name().map(|name| name.to_string_lossy().into_owned()),
            text: file::read(path, Reading::Again).ok(),
        }
    }

    /// The origin of a run of this file.
    #[must_use]
    pub fn origin(&self, variant: &Variant, scenario: &Scenario) -> Origin {
        Origin {
            scenario: scenario.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            inputs: Inputs { file: self.file.clone(), set: pairs(&variant.overrides), text: self.text.clone() },
        }
    }
}

/// A run to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its number among the runs that share a limit of memory.
    pub number: usize,
    /// The file.
    pub input: &'a Input,
    /// Its label and changes.
    pub variant: &'a Variant,
    /// The file with these changes.
    pub scenario: &'a Scenario,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its results.
    pub run: Run,
    /// Its speed.
    pub timing: Timing,
}

impl Finished {
    /// The document that `--json` prints for the run.
    #[must_use]
    pub fn document(&self) -> Document<'_> {
        Document { summary: &self.run.summary, timing: Some(self.timing) }
    }

    /// The speed of the run, in words.
    #[must_use]
    pub fn speed(&self) -> String {
        let Timing { wall_s, events_per_s, .. } = self.timing;
        let label = if self.run.label.is_empty() { String::new() } else { format!("{}: ", self.run.label) };
        let (simulated, millions) = (self.run.summary.run.duration_s, events_per_s / 1e6);
        format!("{label}{simulated} s simulated in {wall_s:.3} s, {millions:.1} million events/s")
    }
}

/// Simulates `job` to its end. `sink` receives each packet.
///
/// # Errors
/// The run ended early.
pub fn simulate<S>(
    job: Job<'_>,
    sink: Option<Box<dyn Observer<Meta>>>,
    memory: &Memory,
    watch: &mut dyn Watch<Stop = S>,
) -> Result<Finished, Early<S>> {
    let started = WallClock::now();
    let outcome = outcome(job, sink, memory, watch)?;
    let wall_s = started.elapsed().as_secs_f64();
    let rate = |amount: f64| if wall_s > 0.0 { amount / wall_s } else { 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "for printing")]
    let timing = Timing {
        wall_s,
        events_per_s: rate(outcome.events.unwrap_or(0) as f64),
        speed: rate(outcome.duration.as_secs_f64()),
        memory_bytes: peak_memory(),
    };
    Ok(Finished { run: result(job, &outcome), timing })
}

/// Simulates `job` to its end where no clock is at hand.
///
/// # Errors
/// The run ended early.
pub fn simulate_untimed<S>(
    job: Job<'_>,
    memory: &Memory,
    watch: &mut dyn Watch<Stop = S>,
) -> Result<Finished, Early<S>> {
    let outcome = outcome(job, None, memory, watch)?;
    let timing = Timing { wall_s: 0.0, events_per_s: 0.0, speed: 0.0, memory_bytes: None };
    Ok(Finished { run: result(job, &outcome), timing })
}

fn outcome<S>(
    job: Job<'_>,
    sink: Option<Box<dyn Observer<Meta>>>,
    memory: &Memory,
    watch: &mut dyn Watch<Stop = S>,
) -> Result<Outcome, Early<S>> {
    let network = job.scenario.network_ref();
    let mut simulation = Simulation::new(network, sink).map_err(Early::Refused)?;
    advance((job.number, network), &mut simulation, memory, watch)?;
    let outcome = simulation.finish();
    memory.keep(job.number, &outcome);
    Ok(outcome)
}

fn result(job: Job<'_>, outcome: &Outcome) -> Run {
    let summary = summarise(&job.input.origin(job.variant, job.scenario), job.scenario.network_ref(), outcome);
    let series = outcome.series.iter().map(Series::from).collect();
    Run { label: job.variant.label.clone(), own: pairs(&job.variant.own), summary, series }
}

/// Advances the simulation of this number to the end of its duration.
fn advance<S>(
    (number, network): (usize, &Network),
    simulation: &mut Simulation<'_>,
    memory: &Memory,
    watch: &mut dyn Watch<Stop = S>,
) -> Result<(), Early<S>> {
    // The first check measures the memory of the network itself.
    let mut unseen = MEMORY_WORK;
    for step in 1..=STEPS {
        loop {
            let came = simulation.advance_by(part(network, step), WORK);
            watch.pause().map_err(Early::Stop)?;
            unseen += WORK;
            if unseen >= MEMORY_WORK {
                unseen = 0;
                memory.look(number, network, simulation).map_err(|_| Early::Memory)?;
            }
            if came == Advance::Reached {
                break;
            }
        }
        watch.progress(step).map_err(Early::Stop)?;
    }
    Ok(())
}

/// The time at which `step` of [`STEPS`] ends.
fn part(network: &Network, step: u64) -> Instant {
    let ps = u128::from(network.duration.as_ps()) * u128::from(step) / u128::from(STEPS);
    Instant::from_ps(u64::try_from(ps).expect("a part of a duration is no longer than it"))
}

/// Largest resident memory of this process so far: `VmHWM` of proc_pid_status(5). `None` if the
/// system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    const TEXT: &str = "duration = \"2 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"256 kbit/s\" }\n\
                        [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";

    /// Ends the run after this number of slices.
    struct After {
        slices: u32,
        steps: Vec<u64>,
    }

    impl Watch for After {
        type Stop = &'static str;

        fn pause(&mut self) -> Result<(), Self::Stop> {
            self.slices = self.slices.checked_sub(1).ok_or("enough")?;
            Ok(())
        }

        fn progress(&mut self, step: u64) -> Result<(), Self::Stop> {
            self.steps.push(step);
            Ok(())
        }
    }

    fn run(slices: u32) -> (Result<Finished, Early<&'static str>>, Vec<u64>) {
        let scenario = Scenario::parse("f.toml", TEXT, &[]).unwrap();
        let input = Input { file: Some("f.toml".to_owned()), text: Some(TEXT.to_owned()) };
        let variant = Variant::new("", &[], Vec::new());
        let mut watch = After { slices, steps: Vec::new() };
        let job = Job { number: 0, input: &input, variant: &variant, scenario: &scenario };
        let ended = simulate(job, None, &Memory::unlimited(), &mut watch);
        (ended, watch.steps)
    }

    #[test]
    fn every_step_is_reported_and_the_result_has_its_origin() {
        let (ended, steps) = run(u32::MAX);
        let summary = ended.unwrap().run.summary;
        assert_eq!(steps, (1..=STEPS).collect::<Vec<_>>());
        assert_eq!((summary.run.scenario.as_str(), summary.run.inputs.text.as_deref()), ("f", Some(TEXT)));
        assert!(summary.flows[0].goodput_bps > 1e6, "{}", summary.flows[0].goodput_bps);
    }

    #[test]
    fn a_run_ends_where_its_caller_wants() {
        let (ended, steps) = run(700);
        assert!(matches!(ended, Err(Early::Stop("enough"))));
        assert!(steps.len() <= 700 && steps.len() > 10, "{}", steps.len());
    }
}

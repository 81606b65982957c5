//! The runs of a study, and how they are carried out.
//!
//! Runs go to all threads of one process. With seeds until an interval is narrow, they go in rounds: every point has
//! its first seeds, then each point that is not narrow gets half as many more. The seeds of a point depend on the
//! results alone, so a study that was interrupted ends with the same runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;

use lastmile_scenario::{Override, Place, Report, Scenario};

use super::cases::CASE;
use super::measured::{is_in, may_be};
pub use super::seeds::{Seeds, Until};
use super::single_run::{Came, Stopped, one};
pub use super::single_run::{Load, Means};
use super::space::{Point, Space};
use super::store::Kept;
use super::table::{Entry, Table};
use crate::error::Error;
use crate::parallel::in_order_attended;
use crate::run::Input;
use crate::variant::Variant;

/// Seeds of each point after which a measure that no run has ends the study.
const TRIED: u64 = 4;

/// Where a study file has the value of a key, for messages.
pub type Places = BTreeMap<(String, String), Place>;

/// A scenario at many points of a space.
#[derive(Clone, PartialEq, Debug)]
pub struct Study<'a> {
    /// As results record the file.
    pub input: &'a Input,
    /// Overrides of all runs.
    pub common: &'a [Override],
    /// The points.
    pub space: &'a Space,
    /// Where a file has their values; empty without a file.
    pub places: &'a Places,
    /// The seeds of each point.
    pub seeds: &'a Seeds,
}

/// The runs of a study so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Runs that are known to be needed.
    pub runs: usize,
    /// Runs among them with a result.
    pub finished: usize,
    /// Runs among them without a result, because the simulation refused or had a fault.
    pub failed: usize,
    /// Runs that this call has simulated.
    pub simulated: usize,
}

/// A run without a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Its point, in words.
    pub point: String,
    /// Its seed.
    pub seed: u64,
    /// The reason.
    pub reason: String,
}

/// A point by its number, and a seed.
pub type Pair = (usize, u64);

/// The runs of a study in its folder.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Runs {
    /// The runs of each point, in the order of their seeds.
    pub entries: Vec<Vec<Entry>>,
    /// Runs without a result.
    pub failures: Vec<Failure>,
    /// Runs that the folder does not have, of those whose need is known.
    pub missing: Vec<Pair>,
    /// Files that were no results, in place of those of runs. A simulated run has replaced its own.
    pub damaged: Vec<PathBuf>,
    /// Their numbers.
    pub progress: Progress,
}

impl Runs {
    /// The damaged files in words, with what became of their runs; `None` without one.
    #[must_use]
    pub fn about_damaged(&self, what: &str) -> Option<String> {
        let first = self.damaged.first()?.display();
        Some(match self.damaged.len() {
            1 => format!("the damaged file of a run, {what}: {first}"),
            count => format!("the damaged files of {count} runs, {what}: {first} and others"),
        })
    }

    /// A row for each run with a result.
    #[must_use]
    pub fn table(&self, space: &Space) -> Table {
        Table::new(space, &self.entries.concat())
    }
}

/// Why a study ended early.
#[derive(Debug)]
pub enum Ended<S> {
    /// The caller ended it.
    Stop(S),
    /// An invalid point, or a run that needs too much memory.
    Wrong(Error),
    /// The folder cannot be read or written.
    Io(io::Error),
}

/// The caller between runs. An error ends the study.
pub type Attend<'a, S> = dyn FnMut(Progress) -> Result<(), S> + 'a;

impl Study<'_> {
    /// The run of `point` with a seed.
    #[must_use]
    pub fn variant(&self, point: &Point, seed: u64) -> Variant {
        let set = |(key, value): (&String, &String)| {
            if let Some(case) = self.space.cases.of(value).filter(|_| key == CASE) {
                return case.to_vec();
            }
            let pair = format!("{key}={value}");
            // Most studies have no file, and need no copies for the search.
            let place = if self.places.is_empty() { None } else { self.places.get(&(key.clone(), value.clone())) };
            vec![place.map_or_else(|| Override::set(&pair), |place| Override::at(place.clone(), pair.clone()))]
        };
        let own: Vec<Override> = self.space.keys.iter().zip(point).flat_map(set).collect();
        let own = own.into_iter().chain([Override::set(&format!("seed={seed}"))]).collect();
        Variant::new("", self.common, own)
    }

    /// A point in words, for messages.
    #[must_use]
    pub fn words(&self, point: &Point) -> String {
        let pairs = self.space.keys.iter().zip(point).map(|(key, value)| format!("{key} \"{value}\""));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// The first seed of every point: that of the scenario.
    ///
    /// # Errors
    /// The scenario is invalid.
    pub fn first_seed(&self, load: &Load<'_>) -> Result<u64, Report> {
        load(self.common).map(|scenario: Scenario| scenario.network_ref().seed)
    }

    /// Simulates all runs that the folder does not have.
    ///
    /// # Errors
    /// The study ended early. The folder has every run that was finished.
    pub fn run<S: Send>(&self, means: Means<'_>, attend: &mut Attend<'_, S>) -> Result<Runs, Ended<S>> {
        self.run_for(&[], means, attend)
    }

    /// As [`Study::run`], for these measures.
    ///
    /// # Errors
    /// As there, and a measure that none of the first runs of all points has.
    pub fn run_for<S: Send>(
        &self,
        measures: &[String],
        means: Means<'_>,
        attend: &mut Attend<'_, S>,
    ) -> Result<Runs, Ended<S>> {
        measures.iter().chain(self.seeds.measure()).try_for_each(|measure| may_be(measure)).map_err(Ended::Wrong)?;
        self.rounds(means, (true, measures), attend)
    }

    /// The runs that the folder has. With seeds until an interval is narrow, more runs may be needed once the missing
    /// ones are finished.
    ///
    /// # Errors
    /// The study ended early.
    pub fn look<S: Send>(&self, means: Means<'_>, attend: &mut Attend<'_, S>) -> Result<Runs, Ended<S>> {
        self.rounds(means, (false, &[]), attend)
    }

    /// Simulates these runs, as far as the folder does not have them.
    ///
    /// # Errors
    /// The study ended early. The folder has every run that was finished.
    pub fn simulate(&self, pairs: &[Pair], means: Means<'_>) -> Result<Runs, Ended<Infallible>> {
        let mut runs = Runs { entries: vec![Vec::new(); self.space.points.len()], ..Runs::default() };
        runs.progress.runs = pairs.len();
        self.round(pairs, means, (true, &[]), (&mut runs, &mut |_| Ok(())))?;
        Ok(runs)
    }

    /// Reads, and if `simulates` simulates, round after round.
    fn rounds<S: Send>(
        &self,
        means: Means<'_>,
        (simulates, measures): (bool, &[String]),
        attend: &mut Attend<'_, S>,
    ) -> Result<Runs, Ended<S>> {
        let first = self.first_seed(means.load).map_err(|report| Ended::Wrong(report.into()))?;
        self.seeds.check(first).map_err(Ended::Wrong)?;
        let points = self.space.points.len();
        let named: Vec<String> = measures.iter().chain(self.seeds.measure()).cloned().collect();
        let mut runs = Runs { entries: vec![Vec::new(); points], ..Runs::default() };
        let (mut tried, mut wanted) = (vec![0; points], vec![self.first_round(); points]);
        while runs.missing.is_empty() {
            // Points take turns, so that a study which is stopped has some seeds of each.
            let most = wanted.iter().copied().max().unwrap_or(0);
            let next: Vec<Pair> = (0..most)
                .flat_map(|number| (0..points).map(move |point| (point, number)))
                .filter(|&(point, number)| (tried[point]..wanted[point]).contains(&number))
                .map(|(point, number)| (point, first + number))
                .collect();
            if next.is_empty() {
                break;
            }
            runs.progress.runs += next.len();
            self.round(&next, means, (simulates, &named), (&mut runs, attend))?;
            let more = self.next_round(&wanted, &runs.entries);
            tried = std::mem::replace(&mut wanted, more);
        }
        for entries in &mut runs.entries {
            entries.sort_by_key(|entry| entry.seed);
        }
        Ok(runs)
    }

    fn first_round(&self) -> u64 {
        match self.seeds {
            Seeds::Count(count) => *count,
            Seeds::Until(until) => until.at_least,
        }
    }

    /// The seeds of each point after a round.
    fn next_round(&self, wanted: &[u64], entries: &[Vec<Entry>]) -> Vec<u64> {
        let Seeds::Until(until) = self.seeds else { return wanted.to_vec() };
        let next = |(runs, wanted): (&Vec<Entry>, &u64)| {
            let samples = runs.iter().filter_map(|entry| entry.measures.get(&until.measure).copied());
            until.after(*wanted, &samples.collect::<Vec<f64>>())
        };
        entries.iter().zip(wanted).map(next).collect()
    }

    /// An error for a measure that no run has, once all points have some runs.
    fn have(&self, wanted: &[String], runs: &Runs) -> Result<(), Error> {
        let some = TRIED.min(self.first_round()).saturating_mul(self.space.points.len() as u64);
        let measures = runs.entries.iter().flatten().map(|entry| &entry.measures);
        if (runs.progress.finished + runs.progress.failed) as u64 != some || measures.clone().next().is_none() {
            return Ok(());
        }
        wanted.iter().try_for_each(|measure| is_in(measure, measures.clone()))
    }

    /// Reads, and if `simulates` simulates, these runs, which have the measures that are `wanted`.
    fn round<S: Send>(
        &self,
        pairs: &[Pair],
        means: Means<'_>,
        (simulates, wanted): (bool, &[String]),
        (runs, attend): (&mut Runs, &mut Attend<'_, S>),
    ) -> Result<(), Ended<S>> {
        let job = |number: usize| {
            let (point, seed) = pairs[number];
            let values = &self.space.points[point];
            let variant = self.variant(values, seed);
            let came = one((number, self.input), (&variant, &|| self.words(values)), means, simulates);
            came.map(|came| ((point, seed), came))
        };
        let mut ended = Ok(());
        in_order_attended(pairs.len(), means.threads, job, |result| {
            match result {
                Some(Ok((pair, came))) => {
                    self.take(pair, came, runs);
                    ended = self.have(wanted, runs).map_err(Ended::Wrong);
                }
                // The reason is with the caller.
                Some(Err(Stopped::Wish)) | None => {}
                Some(Err(Stopped::Wrong(wrong))) => ended = Err(Ended::Wrong(wrong)),
                Some(Err(Stopped::Io(error))) => ended = Err(Ended::Io(error)),
            }
            if ended.is_ok() {
                ended = attend(runs.progress).map_err(Ended::Stop);
            }
            ended.is_ok()
        });
        ended
    }

    fn take(&self, (point, seed): Pair, came: Came, runs: &mut Runs) {
        let kept = match came {
            Came::Missing(damaged) => {
                runs.damaged.extend(damaged);
                return runs.missing.push((point, seed));
            }
            Came::Known(kept) => kept,
            Came::New(kept, damaged) => {
                runs.damaged.extend(damaged);
                runs.progress.simulated += 1;
                kept
            }
        };
        match kept {
            Kept::Measures(measures) => {
                runs.progress.finished += 1;
                runs.entries[point].push(Entry { point, seed, measures });
            }
            Kept::Failed(reason) => {
                runs.progress.failed += 1;
                runs.failures.push(Failure { point: self.words(&self.space.points[point]), seed, reason });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::memory::Memory;
    use crate::study::store::Store;
    use crate::study::table::Column;

    const TEXT: &str = "duration = \"2 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"256 kbit/s\" }\n\
                        [[traffic]]\nname = \"download\"\nkind = \"bulk\"\ndirection = \"down\"\n\
                        [[traffic]]\nkind = \"poisson\"\nrate = \"500 kbit/s\"\ndirection = \"down\"\n";

    fn load(overrides: &[Override]) -> Result<Scenario, Report> {
        Scenario::parse_with("f.toml", TEXT, overrides)
    }

    fn space() -> Space {
        let rates = ["128 kbit/s", "512 kbit/s"].map(str::to_owned).to_vec();
        Space::grid(vec![("access.up.rate".to_owned(), rates)]).unwrap()
    }

    /// Runs the study until `stop` runs are finished.
    fn run(store: &Store, seeds: &Seeds, threads: usize, stop: usize) -> (Result<Table, Ended<()>>, Progress) {
        let input = Input { file: Some("f.toml".to_owned()), text: Some(TEXT.to_owned()) };
        let space = space();
        let places = Places::new();
        let study = Study { input: &input, common: &[], space: &space, places: &places, seeds };
        let (memory, over) = (Memory::unlimited(), AtomicBool::new(false));
        let is_over = || over.load(Ordering::Relaxed);
        let threads = NonZeroUsize::new(threads);
        let means = Means { load: &load, store, memory: &memory, threads, is_over: &is_over };
        let mut last = Progress::default();
        let runs = study.run(means, &mut |progress: Progress| {
            last = progress;
            over.store(progress.finished >= stop, Ordering::Relaxed);
            if progress.finished >= stop { Err(()) } else { Ok(()) }
        });
        (runs.map(|runs| runs.table(&space)), last)
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        (folder, store)
    }

    #[test]
    fn a_study_that_was_stopped_goes_on_and_ends_with_the_same_table() {
        let seeds = Seeds::Count(5);
        let (_whole, one) = store();
        let (table, progress) = run(&one, &seeds, 1, usize::MAX);
        let table = table.unwrap();
        assert_eq!(progress, Progress { runs: 10, finished: 10, failed: 0, simulated: 10 });
        assert_eq!(table.rows(), 10);
        assert_eq!(table.columns[1], ("seed".to_owned(), Column::Seeds([1, 2, 3, 4, 5].repeat(2))));

        let (_parts, two) = store();
        let (stopped, progress) = run(&two, &seeds, 2, 4);
        assert!(matches!(stopped, Err(Ended::Stop(()))) && progress.simulated == 4, "{progress:?}");
        let (again, progress) = run(&two, &seeds, 2, usize::MAX);
        // A run that ended after the stop is kept too.
        assert!(progress.finished == 10 && progress.simulated <= 6, "{progress:?}");
        assert_eq!(again.unwrap(), table);
        let (_, progress) = run(&two, &seeds, 2, usize::MAX);
        assert_eq!(progress.simulated, 0, "nothing runs twice");
    }

    #[test]
    fn seeds_are_added_until_the_interval_is_narrow_or_there_are_enough() {
        let until = |share: f64, at_least: u64| {
            Seeds::Until(Until { measure: "download_bps".to_owned(), share, at_least, at_most: 9 })
        };
        let (_folder, folder) = store();
        let rows = |at_least: u64| run(&folder, &until(10.0, at_least), 2, usize::MAX).0.unwrap().rows();
        assert_eq!(rows(4), 2 * 4, "four seeds are narrow enough");
        // 4, 6, 9 seeds; the first four of each point are known.
        let (table, progress) = run(&folder, &until(1e-9, 4), 2, usize::MAX);
        assert_eq!(table.unwrap().rows(), 2 * 9);
        assert_eq!(progress.simulated, 2 * 5);
        assert_eq!(rows(7), 2 * 7, "not fewer than the first seeds");
    }

    /// The line has no ping, and a typo is known before the first run.
    #[test]
    fn a_measure_that_no_run_has_ends_the_study_after_the_first_runs() {
        let ended = |measure: &str, most: u64| {
            let (_folder, folder) = store();
            let until = Until { measure: measure.to_owned(), share: 0.03, at_least: most.min(10), at_most: most };
            let (ended, progress) = run(&folder, &Seeds::Until(until), 2, usize::MAX);
            let Err(Ended::Wrong(wrong)) = ended else { panic!("{measure}: {ended:?}") };
            (wrong.to_string(), progress.simulated)
        };
        let (wrong, simulated) = ended("ping.p99_s", 64);
        assert!(wrong.starts_with("error: no run has the measure \"ping.p99_s\""), "{wrong}");
        assert_eq!(simulated, 2 * 4 - 1, "the last of the first runs ends it");
        assert_eq!(ended("ping.p99_s", 2).1, 2 * 2 - 1);
        let (wrong, simulated) = ended("download_bp", 64);
        assert!(wrong.contains("did you mean \"download_bps\"?") && simulated == 0, "{wrong}");

        let (_folder, store) = store();
        let (input, space, places) = (Input::default(), space(), Places::new());
        let study = Study { input: &input, common: &[], space: &space, places: &places, seeds: &Seeds::Count(9) };
        let memory = Memory::unlimited();
        let means = Means { load: &load, store: &store, memory: &memory, threads: None, is_over: &|| false };
        let measures = ["download_bps", "during it: ping: RTT p50_s"].map(str::to_owned);
        let mut last = Progress::default();
        let ended = study.run_for(&measures, means, &mut |progress| {
            last = progress;
            Ok::<(), ()>(())
        });
        assert!(matches!(&ended, Err(Ended::Wrong(wrong)) if wrong.to_string().contains("during it")), "{ended:?}");
        assert_eq!(last.finished, 2 * 4 - 1);
    }

    #[test]
    fn a_wrong_value_names_its_point() {
        let input = Input::default();
        let space = Space::grid(vec![("access.up.rate".to_owned(), vec!["fast".to_owned()])]).unwrap();
        let places = Places::new();
        let study = Study { input: &input, common: &[], space: &space, places: &places, seeds: &Seeds::Count(1) };
        let (_folder, store) = store();
        let memory = Memory::unlimited();
        let means = Means { load: &load, store: &store, memory: &memory, threads: None, is_over: &|| false };
        let Err(Ended::Wrong(wrong)) = study.run(means, &mut |_| Ok::<(), ()>(())) else { panic!("it is refused") };
        assert!(wrong.to_string().contains("--set access.up.rate=fast"), "{wrong}");
        assert!(study.look(means, &mut |_| Ok::<(), ()>(())).is_err());
    }
}

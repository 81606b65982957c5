//! The runs of a study, and how they are carried out.
//!
//! Runs go to all threads of one process. With seeds until an interval is narrow, they go in rounds: every point has
//! its first [`FIRST`] seeds, then each point that is not narrow gets half as many more. The seeds of a point depend on
//! the results alone, so a study that was interrupted ends with the same runs.

use std::num::NonZeroUsize;

use lastmile_results::Run;
use lastmile_results::comparison::{Comparison, Row};
use lastmile_results::seeds::Seeded;
use lastmile_scenario::{Override, Report, Scenario};

use super::address::Address;
use super::space::{Point, Space};
use super::statistics::Estimate;
use super::store::{Measures, Store};
use super::table::{Entry, Table};
use crate::error::Error;
use crate::memory::Memory;
use crate::parallel::in_order_attended;
use crate::run::{Early, Input, Job, Watch, simulate};
use crate::variant::{Variant, pairs};

/// Seeds of each point in the first round.
pub const FIRST: u64 = 4;

/// Seeds until half of a measure's 95 % interval is at most a share of its mean.
#[derive(Clone, PartialEq, Debug)]
pub struct Until {
    /// The measure, such as `download_bps`.
    pub measure: String,
    /// The share of the mean.
    pub share: f64,
    /// The most seeds of a point.
    pub at_most: u64,
}

/// The seeds of each point, from that of the scenario on.
#[derive(Clone, PartialEq, Debug)]
pub enum Seeds {
    /// A number of seeds.
    Count(u64),
    /// Until an interval is narrow enough.
    Until(Until),
}

/// A scenario at many points of a space.
#[derive(Clone, PartialEq, Debug)]
pub struct Study<'a> {
    /// As results record the file.
    pub input: &'a Input,
    /// Overrides of all runs.
    pub common: &'a [Override],
    /// The points.
    pub space: &'a Space,
    /// The seeds of each point.
    pub seeds: &'a Seeds,
}

/// Reads the scenario with overrides.
pub type Load<'a> = dyn Fn(&[Override]) -> Result<Scenario, Report> + Sync + 'a;

/// The runs of a study so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Runs that are known to be needed.
    pub runs: usize,
    /// Runs among them that are finished, at any time.
    pub finished: usize,
    /// Runs that this call has simulated.
    pub simulated: usize,
}

/// Why a study ended early.
#[derive(Debug)]
pub enum Ended<S> {
    /// The caller ended it.
    Stop(S),
    /// An invalid point, or a run that needs too much memory.
    Wrong(Error),
    /// The folder cannot be read or written.
    Io(std::io::Error),
}

/// The means by which a study runs: its file, its folder, memory and threads.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Reads the scenario.
    pub load: &'a Load<'a>,
    /// The folder.
    pub store: &'a Store,
    /// Memory of all concurrent runs.
    pub memory: &'a Memory,
    /// Threads; one for each processor by default.
    pub threads: Option<NonZeroUsize>,
    /// True once the caller wants running simulations to end.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Study<'_> {
    /// The run of `point` with a seed.
    fn variant(&self, point: &Point, seed: u64) -> Variant {
        let set = |(key, value): (&String, &String)| Override::set(&format!("{key}={value}"));
        let own: Vec<Override> = self.space.keys.iter().zip(point).map(set).collect();
        let own = own.into_iter().chain([Override::set(&format!("seed={seed}"))]).collect();
        Variant::new("", self.common, own)
    }

    /// Simulates all runs that the folder does not have, and returns the table of all.
    ///
    /// # Errors
    /// The study ended early. The folder has every run that was finished.
    pub fn run<S: Send>(
        &self,
        means: Means<'_>,
        attend: &mut dyn FnMut(Progress) -> Result<(), S>,
    ) -> Result<Table, Ended<S>> {
        let first = (means.load)(self.common).map_err(|report| Ended::Wrong(report.into()))?.network_ref().seed;
        let mut wanted: Vec<u64> = vec![self.first_round(); self.space.points.len()];
        // The runs of each point.
        let mut entries: Vec<Vec<Entry>> = vec![Vec::new(); wanted.len()];
        let mut progress = Progress::default();
        loop {
            let has: Vec<u64> = entries.iter().map(|runs| runs.len() as u64).collect();
            // Points take turns, so that a study which is stopped has some seeds of each.
            let most = wanted.iter().copied().max().unwrap_or(0);
            let missing: Vec<(usize, u64)> = (0..most)
                .flat_map(|number| (0..wanted.len()).map(move |point| (point, number)))
                .filter(|&(point, number)| (has[point]..wanted[point]).contains(&number))
                .map(|(point, number)| (point, first.wrapping_add(number)))
                .collect();
            if missing.is_empty() {
                break;
            }
            progress.runs += missing.len();
            self.round(&missing, means, (&mut progress, attend), &mut entries)?;
            wanted = self.next_round(&wanted, &entries);
        }
        for runs in &mut entries {
            runs.sort_by_key(|entry| entry.seed.wrapping_sub(first));
        }
        Ok(Table::new(self.space, &entries.concat()))
    }

    fn first_round(&self) -> u64 {
        match self.seeds {
            Seeds::Count(count) => *count,
            Seeds::Until(until) => FIRST.min(until.at_most),
        }
    }

    /// The seeds of each point after a round.
    fn next_round(&self, wanted: &[u64], entries: &[Vec<Entry>]) -> Vec<u64> {
        let Seeds::Until(until) = self.seeds else { return wanted.to_vec() };
        let next = |(runs, wanted): (&Vec<Entry>, &u64)| {
            let samples: Vec<f64> =
                runs.iter().filter_map(|entry| entry.measures.get(&until.measure).copied()).collect();
            let is_narrow = Estimate::of(&samples).is_none_or(|estimate| estimate.is_within(until.share));
            if is_narrow { *wanted } else { (wanted + (wanted / 2).max(1)).min(until.at_most) }
        };
        entries.iter().zip(wanted).map(next).collect()
    }

    /// Reads or simulates runs.
    fn round<S: Send>(
        &self,
        runs: &[(usize, u64)],
        means: Means<'_>,
        (progress, attend): (&mut Progress, &mut dyn FnMut(Progress) -> Result<(), S>),
        entries: &mut [Vec<Entry>],
    ) -> Result<(), Ended<S>> {
        let job = |number: usize| {
            let (point, seed) = runs[number];
            let done = self.one((number, point, seed), means);
            done.map(|(measures, is_new)| (Entry { point, seed, measures }, is_new))
        };
        let mut ended = Ok(());
        in_order_attended(runs.len(), means.threads, job, |result| {
            match result {
                Some(Ok((entry, is_new))) => {
                    entries[entry.point].push(entry);
                    progress.finished += 1;
                    progress.simulated += usize::from(is_new);
                }
                // The reason is with the caller.
                Some(Err(None)) => {}
                Some(Err(Some(Failed::Wrong(wrong)))) => ended = Err(Ended::Wrong(wrong)),
                Some(Err(Some(Failed::Io(error)))) => ended = Err(Ended::Io(error)),
                None => {}
            }
            if ended.is_ok() {
                ended = attend(*progress).map_err(Ended::Stop);
            }
            ended.is_ok()
        });
        ended
    }

    /// The measures of a run, and whether it was simulated now. An error of `None` is the caller's wish to end.
    fn one(
        &self,
        (number, point, seed): (usize, usize, u64),
        means: Means<'_>,
    ) -> Result<(Measures, bool), Option<Failed>> {
        let Means { load, store, memory, is_over, .. } = means;
        if is_over() {
            return Err(None);
        }
        let point = &self.space.points[point];
        let variant = self.variant(point, seed);
        let wrong = |error: Error| Some(Failed::Wrong(error));
        let scenario = load(&variant.overrides).map_err(|report| wrong(report.within(&self.words(point)).into()))?;
        let name = self.input.file.as_deref().unwrap_or("scenario");
        scenario.needs_traffic(name).map_err(|report| wrong(report.into()))?;
        let address = Address::of(&scenario, &self.input.origin(&variant, &scenario).inputs);
        if let Some(measures) = store.read(&address).map_err(|error| Some(Failed::Io(error)))? {
            return Ok((measures, false));
        }
        let job = Job { number, input: self.input, variant: &variant, scenario: &scenario };
        let finished = simulate(job, None, memory, &mut Slices(is_over)).map_err(|early| match early {
            Early::Stop(()) => None,
            Early::Memory => wrong(memory.outcome().err().unwrap_or_else(|| Error::new("out of memory"))),
            Early::Refused(refused) => wrong(Error::new(refused)),
        })?;
        memory.forget(number);
        let measures = measures(&finished.run);
        store.write(&address, &measures).map_err(|error| Some(Failed::Io(error)))?;
        Ok((measures, true))
    }

    /// A point in words, for errors.
    fn words(&self, point: &Point) -> String {
        let pairs = self.space.keys.iter().zip(point).map(|(key, value)| format!("{key} \"{value}\""));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// The runs that the folder has, of those that are needed for certain.
    ///
    /// # Errors
    /// A point that is no scenario.
    pub fn status(&self, load: &Load<'_>, store: &Store) -> Result<Progress, Error> {
        let first = load(self.common)?.network_ref().seed;
        let mut progress = Progress::default();
        for point in &self.space.points {
            for number in 0..self.first_round() {
                let variant = self.variant(point, first.wrapping_add(number));
                let scenario = load(&variant.overrides).map_err(|report| report.within(&self.words(point)))?;
                let address = Address::of(&scenario, &self.input.origin(&variant, &scenario).inputs);
                progress.runs += 1;
                progress.finished += usize::from(store.has(&address));
            }
        }
        Ok(progress)
    }

    /// The changes of all runs, `key=value`.
    #[must_use]
    pub fn set(&self) -> Vec<String> {
        pairs(self.common)
    }
}

/// Why a run has no result.
enum Failed {
    Wrong(Error),
    Io(std::io::Error),
}

/// A simulation that ends when the caller wishes.
struct Slices<'a>(&'a (dyn Fn() -> bool + Sync));

impl Watch for Slices<'_> {
    type Stop = ();

    fn pause(&mut self) -> Result<(), ()> {
        if (self.0)() { Err(()) } else { Ok(()) }
    }

    fn progress(&mut self, _: u64) -> Result<(), ()> {
        Ok(())
    }
}

/// The measures of a run: those of a row of a comparison, and `PHASE: MEASURE` of each phase.
fn measures(run: &Run) -> Measures {
    let mut measures = Measures::new();
    let comparison = Comparison::of(vec![run.clone()]);
    let rows: Vec<Row> = comparison.measured().into_iter().flatten().collect();
    for row in rows {
        flatten("", &serde_json::to_value(row).unwrap_or_default(), &mut measures);
    }
    for measure in (Seeded { label: String::new(), runs: vec![run.clone()] }).measures() {
        measures.insert(format!("{}: {}", measure.phase, measure.name), measure.mean);
    }
    measures
}

/// Every number of a document, by the path of its keys, joined by dots.
fn flatten(path: &str, value: &serde_json::Value, measures: &mut Measures) {
    match value {
        serde_json::Value::Object(keys) => {
            for (key, value) in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, measures);
            }
        }
        other => {
            if let Some(number) = other.as_f64() {
                measures.insert(path.to_owned(), number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
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
        let study = Study { input: &input, common: &[], space: &space, seeds };
        let (memory, over) = (Memory::unlimited(), AtomicBool::new(false));
        let is_over = || over.load(Ordering::Relaxed);
        let threads = NonZeroUsize::new(threads);
        let means = Means { load: &load, store, memory: &memory, threads, is_over: &is_over };
        let mut last = Progress::default();
        let table = study.run(means, &mut |progress: Progress| {
            last = progress;
            over.store(progress.finished >= stop, Ordering::Relaxed);
            if progress.finished >= stop { Err(()) } else { Ok(()) }
        });
        (table, last)
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
        assert_eq!(progress, Progress { runs: 10, finished: 10, simulated: 10 });
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
        let until = |share: f64| Seeds::Until(Until { measure: "download_bps".to_owned(), share, at_most: 9 });
        let (_folder, folder) = store();
        assert_eq!(run(&folder, &until(10.0), 2, usize::MAX).0.unwrap().rows(), 2 * 4, "four seeds are narrow enough");
        // 4, 6, 9 seeds; the first four of each point are known.
        let (table, progress) = run(&folder, &until(1e-9), 2, usize::MAX);
        assert_eq!(table.unwrap().rows(), 2 * 9);
        assert_eq!(progress.simulated, 2 * 5);
    }

    #[test]
    fn a_wrong_value_names_its_point() {
        let input = Input::default();
        let space = Space::grid(vec![("access.up.rate".to_owned(), vec!["fast".to_owned()])]).unwrap();
        let study = Study { input: &input, common: &[], space: &space, seeds: &Seeds::Count(1) };
        let (_folder, store) = store();
        let memory = Memory::unlimited();
        let means = Means { load: &load, store: &store, memory: &memory, threads: None, is_over: &|| false };
        let Err(Ended::Wrong(wrong)) = study.run(means, &mut |_| Ok::<(), ()>(())) else { panic!("it is refused") };
        assert!(wrong.to_string().contains("--set access.up.rate=fast"), "{wrong}");
        assert!(study.status(&load, &store).is_err());
    }
}

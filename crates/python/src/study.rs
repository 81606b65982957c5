//! Studies: thousands of runs on all cores of one process or on a cluster, kept in a folder.

use std::ffi::CString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile_scenario::diagnostics::{Diagnostic, Place};
use lastmile_scenario::file::{self, Reading};
use lastmile_scenario::{Override, Report, Scenario as Checked};
use lastmile_studies::Input;
use lastmile_studies::memory::Memory;
use lastmile_studies::study::address::ENGINE;
use lastmile_studies::study::check::{check, check_values};
use lastmile_studies::study::folder::carry_out;
use lastmile_studies::study::journal::{Record, about_other};
use lastmile_studies::study::means::notes;
use lastmile_studies::study::measured;
use lastmile_studies::study::plan::{
    Ended, Failure, Load, Means, Pair, Places, Progress, Seeds, Study as Planned, Until,
};
use lastmile_studies::study::space::Space as Points;
use lastmile_studies::study::{Described, Store};
use lastmile_studies::variant::pairs;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;

use crate::arguments::{FilePath, Folder, Length, MemorySize, SeedCount, Threads, Told};
use crate::error;
use crate::run;
use crate::scenario::{Given, Scenario, Source};
use crate::slices::Attendant;
use crate::space::{Settings, Space, settings};
use crate::table::Table;

/// The usual limit of memory.
const MEMORY: &str = "4 GiB";

/// A scenario at many points of a space, with several seeds.
///
/// >>> import lastmile as lm
/// >>> line = lm.line("adsl2plus-12-1", home="single")
/// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
/// >>> study
/// <lastmile.Study "single on adsl2plus-12-1": 2 points, 2 seeds each>
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Study {
    scenario: Py<Scenario>,
    space: Py<Space>,
    seeds: Seeds,
    duration: Option<Length>,
    file: Option<File>,
}

/// The file of a study.
struct File {
    name: String,
    path: String,
    text: String,
    places: Places,
    measures: Vec<String>,
}

/// A study of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, space, *, seeds, until, duration))]
pub(crate) fn study(
    py: Python<'_>,
    scenario: Given<'_>,
    space: Bound<'_, Space>,
    seeds: SeedCount,
    until: Option<(Option<String>, f64, u64)>,
    duration: Option<Length>,
) -> PyResult<Study> {
    let SeedCount(seeds) = seeds;
    let scenario = scenario.scenario(py)?;
    let seeds = match until {
        None => Seeds::Count(seeds),
        Some((measure, share, at_least)) => {
            let over_line = scenario.get().read.access().is_some();
            let measure = measure.unwrap_or_else(|| Until::usual_measure(over_line).to_owned());
            Seeds::Until(Until { measure, share, at_least, at_most: seeds })
        }
    };
    let points = &space.get().0;
    let sets_duration = points.keys.iter().any(|key| key == "duration") || points.cases.setting("duration").is_some();
    if duration.is_some() && sets_duration {
        return Err(PyValueError::new_err("space and duration set one key, duration: leave one of them out"));
    }
    let study = Study { scenario: scenario.unbind(), space: space.unbind(), seeds, duration, file: None };
    study.check_values(py)?;
    Ok(study)
}

/// The study of a file.
#[pyfunction]
pub(crate) fn study_file(py: Python<'_>, path: FilePath) -> PyResult<Study> {
    let FilePath(path) = path;
    let name = path.display().to_string();
    let text = file::read(&path, Reading::Once).map_err(|problem| {
        let place = Place::WholeFile { name: name.clone() };
        error::of_report(py, &Report::of(Diagnostic::error(place, problem)))
    })?;
    let described = Described::parse(&name, &text).map_err(|report| error::of_report(py, &report))?;
    let Described { name, path: scenario, input, text: of_scenario, common, space, places, seeds, measures } =
        described;
    let scenario = Scenario::of_source(py, Source { name: scenario, input, text: of_scenario, overrides: common })?;
    let path = std::path::absolute(path).map_err(|error| PyOSError::new_err(error.to_string()))?;
    let file = File { name, path: path.display().to_string(), text, places, measures };
    Ok(Study {
        scenario: Py::new(py, scenario)?,
        space: Py::new(py, Space(space))?,
        seeds,
        duration: None,
        file: Some(file),
    })
}

/// Runs of a study that another process has planned: a scenario with changes, keys and cases, points with seeds, the
/// folder.
/// Returns the number of runs that were simulated.
#[pyfunction]
pub(crate) fn work(
    py: Python<'_>,
    scenario: (String, Option<String>, String, Vec<String>),
    space: (Vec<String>, Settings),
    runs: Vec<(Vec<String>, u64)>,
    folder: PathBuf,
    memory: MemorySize,
    engine: &str,
) -> PyResult<usize> {
    if engine != ENGINE {
        let message =
            format!("this process has engine {ENGINE}, and the study has {engine}: install one build everywhere");
        return Err(PyRuntimeError::new_err(message));
    }
    let ((name, file, text, set), (keys, cases)) = (scenario, space);
    let memory = run::memory(&memory)?;
    let store = Store::open(&folder).map_err(|error| error::not_written(&folder, &error))?;
    let input = Input { file, text: Some(text.clone()) };
    let common: Vec<Override> = set.iter().map(|pair| Override::set(pair)).collect();
    let (points, seeds): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let space = Points { keys, points, cases: settings(py, cases)? };
    let pairs: Vec<Pair> = seeds.into_iter().enumerate().collect();
    let places = Places::new();
    let study = Planned { input: &input, common: &common, space: &space, places: &places, seeds: &Seeds::Count(1) };
    let load = |overrides: &[Override]| Checked::parse_with(&name, &text, overrides);
    let means =
        Means { load: &load, store: &store, memory: &memory, threads: NonZeroUsize::new(1), is_over: &|| false };
    match py.detach(|| study.simulate(&pairs, means)) {
        Ok(runs) => Ok(runs.progress.simulated),
        Err(ended) => Err(exception(py, &memory, ended)),
    }
}

/// Warns of what happens to the runs and to the folder of a study.
fn warn(py: Python<'_>, message: String) -> PyResult<()> {
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 1)
}

/// The exception for a study that ended early.
fn exception<S: Into<PyErr>>(py: Python<'_>, memory: &Memory, ended: Ended<S>) -> PyErr {
    match ended {
        Ended::Wrong(_) if memory.outcome().is_err() => run::out_of_memory(memory),
        Ended::Stop(stop) => stop.into(),
        Ended::Wrong(wrong) => error::of_error(py, &wrong),
        Ended::Io(error) => PyOSError::new_err(error.to_string()),
    }
}

#[pymethods]
impl Study {
    /// The points.
    #[getter]
    fn space(&self, py: Python<'_>) -> Py<Space> {
        self.space.clone_ref(py)
    }

    /// Names of the measures that are known before the first run: all but those of phases and of single flows,
    /// pings and links. `Table.measures` has those that runs have.
    #[getter]
    fn measures(&self) -> Vec<&'static str> {
        measured::names().collect()
    }

    /// Simulates all runs that the folder does not have, and returns the table of all.
    ///
    /// The folder then has the table as table.parquet, and a page of it as report.html. `progress` is
    /// `True` for a bar on standard error, or a function of the share that is done.
    /// `client` is a client of Dask, or the address of its scheduler: the runs then are on this cluster, whose workers
    /// must have the folder, too.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> len(study.run("out/study"))
    /// 4
    #[pyo3(
        signature = (folder, *, threads = None, progress = None, memory = MemorySize(MEMORY.to_owned()), client = None),
        text_signature = "($self, folder, *, threads=None, progress=None, memory='4 GiB', client=None)"
    )]
    fn run(
        slf: &Bound<'_, Self>,
        folder: Folder,
        threads: Option<Threads>,
        progress: Option<Told>,
        memory: MemorySize,
        client: Option<Py<PyAny>>,
    ) -> PyResult<Table> {
        let (py, study) = (slf.py(), slf.get());
        let Folder(folder) = folder;
        let progress = progress.and_then(|Told(callback)| callback);
        let threads = threads.map(|Threads(count)| count);
        let limit = run::memory(&memory)?;
        let store = Store::open(&folder).map_err(|error| error::not_written(&folder, &error))?;
        study.check(py, &store, (&limit, threads))?;
        let is_on_cluster = client.is_some();
        if let Some(client) = client {
            let cluster = py.import("lastmile._cluster")?;
            let folder = std::path::absolute(&folder).map_err(|error| PyOSError::new_err(error.to_string()))?;
            let (progress, memory) = (&progress, memory.0);
            cluster.getattr("carry_out")?.call1((slf, folder, client, progress, memory))?;
        }
        let mut attendant = Attendant::new(progress);
        let (record, measures) = (study.record(py)?, study.named());
        if let Some(other) = about_other(&folder, &record) {
            warn(py, other)?;
        }
        let ended = study.with(py, &store, (&limit, threads), |planned, means, is_over| {
            let done = carry_out(planned, means, (record, &measures), &mut |progress: Progress, _: &Record| {
                let (done, of) = ((progress.finished + progress.failed) as u64, progress.runs as u64);
                // The runs of a cluster are told already: what is left is to read them.
                let is_told = is_on_cluster && done < of;
                let attended = attendant.look().and_then(|()| if is_told { Ok(()) } else { attendant.tell(done, of) });
                is_over.store(attended.is_err(), Ordering::Relaxed);
                attended
            });
            done.map(|(runs, table)| (notes(planned, &table), runs, table))
        })?;
        let (notes, runs, table) = ended.map_err(|ended| exception(py, &limit, ended))?;
        if let Some(damaged) = runs.about_damaged("replaced by a new run") {
            warn(py, damaged)?;
        }
        for Failure { point, seed, reason } in &runs.failures {
            warn(py, format!("failed: {point}, seed {seed}: {reason}"))?;
        }
        Ok(Table::new(table, measures, notes))
    }

    /// The number of runs that the folder has, and the number of runs whose need is known. Runs that failed count.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> study.status("out/empty")
    /// (0, 4)
    fn status(&self, py: Python<'_>, folder: Folder) -> PyResult<(usize, usize)> {
        let (done, of, _) = self.missing(py, folder)?;
        Ok((done, of))
    }

    /// The number of runs that the folder has, the number of runs whose need is known, and those that it does not have:
    /// a point by its number, and a seed.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> study.missing("out/empty")
    /// (0, 4, [(0, 1), (1, 1), (0, 2), (1, 2)])
    fn missing(&self, py: Python<'_>, folder: Folder) -> PyResult<(usize, usize, Vec<Pair>)> {
        let Folder(folder) = folder;
        let store = Store::open(&folder).map_err(|error| error::not_written(&folder, &error))?;
        let mut attendant = Attendant::new(None);
        let limit = Memory::unlimited();
        let ended = self.with(py, &store, (&limit, None), |planned, means, is_over| {
            planned.look(means, &mut |_| {
                let attended = attendant.look();
                is_over.store(attended.is_err(), Ordering::Relaxed);
                attended
            })
        })?;
        let runs = ended.map_err(|ended| exception(py, &limit, ended))?;
        let Progress { runs: of, finished, failed, .. } = runs.progress;
        Ok((finished + failed, of, runs.missing))
    }

    /// Everything but points and seeds that `work` needs for runs of the study: the scenario's name, file, text and
    /// changes.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> lm.study(line, {"access.policy": [None, "cake"]}, duration="2 s").parts()[3]
    /// ['duration=2 s']
    fn parts(&self) -> PyResult<(String, Option<String>, String, Vec<String>)> {
        let source = &self.scenario.get().source;
        let common = run::overrides(self.scenario.get(), None, self.duration.as_ref(), None)?;
        let name = std::path::absolute(source.name()).map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok((name.display().to_string(), source.input.file.clone(), source.text.clone(), pairs(&common)))
    }

    fn __repr__(&self) -> String {
        let seeds = match &self.seeds {
            Seeds::Count(count) => format!("{count} seeds"),
            Seeds::Until(until) => format!("at most {} seeds", until.at_most),
        };
        let name = self.scenario.get().read.name().to_owned();
        format!("<lastmile.Study {name:?}: {} points, {seeds} each>", self.space.get().0.points.len())
    }
}

impl Study {
    /// The measures that the study's file names; none without a file.
    fn named(&self) -> Vec<String> {
        self.file.as_ref().map_or_else(Vec::new, |file| file.measures.clone())
    }

    /// Calls `of` with the study as the crate below has it, without the interpreter's lock.
    fn planned<T: Send>(
        &self,
        py: Python<'_>,
        of: impl FnOnce(&Planned<'_>, &Load<'_>, &AtomicBool) -> T + Send,
    ) -> PyResult<T> {
        let scenario = self.scenario.get();
        let common = run::overrides(scenario, None, self.duration.as_ref(), None)?;
        let source = &scenario.source;
        let (none, is_over) = (Places::new(), AtomicBool::new(false));
        let places = self.file.as_ref().map_or(&none, |file| &file.places);
        let space = &self.space.bind(py).get().0;
        let planned = Planned { input: &source.input, common: &common, space, places, seeds: &self.seeds };
        let load = |overrides: &[Override]| source.read(overrides);
        Ok(py.detach(|| of(&planned, &load, &is_over)))
    }

    /// As `planned`, with the folder, memory and threads.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        store: &Store,
        (memory, threads): (&Memory, Option<NonZeroUsize>),
        of: impl FnOnce(&Planned<'_>, Means<'_>, &AtomicBool) -> T + Send,
    ) -> PyResult<T> {
        self.planned(py, |planned, load, is_over| {
            let is_over_now = || is_over.load(Ordering::Relaxed);
            of(planned, Means { load, store, memory, threads, is_over: &is_over_now }, is_over)
        })
    }

    /// Reads every value of each key: a wrong one is refused now, and not by the first run.
    fn check_values(&self, py: Python<'_>) -> PyResult<()> {
        let mut attendant = Attendant::new(None);
        let ended = self.planned(py, |planned, load, _| check_values(planned, load, &mut |_| attendant.look()))?;
        ended.map_err(|ended| exception(py, &Memory::unlimited(), ended))
    }

    /// Reads every point before the first run.
    fn check(&self, py: Python<'_>, store: &Store, (limit, threads): (&Memory, Option<NonZeroUsize>)) -> PyResult<()> {
        let mut attendant = Attendant::new(None);
        let ended = self.with(py, store, (limit, threads), |planned, means, is_over| {
            check(planned, means, &mut |_| {
                let attended = attendant.look();
                is_over.store(attended.is_err(), Ordering::Relaxed);
                attended
            })
        })?;
        let checked = ended.map_err(|ended| exception(py, limit, ended))?;
        error::warn(py, &checked.warnings)
    }

    /// The study, for `study.json`.
    fn record(&self, py: Python<'_>) -> PyResult<Record> {
        let scenario = self.scenario.bind(py).get();
        let own = || Record { name: scenario.read.name().to_owned(), ..Record::default() };
        let record = self.file.as_ref().map_or_else(own, |file| Record {
            name: file.name.clone(),
            file: Some(file.path.clone()),
            text: Some(file.text.clone()),
            ..Record::default()
        });
        self.planned(py, |planned, _, _| record.of(planned))
    }
}

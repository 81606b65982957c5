//! One run: simulated without the interpreter's lock, its results as Python reads them.

use std::path::PathBuf;

use lastmile_model::Network;
use lastmile_results::schema::Timing;
use lastmile_results::{Series as Samples, json, report, write};
use lastmile_scenario::Override;
use lastmile_scenario::diagnostics::did_you_mean;
use lastmile_studies::memory::Memory;
use lastmile_studies::recording::{self, Captures};
use lastmile_studies::run::{Early, Finished, Job, Watch, simulate};
use lastmile_studies::variant::{common, policy_override};
use lastmile_studies::{Error, Variant};
use lastmile_units::{ByteCount, Duration};
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::{Flow, Folder, Length, MemorySize, Policy, Seed, SeriesNames};
use crate::error;
use crate::scenario::{Given, Scenario};
use crate::series::Series;
use crate::slices::Attendant;
use crate::supplied::{Failure, Supplied};
use crate::value::parsed;

/// The name of the argument that grants memory.
pub(crate) const MEMORY: &str = "memory=";

/// A finished run.
///
/// >>> import lastmile as lm
/// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
/// >>> run.summary["duration_s"], len(run.series) > 100
/// (2.0, True)
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Run {
    finished: Finished,
    summary: PyOnceLock<Py<PyAny>>,
    series: PyOnceLock<Py<Series>>,
}

impl Run {
    pub(crate) fn new(finished: Finished) -> Self {
        Self { finished, summary: PyOnceLock::new(), series: PyOnceLock::new() }
    }

    /// Its results and its speed.
    pub(crate) fn parts(&self) -> (lastmile_results::Run, Timing) {
        (self.finished.run.clone(), self.finished.timing)
    }
}

/// Overrides in the order of the command line: changes, seed, duration, policy.
pub(crate) fn overrides(
    scenario: &Scenario,
    seed: Option<Seed>,
    duration: Option<&Length>,
    policy: Option<&Policy>,
) -> PyResult<Vec<Override>> {
    let duration: Option<Duration> = duration
        .map(|Length(text)| text.parse())
        .transpose()
        .map_err(|wrong: <Duration as std::str::FromStr>::Err| PyValueError::new_err(format!("duration: {wrong}")))?;
    let set = common(&scenario.source.overrides, seed.map(|Seed(seed)| seed), duration);
    Ok(set.into_iter().chain(policy.map(|Policy(name)| policy_override(name))).collect())
}

/// The limit of memory that `memory` grants.
pub(crate) fn memory(size: &MemorySize) -> PyResult<Memory> {
    let size: ByteCount = size.0.parse().map_err(|wrong| PyValueError::new_err(format!("memory: {wrong}")))?;
    Ok(Memory::new(size, MEMORY))
}

/// Simulates a scenario.
#[pyfunction]
#[pyo3(signature = (
    scenario, /, *, seed = None, duration = None, policy = None, queues = None, congestion = None, capture = None,
    progress = None, memory
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: Given<'_>,
    seed: Option<Seed>,
    duration: Option<Length>,
    policy: Option<Policy>,
    queues: Option<&Bound<'_, PyDict>>,
    congestion: Option<&Bound<'_, PyDict>>,
    capture: Option<Vec<(String, PathBuf)>>,
    progress: Option<Py<PyAny>>,
    memory: MemorySize,
) -> PyResult<Run> {
    let scenario = scenario.scenario(py)?;
    let scenario = scenario.get();
    let memory = self::memory(&memory)?;
    // Other networks than an access line have no policy already.
    let policy = policy.filter(|Policy(name)| name != "none" || scenario.read.access().is_some());
    let variant = Variant::new("", &overrides(scenario, seed, duration.as_ref(), policy.as_ref())?, Vec::new());
    let source = &scenario.source;
    let read = source.read(&variant.overrides).map_err(|report| error::of_report(py, &report))?;
    read.needs_traffic(source.name()).map_err(|report| error::of_report(py, &report))?;
    error::warn(py, read.warnings())?;
    memory.admit(std::slice::from_ref(&read), None).map_err(|wrong| error::of_error(py, &wrong))?;
    let supplied = Supplied::new(queues, congestion)?;
    let failure = Failure::default();
    let mut attendant = Attendant::new(progress).with_failure(failure.clone());
    let read = if supplied.is_empty() {
        read
    } else {
        let mut network = read.network();
        supplied.install(py, &mut network, &failure)?;
        read.with_network(network)
    };
    let captures = captures(py, read.network_ref(), &capture.unwrap_or_default())?;
    let job = Job { number: 0, input: &source.input, variant: &variant, scenario: &read };
    let mut watch = Recorded { attendant: &mut attendant, captures: captures.as_ref() };
    let ended = py.detach(|| simulate(job, captures.as_ref().map(Captures::sink), &memory, &mut watch));
    failure.take().map_or(Ok(()), Err)?;
    match ended {
        Ok(mut finished) => {
            captures.map_or(Ok(()), Captures::commit).map_err(|error| not_captured(&error))?;
            finished.run.summary.run.inputs.set.extend(supplied.record(py));
            Ok(Run::new(finished))
        }
        Err(Early::Stop(exception)) => Err(exception),
        Err(Early::Refused(refused)) => Err(error::of_error(py, &Error::new(refused))),
        Err(Early::Memory) => Err(out_of_memory(&memory)),
    }
}

/// Begins the captures of links in files; none without a link.
fn captures(py: Python<'_>, network: &Network, files: &[(String, PathBuf)]) -> PyResult<Option<Captures>> {
    for (name, _) in files {
        recording::link(network, name, "capture").map_err(|wrong| error::of_error(py, &wrong))?;
    }
    let begun = || Captures::create(network, files, false, "capture").map_err(|error| not_captured(&error));
    (!files.is_empty()).then(begun).transpose()
}

/// The exception for a capture that cannot be written.
fn not_captured(error: &Error) -> PyErr {
    PyOSError::new_err(error.to_string().trim_start_matches("error: ").to_owned())
}

/// The interpreter between slices of a run, which ends when a capture cannot be written.
struct Recorded<'a> {
    attendant: &'a mut Attendant,
    captures: Option<&'a Captures>,
}

impl Watch for Recorded<'_> {
    type Stop = PyErr;

    fn pause(&mut self) -> PyResult<()> {
        self.captures.map_or(Ok(()), Captures::check).map_err(|error| not_captured(&error))?;
        self.attendant.pause()
    }

    fn progress(&mut self, step: u64) -> PyResult<()> {
        self.attendant.progress(step)
    }
}

/// The exception for runs that hold too much.
pub(crate) fn out_of_memory(memory: &Memory) -> PyErr {
    let error = memory.outcome().err();
    PyMemoryError::new_err(error.map_or_else(|| "out of memory".to_owned(), |error| error.to_string()))
}

#[pymethods]
impl Run {
    /// The label among compared runs; empty for a single run.
    #[getter]
    fn label(&self) -> &str {
        &self.finished.run.label
    }

    /// Every scalar result: the document of `lastmile run --json` without `timing`.
    #[getter]
    fn summary(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        parsed(py, &self.summary, || self.finished.run.summary.to_json())
    }

    /// The text of `summary.json`, and with `timing` that of `lastmile run --json`.
    ///
    /// >>> import lastmile as lm
    /// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
    /// >>> run.json().splitlines()[1]
    /// '  "scenario": "single on adsl2plus-12-1",'
    #[pyo3(signature = (*, timing = false))]
    fn json(&self, timing: bool) -> String {
        if timing { self.finished.document().to_json() } else { self.finished.run.summary.to_json() }
    }

    /// Real time of the run in seconds.
    #[getter]
    fn wall_s(&self) -> f64 {
        self.finished.timing.wall_s
    }

    /// Simulated events for each second of real time.
    #[getter]
    fn events_per_s(&self) -> f64 {
        self.finished.timing.events_per_s
    }

    /// Samples over time.
    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Py<Series>> {
        let series = self.series.get_or_try_init(py, || Py::new(py, Series::new(&self.finished.run.series)))?;
        Ok(series.clone_ref(py))
    }

    /// The limit of the flow, in words.
    ///
    /// >>> import lastmile as lm
    /// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
    /// >>> isinstance(run.limits(run.summary["flows"][0]["name"]), str)
    /// True
    fn limits(&self, flow: Flow) -> PyResult<String> {
        let Flow(flow) = flow;
        let flows = &self.finished.run.summary.flows;
        let found = flows.iter().find(|known| known.name == flow);
        found.map(|flow| flow.limits.explanation.clone()).ok_or_else(|| {
            let names: Vec<&str> = flows.iter().map(|flow| &*flow.name).collect();
            let hint = did_you_mean(&flow, names.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("there are {}", names.join(", ")));
            PyKeyError::new_err(format!("no flow is called {flow:?}: {hint}"))
        })
    }

    /// Writes summary.json, series.parquet and report.html into a folder, and returns their paths.
    ///
    /// >>> import lastmile as lm
    /// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
    /// >>> sorted(path.name for path in run.save("out"))
    /// ['report.html', 'series.parquet', 'summary.json']
    fn save(&self, py: Python<'_>, folder: Folder) -> PyResult<Vec<PathBuf>> {
        py.detach(|| write::write_all(&folder.0, &self.finished.run))
            .map_err(|error| error::not_written(&error.path, &error.source))
    }

    /// The report of the run as a page of HTML.
    ///
    /// >>> import lastmile as lm
    /// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
    /// >>> run.html()[:15]
    /// '<!DOCTYPE html>'
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| report::page(std::slice::from_ref(&self.finished.run)))
    }

    /// Series by name, one panel below the other, as a drawing; all of them by default.
    ///
    /// >>> import lastmile as lm
    /// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
    /// >>> run.svg("goodput_bps", "rtt_s")[:4]
    /// '<svg'
    #[pyo3(signature = (*series))]
    fn svg(&self, py: Python<'_>, series: Vec<SeriesNames>) -> PyResult<String> {
        py.detach(|| drawing(std::slice::from_ref(&self.finished.run), &series))
    }

    /// The drawing in a notebook; `None` without samples.
    fn _repr_svg_(&self, py: Python<'_>) -> Option<String> {
        self.svg(py, Vec::new()).ok()
    }

    /// For copies and pickles: `run_of_parts` makes an equal run.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let Finished { run, timing } = &self.finished;
        let bytes = |numbers: &mut dyn Iterator<Item = f64>| {
            PyBytes::new(py, &numbers.flat_map(f64::to_le_bytes).collect::<Vec<u8>>())
        };
        let samples = run.series.iter().map(|series| {
            let times = bytes(&mut series.points.iter().map(|point| point.0));
            let values = bytes(&mut series.points.iter().map(|point| point.1));
            (series.name.clone(), series.entity.clone(), times, values)
        });
        let names = (run.label.clone(), run.own.clone());
        let parts = (names, run.summary.to_json(), json::pretty(timing), samples.collect());
        Ok((py.import("lastmile._lastmile")?.getattr("run_of_parts")?, parts))
    }

    fn __repr__(&self) -> String {
        let facts = &self.finished.run.summary.run;
        format!("<lastmile.Run {:?}, {} s, seed {}>", facts.scenario, facts.duration_s, facts.seed)
    }

    /// Plots, for which matplotlib must be installed: `pip install 'lastmile-tcp[plot]'`.
    #[getter]
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lastmile.plot")?.getattr("RunPlots")?.call1((slf,))
    }

    /// The result as on a terminal of 100 columns.
    fn __str__(&self) -> String {
        lastmile_results::table::run(&self.finished.run.summary, 100)
    }
}

/// Label and own changes, summary and timing as JSON, and the samples as bytes of 64-bit floats, the least significant
/// first: name, entity, times, values.
type Parts<'py> =
    ((String, Vec<String>), String, String, Vec<(String, String, Bound<'py, PyBytes>, Bound<'py, PyBytes>)>);

/// The run of the parts of a pickle.
#[pyfunction]
pub(crate) fn run_of_parts(
    names: (String, Vec<String>),
    summary: &str,
    timing: &str,
    samples: Vec<(String, String, PyBackedBytes, PyBackedBytes)>,
) -> PyResult<Run> {
    let wrong = |error: serde_json::Error| PyValueError::new_err(format!("no run of this version: {error}"));
    let numbers = |bytes: PyBackedBytes| {
        bytes.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect::<Vec<_>>()
    };
    let series = |(name, entity, times, values)| Samples {
        name,
        entity,
        points: numbers(times).into_iter().zip(numbers(values)).collect(),
    };
    let run = lastmile_results::Run {
        label: names.0,
        own: names.1,
        summary: serde_json::from_str(summary).map_err(wrong)?,
        series: samples.into_iter().map(series).collect(),
    };
    Ok(Run::new(Finished { run, timing: serde_json::from_str(timing).map_err(wrong)? }))
}

/// The panels of the named series of several runs, or of all.
pub(crate) fn drawing(runs: &[lastmile_results::Run], names: &[SeriesNames]) -> PyResult<String> {
    let names: Vec<&str> = names.iter().map(|SeriesNames(name)| name.as_str()).collect();
    let available: Vec<&str> = report::panels_of(runs).into_iter().map(|(series, _)| series).collect();
    if available.is_empty() {
        return Err(no_samples());
    }
    if let Some(unknown) = names.iter().find(|name| !available.contains(name)) {
        let hint = did_you_mean(unknown, available.iter().copied());
        let hint = hint.unwrap_or_else(|| format!("there are {}", available.join(", ")));
        return Err(PyValueError::new_err(format!("series: no panel shows {unknown:?}: {hint}")));
    }
    Ok(report::figure(runs, if names.is_empty() { &available } else { &names }))
}

/// The exception for a drawing of runs without samples.
fn no_samples() -> PyErr {
    PyValueError::new_err("no samples over time to draw: a run records them with record.series = true")
}

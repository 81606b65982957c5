//! Comparisons: runs on all cores, without the interpreter's lock.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;

use lastmile_results::seeds::Seeded;
use lastmile_results::{comparison, json, report, write};
use lastmile_studies::compare::rows::{Choice, Dimension};
use lastmile_studies::compare::{Compared, Plan, plan};
use lastmile_studies::memory::Memory;
use lastmile_studies::parallel::in_order_attended;
use lastmile_studies::run::{Early, Finished, Job, STEPS, simulate};
use lastmile_studies::{Error, Input};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::arguments::{FilePath, Length, MemorySize, Policy, Seed, SeedCount, SeriesNames, Threads};
use crate::error;
use crate::run::{self, Run, drawing};
use crate::scenario::Given;
use crate::slices::{Attendant, Shared, Worker};
use crate::value;

/// A finished comparison.
///
/// >>> import lastmile as lm
/// >>> line = lm.line("adsl2plus-12-1", home="single")
/// >>> comparison = lm.compare(line, policy=[None, "cake"], duration="2 s")
/// >>> [run["label"] for run in comparison.document["runs"]]
/// ['none', 'cake']
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Comparison {
    compared: Compared,
    document: PyOnceLock<Py<PyAny>>,
}

/// Simulates a scenario under several policies, with several values of keys, or in its cases.
#[pyfunction]
#[pyo3(signature = (
    scenario, /, *, policy = None, vary = None, seed = None, seeds = None, duration = None, threads = None,
    progress = None, memory
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn compare(
    py: Python<'_>,
    scenario: Given<'_>,
    policy: Option<Vec<Policy>>,
    vary: Option<&Bound<'_, PyDict>>,
    seed: Option<Seed>,
    seeds: Option<SeedCount>,
    duration: Option<Length>,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
    memory: MemorySize,
) -> PyResult<Comparison> {
    let scenario = scenario.scenario(py)?;
    let source = &scenario.get().source;
    let memory = run::memory(&memory)?;
    let choice = Choice {
        common: run::overrides(scenario.get(), seed, duration.as_ref(), None)?,
        policies: policy.into_iter().flatten().map(|Policy(name)| name).collect(),
        vary: vary.map(dimensions).transpose()?.unwrap_or_default(),
        seeds: seeds.map(|SeedCount(count)| count),
    };
    for (name, is_given) in [("seed", seed.is_some()), ("duration", duration.is_some())] {
        if is_given && choice.varies(name) {
            return Err(PyValueError::new_err(format!("vary and {name} set one key, {name}: leave one of them out")));
        }
    }
    let threads = threads.map(|Threads(count)| count);
    let load = |overrides: &[_]| source.read(overrides);
    let file = load(&choice.common).map_err(|report| error::of_report(py, &report))?;
    error::warn(py, file.warnings())?;
    let mut warned = Ok(());
    let plan = plan(&choice, (&file, source.name()), &load, &mut |report| {
        if warned.is_ok() {
            warned = error::warn(py, report);
        }
    });
    let plan = plan.map_err(|wrong| error::of_error(py, &wrong))?;
    warned?;
    memory.admit(&plan.scenarios, threads).map_err(|wrong| error::of_error(py, &wrong))?;
    let mut attendant = Attendant::new(progress);
    let done = py.detach(|| simulate_all(&plan, &source.input, &memory, threads, &mut attendant));
    let done = match done {
        Ok(done) => done,
        Err(Ended::Exception(exception)) => return Err(exception),
        Err(Ended::Wrong(wrong)) => return Err(error::of_error(py, &wrong)),
        Err(Ended::Memory) => return Err(run::out_of_memory(&memory)),
    };
    Ok(Comparison { compared: plan.compared(done), document: PyOnceLock::new() })
}

/// Values of keys: a list for each.
fn dimensions(vary: &Bound<'_, PyDict>) -> PyResult<Vec<Dimension>> {
    let dimension = |(key, values): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key = key.extract::<String>()?;
        let values = values.try_iter()?.map(|value| value::of_key(&value?)).collect::<PyResult<Vec<_>>>()?;
        Ok(Dimension::of_key(&key, values.iter().map(String::as_str)))
    };
    vary.iter().map(dimension).collect()
}

/// Why runs ended early.
enum Ended {
    Exception(PyErr),
    Wrong(Error),
    Memory,
}

/// All runs of a plan, in its order. The calling thread attends to the interpreter meanwhile.
fn simulate_all(
    plan: &Plan,
    input: &Input,
    memory: &Memory,
    threads: Option<NonZeroUsize>,
    attendant: &mut Attendant,
) -> Result<Vec<Finished>, Ended> {
    let shared = Shared::default();
    let of = STEPS * plan.variants.len() as u64;
    let job = |number: usize| {
        let job = Job { number, input, variant: &plan.variants[number], scenario: &plan.scenarios[number] };
        simulate(job, None, memory, &mut Worker(&shared))
    };
    let mut done = Vec::new();
    let mut ended = Ok(());
    in_order_attended(plan.variants.len(), threads, job, |result| {
        let next = match result {
            None => {
                let attended = attendant.look();
                attended
                    .and_then(|()| attendant.tell(shared.steps.load(Ordering::Relaxed), of))
                    .map_err(Ended::Exception)
            }
            Some(Ok(finished)) => {
                done.push(finished);
                Ok(())
            }
            Some(Err(Early::Stop(_) | Early::Memory)) => Err(Ended::Memory),
            Some(Err(Early::Refused(refused))) => Err(Ended::Wrong(Error::new(refused))),
        };
        let goes_on = next.is_ok();
        if !goes_on {
            shared.is_over.store(true, Ordering::Relaxed);
            ended = next;
        }
        goes_on
    });
    ended?;
    attendant.tell(of, of).map_err(Ended::Exception)?;
    Ok(done)
}

#[pymethods]
impl Comparison {
    /// The document of `lastmile compare --json` without `timing`.
    #[getter]
    fn document(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        value::parsed(py, &self.document, || self.json(false))
    }

    /// The text of the document, and with `timing` that of `lastmile compare --json`.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> comparison = lm.compare(line, policy=[None, "cake"], duration="2 s")
    /// >>> comparison.json().splitlines()[1]
    /// '  "scenario": "single on adsl2plus-12-1",'
    #[pyo3(signature = (*, timing = false))]
    fn json(&self, timing: bool) -> String {
        json::pretty(&self.compared.document(timing))
    }

    /// Names of what differs between rows: `policy`, keys, or `case`.
    #[getter]
    fn varied(&self) -> Vec<String> {
        self.compared.what.clone()
    }

    /// The values of each row, in the order of `varied`.
    #[getter]
    fn rows(&self) -> Vec<Vec<String>> {
        self.compared.values.clone()
    }

    /// The runs, row by row.
    #[getter]
    fn runs(&self) -> Vec<Run> {
        let finished = |(run, timing): (&lastmile_results::Run, _)| Finished { run: run.clone(), timing };
        self.compared.runs().zip(self.compared.timings.iter().copied()).map(finished).map(Run::new).collect()
    }

    /// The report of the comparison as a page of HTML.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> comparison = lm.compare(line, policy=[None, "cake"], duration="2 s")
    /// >>> comparison.html()[:15]
    /// '<!DOCTYPE html>'
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| report::comparison(&self.compared.comparison))
    }

    /// Series by name, one column for each run, as a drawing; all of them by default.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> comparison = lm.compare(line, policy=[None, "cake"], duration="2 s")
    /// >>> comparison.svg("rtt_s")[:4]
    /// '<svg'
    #[pyo3(signature = (*series))]
    fn svg(&self, py: Python<'_>, series: Vec<SeriesNames>) -> PyResult<String> {
        let runs: Vec<_> = self.compared.runs().cloned().collect();
        py.detach(|| drawing(&runs, &series))
    }

    /// Writes the page of the comparison, such as report.html.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> comparison = lm.compare(line, policy=[None, "cake"], duration="2 s")
    /// >>> comparison.save("report.html")
    fn save(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        py.detach(|| write::write_comparison(&path.0, &self.compared.comparison))
            .map_err(|error| error::not_written(&error.path, &error.source))
    }

    /// For copies and pickles: `comparison_of_parts` makes an equal comparison.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let Compared { what, values, comparison, has_seeds, .. } = &self.compared;
        let labels = comparison.rows.iter().map(|row| row.label.clone()).collect();
        let parts = (what.clone(), values.clone(), labels, self.runs(), json::pretty(&comparison.alone), *has_seeds);
        Ok((py.import("lastmile._lastmile")?.getattr("comparison_of_parts")?, parts))
    }

    fn __len__(&self) -> usize {
        self.compared.values.len()
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Comparison: {} rows, by {}>", self.__len__(), self.varied().join(", "))
    }

    /// Plots, for which matplotlib must be installed: `pip install 'lastmile-tcp[plot]'`.
    #[getter]
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lastmile.plot")?.getattr("ComparisonPlots")?.call1((slf,))
    }

    /// What the rows measure, and the table as on a terminal of 100 columns.
    fn __str__(&self) -> String {
        let of = &self.compared.comparison;
        let about = comparison::about_the_rows(of, &of.measured());
        format!("{about}\n\n{}", self.compared.table().render_within(100))
    }

    fn _repr_html_(&self) -> String {
        report::fragment(&self.compared.comparison)
    }
}

/// What varies, the values and the label of each row, the runs row by row, the downloads alone as JSON, and whether
/// there are means over seeds.
type Parts = (Vec<String>, Vec<Vec<String>>, Vec<String>, Vec<Run>, String, bool);

/// The comparison of the parts of a pickle.
#[pyfunction]
pub(crate) fn comparison_of_parts(
    what: Vec<String>,
    values: Vec<Vec<String>>,
    labels: Vec<String>,
    runs: Vec<PyRef<'_, Run>>,
    alone: &str,
    has_seeds: bool,
) -> PyResult<Comparison> {
    let alone = serde_json::from_str(alone)
        .map_err(|error| PyValueError::new_err(format!("no comparison of this version: {error}")))?;
    let (runs, timings): (Vec<_>, Vec<_>) = runs.iter().map(|run| run.parts()).unzip();
    let seeds = runs.len() / labels.len().max(1);
    let mut runs = runs.into_iter();
    let row = |label| Seeded { label, runs: runs.by_ref().take(seeds).collect() };
    let comparison = comparison::Comparison { rows: labels.into_iter().map(row).collect(), alone };
    let compared = Compared { what, values, comparison, timings, has_seeds };
    Ok(Comparison { compared, document: PyOnceLock::new() })
}

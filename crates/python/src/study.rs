//! Studies: thousands of runs on all cores of one process, kept in a folder.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use lastmile_results::atomic::AtomicFile;
use lastmile_studies::study::plan::{Ended, Means, Progress, Seeds, Study as Planned, Until};
use lastmile_studies::study::space::{Range, Space as Points};
use lastmile_studies::study::statistics::Estimate;
use lastmile_studies::study::{Column, Store, Table as Rows};
use pyo3::exceptions::{PyKeyError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyMapping};

use crate::attend::Attendant;
use crate::error;
use crate::run;
use crate::scenario::{Given, Scenario};
use crate::series::stream;
use crate::value;

/// The name of the table in the folder of a study.
const TABLE: &str = "table.parquet";

/// Points of a space of parameters.
///
/// >>> import lastmile as lm
/// >>> lm.paired({"seed": [1, 2]})
/// <lastmile.Space: 2 points of seed>
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Space(Points);

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
    duration: Option<String>,
}

/// The table of a study: a row for each run, with the point, the seed and every measure.
///
/// >>> import lastmile as lm
/// >>> line = lm.line("adsl2plus-12-1", home="single")
/// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
/// >>> table = study.run("out/study")
/// >>> table.columns[:2], len(table)
/// (['access.policy', 'seed'], 4)
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Table(Rows);

/// A mean: the values of the keys, the mean, half the width of its interval, the number of seeds.
type Mean = (Vec<String>, f64, f64, usize);

/// Every combination of values.
#[pyfunction]
pub(crate) fn grid(py: Python<'_>, axes: &Bound<'_, PyMapping>) -> PyResult<Space> {
    Points::grid(self::axes(axes)?).map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// The n-th value of every key together.
#[pyfunction]
pub(crate) fn paired(py: Python<'_>, axes: &Bound<'_, PyMapping>) -> PyResult<Space> {
    Points::paired(self::axes(axes)?).map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// A Latin hypercube.
#[pyfunction]
pub(crate) fn latin(
    py: Python<'_>,
    count: usize,
    ranges: Vec<(String, String, String, bool)>,
    seed: u64,
) -> PyResult<Space> {
    let range = |(key, low, high, is_log): (String, String, String, bool)| Ok((key, Range::new(&low, &high, is_log)?));
    let ranges = ranges.into_iter().map(range).collect::<Result<Vec<_>, _>>();
    let space = ranges.and_then(|ranges| Points::latin(ranges, count, seed));
    space.map(Space).map_err(|wrong| error::of_error(py, &wrong))
}

/// Values from one end to the other.
#[pyfunction]
pub(crate) fn steps(py: Python<'_>, low: &str, high: &str, count: usize, is_log: bool) -> PyResult<Vec<String>> {
    let range = Range::new(low, high, is_log).map_err(|wrong| error::of_error(py, &wrong))?;
    Ok(range.steps(count))
}

/// A study of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, space, *, seeds, until, duration))]
pub(crate) fn study(
    py: Python<'_>,
    scenario: Given<'_>,
    space: Bound<'_, Space>,
    seeds: u64,
    until: Option<(String, f64)>,
    duration: Option<String>,
) -> PyResult<Study> {
    if seeds == 0 {
        return Err(PyValueError::new_err("seeds: at least 1"));
    }
    let scenario = scenario.scenario(py)?;
    let seeds = match until {
        None => Seeds::Count(seeds),
        Some((measure, share)) => Seeds::Until(Until { measure, share, at_most: seeds }),
    };
    // A wrong duration is refused now, and not by the first run.
    run::overrides(scenario.get(), None, duration.as_deref(), None)?;
    Ok(Study { scenario: scenario.unbind(), space: space.unbind(), seeds, duration })
}

/// Values of each key, in the order of the mapping.
fn axes(axes: &Bound<'_, PyMapping>) -> PyResult<Vec<(String, Vec<String>)>> {
    let mut all = Vec::new();
    for item in axes.items()?.iter() {
        let (key, values): (String, Bound<'_, PyAny>) = item.extract()?;
        let values = values.try_iter()?.map(|value| value::of_key(&value?)).collect::<PyResult<Vec<_>>>()?;
        all.push((key, values));
    }
    Ok(all)
}

#[pymethods]
impl Space {
    /// The keys.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.0.keys.clone()
    }

    /// The points: a value for each key.
    #[getter]
    fn points(&self) -> Vec<Vec<String>> {
        self.0.points.clone()
    }

    fn __len__(&self) -> usize {
        self.0.points.len()
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Space: {} points of {}>", self.__len__(), self.0.keys.join(", "))
    }
}

#[pymethods]
impl Study {
    /// The points.
    #[getter]
    fn space(&self, py: Python<'_>) -> Py<Space> {
        self.space.clone_ref(py)
    }

    /// Simulates all runs that the folder does not have, and returns the table of all.
    ///
    /// The table is also written into the folder, as table.parquet. `progress` is a function of the share that is done.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> len(study.run("out/study", progress=print))
    /// 1.0
    /// 4
    #[pyo3(signature = (folder, *, threads = None, progress = None, memory = "4 GiB"))]
    fn run(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        threads: Option<NonZeroUsize>,
        progress: Option<Py<PyAny>>,
        memory: &str,
    ) -> PyResult<Table> {
        let memory = run::memory(memory)?;
        let store = Store::open(&folder).map_err(|error| error::not_written(&folder, &error))?;
        let mut attendant = Attendant::new(progress);
        let is_over = AtomicBool::new(false);
        let ended = self.planned(py, |planned, load| {
            py.detach(|| {
                let is_over_now = || is_over.load(Ordering::Relaxed);
                let means = Means { load, store: &store, memory: &memory, threads, is_over: &is_over_now };
                let table = planned.run(means, &mut |progress: Progress| {
                    let (done, of) = (progress.finished as u64, progress.runs as u64);
                    let attended = attendant.look().and_then(|()| attendant.tell(done, of));
                    is_over.store(attended.is_err(), Ordering::Relaxed);
                    attended
                })?;
                let path = folder.join(TABLE);
                let file = AtomicFile::create(&path).map_err(Ended::Io)?;
                write(&table, file).map_err(Ended::Io)?;
                Ok(table)
            })
        })?;
        match ended {
            Ok(table) => Ok(Table(table)),
            Err(Ended::Stop(exception)) => Err(exception),
            Err(Ended::Wrong(wrong)) => Err(error::of_error(py, &wrong)),
            Err(Ended::Io(error)) => Err(PyOSError::new_err(error.to_string())),
        }
    }

    /// The number of runs that the folder has, and the number that is needed for certain.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> study.status("out/empty")
    /// (0, 4)
    fn status(&self, py: Python<'_>, folder: PathBuf) -> PyResult<(usize, usize)> {
        let store = Store::open(&folder).map_err(|error| error::not_written(&folder, &error))?;
        let progress = self.planned(py, |planned, load| py.detach(|| planned.status(load, &store)))?;
        let progress = progress.map_err(|wrong| error::of_error(py, &wrong))?;
        Ok((progress.finished, progress.runs))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let seeds = match &self.seeds {
            Seeds::Count(count) => format!("{count} seeds"),
            Seeds::Until(until) => format!("at most {} seeds", until.at_most),
        };
        let name = self.scenario.get().read.name().to_owned();
        format!("<lastmile.Study {name:?}: {} points, {seeds} each>", self.space.bind(py).get().__len__())
    }
}

impl Study {
    /// Calls `of` with the study as the crate below has it.
    fn planned<T>(
        &self,
        py: Python<'_>,
        of: impl FnOnce(&Planned<'_>, &lastmile_studies::study::plan::Load<'_>) -> T,
    ) -> PyResult<T> {
        let scenario = self.scenario.get();
        let common = run::overrides(scenario, None, self.duration.as_deref(), None)?;
        let source = &scenario.source;
        let space = &self.space.bind(py).get().0;
        let planned = Planned { input: &source.input, common: &common, space, seeds: &self.seeds };
        Ok(of(&planned, &|overrides| source.read(overrides)))
    }
}

fn write(table: &Rows, mut file: AtomicFile) -> std::io::Result<()> {
    table.write(&mut file)?;
    file.commit()
}

#[pymethods]
impl Table {
    /// Names of the columns: keys, `seed`, measures.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Names of the keys.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.0.keys().into_iter().map(str::to_owned).collect()
    }

    /// The values of a column.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> study.run("out/study").column("seed")
    /// [1, 2, 1, 2]
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let found = self.0.columns.iter().find(|(known, _)| known == name);
        let (_, column) = found.ok_or_else(|| PyKeyError::new_err(format!("no column {name:?}")))?;
        let values = match column {
            Column::Words(values) => values.into_pyobject(py)?,
            Column::Seeds(values) => values.into_pyobject(py)?,
            Column::Numbers(values) => values.into_pyobject(py)?,
        };
        Ok(values.into_any().unbind())
    }

    /// The mean of a measure at each point: values of the keys, mean, half the width of its 95 % confidence interval,
    /// number of seeds.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> [point for point, mean, ci95, seeds in study.run("out/study").means("download_bps")]
    /// [['none'], ['cake']]
    fn means(&self, py: Python<'_>, measure: &str) -> PyResult<Vec<Mean>> {
        let means = self.0.estimates(measure).map_err(|wrong| error::of_error(py, &wrong))?;
        Ok(means.into_iter().map(mean).collect())
    }

    /// The difference of a measure between two values of a key, `other - one`, over equal seeds: a paired comparison
    /// with common random numbers. A row for each combination of the other keys.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> table = study.run("out/study")
    /// >>> [seeds for _, mean, ci95, seeds in table.paired("download_bps", "access.policy", "none", "cake")]
    /// [2]
    fn paired(&self, py: Python<'_>, measure: &str, key: &str, one: &str, other: &str) -> PyResult<Vec<Mean>> {
        let means = self.0.paired(measure, (key, one, other)).map_err(|wrong| error::of_error(py, &wrong))?;
        Ok(means.into_iter().map(mean).collect())
    }

    /// The table as a stream of Arrow record batches, for every library that reads the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the request.
        drop(requested_schema);
        let batch = py.detach(|| batch(&self.0)).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        stream(py, batch.schema(), vec![batch])
    }

    /// Plots, for which matplotlib must be installed: `pip install lastmile[plot]`.
    #[getter]
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lastmile.plot")?.getattr("TablePlots")?.call1((slf,))
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Table: {} runs, {} columns>", self.__len__(), self.0.columns.len())
    }
}

fn mean((point, estimate): (Vec<String>, Estimate)) -> Mean {
    (point, estimate.mean, estimate.ci95, estimate.seeds)
}

fn batch(table: &Rows) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let column = |(name, column): &(String, Column)| -> (Field, ArrayRef) {
        match column {
            Column::Words(words) => {
                let array = StringArray::from_iter_values(words);
                (Field::new(name, DataType::Utf8, false), Arc::new(array))
            }
            Column::Seeds(seeds) => {
                (Field::new(name, DataType::UInt64, false), Arc::new(UInt64Array::from(seeds.clone())))
            }
            Column::Numbers(numbers) => {
                (Field::new(name, DataType::Float64, true), Arc::new(Float64Array::from(numbers.clone())))
            }
        }
    };
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = table.columns.iter().map(column).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

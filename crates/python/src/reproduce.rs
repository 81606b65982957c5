//! Published tables, reproduced on all processors.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile_published::{
    Experiment, ExperimentError, Reproduction as Reproduced, Table, TableResult, experiment, publications, select,
    stoppable, work,
};
use lastmile_results::json;
use lastmile_studies::parallel::in_order_attended;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::arguments::{Tables, Threads};
use crate::error;
use crate::slices::Attendant;
use crate::value::parsed;

/// Published tables next to simulations of them: the document of `lastmile reproduce --json`.
///
/// >>> import lastmile as lm
/// >>> reproduction = lm.reproduce("phanse2000/text-3.4")
/// >>> reproduction.document["tables"][0]["claims"][0]["verdict"]
/// 'shown'
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Reproduction {
    reproduced: Reproduced,
    document: PyOnceLock<Py<PyAny>>,
}

/// Reproduces published tables.
#[pyfunction]
#[pyo3(signature = (*tables, threads = None, progress = None))]
pub(crate) fn reproduce(
    py: Python<'_>,
    tables: Vec<Tables>,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduction> {
    let threads = threads.map(|Threads(count)| count);
    let tables: Vec<String> = tables.into_iter().map(|Tables(name)| name).collect();
    let wrong = |message: &dyn std::fmt::Display| error::wrong(py, &format!("error: {message}"), None);
    let publications = publications().map_err(|error| wrong(&error))?;
    let chosen = select(&publications, &tables).map_err(|error| wrong(&error))?;
    let mut experiments: Vec<(&Table, Experiment)> = Vec::new();
    for (publication, table) in &chosen {
        let named = tables.iter().any(|name| name.rsplit('/').next() == Some(&*table.id));
        match experiment(&publication.key, &table.id) {
            Some(experiment) => experiments.push((table, experiment)),
            None if named => {
                return Err(wrong(&format_args!("nothing reproduces {}/{}", publication.key, table.id)));
            }
            None => {}
        }
    }
    let mut attendant = Attendant::new(progress);
    let tables = py.detach(|| simulate_all(&experiments, threads, &mut attendant)).map_err(|ended| match ended {
        Ended::Exception(exception) => exception,
        Ended::Failed(table, error) => wrong(&format_args!("{table}: {error}")),
    })?;
    Ok(Reproduction { reproduced: Reproduced::new(tables), document: PyOnceLock::new() })
}

/// Why simulations ended early.
enum Ended {
    Exception(PyErr),
    Failed(String, ExperimentError),
}

/// The results of all tables in order. The calling thread attends to the interpreter meanwhile.
fn simulate_all(
    experiments: &[(&Table, Experiment)],
    threads: Option<NonZeroUsize>,
    attendant: &mut Attendant,
) -> Result<Vec<TableResult>, Ended> {
    let all: Vec<(usize, usize)> = experiments
        .iter()
        .enumerate()
        .flat_map(|(number, (table, experiment))| (0..experiment.parts(table)).map(move |part| (number, part)))
        .collect();
    let shares = shares(experiments);
    let is_over = Arc::new(AtomicBool::new(false));
    let failed = |number: usize, error| {
        let (table, experiment) = &experiments[number];
        Ended::Failed(format!("{}/{}", experiment.publication, table.id), error)
    };
    let part = |place: usize| {
        let (number, part) = all[place];
        let (table, experiment) = &experiments[number];
        stoppable(&is_over, || experiment.part(table, part)).map_err(|error| failed(number, error))
    };
    let share = |done: usize| shares[..done].iter().fold(0.0, |sum, share| sum + share);
    let (mut made, mut tables, mut done) = (Vec::new(), Vec::new(), 0);
    let mut ended = Ok(());
    in_order_attended(all.len(), threads, part, |result| {
        let next = match result {
            None => attendant.look().and_then(|()| attendant.tell_share(share(done))).map_err(Ended::Exception),
            Some(Err(ended)) => Err(ended),
            Some(Ok(part)) => {
                let (number, _) = all[done];
                done += 1;
                made.push(part);
                let is_last = all.get(done).is_none_or(|(next, _)| *next != number);
                let joined =
                    is_last.then(|| experiments[number].1.join(experiments[number].0, std::mem::take(&mut made)));
                joined.transpose().map_err(|error| failed(number, error)).and_then(|table| {
                    tables.extend(table);
                    let share = if done == all.len() { 1.0 } else { share(done) };
                    attendant.tell_share(share).map_err(Ended::Exception)
                })
            }
        };
        let goes_on = next.is_ok();
        if !goes_on {
            is_over.store(true, Ordering::Relaxed);
            ended = next;
        }
        goes_on
    });
    ended.map(|()| tables)
}

/// The share of the work that each part of each table has. Tables with unknown work have little.
fn shares(experiments: &[(&Table, Experiment)]) -> Vec<f64> {
    /// In the unit of `work`: a table of closed forms.
    const LEAST: f64 = 0.01;
    let of = |(table, experiment): &(&Table, Experiment)| {
        let whole = work(experiment).max(LEAST);
        experiment.shares(table).into_iter().map(move |share| share * whole).collect::<Vec<f64>>()
    };
    let parts: Vec<f64> = experiments.iter().flat_map(of).collect();
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|part| part / sum).collect()
}

#[pymethods]
impl Reproduction {
    /// The document of `lastmile reproduce --json`.
    #[getter]
    fn document(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        parsed(py, &self.document, || self.json())
    }

    /// The text of the document.
    ///
    /// >>> import lastmile as lm
    /// >>> lm.reproduce("phanse2000/text-3.4").json().splitlines()[1]
    /// '  "tables": ['
    fn json(&self) -> String {
        json::pretty(&self.reproduced)
    }

    /// Plots, for which matplotlib must be installed: `pip install 'lastmile-tcp[plot]'`.
    #[getter]
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lastmile.plot")?.getattr("ReproductionPlots")?.call1((slf,))
    }

    fn __len__(&self) -> usize {
        self.reproduced.tables.len()
    }

    fn __repr__(&self) -> String {
        let shown: usize = self.reproduced.summary.iter().map(|of| of.shown).sum();
        format!("<lastmile.Reproduction: {} tables, {shown} claims shown>", self.__len__())
    }
}

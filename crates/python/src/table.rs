//! The table of a study, as Arrow and as means.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use lastmile_results::studied;
use lastmile_studies::study::means::means;
use lastmile_studies::study::statistics::Estimate;
use lastmile_studies::study::{Column, Table as Rows};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arguments::{Key, KeyValues, Measure, Measures, Name};
use crate::error;
use crate::quantity::numbers;
use crate::series::{stream, to_pandas};
use crate::value;

/// Columns of the text of a table.
const WIDTH: u16 = 120;

/// The table of a study: a row for each run, with the point, the seed and every measure.
///
/// >>> import lastmile as lm
/// >>> line = lm.line("adsl2plus-12-1", home="single")
/// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
/// >>> table = study.run("out/study")
/// >>> table.columns[:2], len(table)
/// (['access.policy', 'seed'], 4)
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Table {
    rows: Rows,
    /// The measures that the study's file names.
    named: Vec<String>,
    /// Sentences below the means.
    notes: Vec<String>,
    /// Columns with the numbers of keys: the name of the key, that of the column, the values.
    numbers: Vec<(String, String, Vec<Option<f64>>)>,
}

impl Table {
    pub(crate) fn new(rows: Rows, named: Vec<String>, notes: Vec<String>) -> Self {
        let numbers = rows.columns.iter().filter_map(|(key, column)| match column {
            Column::Words(words) => {
                let (ending, values) = numbers(words)?;
                let name = format!("{key}_{ending}");
                let is_free = rows.columns.iter().all(|(known, _)| *known != name);
                is_free.then(|| (key.clone(), name, values))
            }
            _ => None,
        });
        let numbers = numbers.collect();
        Self { rows, named, notes, numbers }
    }
}

/// The unit of a measure, as the end of its name or of that of its quantity.
#[pyfunction]
pub(crate) fn unit(measure: &str) -> &str {
    studied::unit(measure)
}

/// A mean: the values of the keys, the mean, half the width of its interval (`nan` for one seed), the number of seeds.
type Mean = (Vec<String>, f64, f64, usize);

#[pymethods]
impl Table {
    /// Names of the columns: keys, `seed`, measures. Behind a key with numbers is a column of them, in the unit of
    /// the end of its name: `access.up.rate_bps`.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let with_numbers = |(name, _): &(String, Column)| {
            let of_key = self.numbers.iter().filter(|(key, ..)| key == name).map(|(_, name, _)| name.clone());
            std::iter::once(name.clone()).chain(of_key).collect::<Vec<_>>()
        };
        self.rows.columns.iter().flat_map(with_numbers).collect()
    }

    /// Names of the keys.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.rows.keys().into_iter().map(str::to_owned).collect()
    }

    /// Names of the measures.
    #[getter]
    fn measures(&self) -> Vec<String> {
        self.rows.measures().into_iter().map(str::to_owned).collect()
    }

    /// The values of a column.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> study.run("out/study").column("seed")
    /// [1, 2, 1, 2]
    fn column(&self, py: Python<'_>, name: Name) -> PyResult<Py<PyAny>> {
        let Name(name) = name;
        if let Some((.., values)) = self.numbers.iter().find(|(_, known, _)| *known == name) {
            return Ok(values.into_pyobject(py)?.into_any().unbind());
        }
        let found = self.rows.columns.iter().find(|(known, _)| *known == name);
        let (_, column) = found.ok_or_else(|| PyKeyError::new_err(format!("no column {name:?}")))?;
        let values = match column {
            Column::Words(values) => values.into_pyobject(py)?,
            Column::Seeds(values) => values.into_pyobject(py)?,
            Column::Numbers(values) => values.into_pyobject(py)?,
        };
        Ok(values.into_any().unbind())
    }

    /// The mean of a measure at each point: values of the keys, mean, half the width of its 95 % confidence interval,
    /// number of seeds. `where` has values of keys, in any unit: the points with these alone.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> table = study.run("out/study")
    /// >>> [point for point, mean, ci95, seeds in table.means("download_bps")]
    /// [['none'], ['cake']]
    /// >>> [point for point, mean, ci95, seeds in table.means("download_bps", where={"access.policy": None})]
    /// [['none']]
    #[pyo3(signature = (measure, *, r#where = None))]
    fn means(&self, py: Python<'_>, measure: Measure, r#where: Option<KeyValues>) -> PyResult<Vec<Mean>> {
        let mut rows = Cow::Borrowed(&self.rows);
        for (key, value) in r#where.into_iter().flat_map(|KeyValues(values)| values) {
            rows = Cow::Owned(rows.at(&key, &value).map_err(|wrong| error::of_error(py, &wrong))?);
        }
        let means = rows.estimates(&measure.0).map_err(|wrong| error::of_error(py, &wrong))?;
        Ok(means.into_iter().map(mean).collect())
    }

    /// The difference of a measure between two values of a key, `other - one`, over equal seeds: a paired comparison
    /// with common random numbers. A row for each combination of the other keys. Values are those that the study
    /// takes, in any unit; `None` is `none`.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> table = study.run("out/study")
    /// >>> [seeds for _, mean, ci95, seeds in table.paired("download_bps", "access.policy", "none", "cake")]
    /// [2]
    fn paired(
        &self,
        py: Python<'_>,
        measure: Measure,
        key: Key,
        one: &Bound<'_, PyAny>,
        other: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Mean>> {
        let (Measure(measure), Key(key)) = (measure, key);
        let (one, other) = (value::of_key(one)?, value::of_key(other)?);
        let means = self.rows.paired(&measure, (&key, &one, &other)).map_err(|wrong| error::of_error(py, &wrong))?;
        Ok(means.into_iter().map(mean).collect())
    }

    /// The means of measures at each point, with 95 % intervals, as text. Without names, those that the study's file
    /// names, or goodputs and round trips. A sentence follows if the runs measure phases of several times, and one if
    /// points have their most seeds and a wider interval than the study wants.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> print(study.run("out/study").text("drops").splitlines()[0].split())
    /// ['access.policy', 'seeds', 'drops']
    #[pyo3(signature = (*measures))]
    fn text(&self, py: Python<'_>, measures: Vec<Measures>) -> PyResult<String> {
        let measures: Vec<String> = measures.into_iter().map(|Measures(name)| name).collect();
        let measures = if measures.is_empty() { &self.named } else { &measures };
        let text = means(&self.rows, measures).map_err(|wrong| error::of_error(py, &wrong))?;
        let notes = self.notes.iter().map(|note| format!("\n{note}\n"));
        Ok(std::iter::once(text.render_within(WIDTH)).chain(notes).collect())
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
        let batch = py.detach(|| self.batch()).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        stream(py, batch.schema(), vec![batch])
    }

    /// The table as a data frame of pandas, for which pandas and pyarrow must be installed.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> study.run("out/study").to_pandas()["access.policy"].tolist()
    /// ['none', 'none', 'cake', 'cake']
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(slf)
    }

    /// Plots, for which matplotlib must be installed: `pip install 'lastmile-tcp[plot]'`.
    #[getter]
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lastmile.plot")?.getattr("TablePlots")?.call1((slf,))
    }

    fn __len__(&self) -> usize {
        self.rows.rows()
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Table: {} runs, {} columns>", self.__len__(), self.columns().len())
    }
}

fn mean((point, estimate): (Vec<String>, Estimate)) -> Mean {
    (point, estimate.mean, estimate.ci95.unwrap_or(f64::NAN), estimate.seeds)
}

impl Table {
    fn batch(&self) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let numbers = |name: &str, numbers: &[Option<f64>]| -> (Field, ArrayRef) {
            (Field::new(name, DataType::Float64, true), Arc::new(Float64Array::from(numbers.to_vec())))
        };
        let column = |(name, column): &(String, Column)| -> Vec<(Field, ArrayRef)> {
            let own: (Field, ArrayRef) = match column {
                Column::Words(words) => {
                    (Field::new(name, DataType::Utf8, false), Arc::new(StringArray::from_iter_values(words)))
                }
                Column::Seeds(seeds) => {
                    (Field::new(name, DataType::UInt64, false), Arc::new(UInt64Array::from(seeds.clone())))
                }
                Column::Numbers(values) => numbers(name, values),
            };
            let of_key = self.numbers.iter().filter(|(key, ..)| key == name);
            std::iter::once(own).chain(of_key.map(|(_, name, values)| numbers(name, values))).collect()
        };
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = self.rows.columns.iter().flat_map(column).unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

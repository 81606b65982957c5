//! The table of a study, as Arrow and as means.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use lastmile_studies::study::means::means;
use lastmile_studies::study::statistics::Estimate;
use lastmile_studies::study::{Column, Table as Rows};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error;
use crate::series::stream;

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
pub(crate) struct Table(pub(crate) Rows);

/// A mean: the values of the keys, the mean, half the width of its interval (`nan` for one seed), the number of seeds.
type Mean = (Vec<String>, f64, f64, usize);

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
    /// with common random numbers. A row for each combination of the other keys. Values are the texts of the column;
    /// `None` is `none`.
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
        measure: &str,
        key: &str,
        one: Option<&str>,
        other: Option<&str>,
    ) -> PyResult<Vec<Mean>> {
        let [one, other] = [one, other].map(|value| value.unwrap_or("none"));
        let means = self.0.paired(measure, (key, one, other)).map_err(|wrong| error::of_error(py, &wrong))?;
        Ok(means.into_iter().map(mean).collect())
    }

    /// The means of measures at each point, with 95 % intervals, as text. Without names, those of goodputs and round
    /// trips.
    ///
    /// >>> import lastmile as lm
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> study = lm.study(line, {"access.policy": [None, "cake"]}, seeds=2, duration="2 s")
    /// >>> print(study.run("out/study").text("drops").splitlines()[0].split())
    /// ['access.policy', 'seeds', 'drops']
    #[pyo3(signature = (*measures))]
    fn text(&self, py: Python<'_>, measures: Vec<String>) -> PyResult<String> {
        let text = means(&self.0, &measures).map_err(|wrong| error::of_error(py, &wrong))?;
        Ok(text.render_within(WIDTH))
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
    (point, estimate.mean, estimate.ci95.unwrap_or(f64::NAN), estimate.seeds)
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

//! Samples over time as Arrow: the PyCapsule interface of the Arrow C stream.
//!
//! The columns are those of `series.parquet`: `time_s`, `series`, `entity`, `value`. Names are dictionary-encoded. The
//! columns are built once, and every reader gets them without a copy.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lastmile_results::Series as Samples;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::arguments::{Entity, Name};

/// The most rows of a batch.
const ROWS: usize = 1 << 20;
/// The name of the capsule.
const STREAM: &CStr = c"arrow_array_stream";

/// Samples over time, in rows of `time_s`, `series`, `entity` and `value`.
///
/// Polars, pyarrow and other readers of the Arrow PyCapsule interface get them without a copy; pandas copies them.
///
/// >>> import lastmile as lm
/// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
/// >>> import polars
/// >>> polars.DataFrame(run.series).columns
/// ['time_s', 'series', 'entity', 'value']
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Series {
    samples: Vec<Samples>,
    batches: OnceLock<Vec<RecordBatch>>,
}

impl Series {
    pub(crate) fn new(samples: &[Samples]) -> Self {
        Self { samples: samples.to_vec(), batches: OnceLock::new() }
    }

    fn find(&self, name: &str, entity: &str) -> PyResult<&Samples> {
        let found = self.samples.iter().find(|one| one.name == name && one.entity == entity);
        found.ok_or_else(|| {
            let others: Vec<&str> =
                self.samples.iter().filter(|one| one.entity == entity).map(|one| one.name.as_str()).collect();
            let hint = if others.is_empty() {
                "`names` lists all".to_owned()
            } else {
                format!("of {entity:?} there are: {}", others.join(", "))
            };
            PyKeyError::new_err(format!("no series {name:?} of {entity:?}; {hint}"))
        })
    }

    /// The columns, built by the first reader.
    fn batches(&self) -> PyResult<Vec<RecordBatch>> {
        if let Some(batches) = self.batches.get() {
            return Ok(batches.clone());
        }
        let built = batches(&self.samples).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(self.batches.get_or_init(|| built).clone())
    }
}

#[pymethods]
impl Series {
    /// Name and entity of each series.
    #[getter]
    fn names(&self) -> Vec<(&str, &str)> {
        self.samples.iter().map(|one| (one.name.as_str(), one.entity.as_str())).collect()
    }

    /// Times in seconds and values of a series, two arrays of `array.array("d")`.
    ///
    /// >>> import lastmile as lm
    /// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
    /// >>> times, values = run.series.samples(*run.series.names[0])
    /// >>> len(times) == len(values)
    /// True
    fn samples<'py>(
        &self,
        py: Python<'py>,
        name: Name,
        entity: Entity,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let points = &self.find(&name.0, &entity.0)?.points;
        Ok((floats(py, points.iter().map(|point| point.0))?, floats(py, points.iter().map(|point| point.1))?))
    }

    /// The samples as a stream of Arrow record batches, for every library that reads the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the request.
        drop(requested_schema);
        let batches = py.detach(|| self.batches())?;
        stream(py, schema(), batches)
    }

    /// The samples as a data frame of pandas, for which pandas and pyarrow must be installed.
    ///
    /// >>> import lastmile as lm
    /// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s")
    /// >>> list(run.series.to_pandas().columns)
    /// ['time_s', 'series', 'entity', 'value']
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(slf)
    }

    /// Number of samples.
    fn __len__(&self) -> usize {
        self.samples.iter().map(|one| one.points.len()).sum()
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Series: {} series, {} samples>", self.samples.len(), self.__len__())
    }
}

/// An `array.array("d")`.
pub(crate) fn floats(py: Python<'_>, numbers: impl Iterator<Item = f64>) -> PyResult<Bound<'_, PyAny>> {
    let bytes: Vec<u8> = numbers.flat_map(f64::to_ne_bytes).collect();
    py.import("array")?.getattr("array")?.call1(("d", PyBytes::new(py, &bytes)))
}

/// The data frame of an object with a stream.
pub(crate) fn to_pandas<'py>(stream: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    stream.py().import("lastmile._frames")?.getattr("to_pandas")?.call1((stream,))
}

/// A capsule with the batches.
pub(crate) fn stream(py: Python<'_>, schema: SchemaRef, batches: Vec<RecordBatch>) -> PyResult<Bound<'_, PyCapsule>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

fn schema() -> SchemaRef {
    let name = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("time_s", DataType::Float64, false),
        Field::new("series", name.clone(), false),
        Field::new("entity", name, false),
        Field::new("value", DataType::Float64, false),
    ]))
}

fn batches(samples: &[Samples]) -> Result<Vec<RecordBatch>, arrow_schema::ArrowError> {
    let (names, name_of) = dictionary(samples.iter().map(|one| one.name.as_str()));
    let (entities, entity_of) = dictionary(samples.iter().map(|one| one.entity.as_str()));
    let rows = samples.iter().zip(name_of.iter().zip(&entity_of));
    let rows: Vec<(f64, i32, i32, f64)> = rows
        .flat_map(|(one, (name, entity))| one.points.iter().map(|point| (point.0, *name, *entity, point.1)))
        .collect();
    let batch = |rows: &[(f64, i32, i32, f64)]| {
        let name = |keys: Int32Array, names: &ArrayRef| DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(names));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Float64Array>()),
            Arc::new(name(rows.iter().map(|row| Some(row.1)).collect(), &names)?),
            Arc::new(name(rows.iter().map(|row| Some(row.2)).collect(), &entities)?),
            Arc::new(rows.iter().map(|row| Some(row.3)).collect::<Float64Array>()),
        ];
        RecordBatch::try_new(schema(), columns)
    };
    rows.chunks(ROWS).map(batch).collect()
}

/// The different words in order of appearance, and the number of each word.
fn dictionary<'a>(words: impl Iterator<Item = &'a str>) -> (ArrayRef, Vec<i32>) {
    let mut different: Vec<&str> = Vec::new();
    let mut numbers = BTreeMap::new();
    let keys = words.map(|word| {
        *numbers.entry(word).or_insert_with(|| {
            different.push(word);
            i32::try_from(different.len() - 1).expect("a run has far fewer series than 2^31")
        })
    });
    let keys = keys.collect();
    (Arc::new(StringArray::from(different)), keys)
}

//! Arguments of several functions, whose errors name them.

use std::num::NonZeroUsize;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::quantity;

/// The name of the type of a value.
fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// A whole number of an argument, from `least` on.
fn whole(name: &str, least: u64, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let no_number = || PyTypeError::new_err(format!("{name}: a whole number, and not of type {}", kind(value)));
    if value.is_instance_of::<PyBool>() {
        return Err(no_number());
    }
    // Numbers of NumPy have the method, too.
    let whole = value.call_method0("__index__").map_err(|_| no_number())?;
    let range = || PyValueError::new_err(format!("{name}: {whole} is no whole number from {least} to {}", u64::MAX));
    whole.extract().ok().filter(|number| *number >= least).ok_or_else(range)
}

/// A text of an argument, or a quantity with one.
fn text(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Some(text) = quantity::text(value)? {
        return Ok(text);
    }
    let wrong = |_| PyTypeError::new_err(format!("{name}: {expected}, and not of type {}", kind(value)));
    Ok(value.cast::<PyString>().map_err(wrong)?.to_cow()?.into_owned())
}

/// `seed`: that of every random stream.
#[derive(Clone, Copy)]
pub(crate) struct Seed(pub(crate) u64);

/// `seeds`: a number of runs of each point or row.
#[derive(Clone, Copy)]
pub(crate) struct SeedCount(pub(crate) u64);

/// `threads`: simulations at once.
#[derive(Clone, Copy)]
pub(crate) struct Threads(pub(crate) NonZeroUsize);

/// `duration`: simulated time, as text.
pub(crate) struct Length(pub(crate) String);

/// `policy`: its name or file.
pub(crate) struct Policy(pub(crate) String);

impl FromPyObject<'_, '_> for Seed {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        whole("seed", 0, &value).map(Self)
    }
}

impl FromPyObject<'_, '_> for SeedCount {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        whole("seeds", 1, &value).map(Self)
    }
}

impl FromPyObject<'_, '_> for Threads {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let threads = whole("threads", 1, &value)?;
        Ok(Self(usize::try_from(threads).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX)))
    }
}

impl FromPyObject<'_, '_> for Length {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        text("duration", "a text with a unit such as \"20 s\"", &value).map(Self)
    }
}

impl FromPyObject<'_, '_> for Policy {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self("none".to_owned()));
        }
        text("policy", "a name such as \"cake\", a file, or None", &value).map(Self)
    }
}

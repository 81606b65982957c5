//! Values of keys from Python, in the form of `--set`.

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::quantity;

/// The object of a document of JSON, which is made once.
pub(crate) fn parsed(
    py: Python<'_>,
    kept: &PyOnceLock<Py<PyAny>>,
    text: impl FnOnce() -> String,
) -> PyResult<Py<PyAny>> {
    let made =
        kept.get_or_try_init(py, || Ok::<_, PyErr>(py.import("json")?.call_method1("loads", (text(),))?.unbind()))?;
    Ok(made.clone_ref(py))
}

/// `value` as `--set key=VALUE` has it. A text is TOML, or a bare text; `None` is the word `none`.
pub(crate) fn of_key(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    if value.is_none() {
        return Ok("none".to_owned());
    }
    match quantity::text(value)? {
        Some(text) => Ok(text),
        None => toml(value),
    }
}

/// `value` as a value of TOML.
fn toml(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(quoted(&text.to_cow()?));
    }
    // `bool` is a kind of `int`.
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    // A subclass has a `repr` of its own, as an enumeration and a `float64` of NumPy have.
    if value.is_instance_of::<PyInt>() {
        return number::<PyInt>(value);
    }
    if value.is_instance_of::<PyFloat>() {
        return match quantity::text(value)? {
            Some(text) => Ok(quoted(&text)),
            None => float(value),
        };
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let pair = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok(format!("{} = {}", quoted(&key.cast::<PyString>()?.to_cow()?), toml(&value)?))
        };
        return Ok(format!("{{ {} }}", table.iter().map(pair).collect::<PyResult<Vec<_>>>()?.join(", ")));
    }
    // Numbers, flags and arrays of NumPy, and columns of pandas, have their values as objects of Python.
    if let Ok(own) = value.call_method0("tolist")
        && !own.get_type().is(value.get_type())
    {
        return toml(&own);
    }
    // Other numbers. Some have a method that refuses: `__index__` of an array is for a single whole number.
    if let Ok(whole) = value.call_method0("__index__") {
        return number::<PyInt>(&whole);
    }
    if let Ok(float) = value.call_method0("__float__") {
        return self::float(&float);
    }
    let items = value.try_iter().map_err(|_| {
        let name = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "a value of type {name}: text, numbers, True and False, lists and dicts are possible"
        ))
    })?;
    let items = items.map(|item| toml(&item?)).collect::<PyResult<Vec<_>>>()?;
    Ok(format!("[{}]", items.join(", ")))
}

/// The digits of a float. A whole one is a whole number, which keys of both kinds take.
fn float(value: &Bound<'_, PyAny>) -> PyResult<String> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: f64 = value.extract()?;
    if number.fract() == 0.0 && number.abs() < EXACT {
        Ok(format!("{number:.0}"))
    } else {
        self::number::<PyFloat>(value)
    }
}

/// The digits of a number, as its type of Python writes them.
fn number<T: PyTypeInfo>(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().get_type::<T>().call_method1("__repr__", (value,))?.extract()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if u32::from(c) < 0x20 || c == '\x7f' => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

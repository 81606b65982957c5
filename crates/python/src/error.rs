//! Errors of the crates below as the exceptions of `lastmile/_errors.py`.

use std::path::Path;

use lastmile_scenario::diagnostics::{Place, Severity};
use lastmile_scenario::{Diagnostic, Report};
use lastmile_studies::Error;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The module of the exceptions.
const MODULE: &str = "lastmile._errors";

/// A `ScenarioError` of this report: the whole text as its message, the first error's place as attributes.
pub(crate) fn of_report(py: Python<'_>, report: &Report) -> PyErr {
    let first = report.findings().iter().find(|finding| finding.severity == Severity::Error);
    raise(py, &report.to_string(), first)
}

/// The exception for an error of the crate `studies`.
pub(crate) fn of_error(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Report(report) => of_report(py, report),
        Error::Wrong { hint, .. } => wrong(py, &error.to_string(), hint.as_deref()),
    }
}

/// A `ScenarioError` without a place.
pub(crate) fn wrong(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    let place = Place::Argument { text: String::new() };
    let finding = Diagnostic::error(place, message).maybe_hint(hint.map(str::to_owned));
    raise(py, message, Some(&finding))
}

/// Warns of each finding as `ScenarioWarning`.
pub(crate) fn warn(py: Python<'_>, report: &Report) -> PyResult<()> {
    for finding in report.findings() {
        let category = py.import(MODULE)?.getattr("ScenarioWarning")?;
        py.import("warnings")?.call_method1("warn", (finding.to_string(), category, 2))?;
    }
    Ok(())
}

/// An `OSError` for a file that cannot be written.
pub(crate) fn not_written(path: &Path, error: &std::io::Error) -> PyErr {
    let message = format!("cannot write {}: {error}", path.display());
    PyOSError::new_err(message)
}

fn raise(py: Python<'_>, message: &str, finding: Option<&Diagnostic>) -> PyErr {
    build(py, message, finding).unwrap_or_else(|error| error)
}

fn build(py: Python<'_>, message: &str, finding: Option<&Diagnostic>) -> PyResult<PyErr> {
    let attributes = PyDict::new(py);
    if let Some(finding) = finding {
        let (file, line, column) = match &finding.place {
            Place::File { name, line, column, .. } => (Some(name), Some(line), Some(column)),
            Place::WholeFile { name } => (Some(name), None, None),
            Place::Argument { .. } => (None, None, None),
        };
        attributes.set_item("file", file)?;
        attributes.set_item("line", line)?;
        attributes.set_item("column", column)?;
        attributes.set_item("key", Some(&finding.key).filter(|key| !key.is_empty()))?;
        attributes.set_item("hint", finding.hint.as_deref())?;
    }
    let class = py.import(MODULE)?.getattr("ScenarioError")?;
    Ok(PyErr::from_value(class.call((message,), Some(&attributes))?))
}

//! The first exception of an object of Python. The run goes on until its next slice, without calls, and ends there.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Where the objects of a run leave the exception that ends it.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    failed: bool,
    exception: Option<PyErr>,
}

impl Failure {
    /// True after the first exception: no object is called any more.
    pub(super) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failed
    }

    /// Keeps the first exception.
    pub(super) fn set(&self, exception: PyErr) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.failed {
            *state = State { failed: true, exception: Some(exception) };
        }
    }

    /// The exception, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).exception.take()
    }
}

/// A `ContractError`.
pub(super) fn contract(py: Python<'_>, message: &str) -> PyErr {
    let class = py.import("lastmile._errors").and_then(|module| module.getattr("ContractError"));
    match class.and_then(|class| class.call1((message,))) {
        Ok(error) => PyErr::from_value(error),
        Err(_) => PyRuntimeError::new_err(message.to_owned()),
    }
}

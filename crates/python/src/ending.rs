//! Simulations of other threads end before the interpreter does.
//!
//! CPython ends a daemon thread where it next asks for an interpreter that is being finalized. Where that happens in a
//! call from here, the thread's stack is unwound, and the guards on it release what the thread does not hold: a fatal
//! error. So a function that `atexit` calls tells the threads that simulate to stop, and waits for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

/// The longest wait: a callback of Python may never return.
const PATIENCE: Duration = Duration::from_secs(2);

/// Calls that simulate now.
static PRESENT: AtomicUsize = AtomicUsize::new(0);
/// The interpreter waits for them.
static ENDING: AtomicBool = AtomicBool::new(false);

/// A call that simulates. It exists while its thread holds the interpreter, at its beginning and at its end.
pub(crate) struct Presence(());

impl Presence {
    pub(crate) fn new() -> Self {
        PRESENT.fetch_add(1, Ordering::AcqRel);
        Self(())
    }

    /// Fails once the interpreter waits for the end of the simulations. Python's threads end at this exception
    /// without a message.
    pub(crate) fn check() -> PyResult<()> {
        if ENDING.load(Ordering::Acquire) { Err(PySystemExit::new_err(())) } else { Ok(()) }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Zero after a fork within a call: the child has forgotten it.
        let _ = PRESENT.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    }
}

/// Ends the simulations of all threads. Functions that `atexit` calls later may simulate.
#[pyfunction]
pub(crate) fn end_simulations(py: Python<'_>) {
    let begun = Instant::now();
    ENDING.store(true, Ordering::Release);
    py.detach(|| {
        while PRESENT.load(Ordering::Acquire) > 0 && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    });
    ENDING.store(false, Ordering::Release);
}

/// A process that was forked has none of the other threads.
#[pyfunction]
pub(crate) fn forget_simulations() {
    PRESENT.store(0, Ordering::Release);
}

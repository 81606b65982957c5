//! Between slices of runs: the interpreter handles signals, and a callback hears of the progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lastmile_studies::run::{STEPS, Watch};
use pyo3::prelude::*;

use crate::ending::Presence;
use crate::supplied::Failure;

/// Time between looks for signals.
const SIGNALS: Duration = Duration::from_millis(20);
/// Time between calls of the callback.
const PROGRESS: Duration = Duration::from_millis(50);

/// The interpreter between slices: signals, its end, and the callback. Made and dropped by a thread that holds the
/// interpreter.
pub(crate) struct Attendant {
    _presence: Presence,
    callback: Option<Py<PyAny>>,
    failure: Failure,
    looked: Instant,
    called: Instant,
}

impl Attendant {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        let now = Instant::now();
        Self { _presence: Presence::new(), callback, failure: Failure::default(), looked: now, called: now }
    }

    /// This attendant, which also ends the run after an exception of a queue or congestion control of Python.
    pub(crate) fn with_failure(self, failure: Failure) -> Self {
        Self { failure, ..self }
    }

    /// Handles signals. An exception of a handler, such as `KeyboardInterrupt`, ends the runs; so does the end of the
    /// interpreter.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method has one lifetime, not all")]
    pub(crate) fn look(&mut self) -> PyResult<()> {
        if self.looked.elapsed() < SIGNALS {
            return Ok(());
        }
        self.looked = Instant::now();
        Presence::check()?;
        Python::attach(|py| py.check_signals())
    }

    /// Passes the share of the work that is done to the callback, now and then and at the end.
    pub(crate) fn tell(&mut self, done: u64, of: u64) -> PyResult<()> {
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = if of == 0 { 1.0 } else { done as f64 / of as f64 };
        self.tell_share(share)
    }

    /// As `tell`, for a share itself: at 1 the work is done.
    pub(crate) fn tell_share(&mut self, share: f64) -> PyResult<()> {
        let Some(callback) = self.callback.as_ref().filter(|_| share >= 1.0 || self.called.elapsed() >= PROGRESS)
        else {
            return Ok(());
        };
        self.called = Instant::now();
        Python::attach(|py| callback.call1(py, (share.min(1.0),)).map(drop))
    }
}

/// A single run on the caller's thread.
impl Watch for Attendant {
    type Stop = PyErr;

    fn pause(&mut self) -> PyResult<()> {
        self.failure.take().map_or(Ok(()), Err)?;
        self.look()
    }

    fn progress(&mut self, step: u64) -> PyResult<()> {
        self.tell(step, STEPS)
    }
}

/// State that runs on several threads share with the thread that called them.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Steps that are done, of all runs.
    pub(crate) steps: AtomicU64,
    /// Set when every run must end.
    pub(crate) is_over: AtomicBool,
}

/// One of several runs, on a thread of its own.
pub(crate) struct Worker<'a>(pub(crate) &'a Shared);

/// The calling thread has the reason.
pub(crate) struct Over;

impl Watch for Worker<'_> {
    type Stop = Over;

    fn pause(&mut self) -> Result<(), Over> {
        if self.0.is_over.load(Ordering::Relaxed) { Err(Over) } else { Ok(()) }
    }

    fn progress(&mut self, _: u64) -> Result<(), Over> {
        self.0.steps.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

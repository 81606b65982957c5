//! The state of a view that its threads share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::draw::Content;

/// The state that the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) content: Mutex<Stored>,
    /// True once the view is left.
    pub(crate) closed: AtomicBool,
    pub(crate) begun: Instant,
}

/// The next picture of the drawing thread.
#[derive(Default, Debug)]
pub(crate) struct Stored {
    pub(crate) shown: Content,
    /// Messages for standard error.
    pub(crate) kept: VecDeque<String>,
    pub(crate) changed: bool,
}

impl Shared {
    pub(crate) fn content(&self) -> MutexGuard<'_, Stored> {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.changed = true;
        content
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

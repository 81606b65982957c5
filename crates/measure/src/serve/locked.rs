//! Locks whose data stay valid after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Data stay valid whatever a thread that held them did.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

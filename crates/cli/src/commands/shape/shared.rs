//! State of a shaper that the thread of reports and that of a question share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile_lab::what_if::Recent;
use lastmile_live::shape::Handle;

use super::watch::InForce;

/// The state.
pub(super) struct Shared {
    pub(super) handle: Handle,
    pub(super) in_force: Arc<Mutex<InForce>>,
    recent: Mutex<Recent>,
}

impl Shared {
    pub(super) fn new(handle: Handle, in_force: Arc<Mutex<InForce>>) -> Arc<Self> {
        Arc::new(Self { handle, in_force, recent: Mutex::default() })
    }

    pub(super) fn in_force(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

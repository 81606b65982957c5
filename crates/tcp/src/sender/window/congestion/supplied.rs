//! The congestion control that the caller supplies ([`Control`]).

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::Acked;
use crate::config::{Control, ControlAck, ControlLoss, Controls};

/// A supplied control, made when it is first asked. Clones share it.
#[derive(Clone)]
pub(crate) struct Supplied {
    controls: Controls,
    made: Arc<Mutex<Option<Box<dyn Control>>>>,
}

impl Supplied {
    pub(super) fn new(controls: &Controls) -> Self {
        Self { controls: controls.clone(), made: Arc::default() }
    }

    fn ask<R>(&self, question: impl FnOnce(&mut dyn Control) -> R) -> R {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        question(made.get_or_insert_with(|| self.controls.make()).as_mut())
    }

    /// Window and slow start threshold after an acknowledgement.
    pub(super) fn window(&self, cwnd: u32, ssthresh: u32, acked: &Acked) -> (u32, u32) {
        let &Acked { now, bytes, mss, after_timeout, least_rtt, srtt, rtt, marked } = acked;
        let least_rtt = Some(least_rtt).filter(|least| !least.is_zero());
        let ack = ControlAck { now, octets: bytes, marked, mss, cwnd, ssthresh, rtt, srtt, least_rtt, after_timeout };
        let (cwnd, ssthresh) = self.ask(|control| control.on_ack(&ack));
        (cwnd.max(mss), ssthresh.max(mss))
    }

    /// The slow start threshold after a loss.
    pub(super) fn reduced(&self, loss: &ControlLoss) -> u32 {
        self.ask(|control| control.on_loss(loss)).max(loss.mss)
    }

    /// The rate of pacing in octets a second.
    pub(super) fn pacing_rate(&self) -> Option<u64> {
        self.ask(|control| control.pacing_rate())
    }
}

impl PartialEq for Supplied {
    fn eq(&self, other: &Self) -> bool {
        self.controls == other.controls && Arc::ptr_eq(&self.made, &other.made)
    }
}

impl Eq for Supplied {}

impl fmt::Debug for Supplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Supplied")
    }
}

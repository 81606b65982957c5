//! The last minute of a shaper as it was: states, and each second.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile_live::bump::HopState;
use lastmile_live::shape::Handle;
use lastmile_queueing::DropReason;
use lastmile_units::{Duration, Instant};
use serde::Serialize;

use super::super::live_view::hops::{Interval, States, intervals, is_ack_regulation};
use super::watch::InForce;

/// Time between two states that a question may begin at.
const CHECKPOINTS: Duration = Duration::from_s(10);

/// The time that a question is about.
pub(super) const MINUTE: Duration = Duration::from_s(60);

/// The last minute as it was.
#[derive(Default)]
pub(super) struct Recent {
    /// States at times [`CHECKPOINTS`] apart, oldest first, all with the policy in force.
    pub(super) checkpoints: VecDeque<States>,
    /// Each second, oldest first.
    pub(super) seconds: VecDeque<(Instant, [Second; 2])>,
}

impl Recent {
    /// Adds the state of a second, and forgets what is older than a minute.
    pub(super) fn push(&mut self, before: Option<&States>, now: &States) {
        let age = |at: Instant| now.0.since(at);
        while self.checkpoints.get(1).is_some_and(|(at, _)| age(*at) >= MINUTE) {
            self.checkpoints.pop_front();
        }
        if self.checkpoints.back().is_none_or(|(at, _)| age(*at) >= CHECKPOINTS) {
            self.checkpoints.push_back(now.clone());
        }
        while self.seconds.front().is_some_and(|(at, _)| age(*at) > MINUTE + CHECKPOINTS) {
            self.seconds.pop_front();
        }
        let hops = intervals(before, now);
        if let [up, down] = hops.as_slice() {
            self.seconds.push_back((now.0, [Second::of(up), Second::of(down)]));
        }
    }

    /// Another policy is in force.
    pub(super) fn clear(&mut self) {
        self.checkpoints.clear();
        self.seconds.clear();
    }
}

/// State that the thread of reports and that of a question share.
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

/// One second of a direction.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Second {
    rate_bps: f32,
    queue_bytes: f32,
    /// Of the packets that departed in it; `None` without any.
    p99_s: Option<f32>,
    drops: f32,
}

impl Second {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "for the eye only")]
    pub(super) fn of(hop: &Interval<'_>) -> Self {
        let waits = hop.now.waited.since(Some(&hop.before.waited));
        Self {
            rate_bps: hop.rate_bps() as f32,
            queue_bytes: hop.now.queued.bytes.as_u64() as f32,
            p99_s: (!waits.is_empty()).then(|| (waits.value_at_quantile(0.99) as f64 / 1e9) as f32),
            drops: lost(hop).values().sum::<u64>() as f32,
        }
    }
}

/// Drops in an interval by reason, without those of ACK regulation and without zeros.
pub(super) fn lost(hop: &Interval<'_>) -> BTreeMap<&'static str, u64> {
    dropped(hop, |reason| !is_ack_regulation(reason))
}

pub(super) fn dropped(hop: &Interval<'_>, wanted: impl Fn(DropReason) -> bool) -> BTreeMap<&'static str, u64> {
    let packets = |state: &HopState, reason: DropReason| state.line.dropped[reason.index()].packets;
    let reasons = DropReason::ALL.into_iter().filter(|reason| wanted(*reason));
    let counts = reasons.map(|reason| (reason.name(), packets(hop.now, reason) - packets(hop.before, reason)));
    counts.filter(|(_, count)| *count > 0).collect()
}

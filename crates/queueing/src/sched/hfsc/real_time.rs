//! The real-time criterion: of the leaves whose eligible time has come, the one with the earliest deadline.
//!
//! Published: Stoica, Zhang, Ng 1997, section IV-B; `init_ed`, `update_ed` and `update_d` of sch_hfsc.c.

use lastmile_units::{Instant, WireBytes};

use super::curve::{Curve, Runtime, ServiceCurve, Work, instant};
use crate::sched::heap::Heap;

/// The leaves with a real-time curve.
#[derive(Clone, Debug)]
pub(super) struct RealTime {
    leaves: Vec<Option<Leaf>>,
    /// Backlogged leaves by their eligible time, until it has come.
    waiting: Heap<Instant>,
    /// Backlogged leaves that are eligible, by their deadline.
    eligible: Heap<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Leaf {
    deadlines: Runtime,
    eligibility: Runtime,
    /// Service done by this criterion.
    done: Work,
    deadline: Instant,
    next_size: WireBytes,
}

impl RealTime {
    /// Leaves with these curves.
    pub(super) fn new(curves: &[Option<ServiceCurve>]) -> Self {
        let leaf = |curve: &ServiceCurve| {
            let deadlines = Runtime::new(&Curve::new(curve), 0, Work::ZERO);
            Leaf {
                deadlines,
                eligibility: deadlines.eligible(),
                done: Work::ZERO,
                deadline: Instant::ZERO,
                next_size: WireBytes::ZERO,
            }
        };
        Self {
            leaves: curves.iter().map(|curve| curve.as_ref().map(leaf)).collect(),
            waiting: Heap::new(curves.len()),
            eligible: Heap::new(curves.len()),
        }
    }

    /// A leaf is backlogged from now on.
    pub(super) fn activate(&mut self, leaf: usize, now: Instant, next_size: WireBytes) {
        if let Some(state) = &mut self.leaves[leaf] {
            state.deadlines.begin(now.as_ps().into(), state.done);
            state.eligibility = state.deadlines.eligible();
            self.file(leaf, now, next_size);
        }
    }

    /// A leaf is not backlogged any more.
    #[inline]
    pub(super) fn deactivate(&mut self, leaf: usize) {
        if self.leaves[leaf].is_some() {
            self.waiting.cancel(leaf);
            self.eligible.cancel(leaf);
        }
    }

    /// The next packet of a backlogged leaf has another size.
    #[inline]
    pub(super) fn next_packet(&mut self, leaf: usize, next_size: WireBytes) {
        let Some(state) = &mut self.leaves[leaf] else { return };
        if state.next_size != next_size {
            state.next_size = next_size;
            state.deadline = instant(state.deadlines.time_of(state.done + Work::of(next_size)));
            if self.eligible.has(leaf) {
                self.eligible.set(leaf, state.deadline);
            }
        }
    }

    /// A leaf has sent a packet by this criterion, and has another.
    pub(super) fn sent(&mut self, leaf: usize, now: Instant, size: WireBytes, next_size: Option<WireBytes>) {
        if let Some(state) = &mut self.leaves[leaf] {
            state.done += Work::of(size);
            if let Some(next_size) = next_size {
                self.file(leaf, now, next_size);
            }
        }
    }

    /// The eligible leaf with the earliest deadline.
    #[inline]
    pub(super) fn next(&mut self, now: Instant) -> Option<usize> {
        while let Some(leaf) = self.waiting.due(now) {
            self.waiting.cancel(leaf);
            if let Some(state) = &self.leaves[leaf] {
                self.eligible.set(leaf, state.deadline);
            }
        }
        self.eligible.first_class()
    }

    /// The time at which a leaf is eligible: now or earlier means at once.
    #[inline]
    pub(super) fn first(&self, now: Instant) -> Option<Instant> {
        if self.eligible.first().is_some() { Some(now) } else { self.waiting.first() }
    }

    /// Computes the times of a leaf, and files it by them.
    fn file(&mut self, leaf: usize, now: Instant, next_size: WireBytes) {
        let Some(state) = &mut self.leaves[leaf] else { return };
        state.next_size = next_size;
        state.deadline = instant(state.deadlines.time_of(state.done + Work::of(next_size)));
        let eligible_at = instant(state.eligibility.time_of(state.done));
        if eligible_at <= now {
            self.waiting.cancel(leaf);
            self.eligible.set(leaf, state.deadline);
        } else {
            self.eligible.cancel(leaf);
            self.waiting.set(leaf, eligible_at);
        }
    }
}

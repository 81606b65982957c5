//! Counters of a Smart ACK Dropper.

use crate::DropReason;
use crate::ack::Passed;
use crate::discipline::Counter;

/// Counters of a dropper.
#[derive(Clone, Debug, Default)]
pub(super) struct Stats {
    pub(super) seen: u64,
    pub(super) merged: u64,
    pub(super) duplicates_dropped: u64,
    pub(super) duplicates_kept: u64,
    pub(super) kept_apart: u64,
    pub(super) listed: u64,
    pub(super) list_full: u64,
    pub(super) not_tellable: u64,
    pub(super) signals: u64,
    pub(super) rewritten: u64,
    pub(super) grown_bytes: u64,
    pub(super) shrunk_bytes: u64,
    pub(super) lost_acks: u64,
    pub(super) lost_duplicates: u64,
    pub(super) passed: Passed,
}

impl Stats {
    pub(super) fn count(&mut self, reason: DropReason) {
        match reason {
            DropReason::AckDuplicate => self.duplicates_dropped += 1,
            _ => self.merged += 1,
        }
    }

    pub(super) fn resized(&mut self, before: u16, after: u16) {
        self.grown_bytes += u64::from(after.saturating_sub(before));
        self.shrunk_bytes += u64::from(before.saturating_sub(after));
    }

    pub(super) fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("seen", self.seen),
            ("dropped_ack_merged", self.merged),
            ("dropped_ack_duplicate", self.duplicates_dropped),
            ("duplicates_kept", self.duplicates_kept),
            ("kept_apart", self.kept_apart),
            ("listed", self.listed),
            ("list_full", self.list_full),
            ("not_tellable", self.not_tellable),
            ("signals", self.signals),
            ("rewritten", self.rewritten),
            ("grown_bytes", self.grown_bytes),
            ("shrunk_bytes", self.shrunk_bytes),
            ("lost_acks", self.lost_acks),
            ("lost_duplicates", self.lost_duplicates),
        ];
        Counter::all("sad", counts, visit);
        self.passed.show("sad", visit);
    }
}

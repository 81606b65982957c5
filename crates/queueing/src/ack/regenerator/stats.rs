//! Counters of a regenerator.

use lastmile_packet::{AckList, SeqNumber};

use crate::ack::Passed;
use crate::discipline::Counter;

/// Counters of a regenerator.
#[derive(Clone, Debug, Default)]
pub(super) struct Stats {
    pub(super) seen: u64,
    pub(super) lists: u64,
    pub(super) signals: u64,
    pub(super) signals_unmatched: u64,
    pub(super) restored: u64,
    pub(super) interpolated: u64,
    pub(super) duplicates_restored: u64,
    pub(super) created: u64,
    pub(super) held: u64,
    pub(super) no_room: u64,
    pub(super) shrunk_bytes: u64,
    pub(super) passed_sack: u64,
    pub(super) not_interpolated: NotInterpolated,
    pub(super) passed: Passed,
}

/// ACKs ahead of which nothing was interpolated, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NotInterpolated {
    /// The first ACK of a flow.
    pub(super) first: u64,
    /// The gap may be a filled hole.
    pub(super) hole: u64,
    /// The gap exceeds the maximum of a list.
    pub(super) too_far: u64,
    /// The ACK reports marks by a counter, and an ACK ahead of it would report them too early.
    pub(super) marks: u64,
}

impl Stats {
    /// The list of the signal, if it describes the ACK `ack`.
    pub(super) fn matched(&mut self, signal: Option<(SeqNumber, AckList)>, ack: SeqNumber) -> AckList {
        match signal {
            Some((about, list)) if about == ack => list,
            Some(_) => {
                self.signals_unmatched += 1;
                AckList::EMPTY
            }
            None => AckList::EMPTY,
        }
    }

    pub(super) fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("seen", self.seen),
            ("lists", self.lists),
            ("signals", self.signals),
            ("signals_unmatched", self.signals_unmatched),
            ("restored", self.restored),
            ("interpolated", self.interpolated),
            ("duplicates_restored", self.duplicates_restored),
            ("created", self.created),
            ("held", self.held),
            ("no_room", self.no_room),
            ("dropped_ack_signal", self.signals),
            ("shrunk_bytes", self.shrunk_bytes),
            ("passed_sack", self.passed_sack),
            ("passed_first", self.not_interpolated.first),
            ("passed_hole", self.not_interpolated.hole),
            ("passed_too_far", self.not_interpolated.too_far),
            ("passed_marks", self.not_interpolated.marks),
        ];
        Counter::all("ack-regenerator", counts, visit);
        self.passed.show("ack-regenerator", visit);
    }
}

//! The counters of a tin of CAKE, as `tc -s` has them.

use crate::discipline::Counter;

/// Counters of a tin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) sent_wire_bytes: u64,
    pub(super) marked: u64,
    pub(super) dropped_aqm: u64,
    pub(super) dropped_head: u64,
    pub(super) dropped_ack_filtered: u64,
    pub(super) way_hits: u64,
    pub(super) way_misses: u64,
    pub(super) way_collisions: u64,
}

impl Stats {
    /// Shows the counters of the tin called `tin`.
    pub(super) fn show(&self, tin: &str, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("sent_packets", self.sent_packets),
            ("sent_bytes", self.sent_bytes),
            ("sent_wire_bytes", self.sent_wire_bytes),
            ("marked", self.marked),
            ("dropped_aqm", self.dropped_aqm),
            ("dropped_head", self.dropped_head),
            ("dropped_ack_filtered", self.dropped_ack_filtered),
            ("way_hits", self.way_hits),
            ("way_misses", self.way_misses),
            ("way_collisions", self.way_collisions),
        ];
        for (name, value) in counts {
            visit(Counter { path: tin, kind: "cake", name, value });
        }
    }
}

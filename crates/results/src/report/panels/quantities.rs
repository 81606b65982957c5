//! The quantities that panels draw, in their order on the page.

use super::references::{capacities, line_rates, none, queue_limits, windows};
use crate::format::{self, Unit};
use crate::report::panel::Reference;
use crate::schema::Summary;

/// A quantity that is drawn.
pub(super) struct Quantity {
    pub(super) series: &'static str,
    pub(super) title: &'static str,
    pub(super) units: &'static [Unit],
    /// Capacities and limits of a run.
    pub(super) references: fn(&Summary) -> Vec<Reference>,
    /// True for a rate: drawn as means over a time, on a scale that ends slightly above the
    /// capacity.
    pub(super) rate: bool,
    /// True to draw only links that are busy in some phase, if there are any.
    pub(super) busy_links: bool,
}

/// A quantity drawn by its samples, without references.
const fn sampled(series: &'static str, title: &'static str, units: &'static [Unit]) -> Quantity {
    Quantity { series, title, units, references: none, rate: false, busy_links: false }
}

pub(super) const QUANTITIES: [Quantity; 14] = [
    Quantity { references: capacities, rate: true, ..sampled("goodput_bps", "Goodput", format::RATES) },
    Quantity { references: queue_limits, ..sampled("queue_bytes", "Queue", format::BYTES) },
    sampled("queue_cells", "Cells in the queue", format::CELLS),
    Quantity { rate: true, ..sampled("acr_bps", "Allowed cell rate", format::RATES) },
    sampled("edge_bytes", "Waiting at the edge", format::BYTES),
    sampled("queue_delay_s", "Delay in the queue", format::SECONDS),
    sampled("rtt_s", "Round-trip time of probes", format::SECONDS),
    sampled("one_way_delay_s", "One-way delay of packets", format::SECONDS),
    sampled("jitter_s", "Jitter of datagrams", format::SECONDS),
    sampled("cwnd_bytes", "Congestion window", format::BYTES),
    Quantity { references: windows, ..sampled("in_flight_bytes", "Data in flight", format::BYTES) },
    sampled("acked_bytes", "ACK number", format::BYTES),
    Quantity { rate: true, ..sampled("shaper_rate_bps", "Rate of the shaper", format::RATES) },
    Quantity {
        references: line_rates,
        rate: true,
        busy_links: true,
        ..sampled("wire_rate_bps", "Rate on the wire", format::RATES)
    },
];

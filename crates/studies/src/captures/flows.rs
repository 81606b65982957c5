//! Flows of datagrams: rates, sizes, bursts, and the round trips of QUIC's spin bit.

use lastmile_analysis::datagrams::{DatagramFlow, Datagrams, Spin};
use lastmile_results::format::{grouped, or_dash, rate, seconds};
use lastmile_text::table::{Kind, Table};
use lastmile_units::Duration;
use serde::Serialize;

use super::row::Ends;

/// One direction of a flow of datagrams. The parts are flattened: all fields are keys of one object, in
/// this order.
#[derive(Serialize)]
pub(super) struct FlowRow {
    pub(super) flow: usize,
    pub(super) direction: &'static str,
    #[serde(flatten)]
    pub(super) ends: Ends,
    /// `udp`, or `quic` after a long header of QUIC.
    pub(super) protocol: &'static str,
    pub(super) start_s: f64,
    #[serde(flatten)]
    pub(super) volume: FlowVolume,
    /// Runs of datagrams at most 1 ms apart.
    pub(super) bursts: u64,
    pub(super) longest_burst_packets: u64,
    #[serde(flatten)]
    pub(super) spin: SpinBit,
}

/// The datagrams of a direction: their number, rates and sizes.
#[derive(Serialize)]
pub(super) struct FlowVolume {
    pub(super) packets: u64,
    pub(super) ip_bytes: u64,
    pub(super) active_s: f64,
    /// IP bits from the first to the last datagram; `null` for a single time.
    pub(super) rate_bps: Option<f64>,
    /// In the fullest 100 ms.
    pub(super) peak_rate_bps: f64,
    pub(super) smallest_payload_bytes: Option<u16>,
    pub(super) largest_payload_bytes: Option<u16>,
}

/// The spin bit of QUIC, and the round trips that it shows.
#[derive(Serialize)]
pub(super) struct SpinBit {
    /// `used`, `not_used` (constant), `not_used_random`, `absent`.
    pub(super) spin_bit: &'static str,
    pub(super) spin_round_trips: u64,
    pub(super) spin_round_trip_min_s: Option<f64>,
    pub(super) spin_round_trip_median_s: Option<f64>,
    pub(super) spin_round_trip_p95_s: Option<f64>,
}

/// The rows of all flows: each direction with datagrams.
pub(super) fn rows(flows: &[DatagramFlow]) -> Vec<FlowRow> {
    let both = |(number, flow): (usize, &DatagramFlow)| {
        [("up", flow.up), ("down", flow.down)]
            .into_iter()
            .filter(|(_, way)| way.packets > 0)
            .map(|(direction, way)| FlowRow::new(number + 1, direction, flow, &way))
            .collect::<Vec<_>>()
    };
    flows.iter().enumerate().flat_map(both).collect()
}

impl FlowRow {
    fn new(flow: usize, direction: &'static str, of: &DatagramFlow, way: &Datagrams) -> Self {
        Self {
            flow,
            direction,
            ends: Ends::new(if direction == "up" { of.addresses } else { of.addresses.reversed() }),
            protocol: if of.quic.is_some() { "quic" } else { "udp" },
            start_s: of.from.as_secs_f64(),
            volume: FlowVolume::new(way),
            bursts: way.bursts,
            longest_burst_packets: way.longest_burst,
            spin: SpinBit::new(way.spin),
        }
    }
}

impl FlowVolume {
    fn new(way: &Datagrams) -> Self {
        Self {
            packets: way.packets,
            ip_bytes: way.ip_bytes,
            active_s: way.active.as_secs_f64(),
            rate_bps: way.rate_bps(),
            peak_rate_bps: way.peak_bps,
            smallest_payload_bytes: way.sizes.map(|(least, _)| least),
            largest_payload_bytes: way.sizes.map(|(_, most)| most),
        }
    }
}

impl SpinBit {
    fn new(spin: Spin) -> Self {
        let trips = if let Spin::Used(trips) = spin { trips } else { Default::default() };
        let s = |span: Option<Duration>| span.map(Duration::as_secs_f64);
        Self {
            spin_bit: spin.name(),
            spin_round_trips: trips.count,
            spin_round_trip_min_s: s(trips.least),
            spin_round_trip_median_s: s(trips.median),
            spin_round_trip_p95_s: s(trips.p95),
        }
    }
}

/// The table of the largest `most` rows in lines of `width`; empty without flows.
pub(super) fn table(all: &[FlowRow], most: usize, width: u16) -> String {
    use Kind::{Name, Number, Text};
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("flow", Name),
        ("", Name),
        ("from", Text),
        ("to", Text),
        ("", Text),
        ("packets", Number),
        ("rate", Number),
        ("peak", Number),
        ("payload", Number),
        ("bursts", Number),
        ("longest", Number),
        ("spin bit", Text),
        ("RTT", Number),
        ("p95", Number),
    ]);
    let mut rows: Vec<&FlowRow> = all.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.volume.ip_bytes));
    rows.truncate(if most == 0 { usize::MAX } else { most });
    rows.sort_by_key(|row| (row.flow, row.direction == "down"));
    for row in &rows {
        let sizes = row.volume.smallest_payload_bytes.zip(row.volume.largest_payload_bytes);
        let size = |(least, most): (u16, u16)| {
            if least == most { format!("{least} B") } else { format!("{least} to {most} B") }
        };
        table.row([
            row.flow.to_string(),
            row.direction.to_owned(),
            row.ends.from.clone(),
            row.ends.to.clone(),
            row.protocol.to_owned(),
            grouped(row.volume.packets),
            or_dash(row.volume.rate_bps, rate),
            rate(row.volume.peak_rate_bps),
            or_dash(sizes, size),
            grouped(row.bursts),
            grouped(row.longest_burst_packets),
            row.spin.spin_bit.replace('_', " "),
            or_dash(row.spin.spin_round_trip_median_s, seconds),
            or_dash(row.spin.spin_round_trip_p95_s, seconds),
        ]);
    }
    let hidden = all.len() - rows.len();
    let rest = if hidden > 0 { format!("... and {hidden} smaller ones (--most 0 shows all)\n") } else { String::new() };
    format!("{}{rest}", table.render_within(width))
}

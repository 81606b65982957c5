//! Tables of cells: ports, virtual channels, their sources, edges, virtual paths.

use super::columns::{columns, without_empty_columns};
use super::{Kind, Table, reasons};
use crate::format;
use crate::schema::{CellPort, Counted, EdgeClass, Summary, VirtualChannel, VirtualPath};

/// Ports of switches at which cells arrived.
pub(crate) fn ports(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Port", Name),
        ("Cells in", Number),
        ("out", Number),
        ("of whole packets", Number),
        ("Goodput\nof out", Number),
        ("Lost on\nthe wire", Number),
        ("Buffer\nin cells", Number),
        ("Largest\nqueue", Number),
        ("Tagged", Number),
        ("CLP = 1\nin", Number),
        ("dropped", Number),
        ("Cells dropped", Text),
    ]);
    let ports = summary.atm.iter().flat_map(|atm| &atm.ports);
    let ports = ports.filter(|port| port.buffer_cells.is_some() && port.arrived_cells > 0);
    let row = |port: &CellPort| {
        vec![
            port.link.clone(),
            format::grouped(port.arrived_cells),
            format::grouped(port.sent_cells),
            format::grouped(port.goodput_cells),
            format::or_dash(port.goodput_share, format::percent),
            any(port.lost_cells),
            format::or_dash(port.buffer_cells, format::grouped),
            format::grouped(port.max_queue_cells),
            any(port.tagged_cells),
            any(port.low_priority_cells),
            any(port.dropped_low_priority_cells),
            reasons(&port.drops_cells),
        ]
    };
    without_empty_columns(Table { title: "Ports of cells".to_owned(), columns, rows: ports.map(row).collect() })
}

/// Virtual channels that carried cells.
pub(crate) fn channels(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Virtual channel", Name),
        ("VPI/VCI", Text),
        ("Packets", Number),
        ("whole", Number),
        ("of CLP = 1", Number),
        ("Cells", Number),
        ("of whole packets", Number),
        ("in vain", Number),
        ("lost on\nthe wire", Number),
        ("Transit mean", Number),
        ("CTD mean", Number),
        ("CDV", Number),
        ("Tagged", Number),
        ("Packets lost", Text),
    ]);
    let channels = summary.atm.iter().flat_map(|atm| &atm.vcs).filter(|vc| vc.counts.offered_frames > 0);
    let row = |vc: &VirtualChannel| {
        vec![
            vc.name.clone(),
            format!("{}/{}", vc.vpi, vc.vci),
            format::grouped(vc.counts.offered_frames),
            format::grouped(vc.counts.whole_frames),
            format::or_dash(
                (vc.counts.offered_low_priority_frames > 0).then_some(vc.counts.whole_low_priority_frames),
                format::grouped,
            ),
            format::grouped(vc.counts.offered_cells),
            format::grouped(vc.counts.goodput_cells),
            format::grouped(vc.counts.badput_cells),
            any(vc.counts.lost_cells),
            format::or_dash(vc.transit_mean_s, format::seconds),
            format::or_dash(vc.ctd_mean_s, format::seconds),
            format::or_dash(vc.cdv_s, format::seconds),
            any(vc.counts.tagged_cells),
            reasons(&vc.counts.lost_frames),
        ]
    };
    without_empty_columns(Table { title: "Virtual channels".to_owned(), columns, rows: channels.map(row).collect() })
}

/// ABR sources that sent cells.
pub(crate) fn abr_sources(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("ABR source", Name),
        ("Allowed rate\nmean", Number),
        ("least", Number),
        ("most", Number),
        ("RM cells\nsent", Number),
        ("back", Number),
        ("with CI", Number),
        ("Largest\nedge queue", Number),
        ("Dropped\nat the edge", Number),
        ("ACKs held", Number),
        ("for, mean", Number),
    ]);
    let sources = summary.atm.iter().flat_map(|atm| &atm.vcs);
    let row = |vc: &VirtualChannel| {
        let abr = vc.abr.as_ref().filter(|_| vc.counts.offered_frames > 0)?;
        Some(vec![
            vc.name.clone(),
            format::rate(abr.acr_mean_bps),
            format::rate(abr.acr_min_bps),
            format::rate(abr.acr_max_bps),
            format::grouped(abr.rm_sent_cells),
            format::grouped(abr.rm_returned_cells),
            any(abr.rm_congested_cells),
            format::bytes(abr.edge_max_bytes),
            any(abr.edge_dropped_frames),
            any(abr.acks_held),
            format::or_dash(abr.ack_hold_mean_s, format::seconds),
        ])
    };
    without_empty_columns(Table {
        title: "Sources of available bit rate".to_owned(),
        columns,
        rows: sources.filter_map(row).collect(),
    })
}

/// Classes of packets at the edges of the cells.
pub(crate) fn edges(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Edge", Name),
        ("Node", Name),
        ("Green\npackets", Number),
        ("Yellow", Number),
        ("Red", Number),
        ("CLP = 0", Number),
        ("CLP = 1", Number),
        ("Dropped", Number),
    ]);
    let row = |edge: &EdgeClass| {
        let color = |name: &str| edge.colors.get(name).copied().unwrap_or_default();
        let counts = [color("green"), color("yellow"), color("red"), edge.clp_0, edge.clp_1, edge.dropped];
        [edge.name.clone(), edge.node.clone()].into_iter().chain(counts.map(counted)).collect()
    };
    let edges = summary.atm.iter().flat_map(|atm| &atm.edges);
    let rows = edges.filter(|edge| edge.colors.values().any(|count| count.packets > 0)).map(row).collect();
    without_empty_columns(Table { title: "Edges of cells".to_owned(), columns, rows })
}

/// A count with its bytes, such as `1 234 (1.2 MB)`; a dash for none.
fn counted(count: Counted) -> String {
    let text = || format!("{} ({})", format::grouped(count.packets), format::bytes(count.bytes));
    format::or_dash((count.packets > 0).then(text), |text| text)
}

/// Policed virtual paths.
pub(crate) fn virtual_paths(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Virtual path", Name),
        ("Conforming\ncells", Number),
        ("Tagged", Number),
        ("Above peak", Number),
        ("Above sustainable", Number),
    ]);
    let policed = summary.atm.iter().flat_map(|atm| &atm.vps);
    let row = |path: &VirtualPath| {
        let counts = path.policed?;
        let cells = [counts.conforming_cells, counts.tagged_cells, counts.peak_cells, counts.sustainable_cells];
        Some(std::iter::once(path.name.clone()).chain(cells.map(format::grouped)).collect())
    };
    Table { title: "Virtual paths".to_owned(), columns, rows: policed.filter_map(row).collect() }
}

/// A count, such as `1 234`; a dash for zero.
fn any(count: u64) -> String {
    format::or_dash((count > 0).then_some(count), format::grouped)
}

//! Tables as text cells, before it is decided whether they become HTML or go to a terminal.

use std::collections::BTreeMap;

use crate::Run;
use crate::format;
use crate::schema::{
    CellPort, Counted, Delay, EdgeClass, Flow, Line, Link, PageResponse, Pages, Phase, Probe, RoundTrip, Shares,
    Summary, VirtualChannel, VirtualPath,
};
use crate::summarise::LOST_CELLS;

/// A table: a heading, columns, rows of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// What it tells.
    pub(crate) title: String,
    /// Names of the columns, units included.
    pub(crate) columns: Vec<Column>,
    /// As many cells as columns each.
    pub(crate) rows: Vec<Vec<String>>,
}

/// How a column is set.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// What stands above it.
    pub(crate) name: String,
    /// How its cells are set.
    pub(crate) kind: Kind,
}

/// How cells are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The name of the row.
    Name,
    /// Text: left.
    Text,
    /// A sentence: left, and it may wrap.
    Words,
    /// A number: right.
    Number,
}

impl Table {
    /// The table without columns that have nothing to tell in any row.
    fn without_empty_columns(mut self) -> Self {
        let told: Vec<bool> = (0..self.columns.len()).map(|column| is_told(&self.rows, column)).collect();
        keep_columns(&mut self.rows, &told);
        let mut told = told.into_iter();
        self.columns.retain(|_| told.next().is_some_and(|told| told));
        self
    }
}

/// Any row has something to tell in this column.
fn is_told(rows: &[Vec<String>], column: usize) -> bool {
    rows.iter().any(|row| row[column] != NOTHING)
}

/// Leaves the cells of the columns that are `told`.
fn keep_columns(rows: &mut [Vec<String>], told: &[bool]) {
    for row in rows {
        let mut told = told.iter();
        row.retain(|_| told.next().is_some_and(|told| *told));
    }
}

/// What stands where there is no value.
pub(crate) const NOTHING: &str = "–";

fn columns(names: &[(&str, Kind)]) -> Vec<Column> {
    names.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect()
}

/// Flows, the first `most` of them: result, bound, what sets the bound, what held the flow back. Columns are those that
/// any flow has something to tell in.
pub(crate) fn flows(summary: &Summary, most: usize) -> Table {
    use Kind::{Name, Number, Words};
    let columns = columns(&[
        ("Flow", Name),
        ("Goodput", Number),
        ("Bound", Number),
        ("of\nbound", Number),
        ("Bound by", Words),
        ("Time limited by", Words),
        ("Response", Number),
        ("Sent\nagain", Number),
        ("Timeouts", Number),
    ]);
    let shown = summary.flows.len().min(most);
    let mut rows: Vec<Vec<String>> = summary.flows[..shown].iter().map(flow).collect();
    // Rows beyond those are made one by one, and only until each column has something to tell.
    let mut told: Vec<bool> = (0..columns.len()).map(|column| is_told(&rows, column)).collect();
    let mut others = summary.flows[shown..].iter().map(flow);
    while told.contains(&false)
        && let Some(row) = others.next()
    {
        told.iter_mut().zip(&row).for_each(|(told, cell)| *told |= cell != NOTHING);
    }
    keep_columns(&mut rows, &told);
    let columns = columns.into_iter().zip(told).filter(|(_, told)| *told).map(|(column, _)| column).collect();
    Table { title: "Flows".to_owned(), columns, rows }
}

fn flow(flow: &Flow) -> Vec<String> {
    let share = flow.bound_bps.filter(|bound| *bound > 0.0).map(|bound| flow.goodput_bps / bound);
    vec![
        flow.name.clone(),
        format::rate(flow.goodput_bps),
        format::or_dash(flow.bound_bps, format::rate),
        format::or_dash(share, format::percent),
        format::or_dash(flow.bound_by.as_deref(), str::to_owned),
        shares(&flow.limited_by),
        format::or_dash(flow.response_time_s, format::seconds),
        format::or_dash(flow.retransmissions, format::grouped),
        format::or_dash(flow.timeouts, format::grouped),
    ]
}

/// `receive window 72 %, congestion window 28 %`: the shares that matter, largest first.
pub(crate) fn shares(limited_by: &Shares) -> String {
    let mut shares: Vec<(&str, f64)> = limited_by.iter().collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let told = shares.iter().filter(|(_, share)| *share >= 0.005);
    let texts: Vec<String> =
        told.map(|(name, share)| format!("{} {:.0} %", name.replace('_', " "), share * 100.0)).collect();
    if texts.is_empty() { NOTHING.to_owned() } else { texts.join(", ") }
}

/// All links that carried something: load, time in the queue, drops.
pub(crate) fn links(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Link", Name),
        ("Rate", Number),
        ("Busy", Number),
        ("as IP", Number),
        ("Queue delay\nmean", Number),
        ("p99", Number),
        ("max", Number),
        ("Largest\nqueue", Number),
        ("Packets", Number),
        ("Dropped", Text),
    ]);
    let used = summary.links.iter().filter(|link| link.packets > 0 || link.drops.values().any(|drops| *drops > 0));
    Table { title: "Links".to_owned(), columns, rows: used.map(link).collect() }.without_empty_columns()
}

fn link(link: &Link) -> Vec<String> {
    let Delay { mean, p99, max, .. } = link.queue_delay_s;
    vec![
        link.name.clone(),
        format::or_dash(link.rate_bps, format::rate),
        format::or_dash(link.utilisation, format::percent),
        format::or_dash(link.utilisation_ip, format::percent),
        format::or_dash(mean, format::seconds),
        format::or_dash(p99, format::seconds),
        format::or_dash(max, format::seconds),
        format::bytes(link.max_backlog_bytes),
        format::grouped(link.packets),
        reasons(&link.drops),
    ]
}

/// Ports of switches at which cells came.
pub(crate) fn ports(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Port", Name),
        ("Cells in", Number),
        ("out", Number),
        ("of whole packets", Number),
        ("Goodput\nof out", Number),
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
            format::or_dash(port.buffer_cells, format::grouped),
            format::grouped(port.max_queue_cells),
            format::or_dash((port.tagged_cells > 0).then_some(port.tagged_cells), format::grouped),
            format::or_dash((port.low_priority_cells > 0).then_some(port.low_priority_cells), format::grouped),
            format::or_dash(
                (port.dropped_low_priority_cells > 0).then_some(port.dropped_low_priority_cells),
                format::grouped,
            ),
            reasons(&port.drops_cells),
        ]
    };
    let table = Table { title: "Ports of cells".to_owned(), columns, rows: ports.map(row).collect() };
    table.without_empty_columns()
}

/// Virtual channels over which something went.
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
        ("Transit mean", Number),
        ("Tagged", Number),
        ("Packets lost", Text),
    ]);
    let channels = summary.atm.iter().flat_map(|atm| &atm.vcs).filter(|vc| vc.offered_frames > 0);
    let row = |vc: &VirtualChannel| {
        vec![
            vc.name.clone(),
            format!("{}/{}", vc.vpi, vc.vci),
            format::grouped(vc.offered_frames),
            format::grouped(vc.whole_frames),
            format::or_dash(
                (vc.offered_low_priority_frames > 0).then_some(vc.whole_low_priority_frames),
                format::grouped,
            ),
            format::grouped(vc.offered_cells),
            format::grouped(vc.goodput_cells),
            format::grouped(vc.badput_cells),
            format::or_dash(vc.transit_mean_s, format::seconds),
            format::or_dash((vc.tagged_cells > 0).then_some(vc.tagged_cells), format::grouped),
            reasons(&vc.lost_frames),
        ]
    };
    let table = Table { title: "Virtual channels".to_owned(), columns, rows: channels.map(row).collect() };
    table.without_empty_columns()
}

/// Sources of available bit rate over which something went.
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
        let abr = vc.abr.as_ref().filter(|_| vc.offered_frames > 0)?;
        let some = |count: u64| format::or_dash((count > 0).then_some(count), format::grouped);
        Some(vec![
            vc.name.clone(),
            format::rate(abr.acr_mean_bps),
            format::rate(abr.acr_min_bps),
            format::rate(abr.acr_max_bps),
            format::grouped(abr.rm_sent_cells),
            format::grouped(abr.rm_returned_cells),
            some(abr.rm_congested_cells),
            format::bytes(abr.edge_max_bytes),
            some(abr.edge_dropped_frames),
            some(abr.acks_held),
            format::or_dash(abr.ack_hold_mean_s, format::seconds),
        ])
    };
    Table { title: "Sources of available bit rate".to_owned(), columns, rows: sources.filter_map(row).collect() }
        .without_empty_columns()
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
    Table { title: "Edges of cells".to_owned(), columns, rows }.without_empty_columns()
}

/// `1 234 (1.2 MB)`; a dash for none.
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

/// `tail 12, ack merged 3`; a dash for none.
pub(crate) fn reasons(drops: &BTreeMap<String, u64>) -> String {
    let told = drops.iter().filter(|(_, count)| **count > 0);
    let texts: Vec<String> =
        told.map(|(name, count)| format!("{} {}", name.replace('_', " "), format::grouped(*count))).collect();
    if texts.is_empty() { NOTHING.to_owned() } else { texts.join(", ") }
}

/// All pings.
pub(crate) fn probes(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Probe", Name),
        ("Class", Text),
        ("Replies", Number),
        ("RTT min", Number),
        ("mean", Number),
        ("p50", Number),
        ("p99", Number),
        ("p99.9", Number),
        ("max", Number),
        ("Jitter", Number),
    ]);
    Table { title: "Probes".to_owned(), columns, rows: summary.probes.iter().map(probe).collect() }
}

fn probe(probe: &Probe) -> Vec<String> {
    let RoundTrip { min, mean, p50, p99, p999, max, jitter } = probe.rtt_s;
    let mut cells = vec![
        probe.name.clone(),
        probe.class.clone(),
        format!("{} of {}", format::grouped(probe.received), format::grouped(probe.sent)),
    ];
    cells.extend([min, mean, p50, p99, p999, max, jitter].map(|value| format::or_dash(value, format::seconds)));
    cells
}

/// A row a web traffic.
pub(crate) fn pages(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Web", Name),
        ("Users", Number),
        ("Pages", Number),
        ("Objects", Number),
        ("Response mean", Number),
        ("p50", Number),
        ("p95", Number),
        ("p99", Number),
        ("max", Number),
    ]);
    let row = |pages: &Pages| {
        let PageResponse { mean, p50, p95, p99, max } = pages.response_s;
        let mut cells = vec![
            pages.name.clone(),
            format::grouped(pages.users),
            format!("{} of {}", format::grouped(pages.complete), format::grouped(pages.pages)),
            format::grouped(pages.objects),
        ];
        cells.extend([mean, p50, p95, p99, max].map(|value| format::or_dash(value, format::seconds)));
        cells
    };
    Table { title: "Pages".to_owned(), columns, rows: summary.pages.iter().map(row).collect() }
}

/// A row an access line, where there are several, and how evenly they shared.
pub(crate) fn lines(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Line", Name),
        ("Goodput down", Number),
        ("Busy", Number),
        ("Goodput up", Number),
        ("Busy", Number),
    ]);
    let share = |share: Option<f64>| format::or_dash(share, format::percent);
    let row = |line: &Line| {
        vec![
            line.name.clone(),
            format::rate(line.down_goodput_bps),
            share(line.down_utilisation),
            format::rate(line.up_goodput_bps),
            share(line.up_utilisation),
        ]
    };
    let even = summary.line_fairness.iter().map(|row| format!("{} {:.3}", row.direction, row.jain_index));
    let title = match even.collect::<Vec<_>>().join(", ") {
        even if even.is_empty() => "Lines".to_owned(),
        even => format!("Lines (Jain's index: {even})"),
    };
    Table { title, columns, rows: summary.lines.iter().map(row).collect() }
}

/// A column a phase: goodput of each flow with its bound, round trip of each probe, load and delay of the links that matter.
pub(crate) fn phases(summary: &Summary) -> Table {
    let mut table = Table { title: "Phases".to_owned(), columns: columns(&[("", Kind::Name)]), rows: Vec::new() };
    for phase in &summary.phases {
        let span = format!("{}\n{}–{} s", phase.name, format::number(phase.from_s), format::number(phase.to_s));
        table.columns.push(Column { name: span, kind: Kind::Number });
    }
    let mut rows: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let count = summary.phases.len();
    for (number, phase) in summary.phases.iter().enumerate() {
        for (name, value) in measures(phase, &busy_links(summary)) {
            let row = match rows.iter().position(|(known, _)| *known == name) {
                Some(row) => row,
                None => {
                    rows.push((name, vec![None; count]));
                    rows.len() - 1
                }
            };
            rows[row].1[number] = Some(value.to_string());
        }
    }
    // Flows before probes before links, in whichever phase they first came.
    rows.sort_by_key(|(name, _)| order(name));
    let cells = |cell: Option<String>| cell.unwrap_or_else(|| NOTHING.to_owned());
    table.rows = rows
        .into_iter()
        .map(|(name, values)| std::iter::once(name).chain(values.into_iter().map(cells)).collect())
        .collect();
    table
}

const GOODPUT: &str = ": goodput";
const MEDIAN: &str = ": RTT p50";
const TAIL: &str = ": RTT p99";

fn order(name: &str) -> u8 {
    match name {
        n if n.ends_with(GOODPUT) => 0,
        n if n.ends_with(MEDIAN) || n.ends_with(TAIL) => 1,
        _ => 2,
    }
}

/// A measured value and the unit that it is told in.
#[derive(Clone, Copy)]
enum Value {
    Rate(f64),
    Seconds(f64),
    Share(f64),
}

impl Value {
    fn bare(self) -> f64 {
        match self {
            Self::Rate(v) | Self::Seconds(v) | Self::Share(v) => v,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match *self {
            Self::Rate(bps) => format::rate(bps),
            Self::Seconds(s) => format::seconds(s),
            Self::Share(share) => format::percent(share),
        })
    }
}

/// What a phase tells, by name.
fn measures(phase: &Phase, links: &[String]) -> Vec<(String, Value)> {
    let flows = phase.flows.iter().map(|flow| (format!("{}{GOODPUT}", flow.name), Value::Rate(flow.goodput_bps)));
    let probes = phase.probes.iter().flat_map(|probe| {
        let told = [(MEDIAN, probe.rtt_s.p50), (TAIL, probe.rtt_s.p99)];
        told.into_iter().filter_map(|(what, value)| Some((format!("{}{what}", probe.name), Value::Seconds(value?))))
    });
    let links = phase.links.iter().filter(|link| links.contains(&link.name)).flat_map(|link| {
        let busy = link.utilisation.map(|share| (format!("{}: busy", link.name), Value::Share(share)));
        let delay =
            link.queue_delay_mean_s.map(|mean| (format!("{}: mean queue delay", link.name), Value::Seconds(mean)));
        [busy, delay].into_iter().flatten()
    });
    flows.chain(probes).chain(links).collect()
}

/// The links that were at least a quarter busy in some phase.
pub(crate) fn busy_links(summary: &Summary) -> Vec<String> {
    let phases = summary.phases.iter().flat_map(|phase| &phase.links);
    let mut names: Vec<String> =
        phases.filter(|link| link.utilisation.is_some_and(|busy| busy >= 0.25)).map(|link| link.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// Where every packet and byte went.
pub(crate) fn conservation(summary: &Summary) -> Table {
    let held = &summary.conservation;
    let row = |name: &str, packets: Option<u64>, bytes: u64| {
        vec![name.to_owned(), format::or_dash(packets, format::grouped), format::grouped(bytes)]
    };
    let mut rows = vec![
        row("sent by hosts", Some(held.packets.sent), held.sent),
        row("delivered to hosts", Some(held.packets.delivered), held.delivered),
        row("dropped", Some(held.packets.dropped), held.dropped),
        row("still queued", Some(held.packets.queued), held.queued),
        row("on the wire", Some(held.packets.in_flight), held.in_flight),
    ];
    let by_reason = held.dropped_by_reason.iter().map(|(reason, bytes)| {
        let packets: u64 = if reason == LOST_CELLS {
            let vcs = summary.atm.iter().flat_map(|atm| &atm.vcs);
            vcs.flat_map(|vc| vc.lost_frames.values()).sum()
        } else {
            summary.links.iter().filter_map(|link| link.drops.get(reason)).sum()
        };
        row(&format!("… {}", reason.replace('_', " ")), Some(packets), *bytes)
    });
    rows.splice(3..3, by_reason);
    if held.created > 0 {
        rows.insert(1, row("made on the way", Some(held.packets.created), held.created));
    }
    let columns = columns(&[("", Kind::Name), ("Packets", Kind::Number), ("IP bytes", Kind::Number)]);
    let title = if held.holds {
        "Conservation: everything sent is accounted for"
    } else {
        "Conservation BROKEN: not everything sent is accounted for"
    };
    Table { title: title.to_owned(), columns, rows }
}

/// Several runs of one scenario, a column each: goodput, round trips, load and delay in each phase, and how they differ.
///
/// Phases are matched by their name. With two runs, a last column tells by what factor the second differs from the first.
pub(crate) fn comparison(runs: &[Run]) -> Table {
    let mut table = Table {
        title: "Comparison".to_owned(),
        rows: Vec::new(),
        columns: columns(&[("Phase", Kind::Name), ("", Kind::Text)]),
    };
    table.columns.extend(runs.iter().map(|run| Column { name: run.label.clone(), kind: Kind::Number }));
    if runs.len() == 2 {
        table.columns.push(Column { name: "Factor".to_owned(), kind: Kind::Number });
    }
    let mut links: Vec<String> = runs.iter().flat_map(|run| busy_links(&run.summary)).collect();
    links.sort();
    links.dedup();
    for phase in distinct(runs.iter().flat_map(|run| &run.summary.phases).map(|phase| phase.name.clone())) {
        let told = |run: &Run| {
            let same = run.summary.phases.iter().find(|other| other.name == phase);
            same.map_or_else(Vec::new, |same| measures(same, &links))
        };
        let told: Vec<Vec<(String, Value)>> = runs.iter().map(told).collect();
        let mut names = distinct(told.iter().flatten().map(|(name, _)| name.clone()));
        names.sort_by_key(|name| order(name));
        for (number, name) in names.into_iter().enumerate() {
            let find =
                |told: &Vec<(String, Value)>| told.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
            let values: Vec<Option<Value>> = told.iter().map(find).collect();
            let phase = if number == 0 { phase.clone() } else { String::new() };
            let cells = values.iter().map(|value| format::or_dash(*value, |value| value.to_string()));
            let mut row: Vec<String> = [phase, name].into_iter().chain(cells).collect();
            if let [first, second] = values.as_slice() {
                row.push(format::or_dash(first.zip(*second), |(first, second)| factor(first, second)));
            }
            table.rows.push(row);
        }
    }
    table
}

/// Each name once, in the order in which it first comes.
pub(crate) fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// `× 9.8`, `÷ 40`, or `=` for what differs by less than half a percent.
fn factor(first: Value, second: Value) -> String {
    let ratio = second.bare() / first.bare();
    match ratio {
        r if !r.is_finite() || r <= 0.0 => NOTHING.to_owned(),
        r if (r - 1.0).abs() < 0.005 => "=".to_owned(),
        r if r > 1.0 => format!("× {}", format::number(r)),
        r => format!("÷ {}", format::number(1.0 / r)),
    }
}

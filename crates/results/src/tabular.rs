//! Tables as text cells, for HTML and the terminal.
//!
//! This file has those of flows, links, probes and pages; `cells.rs` has those of ATM, `applications.rs` those
//! of videos, backups, conferences and games, `phases.rs`
//! those with one column per phase or run.

mod applications;
mod cells;
mod columns;
mod phases;
mod streams;

use std::collections::BTreeMap;

pub(crate) use lastmile_text::table::{Column, Kind, Table};

use crate::format;
use crate::schema::{Delay, Flow, Group, Line, Link, PageResponse, Pages, Probe, RoundTrip, Shares, Spread, Summary};
use crate::summarise::LOST_CELLS;

pub(crate) use self::applications::{backups, conferences, games, videos};
pub(crate) use self::cells::{abr_sources, channels, edges, ports, virtual_paths};
pub(crate) use self::columns::NOTHING;
use self::columns::{columns, is_filled, keep, without_empty_columns};
pub(crate) use self::phases::{comparison, over_seeds, phases};
pub(crate) use self::streams::{classes, datagram_classes, datagram_flows, datagrams, delays, waits_by_class};

/// The table of the flows `first`: result, bound and its cause, fair share, limits. It has the
/// columns for which any flow has a value.
pub(crate) fn flows(summary: &Summary, first: &[&Flow]) -> Table {
    use Kind::{Name, Number, Words};
    let mut columns = columns(&[
        ("Flow", Name),
        ("Goodput", Number),
        ("Bound", Number),
        ("of\nbound", Number),
        ("Bound by", Words),
        ("Fair\nshare", Number),
        ("Time limited by", Words),
        ("Response", Number),
        ("Retrans", Number),
        ("Timeouts", Number),
    ]);
    let mut rows: Vec<Vec<String>> = first.iter().map(|shown| flow(shown)).collect();
    // Other rows are built one at a time, until each column has a value.
    let mut filled: Vec<bool> = (0..columns.len()).map(|column| is_filled(&rows, column)).collect();
    let mut others = summary.flows.iter().map(flow);
    while filled.contains(&false)
        && let Some(row) = others.next()
    {
        filled.iter_mut().zip(&row).for_each(|(filled, cell)| *filled |= cell != NOTHING);
    }
    rows.iter_mut().for_each(|row| keep(row, &filled));
    keep(&mut columns, &filled);
    Table { title: "Flows".to_owned(), columns, rows }
}

/// The fair share of a flow that shares the line.
fn fair_share(flow: &Flow) -> Option<f64> {
    const ALIKE: f64 = 0.98;
    flow.limits.fair_share_bps.filter(|share| flow.limits.bound_bps.is_none_or(|bound| *share < ALIKE * bound))
}

fn flow(flow: &Flow) -> Vec<String> {
    let share = flow.limits.bound_bps.filter(|bound| *bound > 0.0).map(|bound| flow.goodput_bps / bound);
    vec![
        flow.name.clone(),
        format::rate(flow.goodput_bps),
        format::or_dash(flow.limits.bound_bps, format::rate),
        format::or_dash(share, format::percent),
        format::or_dash(flow.limits.bound_by.as_deref(), str::to_owned),
        format::or_dash(fair_share(flow), format::rate),
        shares(&flow.limits.limited_by),
        format::or_dash(flow.response_time_s, format::seconds),
        format::or_dash(flow.transport.retransmissions, format::grouped),
        format::or_dash(flow.transport.timeouts, format::grouped),
    ]
}

/// The main shares, largest first: `receive window 72 %, congestion window 28 %`.
pub(crate) fn shares(limited_by: &Shares) -> String {
    let mut shares: Vec<(&str, f64)> = limited_by.iter().collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = shares.iter().filter(|(_, share)| *share >= 0.005);
    let texts: Vec<String> =
        shown.map(|(name, share)| format!("{} {:.0} %", name.replace('_', " "), share * 100.0)).collect();
    if texts.is_empty() { NOTHING.to_owned() } else { texts.join(", ") }
}

/// All links that carried packets: load, queueing delay, drops.
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
    let used =
        summary.links.iter().filter(|link| link.packets > 0 || link.queue.drops.values().any(|drops| *drops > 0));
    without_empty_columns(Table { title: "Links".to_owned(), columns, rows: used.map(link).collect() })
}

fn link(link: &Link) -> Vec<String> {
    let Delay { mean, p99, max, .. } = link.queue.queue_delay_s;
    vec![
        link.name.clone(),
        format::or_dash(link.rate_bps, format::rate),
        format::or_dash(link.utilisation, format::percent),
        format::or_dash(link.utilisation_ip, format::percent),
        format::or_dash(mean, format::seconds),
        format::or_dash(p99, format::seconds),
        format::or_dash(max, format::seconds),
        format::bytes(link.queue.max_backlog_bytes),
        format::grouped(link.packets),
        reasons(&link.queue.drops),
    ]
}

/// Requests and grants of the links that have them; a dash for a count of 0.
pub(crate) fn grants(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Grants of link", Name),
        ("Requests", Number),
        ("collided", Number),
        ("piggy-\nbacked", Number),
        ("Grants", Number),
        ("Granted", Number),
        ("unused", Number),
        ("Without\nrequest", Number),
        ("Request-grant\nmean", Number),
        ("p99", Number),
    ]);
    let count = |count: u64| format::or_dash(Some(count).filter(|count| *count > 0), format::grouped);
    let bytes = |bytes: u64| format::or_dash(Some(bytes).filter(|bytes| *bytes > 0), format::bytes);
    let row = |link: &Link| {
        let of = link.queue.grants?;
        let Delay { mean, p99, .. } = of.request_grant_s;
        let mut row = vec![link.name.clone()];
        row.extend([of.requests, of.collisions, of.piggybacked, of.grants].map(count));
        row.extend([of.granted_bytes, of.unused_bytes, of.unrequested_bytes].map(bytes));
        row.extend([mean, p99].map(|wait| format::or_dash(wait, format::seconds)));
        Some(row)
    };
    let rows = summary.links.iter().filter_map(row).collect();
    without_empty_columns(Table { title: "Grants".to_owned(), columns, rows })
}

/// Counts by reason, such as `tail 12, ack merged 3`; a dash for none.
pub(crate) fn reasons(drops: &BTreeMap<String, u64>) -> String {
    let shown = drops.iter().filter(|(_, count)| **count > 0);
    let texts: Vec<String> =
        shown.map(|(name, count)| format!("{} {}", name.replace('_', " "), format::grouped(*count))).collect();
    if texts.is_empty() { NOTHING.to_owned() } else { texts.join(", ") }
}

/// Flows by kind and direction; empty if all flows fit a table.
pub(crate) fn groups(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Flows by kind", Name),
        ("Flows", Number),
        ("Goodput\nof all", Number),
        ("of a flow:\nmin", Number),
        ("p5", Number),
        ("p50", Number),
        ("p95", Number),
        ("max", Number),
        ("Retrans", Number),
    ]);
    let row = |group: &Group| {
        let Spread { min, p5, p50, p95, max, .. } = group.of_a_flow_bps;
        let mut cells = vec![
            format!("{} {}", group.kind, group.direction),
            format::grouped(group.flows),
            format::rate(group.goodput_bps),
        ];
        cells.extend([min, p5, p50, p95, max].map(format::rate));
        cells.push(format::or_dash(group.retransmissions, format::grouped));
        cells
    };
    let many = summary.flows.len() > MANY;
    let rows = summary.groups.iter().filter(|_| many).map(row).collect();
    without_empty_columns(Table { title: "All flows".to_owned(), columns, rows })
}

/// The most flows that are all listed. Beyond, a terminal shows groups first, and rows and
/// explanations only of the worst flows of each kind.
pub(crate) const MANY: usize = 12;

/// The flows to show first: all of a few, of many the worst of each kind.
pub(crate) fn worst_or_all(summary: &Summary) -> Vec<&Flow> {
    let worst = |flow: &&Flow| summary.groups.iter().any(|group| group.worst.contains(&flow.name));
    let many = summary.flows.len() > MANY && !summary.groups.is_empty();
    summary.flows.iter().filter(|flow| !many || worst(flow)).collect()
}

/// All pings.
pub(crate) fn probes(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Probe", Name),
        ("Protocol", Text),
        ("Class", Text),
        ("Replies", Number),
        ("RTT min", Number),
        ("mean", Number),
        ("p50", Number),
        ("p99", Number),
        ("p99.9", Number),
        ("max", Number),
        ("Jitter", Number),
        ("Y.1541", Text),
    ]);
    Table { title: "Probes".to_owned(), columns, rows: summary.probes.iter().map(probe).collect() }
}

fn probe(probe: &Probe) -> Vec<String> {
    let RoundTrip { min, mean, p50, p99, p999, max, jitter } = probe.rtt_s;
    let mut cells = vec![
        probe.name.clone(),
        probe.protocol.to_uppercase(),
        probe.class.clone(),
        format!("{} of {}", format::grouped(probe.received), format::grouped(probe.sent)),
    ];
    cells.extend([min, mean, p50, p99, p999, max, jitter].map(|value| format::or_dash(value, format::seconds)));
    cells.push(classes(probe.y1541.as_ref()));
    cells
}

/// One row per web traffic.
pub(crate) fn pages(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Web", Name),
        ("HTTP", Text),
        ("Users", Number),
        ("Pages", Number),
        ("Objects", Number),
        ("Main p50", Number),
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
            pages.http.clone(),
            format::grouped(pages.users),
            format!("{} of {}", format::grouped(pages.complete), format::grouped(pages.pages)),
            format::grouped(pages.objects),
            format::or_dash(pages.main_s.p50, format::seconds),
        ];
        cells.extend([mean, p50, p95, p99, max].map(|value| format::or_dash(value, format::seconds)));
        cells
    };
    Table { title: "Pages".to_owned(), columns, rows: summary.pages.iter().map(row).collect() }
}

/// One row per access line, if there are several, and the fairness among them.
pub(crate) fn lines(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Line", Name),
        ("Goodput down", Number),
        ("Busy down", Number),
        ("Goodput up", Number),
        ("Busy up", Number),
        ("Client to server\n(received of all sent)", Number),
    ]);
    let share = |share: Option<f64>| format::or_dash(share, format::percent);
    let row = |line: &Line| {
        vec![
            line.name.clone(),
            format::rate(line.down_goodput_bps),
            share(line.down_utilisation),
            format::rate(line.up_goodput_bps),
            share(line.up_utilisation),
            share(line.client_to_server_ratio),
        ]
    };
    let even = summary.line_fairness.iter().map(|row| format!("{} {:.3}", row.direction, row.jain_index));
    let title = match even.collect::<Vec<_>>().join(", ") {
        even if even.is_empty() => "Lines".to_owned(),
        even => format!("Lines (Jain's index: {even})"),
    };
    Table { title, columns, rows: summary.lines.iter().map(row).collect() }
}

/// The account of all packets and bytes.
pub(crate) fn conservation(summary: &Summary) -> Table {
    let held = &summary.conservation;
    let row = |name: &str, packets: Option<u64>, bytes: u64| {
        vec![name.to_owned(), format::or_dash(packets, format::grouped), format::grouped(bytes)]
    };
    let mut rows = vec![
        row("sent by hosts", Some(held.packets.sent), held.bytes.sent),
        row("delivered to hosts", Some(held.packets.delivered), held.bytes.delivered),
        row("dropped", Some(held.packets.dropped), held.bytes.dropped),
        row("still queued", Some(held.packets.queued), held.bytes.queued),
        row("on the wire", Some(held.packets.in_flight), held.bytes.in_flight),
    ];
    let by_reason = held.dropped_by_reason.iter().map(|(reason, bytes)| {
        let packets: u64 = if reason == LOST_CELLS {
            let vcs = summary.atm.iter().flat_map(|atm| &atm.vcs);
            vcs.flat_map(|vc| vc.counts.lost_frames.values()).sum()
        } else {
            summary.links.iter().filter_map(|link| link.queue.drops.get(reason)).sum()
        };
        row(&format!("… {}", reason.replace('_', " ")), Some(packets), *bytes)
    });
    rows.splice(3..3, by_reason);
    if held.bytes.created > 0 {
        rows.insert(1, row("made on the way", Some(held.packets.created), held.bytes.created));
    }
    let columns = columns(&[("", Kind::Name), ("Packets", Kind::Number), ("IP bytes", Kind::Number)]);
    let title = if held.holds {
        "Conservation: everything sent is accounted for"
    } else {
        "Conservation BROKEN: not everything sent is accounted for"
    };
    Table { title: title.to_owned(), columns, rows }
}

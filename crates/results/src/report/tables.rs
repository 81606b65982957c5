//! Tables of the report.

use maud::{Markup, html};

use crate::format;
use crate::schema::{Flow, FlowKind, Phase, PhaseFlow, Summary};
use crate::tabular::{self, Kind, Table};

/// The most rows of a table in the page; `summary.json` has them all.
const MOST_ROWS: usize = 200;
/// The most flows whose limits are shown without a click.
const EXPLAINED_AT_ONCE: usize = 4;

/// The limits of each flow, in words, by phase: of the first flows directly, of the others after a
/// click.
pub(crate) fn why(summary: &Summary) -> Markup {
    let flows = tabular::worst_or_all(summary);
    let (first, others) = flows.split_at(flows.len().min(EXPLAINED_AT_ONCE));
    let omitted = summary.flows.len() - flows.len();
    html! {
        @for note in &summary.notes { p { (note) "." } }
        @for flow in first { (why_flow(summary, flow)) }
        @if !others.is_empty() {
            details {
                summary { (others.len()) " more flows" }
                @for flow in others { (why_flow(summary, flow)) }
            }
        }
        @if omitted > 0 { p.caption { "These are the worst of each kind; " (omitted) " more are in summary.json." } }
    }
}

fn why_flow(summary: &Summary, flow: &Flow) -> Markup {
    let in_phase = |phase: &'_ Phase| phase.flows.iter().find(|other| other.name == flow.name).cloned();
    let phases: Vec<(&Phase, PhaseFlow)> =
        summary.phases.iter().filter_map(|phase| Some((phase, in_phase(phase)?))).collect();
    html! {
        h3 {
            (flow.name) ": " (format::rate(flow.goodput_bps))
            @if let (Some(bound), Some(by)) = (flow.limits.bound_bps, &flow.limits.bound_by) {
                ", bound " (format::rate(bound)) " by " (by) }
        }
        @let explained = || phases.iter().filter(|(_, in_phase)| !in_phase.explanation.is_empty());
        // Phases add no information for a source that nobody uses and that does not wait.
        @let by_phase = flow.setup.tcp.is_some() || matches!(flow.setup.kind, FlowKind::Conference | FlowKind::Game);
        @if by_phase && explained().count() > 1 {
            ul.why {
                @for (phase, in_phase) in explained() {
                    li { b { (phase.name) } ", " (format::rate(in_phase.goodput_bps)) ": " (in_phase.explanation) }
                }
            }
        } @else {
            p { (flow.limits.explanation) }
        }
    }
}

/// All tables of a run.
pub(crate) fn all(summary: &Summary) -> Markup {
    let tables = [
        tabular::flows(summary, &summary.flows.iter().collect::<Vec<_>>()),
        tabular::phases(summary),
        tabular::datagrams(summary, usize::MAX),
        tabular::datagram_classes(summary),
        tabular::probes(summary),
        tabular::delays(summary),
        tabular::pages(summary),
        tabular::videos(summary),
        tabular::backups(summary),
        tabular::conferences(summary),
        tabular::games(summary),
        tabular::lines(summary),
        tabular::links(summary),
        tabular::grants(summary),
        tabular::waits_by_class(summary),
        tabular::ports(summary),
        tabular::edges(summary),
        tabular::abr_sources(summary),
        tabular::virtual_paths(summary),
        tabular::channels(summary),
        tabular::conservation(summary),
    ];
    html! {
        @let groups = tabular::groups(summary);
        @if !groups.rows.is_empty() { (markup(&groups)) }
        @for (number, table) in tables.iter().enumerate().filter(|(_, table)| !table.rows.is_empty()) {
            (markup(table))
            @if number == 0 { (unbounded(summary)) }
        }
    }
}

/// The reason why some flows of a table have no bound.
fn unbounded(summary: &Summary) -> Markup {
    html! {
        @if summary.flows.iter().any(|flow| flow.setup.kind == FlowKind::Web && flow.limits.bound_bps.is_none()) {
            p.caption {
                "Web users have no bound: each asks for a page only when the last has come and been read, \
                 so that what they offer "
                "depends on what they get. The response times of their pages measure their quality."
            }
        }
    }
}

/// One table under its heading, if it has one.
pub(crate) fn markup(table: &Table) -> Markup {
    html! {
        section {
            @if !table.title.is_empty() { h2 { (table.title) } }
            div.scroll {
                table {
                    thead { tr { @for column in &table.columns {
                        th.left[column.kind != Kind::Number] scope="col" { (column.name) } } } }
                    tbody { @for row in table.rows.iter().take(MOST_ROWS) {
                        tr { @for (cell, column) in row.iter().zip(&table.columns) {
                        @match column.kind {
                            Kind::Name => td.name { (cell) },
                            Kind::Text => td.left { (cell) },
                            Kind::Words => td.words { (cell) },
                            Kind::Number => td { (cell) },
                        }
                    } } } }
                }
            }
            @if table.rows.len() > MOST_ROWS { p.caption { (table.rows.len() - MOST_ROWS) " more rows: \
             see summary.json." } }
        }
    }
}

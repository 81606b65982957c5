//! Tables of the report.

use maud::{Markup, html};

use crate::format;
use crate::schema::Summary;
use crate::tabular::{self, Kind, Table};

/// A table of the page shows this many rows; `summary.json` has them all.
const MOST_ROWS: usize = 200;

/// What limited each flow, in words, by phase.
pub(crate) fn why(summary: &Summary) -> Markup {
    html! {
        @for flow in summary.flows.iter().take(MOST_ROWS / 10) {
            h3 { (flow.name) ": " (format::rate(flow.goodput_bps))
                @if let (Some(bound), Some(by)) = (flow.bound_bps, &flow.bound_by) { ", bound " (format::rate(bound)) " by " (by) } }
            @let phases: Vec<_> = summary.phases.iter().filter_map(|phase| {
                Some((phase, phase.flows.iter().find(|in_phase| in_phase.name == flow.name)?))
            }).collect();
            @if phases.len() > 1 {
                ul.why {
                    @for (phase, in_phase) in phases.iter().filter(|(_, in_phase)| !in_phase.explanation.is_empty()) {
                        li { b { (phase.name) } ", " (format::rate(in_phase.goodput_bps)) ": " (in_phase.explanation) }
                    }
                }
            } @else {
                p { (flow.explanation) }
            }
        }
        @if summary.flows.len() > MOST_ROWS / 10 {
            p.caption { (summary.flows.len() - MOST_ROWS / 10) " more flows: see summary.json." }
        }
    }
}

/// All tables of a run.
pub(crate) fn all(summary: &Summary) -> Markup {
    let tables = [
        tabular::flows(summary),
        tabular::phases(summary),
        tabular::probes(summary),
        tabular::links(summary),
        tabular::conservation(summary),
    ];
    html! { @for table in tables.iter().filter(|table| !table.rows.is_empty()) { (markup(table)) } }
}

/// One table under its heading.
pub(crate) fn markup(table: &Table) -> Markup {
    html! {
        section {
            h2 { (table.title) }
            div.scroll {
                table {
                    thead { tr { @for column in &table.columns { th.left[column.kind != Kind::Number] scope="col" { (column.name) } } } }
                    tbody { @for row in table.rows.iter().take(MOST_ROWS) { tr { @for (cell, column) in row.iter().zip(&table.columns) {
                        @match column.kind {
                            Kind::Name => td.name { (cell) },
                            Kind::Text => td.left { (cell) },
                            Kind::Words => td.words { (cell) },
                            Kind::Number => td { (cell) },
                        }
                    } } } }
                }
            }
            @if table.rows.len() > MOST_ROWS { p.caption { (table.rows.len() - MOST_ROWS) " more rows: see summary.json." } }
        }
    }
}

//! Several runs of one scenario: what differs between them, and their panels side by side on equal scales.

use maud::{Markup, html};

use super::panel::Frame;
use super::{caption, drawing, frame, frame_of, panels, shared_caption, tables};
use crate::Run;
use crate::tabular;

/// The body of a page that compares `runs`, of which there is at least one.
pub(crate) fn body(runs: &[Run]) -> Markup {
    let first = &runs[0].summary;
    let narrow = Frame { width: 640.0, margin: 150.0, height: 140.0, ..frame(first) };
    let columns = panels::panels(runs, panels::ALL);
    let rows = columns.first().map_or(0, Vec::len);
    // Every run has a column of its own, so that one looks along a row; a page that is too narrow scrolls.
    let across = format!("--runs:{}", runs.len());
    html! {
        header {
            h1 { (first.scenario) }
            p.caption { (shared_caption(runs)) }
        }
        (tables::markup(&tabular::comparison(runs)))
        h2 { "Over time" }
        @for row in 0..rows {
            figure.side style=(across) {
                @for (run, panels) in runs.iter().zip(&columns) {
                    div {
                        @if row == 0 { h3 { (run.label) } }
                        (drawing(&panels[row], &frame_of(run, &narrow), row + 1 == rows))
                    }
                }
            }
        }
        h2 { "What limited each flow" }
        div.columns {
            @for run in runs { div { h3 { (run.label) } (tables::why(&run.summary)) } }
        }
        @for run in runs {
            details open {
                summary { "All results: " b { (run.label) } }
                (caption(&run.summary))
                (tables::all(&run.summary))
            }
        }
        footer { p { "Panels side by side share their scale. " (shared_caption(runs)) } }
    }
}

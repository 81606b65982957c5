//! The frame of a column of panels, and the panels drawn in it.

use maud::{Markup, html};

use super::panel::{Frame, Panel, coordinate};
use super::scale::Axis;
use crate::Run;
use crate::schema::Summary;

pub(super) fn drawing(panel: &Panel, frame: &Frame, last: bool) -> Markup {
    let size = [coordinate(frame.width), coordinate(frame.panel_height(last))];
    html! {
        svg.plot viewBox={ "0 0 " (size[0]) " " (size[1]) } role="img" aria-label={
            (panel.title) " over " (frame.across.to_lowercase()) } {
            (panel.draw(frame, last))
        }
    }
}

/// The frame of a full-width column of panels over a whole run.
pub(super) fn frame(summary: &Summary) -> Frame {
    let phases = summary.phases.iter();
    Frame {
        time: Axis::time(0.0, summary.run.duration_s, 10),
        across: "Time".into(),
        phases: phases.map(|phase| (phase.from_s, phase.to_s, phase.name.clone())).collect(),
        width: 1140.0,
        margin: 170.0,
        height: 140.0,
    }
}

/// `frame` with the time and the phases of `run`.
pub(super) fn frame_of(run: &Run, frame: &Frame) -> Frame {
    let Frame { width, margin, height, .. } = *frame;
    Frame { width, margin, height, ..self::frame(&run.summary) }
}

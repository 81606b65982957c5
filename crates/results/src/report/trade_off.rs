//! Trade-offs of two quantities: curves over a share of the line instead of time.

use maud::html;

use super::panel::{Frame, Line, Panel, Reference, coordinate};
use super::scale::Axis;
use super::style;
use crate::format;

/// The results of runs of one kind, in the order in which they are joined.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name of the curve.
    pub label: String,
    /// The download's share of the line, from 0 to 1, and the ping's round trip, in seconds.
    pub points: Vec<(f64, f64)>,
}

/// The curves of one line.
#[derive(Clone, Debug)]
pub struct TradeOff {
    /// The line.
    pub heading: String,
    /// The curves.
    pub curves: Vec<Curve>,
    /// The target for the ping, in seconds.
    pub allowed_s: f64,
}

const WIDTH: f64 = 560.0;
const MARGIN: f64 = 150.0;
const HEIGHT: f64 = 240.0;
const GAP: f64 = 24.0;
const HEADING: f64 = 30.0;
/// The least share of the download that is drawn.
const LEAST_SHARE: f64 = 0.8;

/// Download share against the 99th percentile of a ping, one plot for each of `lines` side by side,
/// as a self-contained drawing.
#[must_use]
pub fn trade_off(lines: &[TradeOff], caption: &str) -> String {
    let frame = Frame {
        time: Axis::between(LEAST_SHARE, 1.0, (0.01, "% of the line"), 5),
        across: "Download kept".into(),
        phases: Vec::new(),
        width: WIDTH,
        margin: MARGIN,
        height: HEIGHT,
    };
    let width = (WIDTH + GAP) * format::to_f64(lines.len() as u64) + GAP;
    let height = frame.panel_height(true) + HEADING + GAP * 2.0 + 16.0;
    let drawing = html! {
        svg.plot xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (coordinate(width)) " " (coordinate(height)) }
            width=(coordinate(width)) height=(coordinate(height)) role="img" {
            title { "Download kept, and the ping" }
            style { (maud::PreEscaped(style::standalone())) }
            rect.ground width="100%" height="100%" {}
            @for (number, line) in lines.iter().enumerate() {
                @let x = GAP + format::to_f64(number as u64) * (WIDTH + GAP);
                g transform={ "translate(" (coordinate(x)) " " (coordinate(GAP)) ")" } {
                    text.heading x="0" y="14" { (line.heading) }
                    g transform={ "translate(0 " (coordinate(HEADING)) ")" } { (panel(line).draw(&frame, true)) }
                }
            }
            text.note x=(coordinate(GAP)) y=(coordinate(height - 14.0)) { (caption) }
        }
    };
    super::finished(drawing)
}

fn panel(line: &TradeOff) -> Panel {
    let all = line.curves.iter().flat_map(|curve| &curve.points).filter(|(share, _)| *share >= LEAST_SHARE);
    let slowest = all.map(|(_, time)| *time).fold(line.allowed_s, f64::max);
    let lines = line.curves.iter().enumerate().map(|(colour, curve)| Line {
        label: curve.label.clone(),
        colour,
        dash: 0,
        points: curve.points.clone(),
        ..Line::default()
    });
    Panel {
        title: "Ping, 99th percentile".to_owned(),
        axis: Axis::from_zero(slowest, format::SECONDS, 5),
        lines: lines.collect(),
        references: vec![Reference {
            label: format!("unloaded, a full packet each way and 10 ms: {:.0} ms", line.allowed_s * 1e3),
            value: line.allowed_s,
        }],
        notes: Vec::new(),
        named_by: None,
        marks: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plot has 560 less 52 and 150, and 95 % is at three quarters between 80 and 100 %: 52 +
    /// 358 * 0.75.
    #[test]
    fn a_point_lies_where_its_share_and_its_time_are() {
        let curve = Curve { label: "shaped".to_owned(), points: vec![(0.5, 9.0), (0.9, 0.03), (0.95, 0.1)] };
        let line = TradeOff { heading: "2 Mbit/s".to_owned(), curves: vec![curve], allowed_s: 0.055 };
        let drawing = trade_off(&[line.clone(), line], "two");
        assert!(drawing.contains("L320.5 "), "{drawing}");
        assert!(
            drawing.contains("Download kept, % of the line") && drawing.contains("99th percentile, ms"),
            "{drawing}"
        );
        assert_eq!(drawing.matches("<circle").count(), 2 * 2, "a mark at each point that is in the plot");
        assert!(drawing.contains("shaped") && drawing.contains("10 ms: 55 ms"), "{drawing}");
        assert_eq!(drawing.matches("2 Mbit/s").count(), 2);
        assert!(!drawing.contains("Time"), "{drawing}");
    }
}

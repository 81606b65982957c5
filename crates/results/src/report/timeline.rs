//! A page of calendar time: days or years of a line that was watched.

use maud::html;

use super::document::document;
use super::gallery::Gallery;
use super::panel::{Frame, Line as PanelLine, Panel};
use super::scale::Axis;
use super::shape::Shape;
use super::tables;
use crate::format;
use crate::tabular::Table;

/// A page.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The heading.
    pub title: String,
    /// The caption below it.
    pub caption: String,
    /// The version of the program.
    pub version: String,
    /// Begin and end, in seconds since 1970.
    pub span_s: (f64, f64),
    /// Ticks of the axis of time, and their labels.
    pub ticks: Vec<(f64, String)>,
    /// The time zone of the labels, such as `UTC` or `local time`.
    pub zone: &'static str,
    /// From which time on the zone was how many seconds ahead of UTC; the first begins with the span.
    pub offsets_s: Vec<(f64, f64)>,
    /// Charts, from the top.
    pub charts: Vec<Chart>,
    /// Tables below them.
    pub tables: Vec<Table>,
}

/// A quantity over time.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The name of the chart, without its unit.
    pub title: String,
    /// The quantity.
    pub quantity: Quantity,
    /// Lines.
    pub lines: Vec<Line>,
}

/// The quantity of a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Seconds.
    Time,
    /// Bits a second.
    Rate,
    /// Bytes.
    Size,
    /// A share of one.
    Share,
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name of the line, or of several lines of one subject, which a reader switches together.
    pub label: String,
    /// The name of this line alone, such as `gateway, median`.
    pub member: String,
    /// The number of its colour; lines of one colour differ in their dashes.
    pub colour: usize,
    /// The number of its dashes.
    pub dash: usize,
    /// Time and value; between two of the parts nothing is known, and nothing is drawn.
    pub parts: Vec<Vec<(f64, f64)>>,
}

impl Quantity {
    const fn units(self) -> &'static [format::Unit] {
        match self {
            Self::Time => format::SECONDS,
            Self::Rate => format::RATES,
            Self::Size => format::BYTES,
            Self::Share => format::SHARES,
        }
    }
}

/// The page as HTML: one file that needs no network.
#[must_use]
pub fn timeline(page: &Timeline) -> String {
    let frame = Frame {
        time: Axis::calendar(page.span_s, &page.ticks, (page.zone, &page.offsets_s)),
        across: "Time".into(),
        phases: Vec::new(),
        width: 1140.0,
        margin: 190.0,
        height: 150.0,
    };
    let panels: Vec<Panel> = page.charts.iter().map(|chart| panel(chart, page.span_s)).collect();
    let gallery = Gallery::default();
    let body = html! {
        header {
            h1 { (page.title) }
            p.caption { (page.caption) }
        }
        @if !panels.is_empty() {
            h2 { "Over time" }
            (gallery.column(&panels, &frame))
        }
        @for table in page.tables.iter().filter(|table| !table.rows.is_empty()) { (tables::markup(table)) }
        footer { p { (page.caption) " · lastmile " (page.version) } }
    };
    document(&page.title, &page.version, &body, &gallery)
}

fn panel(chart: &Chart, span_s: (f64, f64)) -> Panel {
    let points = chart.lines.iter().flat_map(|line| line.parts.iter().flatten());
    let largest = points.map(|(_, value)| *value).fold(0.0, f64::max);
    let line = |line: &Line| {
        let part = |points: &Vec<(f64, f64)>| PanelLine {
            label: line.label.clone(),
            member: line.member.clone(),
            colour: line.colour,
            dash: line.dash,
            // A point between two gaps is no line.
            shape: if points.len() == 1 { Shape::Dot } else { Shape::Line },
            points: points.clone(),
            ..PanelLine::default()
        };
        // The last part is the first line, which the drawing names: names stand at the ends of lines.
        line.parts.iter().rev().map(part).collect::<Vec<_>>()
    };
    Panel {
        title: chart.title.clone(),
        axis: Axis::from_zero(largest, chart.quantity.units(), 5),
        lines: chart.lines.iter().flat_map(line).collect(),
        references: Vec::new(),
        notes: Vec::new(),
        named_by: Some(span_s),
        marks: false,
    }
}

#[cfg(test)]
mod tests {
    use lastmile_text::table::Kind;

    use super::*;

    fn page() -> Timeline {
        let mut table = Table::new([("path", Kind::Name), ("p99", Kind::Number)]);
        table.row(["<gateway>", "20 ms"]);
        Timeline {
            title: "A week".to_owned(),
            caption: "line.watch".to_owned(),
            version: "0".to_owned(),
            span_s: (1000.0, 2000.0),
            ticks: vec![(1250.0, "Mon".to_owned()), (1500.0, "Tue".to_owned()), (9000.0, "Never".to_owned())],
            zone: "UTC",
            offsets_s: vec![(1000.0, 0.0)],
            charts: vec![Chart {
                title: "Round-trip time".to_owned(),
                quantity: Quantity::Time,
                lines: vec![Line {
                    label: "gateway".to_owned(),
                    member: "gateway, median".to_owned(),
                    colour: 0,
                    dash: 0,
                    parts: vec![vec![(1000.0, 0.01), (1200.0, 0.02)], vec![(1500.0, 0.03), (2000.0, 0.01)]],
                }],
            }],
            tables: vec![table],
        }
    }

    /// The script names times itself, in any part of the span, and needs the distance of the zone from UTC.
    #[test]
    fn the_script_of_the_page_has_the_clock_of_its_axis() {
        let page = Timeline { offsets_s: vec![(1000.0, 3600.0), (1600.0, 7200.0)], ..page() };
        assert!(timeline(&page).contains(r#""clock":[[1000.0,3600.0],[1600.0,7200.0]]"#), "{}", timeline(&page));
    }

    /// 1300 s is at 0.3 of the plot, as below: 52 + 0.3 * 898.
    #[test]
    fn a_point_between_two_gaps_is_a_dot() {
        let mut page = page();
        page.charts[0].lines[0].parts.insert(1, vec![(1300.0, 0.02)]);
        let html = timeline(&page);
        assert_eq!((html.matches("<circle").count(), html.matches("cx=\"321.4\"").count()), (1, 1), "{html}");
        assert_eq!(html.matches(r#""shape":"dot""#).count(), 1, "{html}");
    }

    /// The script switches all parts of a line together, and the drawing names the last of them.
    #[test]
    fn every_part_of_a_line_has_its_name() {
        let html = timeline(&page());
        assert_eq!(html.matches(r#""label":"gateway","member":"gateway, median""#).count(), 2, "{html}");
        assert_eq!(html.matches(">gateway<").count(), 1, "{html}");
    }

    /// The plot is 1140 less 52 and 190 wide: a quarter is 52 + 898 / 4, half 52 + 898 / 2.
    #[test]
    fn time_is_of_the_calendar_and_a_gap_is_not_drawn_over() {
        let html = timeline(&page());
        assert!(html.contains("x=\"276.5\"") && html.contains(">Mon<") && html.contains(">Tue<"), "{html}");
        assert!(!html.contains("Never"), "a tick outside is left out");
        assert!(html.contains("Time, UTC") && html.contains("Round-trip time, ms"), "{html}");
        // Two lines of one colour, and the second begins at half.
        assert_eq!(html.matches("class=\"line c0 d0\"").count(), 2, "{html}");
        assert!(html.contains("d=\"M501 "), "{html}");
        assert!(html.contains("&lt;gateway&gt;"), "{html}");
    }
}

//! A page of graphs and tables in the one plot style, for results that are no run's.

use maud::{Markup, html};

use lastmile_text::table::Table;

use crate::format;

use super::document::document;
use super::gallery::Gallery;
use super::panel::{Frame, Line, Panel};
use super::scale::Axis;
use super::tables;

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The heading.
    pub title: String,
    /// Inputs and version, in one line.
    pub caption: String,
    /// The contents in their order.
    pub parts: Vec<Part>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// Sentences, one paragraph each.
    Sentences(Vec<String>),
    /// A table.
    Table(Table),
    /// Graphs, one below the other, over one axis.
    Graphs(Graphs),
}

/// Graphs over one axis.
#[derive(Clone, Debug)]
pub struct Graphs {
    /// The axis.
    pub across: Across,
    /// Begin, end and name of phases on an axis of time.
    pub phases: Vec<(f64, f64, String)>,
    /// The graphs.
    pub graphs: Vec<Graph>,
}

/// A horizontal axis, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Across {
    /// From zero to this time.
    Time(f64),
    /// Delays between these two.
    Delay(f64, f64),
}

/// A graph.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The quantity, without its unit.
    pub title: String,
    /// The units of its values.
    pub values: Values,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// The units of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// bit/s.
    Rates,
    /// Seconds.
    Delays,
    /// Shares of 1, in percent.
    Shares,
}

/// A curve of a graph.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name.
    pub name: String,
    /// Places on the axis and values.
    pub points: Vec<(f64, f64)>,
}

/// The page as HTML, which needs no network.
#[must_use]
pub fn page(page: &Page) -> String {
    let gallery = Gallery::default();
    let body = html! {
        header {
            h1 { (page.title) }
            p.caption { (page.caption) }
        }
        @for part in &page.parts { (part.markup(&gallery)) }
        footer { p { (page.caption) } }
    };
    document(&page.title, env!("CARGO_PKG_VERSION"), &body, &gallery)
}

impl Part {
    fn markup(&self, gallery: &Gallery) -> Markup {
        match self {
            Self::Heading(text) => html! { h2 { (text) } },
            Self::Sentences(sentences) => html! { @for sentence in sentences { p { (sentence) } } },
            Self::Table(table) => tables::markup(table),
            Self::Graphs(graphs) => graphs.markup(gallery),
        }
    }
}

impl Graphs {
    fn markup(&self, gallery: &Gallery) -> Markup {
        let (time, across) = match self.across {
            Across::Time(to_s) => (Axis::time(0.0, to_s, 10), "Time"),
            Across::Delay(from_s, to_s) => {
                let unit = format::unit_for(to_s, format::SECONDS);
                (Axis::between(from_s, to_s.max(from_s + 1e-6), unit, 8), "Round-trip time")
            }
        };
        let frame = Frame {
            time,
            across: across.into(),
            phases: self.phases.clone(),
            width: 1140.0,
            margin: 170.0,
            height: 140.0,
        };
        let panels: Vec<Panel> = self.graphs.iter().map(Graph::panel).collect();
        gallery.column(&panels, &frame)
    }
}

impl Graph {
    fn panel(&self) -> Panel {
        let units = match self.values {
            Values::Rates => format::RATES,
            Values::Delays => format::SECONDS,
            Values::Shares => format::SHARES,
        };
        let largest = self.curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value).fold(0.0, f64::max);
        let line = |(colour, curve): (usize, &Curve)| Line {
            label: curve.name.clone(),
            colour,
            dash: 0,
            points: curve.points.clone(),
            ..Line::default()
        };
        Panel {
            title: self.title.clone(),
            axis: Axis::from_zero(largest, units, 5),
            lines: self.curves.iter().enumerate().map(line).collect(),
            references: Vec::new(),
            notes: Vec::new(),
            named_by: None,
            marks: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_parts_and_escapes_their_names() {
        let curve = Curve { name: "a <b> & c".to_owned(), points: vec![(0.0, 1e6), (10.0, 2e6)] };
        let graph = Graph { title: "Rate".to_owned(), values: Values::Rates, curves: vec![curve] };
        let phases = vec![(0.0, 5.0, "idle".to_owned())];
        let html = page(&Page {
            title: "x <script>".to_owned(),
            caption: "c".to_owned(),
            parts: vec![
                Part::Heading("h".to_owned()),
                Part::Sentences(vec!["one.".to_owned(), "two.".to_owned()]),
                Part::Graphs(Graphs { across: Across::Time(10.0), phases, graphs: vec![graph] }),
            ],
        });
        let html = html.split("<script").next().unwrap_or_default();
        assert!(html.contains("a &lt;b&gt;") && html.contains("a &lt;b&gt; &amp; c"), "{html}");
        assert_eq!((html.matches("<svg").count(), html.matches("<p>").count()), (1, 3), "two sentences and the footer");
        assert!(html.contains("Rate, Mbit/s") && html.contains(">idle<"), "{html}");
    }
}

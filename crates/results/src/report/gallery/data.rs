//! Figures as the script of pages reads them.

use lastmile_text::escape;
use serde::Serialize;

/// The horizontal axis of a panel.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Across {
    pub(crate) title: String,
    /// The value of the unit in the base unit, and its symbol.
    pub(crate) unit: (f64, &'static str),
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Begin, end and name of each phase.
    pub(crate) phases: Vec<(f64, f64, String)>,
    /// Places with names, if the axis has no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ticks: Vec<(f64, String)>,
    /// True if places are logarithms to base 10.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) log: bool,
    /// The offsets of an axis of calendar time: from each time, in seconds since 1970, the seconds by which the zone is
    /// ahead of UTC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) clock: Vec<(f64, f64)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PanelData {
    pub(super) title: String,
    pub(super) unit: (f64, &'static str),
    pub(super) top: f64,
    /// The bottom of the scale, unless it is zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bottom: Option<f64>,
    /// True if the scale of a part of the axis begins at the least value there.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) fits: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strip: Option<StripData>,
    pub(super) across: Across,
    pub(super) lines: Vec<LineData>,
    pub(super) references: Vec<(String, f64)>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct LineData {
    pub(super) label: String,
    pub(super) member: String,
    pub(super) colour: usize,
    pub(super) dash: usize,
    pub(super) faint: bool,
    pub(super) bound: bool,
    /// True if the script draws means of the samples.
    pub(super) means: bool,
    /// Indices of the columns of times and values.
    pub(super) columns: (usize, usize),
    /// How points are drawn, unless a line joins them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shape: Option<&'static str>,
    /// The columns of least values, and of half the width of intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) low: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spread: Option<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct StripData {
    pub(super) kinds: Vec<(String, usize)>,
    pub(super) columns: (usize, usize),
}

impl Across {
    /// The axis with names for readers.
    pub(super) fn shown(&self) -> Self {
        Self {
            title: text(&self.title),
            phases: self.phases.iter().map(|(from, to, name)| (*from, *to, text(name))).collect(),
            ticks: self.ticks.iter().map(|(at, name)| (*at, text(name))).collect(),
            ..self.clone()
        }
    }
}

/// A name as text of one line.
pub(super) fn text(text: &str) -> String {
    escape::line(text).into_owned()
}

/// The bottom of a scale, unless it is zero.
pub(super) fn bottom(value: f64) -> Option<f64> {
    Some(value).filter(|bottom| bottom.abs() > 0.0)
}

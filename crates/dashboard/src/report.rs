//! A report of a program: series in charts, charts in groups, tables, marks.

use serde::Serialize;

/// The state of a program at one time.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Milliseconds since 1970-01-01 00:00 UTC.
    pub at_ms: u64,
    /// The state in one line, such as the policy in force.
    pub status: String,
    /// Groups of charts, such as the two directions of a line.
    pub groups: Vec<Group>,
    /// Tables of the latest second.
    pub tables: Vec<Table>,
}

/// Charts with a common heading.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
pub struct Group {
    /// The key of its series in the history: constant while the program runs.
    pub id: String,
    /// The heading, which may change.
    pub title: String,
    /// Its charts. They have different titles.
    pub charts: Vec<Chart>,
}

/// Series over time with a common axis.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// The quantity.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// A line across the chart, such as the rate of the line.
    pub limit: Option<f32>,
    /// The series. They have different labels.
    pub series: Vec<Series>,
}

/// The latest value of a series.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// The name, such as that of a class.
    pub label: String,
    /// The value; `None` if there is none, such as a delay without packets.
    pub value: Option<f32>,
}

impl Chart {
    /// A chart without series yet.
    #[must_use]
    pub const fn new(title: &'static str, unit: Unit) -> Self {
        Self { title, unit, limit: None, series: Vec::new() }
    }

    /// This chart with one more series.
    #[must_use]
    pub fn with(mut self, label: impl Into<String>, value: Option<f64>) -> Self {
        self.push(label, value);
        self
    }

    /// Adds a series.
    #[expect(clippy::cast_possible_truncation, reason = "for the eye only")]
    pub fn push(&mut self, label: impl Into<String>, value: Option<f64>) {
        self.series.push(Series { label: label.into(), value: value.map(|value| value as f32) });
    }

    /// This chart with a line across it.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "for the eye only")]
    pub fn up_to(mut self, limit: Option<f64>) -> Self {
        self.limit = limit.map(|limit| limit as f32);
        self
    }
}

/// The unit of a chart or of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Unit {
    /// A rate.
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    /// A size.
    #[serde(rename = "B")]
    Bytes,
    /// A time.
    #[serde(rename = "s")]
    Seconds,
    /// Events in a second.
    #[serde(rename = "/s")]
    PerSecond,
    /// A number without a unit.
    #[serde(rename = "")]
    Count,
}

/// A table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// The heading.
    pub title: String,
    /// The columns: a heading, and the unit of the numbers in it.
    pub columns: Vec<(&'static str, Unit)>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Text, shown as text.
    Text(String),
    /// A number in the unit of the column.
    Number(f32),
    /// Nothing.
    None,
}

impl From<Option<f64>> for Cell {
    #[expect(clippy::cast_possible_truncation, reason = "for the eye only")]
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::None, |value| Self::Number(value as f32))
    }
}

/// A moment that the page marks on every time axis, such as a change of the policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mark {
    /// Milliseconds since 1970-01-01 00:00 UTC.
    pub at_ms: u64,
    /// The event in words.
    pub words: String,
}

//! Points as joined lines, steps, segments and marks.

/// How points are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Shape {
    /// Joined.
    #[default]
    Line,
    /// Joined by steps.
    Steps,
    /// A segment from the least to the largest value of each.
    Bars,
    /// Joined, with the interval of each.
    Interval,
    Triangle,
    Cross,
    Diamond,
    Square,
    /// A dot with its interval.
    Dot,
}

impl Shape {
    /// The name in the page's data; `None` for a line.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Line => None,
            Self::Steps => Some("steps"),
            Self::Bars => Some("bars"),
            Self::Interval => Some("interval"),
            Self::Triangle => Some("triangle"),
            Self::Cross => Some("cross"),
            Self::Diamond => Some("diamond"),
            Self::Square => Some("square"),
            Self::Dot => Some("dot"),
        }
    }
}

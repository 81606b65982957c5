//! Figures whose drawings are no panels: points, segments and intervals as well as lines.

use super::columns::Columns;
use super::data::{Across, LineData, PanelData, StripData, bottom, text};
use super::exact::Exact;
use crate::format::Unit;
use crate::report::shape::Shape;

/// A figure for the script of pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    pub(crate) title: String,
    /// The unit of values.
    pub(crate) unit: Unit,
    /// Bottom and top of the scale of values.
    pub(crate) span: (f64, f64),
    /// True if the scale of a part of the axis begins at the least value there.
    pub(crate) fits: bool,
    pub(crate) across: Across,
    pub(crate) curves: Vec<Curve>,
    pub(crate) strip: Option<Strip>,
    pub(crate) references: Vec<(String, f64)>,
    pub(crate) notes: Vec<String>,
}

/// A curve.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) colour: usize,
    pub(crate) dash: usize,
    /// True for a bound, which does not set the scale of a part of the axis.
    pub(crate) bound: bool,
    pub(crate) shape: Shape,
    /// Places on the axis.
    pub(crate) at: Exact,
    /// Values; the largest of each point that has an extent.
    pub(crate) values: Exact,
    /// The least value of each point.
    pub(crate) low: Option<Exact>,
    /// Half the width of the interval of each point.
    pub(crate) spread: Option<Exact>,
}

/// Colours along the foot of a figure: the kind of each part of the axis.
#[derive(Clone, Debug)]
pub(crate) struct Strip {
    /// Names and colours.
    pub(crate) kinds: Vec<(String, usize)>,
    /// The begin of each part, and the number of its kind.
    pub(crate) begins: Exact,
    pub(crate) numbers: Vec<usize>,
}

impl Sketch {
    pub(super) fn data(&self, columns: &mut Columns) -> PanelData {
        let curve = |curve: &Curve| {
            let at = columns.shared(&curve.at);
            let mut own = |exact: &Exact| columns.exact(exact);
            let values = own(&curve.values);
            LineData {
                label: text(&curve.label),
                colour: curve.colour,
                dash: curve.dash,
                bound: curve.bound,
                columns: (at, values),
                shape: curve.shape.name(),
                low: curve.low.as_ref().map(&mut own),
                spread: curve.spread.as_ref().map(&mut own),
                ..LineData::default()
            }
        };
        let lines = self.curves.iter().map(curve).collect();
        let strip = self.strip.as_ref().map(|Strip { kinds, begins, numbers }| {
            let numbers = numbers.iter().map(|number| i64::try_from(*number).unwrap_or(0)).collect();
            StripData {
                kinds: kinds.iter().map(|(name, colour)| (text(name), *colour)).collect(),
                columns: (columns.shared(begins), columns.exact(&Exact { step: 1.0, multiples: numbers })),
            }
        });
        PanelData {
            title: text(&self.title),
            unit: self.unit,
            top: self.span.1,
            bottom: bottom(self.span.0),
            fits: self.fits,
            strip,
            across: self.across.shown(),
            lines,
            references: self.references.iter().map(|(label, value)| (text(label), *value)).collect(),
            notes: self.notes.iter().map(|note| text(note)).collect(),
        }
    }
}

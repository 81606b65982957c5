//! Quantities as regular expressions.

use super::Quantity;
use super::spelling;

impl Quantity {
    /// A regular expression (ECMA-262) that matches the text of this quantity: number and unit. It matches
    /// some texts whose value is too large or too fine to parse.
    #[must_use]
    pub fn pattern(self) -> String {
        let units = match self {
            // Letters of any case, as in `tc(8)`, and the notations `Mbps` and `Mb/s`.
            Self::Rate => {
                let bits = spelling::names(self).into_iter().map(in_any_case).collect::<Vec<_>>().join("|");
                format!("(?:{bits})(?:/s|/sec)?|[kKMmGgTt]?(?:bps|b/s)")
            }
            Self::Limit => {
                let counted = [Self::Packets, Self::Bytes, Self::Cells, Self::WireBytes];
                let units = counted.into_iter().flat_map(spelling::names);
                units.map(spaced).collect::<Vec<_>>().join("|")
            }
            _ => spelling::names(self).into_iter().map(spaced).collect::<Vec<_>>().join("|"),
        };
        format!("^\\s*[0-9]+(?:\\.[0-9]+)?\\s*(?:{units})\\s*$")
    }
}

/// Any number of blanks between the words of a unit.
fn spaced(unit: &str) -> String {
    unit.replace(' ', "\\s+")
}

fn in_any_case(unit: &str) -> String {
    unit.chars().map(|c| format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase())).collect()
}

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

#[cfg(test)]
mod tests {
    use regex_lite::Regex;

    use super::Quantity;
    use crate::{BitRate, ByteCount, Duration, Limit, Ratio, WireBytes};

    /// Text that the parser of quantities accepts or refuses, and the pattern with it.
    #[test]
    fn patterns_agree_with_the_parser() {
        let texts = [
            "20 ms",
            "20ms",
            " 1.5  s ",
            "5 m",
            "3 min",
            "1. s",
            ".5 s",
            "1,5 s",
            "-1 s",
            "1e3 s",
            "20 µs",
            "512 kbit/s",
            "512kbit",
            "1 Mbps",
            "1 Mb/s",
            "1 MB/s",
            "512 kb",
            "1 MBIT/SEC",
            "1 Mbit/sec",
            "9600 bps",
            "206 kB",
            "64 KiB",
            "64 K",
            "1500 bytes",
            "3 wire bytes",
            "3 wire  bytes",
            "100 packets",
            "1 pkt",
            "10 cells",
            "20 %",
            "20%",
            "5 ppm",
            "0.5 percent",
            "20",
            "",
            "s",
        ];
        let check = |quantity: Quantity, parses: fn(&str) -> bool| {
            let pattern = Regex::new(&quantity.pattern()).unwrap();
            for text in texts {
                assert_eq!(pattern.is_match(text), parses(text), "{text:?} as {quantity:?}");
            }
        };
        check(Quantity::Time, |text| text.parse::<Duration>().is_ok());
        check(Quantity::Rate, |text| text.parse::<BitRate>().is_ok());
        check(Quantity::Bytes, |text| text.parse::<ByteCount>().is_ok());
        check(Quantity::WireBytes, |text| text.parse::<WireBytes>().is_ok());
        check(Quantity::Limit, |text| text.parse::<Limit>().is_ok());
        check(Quantity::Share, |text| text.parse::<Ratio>().is_ok());
    }
}

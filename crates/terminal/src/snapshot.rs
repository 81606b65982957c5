//! The contents of a view at one time.

use lastmile_text::table::Table;

/// The contents of a view at one time.
#[derive(Clone, Default, Debug)]
pub struct Snapshot {
    /// The state of the program in one line, such as its phase; empty for none.
    pub status: String,
    /// Groups of series, the most important first.
    pub panels: Vec<Panel>,
    /// Tables below the panels, the most important first.
    pub tables: Vec<Table>,
}

/// Series with a common heading.
#[derive(Clone, Default, Debug)]
pub struct Panel {
    /// The heading. Panels of one view have different ones.
    pub title: String,
    /// The series, the most important first: a small terminal shows the first ones.
    pub series: Vec<Series>,
}

impl Panel {
    /// A panel of these series.
    pub fn new(title: impl Into<String>, series: Vec<Series>) -> Self {
        Self { title: title.into(), series }
    }
}

/// The current value of a series. The view keeps the preceding values, by title of the panel and
/// label of the series.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name. Series of one panel have different ones.
    pub label: String,
    /// The unit of `value` and `full_scale`.
    pub unit: Unit,
    /// The current value; `None` if there is none, such as a delay without packets.
    pub value: Option<f64>,
    /// The value that fills the height of the sparkline; `None` for the largest value shown.
    pub full_scale: Option<f64>,
}

impl Series {
    /// A series whose sparkline is scaled to the largest value shown.
    pub fn new(label: impl Into<String>, unit: Unit, value: Option<f64>) -> Self {
        Self { label: label.into(), unit, value, full_scale: None }
    }

    /// A copy whose sparkline is full at this value: the rate of a line.
    #[must_use]
    pub fn out_of(self, full_scale: f64) -> Self {
        Self { full_scale: Some(full_scale), ..self }
    }
}

/// The unit of a series. It decides how values are printed, and the colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A rate, printed as `16.0 Mbit/s`.
    BitsPerSecond,
    /// A size, printed as `206 kB`.
    Bytes,
    /// A time in seconds, printed as `35.4 ms`.
    Seconds,
    /// Events in a second, printed as `12 /s`.
    PerSecond,
    /// A number without a unit.
    Count,
    /// A percentage, printed as `97.5 %`.
    Percent,
}

impl Unit {
    /// `value` for the eye: three digits and the unit. A number that is not scaled by a prefix has
    /// no decimals if it is whole.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        let (number, unit) = self.scaled(value);
        let digits = three_digits(number);
        let whole = number.fract().abs() < 1e-9 && (number < 1.0 || !has_prefix(unit));
        let digits = if whole { format!("{number:.0}") } else { digits };
        if unit.is_empty() { digits } else { format!("{digits} {unit}") }
    }

    /// A constant for the eye: as [`Unit::show`], without zeros at the end.
    #[must_use]
    pub fn show_constant(self, value: f64) -> String {
        let (number, unit) = self.scaled(value);
        let digits = three_digits(number);
        let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
        if unit.is_empty() { digits.to_owned() } else { format!("{digits} {unit}") }
    }

    /// The number and the unit, with the prefix that makes the number readable.
    fn scaled(self, value: f64) -> (f64, &'static str) {
        let by = |steps: &[(f64, &'static str)]| {
            let step = steps.iter().find(|(factor, _)| value >= *factor * 0.9995).or(steps.last());
            step.map_or((value, ""), |(factor, unit)| (value / factor, unit))
        };
        match self {
            Self::BitsPerSecond => by(&[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")]),
            Self::Bytes => by(&[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
            // Microseconds in ASCII, for every terminal.
            Self::Seconds => by(&[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")]),
            Self::PerSecond => (value, "/s"),
            Self::Count => (value, ""),
            Self::Percent => (value, "%"),
        }
    }
}

fn has_prefix(unit: &str) -> bool {
    !matches!(unit, "bit/s" | "B" | "/s" | "%" | "")
}

/// Three digits, or all those left of the point.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_the_nearest_unit() {
        let shown = [
            (Unit::BitsPerSecond, 0.0, "0 bit/s"),
            (Unit::BitsPerSecond, 511_760.0, "512 kbit/s"),
            (Unit::BitsPerSecond, 999_600.0, "1.00 Mbit/s"),
            (Unit::BitsPerSecond, 16.04e6, "16.0 Mbit/s"),
            (Unit::BitsPerSecond, 6e6, "6.00 Mbit/s"),
            (Unit::Bytes, 206_000.0, "206 kB"),
            (Unit::Bytes, 40.0, "40 B"),
            (Unit::Seconds, 0.000_012_3, "12.3 us"),
            (Unit::Seconds, 0.0354, "35.4 ms"),
            (Unit::Seconds, 3.1, "3.10 s"),
            (Unit::Seconds, 0.0, "0 us"),
            (Unit::PerSecond, 0.5, "0.50 /s"),
            (Unit::PerSecond, 12.0, "12 /s"),
            (Unit::Count, 1234.0, "1234"),
            (Unit::Percent, 97.5, "97.5 %"),
        ];
        for (unit, value, text) in shown {
            assert_eq!(unit.show(value), text);
        }
        assert_eq!(Unit::BitsPerSecond.show_constant(8e6), "8 Mbit/s");
        assert_eq!(Unit::BitsPerSecond.show_constant(1.25e6), "1.25 Mbit/s");
        assert_eq!(Unit::BitsPerSecond.show_constant(100e6), "100 Mbit/s");
    }
}

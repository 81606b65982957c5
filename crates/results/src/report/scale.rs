//! Axes: round ticks, suitable units, and the conversion of values to positions in the drawing.

use std::f64::consts::LOG10_2;

use crate::format::{self, Unit};

/// A linear axis that starts at zero or a given value, with its ticks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    /// Labels in place of numbers, one for each tick: dates and times of day.
    labels: Option<Vec<String>>,
    /// The places and their names, of an axis that has no others.
    pub(crate) names: Vec<(f64, String)>,
    /// True if places are logarithms to base 10.
    pub(crate) is_log: bool,
    /// The offsets of an axis of calendar time: from each time, the seconds by which the zone is ahead of UTC.
    pub(crate) clock: Vec<(f64, f64)>,
    /// The unit of the axis: its value in the base unit, and its symbol.
    pub(crate) unit: Unit,
}

impl Axis {
    /// An axis from zero to just above `largest`, in the suitable unit of `units`, with about
    /// `wanted` ticks.
    pub(crate) fn from_zero(largest: f64, units: &'static [Unit], wanted: u32) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        let unit = format::unit_for(largest, units);
        // A margin above, so that no line runs along the frame.
        Self::with_unit(0.0, largest * 1.06, unit, wanted)
    }

    /// An axis of time from `from` to `to`, in seconds or a smaller unit if the span is short.
    pub(crate) fn time(from: f64, to: f64, wanted: u32) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self::with_unit(from, to, format::unit_for(to - from, format::SECONDS), wanted)
    }

    /// An axis between two values.
    pub(crate) fn between(low: f64, high: f64, unit: Unit, wanted: u32) -> Self {
        Self::with_unit(low, high, unit, wanted)
    }

    /// An axis of calendar time with these ticks and their labels. `zone` is the time zone of the labels, and `clock`
    /// has its distances from UTC.
    pub(crate) fn calendar(
        (low, high): (f64, f64),
        ticks: &[(f64, String)],
        (zone, clock): (&'static str, &[(f64, f64)]),
    ) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let (ticks, labels) = ticks.iter().filter(|(tick, _)| (low..=high).contains(tick)).cloned().unzip();
        Self { low, high, ticks, labels: Some(labels), clock: clock.to_vec(), unit: (1.0, zone), ..Self::default() }
    }

    /// An axis of named places.
    pub(crate) fn named((low, high): (f64, f64), names: Vec<(f64, String)>) -> Self {
        let (ticks, labels) = names.iter().cloned().unzip();
        Self { low, high, ticks, labels: Some(labels), names, unit: (1.0, ""), ..Self::default() }
    }

    /// An axis between two logarithms to base 10, with a tick at each power of ten and at 2 and 5 times it.
    pub(crate) fn logarithmic((low, high): (f64, f64), unit: Unit) -> Self {
        const STEPS: [(f64, f64); 3] = [(1.0, 0.0), (2.0, LOG10_2), (5.0, 1.0 - LOG10_2)];
        let each = |power: i32| STEPS.map(|(step, log)| (f64::from(power) + log, step * power_of_ten(power) / unit.0));
        let inside = |(place, _): &(f64, f64)| (low..=high).contains(place);
        let (ticks, numbers): (Vec<f64>, Vec<f64>) = (-30..30).flat_map(each).filter(inside).unzip();
        let labels = numbers.into_iter().map(format::number).collect();
        Self { low, high, ticks, labels: Some(labels), unit, is_log: true, ..Self::default() }
    }

    fn with_unit(low: f64, high: f64, unit: Unit, wanted: u32) -> Self {
        let step = round_step((high - low) / unit.0 / f64::from(wanted.max(1))) * unit.0;
        let first = (low / step - 1e-9).ceil();
        let ticks = (0..200).map(|n| (first + f64::from(n)) * step).take_while(|tick| *tick <= high + step * 1e-9);
        Self { low, high, ticks: ticks.collect(), unit, ..Self::default() }
    }

    /// The position of `value`: 0 at the low end, 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The ends of the axis.
    pub(crate) fn span(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The ticks and their labels, without the unit, which is in the title.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let number = |tick: f64| format::number((tick / self.unit.0 * 1e9).round() / 1e9);
        let label = move |(index, tick): (usize, &f64)| {
            let label = self.labels.as_ref().and_then(|labels| labels.get(index).cloned());
            (*tick, label.unwrap_or_else(|| number(*tick)))
        };
        self.ticks.iter().enumerate().map(label)
    }
}

/// The smallest of 1, 2, 5 times a power of ten at or above `raw`.
pub(crate) fn round_step(raw: f64) -> f64 {
    let power = power_of_ten(decade(raw));
    let mantissa = raw / power;
    let round = [1.0, 2.0, 5.0].into_iter().find(|step| mantissa <= *step * (1.0 + 1e-9)).unwrap_or(10.0);
    round * power
}

/// The power of ten at or below `value`, without logarithms and `powi`, whose last bit differs
/// between machines.
fn decade(value: f64) -> i32 {
    (-30..30).rev().find(|power| value >= power_of_ten(*power) * (1.0 - 1e-12)).unwrap_or(-30)
}

/// The nearest number to 10^`power`: parsing decimals is exact by definition.
fn power_of_ten(power: i32) -> f64 {
    format!("1e{power}").parse().expect("a decimal number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_multiples_of_1_2_or_5() {
        assert_eq!(labels(&Axis::from_zero(1.69e6, format::RATES, 5)), ["0", "0.5", "1", "1.5"]);
        assert_eq!(labels(&Axis::from_zero(206_000.0, format::BYTES, 5)), ["0", "50", "100", "150", "200"]);
        assert_eq!(
            labels(&Axis::time(0.0, 180.0, 10)),
            ["0", "20", "40", "60", "80", "100", "120", "140", "160", "180"]
        );
    }

    #[test]
    fn a_short_run_is_told_in_milliseconds() {
        let axis = Axis::time(0.0, 0.25, 5);
        assert_eq!(axis.unit.1, "ms");
        assert_eq!(labels(&axis), ["0", "50", "100", "150", "200", "250"]);
    }

    #[test]
    fn nothing_to_show_still_has_an_axis() {
        for largest in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            assert!(labels(&Axis::from_zero(largest, format::BYTES, 5)).len() > 1);
        }
    }

    #[test]
    fn a_step_is_never_below_what_was_asked() {
        for raw in [1e-7, 0.3, 1.0, 1.01, 2.5, 7.0, 9.99, 123.0, 5e9] {
            let step = round_step(raw);
            assert!(step >= raw * 0.999 && step <= raw * 2.51, "{raw} gave {step}");
        }
    }
}

//! The values of a key as places of an axis: even for words, and linear or logarithmic for numbers.

use super::model::{Key, Value};
use crate::format;
use crate::report::scale::Axis;

/// The most values whose names are ticks.
const MOST_NAMES: usize = 24;
/// The space at each end of the axis, as a share of it.
const MARGIN: f64 = 0.06;
/// The distance between lines at one place, as a share of the axis.
const APART: f64 = 0.008;

/// An axis, and the place of each value of its key.
pub(super) struct Places {
    pub(super) axis: Axis,
    pub(super) of: Vec<f64>,
    /// The distance by which lines are moved apart at one place, so that their intervals do not cover each other.
    pub(super) apart: f64,
    /// True for numbers, whose points are joined.
    pub(super) has_order: bool,
}

impl Places {
    pub(super) fn of(key: &Key) -> Self {
        let Some(numbers) = numbers(key) else {
            let of: Vec<f64> = (0..key.values.len()).map(|value| format::to_f64(value as u64)).collect();
            let axis = named((-0.5, format::to_f64(key.values.len() as u64) - 0.5), key, &of);
            return Self { axis, of, apart: 0.06, has_order: false };
        };
        let is_log = is_log(&numbers);
        let of: Vec<f64> = numbers.iter().map(|number| if is_log { logarithm(*number) } else { *number }).collect();
        let (low, high) = ends(&of);
        let margin = (high - low) * MARGIN;
        let span = (low - margin, high + margin);
        let apart = if of.len() <= MOST_NAMES { (high - low) * APART } else { 0.0 };
        let axis = match () {
            () if of.len() <= MOST_NAMES => named(span, key, &of),
            () if is_log => Axis::logarithmic(span, format::unit_for(ends(&numbers).1, key.units)),
            () => Axis::between(span.0, span.1, format::unit_for(high.abs().max(low.abs()), key.units), 5),
        };
        Self { axis, of, apart, has_order: true }
    }
}

/// The numbers of a key, if all of its values are numbers.
pub(super) fn numbers(key: &Key) -> Option<Vec<f64>> {
    key.values.iter().map(|value| value.number).collect()
}

fn named((low, high): (f64, f64), key: &Key, places: &[f64]) -> Axis {
    let name = |(at, value): (&f64, &Value)| (*at, value.text.clone());
    let mut ticks: Vec<(f64, String)> = places.iter().zip(&key.values).map(name).collect();
    ticks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Axis::named((low, high), ticks)
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// Six decimals: the last bits of logarithms differ between machines.
fn logarithm(value: f64) -> f64 {
    (value.log10() * 1e6).round() / 1e6
}

/// True if numbers above zero are spread more evenly by their ratios than by their differences.
fn is_log(numbers: &[f64]) -> bool {
    if numbers.len() < 3 || numbers.iter().any(|number| *number <= 0.0) {
        return false;
    }
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let logarithms: Vec<f64> = sorted.iter().map(|number| logarithm(*number)).collect();
    unevenness(&logarithms) < unevenness(&sorted) * 0.99
}

/// The sum of squared gaps between neighbours, as a share of the square of their sum.
fn unevenness(sorted: &[f64]) -> f64 {
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let sum: f64 = gaps.clone().sum();
    gaps.map(|gap| gap * gap).sum::<f64>() / (sum * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_ratios_are_logarithmic_and_even_differences_are_not() {
        assert!(is_log(&[256e3, 512e3, 1024e3]));
        assert!(is_log(&[1.0, 2.0, 5.0, 10.0, 100.0]));
        assert!(!is_log(&[1.0, 2.0, 3.0, 4.0]));
        assert!(!is_log(&[0.0, 1.0, 10.0, 100.0]) && !is_log(&[1.0, 100.0]));
    }
}

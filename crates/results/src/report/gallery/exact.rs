//! Values as whole multiples of a step.

/// Whole multiples of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exact {
    pub(crate) step: f64,
    pub(crate) multiples: Vec<i64>,
}

impl Exact {
    /// Values in a millionth of the largest.
    pub(crate) fn rounded(values: impl Iterator<Item = f64> + Clone) -> Self {
        let largest = values.clone().map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let step = if largest > 0.0 { largest / 1e6 } else { 1.0 };
        Self { step, multiples: values.map(|value| multiple(value, step)).collect() }
    }
}

/// The nearest multiple; zero for what is no number.
#[expect(clippy::cast_possible_truncation, reason = "a value is at most 2 000 000 steps")]
pub(super) fn multiple(value: f64, step: f64) -> i64 {
    let steps = (value / step).round();
    if steps.is_finite() { steps as i64 } else { 0 }
}

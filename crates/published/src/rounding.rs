//! Rounding of figures.

/// As many decimals as tell something.
pub(crate) fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

/// Six significant digits: more than any publication prints.
pub(crate) fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powf(5.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

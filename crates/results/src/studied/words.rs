//! Measures and their values in words.

use lastmile_theory::interval::Mean;

use crate::format::{self, Unit};

/// The units that a measure's name ends with.
#[must_use]
pub fn units(measure: &str) -> &'static [Unit] {
    match measure.rsplit(['_', '.']).next() {
        Some("bps") => format::RATES,
        Some("s") => format::SECONDS,
        Some("bytes") => format::BYTES,
        Some("share" | "utilisation") => format::SHARES,
        _ => format::NUMBERS,
    }
}

/// A measure's name without its unit.
pub(super) fn title(measure: &str) -> String {
    let (name, unit) = measure.rsplit_once('_').unwrap_or((measure, ""));
    if matches!(unit, "bps" | "s" | "bytes" | "share") { name.to_owned() } else { measure.to_owned() }
}

/// A value in words, which may be below zero.
pub(super) fn words(value: f64, units: &'static [Unit]) -> String {
    format!("{}{}", if value < 0.0 { "\u{2212}" } else { "" }, format::with_unit(value.abs(), units))
}

/// A mean with its interval, if it has one.
pub(super) fn estimate(mean: Mean, units: &'static [Unit]) -> String {
    let text = words(mean.mean, units);
    let interval = mean.ci95.map_or_else(String::new, |ci95| format!(" ± {}", format::with_unit(ci95, units)));
    text + &interval
}

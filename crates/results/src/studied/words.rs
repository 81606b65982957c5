//! Measures and their values in words.

use lastmile_theory::interval::Mean;

use crate::format::{self, Unit};

/// The units that a measure's name ends with.
#[must_use]
pub fn units(measure: &str) -> &'static [Unit] {
    match unit(measure) {
        "bps" => format::RATES,
        "s" => format::SECONDS,
        "bytes" => format::BYTES,
        "share" => format::SHARES,
        _ => format::NUMBERS,
    }
}

/// The unit of a measure, as the last word of its name; the name itself where it has none. The statistics of a quantity
/// have the unit of the quantity: `delay_s.p95`.
#[must_use]
pub fn unit(measure: &str) -> &str {
    let quantity = match measure.rsplit_once('.') {
        Some((_, "count")) => "",
        Some((quantity, "min" | "mean" | "p50" | "p95" | "p99" | "p999" | "max" | "jitter")) => quantity,
        _ => measure,
    };
    match quantity.rsplit(['_', '.']).next() {
        Some("utilisation") => "share",
        _ if quantity.contains("limited_by.") => "share",
        last => last.unwrap_or(quantity),
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

/// A mean with its interval, if it has one, and its number of runs where these are fewer than `runs`.
pub(super) fn estimate(mean: Mean, units: &'static [Unit], (of, runs): (usize, usize)) -> String {
    let text = words(mean.mean, units);
    let interval = mean.ci95.map_or_else(String::new, |ci95| format!(" ± {}", format::with_unit(ci95, units)));
    text + &interval + &format::some_of(of as u64, runs as u64)
}

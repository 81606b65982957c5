//! Numbers for people: three or four digits and a suitable unit. Programs get the bare numbers.

/// A unit of a kind of quantity: its value in the base unit, and its symbol.
pub type Unit = (f64, &'static str);

/// Bits per second.
pub const RATES: &[Unit] = &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
/// Bytes, in powers of 1000.
pub const BYTES: &[Unit] = &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
/// Cells.
pub const CELLS: &[Unit] = &[(1.0, "cells")];
/// Seconds.
pub const SECONDS: &[Unit] = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
/// Shares of 1.
pub const SHARES: &[Unit] = &[(0.01, "%")];
/// Numbers without a unit.
pub const NUMBERS: &[Unit] = &[(1.0, "")];

/// The largest unit of `units` with a whole part of `value`; the smallest one if none has, the base
/// unit for zero.
pub fn unit_for(value: f64, units: &'static [Unit]) -> Unit {
    let base = units.iter().find(|(scale, _)| (*scale - 1.0).abs() < f64::EPSILON).or_else(|| units.first());
    if value == 0.0 || !value.is_finite() {
        return *base.expect("a table of units has entries");
    }
    // A value that would print as 1000 of a unit uses the next unit.
    let magnitude = value.abs() * 1.0005;
    let fitting = units.iter().find(|(scale, _)| magnitude >= *scale);
    *fitting.or_else(|| units.last()).expect("a table of units has entries")
}

/// `value` with at least three significant digits, the fewest decimals for that, and no trailing
/// zeros.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return "-".to_owned();
    }
    let decimals = match magnitude {
        m if m >= 99.95 || m == 0.0 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m if m >= 0.09995 => 3,
        m if m >= 0.009_995 => 4,
        m if m >= 0.000_999_5 => 5,
        _ => 6,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `value` in the most suitable unit of `units`.
pub fn with_unit(value: f64, units: &'static [Unit]) -> String {
    let (scale, symbol) = unit_for(value, units);
    let text = number(value / scale);
    if symbol.is_empty() { text } else { format!("{text} {symbol}") }
}

/// A rate, such as `1.69 Mbit/s`.
pub fn rate(bps: f64) -> String {
    with_unit(bps, RATES)
}

/// A rate that may be below zero, such as `-1.25 Mbit/s`.
pub fn signed_rate(bps: f64) -> String {
    format!("{}{}", if bps < 0.0 { "-" } else { "" }, rate(bps.abs()))
}

/// A time, such as `3.2 s` or `48.1 ms`.
pub fn seconds(s: f64) -> String {
    with_unit(s, SECONDS)
}

/// A size, such as `206 kB`.
pub fn bytes(count: u64) -> String {
    with_unit(to_f64(count), BYTES)
}

/// A window: `64 KiB` for a multiple of 1024, else `65535 bytes`.
pub fn window(count: u64) -> String {
    match count {
        0 => "0 bytes".to_owned(),
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n % 1024 == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

/// A share of one as percent: `98.3 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// Digits in groups of three: `1 234 567`, with narrow no-break spaces.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// `once`, `2 times`.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) }
}

/// How often a window closed, and for how long in all: `2 times, 1.2 s`.
pub fn closings(count: u64, closed_s: f64) -> String {
    if count == 0 { "0".to_owned() } else { format!("{}, {}", times(count), seconds(closed_s)) }
}

/// A time that is an estimate or a measurement: `≈414 ms`.
pub fn estimated(s: f64, is_estimate: bool) -> String {
    format!("{}{}", if is_estimate { "≈" } else { "" }, seconds(s))
}

/// `value` formatted, or a dash for `None`.
pub fn or_dash<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), format)
}

/// ` (3 of 4)` behind a mean that some of its runs have; empty where all have it.
pub fn some_of(values: u64, runs: u64) -> String {
    if values < runs { format!(" ({values} of {runs})") } else { String::new() }
}

/// A count as a float: exact to 2^53, for statistics and printing.
#[expect(clippy::cast_precision_loss, reason = "statistics and printing")]
pub fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_largest_unit_with_a_whole_part() {
        assert_eq!(rate(1_694_339.6), "1.69 Mbit/s");
        assert_eq!(rate(512_000.0), "512 kbit/s");
        assert_eq!(rate(999_999.0), "1 Mbit/s");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(seconds(3.2187), "3.22 s");
        assert_eq!(seconds(0.0481), "48.1 ms");
        assert_eq!(seconds(0.000_000_2), "200 ns");
        assert_eq!(bytes(206_000), "206 kB");
        assert_eq!(percent(0.0312), "3.12 %");
        assert_eq!(percent(1.0), "100 %");
    }

    #[test]
    fn a_window_is_told_in_binary_units_only_where_it_is_round_in_them() {
        assert_eq!(window(65_536), "64 KiB");
        assert_eq!(window(65_535), "65535 bytes");
        assert_eq!(window(2 << 20), "2 MiB");
    }

    #[test]
    fn large_counts_come_in_groups() {
        assert_eq!(grouped(1_234_567).replace('\u{202f}', " "), "1 234 567");
        assert_eq!(grouped(999), "999");
    }
}

//! Quantities as text: `"512 kbit/s"`, `"20 ms"`, `"206 kB"`, `"1000 cells"`, `"20 %"`.
//!
//! The form is a number and a unit. Decimal fractions are exact: a value that the type cannot
//! represent exactly is an error, not rounded. An ambiguous unit is an error that lists its
//! readings: `512 kb` as a rate (bits or bytes), `64 K` (1000 or 1024), `5 m` (minutes or milliseconds).
//! Rates also take the bit forms of `tc(8)`, `512kbit` and `2mbit`, and `512 kbps` and `512 kb/s` as bits.
//!
//! Every `Display` in this crate prints text that parses to an equal value.

mod decimal;
mod error;
mod pattern;
mod spelling;

use core::str::FromStr;

pub use error::{ParseError, Problem, Quantity, Reading};

use crate::{BitRate, ByteCount, CellCount, Duration, Instant, Limit, PacketCount, Ratio, WireBytes};
use decimal::Decimal;
use spelling::Unit;

/// A number and its unit, both as text.
struct Written<'a> {
    number: Decimal,
    unit: &'a str,
}

/// Splits text into the non-negative decimal number at its front and the rest.
fn split(text: &str, quantity: Quantity) -> Result<Written<'_>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    if let Some(rest) = text.strip_prefix(['-', '\u{2212}']) {
        let negative = rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.');
        return Err(if negative { Problem::Negative } else { Problem::NoNumber });
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_'))).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        let word = text.split_whitespace().next().unwrap_or(text);
        let not_finite = ["nan", "inf", "infinity"].iter().any(|name| word.eq_ignore_ascii_case(name));
        return Err(if not_finite { Problem::NotFinite } else { Problem::NoNumber });
    }
    if digits.contains(',') {
        return Err(Problem::Comma);
    }
    if has_exponent(unit) {
        return Err(Problem::Malformed);
    }
    let number = Decimal::parse(digits)?;
    let unit = unit.trim();
    if unit.is_empty() {
        if let Some(ways) = spelling::bare(quantity, digits) {
            return Err(Problem::Ambiguous { readings: ways.iter().map(|way| way.of(number)).collect() });
        }
        let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        // NumPy writes 20000000 as 20000000.0.
        let whole = fraction.trim_end_matches('0').is_empty();
        // A rate of six digits is hardly one of 100 Mbit/s.
        let bits = quantity == Quantity::Rate && whole && integer.len() > 5;
        let proposed = if bits { "bit/s" } else { quantity.usual_unit(whole) };
        return Err(Problem::MissingUnit { write: format!("{number} {proposed}") });
    }
    Ok(Written { number, unit })
}

/// True for `e3`, `E-6`: a power of ten, not a unit.
fn has_exponent(rest: &str) -> bool {
    let Some(power) = rest.strip_prefix(['e', 'E']) else { return false };
    power.strip_prefix(['+', '-']).unwrap_or(power).starts_with(|c: char| c.is_ascii_digit())
}

/// The value in the smallest unit of `quantity`, and the quantity whose unit was given.
fn measure(text: &str, quantity: Quantity) -> Result<(u64, Quantity), Problem> {
    let Written { number, unit } = split(text, quantity)?;
    let Some(Unit { scale, of }) = spelling::find(quantity, unit) else {
        return Err(explain(quantity, number, unit));
    };
    Ok((number.times(scale)?, of))
}

/// Why `unit` is no unit of `quantity`.
fn explain(quantity: Quantity, number: Decimal, unit: &str) -> Problem {
    if let Some(readings) = spelling::readings(quantity, unit) {
        return Problem::Ambiguous { readings: readings.iter().map(|r| r.of(number)).collect() };
    }
    if let Some(bits) = spelling::bytes_per_second(quantity, unit) {
        return Problem::CountsBytes { write: bits.of(number).write };
    }
    if let Some(found) = spelling::classify(unit) {
        return Problem::WrongKind { found };
    }
    if let Some((first, rest)) = unit.split_once(char::is_whitespace)
        && spelling::find(quantity, first).is_some()
    {
        return Problem::Trailing { rest: error::excerpt(rest.trim_start()) };
    }
    Problem::UnknownUnit { unit: error::excerpt(unit) }
}

/// Parses with `build`, which reports a value that the type cannot hold.
fn parse<T>(
    text: &str,
    quantity: Quantity,
    build: impl FnOnce(u64, Quantity) -> Result<T, Problem>,
) -> Result<T, ParseError> {
    measure(text, quantity)
        .and_then(|(value, of)| build(value, of))
        .map_err(|problem| ParseError::new(text, quantity, problem))
}

macro_rules! from_str {
    ($($type:ty, $quantity:expr, $build:expr, $doc:literal;)*) => {$(
        #[doc = $doc]
        impl FromStr for $type {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                parse(text, $quantity, |value, _| $build(value))
            }
        }
    )*};
}

from_str! {
    Duration, Quantity::Time, |ps| Ok(Self::from_ps(ps)),
        "`20 ms`, `1.5 s`, `100 us`, `3 min`, `0 ms`, down to `ps` and up to `h`.";
    Instant, Quantity::Time, |ps| Ok(Self::from_ps(ps)),
        "A time since the clock began, written as a [`Duration`] is: `60 s`.";
    BitRate, Quantity::Rate, rate,
        "`512 kbit/s`, `1.544 Mbit/s`, `9600 bit/s`, or as `tc(8)` writes it: `512kbit`. A `Ki` or `Mi` is binary, \
         as in `tc(8)`.";
    ByteCount, Quantity::Bytes, |count| Ok(Self::new(count)),
        "`206 kB` (206 000), `64 KiB` (65 536), `1500 B`, `1500 bytes`.";
    WireBytes, Quantity::WireBytes, |count| Ok(Self::new(count)),
        "`1696 wire bytes`: the layer is part of the unit, so that no IP size slips in.";
    CellCount, Quantity::Cells, |count| Ok(Self::new(count)),
        "`1000 cells`, `1 cell`.";
    PacketCount, Quantity::Packets, |count| Ok(Self::new(count)),
        "`100 packets`, `1 packet`.";
    Ratio, Quantity::Share, share,
        "`20 %`, `0.5 percent`, `5 ppm`: from 0 to 100 %.";
}

/// The unit of a queue's limit decides what is counted: `100 packets`, `206 kB`, `1000 cells`.
impl FromStr for Limit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text, Quantity::Limit, |value, of| {
            Ok(match of {
                Quantity::Packets => Self::Packets(PacketCount::new(value)),
                Quantity::Cells => Self::Cells(CellCount::new(value)),
                Quantity::WireBytes => Self::Wire(WireBytes::new(value)),
                _ => Self::Bytes(ByteCount::new(value)),
            })
        })
    }
}

fn rate(bps: u64) -> Result<BitRate, Problem> {
    if bps == 0 {
        return Err(Problem::Zero);
    }
    BitRate::from_bps(bps).ok_or(Problem::TooLarge)
}

fn share(parts: u64) -> Result<Ratio, Problem> {
    u32::try_from(parts).ok().and_then(Ratio::from_parts_per_billion).ok_or(Problem::TooLarge)
}

#[cfg(test)]
mod tests;

//! The spellings of units, and the ambiguous ones.

use super::decimal::Decimal;
use super::{Quantity, Reading};

const US: u64 = 1_000_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;
const KI: u64 = 1 << 10;
const MI: u64 = 1 << 20;
const GI: u64 = 1 << 30;
const TI: u64 = 1 << 40;

/// The value of a unit in the smallest unit of its quantity.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) scale: u64,
    pub(super) of: Quantity,
}

type Spellings = &'static [(&'static [&'static str], u64)];

/// In picoseconds. Both Unicode micro signs are accepted: U+00B5 and Greek U+03BC.
const TIME: Spellings = &[
    (&["ps"], 1),
    (&["ns", "nsec", "nsecs"], 1_000),
    (&["us", "\u{b5}s", "\u{3bc}s", "usec", "usecs"], US),
    (&["ms", "msec", "msecs"], MS),
    (&["s", "sec", "secs", "second", "seconds"], S),
    (&["min", "minute", "minutes"], 60 * S),
    (&["h", "hour", "hours"], 3_600 * S),
];

/// In bits per second, without the `/s`. Case does not matter, as in `tc(8)`: no two units differ
/// by case alone.
const RATE: Spellings = &[
    (&["bit", "bits"], 1),
    (&["kbit", "kbits"], 1_000),
    (&["mbit", "mbits"], 1_000_000),
    (&["gbit", "gbits"], 1_000_000_000),
    (&["tbit", "tbits"], 1_000_000_000_000),
    (&["kibit", "kibits"], KI),
    (&["mibit", "mibits"], MI),
    (&["gibit", "gibits"], GI),
    (&["tibit", "tibits"], TI),
];

const BYTES: Spellings = &[
    (&["B", "byte", "bytes", "octet", "octets"], 1),
    (&["kB", "kilobyte", "kilobytes"], 1_000),
    (&["MB", "megabyte", "megabytes"], 1_000_000),
    (&["GB", "gigabyte", "gigabytes"], 1_000_000_000),
    (&["TB", "terabyte", "terabytes"], 1_000_000_000_000),
    (&["KiB", "kibibyte", "kibibytes"], KI),
    (&["MiB", "mebibyte", "mebibytes"], MI),
    (&["GiB", "gibibyte", "gibibytes"], GI),
    (&["TiB", "tebibyte", "tebibytes"], TI),
];

const WIRE_BYTES: Spellings = &[(&["wire byte", "wire bytes"], 1)];
const CELLS: Spellings = &[(&["cell", "cells"], 1)];
const PACKETS: Spellings = &[(&["packet", "packets", "pkt", "pkts"], 1)];
/// In parts per 10^9.
const SHARE: Spellings = &[(&["%", "percent"], 10_000_000), (&["ppm"], 1_000)];

const ALL: [Quantity; 7] = [
    Quantity::Time,
    Quantity::Rate,
    Quantity::Bytes,
    Quantity::WireBytes,
    Quantity::Cells,
    Quantity::Packets,
    Quantity::Share,
];

/// The spellings of the units of `quantity`; those of a rate are without the `/s`.
pub(super) fn names(quantity: Quantity) -> Vec<&'static str> {
    let spellings = match quantity {
        Quantity::Time => TIME,
        Quantity::Rate => RATE,
        Quantity::Bytes => BYTES,
        Quantity::WireBytes => WIRE_BYTES,
        Quantity::Cells => CELLS,
        Quantity::Packets => PACKETS,
        Quantity::Share => SHARE,
        Quantity::Limit => &[],
    };
    spellings.iter().flat_map(|(names, _)| names.iter().copied()).collect()
}

/// The unit of `quantity` with the spelling `unit`.
pub(super) fn find(quantity: Quantity, unit: &str) -> Option<Unit> {
    let exact = |spellings: Spellings, of| look_up(spellings, |name| name == unit).map(|scale| Unit { scale, of });
    match quantity {
        Quantity::Time => exact(TIME, quantity),
        Quantity::Rate => {
            let bits = bits_per_second(unit);
            let unit = bits.as_deref().unwrap_or_else(|| per_second(unit));
            look_up(RATE, |name| name.eq_ignore_ascii_case(unit)).map(|scale| Unit { scale, of: quantity })
        }
        Quantity::Bytes => exact(BYTES, quantity),
        Quantity::WireBytes => {
            let words = || unit.split_whitespace();
            look_up(WIRE_BYTES, |name| name.split(' ').eq(words())).map(|scale| Unit { scale, of: quantity })
        }
        Quantity::Cells => exact(CELLS, quantity),
        Quantity::Packets => exact(PACKETS, quantity),
        Quantity::Share => exact(SHARE, quantity),
        Quantity::Limit => [Quantity::Packets, Quantity::Bytes, Quantity::Cells, Quantity::WireBytes]
            .iter()
            .find_map(|&q| find(q, unit)),
    }
}

/// The quantity that `unit` measures, if any.
pub(super) fn classify(unit: &str) -> Option<Quantity> {
    ALL.into_iter().find(|&quantity| find(quantity, unit).is_some())
}

fn look_up(spellings: Spellings, matches: impl Fn(&str) -> bool) -> Option<u64> {
    spellings.iter().find(|(names, _)| names.iter().any(|name| matches(name))).map(|&(_, scale)| scale)
}

/// The unit without `/s`; unchanged if it has none (`tc(8)`'s `kbit`).
fn per_second(unit: &str) -> &str {
    ["/s", "/sec"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(unit)
}

/// Turns `Mbps` and `Mb/s` into `mbit`, as bits in every notation but that of `tc(8)`. `None` for
/// other spellings; a capital `B` counts bytes.
fn bits_per_second(unit: &str) -> Option<String> {
    let prefix = ["bps", "b/s"].iter().find_map(|end| unit.strip_suffix(end))?;
    matches!(prefix, "" | "k" | "K" | "M" | "m" | "G" | "g" | "T" | "t").then(|| format!("{prefix}bit"))
}

/// One reading of an ambiguous unit: the number times `factor / 10^places`, in `unit`.
pub(super) struct Way {
    factor: u64,
    places: u32,
    unit: &'static str,
    means: &'static str,
}

impl Way {
    const fn new(factor: u64, unit: &'static str, means: &'static str) -> Self {
        Self { factor, places: 0, unit, means }
    }

    /// Bits as bytes: an eighth, which is 125 / 10^`places`, with `places` 3 lower for each smaller
    /// unit.
    const fn eighth(places: u32, unit: &'static str) -> Self {
        Self { factor: 125, places, unit, means: "bits" }
    }

    pub(super) fn of(&self, number: Decimal) -> Reading {
        let write = match number.scaled(self.factor, self.places) {
            Some(number) => format!("{number} {}", self.unit),
            None => format!("... {}", self.unit),
        };
        Reading { write, means: self.means }
    }
}

type Ambiguous = &'static [(&'static [&'static str], &'static [Way])];

const AMBIGUOUS_TIME: Ambiguous = &[(&["m", "M"], &[Way::new(1, "min", "minutes"), Way::new(1, "ms", "milliseconds")])];

/// `tc(8)` reads a bare `k` or `m` as bits and `kbps` as bytes; a unit without `/s` states neither.
const AMBIGUOUS_RATE: Ambiguous = &[
    (&["KB/s", "k", "K", "kb", "Kb"], &[Way::new(1, "kbit/s", "kilobits"), Way::new(8, "kbit/s", "kilobytes")]),
    (&["M", "m", "Mb", "mb"], &[Way::new(1, "Mbit/s", "megabits"), Way::new(8, "Mbit/s", "megabytes")]),
    (&["G", "g", "Gb", "gb"], &[Way::new(1, "Gbit/s", "gigabits"), Way::new(8, "Gbit/s", "gigabytes")]),
];

/// `tc(8)` reads `k` and `kb` as 1024 bytes.
const AMBIGUOUS_BYTES: Ambiguous = &[
    (&["b"], &[Way::new(1, "B", "bytes"), Way::eighth(3, "B")]),
    (&["k", "K", "KB"], &[Way::new(1, "kB", "thousands"), Way::new(1, "KiB", "1024s")]),
    (&["m", "M"], &[Way::new(1, "MB", "millions"), Way::new(1, "MiB", "1024s of 1024")]),
    (&["g", "G"], &[Way::new(1, "GB", "billions"), Way::new(1, "GiB", "1024^3s")]),
    (&["kb", "Kb"], &[Way::new(1, "kB", "thousands"), Way::new(1, "KiB", "1024s"), Way::eighth(0, "B")]),
    (&["mb", "Mb"], &[Way::new(1, "MB", "millions"), Way::new(1, "MiB", "1024s of 1024"), Way::eighth(0, "kB")]),
    (&["gb", "Gb"], &[Way::new(1, "GB", "billions"), Way::new(1, "GiB", "1024^3s"), Way::eighth(0, "MB")]),
];

/// A share below one without a unit.
const AMBIGUOUS_SHARE: &[Way] = &[Way::new(100, "%", "a share of one"), Way::new(1, "%", "percent")];

/// The readings of a number without a unit, if there are several.
pub(super) fn bare(quantity: Quantity, digits: &str) -> Option<&'static [Way]> {
    (quantity == Quantity::Share && digits.starts_with("0.")).then_some(AMBIGUOUS_SHARE)
}

/// The readings of `unit`, if there are several.
pub(super) fn readings(quantity: Quantity, unit: &str) -> Option<&'static [Way]> {
    let table = match quantity {
        Quantity::Time => AMBIGUOUS_TIME,
        Quantity::Rate => AMBIGUOUS_RATE,
        Quantity::Bytes | Quantity::Limit => AMBIGUOUS_BYTES,
        _ => return None,
    };
    table.iter().find(|(names, _)| names.contains(&unit)).map(|&(_, ways)| ways)
}

/// The reading in bits of a rate that clearly counts bytes.
pub(super) fn bytes_per_second(quantity: Quantity, unit: &str) -> Option<Way> {
    if quantity != Quantity::Rate {
        return None;
    }
    let means = "bits";
    let (factor, unit) = match per_second(unit) {
        same if same == unit => return None,
        "B" | "byte" | "bytes" => (8, "bit/s"),
        "kB" => (8, "kbit/s"),
        "MB" => (8, "Mbit/s"),
        "GB" => (8, "Gbit/s"),
        "KiB" => (8, "Kibit/s"),
        "MiB" => (8, "Mibit/s"),
        "GiB" => (8, "Gibit/s"),
        _ => return None,
    };
    Some(Way::new(factor, unit, means))
}

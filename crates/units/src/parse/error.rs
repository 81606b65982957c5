//! Errors of a quantity's text, with the expected form.

use core::fmt;

/// A kind of quantity, as expected or as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// A span of time or a point in it.
    Time,
    /// Bits per second.
    Rate,
    /// IP bytes.
    Bytes,
    /// Bytes on the wire.
    WireBytes,
    /// ATM cells.
    Cells,
    /// Packets.
    Packets,
    /// A share of a whole.
    Share,
    /// A queue's limit: packets, bytes or cells.
    Limit,
}

impl Quantity {
    /// The name with its article: `a time`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Rate => "a bit rate",
            Self::Bytes => "a size in bytes",
            Self::WireBytes => "a size in wire bytes",
            Self::Cells => "a number of cells",
            Self::Packets => "a number of packets",
            Self::Share => "a share of a whole",
            Self::Limit => "a queue limit",
        }
    }

    /// A value that parses: `20 ms`.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::Time => "20 ms",
            Self::Rate => "512 kbit/s",
            Self::Bytes => "206 kB",
            Self::WireBytes => "1696 wire bytes",
            Self::Cells => "1000 cells",
            Self::Packets => "100 packets",
            Self::Share => "20 %",
            Self::Limit => "100 packets",
        }
    }

    /// The usual units.
    #[must_use]
    pub const fn units(self) -> &'static str {
        match self {
            Self::Time => "ps, ns, us, ms, s, min or h",
            Self::Rate => "bit/s, kbit/s, Mbit/s or Gbit/s",
            Self::Bytes => "B, kB, MB, GB (powers of 1000), KiB, MiB or GiB (powers of 1024)",
            Self::WireBytes => "wire bytes",
            Self::Cells => "cells",
            Self::Packets => "packets",
            Self::Share => "% or ppm",
            Self::Limit => "packets, bytes (B, kB, KiB, MB, MiB), cells, or ms for a time at the rate of the line",
        }
    }

    /// The unit to propose for a number without one. `whole`: the number has no decimal point.
    pub(super) const fn usual_unit(self, whole: bool) -> &'static str {
        match self {
            Self::Time => "ms",
            Self::Rate => "kbit/s",
            Self::Bytes if whole => "B",
            Self::Bytes => "kB",
            Self::WireBytes => "wire bytes",
            Self::Cells => "cells",
            Self::Packets | Self::Limit => "packets",
            Self::Share => "%",
        }
    }

    const fn finest(self) -> &'static str {
        match self {
            Self::Time => "a picosecond",
            Self::Rate => "1 bit/s",
            Self::Bytes | Self::WireBytes => "a byte",
            Self::Cells => "a cell",
            Self::Packets => "a packet",
            Self::Share => "0.0000001 %",
            Self::Limit => "a byte, a packet or a cell",
        }
    }

    const fn most(self) -> &'static str {
        match self {
            Self::Time => "213 days",
            Self::Rate => "1 Tbit/s",
            Self::Share => "100 %",
            _ => "18446744073709551615",
        }
    }
}

/// One reading of an ambiguous quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value in an unambiguous unit.
    pub write: String,
    /// The meaning of the ambiguous unit: `kilobits`.
    pub means: &'static str,
}

/// The kind of error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No text but white space.
    Empty,
    /// No digits at the front.
    NoNumber,
    /// `nan` or `inf`.
    NotFinite,
    /// More than digits with at most one point: `1.2.3`, `.5`, `1e3`, `1_000`.
    Malformed,
    /// A comma, which may be a decimal point or a thousands separator.
    Comma,
    /// Below zero.
    Negative,
    /// A number without a unit.
    MissingUnit {
        /// The number with a usual unit.
        write: String,
    },
    /// An unknown unit.
    UnknownUnit {
        /// The unit as given, truncated if long.
        unit: String,
    },
    /// A unit with several readings.
    Ambiguous {
        /// The readings.
        readings: Vec<Reading>,
    },
    /// A unit of another quantity.
    WrongKind {
        /// The quantity of that unit.
        found: Quantity,
    },
    /// A rate in bytes per second.
    CountsBytes {
        /// The rate in bits per second.
        write: String,
    },
    /// Below the resolution of the type: half a byte, a tenth of a picosecond.
    TooFine,
    /// A value above the range of the type.
    TooLarge,
    /// A rate of zero.
    Zero,
    /// Text behind a complete quantity.
    Trailing {
        /// That text, truncated if long.
        rest: String,
    },
}

/// Why a text is not the expected quantity. `Display` shows the text and the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    input: String,
    expected: Quantity,
    problem: Problem,
}

impl ParseError {
    pub(super) fn new(input: &str, expected: Quantity, problem: Problem) -> Self {
        Self { input: excerpt(input), expected, problem }
    }

    /// The text, truncated if long.
    #[must_use]
    pub fn input(&self) -> &str {
        &self.input
    }

    /// The expected quantity.
    #[must_use]
    pub const fn expected(&self) -> Quantity {
        self.expected
    }

    /// The kind of error.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl core::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, expected, problem } = self;
        let (name, example) = (expected.name(), expected.example());
        match problem {
            Problem::Empty => write!(f, "empty, where {name} is expected, for example \"{example}\""),
            Problem::NoNumber => {
                write!(f, "{input:?} does not begin with a number; {name} is written like \"{example}\"")
            }
            Problem::NotFinite => write!(f, "{input:?} is no finite number; {name} is written like \"{example}\""),
            Problem::Malformed => write!(
                f,
                "{input:?} does not begin with a plain decimal number (digits, at most one point with digits on both \
                 sides, no exponent); {name} is written like \"{example}\""
            ),
            Problem::Comma => {
                write!(f, "{input:?} has a comma: write a point for decimals and nothing between thousands")
            }
            Problem::Negative => write!(f, "{input:?} is negative; {name} is zero or more, for example \"{example}\""),
            Problem::MissingUnit { write } => {
                write!(f, "{input:?} has no unit; write for example \"{write}\" (units: {})", expected.units())
            }
            Problem::UnknownUnit { unit } => {
                write!(
                    f,
                    "unknown unit {unit:?} in {input:?}; {name} is in {}, for example \"{example}\"",
                    expected.units()
                )
            }
            Problem::Ambiguous { readings } => write_readings(f, input, readings),
            Problem::WrongKind { found } => {
                write!(f, "{input:?} is {}, where {name} is expected, for example \"{example}\"", found.name())
            }
            Problem::CountsBytes { write } => {
                write!(f, "{input:?} counts bytes; {name} counts bits: write \"{write}\"")
            }
            Problem::TooFine => write!(f, "{input:?} is finer than {}, the smallest step of {name}", expected.finest()),
            Problem::TooLarge => write!(f, "{input:?} is too large; {name} is at most {}", expected.most()),
            Problem::Zero => write!(f, "{input:?} is zero; {name} is above zero, for example \"{example}\""),
            Problem::Trailing { rest } => {
                write!(f, "{input:?} goes on after its unit with {rest:?}; {name} is written like \"{example}\"")
            }
        }
    }
}

fn write_readings(f: &mut fmt::Formatter<'_>, input: &str, readings: &[Reading]) -> fmt::Result {
    write!(f, "{input:?} can be read in {} ways; write ", if readings.len() == 2 { "two" } else { "several" })?;
    for (i, Reading { write, means }) in readings.iter().enumerate() {
        let before = match i {
            0 => "",
            _ if i + 1 == readings.len() => " or ",
            _ => ", ",
        };
        write!(f, "{before}\"{write}\" ({means})")?;
    }
    Ok(())
}

/// `text`, truncated to 40 characters, because an error takes one line.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

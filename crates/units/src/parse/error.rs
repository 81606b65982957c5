//! What is wrong with a quantity as written, and what would be right.

use core::fmt;

/// What was expected, or found in its place.
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
    /// With its article: `a time`.
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

    /// The units that it is usually written in.
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

    pub(super) const fn usual_unit(self) -> &'static str {
        match self {
            Self::Time => "ms",
            Self::Rate => "kbit/s",
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

/// One way to read an ambiguous quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The same value, written so that nobody can read it otherwise.
    pub write: String,
    /// What the ambiguous unit would stand for: `kilobits`.
    pub means: &'static str,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing there but white space.
    Empty,
    /// No digits at the front.
    NoNumber,
    /// `nan` or `inf`.
    NotFinite,
    /// Not digits with at most one point among them: `1.2.3`, `.5`, `1e3`, `1_000`.
    Malformed,
    /// A comma: a decimal point to some, a mark between thousands to others.
    Comma,
    /// Below zero.
    Negative,
    /// A number alone.
    MissingUnit {
        /// The number with a usual unit behind it.
        write: String,
    },
    /// A unit of nothing that is known here.
    UnknownUnit {
        /// The unit as written, cut when long.
        unit: String,
    },
    /// A unit that people read in different ways.
    Ambiguous {
        /// Each of those ways.
        readings: Vec<Reading>,
    },
    /// A good unit of something else.
    WrongKind {
        /// What that unit measures.
        found: Quantity,
    },
    /// A rate in bytes per second.
    CountsBytes {
        /// The same rate in bits per second.
        write: String,
    },
    /// Below the resolution of the type: half a byte, a tenth of a picosecond.
    TooFine,
    /// More than the type holds.
    TooLarge,
    /// A rate of nothing.
    Zero,
    /// Something behind a complete quantity.
    Trailing {
        /// What stands there, cut when long.
        rest: String,
    },
}

/// Why a text is not the quantity that was expected. Its `Display` says what was found and what would be right.
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

    /// What was read, cut when long.
    #[must_use]
    pub fn input(&self) -> &str {
        &self.input
    }

    /// What was expected.
    #[must_use]
    pub const fn expected(&self) -> Quantity {
        self.expected
    }

    /// What is wrong.
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

/// `text`, cut after 40 characters: an error is one line.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

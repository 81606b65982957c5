//! Typed values of a file, and errors of those that cannot be read.

use core::fmt::Display;
use core::str::FromStr;

use lastmile_units::parse::{ParseError, Problem, Quantity};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant, Limit, PacketCount, Ratio, WireBytes};

use crate::document::Value;

/// A type as which a value of a file can be read.
pub(crate) trait FromNode: Sized {
    /// The value, or what is wrong with it, in one line.
    fn from_value(value: &Value) -> Result<Self, String>;

    /// A default of the schema.
    fn from_default(text: &'static str) -> Self;

    /// The error of a value outside the bounds of the schema.
    fn out_of_range(&self, _min: Option<&'static str>, _max: Option<&'static str>) -> Option<String> {
        None
    }
}

/// The text of a quantity; a bare number becomes its text, so that the parser can say which unit it lacks.
fn quantity<T: FromStr<Err = ParseError>>(value: &Value, expected: Quantity) -> Result<T, String> {
    match value {
        Value::String(text) | Value::Integer(text) | Value::Float(text) => {
            text.parse().map_err(|e: ParseError| e.to_string())
        }
        other => {
            let (found, name, example) = (other.name(), expected.name(), expected.example());
            Err(format!("{found}, where {name} is expected, for example \"{example}\""))
        }
    }
}

pub(crate) fn bounded<T: Display + PartialOrd + FromNode>(
    value: &T,
    min: Option<&'static str>,
    max: Option<&'static str>,
) -> Option<String> {
    if let Some(text) = min
        && *value < T::from_default(text)
    {
        return Some(format!("{value} is below {text}"));
    }
    match max {
        Some(text) if *value > T::from_default(text) => Some(format!("{value} is above {text}")),
        _ => None,
    }
}

macro_rules! quantities {
    ($($type:ty: $quantity:expr,)*) => {$(
        impl FromNode for $type {
            fn from_value(value: &Value) -> Result<Self, String> {
                quantity(value, $quantity)
            }

            fn from_default(text: &'static str) -> Self {
                text.parse().expect("the schema's defaults and bounds parse")
            }

            fn out_of_range(&self, min: Option<&'static str>, max: Option<&'static str>) -> Option<String> {
                bounded(self, min, max)
            }
        }
    )*};
}

quantities! {
    Duration: Quantity::Time,
    Instant: Quantity::Time,
    BitRate: Quantity::Rate,
    ByteCount: Quantity::Bytes,
    WireBytes: Quantity::WireBytes,
    CellCount: Quantity::Cells,
    PacketCount: Quantity::Packets,
    Ratio: Quantity::Share,
}

impl FromNode for Limit {
    fn from_value(value: &Value) -> Result<Self, String> {
        let limit = quantity(value, Quantity::Limit)?;
        let empty = match limit {
            Self::Packets(count) => count == PacketCount::ZERO,
            Self::Bytes(count) => count == ByteCount::ZERO,
            Self::Cells(count) => count == CellCount::ZERO,
            Self::Wire(count) => count == WireBytes::ZERO,
        };
        if empty { Err(format!("a limit of {limit} holds nothing")) } else { Ok(limit) }
    }

    fn from_default(text: &'static str) -> Self {
        text.parse().expect("the schema's defaults parse")
    }
}

impl FromNode for u64 {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Integer(text) => match text.parse::<Self>() {
                Ok(number) => Ok(number),
                Err(_) if text.starts_with('-') => Err(format!("{text} is negative")),
                Err(_) => Err(format!("{text} is no decimal number up to {}", Self::MAX)),
            },
            Value::String(text) => Err(format!("{text:?} is a text, where a whole number is expected, without quotes")),
            other => Err(format!("{}, where a whole number is expected", other.name())),
        }
    }

    fn from_default(text: &'static str) -> Self {
        text.parse().expect("the schema's defaults and bounds parse")
    }

    fn out_of_range(&self, min: Option<&'static str>, max: Option<&'static str>) -> Option<String> {
        bounded(self, min, max)
    }
}

/// A value that may be a switch, a number or a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scalar {
    Flag(bool),
    Number(u64),
    Text(String),
}

impl Display for Scalar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Flag(flag) => Display::fmt(flag, f),
            Self::Number(number) => Display::fmt(number, f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl FromNode for Scalar {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Boolean(flag) => Ok(Self::Flag(*flag)),
            Value::Integer(_) => u64::from_value(value).map(Self::Number),
            Value::String(text) => Ok(Self::Text(text.clone())),
            other => Err(format!("{}, where a word or a number is expected", other.name())),
        }
    }

    fn from_default(text: &'static str) -> Self {
        match (text.parse(), text) {
            (Ok(number), _) => Self::Number(number),
            (_, "true" | "false") => Self::Flag(text == "true"),
            _ => Self::Text(text.into()),
        }
    }
}

/// The rate of a datagram source: packets per second, or a bit rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendRate {
    Packets(u64),
    Bits(BitRate),
}

impl SendRate {
    const PS_PER_S: u128 = 1_000_000_000_000;

    /// Time between packets of `size`; `None` below a nanosecond.
    pub(crate) fn interval(self, size: ByteCount) -> Option<Duration> {
        let ps = match self {
            Self::Packets(per_second) => Self::PS_PER_S / u128::from(per_second),
            Self::Bits(rate) => u128::from(size.as_u64()) * 8 * Self::PS_PER_S / u128::from(rate.as_bps()),
        };
        u64::try_from(ps).ok().map(Duration::from_ps).filter(|interval| *interval >= Duration::from_ns(1))
    }
}

impl FromNode for SendRate {
    fn from_value(value: &Value) -> Result<Self, String> {
        let Value::String(text) = value else {
            return Err(format!(
                "{}, where a rate is expected, such as \"100 packets/s\" or \"512 kbit/s\"",
                value.name()
            ));
        };
        let Some(count) = ["packets/s", "packet/s"].iter().find_map(|unit| text.trim().strip_suffix(unit)) else {
            return text.parse().map(Self::Bits).map_err(|error: ParseError| error.to_string());
        };
        // A number of Rust may have a sign.
        let digits = Some(count.trim()).filter(|count| count.bytes().all(|byte| byte.is_ascii_digit()));
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(0) => Err(format!("{text:?} is zero; a rate is above zero, for example \"100 packets/s\"")),
            Some(count) => Ok(Self::Packets(count)),
            None => {
                Err(format!("{text:?} does not begin with a whole number; packets are counted like \"100 packets/s\""))
            }
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// A part of a link: a share of it, or a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Portion {
    Share(Ratio),
    Rate(BitRate),
}

impl FromNode for Portion {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) if text.trim_end().ends_with('%') => {
                text.parse().map(Self::Share).map_err(|error: ParseError| error.to_string())
            }
            Value::String(text) => match text.parse::<BitRate>() {
                Ok(rate) => Ok(Self::Rate(rate)),
                Err(error) if *error.problem() == Problem::WrongKind { found: Quantity::Share } => {
                    text.parse().map(Self::Share).map_err(|error: ParseError| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            },
            other => {
                let name = other.name();
                Err(format!("{name}, where a share or a rate is expected, such as \"40 %\" or \"200 kbit/s\""))
            }
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// A burst: bytes on the wire, or what a rate sends in a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Burst {
    Bytes(WireBytes),
    Time(Duration),
}

impl FromNode for Burst {
    fn from_value(value: &Value) -> Result<Self, String> {
        match Duration::from_value(value) {
            Ok(time) => Ok(Self::Time(time)),
            Err(_) => WireBytes::from_value(value).map(Self::Bytes).map_err(|error| format!("{error}; or a time")),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// A number of data packets for each ACK, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Factor(pub(crate) u64);

impl FromNode for Factor {
    fn from_value(value: &Value) -> Result<Self, String> {
        let (Value::Integer(text) | Value::Float(text) | Value::String(text)) = value else {
            return Err(format!("{}, where a number is expected, such as 1.5", value.name()));
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let millionths = (digits(whole) && digits(part) && !whole.is_empty() && part.len() <= 6)
            .then(|| format!("{whole}{part:0<6}").parse::<u64>().ok())
            .flatten();
        match millionths {
            Some(number @ 500_000..=100_000_000) => Ok(Self(number)),
            _ => Err(format!("{text} is no number from 0.5 to 100 with at most six decimals, such as 1.5")),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// A probability above 0 and at most one half.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Probability(pub(crate) f64);

impl FromNode for Probability {
    fn from_value(value: &Value) -> Result<Self, String> {
        let (Value::Integer(text) | Value::Float(text) | Value::String(text)) = value else {
            return Err(format!("{}, where a number is expected, such as 1e-6", value.name()));
        };
        match text.parse::<f64>() {
            Ok(number) if number > 0.0 && number <= 0.5 => Ok(Self(number)),
            _ => Err(format!("{text} is no number above 0 and at most 0.5, such as 1e-6")),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// A whole number that may be negative: an overhead.
impl FromNode for i64 {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Integer(text) => text.parse().map_err(|_| format!("{text} is no decimal number of 64 bits")),
            Value::String(text) => Err(format!("{text:?} is a text, where a whole number is expected, without quotes")),
            other => Err(format!("{}, where a whole number is expected", other.name())),
        }
    }

    fn from_default(text: &'static str) -> Self {
        text.parse().expect("the schema's defaults and bounds parse")
    }

    fn out_of_range(&self, min: Option<&'static str>, max: Option<&'static str>) -> Option<String> {
        bounded(self, min, max)
    }
}

impl FromNode for bool {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Boolean(flag) => Ok(*flag),
            other => Err(format!("{}, where true or false is expected, without quotes", other.name())),
        }
    }

    fn from_default(text: &'static str) -> Self {
        text == "true"
    }
}

impl FromNode for String {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(format!("{}, where a text is expected", other.name())),
        }
    }

    fn from_default(text: &'static str) -> Self {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FromNode>(text: &str) -> Result<T, String> {
        T::from_value(&Value::String(text.into()))
    }

    /// The units are those of the pattern in the JSON Schema: each of a share, and each of a rate.
    #[test]
    fn a_portion_is_a_share_in_any_unit_or_a_rate() {
        for text in ["40 %", "40%", "40 percent", "400000 ppm"] {
            let portion = read::<Portion>(text);
            assert!(matches!(portion, Ok(Portion::Share(share)) if share == "40 %".parse().unwrap()), "{portion:?}");
        }
        for text in ["200 kbit/s", "200kbit", "200 kbps"] {
            let portion = read::<Portion>(text);
            assert!(matches!(portion, Ok(Portion::Rate(rate)) if rate.as_bps() == 200_000), "{portion:?}");
        }
        let large = read::<Portion>("140 percent").unwrap_err();
        assert_eq!(large, "\"140 percent\" is too large; a share of a whole is at most 100 %");
        let time = read::<Portion>("20 ms").unwrap_err();
        assert!(time.starts_with("\"20 ms\" is a time, where a bit rate is expected"), "{time}");
    }

    #[test]
    fn a_number_of_packets_has_no_sign() {
        assert_eq!(read::<SendRate>("100 packets/s"), Ok(SendRate::Packets(100)));
        for text in ["+100 packets/s", "-100 packets/s", "packets/s", "1.5 packets/s"] {
            let error = read::<SendRate>(text).unwrap_err();
            assert!(error.starts_with(&format!("{text:?} does not begin with a whole number")), "{error}");
        }
    }
}

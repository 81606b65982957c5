//! Values of conditions on packets: ports, prefixes, code points, flags, amounts.

use core::ops::RangeInclusive;
use core::str::FromStr;
use std::net::IpAddr;

use lastmile_packet::{Protocol, TcpFlags, dscp};
use lastmile_queueing::Match;
use lastmile_queueing::classify::{Bound, Pattern, Prefix};
use lastmile_queueing::meter::Color;
use lastmile_units::Duration;
use lastmile_units::parse::ParseError;

use crate::diagnostics::did_you_mean;
use crate::document::Value;
use crate::schema::names;
use crate::value::FromNode;

/// The differentiated services code point of this name, such as `EF`, or of this number.
///
/// # Errors
/// No such name, or a number above 63: the expected form.
pub fn code_point_named(text: &str) -> Result<u8, String> {
    let number = || text.parse().ok().filter(|number| *number < 64);
    dscp::named(text)
        .or_else(number)
        .ok_or_else(|| "a code point is 0 to 63, or a name such as EF, AF41 or CS1".to_owned())
}

/// Types of service by name (RFC 1349, section 4), in the bits that the ECN field has left of them. Minimal
/// cost has lost its bit to ECN.
const SERVICES: [(&str, u8); 4] =
    [("minimize-delay", 0x10), ("maximize-throughput", 0x08), ("maximize-reliability", 0x04), ("normal-service", 0x00)];
/// The bits of [`SERVICES`].
const SERVICE_MASK: u8 = 0x1C;

/// Names of [`SERVICES`] and of [`PROTOCOLS`], for the schema.
pub(super) const SERVICE_NAMES: &[&str] = &names(&SERVICES);
pub(super) const PROTOCOL_NAMES: &[&str] = &names(&PROTOCOLS);
/// Names of code points.
pub(crate) const CODE_POINT_NAMES: &[&str] = &names(&dscp::NAMES);

const FLAGS: [(&str, TcpFlags); 8] = [
    ("fin", TcpFlags::FIN),
    ("syn", TcpFlags::SYN),
    ("rst", TcpFlags::RST),
    ("psh", TcpFlags::PSH),
    ("ack", TcpFlags::ACK),
    ("urg", TcpFlags::URG),
    ("ece", TcpFlags::ECE),
    ("cwr", TcpFlags::CWR),
];

const PROTOCOLS: [(&str, Match); 8] = [
    ("tcp", Match::Protocol(Protocol::Tcp)),
    ("udp", Match::Protocol(Protocol::Udp)),
    ("echo-request", Match::Protocol(Protocol::EchoRequest)),
    ("echo-reply", Match::Protocol(Protocol::EchoReply)),
    ("other", Match::Protocol(Protocol::Other)),
    ("icmp", Match::ProtocolNumber(1)),
    ("icmpv6", Match::ProtocolNumber(58)),
    ("gre", Match::ProtocolNumber(47)),
];

/// Why none of these is written as a default in the schema.
const NO_DEFAULT: &str = "the schema has no default of this kind";

/// Implements [`FromNode`] by a function from a value.
macro_rules! reads {
    ($type:ty, $value:ident => $read:expr) => {
        impl FromNode for $type {
            fn from_value($value: &Value) -> Result<Self, String> {
                $read
            }

            fn from_default(_text: &'static str) -> Self {
                unreachable!("{NO_DEFAULT}")
            }
        }
    };
}

/// Several of one kind: a list, or one on its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Several<T>(pub(crate) Vec<T>);

impl<T: FromNode> FromNode for Several<T> {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(items) if items.is_empty() => {
                Err("an empty list, where at least one entry is expected".into())
            }
            Value::Array(items) => {
                items.iter().map(|item| T::from_value(&item.value)).collect::<Result<_, _>>().map(Self)
            }
            one => Ok(Self(vec![T::from_value(one)?])),
        }
    }

    fn from_default(_text: &'static str) -> Self {
        unreachable!("{NO_DEFAULT}")
    }
}

/// A port, or the ports from one to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ports(pub(super) RangeInclusive<u16>);

reads!(Ports, value => {
    let text = match value {
        Value::Integer(text) | Value::String(text) => text,
        other => return Err(format!("{}, where a port is expected, such as 80 or \"6881-6889\"", other.name())),
    };
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
        (Some(first), Some(last)) => Err(format!("ports from {first} to {last}: the first is above the last")),
        _ => Err(format!("{text:?} is no port from 1 to 65535, and no range such as \"6881-6889\"")),
    }
});

/// Addresses: `"192.0.2.1"`, `"192.0.2.0/24"`, `"2001:db8::/32"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Addresses(pub(super) Prefix);

reads!(Addresses, value => {
    let Value::String(text) = value else {
        return Err(format!("{}, where addresses are expected, such as \"192.0.2.0/24\"", value.name()));
    };
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, bits.parse::<u8>().ok()),
        None => (text.as_str(), None),
    };
    let parsed: Option<IpAddr> = address.parse().ok();
    let whole = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let prefix = parsed.and_then(|address| {
        let bits = if text.contains('/') { bits? } else { whole(address) };
        Prefix::new(address, bits)
    });
    prefix.map(Self).ok_or_else(|| {
        format!("{text:?} is no address or prefix, such as \"192.0.2.1\", \"192.0.2.0/24\" or \"2001:db8::/32\"")
    })
});

/// A code point by number or name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CodePoint(pub(crate) u8);

reads!(CodePoint, value => match value {
    Value::Integer(_) => match u64::from_value(value)? {
        number @ 0..64 => Ok(Self(number as u8)),
        number => Err(format!("{number} is above 63")),
    },
    Value::String(text) => named(text, &dscp::NAMES, "code point").map(Self),
    other => Err(format!("{}, where a code point is expected, such as 46 or \"EF\"", other.name())),
});

/// A color of RFC 2697.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ColorName(pub(crate) Color);

reads!(ColorName, value => match value {
    Value::String(text) => {
        let colors = [("green", Color::Green), ("yellow", Color::Yellow), ("red", Color::Red)];
        named(text, &colors, "color").map(Self)
    }
    other => Err(format!("{}, where a color is expected, such as \"yellow\"", other.name())),
});

/// A type of service by name, or a value of the TOS byte with or without a mask: `"0x10/0x1c"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Service {
    pub(super) value: u8,
    pub(super) mask: u8,
}

reads!(Service, value => match value {
    Value::Integer(_) => match u64::from_value(value)? {
        number @ 0..256 => Ok(Self { value: number as u8, mask: u8::MAX }),
        number => Err(format!("{number} is above 255")),
    },
    Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
        let (value, mask) = text.split_once('/').unwrap_or((text, "0xff"));
        match (byte(value), byte(mask)) {
            (Some(value), Some(mask)) => Ok(Self { value, mask }),
            _ => Err(format!("{text:?} is no byte with a mask, such as \"0x10/0x1c\"")),
        }
    }
    Value::String(text) => named(text, &SERVICES, "type of service").map(|value| Self { value, mask: SERVICE_MASK }),
    other => Err(format!("{}, where a type of service is expected, such as \"minimize-delay\"", other.name())),
});

fn byte(text: &str) -> Option<u8> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Bits of the traffic class, with or without a mask: `"0x01/0x03"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MaskedByte {
    pub(super) value: u8,
    pub(super) mask: u8,
}

reads!(MaskedByte, value => {
    let Value::String(text) = value else {
        return Err(format!("{}, where a byte with a mask is expected, such as \"0x01/0x03\"", value.name()));
    };
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xff"));
    match (byte(value), byte(mask)) {
        (Some(value), Some(mask)) => Ok(Self { value, mask }),
        _ => Err(format!("{text:?} is no byte with a mask, such as \"0x01/0x03\"")),
    }
});

/// A protocol by name or number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Named(pub(super) Match);

reads!(Named, value => match value {
    Value::Integer(_) => match u64::from_value(value)? {
        6 => Ok(Self(Match::Protocol(Protocol::Tcp))),
        17 => Ok(Self(Match::Protocol(Protocol::Udp))),
        number @ 0..256 => Ok(Self(Match::ProtocolNumber(number as u8))),
        number => Err(format!("{number} is above 255")),
    },
    Value::String(text) => named(text, &PROTOCOLS, "protocol").map(Self),
    other => Err(format!("{}, where a protocol is expected, such as \"tcp\" or 47", other.name())),
});

/// Flags that are set, and after an exclamation mark flags that are not: `"syn !ack"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Flags(pub(super) Match);

reads!(Flags, value => {
    let Value::String(text) = value else {
        return Err(format!("{}, where TCP flags are expected, such as \"syn !ack\"", value.name()));
    };
    let (mut set, mut of) = (TcpFlags::NONE, TcpFlags::NONE);
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let flag = named(word.trim_start_matches('!'), &FLAGS, "flag")?;
        if of.intersects(flag) {
            return Err(format!("{text:?} has one flag twice"));
        }
        of = of.with(flag);
        if !word.starts_with('!') {
            set = set.with(flag);
        }
    }
    match of {
        TcpFlags::NONE => Err(format!("{text:?} names no flag, such as \"syn !ack\"")),
        of if of == set => Ok(Self(Match::TcpFlags(set))),
        of => Ok(Self(Match::TcpFlagsOf { set, of })),
    }
});

fn named<T: Clone>(text: &str, known: &[(&'static str, T)], what: &str) -> Result<T, String> {
    match known.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        Some((_, value)) => Ok(value.clone()),
        None => {
            let names = known.iter().map(|(name, _)| *name);
            let all = || format!("known: {}", names.clone().collect::<Vec<_>>().join(", "));
            Err(format!("unknown {what} {text:?}; {}", did_you_mean(text, names.clone()).unwrap_or_else(all)))
        }
    }
}

/// An amount and on which side of it: `"> 100 kB"`, `"< 64 kbit/s"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bounded<T> {
    pub(super) bound: Bound,
    pub(super) amount: T,
}

impl<T: FromStr<Err = ParseError>> FromNode for Bounded<T> {
    fn from_value(value: &Value) -> Result<Self, String> {
        let (bound, amount) = bound(value, "> 100 kB")?;
        Ok(Self { bound, amount: amount.parse().map_err(|error: ParseError| error.to_string())? })
    }

    fn from_default(_text: &'static str) -> Self {
        unreachable!("{NO_DEFAULT}")
    }
}

/// A bound on a count per time: `"< 5 /s"`, `"> 100 /min"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PerTime {
    pub(super) bound: Bound,
    pub(super) count: u32,
    pub(super) per: Duration,
}

reads!(PerTime, value => {
    let (bound, rest) = bound(value, "< 5 /s")?;
    let units = [("s", Duration::from_s(1)), ("min", Duration::from_s(60)), ("h", Duration::from_s(3600))];
    let parsed = rest.split_once('/').and_then(|(count, unit)| {
        let count = count.trim().parse::<u32>().ok().filter(|count| (1..=1_000_000).contains(count))?;
        let (_, per) = units.iter().find(|(name, _)| *name == unit.trim())?;
        Some(Self { bound, count, per: *per })
    });
    parsed.ok_or_else(|| format!("{rest:?} is no number in a time, such as \"< 5 /s\" or \"> 100 /min\""))
});

/// The side, and the rest of the text.
fn bound<'a>(value: &'a Value, example: &str) -> Result<(Bound, &'a str), String> {
    let Value::String(text) = value else {
        return Err(format!("{}, where an amount with < or > is expected, such as {example:?}", value.name()));
    };
    let text = text.trim();
    match (text.strip_prefix('<'), text.strip_prefix('>')) {
        (Some(rest), _) => Ok((Bound::Below, rest.trim())),
        (_, Some(rest)) => Ok((Bound::Above, rest.trim())),
        _ => Err(format!("{text:?} does not begin with < or >, such as {example:?}")),
    }
}

/// A pattern of first payload bytes: a text anywhere, or `{ text | hex, at }`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Payload(pub(super) Pattern);

impl Payload {
    /// The bytes of `"13 42 69"`.
    pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
        let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
            return None;
        }
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
    }
}

reads!(Payload, value => match value {
    Value::String(text) => Ok(Self(Pattern { bytes: text.clone().into_bytes(), at: None })),
    Value::Table(table) => {
        let entry = |name: &str| table.get(name).map(|node| &node.value);
        let is_unknown = |key: &str| !["text", "hex", "at"].contains(&key);
        if let Some((key, _)) = table.entries.iter().find(|(key, _)| is_unknown(&key.name)) {
            return Err(format!("unknown key {:?}; known: text, hex, at", key.name));
        }
        let bytes = match (entry("text"), entry("hex")) {
            (Some(Value::String(text)), None) => text.clone().into_bytes(),
            (None, Some(Value::String(text))) => {
                Payload::from_hex(text).ok_or_else(|| format!("{text:?} is no hexadecimal bytes, such as \"13 42 \
                    69\""))?
            }
            _ => return Err("a pattern is a text, or a table with one of text and hex".into()),
        };
        let at = entry("at").map(u64::from_value).transpose()?;
        let at = at.map(|at| u16::try_from(at).map_err(|_| format!("at: {at} is beyond what is looked \
            at"))).transpose()?;
        Ok(Self(Pattern { bytes, at }))
    }
    other => Err(format!("{}, where a text or {{ hex = \"13 42\", at = 0 }} is expected", other.name())),
});

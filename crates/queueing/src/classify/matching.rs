//! Conditions on packets, as plain data.

use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use std::collections::BTreeSet;

use lastmile_packet::{FlowId, Protocol, TcpFlags};
use lastmile_units::{BitRate, ByteCount, Duration};

/// The most rules of a list.
pub const MOST_RULES: usize = 256;

/// A condition on a packet, as plain data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Match {
    /// Every packet.
    Any,
    /// No packet.
    #[default]
    Never,
    /// TCP segments that only acknowledge ([`lastmile_packet::Meta::is_pure_ack`]), and
    /// the signals that directly precede some.
    PureAck,
    /// Pure ACKs that carry SACK blocks: they report a loss, which the sender should know soon.
    SackAck,
    /// Packets of this protocol.
    Protocol(Protocol),
    /// Packets of the protocol with this number (IANA). A simulated packet that is neither TCP, UDP
    /// nor ICMP echo has 253.
    ProtocolNumber(u8),
    /// Packets with this differentiated services code point (RFC 2474), 0 to 63.
    Dscp(u8),
    /// Packets whose TOS or traffic class byte has this value under this mask.
    TrafficClass {
        /// The bits.
        value: u8,
        /// The bits that count.
        mask: u8,
    },
    /// TCP segments in which all of these flags are set.
    TcpFlags(TcpFlags),
    /// TCP segments in which, of the flags in `of`, just these are set.
    TcpFlagsOf {
        /// The flags that are set.
        set: TcpFlags,
        /// The flags that are compared.
        of: TcpFlags,
    },
    /// Packets of this flow.
    Flow(FlowId),
    /// IP packets of at most this number of bytes.
    AtMostBytes(u16),
    /// IP packets of at least this number of bytes.
    AtLeastBytes(u16),
    /// TCP segments and UDP datagrams with a port of this range at this end.
    Port(End, RangeInclusive<u16>),
    /// Packets with an address of this prefix at this end.
    Address(End, Prefix),
    /// Packets of a connection (TCP or UDP) whose bytes so far, this packet included, are below or above this count.
    ConnectionBytes(Bound, ByteCount),
    /// Packets of a connection whose IP bits in the last whole second are below or above this rate;
    /// seconds count from its first packet.
    ConnectionRate(Bound, BitRate),
    /// Packets that open a TCP connection (SYN without ACK), by the rate at which their host opens
    /// some: a bucket of `count` connections for each source address, refilled with `count` in each
    /// `per`. `Below` takes from the bucket while it holds one, and then matches; `Above` matches
    /// when it is empty. In [`Match::All`] it is evaluated last, so that it counts packets that the
    /// other conditions match.
    NewConnections {
        /// The side of the limit that matches.
        bound: Bound,
        /// Connections; not zero.
        count: u32,
        /// In this time.
        per: Duration,
    },
    /// Packets of a connection (TCP or UDP) whose first payload bytes, in either direction, hold
    /// this, from the packet on that shows it.
    FirstPayload(Pattern),
    /// Packets of an FTP data connection (RFC 959, RFC 2428), which its control connection (port 21) has announced with
    /// PORT, EPRT, PASV or EPSV.
    FtpData,
    /// Packets to which the rules of [`super::rules`] above this discipline gave this class. No rule may ask for it.
    Class(u16),
    /// Packets that the condition within does not match.
    Not(Box<Match>),
    /// Packets that every condition matches: all packets if there is none.
    All(Vec<Match>),
    /// Packets that some condition matches: no packet if there is none.
    OneOf(Vec<Match>),
}

/// A condition without meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MatchError {
    /// A DSCP is six bits.
    #[error("a DSCP of {0}; it is from 0 to 63")]
    Dscp(u8),
    /// An empty range of ports.
    #[error("ports from {0} to {1}: the first is above the last")]
    Ports(u16, u16),
    /// An empty pattern: every payload holds it.
    #[error("an empty pattern")]
    EmptyPattern,
    /// A pattern beyond the bytes that are searched.
    #[error(
        "a pattern that ends at byte {0}; the first {max} bytes of a payload are looked at",
        max = Pattern::LOOKED_AT
    )]
    PatternTooFar(usize),
    /// More patterns than one classifier has bits for.
    #[error("{0} patterns of first payload bytes; there are at most {max}", max = Match::MAX_PATTERNS)]
    Patterns(usize),
    /// A limit that no connection would be below or above in the right way.
    #[error("new connections: from 1 to 1000000 in 1 ms to 1 h can be counted")]
    NewConnections,
    /// A rule that asks for a class: rules give classes.
    #[error("a rule that asks for the class {0}, which rules assign: only queues below them may ask")]
    ClassInRule(u16),
    /// Too many rules: each costs time.
    #[error("{0} rules; there are at most {max}", max = MOST_RULES)]
    Rules(usize),
}

impl Match {
    /// Patterns of first payload bytes that one list of rules, or one condition, has at most.
    pub const MAX_PATTERNS: usize = 64;

    /// Refuses conditions without meaning.
    ///
    /// # Errors
    /// The first part without meaning.
    pub fn check(&self) -> Result<(), MatchError> {
        let mut patterns = BTreeSet::new();
        self.check_into(&mut patterns)?;
        check_patterns(&patterns)
    }

    /// A class of rules that the condition asks for, if any.
    pub(super) fn asks_for_class(&self) -> Option<u16> {
        match self {
            Self::Class(class) => Some(*class),
            Self::Not(inner) => inner.asks_for_class(),
            Self::All(inner) | Self::OneOf(inner) => inner.iter().find_map(Self::asks_for_class),
            _ => None,
        }
    }

    /// [`Match::check`] for a part of a larger condition, which gathers the patterns.
    pub(super) fn check_into<'a>(&'a self, patterns: &mut BTreeSet<&'a Pattern>) -> Result<(), MatchError> {
        match self {
            Self::Dscp(dscp @ 64..) => Err(MatchError::Dscp(*dscp)),
            Self::Port(_, ports) if ports.is_empty() => Err(MatchError::Ports(*ports.start(), *ports.end())),
            Self::FirstPayload(pattern) if pattern.bytes.is_empty() => Err(MatchError::EmptyPattern),
            Self::FirstPayload(pattern) if pattern.end() > Pattern::LOOKED_AT => {
                Err(MatchError::PatternTooFar(pattern.end()))
            }
            Self::FirstPayload(pattern) => {
                patterns.insert(pattern);
                Ok(())
            }
            Self::NewConnections { count, per, .. } => {
                let times = Duration::from_ms(1)..=Duration::from_s(3600);
                let counted = (1..=1_000_000).contains(count) && times.contains(per);
                if counted { Ok(()) } else { Err(MatchError::NewConnections) }
            }
            Self::Not(inner) => inner.check_into(patterns),
            Self::All(inner) | Self::OneOf(inner) => inner.iter().try_for_each(|one| one.check_into(patterns)),
            _ => Ok(()),
        }
    }
}

/// Refuses more patterns than one classifier has bits for.
pub(super) fn check_patterns(patterns: &BTreeSet<&Pattern>) -> Result<(), MatchError> {
    if patterns.len() > Match::MAX_PATTERNS { Err(MatchError::Patterns(patterns.len())) } else { Ok(()) }
}

/// The end of a packet's path that a condition compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The source.
    Source,
    /// The destination.
    Destination,
    /// Source, destination, or both.
    Either,
}

impl End {
    /// True if the value at this end meets `is_meant`.
    pub(super) fn is_some<T>(self, source: T, destination: T, is_meant: impl Fn(T) -> bool) -> bool {
        match self {
            Self::Source => is_meant(source),
            Self::Destination => is_meant(destination),
            Self::Either => is_meant(source) || is_meant(destination),
        }
    }
}

/// The side of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Less.
    Below,
    /// More.
    Above,
}

impl Bound {
    pub(super) const fn holds(self, amount: u64, limit: u64) -> bool {
        match self {
            Self::Below => amount < limit,
            Self::Above => amount > limit,
        }
    }
}

/// The addresses that share their first bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix {
    /// An address of the prefix, its further bits zero.
    network: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The prefix of this number of bits that `address` is in; `None` for more bits than an address has.
    #[must_use]
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let network = match address {
            IpAddr::V4(v4) if bits <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                core::net::Ipv4Addr::from_bits(v4.to_bits() & mask).into()
            }
            IpAddr::V6(v6) if bits <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                core::net::Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
            _ => return None,
        };
        Some(Self { network, bits })
    }

    /// An address of the prefix, its further bits zero.
    #[must_use]
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// The number of bits of an address that count.
    #[must_use]
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// True when `address` is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.bits) == Some(*self)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

/// Bytes to search for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pattern {
    /// The bytes; at least one.
    pub bytes: Vec<u8>,
    /// The offset of the bytes from the first payload byte; `None`: anywhere in the first [`Pattern::LOOKED_AT`].
    pub at: Option<u16>,
}

impl Pattern {
    /// The bytes of a payload that are searched.
    pub const LOOKED_AT: usize = 512;

    /// The earliest offset of its end.
    fn end(&self) -> usize {
        usize::from(self.at.unwrap_or(0)) + self.bytes.len()
    }

    /// True when `payload` holds it.
    #[must_use]
    pub fn is_in(&self, payload: &[u8]) -> bool {
        let payload = &payload[..payload.len().min(Self::LOOKED_AT)];
        match self.at {
            Some(at) => payload.get(usize::from(at)..).is_some_and(|rest| rest.starts_with(&self.bytes)),
            None => is_anywhere(&self.bytes, payload),
        }
    }
}

/// Searches for the first byte, which few offsets hold: comparing whole windows costs ten times as much.
fn is_anywhere(pattern: &[u8], text: &[u8]) -> bool {
    let (Some((first, rest)), Some(last)) = (pattern.split_first(), text.len().checked_sub(pattern.len())) else {
        return false;
    };
    text[..=last].iter().enumerate().any(|(at, byte)| byte == first && text[at + 1..].starts_with(rest))
}

//! Which rules of a long list may match a packet at all, told from a few of its fields: only those need be asked.
//!
//! Published: Lakshman and Stiliadis 1998, "High-speed policy-based packet forwarding using efficient multi-dimensional range
//! matching": for each value of a field a bit for each rule, and the bits of all fields of a packet taken together.
//! Differs: fields with few values alone are looked at, and a rule that the bits leave in is asked for what they have not settled
//! ([`Candidates::settles`]). So the bits need not be exact; they only must never leave out a rule that would match, or one that takes
//! note of what it is asked.
//!
//! Cost: two look-ups among the ports that the rules name, once for a connection that is remembered, and a few words for each 64 rules.

use lastmile_packet::{FlowKey, Meta, Protocol, TcpFlags};

use super::condition::Facts;
use super::matching::{End, Match};
use super::rules::Rule;
use super::tracker::Direction;

/// Bits for each value of a field: so many words for each value.
#[derive(Clone, Debug)]
struct Field(Vec<u64>);

/// The rules that may match, by field.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// For each 64 rules.
    words: usize,
    /// By protocol, pure ACK, SACK blocks.
    shapes: Field,
    traffic_classes: Field,
    /// Of TCP segments.
    flags: Field,
    /// By whether a pattern was found in the first payload of the connection, and whether FTP announced it.
    connections: Field,
    /// The first port of each span within which all ports are the same to the rules.
    spans: Vec<u16>,
    /// For each 256 ports the spans of the first and the last of them.
    blocks: Vec<(u16, u16)>,
    sources: Field,
    destinations: Field,
    /// For conditions on either end: left out only if both ends say so.
    either: Field,
}

/// Where a packet stands in each field, as a number of 56 bits: who compares two compares all fields.
#[derive(Clone, Copy)]
pub(super) struct Places(u64);

impl Places {
    const TRAFFIC_CLASS: u32 = 5;
    const FLAGS: u32 = Self::TRAFFIC_CLASS + 8;
    const CONNECTION: u32 = Self::FLAGS + 8;
    /// Spans of source and destination, and whether there are any.
    const SOURCE: u32 = Self::CONNECTION + 2;
    const DESTINATION: u32 = Self::SOURCE + 16;
    const HAS_PORTS: u32 = Self::DESTINATION + 16;
    /// All of them together.
    pub(super) const BITS: u32 = Self::HAS_PORTS + 1;

    /// All of it in [`Places::BITS`] bits, of which some are set; `None` without ports.
    #[inline]
    pub(super) fn packed(self) -> Option<u64> {
        (self.0 >> Self::HAS_PORTS != 0).then_some(self.0)
    }

    fn field(self, at: u32, bits: u32) -> usize {
        (self.0 >> at) as usize & ((1 << bits) - 1)
    }
}

/// The value of one field.
#[derive(Clone, Copy)]
enum Known {
    Shape { protocol: Protocol, pure_ack: bool, sack: bool },
    TrafficClass(u8),
    Flags(TcpFlags),
    Connection { patterns: bool, ftp_data: bool },
    Source(u16),
    Destination(u16),
    Either(u16),
}

const PROTOCOLS: [Protocol; 6] =
    [Protocol::Tcp, Protocol::Udp, Protocol::EchoRequest, Protocol::EchoReply, Protocol::Other, Protocol::AckSignal];

const TWO: [bool; 2] = [false, true];

/// In the order of the lowest bits of [`Places`].
fn shapes() -> Vec<Known> {
    let of = |protocol, pure_ack| TWO.map(|sack| Known::Shape { protocol, pure_ack, sack });
    PROTOCOLS.into_iter().flat_map(|protocol| TWO.into_iter().flat_map(move |ack| of(protocol, ack))).collect()
}

fn traffic_classes() -> Vec<Known> {
    (0..=u8::MAX).map(Known::TrafficClass).collect()
}

fn flags() -> Vec<Known> {
    (0..=u8::MAX).map(|bits| Known::Flags(TcpFlags::from_bits(bits))).collect()
}

/// In the order of [`Places::CONNECTION`].
fn connections() -> Vec<Known> {
    TWO.into_iter().flat_map(|patterns| TWO.map(|ftp_data| Known::Connection { patterns, ftp_data })).collect()
}

impl Candidates {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let words = rules.len().div_ceil(64);
        let field = |values: Vec<Known>| {
            let mut bits = Vec::new();
            for known in values {
                let start = bits.len();
                bits.resize(start + words, 0);
                for (index, rule) in rules.iter().enumerate() {
                    bits[start + index / 64] |= u64::from(known.leaves_in(&rule.matches)) << (index % 64);
                }
            }
            Field(bits)
        };
        let mut spans = vec![0];
        rules.iter().for_each(|rule| ports_of(&rule.matches, &mut spans));
        spans.sort_unstable();
        spans.dedup();
        let span_of = |port: u16| (spans.partition_point(|first| *first <= port) - 1) as u16;
        Self {
            words,
            shapes: field(shapes()),
            traffic_classes: field(traffic_classes()),
            flags: field(flags()),
            connections: field(connections()),
            sources: field(spans.iter().copied().map(Known::Source).collect()),
            destinations: field(spans.iter().copied().map(Known::Destination).collect()),
            either: field(spans.iter().copied().map(Known::Either).collect()),
            blocks: (0..=u8::MAX)
                .map(|high| [0, u8::MAX].map(|low| span_of(u16::from_be_bytes([high, low]))))
                .map(Into::into)
                .collect(),
            spans,
        }
    }

    /// True if every packet with addresses that the bits leave to a rule meets `part` of it: the rule itself, or one of those of
    /// which it wants all. Then nobody need ask.
    ///
    /// That is so if for each shape a packet can have, the shape says whether it does, or another field does for each of its values.
    pub(super) fn settles(&self, rule: &Match, part: &Match) -> bool {
        if notes_more_than_matches(rule) {
            return false;
        }
        let ports = |end: fn(u16) -> Known| self.spans.iter().copied().map(end).collect::<Vec<_>>();
        let mut fields = vec![traffic_classes(), connections(), ports(Known::Source), ports(Known::Destination)];
        if is_of_one_end(rule) {
            fields.push(ports(Known::Either));
        }
        let always = fields.iter().any(|field| field.iter().all(|known| known.settles(part)));
        let by_flags = || flags().iter().all(|known| known.settles(part));
        shapes().into_iter().all(|shape| {
            let is_tcp = matches!(shape, Known::Shape { protocol: Protocol::Tcp, .. });
            shape.settles(part) || always || (is_tcp && by_flags())
        })
    }

    /// The span of a port.
    fn span(&self, port: u16) -> u16 {
        let (first, last) = self.blocks[usize::from(port >> 8)];
        let rest = &self.spans[usize::from(first)..=usize::from(last)];
        first + (rest.partition_point(|start| *start <= port) - 1) as u16
    }

    pub(super) const fn words(&self) -> usize {
        self.words
    }

    // Out of line it takes half as many instructions again, for every packet.
    #[inline(always)]
    pub(super) fn places(&self, facts: &mut Facts<'_>) -> Places {
        let meta: &Meta = facts.meta;
        let (pure_ack, sack) = (meta.is_pure_ack(), meta.options().sack_count() > 0);
        let shape = meta.protocol as u64 * 4 + u64::from(pure_ack) * 2 + u64::from(sack);
        let mut places = shape | u64::from(meta.traffic_class) << Places::TRAFFIC_CLASS;
        if meta.protocol == Protocol::Tcp {
            places |= u64::from(meta.flags.bits()) << Places::FLAGS;
        }
        if let Some(Direction { connection: known, .. }) = &facts.connection {
            let connection = u64::from(known.patterns != 0) * 2 + u64::from(known.ftp_data);
            places |= connection << Places::CONNECTION;
        }
        if let Some(FlowKey { addresses, .. }) = facts.key {
            let find = || [addresses.source_port, addresses.destination_port].map(|port| self.span(port));
            let [source, destination] =
                facts.connection.as_mut().map_or_else(find, |connection| connection.ports(find)).map(u64::from);
            places |= source << Places::SOURCE | destination << Places::DESTINATION | 1 << Places::HAS_PORTS;
        }
        Places(places)
    }

    /// Of the 64 rules of this word, those that may match.
    // Inlined into the loop over words, it takes twice the instructions, for places in memory that are looked up in advance.
    #[inline(never)]
    pub(super) fn among(&self, places: Places, word: usize) -> u64 {
        let at = |field: &Field, value: usize| field.0[value * self.words + word];
        let mut left = at(&self.shapes, places.field(0, Places::TRAFFIC_CLASS))
            & at(&self.traffic_classes, places.field(Places::TRAFFIC_CLASS, 8))
            & at(&self.connections, places.field(Places::CONNECTION, 2));
        if places.field(0, Places::TRAFFIC_CLASS) / 4 == Protocol::Tcp as usize {
            left &= at(&self.flags, places.field(Places::FLAGS, 8));
        }
        if places.packed().is_some() {
            let (source, destination) = (places.field(Places::SOURCE, 16), places.field(Places::DESTINATION, 16));
            left &= at(&self.sources, source) & at(&self.destinations, destination);
            left &= at(&self.either, source) | at(&self.either, destination);
        }
        left
    }
}

/// Adds the first port of each span that a condition tells from others.
fn ports_of(condition: &Match, spans: &mut Vec<u16>) {
    match condition {
        Match::Port(_, ports) => {
            spans.push(*ports.start());
            spans.extend(ports.end().checked_add(1));
        }
        Match::Not(inner) => ports_of(inner, spans),
        Match::All(inner) | Match::OneOf(inner) => inner.iter().for_each(|one| ports_of(one, spans)),
        _ => {}
    }
}

impl Known {
    /// False if a packet with this value cannot match.
    fn leaves_in(self, condition: &Match) -> bool {
        if notes_more_than_matches(condition) || (matches!(self, Self::Either(_)) && !is_of_one_end(condition)) {
            return true;
        }
        self.verdict(condition) != Some(false)
    }

    /// True if a packet with this value that the bits leave in meets `part`, whatever else it is: those that do not are left
    /// out. Where the value is a port, of packets that have any; to others each [`Match::Port`] is false by their shape.
    fn settles(self, part: &Match) -> bool {
        self.verdict(part).is_some() || self.holds_port(part)
    }

    /// True if this is a port that is asked for, at its end.
    fn holds_port(self, part: &Match) -> bool {
        match (self, part) {
            (_, Match::OneOf(inner)) => inner.iter().any(|one| self.holds_port(one)),
            (Self::Source(port), Match::Port(End::Source, ports))
            | (Self::Destination(port), Match::Port(End::Destination, ports))
            | (Self::Either(port), Match::Port(End::Either, ports)) => ports.contains(&port),
            _ => false,
        }
    }

    /// Whether a packet with this value matches; `None` if that depends on more.
    fn verdict(self, condition: &Match) -> Option<bool> {
        match condition {
            Match::Any => Some(true),
            Match::Never => Some(false),
            Match::Not(inner) => self.verdict(inner).map(|verdict| !verdict),
            Match::All(inner) => self.verdict_of(inner, false),
            Match::OneOf(inner) => self.verdict_of(inner, true),
            plain => self.says(plain),
        }
    }

    /// Of several: `decisive` if one of them is, the opposite if all are that.
    fn verdict_of(self, conditions: &[Match], decisive: bool) -> Option<bool> {
        let mut verdict = Some(!decisive);
        for condition in conditions {
            match self.verdict(condition) {
                Some(one) if one == decisive => return Some(decisive),
                Some(_) => {}
                None => verdict = None,
            }
        }
        verdict
    }

    fn says(self, plain: &Match) -> Option<bool> {
        match (self, plain) {
            (Self::Shape { protocol, pure_ack, sack }, plain) => of_shape(protocol, pure_ack, sack, plain),
            (Self::TrafficClass(byte), Match::Dscp(dscp)) => Some(byte >> 2 == *dscp),
            (Self::TrafficClass(byte), Match::TrafficClass { value, mask }) => Some(byte & mask == value & mask),
            (Self::Flags(flags), Match::TcpFlags(all)) => Some(flags.contains(*all)),
            (Self::Flags(flags), Match::TcpFlagsOf { set, of }) => {
                Some(flags.bits() & of.bits() == set.bits() & of.bits())
            }
            (Self::Flags(flags), Match::NewConnections { .. }) => {
                let opens = flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK);
                if opens { None } else { Some(false) }
            }
            (Self::Connection { patterns: false, .. }, Match::FirstPayload(_)) => Some(false),
            (Self::Connection { ftp_data, .. }, Match::FtpData) => Some(ftp_data),
            // Within the span it depends on the protocol too.
            (Self::Source(port), Match::Port(End::Source, ports))
            | (Self::Destination(port), Match::Port(End::Destination, ports))
            | (Self::Either(port), Match::Port(End::Either, ports)) => {
                if ports.contains(&port) {
                    None
                } else {
                    Some(false)
                }
            }
            _ => None,
        }
    }
}

fn of_shape(protocol: Protocol, pure_ack: bool, sack: bool, plain: &Match) -> Option<bool> {
    let (is_tcp, is_udp) = (protocol == Protocol::Tcp, protocol == Protocol::Udp);
    let is_signal = protocol == Protocol::AckSignal;
    let unless = |possible: bool| if possible { None } else { Some(false) };
    match plain {
        Match::Protocol(wanted) => Some(protocol == *wanted),
        Match::ProtocolNumber(number) => match protocol {
            // Such as a fragment, which has the number of what it is of.
            Protocol::Other => None,
            // A signal is of the flow of its ACK.
            Protocol::Tcp | Protocol::AckSignal => Some(*number == Protocol::Tcp.number(false)),
            Protocol::Udp => Some(*number == Protocol::Udp.number(false)),
            Protocol::EchoRequest | Protocol::EchoReply => {
                unless(TWO.into_iter().any(|ipv6| protocol.number(ipv6) == *number))
            }
        },
        Match::PureAck => Some(pure_ack || is_signal),
        Match::SackAck => Some(pure_ack && sack),
        Match::TcpFlags(_) | Match::TcpFlagsOf { .. } => unless(is_tcp),
        Match::NewConnections { .. } => unless(is_tcp && !pure_ack),
        Match::Port(..) => unless(is_tcp || is_udp || is_signal),
        Match::ConnectionBytes(..) | Match::ConnectionRate(..) | Match::FirstPayload(_) | Match::FtpData => {
            unless(is_tcp || is_udp)
        }
        _ => None,
    }
}

/// True of a condition that may count a new connection though the whole does not match: it is asked in any case. What stands
/// right in a [`Match::All`] is asked last.
fn notes_more_than_matches(condition: &Match) -> bool {
    match condition {
        Match::All(inner) => {
            inner.iter().any(|one| !matches!(one, Match::NewConnections { .. }) && has_new_connections(one))
        }
        Match::NewConnections { .. } => false,
        other => has_new_connections(other),
    }
}

fn has_new_connections(condition: &Match) -> bool {
    has(condition, &|plain| matches!(plain, Match::NewConnections { .. }))
}

fn has(condition: &Match, wanted: &dyn Fn(&Match) -> bool) -> bool {
    match condition {
        Match::Not(inner) => has(inner, wanted),
        Match::All(inner) | Match::OneOf(inner) => inner.iter().any(|one| has(one, wanted)),
        plain => wanted(plain),
    }
}

/// True if the whole cannot match unless one and the same port meets all that is asked of either end.
fn is_of_one_end(condition: &Match) -> bool {
    let asks = |one: &Match| has(one, &|plain| matches!(plain, Match::Port(End::Either, _)));
    match condition {
        Match::Not(inner) => !asks(inner),
        Match::All(inner) => inner.iter().filter(|one| asks(one)).count() <= 1 && inner.iter().all(is_of_one_end),
        Match::OneOf(inner) => inner.iter().all(is_of_one_end),
        _ => true,
    }
}

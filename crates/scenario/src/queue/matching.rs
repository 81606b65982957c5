//! Conditions on packets.

use lastmile_packet::Protocol;
use lastmile_queueing::Match;
use lastmile_queueing::classify::End;
use lastmile_units::{BitRate, ByteCount};

use super::words::{Addresses, Bounded, CodePoint, Flags, Named, Payload, PerTime, Ports, Service, Several};
use crate::reader::{Table, Unopened};
use crate::schema::{ADDRESS, CODE_POINT, Key, Kind, Section};

pub(super) const EXEMPT: Key =
    Key::optional("exempt", Kind::Table("[matches](#matches)"), "nothing", "Packets that are never touched.");

/// Ports in quotes: one, or a range.
const RANGE: Kind = Kind::Matching("^\\s*[0-9]+\\s*(-\\s*[0-9]+\\s*)?$");
const PREFIX: Kind = Kind::Matching(ADDRESS);
const FLAGS: &str = "^[ ,]*!*(fin|syn|rst|psh|ack|urg|ece|cwr)([ ,]+!*(fin|syn|rst|psh|ack|urg|ece|cwr))*[ ,]*$";
const PAYLOAD: Kind = Kind::Fields(&[
    Key::optional("text", Kind::Text, "`hex` says it", "The bytes as a text."),
    Key::optional("hex", Kind::Text, "`text` says it", "The bytes as hexadecimal digits, such as `13 42`."),
    Key::optional("at", Kind::Count, "anywhere in the first 512 bytes", "Offset of the first byte."),
]);
const PORTS: Kind = Kind::Other(
    "`80`, `\"6881-6889\"`, or a list of them",
    &[Kind::Count, RANGE, Kind::Several(&[Kind::Count, RANGE])],
);
const ADDRESSES: Kind = Kind::Other(
    "`\"192.0.2.1\"`, `\"192.0.2.0/24\"`, `\"2001:db8::/32\"`, or a list of them",
    &[PREFIX, Kind::Several(&[PREFIX])],
);

pub(crate) static MATCH: Section = Section {
    heading: "Matches",
    about: "A condition on a packet. Of several keys all must hold; of a list, one entry. An empty table matches \
            every packet. \
            Conditions on connections remember up to 131 072 of them, and forget that of a single packet or the \
            longest silent for a further one; they count what \
            passes the queue at which they stand.",
    keys: &[
        Key::optional("pure_ack", Kind::Flag, "either way", "A TCP segment that acknowledges and does nothing else."),
        Key::optional("sack_ack", Kind::Flag, "either way", "A pure ACK with SACK blocks: something was lost."),
        Key::optional(
            "protocol",
            Kind::Other(
                "`\"tcp\"`, `\"udp\"`, `\"echo-request\"`, `\"echo-reply\"`, `\"icmp\"`, `\"icmpv6\"`, `\"gre\"`, \
                 `\"other\"`, or a number",
                &[Kind::Words(super::words::PROTOCOL_NAMES), Kind::Count],
            ),
            "any",
            "The protocol; a number is that of IANA.",
        ),
        Key::optional("port", PORTS, "any", "A port at either end, of TCP or UDP."),
        Key::optional("source_port", PORTS, "any", "The port that it comes from."),
        Key::optional("destination_port", PORTS, "any", "The port that it goes to."),
        Key::optional("address", ADDRESSES, "any", "An address at either end."),
        Key::optional("source", ADDRESSES, "any", "The address that it comes from."),
        Key::optional("destination", ADDRESSES, "any", "The address that it goes to."),
        Key::optional(
            "dscp",
            Kind::Other(
                "0 to 63, a name such as `\"EF\"`, `\"AF41\"`, `\"CS1\"`, or a list of them",
                &[CODE_POINT, Kind::Several(&[CODE_POINT])],
            ),
            "any",
            "Differentiated services code point (RFC 2474).",
        ),
        Key::optional(
            "tos",
            Kind::Other(
                "`\"minimize-delay\"`, `\"maximize-throughput\"`, `\"maximize-reliability\"`, `\"normal-service\"`, \
                 a byte, or \
                         `\"0x10/0x1c\"` with a mask",
                &[Kind::Words(super::words::SERVICE_NAMES), Kind::Count, Kind::Matching("^[0-9]")],
            ),
            "any",
            "Type of service (RFC 1349); names look at the mask `0x1c`, which leaves precedence and ECN out.",
        ),
        Key::optional("at_least", Kind::Bytes, "any size", "Smallest IP packet.").at_most("65535 B"),
        Key::optional("at_most", Kind::Bytes, "any size", "Largest IP packet.").at_most("65535 B"),
        Key::optional(
            "tcp_flags",
            Kind::Other("`\"syn\"`, `\"syn !ack\"`: fin, syn, rst, psh, ack, urg, ece, cwr", &[Kind::Matching(FLAGS)]),
            "any",
            "TCP flags that are set, and after `!` those that are not.",
        ),
        Key::optional(
            "connection_bytes",
            Kind::Other("`\"> 100 kB\"`, `\"< 50 kB\"`", &[Kind::Bounded(&Kind::Bytes)]),
            "any",
            "IP bytes of its connection so far, this packet included.",
        ),
        Key::optional(
            "connection_rate",
            Kind::Other("`\"> 64 kbit/s\"`", &[Kind::Bounded(&Kind::Rate)]),
            "any",
            "IP bits of its connection in the last whole second, of the seconds since its first packet.",
        ),
        Key::optional(
            "new_connections_per_host",
            Kind::Other(
                "`\"< 5 /s\"`, `\"> 100 /min\"`, `/h`",
                &[Kind::Matching("^\\s*[<>]\\s*[0-9]+\\s*/\\s*(s|min|h)\\s*$")],
            ),
            "any",
            "A segment that opens a TCP connection. Each source address has a bucket of that number of connections, \
             refilled at the rate: `<` takes from it while it holds one, `>` holds when it is empty. Packets that \
             the other keys exclude take nothing.",
        ),
        Key::optional(
            "first_payload",
            Kind::Other(
                "text, `{ hex = \"13 42\", at = 0 }`, `{ text = \"GET \", at = 0 }`, or a list of them",
                &[Kind::Text, PAYLOAD, Kind::Several(&[Kind::Text, PAYLOAD])],
            ),
            "any",
            "Contents of the first payload of its connection, in either direction: anywhere in the first 512 bytes, \
             or at an offset. It holds from the packet on that has them.",
        ),
        Key::optional(
            "ftp_data",
            Kind::Flag,
            "either way",
            "Its connection was announced on an FTP control connection (PORT, EPRT, PASV, EPSV on port 21).",
        ),
        Key::optional("not", Kind::Table("[matches](#matches)"), "nothing", "Condition that must not hold."),
        Key::optional(
            "one_of",
            Kind::Tables("[matches](#matches)"),
            "no choice",
            "Conditions of which at least one must hold.",
        ),
    ],
};

pub(super) fn exempt(table: &Table<'_>) -> Option<Match> {
    match table.table("exempt") {
        Some(condition) => matching(condition),
        None => Some(Match::Never),
    }
}

/// Reads a condition.
pub(crate) fn matching(condition: Unopened<'_>) -> Option<Match> {
    let table = condition.open(&MATCH);
    let mut all = Vec::new();
    flag(&table, "pure_ack", Match::PureAck, &mut all);
    flag(&table, "sack_ack", Match::SackAck, &mut all);
    all.extend(table.optional("protocol").map(|Named(condition)| condition));
    for (key, end) in [("port", End::Either), ("source_port", End::Source), ("destination_port", End::Destination)] {
        all.extend(several(&table, key, |Ports(ports)| Match::Port(end, ports)));
    }
    for (key, end) in [("address", End::Either), ("source", End::Source), ("destination", End::Destination)] {
        all.extend(several(&table, key, |Addresses(prefix)| Match::Address(end, prefix)));
    }
    all.extend(several(&table, "dscp", |CodePoint(dscp)| Match::Dscp(dscp)));
    all.extend(table.optional("tos").map(|Service { value, mask }| Match::TrafficClass { value, mask }));
    all.extend(bytes(&table, "at_least").map(Match::AtLeastBytes));
    all.extend(bytes(&table, "at_most").map(Match::AtMostBytes));
    all.extend(table.optional("tcp_flags").map(|Flags(condition)| condition));
    flag(&table, "ftp_data", Match::FtpData, &mut all);
    let amount: Option<Bounded<ByteCount>> = table.optional("connection_bytes");
    all.extend(amount.map(|Bounded { bound, amount }| Match::ConnectionBytes(bound, amount)));
    let rate: Option<Bounded<BitRate>> = table.optional("connection_rate");
    all.extend(rate.map(|Bounded { bound, amount }| Match::ConnectionRate(bound, amount)));
    all.extend(several(&table, "first_payload", |Payload(pattern)| Match::FirstPayload(pattern)));
    if let Some(inner) = table.table("not") {
        all.push(Match::Not(Box::new(matching(inner)?)));
    }
    if table.has("one_of") {
        let choices: Option<Vec<Match>> = table.tables("one_of").into_iter().map(matching).collect();
        all.push(Match::OneOf(choices?));
    }
    let opened: Option<PerTime> = table.optional("new_connections_per_host");
    all.extend(opened.map(|PerTime { bound, count, per }| Match::NewConnections { bound, count, per }));
    warn_of_the_impossible(&table, &all);
    let condition = match all.len() {
        0 => Match::Any,
        1 => all.remove(0),
        _ => Match::All(all),
    };
    if let Err(error) = condition.check() {
        table.error("first_payload", format!("{}: {error}", table.own_path()), None);
        return None;
    }
    Some(condition)
}

/// The largest pure ACK: headers of IP and TCP with all their options.
const LARGEST_PURE_ACK: u16 = 120;

/// Warns of conditions that exclude one another.
fn warn_of_the_impossible(table: &Table<'_>, all: &[Match]) {
    let is_ack = all.iter().any(|one| matches!(one, Match::PureAck | Match::SackAck));
    let least = all.iter().find_map(|one| if let Match::AtLeastBytes(bytes) = one { Some(*bytes) } else { None });
    let most = all.iter().find_map(|one| if let Match::AtMostBytes(bytes) = one { Some(*bytes) } else { None });
    let (tcp, udp) = (Match::Protocol(Protocol::Tcp), Match::Protocol(Protocol::Udp));
    let protocol = all.iter().find(|one| matches!(one, Match::Protocol(_) | Match::ProtocolNumber(_)));
    let is_other = |known: &[&Match]| protocol.is_some_and(|protocol| !known.contains(&protocol));
    let ports = ["port", "source_port", "destination_port"].into_iter().find(|key| table.has(key));
    let wrong = if is_ack && least.is_some_and(|least| least > LARGEST_PURE_ACK) {
        Some(("at_least", format!("a pure ACK has at most {LARGEST_PURE_ACK} bytes")))
    } else if least.zip(most).is_some_and(|(least, most)| least > most) {
        Some(("at_least", "it is above `at_most`".to_owned()))
    } else if is_other(&[&tcp]) && (is_ack || table.has("tcp_flags")) {
        Some(("protocol", "pure ACKs and flags are those of TCP".to_owned()))
    } else if is_other(&[&tcp, &udp]) {
        ports.map(|key| (key, "ports are those of TCP and UDP".to_owned()))
    } else {
        None
    };
    if let Some((key, why)) = wrong {
        table.warning(key, format!("{}: no packet matches: {why}", table.path(key)), None);
    }
}

fn flag(table: &Table<'_>, key: &'static str, condition: Match, all: &mut Vec<Match>) {
    match table.optional::<bool>(key) {
        Some(true) => all.push(condition),
        Some(false) => all.push(Match::Not(Box::new(condition))),
        None => {}
    }
}

/// One of the entries of a list must hold.
fn several<T>(table: &Table<'_>, key: &'static str, condition: impl Fn(T) -> Match) -> Option<Match>
where
    Several<T>: crate::value::FromNode,
{
    let Several(entries) = table.optional::<Several<T>>(key)?;
    let mut conditions: Vec<Match> = entries.into_iter().map(condition).collect();
    Some(if conditions.len() == 1 { conditions.remove(0) } else { Match::OneOf(conditions) })
}

fn bytes(table: &Table<'_>, key: &'static str) -> Option<u16> {
    table.optional::<ByteCount>(key).and_then(|bytes| u16::try_from(bytes.as_u64()).ok())
}

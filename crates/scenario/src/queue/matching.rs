//! Conditions on packets.

use lastmile_packet::{Protocol, TcpFlags};
use lastmile_queueing::Match;
use lastmile_units::ByteCount;

use crate::reader::{Table, Unopened};
use crate::schema::{Key, Kind, Section};

pub(super) const EXEMPT: Key =
    Key::optional("exempt", Kind::Table("[matches](#matches)"), "nothing", "Packets that are never touched.");

pub(crate) static MATCH: Section = Section {
    heading: "Matches",
    about: "A condition on a packet. Of several keys all must hold; an empty table matches every packet.",
    keys: &[
        Key::optional("pure_ack", Kind::Flag, "either way", "A TCP segment that acknowledges and does nothing else."),
        Key::optional(
            "protocol",
            Kind::Choice(&["tcp", "udp", "echo-request", "echo-reply", "other"]),
            "any",
            "The protocol.",
        ),
        Key::optional("dscp", Kind::Count, "any", "Differentiated services code point (RFC 2474).").at_most("63"),
        Key::optional(
            "tcp_flags",
            Kind::Choice(&["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"]),
            "any",
            "A TCP flag that is set.",
        ),
        Key::optional("at_most", Kind::Bytes, "any size", "Largest IP packet.").at_most("65535 B"),
        Key::optional("not", Kind::Table("[matches](#matches)"), "nothing", "What must not hold."),
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

pub(super) fn matching(condition: Unopened<'_>) -> Option<Match> {
    let table = condition.open(&MATCH);
    let mut all = Vec::new();
    match table.optional::<bool>("pure_ack") {
        Some(true) => all.push(Match::PureAck),
        Some(false) => all.push(Match::Not(Box::new(Match::PureAck))),
        None => {}
    }
    let protocols = &[
        ("tcp", Protocol::Tcp),
        ("udp", Protocol::Udp),
        ("echo-request", Protocol::EchoRequest),
        ("echo-reply", Protocol::EchoReply),
        ("other", Protocol::Other),
    ];
    all.extend(table.optional_choice("protocol", protocols).map(Match::Protocol));
    all.extend(table.optional::<u64>("dscp").and_then(|dscp| u8::try_from(dscp).ok()).map(Match::Dscp));
    let flags = &[
        ("fin", TcpFlags::FIN),
        ("syn", TcpFlags::SYN),
        ("rst", TcpFlags::RST),
        ("psh", TcpFlags::PSH),
        ("ack", TcpFlags::ACK),
        ("urg", TcpFlags::URG),
        ("ece", TcpFlags::ECE),
        ("cwr", TcpFlags::CWR),
    ];
    all.extend(table.optional_choice("tcp_flags", flags).map(Match::TcpFlags));
    let at_most = table.optional::<ByteCount>("at_most");
    all.extend(at_most.and_then(|bytes| u16::try_from(bytes.as_u64()).ok()).map(Match::AtMostBytes));
    if let Some(inner) = table.table("not") {
        all.push(Match::Not(Box::new(matching(inner)?)));
    }
    if table.has("one_of") {
        let choices: Option<Vec<Match>> = table.tables("one_of").into_iter().map(matching).collect();
        all.push(Match::OneOf(choices?));
    }
    Some(match all.len() {
        0 => Match::Any,
        1 => all.remove(0),
        _ => Match::All(all),
    })
}

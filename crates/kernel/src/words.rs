//! Conditions in words, for comments.

use lastmile_packet::{Protocol, TcpFlags};
use lastmile_queueing::classify::Bound;
use lastmile_queueing::{End, Match};

/// The condition, such as `tcp and destination port 22 and not a pure ACK`.
pub(crate) fn condition(condition: &Match) -> String {
    match condition {
        Match::Any => "every packet".to_owned(),
        Match::Never => "no packet".to_owned(),
        Match::PureAck => "a pure ACK: no payload, no flag but ACK".to_owned(),
        Match::SackAck => "a pure ACK with SACK blocks".to_owned(),
        Match::Protocol(protocol) => name(*protocol).to_owned(),
        Match::ProtocolNumber(number) => format!("protocol {number}"),
        Match::Dscp(dscp) => format!("DSCP {dscp}"),
        Match::TrafficClass { value, mask } => format!("TOS {value:#04x}/{mask:#04x}"),
        Match::TcpFlags(set) => format!("TCP with {}", flags(*set)),
        Match::TcpFlagsOf { set, of } => format!("TCP with {} of {}", flags(*set), flags(*of)),
        Match::Flow(flow) => format!("flow {}", flow.index()),
        Match::AtMostBytes(bytes) => format!("at most {bytes} bytes"),
        Match::AtLeastBytes(bytes) => format!("at least {bytes} bytes"),
        Match::Port(end, ports) if ports.start() == ports.end() => format!("{}port {}", at(*end), ports.start()),
        Match::Port(end, ports) => format!("{}port {} to {}", at(*end), ports.start(), ports.end()),
        Match::Address(end, prefix) => format!("{}address {prefix}", at(*end)),
        Match::ConnectionBytes(bound, bytes) => format!("{} {bytes} of its connection", sign(*bound)),
        Match::ConnectionRate(bound, rate) => format!("{} {rate} of its connection", sign(*bound)),
        Match::NewConnections { bound, count, per } => {
            format!("{} {count} new connections of its host in {per}", sign(*bound))
        }
        Match::FirstPayload(pattern) => format!("first payload with \"{}\"", pattern.bytes.escape_ascii()),
        Match::FtpData => "FTP data".to_owned(),
        Match::Class(class) => format!("class number {class}"),
        Match::Not(inner) => match inner.as_ref() {
            Match::PureAck => "not a pure ACK".to_owned(),
            other => format!("not {}", part(other)),
        },
        Match::All(inner) => joined(inner, " and "),
        Match::OneOf(inner) => joined(inner, " or "),
    }
}

fn joined(inner: &[Match], by: &str) -> String {
    if inner.is_empty() {
        return condition(if by == " and " { &Match::Any } else { &Match::Never });
    }
    inner.iter().map(part).collect::<Vec<_>>().join(by)
}

/// A part of a condition, in brackets where it would be ambiguous.
fn part(inner: &Match) -> String {
    match inner {
        Match::All(inner) | Match::OneOf(inner) if inner.len() > 1 => {
            let whole = if matches!(inner.first(), Some(Match::Port(..) | Match::Address(..) | Match::Dscp(_))) {
                short(inner)
            } else {
                None
            };
            format!("({})", whole.unwrap_or_else(|| condition_of(inner)))
        }
        other => condition(other),
    }
}

fn condition_of(inner: &[Match]) -> String {
    inner.iter().map(part).collect::<Vec<_>>().join(" or ")
}

/// A list with its common words once, such as `port 80, 443`.
fn short(inner: &[Match]) -> Option<String> {
    let words: Vec<String> = inner.iter().map(condition).collect();
    let (common, _) = words.first()?.rsplit_once(' ')?;
    let rest: Option<Vec<&str>> =
        words.iter().map(|word| word.strip_prefix(common).and_then(|rest| rest.strip_prefix(' '))).collect();
    Some(format!("{common} {}", rest?.join(" or ")))
}

const fn at(end: End) -> &'static str {
    match end {
        End::Source => "source ",
        End::Destination => "destination ",
        End::Either => "",
    }
}

const fn sign(bound: Bound) -> &'static str {
    match bound {
        Bound::Below => "less than",
        Bound::Above => "more than",
    }
}

const fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::EchoRequest => "echo request",
        Protocol::EchoReply => "echo reply",
        Protocol::Other => "another protocol",
        Protocol::AckSignal => "a signal of a dropper",
    }
}

fn flags(flags: TcpFlags) -> String {
    let names = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
    let set: Vec<&str> =
        names.iter().enumerate().filter(|(bit, _)| flags.bits() & 1 << bit != 0).map(|(_, name)| *name).collect();
    if set.is_empty() { "no flag".to_owned() } else { set.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ports_have_in_common_is_said_once() {
        let port = |port| Match::Port(End::Destination, port..=port);
        let rule = Match::All(vec![
            Match::Protocol(Protocol::Tcp),
            Match::OneOf(vec![port(80), port(443), Match::Port(End::Destination, 6660..=6669)]),
            Match::Not(Box::new(Match::PureAck)),
        ]);
        assert_eq!(condition(&rule), "TCP and (destination port 80 or 443 or 6660 to 6669) and not a pure ACK");
        let opens = Match::TcpFlagsOf { set: TcpFlags::SYN, of: TcpFlags::SYN.with(TcpFlags::ACK) };
        assert_eq!(condition(&opens), "TCP with syn of syn ack");
    }
}

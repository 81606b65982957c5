//! Names of series, as flent's tests have them: `Ping (ms) ICMP`, `Ping (ms) UDP EF`.

use lastmile_packet::dscp;

use super::format::PING;
use crate::probe::{Kind, Subject};

/// Names of code points that flent's tests use in place of the usual ones.
const OWN: [(&str, u8); 2] = [("BE", 0), ("BK", 8)];
/// Stands before the number of a code point without a name.
const NUMBERED: &str = "DSCP";

fn class(code_point: u8) -> String {
    let own = OWN.iter().find(|(_, number)| *number == code_point).map(|(name, _)| *name);
    own.or_else(|| dscp::name(code_point)).map_or_else(|| format!("{NUMBERED}{code_point}"), str::to_owned)
}

/// The code point of a word. `rrul_be` numbers its classes: BE1, BE2, BE3.
fn code_point(word: &str) -> Option<u8> {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let own = OWN.iter().find(|(name, _)| *name == letters).map(|(_, number)| *number);
    let numbered = || word.strip_prefix(NUMBERED)?.parse().ok().filter(|number| *number < 64);
    own.or_else(|| dscp::named(word)).or_else(numbered)
}

fn protocol(kind: Kind) -> &'static str {
    match kind {
        Kind::Icmp => "ICMP",
        Kind::Udp | Kind::Irtt => "UDP",
        Kind::TcpConnect => "TCP",
        Kind::TlsHandshake => "TLS",
        Kind::HttpForeign => "HTTP",
        Kind::HttpSelf => "HTTP loaded",
    }
}

/// The name of a series that is not among `taken`. flent's `ping` test has one series for each protocol; `rrul` names
/// the class of those over UDP.
pub(super) fn of(subject: &Subject, is_rrul: bool, taken: &[String]) -> String {
    let mut name = format!("{PING}{}", protocol(subject.kind));
    let is_udp = matches!(subject.kind, Kind::Udp | Kind::Irtt);
    if subject.code_point > 0 || (is_rrul && is_udp) {
        name = format!("{name} {}", class(subject.code_point));
    }
    if taken.contains(&name) {
        name = format!("{name} {}", subject.target);
    }
    let first = name.clone();
    let mut number = 2;
    while taken.contains(&name) {
        name = format!("{first} {number}");
        number += 1;
    }
    name
}

/// The subject of a series of flent's own; `None` for a series that is no ping, and for averages. `runner` is the
/// program behind it, as flent records it.
pub(super) fn subject(name: &str, host: &str, runner: Option<&str>) -> Option<Subject> {
    let rest = name.strip_prefix(PING)?;
    if rest == "avg" || rest.contains("::") {
        return None;
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let kind = match (words.first(), runner) {
        (Some(&"UDP"), Some("IrttRunner")) => Kind::Irtt,
        (Some(&"UDP"), _) => Kind::Udp,
        _ => Kind::Icmp,
    };
    let code_point = words.iter().find_map(|word| code_point(word)).unwrap_or(0);
    let target = if code_point == 0 && words.len() < 2 { host.to_owned() } else { format!("{host} ({rest})") };
    Some(Subject { target, kind, code_point })
}

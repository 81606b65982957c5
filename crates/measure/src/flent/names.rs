//! Names of series, as flent's tests have them: `Ping (ms) ICMP`, `Ping (ms) UDP EF`.

use super::format::PING;
use crate::probe::{Kind, Subject};

/// Names of code points that flent's tests use, and those of RFC 2474, 2597 and 3246.
const CLASSES: [(&str, u8); 22] = [
    ("BE", 0),
    ("BK", 8),
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("EF", 46),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
];

fn class(code_point: u8) -> String {
    let known = CLASSES.iter().find(|(_, number)| *number == code_point);
    known.map_or_else(|| format!("DSCP{code_point}"), |(name, _)| (*name).to_owned())
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
    // `rrul_be` numbers its classes: BE1, BE2, BE3.
    let known = |word: &&str| {
        let letters = if word.starts_with("BE") { word.trim_end_matches(|c: char| c.is_ascii_digit()) } else { word };
        CLASSES.iter().find(|(name, _)| *name == letters).map(|&(_, number)| number)
    };
    let code_point = words.iter().find_map(known).unwrap_or(0);
    let target = if code_point == 0 && words.len() < 2 { host.to_owned() } else { format!("{host} ({rest})") };
    Some(Subject { target, kind, code_point })
}

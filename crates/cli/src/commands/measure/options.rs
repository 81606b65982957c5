//! Options of a measurement that have a form of their own.

use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use lastmile_measure::load::Direction;
use lastmile_units as units;

/// The server's name or address, without a port.
pub(super) fn host(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a name or an address is needed, such as 192.0.2.1".to_owned());
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if bare.parse::<std::net::IpAddr>().is_ok() {
        return Ok(bare.to_owned());
    }
    match text.rsplit_once(':') {
        None => Ok(text.to_owned()),
        Some((name, port)) => {
            let name = name.trim_matches(['[', ']']);
            Err(format!("a name or an address alone is right: {name} --port {port}"))
        }
    }
}

/// The phases in their order.
#[derive(Clone, Debug)]
pub(super) struct Phases(pub(super) Vec<Option<Direction>>);

impl Phases {
    /// Each of them once.
    pub(super) const ALL: [Option<Direction>; 4] =
        [None, Some(Direction::Download), Some(Direction::Upload), Some(Direction::Both)];
}

impl FromStr for Phases {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |word: &str| match word.trim() {
            "idle" => Ok(None),
            "download" => Ok(Some(Direction::Download)),
            "upload" => Ok(Some(Direction::Upload)),
            "both" => Ok(Some(Direction::Both)),
            other => Err(format!("{other:?} is no phase: idle, download, upload and both are")),
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

/// The place of a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// ICMP echo.
    Host(String),
    /// TCP handshakes.
    Port(String, u16),
    /// An irtt server, perhaps at another port than its usual one.
    Irtt(String, Option<u16>),
}

/// Probes of the user's choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ping {
    /// The target as the user wrote it, without the code point.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) code_point: u8,
}

impl FromStr for Ping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, code_point) = match text.rsplit_once('@') {
            None => (text, 0),
            Some((name, number)) => {
                let number = number.parse().ok().filter(|number| *number < 64);
                (name, number.ok_or("a code point is a number from 0 to 63")?)
            }
        };
        let (is_irtt, target) = name.strip_prefix("irtt/").map_or((false, name), |target| (true, target));
        let (host, port) = match target.rsplit_once(':') {
            // An IPv6 address has several colons, and with a port brackets.
            Some((host, port)) if !host.contains(':') || host.starts_with('[') => {
                (host, Some(port.parse().map_err(|_| format!("{port:?} is no port"))?))
            }
            _ => (target, None),
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err("a target is needed, such as 192.0.2.1@46".to_owned());
        }
        let place = match (is_irtt, port) {
            (true, port) => Place::Irtt(host, port),
            (false, Some(port)) => Place::Port(host, port),
            (false, None) => Place::Host(host),
        };
        Ok(Self { name: name.to_owned(), place, code_point })
    }
}

/// The length of a phase.
pub(super) fn length(text: &str) -> Result<Duration, String> {
    let length = time(text)?;
    let possible = Duration::from_secs(2)..=Duration::from_secs(3600);
    possible.contains(&length).then_some(length).ok_or_else(|| "2 s to 1 h are possible".to_owned())
}

/// The time between two probes.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = time(text)?;
    let possible = Duration::from_millis(5)..=Duration::from_secs(10);
    possible.contains(&interval).then_some(interval).ok_or_else(|| "5 ms to 10 s are possible".to_owned())
}

/// A rate of datagrams.
pub(super) fn rate(text: &str) -> Result<NonZeroU64, String> {
    let rate: units::BitRate = text.parse().map_err(|error: units::parse::ParseError| error.to_string())?;
    let possible = 10_000..=10_000_000_000;
    let rate = NonZeroU64::new(rate.as_bps()).filter(|rate| possible.contains(&rate.get()));
    rate.ok_or_else(|| "10 kbit/s to 10 Gbit/s are possible".to_owned())
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim().trim_end_matches('%').trim().parse().ok();
    percent.filter(|percent| (0.1..=50.0).contains(percent)).ok_or_else(|| "0.1 to 50 are possible".to_owned())
}

/// A time with its unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let time: units::Duration = text.parse().map_err(|error: units::parse::ParseError| error.to_string())?;
    Ok(Duration::from_nanos(time.as_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_has_a_host_perhaps_a_port_and_perhaps_a_code_point() {
        let host = |name: &str| Place::Host(name.to_owned());
        for (text, place, code_point) in [
            ("192.0.2.1", host("192.0.2.1"), 0),
            ("192.0.2.1@46", host("192.0.2.1"), 46),
            ("2001:db8::1@8", host("2001:db8::1"), 8),
            ("[2001:db8::1]:443", Place::Port("2001:db8::1".to_owned(), 443), 0),
            ("irtt/example.net@8", Place::Irtt("example.net".to_owned(), None), 8),
            ("irtt/[2001:db8::1]:99", Place::Irtt("2001:db8::1".to_owned(), Some(99)), 0),
            ("example.net:443@0", Place::Port("example.net".to_owned(), 443), 0),
        ] {
            let ping: Ping = text.parse().unwrap();
            assert_eq!((ping.place, ping.code_point), (place, code_point), "{text}");
        }
        for wrong in ["", "@46", "a@64", "a@x", "a:x", ":443"] {
            assert!(wrong.parse::<Ping>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_has_no_port() {
        for (text, right) in [("example.net", "example.net"), ("2001:db8::1", "2001:db8::1"), ("[::1]", "::1")] {
            assert_eq!(host(text).unwrap(), right);
        }
        assert!(host("").unwrap_err().contains("is needed"));
        let told = host("example.net:5201").unwrap_err();
        assert!(told.ends_with("example.net --port 5201"), "{told}");
        assert!(host("[::1]:5201").unwrap_err().ends_with(": ::1 --port 5201"));
    }

    #[test]
    fn phases_are_named() {
        assert_eq!("idle, both".parse::<Phases>().unwrap().0, [None, Some(Direction::Both)]);
        assert!("idle,,both".parse::<Phases>().is_err() && "".parse::<Phases>().is_err());
    }

    #[test]
    fn times_have_their_range() {
        assert_eq!(length("10 s"), Ok(Duration::from_secs(10)));
        assert!(length("1 s").is_err() && interval("1 ms").is_err() && length("10").is_err());
        assert_eq!(rate("5 Mbit/s").map(NonZeroU64::get), Ok(5_000_000));
        assert!(rate("9 kbit/s").is_err() && rate("5 MB").is_err());
        assert!(percent("1 %").is_ok() && percent("0").is_err() && percent("NaN").is_err());
    }
}

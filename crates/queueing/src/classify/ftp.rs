//! FTP data connections, found through their control connection.
//!
//! Published: RFC 959, sections 4.1.2 and 4.2 (`PORT`, reply 227 to `PASV`); RFC 2428 (`EPRT`,
//! reply 229 to `EPSV`); the ftp helper of Linux's connection tracking does the same.
//! Differs: a line is read only if its packet holds all of it, and nobody can announce a connection to
//! any address but his own (RFC 2577, section 3, on bounce attacks).
//! Bounded: [`MOST`] announcements, the oldest forgotten first, each for [`KEPT`] at most.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;

use lastmile_packet::FlowAddresses;
use lastmile_units::{Duration, Instant};

/// Port of control connections.
const CONTROL: u16 = 21;
/// The most announcements.
const MOST: usize = 256;
/// The life of an announcement, as long as in Linux.
const KEPT: Duration = Duration::from_s(300);

/// Data connections that were announced and have not been opened yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced {
    expected: VecDeque<Expected>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Expected {
    /// The end that listens for the connection.
    address: IpAddr,
    port: u16,
    /// The end that opens it.
    peer: IpAddr,
    until: Instant,
}

impl Announced {
    /// True of the addresses of a control connection.
    #[inline]
    pub(super) const fn listens_to(addresses: &FlowAddresses) -> bool {
        addresses.source_port == CONTROL || addresses.destination_port == CONTROL
    }

    /// Reads the text of a packet with these addresses, if it belongs to a control connection.
    pub(super) fn hear(&mut self, now: Instant, addresses: &FlowAddresses, text: &[u8]) {
        let (sender, receiver) = (addresses.ip.source(), addresses.ip.destination());
        let announced = match (addresses.source_port, addresses.destination_port) {
            (_, CONTROL) => lines(text).find_map(command),
            (CONTROL, _) => lines(text).find_map(reply),
            _ => return,
        };
        let Some((address, port)) = announced else { return };
        let address = address.unwrap_or(sender);
        if address != sender {
            return;
        }
        self.expected.retain(|one| one.until > now && (one.address, one.port, one.peer) != (address, port, receiver));
        if self.expected.len() == MOST {
            self.expected.pop_front();
        }
        self.expected.push_back(Expected { address, port, peer: receiver, until: now.saturating_add(KEPT) });
    }

    /// True if a connection of which this is a direction was announced. The announcement is used up.
    pub(super) fn take(&mut self, now: Instant, addresses: &FlowAddresses) -> bool {
        let (source, destination) = (addresses.ip.source(), addresses.ip.destination());
        let ends = [(destination, addresses.destination_port, source), (source, addresses.source_port, destination)];
        let found =
            self.expected.iter().position(|one| one.until > now && ends.contains(&(one.address, one.port, one.peer)));
        found.and_then(|index| self.expected.remove(index)).is_some()
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// `PORT h1,h2,h3,h4,p1,p2` or `EPRT |1|192.0.2.1|6275|`: the address and port at which the client listens.
fn command(line: &[u8]) -> Option<(Option<IpAddr>, u16)> {
    let (name, argument) = line.split_at_checked(5)?;
    if name.eq_ignore_ascii_case(b"PORT ") {
        return host_and_port(argument);
    }
    if !name.eq_ignore_ascii_case(b"EPRT ") {
        return None;
    }
    let text = core::str::from_utf8(argument).ok()?;
    let mut parts = text.split(text.chars().next()?).skip(2);
    let address: IpAddr = parts.next()?.parse().ok()?;
    Some((Some(address), parts.next()?.parse().ok()?))
}

/// `227 Entering Passive Mode (h1,h2,h3,h4,p1,p2)` or
/// `229 Entering Extended Passive Mode (|||6446|)`: the address and port at which the server
/// listens.
fn reply(line: &[u8]) -> Option<(Option<IpAddr>, u16)> {
    if let Some(rest) = line.strip_prefix(b"227 ") {
        let first = rest.iter().position(u8::is_ascii_digit)?;
        return host_and_port(&rest[first..]);
    }
    let text = core::str::from_utf8(line.strip_prefix(b"229 ")?).ok()?;
    let inside = text.split_once('(')?.1;
    // The three fields before the port are empty: the address is that of the control connection.
    let port = inside.split(inside.chars().next()?).nth(3)?.parse().ok()?;
    Some((None, port))
}

/// Six numbers of a byte each.
fn host_and_port(text: &[u8]) -> Option<(Option<IpAddr>, u16)> {
    let mut numbers = [0_u8; 6];
    let mut parts = text.split(|byte| *byte == b',');
    for (index, number) in numbers.iter_mut().enumerate() {
        let part = parts.next()?;
        // The first character behind the last digit (a bracket, a blank) ends the last number.
        let digits = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if index < 5 && digits != part.trim_ascii_end().len() {
            return None;
        }
        *number = core::str::from_utf8(&part[..digits]).ok()?.parse().ok()?;
    }
    let [a, b, c, d, high, low] = numbers;
    Some((Some(Ipv4Addr::new(a, b, c, d).into()), u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use lastmile_packet::IpAddresses;

    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn addresses(source: (&str, u16), destination: (&str, u16)) -> FlowAddresses {
        let ip = IpAddresses::new(source.0.parse().unwrap(), destination.0.parse().unwrap()).unwrap();
        FlowAddresses { ip, source_port: source.1, destination_port: destination.1 }
    }

    const CLIENT: &str = "132.235.1.2";
    const SERVER: &str = "192.0.2.9";

    fn announced(by_client: bool, text: &str) -> Announced {
        let control = addresses((CLIENT, 40_000), (SERVER, 21));
        let mut ftp = Announced::default();
        ftp.hear(NOW, &if by_client { control } else { control.reversed() }, text.as_bytes());
        ftp
    }

    /// Port 24*256 + 131 = 6275, that of the example in RFC 2428, section 2.
    #[test]
    fn a_client_announces_where_it_waits_and_the_server_connects_from_anywhere() {
        for text in [
            "PORT 132,235,1,2,24,131\r\n",
            "NOOP\r\nport 132,235,1,2,24,131\r\n",
            "EPRT |1|132.235.1.2|6275|\r\n",
            // RFC 2428, section 2: any printable character delimits.
            "eprt !1!132.235.1.2!6275!\r\n",
        ] {
            let data = addresses((SERVER, 20), (CLIENT, 6275));
            let mut ftp = announced(true, text);
            assert!(!ftp.take(NOW, &addresses((SERVER, 20), (CLIENT, 6276))), "{text}");
            assert!(!ftp.take(NOW, &addresses(("192.0.2.10", 20), (CLIENT, 6275))), "{text}");
            assert!(ftp.clone().take(NOW, &data.reversed()), "whichever direction is seen first: {text}");
            assert!(ftp.take(NOW, &data) && !ftp.take(NOW, &data), "announced once, taken once: {text}");
        }
    }

    /// 6446 as in RFC 2428, section 3.
    #[test]
    fn a_server_announces_where_it_waits() {
        let data = addresses((CLIENT, 50_001), (SERVER, 6446));
        for text in [
            "227 Entering Passive Mode (192,0,2,9,25,46).\r\n",
            "229 Entering Extended Passive Mode (|||6446|)\r\n",
            "229 Entering Extended Passive Mode (!!!6446!)\r\n",
        ] {
            assert!(announced(false, text).take(NOW, &data), "{text}");
            assert!(!announced(true, text).take(NOW, &data), "a reply from a client: {text}");
        }
    }

    #[test]
    fn nobody_announces_a_connection_to_someone_else_and_nonsense_announces_nothing() {
        let victim = addresses((SERVER, 20), ("203.0.113.5", 25));
        assert!(!announced(true, "PORT 203,0,113,5,0,25\r\n").take(NOW, &victim));
        for text in [
            "PORT 1,2,3",
            "PORT 132,235,1,256,24,131",
            "PORT a,b,c,d,e,f",
            "PORT 132x,235,1,2,24,131",
            "EPRT",
            "EPRT |",
            "EPRT |1|x|y|",
            "",
            "PORT",
        ] {
            assert_eq!(announced(true, text).expected, [], "{text}");
        }
        for text in ["227", "227 ", "227 none", "229 (", "229 (|||", "229 ()", "226 ok"] {
            assert_eq!(announced(false, text).expected, [], "{text}");
        }
    }

    #[test]
    fn announcements_are_forgotten_by_age_and_the_oldest_first() {
        let data = |port| addresses((SERVER, 20), (CLIENT, port));
        let mut ftp = announced(true, "PORT 132,235,1,2,24,131\r\n");
        assert!(ftp.clone().take(NOW + (KEPT - Duration::from_ps(1)), &data(6275)));
        assert!(!ftp.clone().take(NOW + KEPT, &data(6275)));
        let control = addresses((CLIENT, 40_000), (SERVER, 21));
        for port in 0..MOST as u16 {
            ftp.hear(NOW, &control, format!("EPRT |1|{CLIENT}|{}|", 10_000 + port).as_bytes());
        }
        assert!(!ftp.take(NOW, &data(6275)));
        assert!(ftp.take(NOW, &data(10_000)) && ftp.take(NOW, &data(10_000 + MOST as u16 - 1)));
    }

    #[test]
    fn only_a_control_connection_announces_and_what_is_said_twice_is_announced_once() {
        let text = b"PORT 132,235,1,2,24,131\r\n";
        let data = addresses((SERVER, 20), (CLIENT, 6275));
        let mut ftp = Announced::default();
        ftp.hear(NOW, &addresses((CLIENT, 40_000), (SERVER, 80)), text);
        assert!(!ftp.take(NOW, &data));
        for _ in 0..2 {
            ftp.hear(NOW, &addresses((CLIENT, 40_000), (SERVER, 21)), text);
        }
        assert!(ftp.take(NOW, &data) && !ftp.take(NOW, &data));
    }
}

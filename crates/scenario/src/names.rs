//! The ends of a traffic as its packets name them: addresses, ports and first payload bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lastmile_model::{EndName, Names};

use crate::document::Value;
use crate::reader::Table;
use crate::schema::{ADDRESS, Key, Kind};
use crate::value::FromNode;

/// Longest text of a first payload: more than any classifier looks at.
const LONGEST_TEXT: usize = 512;

pub(crate) const CLIENT: Key = Key::optional(
    "client",
    Kind::Other("IP address, or a number from 1 to 254", &[Kind::Matching(ADDRESS), Kind::Count]),
    "that of its node",
    "Address that its packets have for the end that opens the connection, and for the client where nothing is \
     opened: several hosts may stand behind one node, and shares by host count them. Of IPv6 with `ipv6`, else of \
     IPv4. The number N is 192.168.1.N, with `ipv6` 2001:db8:1::N; with `count` above one, it is the first of as many \
     hosts.",
);
pub(crate) const SERVER: Key = Key::optional(
    "server",
    Kind::Other("IP address, or a number from 1 to 254", &[Kind::Matching(ADDRESS), Kind::Count]),
    "that of its node",
    "Address that its packets have for the other end. The number N is 203.0.113.N, with `ipv6` 2001:db8:2::N; with \
     `count` above one, it is the first of as many hosts.",
);
pub(crate) const CLIENT_PORT: Key = Key::optional(
    "client_port",
    Kind::Count,
    "50000 and up, one for each flow",
    "Port at the client's end; with `count` above one, the first of as many.",
)
.at_least("1")
.at_most("65535");
pub(crate) const SERVER_PORT: Key = Key::optional(
    "server_port",
    Kind::Count,
    "49152",
    "Port at the server's end: 22 makes it ssh to a classifier, 80 the web.",
)
.at_least("1")
.at_most("65535");
pub(crate) const FIRST_PAYLOAD: Key = Key::optional(
    "first_payload",
    Kind::Text,
    "nothing in particular",
    "First payload of the client's end, for classifiers that look into packets; at most 512 bytes.",
);
pub(crate) const FIRST_ANSWER: Key = Key::optional(
    "first_answer",
    Kind::Text,
    "nothing in particular",
    "First payload of the server's end; at most 512 bytes.",
);

/// The properties of a traffic on which its names depend.
pub(crate) struct Nature {
    /// The data come from the server's end; the client's is the one that opens the connection, or where
    /// nothing is opened that of the access line.
    pub(crate) server_sends: bool,
    /// The packets of the traffic are IPv6.
    pub(crate) ipv6: bool,
    /// The number of its flows.
    pub(crate) count: u32,
}

/// Reads the names of a traffic's ends. Errors are in the report; the valid names are returned.
pub(crate) fn read(table: &Table<'_>, nature: &Nature) -> Names {
    let end = |address, port, text| {
        let (address, one_each) = address_of(table, address, nature).unzip();
        EndName {
            address,
            one_each: one_each == Some(true),
            port: table.optional::<u64>(port).and_then(|port| u16::try_from(port).ok()),
            first_payload: text_of(table, text),
        }
    };
    let client = end("client", "client_port", "first_payload");
    let server = end("server", "server_port", "first_answer");
    if let Some(first) = client.port
        && u32::from(u16::MAX - first) < nature.count.saturating_sub(1)
    {
        let message =
            format!("{}: {} flows from port {first} on end above 65535", table.path("client_port"), nature.count);
        table.error("client_port", message, Some("a lower port, or fewer flows".into()));
    }
    if nature.server_sends { Names { from: server, to: client } } else { Names { from: client, to: server } }
}

/// The address, and whether it is the first of as many hosts as there are flows.
fn address_of(table: &Table<'_>, key: &'static str, nature: &Nature) -> Option<(IpAddr, bool)> {
    let ipv6 = nature.ipv6;
    let (address, one_each) = match table.optional(key)? {
        Host::Address(address) => (address, false),
        Host::Number(number) => {
            if nature.count > 255 - u32::from(number) {
                let message =
                    format!("{}: {} hosts from number {number} on end above 254", table.path(key), nature.count);
                table.error(key, message, Some("a lower number, or an address, which is one host for all".into()));
                return None;
            }
            (numbered(key == CLIENT.name, number, ipv6), nature.count > 1)
        }
    };
    if address.is_ipv6() == ipv6 {
        return Some((address, one_each));
    }
    let path = table.path(key);
    let (message, hint) = if ipv6 {
        (
            format!("{path}: {address} is an IPv4 address, and its packets are IPv6"),
            "an IPv6 address, such as \"2001:db8::1\"",
        )
    } else {
        let message = format!("{path}: {address} is an IPv6 address, and its packets are IPv4");
        (message, "ipv6 = true makes its packets IPv6")
    };
    table.error(key, message, Some(hint.into()));
    None
}

/// Host `number` of the clients' network or of the servers'.
fn numbered(is_client: bool, number: u8, ipv6: bool) -> IpAddr {
    match (is_client, ipv6) {
        (true, false) => Ipv4Addr::new(192, 168, 1, number).into(),
        (false, false) => Ipv4Addr::new(203, 0, 113, number).into(),
        (_, true) => Ipv6Addr::new(0x2001, 0xdb8, if is_client { 1 } else { 2 }, 0, 0, 0, 0, number.into()).into(),
    }
}

fn text_of(table: &Table<'_>, key: &'static str) -> Vec<u8> {
    let text: String = table.optional(key).unwrap_or_default();
    if text.len() > LONGEST_TEXT {
        let message = format!("{}: {} bytes are more than {LONGEST_TEXT}", table.path(key), text.len());
        table.error(key, message, None);
    }
    text.into_bytes()
}

/// A host behind a node.
enum Host {
    Address(IpAddr),
    /// One of the client's or the server's network, of either version of IP.
    Number(u8),
}

impl FromNode for Host {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Integer(text) => match u64::from_value(value)? {
                number @ 1..=254 => Ok(Self::Number(number as u8)),
                _ => Err(format!("{text} is no number of a host: 1 to 254")),
            },
            Value::String(text) => text.parse().map(Self::Address).map_err(|_| {
                format!("{text:?} is no IP address, such as \"192.0.2.1\" or \"2001:db8::1\", and no number of a host")
            }),
            _ => Err(format!("{}, where an address is expected, such as \"192.0.2.1\"", value.name())),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::Address(text.parse().expect("the schema's defaults parse"))
    }
}

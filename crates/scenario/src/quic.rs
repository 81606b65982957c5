//! `transport = "quic"`: a transfer over QUIC, and its settings in the table `quic`.

use std::sync::Arc;

use lastmile_model::IpFields;
use lastmile_quic::{AckFrequency, Config, CongestionControl};
use lastmile_units::ByteCount;

use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::tcp::Mtu;

/// The transports of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Quic,
}

const TRANSPORTS: [(&str, Transport); 2] = [("tcp", Transport::Tcp), ("quic", Transport::Quic)];

pub(crate) const TRANSPORT: Key = Key::with_default(
    "transport",
    Kind::Choice(&["tcp", "quic"]),
    "tcp",
    "TCP, or QUIC over UDP, whose ACKs no regulator and no classifier can distinguish from data.",
);
pub(crate) const SETTINGS: Key = Key::optional("quic", Kind::Table("`quic`"), "the defaults of `quic`", "Its QUIC.");

const CONTROLS: [(&str, CongestionControl); 4] = [
    ("newreno", CongestionControl::NewReno),
    ("cubic", CongestionControl::Cubic),
    ("bbr", CongestionControl::Bbr),
    ("bbr3", CongestionControl::Bbr3),
];

pub(crate) static QUIC: Section = Section {
    heading: "`quic`",
    about: "QUIC at both ends of a transfer (RFC 9000, RFC 9002): `quic = { ... }` in a traffic with `transport = \
            \"quic\"`. [The page of the mechanism](../mechanisms/quic.md) has sizes, sources and limits.",
    keys: &[
        Key::with_default(
            "congestion",
            Kind::Choice(&["newreno", "cubic", "bbr", "bbr3"]),
            "cubic",
            "Congestion control: RFC 9002 (NewReno), RFC 9438, BBRv1 as in Linux, BBRv3. All of them pace.",
        ),
        Key::with_default(
            "max_ack_delay",
            Kind::Time,
            "25 ms",
            "Longest that an ACK is held back (RFC 9000, section 18.2). An ACK is due at once after the second packet, \
             and for packets out of order.",
        )
        .at_most("16383 ms"),
        Key::optional(
            "ack_frequency",
            Kind::Table("`quic.ack_frequency`"),
            "an ACK for every second packet",
            "The ACKs that the sender of the data requests of its receiver.",
        ),
        Key::optional(
            "datagram",
            Kind::Bytes,
            "1452 B, or what the MTU of the path leaves",
            "UDP payload of a full packet; 28 B of UDP and IPv4 come on top, or 48 B of UDP and IPv6. Packets \
             larger than the MTU of a link are an error.",
        )
        .at_least("1200 B")
        .at_most("65507 B"),
        Key::with_default("connection_id", Kind::Bytes, "8 B", "Bytes of the connection IDs, in both directions.")
            .at_most("20 B"),
        Key::with_default(
            "receive_window",
            Kind::Bytes,
            "6 MiB",
            "The most that may be sent beyond what the application has read; at least a `datagram`.",
        )
        .at_least("1200 B")
        .at_most("1 GiB"),
    ],
};

pub(crate) static ACK_FREQUENCY: Section = Section {
    heading: "`quic.ack_frequency`",
    about: "An ACK_FREQUENCY frame of the sender of the data (draft-ietf-quic-ack-frequency), once it offers more \
            than an initial window. A larger `every` is the only remedy for a return path that ACKs fill: `lastmile \
            run` reports what 2, 4 and 10 would allow.",
    keys: &[
        Key::required(
            "every",
            Kind::Count,
            "Packets after which an ACK is due at once (the frame's threshold plus 1).",
        )
        .at_least("1")
        .at_most("1000000"),
        Key::optional(
            "max_delay",
            Kind::Time,
            "`max_ack_delay`",
            "Longest that an ACK may be held back. One that is shorter than `every` packets take limits the effect of \
             `every`.",
        )
        .at_least("1 us")
        .at_most("16383 ms"),
        Key::with_default(
            "reordering",
            Kind::Count,
            "1",
            "Packets out of order after which an ACK is due at once; 1 as without the frame, 0 for never. The sender \
             declares a packet lost after 3.",
        )
        .at_most("255"),
    ],
};

/// Sections about QUIC, in the order of the reference.
pub(crate) fn sections() -> Vec<&'static Section> {
    vec![&QUIC, &ACK_FREQUENCY]
}

/// RFC 9000, section 14: QUIC needs datagrams of this size.
const LEAST_DATAGRAM: u16 = 1200;

/// The transport of a transfer, whose table may have settings of that transport only.
pub(crate) fn transport(table: &Table<'_>) -> Option<Transport> {
    let transport = table.choice("transport", &TRANSPORTS)?;
    only_settings_of(table, transport, "transport")
}

/// `transport`, unless the table has settings of the other one. `key` is the key that chooses.
pub(crate) fn only_settings_of(table: &Table<'_>, transport: Transport, key: &str) -> Option<Transport> {
    let (word, other) = match transport {
        Transport::Tcp => ("tcp", "quic"),
        Transport::Quic => ("quic", "tcp"),
    };
    if table.has(other) {
        let hint = match (key, transport) {
            ("http", Transport::Tcp) => "add http = \"3\", or remove quic".to_owned(),
            (_, Transport::Tcp) => "add transport = \"quic\", or remove quic".to_owned(),
            (_, Transport::Quic) => format!("settings of QUIC are in quic = {{ ... }}, or remove {key}"),
        };
        let message = format!("{}: settings of another transport than \"{word}\"", table.path(other));
        table.error(other, message, Some(hint));
        return None;
    }
    Some(transport)
}

/// The QUIC of a traffic on a path of this MTU.
pub(crate) fn read(table: &Table<'_>, mtu: Mtu<'_>, ip: IpFields) -> Option<Arc<Config>> {
    let headers = u16::from(ip.datagram_headers());
    let own = table.table("quic").map(|own| own.open(&QUIC));
    let default = Config::default();
    let Some(own) = own else {
        let datagram = fitting(table, "transport", (mtu, headers), &default)?;
        return Some(Arc::new(Config { datagram, ..default }));
    };
    let datagram = datagram(&own, (mtu, headers), &default);
    let connection_id: Option<ByteCount> = own.get("connection_id");
    let (congestion, max_ack_delay) = (own.choice("congestion", &CONTROLS), own.get("max_ack_delay"));
    let receive_window = own.get("receive_window");
    let ack_frequency = match own.table("ack_frequency") {
        Some(request) => Some(requested(&request.open(&ACK_FREQUENCY))?),
        None => None,
    };
    let config = Config {
        congestion: congestion?,
        datagram: datagram?,
        connection_id: u8::try_from(connection_id?.as_u64()).ok()?,
        receive_window: receive_window?,
        max_ack_delay: max_ack_delay?,
        ack_frequency,
    };
    if let Err(error) = config.check() {
        own.error(error.field, format!("{}: {error}", own.path(error.field)), None);
        return None;
    }
    Some(Arc::new(config))
}

fn requested(table: &Table<'_>) -> Option<AckFrequency> {
    let every: Option<u64> = table.get("every");
    let reordering: Option<u64> = table.get("reordering");
    Some(AckFrequency {
        every: u32::try_from(every?).ok()?,
        max_delay: table.optional("max_delay"),
        reordering: u8::try_from(reordering?).ok()?,
    })
}

fn datagram(own: &Table<'_>, (mtu, headers): (Mtu<'_>, u16), default: &Config) -> Option<u16> {
    if !own.has("datagram") {
        return fitting(own, "datagram", (mtu, headers), default);
    }
    let given = own.optional::<ByteCount>("datagram").and_then(|bytes| u16::try_from(bytes.as_u64()).ok())?;
    let packet = u32::from(given) + u32::from(headers);
    let most = mtu.bytes.unwrap_or(u16::MAX);
    if packet <= u32::from(most) {
        return Some(given);
    }
    let (carrier, hint) = match mtu.bytes {
        Some(bytes) => (
            format!("link {:?} carries packets up to {bytes} B (its MTU)", mtu.link),
            "leave datagram out, and it follows from the MTU; or give the link a larger mtu".to_owned(),
        ),
        None => ("IP carries packets up to 65535 B".to_owned(), format!("at most {} B", most - headers)),
    };
    let path = own.path("datagram");
    let message = format!("{path}: datagrams of {given} B make packets of {packet} B, and {carrier}");
    own.error("datagram", message, Some(hint));
    None
}

/// The largest datagram up to the default that the path carries.
fn fitting(table: &Table<'_>, key: &str, (mtu, headers): (Mtu<'_>, u16), default: &Config) -> Option<u16> {
    let Some(bytes) = mtu.bytes else { return Some(default.datagram) };
    let datagram = default.datagram.min(bytes.saturating_sub(headers));
    if datagram < LEAST_DATAGRAM {
        let least = LEAST_DATAGRAM + headers;
        let message = format!(
            "{}: QUIC needs packets of {least} B, and link {:?} carries packets up to {bytes} B (its MTU)",
            table.path(key),
            mtu.link
        );
        table.error(key, message, Some("give the link a larger mtu, or use TCP".into()));
        return None;
    }
    Some(datagram)
}

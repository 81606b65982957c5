//! `kind = "game"`: commands of a player and updates of a server.

use std::sync::Arc;

use lastmile_model::{Datagrams, Game, IpFields, Source, Spread};
use lastmile_units::{ByteCount, Duration};

use crate::listener;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

/// The most IP bytes of a datagram where links have no MTU.
const MOST: u16 = 1500;
const SCALE: &str = "Scale of the extreme-value distribution around it; 0 for equal";

pub(crate) static GAME: Section = Section {
    heading: "`kind = \"game\"`",
    about: "A player of a networked game over UDP: commands to the server, and its updates at each tick; `count` is \
            the number of players. The direction, that of updates, is `down` unless said otherwise. Defaults are \
            those that Faerber measured (NetGames 2002); sizes and intervals have an extreme-value (Gumbel) \
            distribution. Results have the time from a command to the update that shows its effect. [The page of the \
            model](../mechanisms/game.md) has sources and limits.",
    keys: &[
        Key::with_default("command_interval", Kind::Time, "40 ms", "Time between commands.")
            .at_least("1 ms")
            .at_most("60 s"),
        Key::with_default("command_interval_scale", Kind::Time, "0 ms", SCALE).at_most("60 s"),
        Key::with_default(
            "command_size",
            Kind::Bytes,
            "80 B",
            "IP bytes of a command; by default 20 B more with IPv6.",
        )
        .at_least("29 B")
        .at_most("9000 B"),
        Key::with_default("command_size_scale", Kind::Bytes, "6 B", SCALE).at_most("9000 B"),
        Key::with_default("update_interval", Kind::Time, "55 ms", "Time between updates: the server's tick.")
            .at_least("1 ms")
            .at_most("60 s"),
        Key::with_default("update_interval_scale", Kind::Time, "6 ms", SCALE).at_most("60 s"),
        Key::with_default(
            "update_size",
            Kind::Bytes,
            "120 B",
            "IP bytes of an update; by default 20 B more with IPv6.",
        )
        .at_least("29 B")
        .at_most("9000 B"),
        Key::with_default("update_size_scale", Kind::Bytes, "36 B", SCALE).at_most("9000 B"),
        Key::with_default(
            "limit",
            Kind::Time,
            "100 ms",
            "A command is late if its response takes longer, or never comes. The time contains the wait for the \
             server's tick; the published limits are latencies of the network: 100 ms for a first-person view, 500 ms \
             for a third-person view, 1 s from above (Claypool and Claypool 2006).",
        )
        .at_least("1 ms")
        .at_most("60 s"),
        listener::PLAYOUT,
    ],
};

/// The game of a table; `mtu` is the most IP bytes of a datagram.
pub(crate) fn read(table: &Table<'_>, mtu: Option<u16>, ip: IpFields) -> Option<Source> {
    let sizes = (ByteCount::new(mtu.unwrap_or(MOST).into()), ip);
    let commands =
        datagrams(table, ["command_interval", "command_interval_scale", "command_size", "command_size_scale"], sizes);
    let updates =
        datagrams(table, ["update_interval", "update_interval_scale", "update_size", "update_size_scale"], sizes);
    let limit = table.get("limit");
    Some(Source::Game(Arc::new(Game { commands: commands?, updates: updates?, limit: limit? })))
}

fn datagrams(
    table: &Table<'_>,
    [interval, jitter, size, spread]: [&'static str; 4],
    (most, ip): (ByteCount, IpFields),
) -> Option<Datagrams> {
    let (location, scale) = (table.get::<Duration>(interval), table.get::<Duration>(jitter));
    let (bytes, bytes_scale) = (table.get::<ByteCount>(size), table.get::<ByteCount>(spread));
    // The published sizes are those of IPv4.
    let more = if table.has(size) { 0 } else { ip.more_than_ipv4() };
    let bytes = bytes? + ByteCount::new(more.into());
    let headers = ByteCount::new(ip.datagram_headers().into());
    if bytes <= headers {
        table.error(size, format!("{}: {bytes} with {headers} of headers", table.path(size)), None);
        return None;
    }
    if bytes > most {
        let message = format!("{}: {bytes} exceed the {most} that the path carries", table.path(size));
        table.error(size, message, Some("smaller datagrams, or a larger mtu of the link".into()));
        return None;
    }
    Some(Datagrams {
        interval: Spread { location: location?, scale: scale? },
        size: Spread { location: bytes, scale: bytes_scale? },
        most,
    })
}

//! `kind = "web"` and `kind = "swarm"`: applications whose TCP connections come and go. Other kinds have
//! files of their own.

pub(crate) mod backup;
pub(crate) mod conference;
pub(crate) mod game;
pub(crate) mod video;

use std::sync::Arc;

use lastmile_model::{Http, Source, Swarm, Transport, Web};
use lastmile_tcp::Config;
use lastmile_units::ByteCount;

use crate::quic;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::tcp;

pub(crate) static WEB: Section = Section {
    heading: "`kind = \"web\"`",
    about: "A web user who reads page after page, each a main object and what it embeds; `count` is the number of \
            users. Sizes are those of the \
            HTTP model of 3GPP2 C.R1002-0 and 3GPP TR 25.892 (main object lognormal, mean 10.7 kB; 5.2 embedded \
            objects on average, \
            Pareto, of 7.8 kB each, lognormal). The direction is `down` unless said otherwise. Results have the \
            response times of pages. [The page of the model](../mechanisms/web.md) has sources and limits.",
    keys: &[
        Key::with_default(
            "reading",
            Kind::Time,
            "30 s",
            "Mean time from a whole page to the request for the next, exponential.",
        )
        .at_least("1 ms")
        .at_most("24 h"),
        Key::with_default(
            "parsing",
            Kind::Time,
            "130 ms",
            "Mean time from a main object to the requests for what it embeds, exponential.",
        )
        .at_most("1 h"),
        Key::with_default("request", Kind::Bytes, "350 B", "Bytes of a request.").at_least("1 B").at_most("64 KiB"),
        Key::with_default(
            "http",
            Kind::Choice(&["1.0", "1.1", "2", "3"]),
            "1.1",
            "Version of HTTP. A connection carries one object (1.0), object after object of a page (1.1), or all \
             objects of a page at a time, over TCP (2) or QUIC (3).",
        ),
        Key::optional(
            "tls",
            Kind::Flag,
            "`true` for \"2\", otherwise `false`",
            "Each connection begins with a handshake of TLS 1.3 over TCP. HTTP/3 always has that of QUIC, and HTTP/1.0 \
             none.",
        ),
        Key::optional(
            "connections",
            Kind::Count,
            "6; 1 for \"2\" and \"3\"",
            "Connections of HTTP/1 that a user has open at a time, at most.",
        )
        .at_least("1")
        .at_most("64"),
        Key::optional(
            "persistent",
            Kind::Flag,
            "as `http` says",
            "`false` for `http = \"1.0\"`, `true` for `http = \"1.1\"`; not together with `http`.",
        ),
        tcp::SETTINGS,
        quic::SETTINGS,
    ],
};

pub(crate) static SWARM: Section = Section {
    heading: "`kind = \"swarm\"`",
    about: "A peer of a peer-to-peer swarm: bulk data to some peers at a time and from some, over TCP connections \
            that come and go. At every \
            `rechoke` the connection that delivered least gives way to a peer drawn at random. Cohen (2003) chooses by \
            rate every 10 s, and draws one peer in 30 s: `rechoke = \"30 s\"` draws as often. Two \
            traffics, `NAME-down` and \
            `NAME-up`; `direction` may ask for one of them alone. `count` is the number of peers on the client's side.",
    keys: &[
        Key::with_default("peers", Kind::Count, "40", "Peers on the far side, of which some are drawn.")
            .at_least("1")
            .at_most("10000"),
        Key::with_default("slots", Kind::Count, "4", "Peers that it sends to at a time, and that send to it.")
            .at_least("1")
            .at_most("1000"),
        Key::with_default(
            "rechoke",
            Kind::Time,
            "10 s",
            "Time between choices. A connection that has not opened counts as the one that delivered least.",
        )
        .at_least("100 ms")
        .at_most("24 h"),
        tcp::SETTINGS,
    ],
};

const VERSIONS: [(&str, Http); 4] = [("1.0", Http::One0), ("1.1", Http::One1), ("2", Http::Two), ("3", Http::Three)];

/// The version of HTTP of a web user.
pub(crate) fn http(table: &Table<'_>) -> Option<Http> {
    if !table.has("persistent") {
        return table.choice("http", &VERSIONS);
    }
    if table.has("http") {
        let hint = "remove persistent: http = \"1.0\" has a connection for each object";
        table.error(
            "persistent",
            format!("{}: persistent together with http", table.path("persistent")),
            Some(hint.into()),
        );
        return None;
    }
    Some(if table.optional("persistent")? { Http::One1 } else { Http::One0 })
}

pub(crate) fn web(table: &Table<'_>, http: Http, transport: Option<Transport>) -> Option<Source> {
    let (reading, parsing) = (table.get("reading"), table.get("parsing"));
    let request: Option<ByteCount> = table.get("request");
    let connections: Option<u64> = if table.has("connections") {
        table.optional("connections")
    } else {
        Some(if http.multiplexes() { 1 } else { 6 })
    };
    if http.multiplexes() && connections.is_some_and(|connections| connections > 1) {
        let message = format!("{}: HTTP/{} has one connection", table.path("connections"), http.name());
        table.error("connections", message, Some("remove connections, or http = \"1.1\"".into()));
    }
    let tls = if table.has("tls") { table.optional("tls") } else { Some(http == Http::Two) };
    match (http, tls) {
        (Http::One0, Some(true)) => {
            let hint = "tls = false, or http = \"1.1\"";
            table.error("tls", format!("{}: HTTP/1.0 is modelled without TLS", table.path("tls")), Some(hint.into()));
        }
        (Http::Three, Some(true | false)) if table.has("tls") => {
            let message = format!("{}: HTTP/3 has the handshake of QUIC", table.path("tls"));
            table.error("tls", message, Some("remove tls".into()));
        }
        _ => {}
    }
    Some(Source::Web(Arc::new(Web {
        transport: transport?,
        http,
        tls: tls?,
        reading: reading?,
        parsing: parsing?,
        request: u32::try_from(request?.as_u64()).ok()?,
        connections: u32::try_from(connections?).ok()?,
    })))
}

pub(crate) fn swarm(table: &Table<'_>, tcp: &Arc<Config>) -> Option<Source> {
    let (peers, slots) = (table.get::<u64>("peers"), table.get::<u64>("slots"));
    let rechoke = table.get("rechoke");
    Some(Source::Swarm(Arc::new(Swarm {
        tcp: Arc::clone(tcp),
        peers: u32::try_from(peers?).ok()?,
        slots: u32::try_from(slots?).ok()?,
        rechoke: rechoke?,
    })))
}

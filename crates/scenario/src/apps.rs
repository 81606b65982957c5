//! `kind = "web"` and `kind = "swarm"`: applications whose TCP connections come and go. `video.rs` has `kind = "video"`.

pub(crate) mod video;

use std::sync::Arc;

use lastmile_model::{Source, Swarm, Transport, Web};
use lastmile_tcp::Config;
use lastmile_units::ByteCount;

use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

const TCP: Key = Key::optional("tcp", Kind::Table("`[tcp]`"), "as the file's `[tcp]`", "Its TCP.");

pub(crate) static WEB: Section = Section {
    heading: "`kind = \"web\"`",
    about: "A web user who reads page after page, each a main object and what it embeds; `count` is the number of \
            users. Sizes are those of the \
            HTTP model of 3GPP2 C.R1002-0 and 3GPP TR 25.892 (main object lognormal, mean 10.7 kB; 5.6 embedded \
            objects on average, \
            Pareto, of 7.8 kB each, lognormal). The direction is `down` unless said otherwise. Results have the \
            response times of pages.",
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
        Key::with_default("connections", Kind::Count, "6", "TCP connections that a user has open at a time, at most.")
            .at_least("1")
            .at_most("64"),
        Key::with_default(
            "persistent",
            Kind::Flag,
            "true",
            "A connection carries object after object of a page (HTTP/1.1); otherwise one each (HTTP/1.0).",
        ),
        TCP,
    ],
};

pub(crate) static SWARM: Section = Section {
    heading: "`kind = \"swarm\"`",
    about: "A peer of a peer-to-peer swarm: bulk data to some peers at a time and from some, over TCP connections \
            that come and go. At every \
            `rechoke` the connection that delivered least gives way to a peer drawn at random (Cohen 2003). Two \
            traffics, `NAME-down` and \
            `NAME-up`; `direction` may ask for one of them alone. `count` is the number of peers on the client's side.",
    keys: &[
        Key::with_default("peers", Kind::Count, "40", "Peers on the far side, of which some are drawn.")
            .at_least("1")
            .at_most("10000"),
        Key::with_default("slots", Kind::Count, "4", "Peers that it sends to at a time, and that send to it.")
            .at_least("1")
            .at_most("1000"),
        Key::with_default("rechoke", Kind::Time, "10 s", "Time between choices.").at_least("100 ms").at_most("24 h"),
        TCP,
    ],
};

pub(crate) fn web(table: &Table<'_>, tcp: &Arc<Config>) -> Option<Source> {
    let (reading, parsing) = (table.get("reading"), table.get("parsing"));
    let request: Option<ByteCount> = table.get("request");
    let (connections, persistent) = (table.get::<u64>("connections"), table.get("persistent"));
    Some(Source::Web(Arc::new(Web {
        transport: Transport::Tcp(Arc::clone(tcp)),
        reading: reading?,
        parsing: parsing?,
        request: u32::try_from(request?.as_u64()).ok()?,
        connections: u32::try_from(connections?).ok()?,
        persistent: persistent?,
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

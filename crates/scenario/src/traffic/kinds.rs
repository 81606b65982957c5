//! The kinds of traffic, and the keys of each.

use crate::atm::keys;
use crate::reader::{Tagged, Variant};
use crate::schema::{CODE_POINT, Key, Kind, Section};
use crate::{apps, listener, names, quic, replay, tcp};

const SIZE: Key = Key::optional(
    "size",
    Kind::Bytes,
    "1500 B, or the MTU of the path",
    "IP bytes of a packet. One larger than the MTU of a link is an error.",
)
.at_least("28 B")
.at_most("65535 B");

pub(super) static TRAFFIC: Section = Section {
    heading: "`[[traffic]]`",
    about: "A source, or `count` equal ones. Between which nodes: by `direction` with an `[access]` line, or by \
            `from` and `to`.",
    keys: &[
        Key::required(
            "kind",
            Kind::Choice(&NAMES),
            "Kind of traffic, such as \"bulk\" for a transfer; each kind has keys of its own, see below.",
        ),
        Key::optional(
            "name",
            Kind::Text,
            "the kind",
            "Name, unique. With `count` above one, flows are called `name-1`, `name-2`, ...",
        ),
        Key::optional(
            "direction",
            Kind::Choice(&["down", "up", "both"]),
            "`from` and `to` say it; pings and backups go `up`, web pages, videos and games `down`, conferences and \
             swarms `both`",
            "`down`: data from server to client, who opens the connection; `up`: from client to server. `both`: two \
             traffics, \
             `NAME-down` and `NAME-up`.",
        ),
        Key::optional(
            "line",
            Kind::Other("number of a line, or a list such as `[3, 4]`", &[Kind::Count, Kind::Several(&[Kind::Count])]),
            "each line",
            "The access lines that it runs on, from 1. On several lines there is one traffic for each: \
             `NAME-line-1`, `NAME-line-2`, ...",
        ),
        Key::optional("from", Kind::Text, "`direction` says it", "Node that the data comes from."),
        Key::optional("to", Kind::Text, "`direction` says it", "Node that the data goes to."),
        Key::with_default("count", Kind::Count, "1", "Number of flows; at most 1000000 in all.").at_least("1"),
        Key::with_default("start", Kind::Time, "0 s", "When it starts."),
        Key::optional(
            "stop",
            Kind::Time,
            "the end of the run",
            "When the application stops offering data; after `start`.",
        ),
        Key::optional(
            "dscp",
            Kind::Other("a number up to 63, or a name such as `\"EF\"`", &[CODE_POINT]),
            "0",
            "Differentiated services code point of its packets (RFC 2474).",
        ),
        Key::optional(
            "ipv6",
            Kind::Flag,
            "that of the file",
            "Packets are IPv6, with 20 bytes more in every header. A `size` given is that of the whole packet.",
        ),
        keys::CONTRACT_KEY,
        keys::BACK_CONTRACT_KEY,
        keys::VP_KEY,
        keys::VC_KEY,
        names::CLIENT,
        names::SERVER,
        names::CLIENT_PORT,
        names::SERVER_PORT,
        names::FIRST_PAYLOAD,
        names::FIRST_ANSWER,
    ],
};

const OPENED_BY: Key = Key::optional(
    "opened_by",
    Kind::Choice(&["sender", "receiver"]),
    "`receiver` for `direction = \"down\"`, otherwise `sender`",
    "Which end opens the connection.",
);
const REQUEST: Key = Key::with_default(
    "request",
    Kind::Bytes,
    "0 B",
    "Bytes that the receiver of the data sends first, as an HTTP request; only where the receiver opens the \
     connection.",
)
.at_most("1 GiB");

static BULK: Section = Section {
    heading: "`kind = \"bulk\"`",
    about: "A transfer of `bytes`, or until the end of the run, over TCP or QUIC.",
    keys: &[
        Key::optional("bytes", Kind::Bytes, "no end", "Bytes to transfer.").at_least("1 B").at_most("1000000 GB"),
        REQUEST,
        OPENED_BY,
        quic::TRANSPORT,
        tcp::SETTINGS,
        quic::SETTINGS,
    ],
};
static PERSISTENT: Section = Section {
    heading: "`kind = \"persistent\"`",
    about: "A source that always has data, over TCP or QUIC.",
    keys: &[REQUEST, OPENED_BY, quic::TRANSPORT, tcp::SETTINGS, quic::SETTINGS],
};
static WRITES: Section = Section {
    heading: "`kind = \"writes\"`",
    about: "A TCP connection whose application hands it data at random times, with exponential gaps (a Poisson \
            process), drawn by the seed. It \
            waits for nothing: what TCP cannot send yet waits in a send buffer without limit. Only the simulator \
            has it.",
    keys: &[
        Key::required("rate", Kind::Rate, "Mean rate of the data in bits per second, headers not counted."),
        Key::optional("size", Kind::Bytes, "the `mss` of its TCP", "Bytes of data handed over at a time.")
            .at_least("1 B")
            .at_most("1 GiB"),
        Key::optional(
            "first",
            Kind::Time,
            "a random gap",
            "Time from the start, at which the connection opens, to the first data.",
        ),
        OPENED_BY,
        tcp::SETTINGS,
    ],
};
static POISSON: Section = Section {
    heading: "`kind = \"poisson\"`",
    about: "UDP packets of one size with exponential gaps.",
    keys: &[Key::required("rate", Kind::Rate, "Mean rate in IP bits per second."), SIZE, listener::PLAYOUT],
};
static ONOFF: Section = Section {
    heading: "`kind = \"onoff\"`",
    about: "Bursty UDP: a constant rate during exponential on-times, silence during exponential off-times. Give the \
            mean `rate` \
            or the `peak`. A packet's time at the peak counts while on: the rest of it is due in the next burst, and \
            a burst shorter than that has no packet.",
    keys: &[
        Key::optional("rate", Kind::Rate, "follows from `peak`", "Mean rate in IP bits per second, silences included."),
        Key::optional("peak", Kind::Rate, "follows from `rate`", "Rate in IP bits per second while on."),
        Key::with_default("on", Kind::Time, "500 ms", "Mean length of a burst.").at_least("1 us").at_most("24 h"),
        Key::with_default("off", Kind::Time, "500 ms", "Mean length of a silence.").at_most("24 h"),
        SIZE,
        listener::PLAYOUT,
    ],
};
static VOICE: Section = Section {
    heading: "`kind = \"voice\"`",
    about: "UDP packets at a constant interval; the defaults are G.711 in packets of 20 ms (RFC 3551): 160 bytes of \
            sound, 40 of headers. \
            Results have its quality: delay, jitter, late packets, R factor and MOS (ITU-T G.107).",
    keys: &[
        Key::with_default("interval", Kind::Time, "20 ms", "Time between packets.").at_least("1 us").at_most("24 h"),
        Key::optional("size", Kind::Bytes, "200 B, 220 B with IPv6", "IP bytes of a packet.")
            .at_least("28 B")
            .at_most("65535 B"),
        listener::PLAYOUT,
        listener::CODEC,
        listener::IE,
        listener::BPL,
    ],
};
static BLAST: Section = Section {
    heading: "`kind = \"blast\"`",
    about: "UDP packets of one size at a constant rate, whether they arrive or not.",
    keys: &[
        Key::required(
            "rate",
            Kind::Other(
                "`\"100 packets/s\"`, or a rate",
                &[Kind::Rate, Kind::Matching("^\\s*[0-9]+\\s*packets?/s\\s*$")],
            ),
            "Packets per second, or IP bits per second.",
        ),
        SIZE,
        listener::PLAYOUT,
    ],
};
static PING: Section = Section {
    heading: "`kind = \"ping\"`",
    about: "Requests that the other end answers: ICMP echo, or UDP datagrams. The size is that of ping(8) by \
            default. A policy that serves ICMP \
            first makes the ping over ICMP short; one over UDP without a `dscp` waits as other traffic does.",
    keys: &[
        Key::with_default(
            "protocol",
            Kind::Choice(&["icmp", "udp"]),
            "icmp",
            "Protocol of requests and replies. The first request over UDP departs half an `interval` after the start. \
             Only the simulator has \"udp\".",
        ),
        Key::with_default("interval", Kind::Time, "1 s", "Time between requests.").at_least("1 us").at_most("24 h"),
        Key::optional("size", Kind::Bytes, "84 B, 104 B with IPv6", "IP bytes of a request and of its reply.")
            .at_least("28 B")
            .at_most("65535 B"),
    ],
};

/// The kinds of traffic.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Bulk,
    Persistent,
    Writes,
    Poisson,
    OnOff,
    Voice,
    Blast,
    Web,
    Video,
    Backup,
    Conference,
    Game,
    Swarm,
    Replay,
    Ping,
}

pub(super) const KINDS: [Variant<Form>; 15] = [
    Variant { name: "bulk", section: &BULK, value: Form::Bulk },
    Variant { name: "persistent", section: &PERSISTENT, value: Form::Persistent },
    Variant { name: "writes", section: &WRITES, value: Form::Writes },
    Variant { name: "poisson", section: &POISSON, value: Form::Poisson },
    Variant { name: "onoff", section: &ONOFF, value: Form::OnOff },
    Variant { name: "voice", section: &VOICE, value: Form::Voice },
    Variant { name: "blast", section: &BLAST, value: Form::Blast },
    Variant { name: "web", section: &apps::WEB, value: Form::Web },
    Variant { name: "video", section: &apps::video::VIDEO, value: Form::Video },
    Variant { name: "backup", section: &apps::backup::BACKUP, value: Form::Backup },
    Variant { name: "conference", section: &apps::conference::CONFERENCE, value: Form::Conference },
    Variant { name: "game", section: &apps::game::GAME, value: Form::Game },
    Variant { name: "swarm", section: &apps::SWARM, value: Form::Swarm },
    Variant { name: "replay", section: &replay::REPLAY, value: Form::Replay },
    Variant { name: "ping", section: &PING, value: Form::Ping },
];

/// The names of the kinds, as the key `kind` has them.
const NAMES: [&str; KINDS.len()] = {
    let mut names = [""; KINDS.len()];
    let mut index = 0;
    while index < KINDS.len() {
        names[index] = KINDS[index].name;
        index += 1;
    }
    names
};

/// The kinds, with the keys of all.
pub(crate) fn kinds() -> Tagged {
    Tagged::new(&TRAFFIC, "kind", &KINDS)
}

/// Every section about traffic, in the order of the kinds.
pub(crate) fn sections() -> Vec<&'static Section> {
    let mut sections = vec![&TRAFFIC];
    sections.extend(KINDS.iter().map(|kind| kind.section));
    sections
}

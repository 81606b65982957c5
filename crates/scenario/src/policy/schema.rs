//! The keys of a policy file.

mod autorate;

use super::form::FORMS;
use crate::line;
use crate::schema::{Key, Kind, NUMBER, Section, names};

pub(super) use autorate::{AUTORATE, METHODS};

pub(super) static POLICY: Section = Section {
    heading: "Top level",
    about: "",
    keys: &[
        Key::optional("name", Kind::Text, "the file's name", "Name of the policy."),
        Key::optional("about", Kind::Text, "nothing", "Effect of the policy, in a line."),
        Key::optional("line", Kind::Table("`[line]`"), "that of the scenario", "The line that it is for."),
        Key::optional(
            "scheduler",
            Kind::Table("`[scheduler]`"),
            "its defaults",
            "Scheduler that shares the upstream among the classes.",
        ),
        Key::optional(
            "ack",
            Kind::Table("`[ack]`"),
            "none",
            "A class of its own for pure ACKs, its rate computed from the download.",
        ),
        Key::optional("class", Kind::Tables("`[[class]]`"), "none", "The classes of the upstream."),
        Key::optional(
            "rule",
            Kind::Tables("`[[rule]]`"),
            "none",
            "Which packets belong to which class. Every rule is asked, in order, and the last that matches decides.",
        ),
        Key::optional("down", Kind::Table("`[down]`"), "nothing", "A middlebox behind the downstream."),
        Key::optional(
            "autorate",
            Kind::Table("`[autorate]`"),
            "rates are constant",
            "A controller that moves the rates of both directions with load and delay.",
        ),
    ],
};

pub(super) static LINE: Section = Section {
    heading: "`[line]`",
    about: "The line. In a scenario the line of `[access]` takes its place.",
    keys: &[
        Key::optional(
            "up",
            Kind::Rate,
            "the upstream is not shaped",
            "Upstream rate of the wire, headers and cells included.",
        ),
        Key::optional("down", Kind::Rate, "the downstream is not shaped", "Downstream rate of the wire."),
        line::ENCAPSULATION,
        line::OAM,
    ],
};

pub(super) static SCHEDULER: Section = Section {
    heading: "`[scheduler]`",
    about: "Scheduler that shares the upstream among the classes.",
    keys: &[
        Key::with_default(
            "kind",
            Kind::Choice(&names(&FORMS)),
            "htb",
            "`htb`: rates guaranteed, ceilings; `cbq`: rates guaranteed, the rest borrowed; `hfsc`: rates and delays \
             guaranteed, ceilings; `custom`: turns whose byte counts are as the rates; `priority`: by priority alone, \
             without rates; `none`: no classes, one `queue`.",
        ),
        Key::with_default(
            "place",
            Kind::Choice(&["modem", "middlebox"]),
            "modem",
            "Where it stands: in the modem, in place of its queue, or before it. Then the modem's queue stays, and \
             `share` keeps it empty; in \
             a scenario it is a link called `middlebox-up`, between the LAN and the modem.",
        ),
        Key::with_default(
            "share",
            Kind::Share,
            "100 %",
            "Used share of the line's upstream rate; below 100 % before a modem with a queue of its own.",
        ),
        Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
            .at_least("1 B")
            .at_most("65535 B"),
        Key::optional(
            "default",
            Kind::Text,
            "the class called `default`, or else the last",
            "The class of what no rule matches.",
        ),
        Key::optional(
            "queue",
            Kind::Table("[queues](scenario.md#queues)"),
            "a FIFO of 100 packets",
            "The one queue of `kind = \"none\"`. CAKE without a `bandwidth` has that of the line.",
        ),
    ],
};

const DELAY: Key = Key::optional(
    "delay",
    Kind::Time,
    "as its rate gives",
    "Time within which a packet departs after a pause, added to that of the packet ahead, whatever the rate; only \
     with `hfsc`. The packet is an ACK in `[ack]`, else one of `packet`.",
);

const BURST_VALUE: Kind = Kind::Other(
    "bytes on the wire, or a time at the rate that the scheduler has, one largest packet at least",
    &[Kind::WireBytes, Kind::Time],
);
const BURST: Key = Key::optional(
    "burst",
    BURST_VALUE,
    "the largest packet",
    "Burst of its rate after a pause; only with `htb` and `cbq`.",
);

pub(super) static ACK: Section = Section {
    heading: "`[ack]`",
    about: "The class of pure ACKs. Its rate is what the ACKs of a full download need: the download rate by the \
            bytes on the wire of a data \
            packet, times the bytes on the wire of an ACK, by `factor` (Brouer 2005, formula 8.1, with bytes on the \
            wire on both \
            sides and whole bits a second, rounded up). Where that is more than 90 % of the line, they get half of it. \
            Pure ACKs belong to it before the rules are asked.",
    keys: &[
        Key::with_default("class", Kind::Text, "ack", "Its name, for rules."),
        Key::with_default(
            "factor",
            Kind::Other("number from 0.5 to 100", &[Kind::Number, Kind::Matching(NUMBER)]),
            "1.5",
            "Data packets for each ACK.",
        ),
        Key::optional("rate", Kind::Rate, "computed", "A fixed rate in place of the computed one."),
        Key::with_default(
            "ceil",
            Kind::Other("share of the line, or rate", &[Kind::Share, Kind::Rate]),
            "100 %",
            "Its largest rate.",
        ),
        Key::with_default("priority", Kind::Count, "1", "Order of service: 0, the most urgent, to 7.").at_most("7"),
        Key::with_default(
            "packet",
            Kind::Bytes,
            "1500 B",
            "IP bytes of a data packet; by default at most the MTU of the line.",
        )
        .at_least("40 B")
        .at_most("65535 B"),
        Key::with_default("ack", Kind::Bytes, "40 B", "IP bytes of an ACK: 40, or 52 with timestamps.")
            .at_least("20 B")
            .at_most("1500 B"),
        DELAY,
        BURST,
        Key::optional(
            "regulate",
            Kind::Table("[queues](scenario.md#queues)"),
            "a FIFO of `limit`",
            "The queue of the ACKs, such as `{ kind = \"sad\" }`.",
        ),
        Key::with_default("limit", Kind::Limit, "100 packets", "Largest number of queued ACKs, without `regulate`."),
    ],
};

pub(super) static CLASS: Section = Section {
    heading: "`[[class]]`",
    about: "A class of the upstream, or of the downstream as `[[down.class]]`. There is no ACK class downstream: \
            shares are of what `share` leaves of \
            the line.",
    keys: &[
        Key::required("name", Kind::Text, "Its name, for rules."),
        Key::optional(
            "parent",
            Kind::Text,
            "none: the line",
            "The class above, of which it is a part; only with `htb`, `cbq` and `hfsc`.",
        ),
        Key::optional(
            "rate",
            Kind::Other("share of what the ACK class leaves, or rate", &[Kind::Share, Kind::Rate]),
            "required but for `priority`",
            "Rate that it has at any load of the others.",
        ),
        Key::optional(
            "ceil",
            Kind::Other("share of the line, or rate", &[Kind::Share, Kind::Rate]),
            "the line",
            "Its largest rate; only with `htb` and `hfsc`. With `cbq` one of the rate keeps the class from \
             borrowing.",
        ),
        DELAY,
        Key::optional(
            "packet",
            Kind::Bytes,
            "`largest` of the scheduler",
            "IP bytes of the packet that `delay` is for.",
        )
        .at_least("20 B")
        .at_most("65535 B"),
        Key::with_default(
            "priority",
            Kind::Count,
            "4",
            "Order of service: 0, the most urgent, to 7; only with `htb`, `cbq` and `priority`, and 0 with `drain`. \
             With the kind `priority` a class sends only while those before it have no packet; of equal priorities \
             the class that the file has first goes first.",
        )
        .at_most("7"),
        BURST,
        Key::optional(
            "cburst",
            BURST_VALUE,
            "the largest packet",
            "Burst of its ceiling after a pause; only with `htb`.",
        ),
        Key::optional(
            "queue",
            Kind::Table("[queues](scenario.md#queues)"),
            "a FIFO of `limit`",
            "Where its packets wait. A target of CoDel below the time of a packet at the scheduler's rate is raised \
             to it, and the interval by as much.",
        ),
        Key::with_default("limit", Kind::Limit, "100 packets", "How much it holds, without `queue`."),
    ],
};

pub(super) static RULE: Section = Section {
    heading: "`[[rule]]`",
    about: "Packets that belong to a class.",
    keys: &[
        Key::required("class", Kind::Text, "The class."),
        Key::optional("match", Kind::Table("[matches](scenario.md#matches)"), "every packet", "Which packets."),
        Key::with_default("final", Kind::Flag, "false", "No further rule is asked."),
    ],
};

pub(super) static DOWN: Section = Section {
    heading: "`[down]`",
    about: "A middlebox behind the downstream, at the near end of the line. The queue at the far end, in the DSLAM, \
            stays as it is; what is done \
            here empties it only by what senders make of it ([control of the \
            downstream](../guides/controlling-the-downstream.md)). Without \
            `share` and `drain` nothing is held back. In a scenario it is a link called `middlebox-down`, between \
            the line and the LAN.",
    keys: &[
        Key::optional(
            "share",
            Kind::Share,
            "`\"98 %\"` with `drain`, else nothing is held back",
            "Used share of the line's downstream rate; the margin keeps the far queue empty.",
        ),
        Key::optional(
            "drain",
            Kind::Other(
                "`true`, `false`, or a table, see `[down.drain]`",
                &[Kind::Flag, Kind::Table("`[down.drain]`")],
            ),
            "`false`",
            "Lowers the rate while the far end has a queue ([drain](../mechanisms/drain.md)).",
        ),
        Key::optional("police", Kind::Table("`[down.police]`"), "nothing", "Policer of arriving packets."),
        Key::with_default(
            "kind",
            Kind::Choice(&names(&FORMS)),
            "htb",
            "Scheduler that shares the downstream among its classes, as in `[scheduler]`; `none`, or no class: one \
             `queue`.",
        ),
        Key::optional(
            "burst",
            BURST_VALUE,
            "the largest packet",
            "Burst of a shaper without classes, after a pause; not with `drain`, nor for CAKE, which has none.",
        ),
        Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
            .at_least("41 B")
            .at_most("65535 B"),
        Key::optional(
            "default",
            Kind::Text,
            "the class called `default`, or else the last",
            "The class of what no rule matches.",
        ),
        Key::optional("class", Kind::Tables("`[[class]]`"), "none", "The classes of the downstream: `[[down.class]]`."),
        Key::optional("rule", Kind::Tables("`[[rule]]`"), "none", "Which packets belong to which: `[[down.rule]]`."),
        Key::optional(
            "queue",
            Kind::Table("[queues](scenario.md#queues)"),
            "a FIFO of 1000 packets",
            "The one queue, without classes. CAKE without a `bandwidth` has that of `share`.",
        ),
        Key::optional(
            "pace",
            Kind::Table("`[down.pace]`"),
            "nothing",
            "ACKs of the downloads, on their way up, are paced.",
        ),
        Key::optional(
            "clamp",
            Kind::Table("`[down.clamp]`"),
            "nothing",
            "Windows of the downloads, on their way up, are lowered.",
        ),
    ],
};

pub(super) static DRAIN: Section = Section {
    heading: "`[down.drain]`",
    about: "How the queue at the far end is drained. `drain = true` is all defaults.",
    keys: &[
        Key::with_default("depth", Kind::Share, "80 %", "Used share of the line's rate during a drain; below `share`."),
        Key::with_default(
            "patience",
            Kind::Time,
            "1 s",
            "How long the line may go without idle time before a drain begins.",
        )
        .at_least("1 ms")
        .at_most("60 s"),
        Key::with_default("longest", Kind::Time, "5 s", "When a drain is given up; the next one then begins later.")
            .at_least("10 ms")
            .at_most("10 min"),
    ],
};

pub(super) static POLICE: Section = Section {
    heading: "`[down.police]`",
    about: "An ingress policer: a token bucket over all that arrives.",
    keys: &[
        Key::with_default("share", Kind::Share, "95 %", "Share of the line's downstream rate that conforms."),
        Key::optional("burst", Kind::WireBytes, "ten of the largest packets", "Burst that conforms after a pause."),
    ],
};

pub(super) static PACE: Section = Section {
    heading: "`[down.pace]`",
    about: "[ACK pacing](../mechanisms/ack-pacing.md) in front of the queue of the upstream, at the rate that the \
            downstream carries of payload \
            in packets of `largest`, 40 bytes of headers left out.",
    keys: &[
        Key::with_default("share", Kind::Share, "100 %", "Share of that rate that may be acknowledged."),
        Key::with_default("max_hold", Kind::Time, "100 ms", "The longest that an ACK is held.")
            .at_least("1 us")
            .at_most("500 ms"),
    ],
};

pub(super) static CLAMP: Section = Section {
    heading: "`[down.clamp]`",
    about: "A [window clamp](../mechanisms/window-clamp.md) behind the queue of the upstream: all downloads \
            together have in flight what the \
            downstream delivers of payload in `rtt`, in whole segments, and each a segment more.",
    keys: &[
        Key::required(
            "rtt",
            Kind::Time,
            "Round-trip time of the path, with the queueing delay that is wanted in this middlebox. The time of a \
             full packet on the line is added for each direction.",
        )
        .at_least("1 ms")
        .at_most("60 s"),
        Key::optional(
            "growth",
            Kind::Share,
            "half of what `share` leaves of the line; without `share` windows open at once",
            "A download has at first the round-trip time of its handshake in place of `rtt`, and comes to `rtt` by \
             this share of the time that \
             passes: windows grow by so much of the line's rate. 100 % opens them nearly at once.",
        ),
    ],
};

/// All sections, in the order of the reference.
pub(crate) const SECTIONS: &[&Section] =
    &[&POLICY, &LINE, &SCHEDULER, &ACK, &CLASS, &RULE, &DOWN, &DRAIN, &POLICE, &PACE, &CLAMP, &AUTORATE];

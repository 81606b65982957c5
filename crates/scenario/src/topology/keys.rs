//! The keys of nodes and links.

use crate::delay::MAX_DELAY;
use crate::schema::{Key, Kind, Section};
use crate::{grants, impairments, line, trace};

pub(crate) static NODE: Section = Section {
    heading: "`[[node]]`",
    about: "A host or router. Nodes that links name are there without being listed; list one to give it a \
            processing delay.",
    keys: &[
        Key::required("name", Kind::Text, "Name, unique."),
        Key::with_default(
            "processing",
            Kind::Time,
            "0 ms",
            "Constant delay of a packet that is forwarded or received here.",
        )
        .at_most("10 s"),
    ],
};

/// The keys of every link, of packets or of cells.
pub(crate) const NAME: Key = Key::optional(
    "name",
    Kind::Text,
    "`from-to`; the way back is `to-from`",
    "Name, unique. The way back is called `name-back`.",
);
pub(crate) const FROM: Key = Key::required("from", Kind::Text, "Node at the near end.");
pub(crate) const TO: Key = Key::required("to", Kind::Text, "Node at the far end.");

pub(crate) static LINK: Section = Section {
    heading: "`[[link]]`",
    about: "A link between two nodes, both ways unless `one_way` says otherwise. The way back has the same rate, \
            delay, loss, \
            encapsulation and queue, unless `back` gives its own. Between any two nodes there is one way: a loop of \
            links is an error. \
            (One-way links may form a ring, such as a satellite down and a telephone line up.)",
    keys: &[
        NAME,
        FROM,
        TO,
        Key::with_default("one_way", Kind::Flag, "false", "No way back."),
        line::RATE,
        trace::TRACE,
        grants::GRANTS,
        line::DELAY,
        impairments::LOSS,
        impairments::JITTER,
        impairments::REORDER,
        impairments::DUPLICATE,
        impairments::BIT_ERROR_RATE,
        line::ENCAPSULATION,
        line::MTU,
        Key::optional(
            "framing",
            Kind::Choice(&["none", "atm"]),
            "as `encapsulation` says",
            "Short for `encapsulation = \"ip\"` (none) and `\"aal5\"` (atm).",
        ),
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
        line::QUEUE,
        line::back("`[link.back]`"),
    ],
};

pub(crate) static BACK: Section = Section {
    heading: "`[link.back]`",
    about: "Other values for the way back of a link. Keys that are left out have the values of the way there.",
    keys: &[
        line::RATE,
        Key::optional("trace", Kind::Table("`trace = { ... }`"), "as there, unless `rate` is given", trace::TRACE.doc),
        grants::GRANTS,
        Key::optional("delay", Kind::Time, "as there", line::DELAY.doc).at_most(MAX_DELAY),
        Key::optional("loss", impairments::LOSS.kind, "as there", impairments::LOSS.doc),
        Key::optional("jitter", impairments::JITTER.kind, "as there", impairments::JITTER.doc),
        Key::optional("reorder", impairments::REORDER.kind, "as there", impairments::REORDER.doc),
        Key::optional("duplicate", impairments::DUPLICATE.kind, "as there", impairments::DUPLICATE.doc),
        Key::optional("bit_error_rate", impairments::BIT_ERROR_RATE.kind, "as there", impairments::BIT_ERROR_RATE.doc),
        line::ENCAPSULATION,
        line::MTU,
        line::OAM,
        line::COMPRESSION,
        line::SLOTS,
        Key::optional("queue", Kind::Table("queues"), "as there", line::QUEUE.doc),
    ],
};

//! Links of cells, at one end of which is a switch.

use lastmile_model::{Hop, Link, NodeIndex};
use lastmile_units::{BitRate, Duration, Ratio};

use super::Settings;
use super::queue::{self, Port};
use super::switch::Switch;
use crate::delay::MAX_DELAY;
use crate::line;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::topology::{FROM, NAME, TO};

const RATE: Key = Key::optional("rate", Kind::Rate, "that of `interface`", "Rate of the wire; a cell has 424 bits.");
const INTERFACE: Key = Key::optional(
    "interface",
    Kind::Choice(&["oc-3c", "stm-1", "oc-12c", "stm-4", "ds3", "e3", "ds1", "e1"]),
    "`rate` says it",
    "Short for the rate that this interface has for cells: 149.76, 149.76, 599.04, 599.04 Mbit/s (ITU-T I.432), \
     40.704 (DS3 with PLCP), \
     33.92 (E3 of G.832), 1.536, 1.92 (G.804).",
);
const PACE: Key = Key::optional(
    "pace",
    Kind::Rate,
    "as fast as the link",
    "Cells of all virtual channels together start no closer than at this rate: the shaping of an interface.",
);
const LOSS: Key = Key::with_default(
    "loss",
    Kind::Share,
    "0 %",
    "Share of cells lost on the wire, at random; each costs the packet of which it is.",
);
const QUEUE: Key = Key::optional(
    "queue",
    Kind::Table("[queues of cells](#queues-of-cells)"),
    "that of the switch; a host holds all that its applications send",
    "Queue of the port at the near end.",
);

pub(crate) static CELL_LINK: Section = Section {
    heading: "`[[link]]` of cells",
    about: "A link to or from a switch, both ways. The way back has the same rate, delay and loss unless `back` \
            gives its own; each end has the \
            queue of its switch.",
    keys: &[NAME, FROM, TO, RATE, INTERFACE, PACE, line::DELAY, LOSS, QUEUE, line::back("`[link.back]` of cells")],
};

pub(crate) static CELL_BACK: Section = Section {
    heading: "`[link.back]` of cells",
    about: "Other values for the way back of a link of cells.",
    keys: &[
        RATE,
        INTERFACE,
        PACE,
        Key::optional("delay", Kind::Time, "as there", line::DELAY.doc).at_most(MAX_DELAY),
        Key::optional("loss", Kind::Share, "as there", LOSS.doc),
        QUEUE,
    ],
};

/// Bit rates for cells, 424 bits each. SDH: 260 of 270 columns (G.707). DS3: 12 cells in 125 us (PLCP). E3:
/// 530 bytes in 125 us (G.832). DS1, E1: 24 and 30 time slots (G.804).
const INTERFACES: &[(&str, BitRate)] = &[
    ("oc-3c", BitRate::from_kbit_per_s(149_760)),
    ("stm-1", BitRate::from_kbit_per_s(149_760)),
    ("oc-12c", BitRate::from_kbit_per_s(599_040)),
    ("stm-4", BitRate::from_kbit_per_s(599_040)),
    ("ds3", BitRate::from_kbit_per_s(40_704)),
    ("e3", BitRate::from_kbit_per_s(33_920)),
    ("ds1", BitRate::from_kbit_per_s(1_536)),
    ("e1", BitRate::from_kbit_per_s(1_920)),
];

/// One direction of a link of cells.
#[derive(Clone, Debug)]
pub(crate) struct CellLine {
    pub(crate) rate: BitRate,
    pub(crate) pace: Option<BitRate>,
    pub(crate) delay: Duration,
    pub(crate) loss: Ratio,
    pub(crate) port: Port,
}

impl CellLine {
    /// Reads one direction. `base` is the other, of which what is left out is taken; `near` the switch at the near end.
    pub(crate) fn read(table: &Table<'_>, base: Option<&Self>, near: Option<&Switch>) -> Option<Self> {
        let rate = rate(table).or_else(|| {
            if table.has("rate") || table.has("interface") {
                return None;
            }
            if base.is_none() {
                let hint = "a rate such as \"10 Mbit/s\", or an interface such as \"oc-3c\"";
                table.error("rate", format!("{}: a link of cells without a rate", table.own_path()), Some(hint.into()));
            }
            base.map(|base| base.rate)
        });
        let pace = table.optional("pace").or(base.and_then(|base| base.pace));
        let delay = match base {
            Some(base) => table.optional("delay").or(Some(base.delay)),
            None => table.get("delay"),
        };
        let loss = match base {
            Some(base) => table.optional("loss").unwrap_or(base.loss),
            None => table.get("loss").unwrap_or(Ratio::ZERO),
        };
        let port = match table.table("queue") {
            Some(queue) => queue::read(queue, near.and_then(|switch| switch.memory)),
            None => Some(near.map_or_else(Port::of_host, |switch| switch.port.clone())),
        };
        let rate = rate?;
        if let Some(pace) = pace
            && pace > rate
        {
            let key = if table.has("pace") { "pace" } else { "rate" };
            table.error(key, format!("{}: paced at {pace}, above {rate} of the link", table.path("pace")), None);
        }
        Some(Self { rate, pace, delay: delay?, loss, port: port? })
    }

    /// The link of the other direction, with the port of `near`.
    pub(crate) fn turned(&self, near: Option<&Switch>) -> Self {
        Self { port: near.map_or_else(Port::of_host, |switch| switch.port.clone()), ..self.clone() }
    }

    /// The link of the simulated network, from which the time of a single packet follows.
    pub(crate) fn link(&self, name: String, from: NodeIndex, to: NodeIndex, settings: &Settings) -> Link {
        let line = lastmile_queueing::line::Config::new(Some(self.rate), settings.link_layer(), self.delay);
        Link { from, to, hop: Hop { name, line, queue: lastmile_queueing::spec::Spec::fifo(100) } }
    }
}

fn rate(table: &Table<'_>) -> Option<BitRate> {
    let interface = table.optional_choice("interface", INTERFACES);
    let rate: Option<BitRate> = table.optional("rate");
    if table.has("rate") && table.has("interface") {
        table.error("interface", "both rate and interface", Some("give one of them".into()));
    }
    rate.or(interface)
}

//! `[[switch]]`: ATM switches.

use lastmile_atm::network::AbrPort;
use lastmile_units::{CellCount, Duration};

use super::abr;
use super::queue::{self, Port};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

pub(crate) static SWITCH: Section = Section {
    heading: "`[[switch]]`",
    about: "An ATM switch. All links to it or from it carry cells; no traffic begins or ends here.",
    keys: &[
        Key::required("name", Kind::Text, "Name, unique among nodes."),
        Key::optional(
            "memory",
            Kind::Cells,
            "each port has a memory of its own, as large as its queues",
            "Cells that wait at all its ports together, at most.",
        )
        .at_least("1 cells"),
        Key::optional(
            "queue",
            Kind::Table("[queues of cells](#queues-of-cells)"),
            "tail drop at 1000 cells, or at the `memory`",
            "Queue of each of its ports; a link may have another.",
        ),
        Key::optional(
            "abr",
            Kind::Table("`[switch.abr]`"),
            "nothing",
            "Feedback of its ports to virtual channels of available bit rate.",
        ),
        Key::with_default("processing", Kind::Time, "0 ms", "Constant delay of a cell that is forwarded here.")
            .at_most("10 s"),
    ],
};

/// Buffer of a port of which the file says nothing.
const BUFFER: CellCount = CellCount::new(1000);

/// A switch, as far as its ports need it.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) memory: Option<CellCount>,
    pub(crate) port: Port,
    pub(crate) abr: Option<AbrPort>,
}

/// Name, delay and ports of a switch.
pub(crate) fn read(table: &Table<'_>) -> Option<(String, Duration, Switch)> {
    let memory: Option<CellCount> = table.optional("memory");
    let processing = table.get("processing");
    let port = match table.table("queue") {
        Some(queue) => queue::read(queue, memory),
        None => Some(Port::tail_drop(memory.map_or(Some(BUFFER), |_| None))),
    };
    let abr = match table.table("abr") {
        Some(abr) => Some(abr::port(abr)?),
        None => None,
    };
    Some((table.name("name")?, processing?, Switch { memory, port: port?, abr }))
}

impl Port {
    fn tail_drop(limit: Option<CellCount>) -> Self {
        let queue = lastmile_atm::QueueSpec { limit, ..Default::default() };
        Self { queues: lastmile_atm::Queues::Fifo(queue), classes: Vec::new() }
    }

    /// The port of a host, which holds all that its applications send.
    pub(crate) fn of_host() -> Self {
        Self::tail_drop(None)
    }
}

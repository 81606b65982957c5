//! ATM networks as a file describes them: switches, links of cells, contracts, and which traffic takes which
//! virtual channel.
//!
//! Every link to or from a switch carries cells. Every flow has virtual channels of its own along its way,
//! one there and one back, from the last node that is no switch to the next; nobody has to list them.

pub(crate) mod abr;
pub(crate) mod circuits;
pub(crate) mod contract;
pub(crate) mod edge;
pub(crate) mod keys;
pub(crate) mod link;
pub(crate) mod queue;
pub(crate) mod switch;

use lastmile_atm::aal5::Encapsulation;
use lastmile_linklayer::{LinkLayer, preset};

use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

pub(crate) static ATM: Section = Section {
    heading: "`[atm]`",
    about: "Settings that all links of cells share.",
    keys: &[
        Key::with_default(
            "encapsulation",
            Kind::Choice(&["llc", "vc-mux"]),
            "llc",
            "Header of a packet in its AAL5 frame (RFC 2684, routed): 8 bytes of LLC/SNAP, or none.",
        ),
        Key::with_default(
            "trains",
            Kind::Flag,
            "true",
            "Cells that follow one another evenly are handled as one. Changes no result, only how long it takes.",
        ),
    ],
};

/// The settings of `[atm]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) encapsulation: Encapsulation,
    pub(crate) trains: bool,
}

impl Settings {
    pub(crate) fn read(root: &Table<'_>) -> Self {
        let table = match root.table("atm") {
            Some(table) => table.open(&ATM),
            None => root.empty("atm", &ATM),
        };
        let kinds = [("llc", Encapsulation::LlcSnap), ("vc-mux", Encapsulation::VcMux)];
        Self {
            encapsulation: table.choice("encapsulation", &kinds).unwrap_or_default(),
            trains: table.get("trains").unwrap_or(true),
        }
    }

    /// The cost of a packet on a link of cells.
    pub(crate) fn link_layer(&self) -> LinkLayer {
        match self.encapsulation {
            Encapsulation::LlcSnap => preset::IPOA_LLCSNAP.link,
            Encapsulation::VcMux => preset::IPOA_VCMUX.link,
        }
    }
}

//! ABR at ports: a port marks data cells (EFCI), or measures its load and answers RM cells (ERICA).

use super::erica::{self, Erica};
use crate::cell::{Payload, Run};
use crate::network::in_flight::InFlight;

/// The control of a port.
#[derive(Debug)]
pub(crate) enum Control {
    /// Marks data cells that find this many cells in their queue.
    Efci(u32),
    /// Measures its load, and writes the allowed rate into RM cells.
    Erica(Box<Erica>),
}

/// A VC at a switch, for ABR.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AbrVc {
    /// The VC carries the data cells of an ABR source, and its RM cells away from it.
    pub(crate) forward: bool,
    /// The VC carries RM cells back to the source of the VC with this index.
    pub(crate) back_of: Option<u16>,
    pub(crate) seen: erica::Seen,
}

/// The ports of a switch, for ABR.
#[derive(Debug, Default)]
pub(crate) struct AbrPorts {
    /// By port.
    pub(crate) controls: Vec<Option<Control>>,
    /// By index of the VC at the switch.
    pub(crate) vcs: Vec<AbrVc>,
}

impl AbrPorts {
    /// Limits the explicit rate of an RM cell on its way back to what the port of its VC's other
    /// direction allows.
    pub(crate) fn answer(&mut self, run: &Run, port_of: impl Fn(u16) -> u16, in_flight: &mut InFlight) {
        let Payload::Rm(rm) = run.header.payload else { return };
        let Some(forward) = self.vcs[run.vc as usize].back_of else { return };
        if let Some(Control::Erica(erica)) = &mut self.controls[port_of(forward) as usize] {
            let allowed = erica.allow(run.at, &mut self.vcs[forward as usize].seen);
            let rm = in_flight.rm_cells.get_mut(rm);
            rm.er = rm.er.min(allowed);
        }
    }

    /// A cell arrives at a queue of `waiting` cells. True if it is to be marked.
    pub(crate) fn arrives(&mut self, cell: &Run, port: u16, waiting: u32, in_flight: &mut InFlight) -> bool {
        let vc = &mut self.vcs[cell.vc as usize];
        match (&mut self.controls[port as usize], cell.header.payload) {
            (Some(Control::Efci(threshold)), Payload::Frame(_)) => vc.forward && waiting >= *threshold,
            (Some(Control::Erica(erica)), payload) if vc.forward => {
                let ccr = match payload {
                    Payload::Rm(rm) => Some(in_flight.rm_cells.get_mut(rm).ccr),
                    Payload::Frame(_) => None,
                };
                erica.cell(cell.at, &mut vc.seen, ccr);
                false
            }
            (Some(Control::Erica(erica)), _) => {
                erica.others(cell.at, 1);
                false
            }
            _ => false,
        }
    }
}

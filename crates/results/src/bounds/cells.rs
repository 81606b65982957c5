//! Limits of virtual channels: the shaper of their source, the peak rate of available bit rate, and the policers of
//! their contracts.
//!
//! GCRA(T, tau) passes at most 1 + (t + tau) / T cells in any time t: one cell for each T, and 1 + tau / T beyond. A
//! source that spaces its cells by T passes as many as GCRA(T, 0). Of the cells of an ABR source one in every Nrm at
//! least is an RM cell, and the first one is.
//! A rate that counts only cells of CLP = 0 is a limit where all cells arrive with CLP = 0. One above which cells are
//! tagged, and the minimum rate of GFR, are none.

use lastmile_atm::aal5::Encapsulation;
use lastmile_atm::contract::{Contract, Peak, Sbr, Sustainable};
use lastmile_atm::network::{Upc, VcSpec};
use lastmile_atm::time::Spacing;
use lastmile_atm::{LinkId, VcId, VpId};
use lastmile_linklayer::aal5::CELL_PAYLOAD;
use lastmile_model::{Atm, Circuit, Network};
use lastmile_units::{BitRate, ByteCount, CellCount};

use crate::format::to_f64;

/// Bits of a cell.
const CELL_BITS: f64 = CellCount::new(1).wire_bytes().bits() as f64;

/// A limit of the cells of the virtual channels of one traffic, of each alone, or of a virtual path.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CellLimit {
    /// Cells of packets, 424 bits each, a second.
    pub(super) cell_bps: f64,
    /// The most cells of packets in a time beyond that rate.
    cells_beyond: f64,
    by: Limiter,
    of: Of,
    encapsulation: Encapsulation,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limiter {
    Shaper,
    /// The peak rate of available bit rate.
    Available,
    Peak,
    Sustainable,
}

/// The cells that a limit counts together.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Of {
    /// Those of each of this many virtual channels, of which this is the first.
    Channel { first: VcId, count: usize, contract: Option<String> },
    /// Those of a path.
    Path(VpId, String),
}

impl CellLimit {
    /// The limits of all data of traffic number `traffic`, whose packets cross the links `path`, each with the number
    /// of its link. `many`: connections that are opened during the run make up a flow.
    pub(super) fn along(network: &Network, traffic: usize, path: &[usize], many: bool) -> Vec<(usize, Self)> {
        let Some(atm) = &network.atm else { return Vec::new() };
        let circuits = atm.circuits.iter().filter(|circuit| circuit.traffic == traffic && !circuit.back);
        circuits.flat_map(|circuit| of_circuit(atm, circuit, path, many)).collect()
    }

    /// True if some of so many flows of the traffic share it, or flows of others do.
    pub(super) const fn is_shared_by(&self, flows: usize) -> bool {
        match self.of {
            Of::Channel { count, .. } => count < flows,
            Of::Path(..) => true,
        }
    }

    /// The virtual channels that have this limit each.
    pub(super) fn channels(&self) -> f64 {
        match self.of {
            Of::Channel { count, .. } => to_f64(count as u64),
            Of::Path(..) => 1.0,
        }
    }

    /// True for a limit behind which packets wait at their source.
    pub(super) const fn holds_at_source(&self) -> bool {
        matches!(self.by, Limiter::Shaper | Limiter::Available)
    }

    /// Packets of `ip` bytes a second; of packets that fit no frame any number.
    pub(super) fn packets_per_s(&self, ip: ByteCount) -> f64 {
        self.encapsulation.cells(ip).map_or(f64::MAX, |cells| self.cell_bps / (f64::from(cells) * CELL_BITS))
    }

    /// The most payload bytes beyond that rate.
    pub(super) fn beyond(&self) -> f64 {
        self.cells_beyond * to_f64(CELL_PAYLOAD)
    }

    pub(super) fn words(&self) -> String {
        let by = match self.by {
            Limiter::Shaper => "shape",
            Limiter::Available | Limiter::Peak => "peak cell rate",
            Limiter::Sustainable => "sustainable cell rate",
        };
        let of = match &self.of {
            Of::Channel { contract: Some(contract), .. } => format!("contract {contract}"),
            Of::Channel { contract: None, .. } => "its virtual channel".to_owned(),
            Of::Path(_, name) => format!("virtual path {name}"),
        };
        format!("{by} of {of}")
    }
}

fn of_circuit(atm: &Atm, circuit: &Circuit, path: &[usize], many: bool) -> Vec<(usize, CellLimit)> {
    let vcs = || circuit.vcs.iter().map(|vc| &atm.network.vcs[vc.index()]);
    let link = |id: &LinkId| atm.links[id.index()];
    let Some(vc) = vcs().next() else { return Vec::new() };
    if !vc.route.iter().all(|id| path.contains(&link(id))) || !vcs().all(|other| are_alike(vc, other)) {
        return Vec::new();
    }
    let limit = |id: &LinkId, (by, cell_bps, cells_beyond): (Limiter, f64, f64), of: &Of| {
        (link(id), CellLimit { cell_bps, cells_beyond, by, of: of.clone(), encapsulation: vc.encapsulation })
    };
    let vp = vc.vp.map(|vp| (vp, &atm.network.vps[vp.index()]));
    let policers = || vc.upc.iter().chain(vp.iter().flat_map(|(_, path)| &path.upc));
    // All cells have CLP = 0 wherever they are policed.
    let is_high = !vc.low_priority && circuit.edge.is_none() && !policers().any(|upc| may_tag(&upc.contract));
    let policed = |upc: &Upc, of: &Of| {
        let at = upc.at;
        policed(upc, is_high).map(|found| limit(&at, found, of)).collect::<Vec<_>>()
    };
    let mut limits = Vec::new();
    // Connections of one flow that take several virtual channels have the rates of all.
    if !many || circuit.vcs.len() == 1 {
        let of = Of::Channel { first: circuit.vcs[0], count: circuit.vcs.len(), contract: circuit.contract.clone() };
        limits.extend(source(vc).map(|found| limit(&vc.route[0], found, &of)));
        limits.extend(vc.upc.iter().flat_map(|upc| policed(upc, &of)));
    }
    if let Some((vp, path)) = vp {
        let of = Of::Path(vp, path.name.clone());
        limits.extend(path.upc.iter().flat_map(|upc| policed(upc, &of)));
    }
    limits
}

/// True for channels with the same limits.
fn are_alike(one: &VcSpec, other: &VcSpec) -> bool {
    let of = |vc: &VcSpec| (vc.pcr, vc.low_priority, vc.upc, vc.vp, vc.encapsulation);
    of(one) == of(other) && one.route == other.route && one.abr == other.abr
}

/// A policer of this contract may set CLP = 1.
const fn may_tag(contract: &Contract) -> bool {
    matches!(
        contract,
        Contract::Ubr { tagging: true, .. }
            | Contract::Gfr { tagging: true, .. }
            | Contract::Sbr { variant: Sbr::Three, .. }
    )
}

/// The limit at the source of a channel.
fn source(vc: &VcSpec) -> Option<(Limiter, f64, f64)> {
    if let Some(abr) = &vc.abr {
        let (every, pcr) = (f64::from(abr.parameters.nrm), to_f64(abr.parameters.pcr.as_bps()));
        // Of N cells at least N / Nrm, cut to an integer, are RM cells.
        return Some((Limiter::Available, pcr * (every - 1.0) / every, 2.0));
    }
    vc.pcr.map(|rate| (Limiter::Shaper, to_f64(rate.as_bps()), 1.0))
}

/// The limits by a policer of cells, which all arrive with CLP = 0 if `is_high`.
fn policed(upc: &Upc, is_high: bool) -> impl Iterator<Item = (Limiter, f64, f64)> + use<> {
    let (peak, sustainable) = match upc.contract {
        Contract::Dbr { peak } | Contract::Gfr { peak, .. } => (Some(peak), None),
        Contract::Ubr { peak, .. } => (peak, None),
        Contract::Sbr { variant, peak, sustainable } => {
            let counts = variant == Sbr::One || (variant == Sbr::Two && is_high);
            (Some(peak), counts.then_some((sustainable, peak)))
        }
    };
    let peak = peak.map(|Peak { rate, cdvt }| gcra(Limiter::Peak, rate, Spacing::of(cdvt)));
    let sustainable = sustainable.map(|(limit, peak): (Sustainable, Peak)| {
        let tolerance = limit.burst_tolerance(peak.rate).plus(Spacing::of(limit.cdvt));
        gcra(Limiter::Sustainable, limit.rate, tolerance)
    });
    peak.into_iter().chain(sustainable)
}

fn gcra(by: Limiter, rate: BitRate, tolerance: Spacing) -> (Limiter, f64, f64) {
    let bps = to_f64(rate.as_bps());
    (by, bps, 1.0 + tolerance.duration().as_secs_f64() * bps / CELL_BITS)
}

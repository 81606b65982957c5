//! Results of cells: a row per port, virtual channel and policed path, and the account of all
//! cells.

use std::collections::BTreeMap;

use lastmile_atm::contract::policer::Conformance;
use lastmile_atm::network::{AbrStats, HopStats, LinkStats};
use lastmile_atm::{CellDrop, QueueSpec, Queues};
use lastmile_model::outcome::{AtmOutcome, EdgeOutcome, Outcome, VcOutcome, Waits};
use lastmile_model::{Atm as Spec, Network};
use lastmile_queueing::Count;
use lastmile_queueing::meter::conditioner::Counts;
use lastmile_units::CellCount;

use crate::format::to_f64;
use crate::schema::{
    AbrSource, Atm, CellConservation, CellPort, ChannelCounts, Counted, EdgeClass, Policed, VirtualChannel, VirtualPath,
};

/// The rows of `network`'s cells; `None` for a network without cells.
pub(crate) fn atm(network: &Network, outcome: &Outcome) -> Option<Atm> {
    let (spec, outcome) = (network.atm.as_ref()?, outcome.atm.as_ref()?);
    let cells = outcome.cells;
    let port = |(index, link): (usize, &usize)| CellPort {
        link: network.links[*link].hop.name.clone(),
        buffer_cells: buffer(spec, index),
        ..port(&outcome.ports[index])
    };
    let paths = spec.network.vps.iter().zip(&outcome.paths);
    Some(Atm {
        ports: spec.links.iter().enumerate().map(port).collect(),
        vcs: outcome.vcs.iter().enumerate().map(|(index, vc)| channel(network, spec, index, vc)).collect(),
        vps: paths
            .map(|(path, counts)| VirtualPath { name: path.name.clone(), policed: counts.map(policed) })
            .collect(),
        edges: outcome.edges.iter().map(|edge| edge_class(spec, edge)).collect(),
        conservation: CellConservation {
            offered: cells.offered,
            arrived: cells.arrived,
            dropped: cells.dropped,
            lost: cells.lost,
            inside: cells.inside,
            holds: outcome.holds(),
        },
        goodput_cells: whole(outcome),
    })
}

fn edge_class(spec: &Spec, edge: &EdgeOutcome) -> EdgeClass {
    let counted = |count: Count| Counted { packets: count.packets, bytes: count.bytes };
    let Counts { colors, clp, dropped } = edge.counts;
    EdgeClass {
        name: spec.edges[edge.edge].name.clone(),
        node: spec.network.nodes[edge.node].name.clone(),
        colors: ["green", "yellow", "red"].map(str::to_owned).into_iter().zip(colors.map(counted)).collect(),
        clp_0: counted(clp[0]),
        clp_1: counted(clp[1]),
        dropped: counted(dropped),
    }
}

/// Cells of frames that arrived whole.
fn whole(outcome: &AtmOutcome) -> u64 {
    outcome.vcs.iter().map(|vc| vc.stats.whole.cells).sum()
}

/// The most cells that may wait at a port.
fn buffer(spec: &Spec, link: usize) -> Option<u64> {
    let link = &spec.network.links[link];
    let limit = |queue: &QueueSpec| queue.limit.map(CellCount::as_u64);
    let own = match &link.queues {
        Queues::Fifo(queue) | Queues::PerVc(queue) => limit(queue),
        Queues::Classes(classes) => classes.iter().map(|class| limit(&class.queue)).sum(),
    };
    let memory = spec.network.nodes[link.from.index()].shared_memory.map(CellCount::as_u64);
    own.into_iter().chain(memory).min()
}

fn port(stats: &LinkStats) -> CellPort {
    let HopStats { arrived, sent, waiting, tagged, lost, .. } = stats.cells;
    CellPort {
        arrived_cells: arrived,
        sent_cells: sent,
        waiting_cells: waiting,
        dropped_cells: stats.cells.dropped_cells(),
        drops_cells: reasons(&stats.cells.dropped),
        lost_cells: lost,
        tagged_cells: tagged,
        low_priority_cells: stats.cells.arrived_low_priority,
        dropped_low_priority_cells: stats.cells.dropped_low_priority,
        goodput_cells: stats.good_cells,
        goodput_share: (sent > 0).then(|| to_f64(stats.good_cells) / to_f64(sent)),
        max_queue_cells: stats.peak,
        ..CellPort::default()
    }
}

fn channel(network: &Network, spec: &Spec, index: usize, vc: &VcOutcome) -> VirtualChannel {
    let own = &spec.network.vcs[index];
    let VcOutcome {
        stats,
        hops,
        conformance,
        lost,
        on_wire,
        joined,
        too_large,
        policed: at_edge,
        transit,
        cell_delays,
        ..
    } = vc;
    let mut dropped = [0; CellDrop::ALL.len()];
    hops.iter().for_each(|hop| dropped.iter_mut().zip(hop.dropped).for_each(|(sum, cells)| *sum += cells));
    let mut frames_lost = reasons(lost);
    let others = [("wire_loss", *on_wire), ("joined", *joined), ("too_large", *too_large), ("policed", *at_edge)];
    for (reason, frames) in others {
        if frames > 0 {
            frames_lost.insert(reason.to_owned(), frames);
        }
    }
    VirtualChannel {
        name: own.name.clone(),
        vpi: own.vpi,
        vci: own.vci,
        vp: own.vp.map(|vp| spec.network.vps[vp.index()].name.clone()),
        route: own.route.iter().map(|link| network.links[spec.links[link.index()]].hop.name.clone()).collect(),
        counts: ChannelCounts {
            offered_frames: stats.offered.frames,
            offered_cells: stats.offered.cells,
            whole_frames: stats.whole.frames,
            offered_low_priority_frames: stats.offered_low_priority.frames,
            whole_low_priority_frames: stats.whole_low_priority.frames,
            lost_frames: frames_lost,
            goodput_cells: stats.whole.cells,
            badput_cells: stats.bad_cells,
            drops_cells: reasons(&dropped),
            lost_cells: hops.iter().map(|hop| hop.lost).sum(),
            tagged_cells: hops.iter().map(|hop| hop.tagged).sum(),
        },
        transit_mean_s: transit.mean_s(),
        transit_max_s: (transit.packets > 0).then(|| to_f64(transit.max_ns) / 1e9),
        ctd_mean_s: (cell_delays.cells > 0).then(|| cell_delays.sum_ps as f64 / to_f64(cell_delays.cells) / 1e12),
        ctd_min_s: (cell_delays.cells > 0).then(|| cell_delays.min.as_secs_f64()),
        ctd_max_s: (cell_delays.cells > 0).then(|| cell_delays.max.as_secs_f64()),
        cdv_s: (cell_delays.cells > 0).then(|| (cell_delays.max - cell_delays.min).as_secs_f64()),
        policed: conformance.map(policed),
        abr: vc.abr.map(|source| abr(&source, vc.acks_held)),
    }
}

fn abr(source: &AbrStats, held: Waits) -> AbrSource {
    AbrSource {
        acr_mean_bps: to_f64(source.acr_mean_bps),
        acr_min_bps: to_f64(source.acr_min_bps),
        acr_max_bps: to_f64(source.acr_max_bps),
        rm_sent_cells: source.rm_sent,
        rm_returned_cells: source.rm_returned,
        rm_congested_cells: source.rm_congested,
        edge_max_bytes: source.edge_peak_bytes,
        edge_dropped_frames: source.edge_dropped,
        acks_held: held.packets,
        ack_hold_mean_s: held.mean_s(),
        ack_hold_max_s: (held.packets > 0).then(|| to_f64(held.max_ns) / 1e9),
    }
}

fn policed(counts: Conformance) -> Policed {
    let Conformance {
        passed,
        passed_low_priority,
        tagged,
        dropped_peak,
        dropped_sustainable,
        dropped_frame,
        eligible_frames,
        ..
    } = counts;
    Policed {
        conforming_cells: passed,
        conforming_low_priority_cells: passed_low_priority,
        tagged_cells: tagged,
        peak_cells: dropped_peak,
        sustainable_cells: dropped_sustainable,
        frame_cells: dropped_frame,
        eligible_frames,
    }
}

/// Counts by reason, without zeros.
fn reasons(counts: &[u64; CellDrop::ALL.len()]) -> BTreeMap<String, u64> {
    let counted = CellDrop::ALL.iter().filter(|reason| counts[reason.index()] > 0);
    counted.map(|reason| (reason.name().to_owned(), counts[reason.index()])).collect()
}

//! The counters of a network, read from its ports, connections and far ends.

use lastmile_units::CellCount;

use super::loss::Loss;
use super::stats::{HopStats, LinkStats, NetworkStats, VcStats};
use super::{AbrStats, Hop, Link, LinkId, Network, VcId, VpId};
use crate::cell::CellCounts;
use crate::connection::Connection;
use crate::contract::policer::Conformance;
use crate::port::Port;
use crate::time::Moment;

/// Bits of a cell on the wire.
const CELL_BITS: u64 = CellCount::new(1).wire_bytes().bits();

impl Network {
    /// The number of VCs.
    #[must_use]
    pub fn vcs(&self) -> usize {
        self.declared
    }

    /// Counters of the source of a VC of ABR. `None`: the VC has no ABR.
    #[must_use]
    pub fn abr_stats(&self, vc: VcId) -> Option<AbrStats> {
        let sender = self.vcs[vc.index()].abr.sender?;
        Some(self.senders[sender as usize].0.stats(self.now))
    }

    /// Counters of a VC, from end to end.
    #[must_use]
    pub fn vc_stats(&self, vc: VcId) -> VcStats {
        self.vcs[vc.index()].stats
    }

    /// Counters of a VC at a link, given by its index in the route.
    #[must_use]
    pub fn hop_stats(&self, vc: VcId, hop: usize) -> HopStats {
        self.hop(vc.index(), hop)
    }

    /// Counters of every VC at each of its links.
    #[must_use]
    pub fn all_hop_stats(&self) -> Vec<Vec<HopStats>> {
        let hops = |vc: usize| (0..self.vcs[vc].hops.len()).map(|hop| self.hop(vc, hop)).collect();
        (0..self.declared).map(hops).collect()
    }

    fn hop(&self, vc: usize, hop: usize) -> HopStats {
        let Connection { arrived, dropped, tagged, waiting, sent, .. } = self.connection(self.vcs[vc].hops[hop]);
        let lost = self.loss(vc, hop).map_or(CellCounts::default(), |loss| loss.lost);
        HopStats {
            arrived: arrived.all,
            arrived_low_priority: arrived.low_priority,
            sent: *sent,
            waiting: (*waiting).into(),
            dropped: dropped.by_reason,
            dropped_low_priority: dropped.low_priority,
            tagged: *tagged,
            lost: lost.all,
            lost_low_priority: lost.low_priority,
        }
    }

    fn connection(&self, hop: Hop) -> &Connection {
        &self.switches[hop.switch as usize].connections[hop.connection as usize]
    }

    /// The losses of a VC on a link; the switch or far end after the link has them.
    fn loss(&self, vc: usize, hop: usize) -> Option<&Loss> {
        let vc = &self.vcs[vc];
        vc.hops.get(hop + 1).map_or(vc.loss.as_ref(), |next| self.connection(*next).loss.as_ref())
    }

    fn port(&self, link: LinkId) -> &Port {
        let Link { switch, port, .. } = self.links[link.index()];
        &self.switches[switch as usize].ports[port as usize]
    }

    /// Counters of a link, for all its VCs together.
    #[must_use]
    pub fn link_stats(&self, link: LinkId) -> LinkStats {
        let mut stats = LinkStats::default();
        for (vc, hop) in &self.links[link.index()].crossed_by {
            stats.cells.add(&self.hop(*vc as usize, *hop as usize));
            stats.good_cells += self.vcs[*vc as usize].stats.whole.cells;
        }
        stats.peak = self.port(link).queues.iter().map(|queue| queue.peak).max().unwrap_or(0).into();
        stats
    }

    /// Cells whose transmission on a link has begun.
    #[must_use]
    pub fn sent(&self, link: LinkId) -> u64 {
        let crossed_by = self.links[link.index()].crossed_by.iter();
        crossed_by.map(|(vc, hop)| self.connection(self.vcs[*vc as usize].hops[*hop as usize]).sent).sum()
    }

    /// Bits that a link has sent, those of the cell in transmission included.
    #[must_use]
    pub fn bits_sent(&self, link: LinkId) -> u64 {
        let Port { free, interval, .. } = self.port(link);
        let rest = free.since(Moment::end_of(self.now)).parts_of(*interval, CELL_BITS);
        self.sent(link) * CELL_BITS - rest
    }

    /// Cells in all queues at the port of a link.
    #[must_use]
    pub fn waiting(&self, link: LinkId) -> u64 {
        self.port(link).waiting.into()
    }

    /// Counters of the policer of a VC. `None`: it has none.
    #[must_use]
    pub fn conformance(&self, vc: VcId) -> Option<Conformance> {
        self.vcs[vc.index()].hops.iter().find_map(|hop| {
            let policer = self.connection(*hop).policer?;
            Some(self.switches[hop.switch as usize].policers[policer as usize].counts())
        })
    }

    /// Counters of the policer of a VP. `None`: it has none.
    #[must_use]
    pub fn path_conformance(&self, vp: VpId) -> Option<Conformance> {
        let (switch, policer) = self.paths[vp.index()]?;
        Some(self.switches[switch as usize].policers[policer as usize].counts())
    }

    /// Counters of all cells. Walks through all cells inside the network.
    #[must_use]
    pub fn stats(&self) -> NetworkStats {
        let in_flight = &self.in_flight;
        let mut stats = NetworkStats { frames_inside: in_flight.frames.live(), ..NetworkStats::default() };
        for vc in &self.vcs {
            stats.offered += vc.stats.offered.cells + vc.abr.rm_returned;
            stats.arrived += vc.stats.arrived_cells + vc.abr.rm_arrived;
            stats.lost += vc.loss.as_ref().map_or(0, |loss| loss.lost.all);
        }
        for (sender, _) in &self.senders {
            let own = sender.stats(self.now);
            stats.offered += own.rm_sent;
            stats.dropped += own.edge_dropped_cells;
            stats.inside += sender.cells();
        }
        for switch in &self.switches {
            for connection in &switch.connections {
                stats.dropped += connection.dropped.all();
                stats.lost += connection.loss.as_ref().map_or(0, |loss| loss.lost.all);
            }
            stats.inside += switch.ports.iter().map(|port| u64::from(port.waiting)).sum::<u64>();
        }
        stats.inside += in_flight.streams.iter().map(super::in_flight::Stream::cells).sum::<u64>();
        stats
    }
}

//! Counters of a network, up to [`Network::now`].
//!
//! A port has *sent* a cell once its transmission has begun; before, the cell waits, and after, it
//! is in flight. A transmission that starts within the present picosecond has not begun. Cells
//! inside the network are counted one by one, not by subtraction, so that *offered = arrived +
//! dropped + lost + inside* can fail.

use lastmile_units::{ByteCount, CellCount};

use super::frames::Frame;
use super::loss::Loss;
use super::{AbrStats, Hop, Link, LinkId, Network, VcId, VpId};
use crate::aal5::Reassembled;
use crate::cell::{Clp, Run};
use crate::connection::{CellCounts, Connection};
use crate::contract::policer::Conformance;
use crate::discard::CellDrop;
use crate::port::Port;
use crate::time::Moment;

/// Frames with their cells and the bytes of their packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameCount {
    /// Frames.
    pub frames: u64,
    /// Their cells.
    pub cells: u64,
    /// Bytes of their packets.
    pub bytes: u64,
}

impl FrameCount {
    #[inline]
    pub(super) fn add(&mut self, cells: u16, bytes: ByteCount) {
        self.frames += 1;
        self.cells += u64::from(cells);
        self.bytes += bytes.as_u64();
    }
}

/// A VC, from end to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VcStats {
    /// Frames offered.
    pub offered: FrameCount,
    /// Frames offered whose cells left the source with CLP = 1.
    pub offered_low_priority: FrameCount,
    /// Frames that arrived whole: goodput.
    pub whole: FrameCount,
    /// Whole frames whose cells left the source with CLP = 1.
    pub whole_low_priority: FrameCount,
    /// Cells that arrived.
    pub arrived_cells: u64,
    /// Cells that arrived with CLP = 1.
    pub arrived_low_priority_cells: u64,
    /// Cells that arrived and were discarded, since their frame was not whole: badput.
    pub bad_cells: u64,
    /// Times the far end discarded cells; two joined frames count once.
    pub damaged: u64,
}

impl VcStats {
    /// Counts cells of a frame that arrive, and the `outcome` if the last of them ends a frame.
    #[inline]
    pub(super) fn arrived(&mut self, run: &Run, outcome: Option<Reassembled>, frame: &Frame) {
        self.arrived_cells += u64::from(run.cells);
        self.arrived_low_priority_cells += run.low_priority_cells();
        match outcome {
            None => {}
            Some(Reassembled::Whole(cells)) => {
                self.whole.add(cells as u16, frame.bytes());
                if frame.clp == Clp::One {
                    self.whole_low_priority.add(cells as u16, frame.bytes());
                }
            }
            Some(Reassembled::Damaged(cells)) => {
                self.bad_cells += u64::from(cells);
                self.damaged += 1;
            }
        }
    }
}

/// A VC at one of its links, or all VCs of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HopStats {
    /// Cells that arrived at the port.
    pub arrived: u64,
    /// Cells that arrived with CLP = 1.
    pub arrived_low_priority: u64,
    /// Cells whose transmission began.
    pub sent: u64,
    /// Cells in the queue.
    pub waiting: u64,
    /// Cells dropped, by [`CellDrop::index`].
    pub dropped: [u64; CellDrop::ALL.len()],
    /// Cells dropped with CLP = 1, tagged here or earlier.
    pub dropped_low_priority: u64,
    /// Cells whose CLP a policer set.
    pub tagged: u64,
    /// Cells sent that the link lost; a loss counts when the cell would have arrived.
    pub lost: u64,
    /// Cells lost with CLP = 1.
    pub lost_low_priority: u64,
}

impl HopStats {
    /// Cells dropped for all reasons.
    #[must_use]
    pub fn dropped_cells(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Cells dropped for `reason`.
    #[must_use]
    pub const fn dropped_for(&self, reason: CellDrop) -> u64 {
        self.dropped[reason.index()]
    }

    fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.arrived_low_priority += other.arrived_low_priority;
        self.dropped_low_priority += other.dropped_low_priority;
        self.sent += other.sent;
        self.waiting += other.waiting;
        self.tagged += other.tagged;
        self.lost += other.lost;
        self.lost_low_priority += other.lost_low_priority;
        for (sum, cells) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += cells;
        }
    }
}

/// A link, for all its VCs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStats {
    /// Cells and their fate.
    pub cells: HopStats,
    /// Cells sent that belong to frames which have arrived whole at the far end of their VC.
    pub good_cells: u64,
    /// The largest backlog of one of its queues so far.
    pub peak: u64,
}

/// All cells of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkStats {
    /// Cells offered.
    pub offered: u64,
    /// Cells that arrived at the far end of their VC.
    pub arrived: u64,
    /// Cells dropped.
    pub dropped: u64,
    /// Cells lost on the wire.
    pub lost: u64,
    /// Cells in queues and in flight.
    pub inside: u64,
    /// Frames of which cells are inside.
    pub frames_inside: u64,
}

impl NetworkStats {
    /// True if every cell offered is accounted for.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.offered == self.arrived + self.dropped + self.lost + self.inside
    }
}

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

//! What a network counts, told for the time up to which it has gone.
//!
//! A cell is *sent* by a port once its transmission has begun; it waits before, and is on the wire after. Nothing is counted by what is
//! missing: what is inside is looked up cell by cell, so that *offered = arrived + dropped + inside* can fail.

use lastmile_units::{ByteCount, Instant};

use super::stage::Port;
use super::{LinkId, Network, VcId, VpId};
use crate::aal5::Reassembled;
use crate::discard::CellDrop;
use crate::policer::Conformance;
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
    /// What was offered.
    pub offered: FrameCount,
    /// Those of it whose cells left the source with CLP = 1.
    pub offered_low_priority: FrameCount,
    /// What arrived whole: goodput.
    pub whole: FrameCount,
    /// Those of it whose cells left the source with CLP = 1.
    pub whole_low_priority: FrameCount,
    /// Cells that arrived.
    pub arrived_cells: u64,
    /// Those of them with CLP = 1.
    pub arrived_low_priority_cells: u64,
    /// Cells that arrived and were thrown away, since their frame was not whole: badput.
    pub bad_cells: u64,
    /// How many times the far end threw cells away; two frames that were joined count once.
    pub damaged: u64,
}

impl VcStats {
    #[inline]
    pub(super) fn arrived(
        &mut self,
        cells: u16,
        low: u16,
        outcome: Option<Reassembled>,
        bytes: ByteCount,
        offered_low: bool,
    ) {
        self.arrived_cells += u64::from(cells);
        self.arrived_low_priority_cells += u64::from(low);
        match outcome {
            None => {}
            Some(Reassembled::Whole(cells)) => {
                self.whole.add(cells as u16, bytes);
                if offered_low {
                    self.whole_low_priority.add(cells as u16, bytes);
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
    /// Cells that came to the port.
    pub arrived: u64,
    /// Those of them that came with CLP = 1.
    pub arrived_low_priority: u64,
    /// Cells whose transmission began.
    pub sent: u64,
    /// Cells that wait.
    pub waiting: u64,
    /// Cells dropped, by [`CellDrop::index`].
    pub dropped: [u64; CellDrop::ALL.len()],
    /// Those of them with CLP = 1, tagged here or before.
    pub dropped_low_priority: u64,
    /// Cells whose CLP a policer set.
    pub tagged: u64,
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
        for (sum, cells) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += cells;
        }
    }
}

/// A link, all its VCs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStats {
    /// What came and what became of it.
    pub cells: HopStats,
    /// Cells sent that belong to frames which have arrived whole at the far end of their VC.
    pub good_cells: u64,
    /// The most cells that ever waited in one of its queues.
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
    /// Cells that wait or are on the wire.
    pub inside: u64,
    /// Frames of which cells are inside.
    pub frames_inside: u64,
}

impl NetworkStats {
    /// True if every cell offered is somewhere.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.offered == self.arrived + self.dropped + self.inside
    }
}

impl Network {
    /// How many VCs there are.
    #[must_use]
    pub fn vcs(&self) -> usize {
        self.vcs.len()
    }

    /// A VC, from end to end.
    #[must_use]
    pub fn vc_stats(&self, vc: VcId) -> VcStats {
        self.vcs[vc.index()].stats
    }

    /// A VC at the link that is its `hop`th, from 0. Walks through what is on the wire.
    #[must_use]
    pub fn hop_stats(&self, vc: VcId, hop: usize) -> HopStats {
        let (stage, label) = self.vcs[vc.index()].hops[hop];
        let connection = &self.stages[stage as usize].connections[label as usize];
        let waiting = self.vc_waiting(vc, hop);
        HopStats {
            arrived: connection.arrived,
            arrived_low_priority: connection.arrived_low,
            dropped_low_priority: connection.dropped_low,
            sent: connection.arrived - connection.dropped_cells() - waiting,
            waiting,
            dropped: connection.dropped,
            tagged: connection.tagged,
        }
    }

    /// A link, all its VCs together. Walks through what is on the wire, once for each VC.
    #[must_use]
    pub fn link_stats(&self, link: LinkId) -> LinkStats {
        let mut stats = LinkStats::default();
        let at = self.links[link.index()];
        for (index, vc) in self.vcs.iter().enumerate() {
            for (hop, &(stage, label)) in vc.hops.iter().enumerate() {
                let connection = &self.stages[stage as usize].connections[label as usize];
                if (stage, connection.port) == (at.stage, at.port) {
                    stats.cells.add(&self.hop_stats(VcId(index as u32), hop));
                    stats.good_cells += vc.stats.whole.cells;
                }
            }
        }
        stats.peak = match &self.stages[at.stage as usize].ports[at.port as usize] {
            Port::Fifo(port) => port.peak.into(),
            Port::Scheduled(port) => port.queues.iter().map(|queue| queue.peak).max().unwrap_or(0).into(),
        };
        stats
    }

    /// Cells that wait at the port of a link, in all its queues. Cheap: for samples against time.
    #[must_use]
    pub fn waiting(&self, link: LinkId) -> u64 {
        let at = self.links[link.index()];
        match &self.stages[at.stage as usize].ports[at.port as usize] {
            Port::Fifo(port) => port.waiting_at(self.moment()).into(),
            Port::Scheduled(port) => port.waiting.into(),
        }
    }

    /// Cells that wait in one queue of a link's port: of a class, or of the VC that is the nth of that link.
    #[must_use]
    pub fn queue_waiting(&self, link: LinkId, queue: usize) -> u64 {
        let at = self.links[link.index()];
        match &self.stages[at.stage as usize].ports[at.port as usize] {
            Port::Fifo(_) => self.waiting(link),
            Port::Scheduled(port) => port.queues[queue].waiting.into(),
        }
    }

    /// Cells of a VC that wait at the link that is its `hop`th, from 0. Walks through what is on the wire behind a FIFO.
    #[must_use]
    pub fn vc_waiting(&self, vc: VcId, hop: usize) -> u64 {
        let (stage, label) = self.vcs[vc.index()].hops[hop];
        let stage = &self.stages[stage as usize];
        let connection = &stage.connections[label as usize];
        let Port::Fifo(port) = &stage.ports[connection.port as usize] else {
            return connection.waiting.into();
        };
        // Those of them that will have begun later.
        let begun = self.moment().plus(port.transit);
        let runs = self.fabric.streams[connection.out as usize].runs().rev();
        let spacing = |class: u16| self.fabric.spacings[class as usize];
        let later = runs.map_while(|run| match run.cells_after(begun, spacing(run.class)) {
            0 => None,
            cells => Some((run.label, cells)),
        });
        later.filter(|(label, _)| *label == connection.label).map(|(_, cells)| u64::from(cells)).sum()
    }

    /// What the policer of a VC found. `None`: it has none.
    #[must_use]
    pub fn conformance(&self, vc: VcId) -> Option<Conformance> {
        let mut policed = self.vcs[vc.index()].hops.iter().filter_map(|&(stage, label)| {
            let stage = &self.stages[stage as usize];
            stage.policers.get(stage.connections[label as usize].policer as usize)
        });
        policed.next().map(crate::policer::Policer::counts)
    }

    /// What the policer of a VP found. `None`: it has none.
    #[must_use]
    pub fn path_conformance(&self, vp: VpId) -> Option<Conformance> {
        let (stage, policer) = self.paths[vp.index()]?;
        Some(self.stages[stage as usize].policers[policer as usize].counts())
    }

    /// All cells. Walks through all that is inside.
    #[must_use]
    pub fn stats(&self) -> NetworkStats {
        let mut stats = NetworkStats { frames_inside: self.fabric.frames.live(), ..NetworkStats::default() };
        for vc in &self.vcs {
            stats.offered += vc.stats.offered.cells;
            stats.arrived += vc.stats.arrived_cells;
        }
        for stage in &self.stages {
            stats.dropped += stage.connections.iter().map(super::connection::Connection::dropped_cells).sum::<u64>();
            for port in &stage.ports {
                // What waits in a FIFO is in its streams already.
                if let Port::Scheduled(port) = port {
                    stats.inside += u64::from(port.waiting);
                }
            }
        }
        let runs = self.fabric.streams.iter().flat_map(super::run::Stream::runs);
        stats.inside += runs.map(|run| u64::from(run.cells)).sum::<u64>();
        stats
    }

    /// The last moment of the picosecond up to which time has gone.
    fn moment(&self) -> Moment {
        last_moment(self.now)
    }
}

fn last_moment(instant: Instant) -> Moment {
    Moment::from_parts(instant.as_ps(), u32::MAX)
}

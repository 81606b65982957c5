//! What a network counts, told for the time up to which it has gone.
//!
//! A cell is *sent* by a port once its transmission has begun; it waits before, and is on the wire after. Nothing is counted by what is
//! missing: what is inside is looked up cell by cell, so that *offered = arrived + dropped + lost + inside* can fail.

use std::collections::BTreeMap;

use lastmile_units::{ByteCount, CellCount, Instant};

use super::exit::Port;
use super::wire::Wire;
use super::{AbrStats, Hop, LinkId, Network, VcId, VpId};
use crate::aal5::Reassembled;
use crate::discard::CellDrop;
use crate::policer::Conformance;
use crate::time::{Moment, Spacing};

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
    /// Cells sent that the link has lost: they would have come off it by now.
    pub lost: u64,
    /// Those of them with CLP = 1.
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

/// Cells, and those of them with CLP = 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cells {
    all: u64,
    low: u64,
}

impl Cells {
    pub(super) fn add(&mut self, cells: u16, low: bool) {
        self.all += u64::from(cells);
        self.low += if low { u64::from(cells) } else { 0 };
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
    /// Cells lost on the wire.
    pub lost: u64,
    /// Cells that wait or are on the wire.
    pub inside: u64,
    /// Frames of which cells are inside.
    pub frames_inside: u64,
}

impl NetworkStats {
    /// True if every cell offered is somewhere.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.offered == self.arrived + self.dropped + self.lost + self.inside
    }
}

/// Bits of a cell on the wire.
const CELL_BITS: u64 = CellCount::new(1).wire_bytes().bits();

impl Network {
    /// How many VCs there are.
    #[must_use]
    pub fn vcs(&self) -> usize {
        self.declared
    }

    /// The source of a VC of ABR. `None`: it is none.
    #[must_use]
    pub fn abr_stats(&self, vc: VcId) -> Option<AbrStats> {
        let sender = self.vcs[vc.index()].abr.sender?;
        Some(self.senders[sender as usize].0.stats(self.now))
    }

    /// A VC, from end to end.
    #[must_use]
    pub fn vc_stats(&self, vc: VcId) -> VcStats {
        self.vcs[vc.index()].stats
    }

    /// A VC at the link that is its `hop`th, from 0. Walks through what is on the wire; of many VCs [`Network::all_hop_stats`] does that
    /// once.
    #[must_use]
    pub fn hop_stats(&self, vc: VcId, hop: usize) -> HopStats {
        self.hop(vc.index(), hop, &mut |stream, lag, label| {
            self.later(stream, lag).get(&label).copied().unwrap_or_default()
        })
    }

    /// Every VC at each of its links.
    #[must_use]
    pub fn all_hop_stats(&self) -> Vec<Vec<HopStats>> {
        let mut later = self.looking_once();
        let vcs = self.vcs.iter().take(self.declared).enumerate();
        vcs.map(|(vc, state)| (0..state.hops.len()).map(|hop| self.hop(vc, hop, &mut later)).collect()).collect()
    }

    /// `later` tells how many cells of a label are at the end of a stream more than some span from now.
    fn hop(&self, vc: usize, hop: usize, later: &mut impl FnMut(u32, Spacing, u16) -> Cells) -> HopStats {
        let Hop { stage, label, past } = self.vcs[vc].hops[hop];
        if let Some(past) = past {
            let (joined, stream, label) = self.stream_past(vc, hop);
            let later = later(stream, past, label);
            let came = joined.all - later.all;
            let low = joined.low - later.low;
            return HopStats { arrived: came, arrived_low_priority: low, sent: came, ..HopStats::default() };
        }
        let stage = &self.stages[stage as usize];
        let connection = &stage.connections[label as usize];
        let waiting = match &stage.ports[connection.port as usize] {
            Port::Fifo(_) => later(connection.out, connection.transit, connection.label).all,
            Port::Scheduled(_) => connection.waiting.into(),
        };
        let wire = self.wire(vc, hop);
        HopStats {
            arrived: connection.arrived,
            arrived_low_priority: connection.arrived_low,
            dropped_low_priority: connection.lost.dropped_low,
            sent: connection.arrived - connection.dropped_cells() - waiting,
            waiting,
            dropped: connection.lost.dropped,
            tagged: connection.lost.tagged,
            lost: wire.map_or(0, |wire| wire.lost),
            lost_low_priority: wire.map_or(0, |wire| wire.lost_low),
        }
    }

    /// The link that is the `hop`th of a VC, as that finds it, if it loses cells: whoever stands at its far end knows.
    fn wire(&self, vc: usize, hop: usize) -> Option<&Wire> {
        let vc = &self.vcs[vc];
        match vc.hops.get(hop + 1) {
            Some(next) => self.stages[next.stage as usize].wires.get(next.label as usize)?.as_ref(),
            None => vc.wire.as_ref(),
        }
    }

    /// The stream that goes past a port that is left out: how many cells of the VC ever joined it, which it is, and their label in it.
    fn stream_past(&self, vc: usize, hop: usize) -> (Cells, u32, u16) {
        let vc = &self.vcs[vc];
        let Some(from) = vc.hops[..hop].iter().rfind(|hop| hop.past.is_none()) else {
            let offered = Cells { all: vc.stats.offered.cells, low: vc.stats.offered_low_priority.cells };
            return (offered, vc.source, vc.label);
        };
        let stage = &self.stages[from.stage as usize];
        let connection = &stage.connections[from.label as usize];
        let waiting = match &stage.ports[connection.port as usize] {
            // They are in the stream already.
            Port::Fifo(_) => Cells::default(),
            Port::Scheduled(port) => port.queues[connection.queue as usize].waiting_of(from.label),
        };
        let joined = Cells {
            all: connection.arrived - connection.dropped_cells() - waiting.all,
            low: connection.arrived_low + connection.lost.tagged - connection.lost.dropped_low - waiting.low,
        };
        (joined, connection.out, connection.label)
    }

    /// [`Self::later`] of a label, which looks at each stream once.
    fn looking_once(&self) -> impl FnMut(u32, Spacing, u16) -> Cells {
        let mut known: BTreeMap<(u32, Spacing), BTreeMap<u16, Cells>> = BTreeMap::new();
        move |stream, lag, label| {
            let cells = known.entry((stream, lag)).or_insert_with(|| self.later(stream, lag));
            cells.get(&label).copied().unwrap_or_default()
        }
    }

    /// Cells that are at the end of a stream more than `lag` from now, by label.
    fn later(&self, stream: u32, lag: Spacing) -> BTreeMap<u16, Cells> {
        let now = self.moment().plus(lag);
        let mut cells: BTreeMap<u16, Cells> = BTreeMap::new();
        self.fabric.streams[stream as usize].after(now, &self.fabric.spacings, |run, later| {
            cells.entry(run.label()).or_default().add(later, run.low());
        });
        cells
    }

    /// A link, all its VCs together. Walks through what is on the wire.
    #[must_use]
    pub fn link_stats(&self, link: LinkId) -> LinkStats {
        let mut stats = LinkStats::default();
        let at = &self.links[link.index()];
        let mut later = self.looking_once();
        for (vc, hop) in &at.crossed_by {
            stats.cells.add(&self.hop(*vc as usize, *hop as usize, &mut later));
            stats.good_cells += self.vcs[*vc as usize].stats.whole.cells;
        }
        stats.peak = match &self.stages[at.stage as usize].ports[at.port as usize] {
            Port::Fifo(port) => port.peak.into(),
            Port::Scheduled(port) => port.queues.iter().map(|queue| queue.peak).max().unwrap_or(0).into(),
        };
        stats
    }

    /// Cells whose transmission on a link has begun.
    #[must_use]
    pub fn sent(&self, link: LinkId) -> u64 {
        let at = &self.links[link.index()];
        let stage = &self.stages[at.stage as usize];
        let mut sent = 0;
        for (vc, hop) in &at.crossed_by {
            let Hop { label, past, .. } = self.vcs[*vc as usize].hops[*hop as usize];
            if past.is_some() {
                return self.link_stats(link).cells.sent;
            }
            let connection = &stage.connections[label as usize];
            sent += connection.arrived - connection.dropped_cells();
        }
        sent - self.waiting(link)
    }

    /// Bits that a link has sent by now: of the cell on its way out, as much as has left.
    #[must_use]
    pub fn bits_sent(&self, link: LinkId) -> u64 {
        let at = &self.links[link.index()];
        let now = self.moment();
        let (interval, ends) = match &self.stages[at.stage as usize].ports[at.port as usize] {
            // Those that wait start one interval behind one another.
            Port::Fifo(port) => (port.interval, port.free_before_waiting(now)),
            Port::Scheduled(port) => (port.interval, port.free),
        };
        let past = at.crossed_by.iter().filter_map(|(vc, hop)| self.begun_past(*vc as usize, *hop as usize, interval));
        let ends = past.map(|begun| begun.plus(interval)).max().unwrap_or(ends);
        self.sent(link) * CELL_BITS - ends.since(now).parts_of(interval, CELL_BITS)
    }

    /// When the cell of a VC began that goes past a port that is left out, and whose transmission there is not over.
    fn begun_past(&self, vc: usize, hop: usize, interval: Spacing) -> Option<Moment> {
        let past = self.vcs[vc].hops[hop].past?;
        let (_, stream, label) = self.stream_past(vc, hop);
        let now = self.moment();
        let over = now.plus(past).minus(interval);
        let stream = &self.fabric.streams[stream as usize];
        let begun = stream.first_after(over, &self.fabric.spacings, label)?.minus(past);
        (begun <= now).then_some(begun)
    }

    /// Cells that wait at the port of a link, in all its queues. Cheap: for samples against time.
    #[must_use]
    pub fn waiting(&self, link: LinkId) -> u64 {
        let at = &self.links[link.index()];
        match &self.stages[at.stage as usize].ports[at.port as usize] {
            Port::Fifo(port) => port.waiting_at(self.moment()).into(),
            Port::Scheduled(port) => port.waiting.into(),
        }
    }

    /// Cells that wait in one queue of a link's port: of a class, or of the VC that is the nth of that link.
    #[must_use]
    pub fn queue_waiting(&self, link: LinkId, queue: usize) -> u64 {
        let at = &self.links[link.index()];
        match &self.stages[at.stage as usize].ports[at.port as usize] {
            Port::Fifo(_) => self.waiting(link),
            Port::Scheduled(port) => port.queues[queue].waiting.into(),
        }
    }

    /// Cells of a VC that wait at the link that is its `hop`th, from 0. Walks through what is on the wire behind a FIFO.
    #[must_use]
    pub fn vc_waiting(&self, vc: VcId, hop: usize) -> u64 {
        self.hop_stats(vc, hop).waiting
    }

    /// What the policer of a VC found. `None`: it has none.
    #[must_use]
    pub fn conformance(&self, vc: VcId) -> Option<Conformance> {
        let mut policed = self.vcs[vc.index()].hops.iter().filter_map(|hop| {
            let stage = &self.stages[hop.stage as usize];
            stage.policers.get(stage.connections[hop.label as usize].policer as usize)
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
            stats.offered += vc.stats.offered.cells + vc.abr.rm[0];
            stats.arrived += vc.stats.arrived_cells + vc.abr.rm[1];
            stats.lost += vc.wire.as_ref().map_or(0, |wire| wire.lost);
        }
        for (sender, vc) in &self.senders {
            let own = sender.stats(self.now);
            stats.offered += own.rm_sent;
            stats.dropped += own.edge_dropped_cells;
            stats.inside += sender.cells();
            debug_assert_eq!(self.vcs[*vc as usize].abr.rm[0], 0, "counted by the sender");
        }
        for stage in &self.stages {
            stats.dropped += stage.connections.iter().map(super::connection::Connection::dropped_cells).sum::<u64>();
            stats.lost += stage.wires.iter().flatten().map(|wire| wire.lost).sum::<u64>();
            for port in &stage.ports {
                // What waits in a FIFO is in its streams already.
                if let Port::Scheduled(port) = port {
                    stats.inside += u64::from(port.waiting);
                }
            }
        }
        stats.inside += self.fabric.streams.iter().map(super::fabric::Stream::cells).sum::<u64>();
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

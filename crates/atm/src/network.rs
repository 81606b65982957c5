//! Networks of links, switches and virtual channels, cell by cell.
//!
//! A packet is offered to the VC that carries it, with the time; it leaves the network at the far end when its frame has arrived
//! whole, or where the last of it was lost. Who drives a network asks when something may leave ([`Network::next_event`]), lets it go on
//! until then ([`Network::advance`]) and takes what has left ([`Network::departures`]).
//!
//! There is no event for a cell. Ports are grouped to stages (a stage has one memory), and stages ordered so that what one sends only
//! comes to later ones. [`Network::advance`] goes through them once, each taking what came until that time. Where routes
//! form a ring there is no such order; then time goes in steps of the shortest delay by which something comes back, and in such a step nothing
//! can.

mod abr;
mod alone;
mod build;
mod bundle;
mod by_vc;
mod check;
mod connection;
mod earliest;
mod exit;
mod fabric;
mod fifo;
mod frames;
mod heads;
mod order;
mod passage;
mod queue;
mod ring;
mod run;
mod scheduled;
mod spec;
mod stage;
mod stats;
mod turns;
mod wire;

use lastmile_units::{ByteCount, Instant};

pub use abr::AbrStats;
pub use frames::{Departure, Fate};
pub use spec::{
    Abr, AbrPort, ClassSpec, LinkId, LinkSpec, NetworkError, NetworkSpec, NodeId, NodeSpec, QueueSpec, Queues, Upc,
    VcId, VcSpec, VpId, VpSpec,
};
pub use stats::{FrameCount, HopStats, LinkStats, NetworkStats, VcStats};

use crate::aal5::{Encapsulation, Reassembled, Reassembler};
use crate::time::{Moment, Spacing};
use abr::Sender;
use fabric::Fabric;
use run::{END, LOW, RM, Run};
use stage::Stage;
use wire::Wire;

/// A network at work.
#[derive(Debug)]
pub struct Network {
    now: Instant,
    vcs: Vec<Vc>,
    links: Vec<Link>,
    stages: Vec<Stage>,
    sinks: Vec<Sink>,
    /// Stages with a port that has a scheduler.
    scheduled: Vec<u32>,
    /// Stages in an order in which what one sends comes to later ones, but for rings.
    order: Vec<u32>,
    /// By how much less than this time may go on at once.
    look_ahead: u64,
    fabric: Fabric,
    /// By VP: stage and policer.
    paths: Vec<Option<(u32, u16)>>,
    /// Sources of ABR, with their VCs.
    senders: Vec<(Sender, u32)>,
    /// VCs that were asked for; behind them are those that carry RM cells back.
    declared: usize,
}

/// Cell loss priority of a packet's cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clp {
    /// CLP = 0: what a contract promises holds for these.
    #[default]
    Zero,
    /// CLP = 1: they go first where room is short.
    One,
}

/// Where a link's port is, and who crosses it: VCs, and the how manieth of their links it is.
#[derive(Clone, Debug)]
struct Link {
    stage: u32,
    port: u16,
    crossed_by: Vec<(u32, u16)>,
}

/// The far end of a link, for VCs that end there.
#[derive(Clone, Copy, Debug)]
struct Sink {
    /// What comes to it comes to nobody else.
    stream: u32,
    /// The link loses cells.
    loses: bool,
}

/// A VC at one of its links.
#[derive(Clone, Copy, Debug)]
struct Hop {
    stage: u32,
    /// What the stage knows the VC by.
    label: u16,
    /// For a port at which nothing ever waits, and which is left out ([`passage`]): from there to the end of the stream that goes past it.
    past: Option<Spacing>,
}

#[derive(Debug)]
struct Vc {
    encapsulation: Encapsulation,
    flags: u16,
    /// The stream to its first stage.
    source: u32,
    /// The spacing of its cells there.
    class: u16,
    /// What the first stage knows it by.
    label: u16,
    /// From the source to that stage: past ports at which nothing waits.
    lead: Spacing,
    /// When the next cell may leave the source.
    free: Moment,
    hops: Vec<Hop>,
    /// The link to the far end, if that loses cells.
    wire: Option<Wire>,
    far_end: Reassembler,
    stats: VcStats,
    abr: AbrEnd,
}

/// What a VC has to do with ABR.
#[derive(Clone, Copy, Debug, Default)]
struct AbrEnd {
    /// Its source; of a VC that carries RM cells back, the source to which.
    sender: Option<u32>,
    /// The VC that carries its RM cells back.
    back: Option<u32>,
    /// The last data cell that arrived was marked.
    efci: bool,
    /// RM cells that left the source, and that arrived.
    rm: [u64; 2],
}

impl Network {
    /// How far time has gone.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Hands a packet of `bytes` to the source of `vc`, which makes cells of it behind those of earlier packets. `packet` says in
    /// [`Departure::packet`] which it was, and means nothing here. `now` is not before [`Network::now`] nor before an earlier
    /// offer to the same VC. Its cells have the loss priority of the VC ([`VcSpec::low_priority`]).
    ///
    /// # Errors
    /// [`NetworkError::PacketTooLarge`] above 65 527 bytes.
    ///
    /// # Panics
    /// If `now` is before [`Network::now`]: what would have come of it may have left already.
    pub fn offer(&mut self, now: Instant, vc: VcId, bytes: ByteCount, packet: u64) -> Result<(), NetworkError> {
        self.offer_marked(now, vc, bytes, Clp::Zero, packet)
    }

    /// The same of a packet whose cells leave the source with this loss priority, or with CLP = 1 because all of the VC do.
    ///
    /// # Errors
    /// [`NetworkError::PacketTooLarge`] above 65 527 bytes.
    ///
    /// # Panics
    /// If `now` is before [`Network::now`]: what would have come of it may have left already.
    pub fn offer_marked(
        &mut self,
        now: Instant,
        vc: VcId,
        bytes: ByteCount,
        clp: Clp,
        packet: u64,
    ) -> Result<(), NetworkError> {
        assert!(now >= self.now, "offered at {now}, when time has gone to {}", self.now);
        let state = &mut self.vcs[vc.index()];
        let cells = state.encapsulation.cells(bytes).ok_or(NetworkError::PacketTooLarge { bytes })?;
        let fabric = &mut self.fabric;
        let flags = if clp == Clp::One { state.flags | LOW } else { state.flags };
        let low = flags & LOW != 0;
        let frame = fabric.frames.add(vc.0, packet, bytes, cells, low);
        state.stats.offered.add(cells, bytes);
        if low {
            state.stats.offered_low_priority.add(cells, bytes);
        }
        if let Some(sender) = state.abr.sender {
            self.senders[sender as usize].0.offer(now, frame, (bytes, cells), flags);
            return Ok(());
        }
        let start = state.free.max(Moment::at(now));
        let spacing = fabric.spacings[state.class as usize];
        state.free = start.plus(spacing.times(cells.into()));
        let at = start.plus(state.lead);
        if fabric.trains {
            fabric.push(state.source, Run::new(at, frame, state.label, cells, state.class, flags | END));
        } else {
            fabric.push_cells(state.source, Run::new(at, frame, state.label, 1, state.class, flags), cells);
        }
        Ok(())
    }

    /// Before when nothing arrives: a time after [`Network::now`]. Something may arrive then, or later. `None`: nothing will
    /// unless something is offered.
    ///
    /// May change after `offer` and `advance`. To go on in such steps comes to every arrival at its very time.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        if self.fabric.frames.any_gone() {
            return Some(self.now);
        }
        let streams = self.fabric.bounds.first();
        let waiting = self.scheduled.iter().filter_map(|stage| self.stages[*stage as usize].bound());
        let waiting = waiting.min().unwrap_or(u64::MAX);
        let remaining = |vc: &Vc| self.fabric.streams[vc.source as usize].remaining();
        let senders =
            self.senders.iter().map(|(sender, vc)| sender.bound(self.now, remaining(&self.vcs[*vc as usize])));
        let bound = streams.min(waiting).min(senders.min().unwrap_or(u64::MAX));
        (bound < u64::MAX).then(|| Instant::from_ps(bound.max(self.now.as_ps())))
    }

    /// Lets time go on: all that happens in picosecond `until` or before happens. Nothing if that is past.
    pub fn advance(&mut self, until: Instant) {
        let until = until.as_ps();
        loop {
            let senders = self.senders.iter().map(|(sender, _)| sender.next()).min().unwrap_or(u64::MAX);
            let next = self.fabric.next.first().min(senders);
            if next > until || next == u64::MAX {
                break;
            }
            let step = until.min(next.saturating_add(self.look_ahead - 1));
            if !self.senders.is_empty() {
                self.go_on_abr(step);
            }
            let mut place = 0;
            while let Some(due) = self.fabric.next.due(step, place) {
                match self.order.get(due) {
                    Some(stage) => self.stages[*stage as usize].process(due, step, &mut self.fabric),
                    None => self.arrive(due - self.order.len(), step),
                }
                place = due + 1;
            }
            // Nothing comes to those that have had their turn, but in a ring.
            if step == until && self.look_ahead == u64::MAX {
                break;
            }
        }
        self.now = self.now.max(Instant::from_ps(until));
    }

    /// Appends what has left since the last call to `into`: in order of time; of one picosecond, in that of VCs and offers.
    pub fn departures(&mut self, into: &mut Vec<Departure>) {
        self.fabric.frames.take_gone(into);
    }

    /// What comes to far ends by `until` came from earlier steps. RM cells among it change rates, so senders come after it.
    fn go_on_abr(&mut self, until: u64) {
        let mut place = self.order.len();
        while let Some(due) = self.fabric.next.due(until, place) {
            self.arrive(due - self.order.len(), until);
            place = due + 1;
        }
        for (sender, _) in &mut self.senders {
            sender.go_on(Moment::from_parts(until, u32::MAX), &mut self.fabric);
        }
    }

    /// An RM cell is at the far end: turned round, or heeded.
    fn arrive_rm(&mut self, run: Run) {
        let end = &mut self.vcs[run.label() as usize].abr;
        end.rm[1] += 1;
        let fabric = &mut self.fabric;
        match (end.back, end.sender) {
            (Some(back), _) => {
                fabric.rms.get_mut(run.frame).ci |= core::mem::take(&mut end.efci);
                let back = &mut self.vcs[back as usize];
                back.abr.rm[0] += 1;
                fabric.push(back.source, Run::new(run.at(), run.frame, back.label, 1, 0, RM));
            }
            (None, Some(sender)) => {
                let rm = fabric.rms.remove(run.frame);
                self.senders[sender as usize].0.feedback(run.at(), &rm, fabric);
            }
            (None, None) => unreachable!("RM cells are on VCs of ABR"),
        }
    }

    /// Takes what comes to the far end of a link.
    fn arrive(&mut self, sink: usize, until: u64) {
        let Sink { stream, loses } = self.sinks[sink];
        if loses {
            self.cross_wires(stream, until);
        } else {
            while let Some((run, last)) = self.fabric.gather(stream, until) {
                self.arrive_run(run, last);
            }
        }
        let next = self.fabric.streams[stream as usize].front_ps().unwrap_or(u64::MAX);
        self.fabric.next.set(self.order.len() + sink, next);
    }

    /// The same of a link that loses cells.
    fn cross_wires(&mut self, stream: u32, until: u64) {
        while let Some(front) = self.fabric.streams[stream as usize].front()
            && front.ps() <= until
        {
            let wire = self.vcs[front.label() as usize].wire.as_mut().expect("its last link loses cells");
            let (most, passes) = wire.next(front.cells());
            let (run, last) = self.fabric.take_some(stream, until, most);
            if passes {
                wire.pass(run.cells());
                self.arrive_run(run, last);
            } else {
                wire.lose(&run, last, &mut self.fabric);
            }
        }
    }

    /// Cells of one frame arrive, alike, the last of them in picosecond `last`.
    #[inline(always)]
    fn arrive_run(&mut self, run: Run, last: u64) {
        if run.rm() {
            self.arrive_rm(run);
            return;
        }
        let vc = &mut self.vcs[run.label() as usize];
        vc.abr.efci = run.efci();
        let frames = &mut self.fabric.frames;
        let frame = frames.get(run.frame);
        let low = if run.low() { run.cells() } else { 0 };
        let (bytes, offered_low) = (frame.bytes(), frame.low_priority);
        let outcome = vc.far_end.take(frame.key(), run.cells(), run.ends(), frame.cells);
        vc.stats.arrived(run.cells(), low, outcome, bytes, offered_low);
        let whole = matches!(outcome, Some(Reassembled::Whole(_)));
        frames.end_cells(run.frame, run.cells(), last, whole);
    }
}

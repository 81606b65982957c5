//! Networks of links, switches and virtual channels, cell by cell.
//!
//! A packet is offered to a VC at a time, and leaves the network when its frame has arrived whole
//! at the far end of the VC, or when the last of its cells is lost. The caller asks when a frame
//! may leave ([`Network::next_event`]), lets time advance to then ([`Network::advance`]) and takes
//! what has left ([`Network::departures`]).
//!
//! Cells have no events. A switch handles all arrivals up to a time in one call. Switches are in an
//! order in which each sends only to later ones, so one pass over them is enough. Routes that form
//! a ring have no such order: there time advances in steps of the shortest delay of a link that
//! leads back, within which nothing can return.

mod build;
mod check;
mod counters;
mod error;
pub(crate) mod frames;
pub(crate) mod in_flight;
pub(crate) mod loss;
mod order;
mod spec;
mod stats;
pub(crate) mod tournament;
mod unloaded;

use lastmile_units::{ByteCount, Duration, Instant};

pub use error::NetworkError;
pub use frames::{Departure, Fate};
pub use spec::{
    Abr, AbrPort, ClassSpec, LinkId, LinkSpec, NetworkSpec, NodeId, NodeSpec, QueueSpec, Queues, Upc, VcId, VcSpec,
    VpId, VpSpec,
};
pub use stats::{FrameCount, HopStats, LinkStats, NetworkStats, VcStats};

pub use crate::abr::sender::AbrStats;
pub use crate::cell::Clp;

use crate::aal5::{Encapsulation, Reassembled, Reassembler};
use crate::abr::sender::Sender;
use crate::cell::{Header, Payload, Run};
use crate::switch::Switch;
use crate::time::{Moment, Spacing};
use in_flight::InFlight;
use loss::Loss;
use tournament::earlier;

/// A network in operation.
#[derive(Debug)]
pub struct Network {
    now: Instant,
    vcs: Vec<Vc>,
    links: Vec<Link>,
    /// In an order in which each sends only to later ones, except in rings.
    switches: Vec<Switch>,
    /// By far end: its stream.
    far_ends: Vec<u32>,
    /// Within this span nothing returns to a switch from a later one. `None`: never.
    look_ahead: Option<Duration>,
    in_flight: InFlight,
    /// By VP: switch and policer.
    paths: Vec<Option<(u32, u16)>>,
    /// Sources of ABR, with their VCs.
    senders: Vec<(Sender, u32)>,
    /// VCs of the description. The VCs after them carry RM cells back.
    declared: usize,
}

/// The port of a link, and the VCs that cross it.
#[derive(Clone, Debug)]
struct Link {
    switch: u32,
    port: u16,
    /// VC, and the index of the link in its route.
    crossed_by: Vec<(u32, u16)>,
}

/// A VC at one of its links.
#[derive(Clone, Copy, Debug)]
struct Hop {
    switch: u32,
    /// Index of the VC among the connections of the switch.
    connection: u16,
}

#[derive(Debug)]
struct Vc {
    encapsulation: Encapsulation,
    clp: Clp,
    /// The stream to its first switch.
    source: u32,
    /// The spacing of cells at the source.
    spacing: Spacing,
    /// The next cell may leave the source at this time.
    free: Moment,
    hops: Vec<Hop>,
    /// The link to the far end, if it loses cells.
    loss: Option<Loss>,
    far_end: Reassembler,
    stats: VcStats,
    abr: AbrEnd,
}

/// The ends of a VC, for ABR.
#[derive(Clone, Copy, Debug, Default)]
struct AbrEnd {
    /// The source of the VC; for a VC that carries RM cells back, the source that receives them.
    sender: Option<u32>,
    /// The VC that carries RM cells back.
    back: Option<u32>,
    /// EFCI of the last data cell that arrived.
    efci: bool,
    /// RM cells that the destination returned to the network.
    rm_returned: u64,
    /// RM cells that arrived.
    rm_arrived: u64,
}

impl Network {
    /// The time up to which the network has advanced.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Offers a packet of `bytes` to the source of `vc`, whose cells follow those of earlier
    /// packets with the loss priority of the VC ([`VcSpec::low_priority`]). [`Departure::packet`]
    /// returns `packet`, which the network does not interpret. `now` is not before [`Network::now`]
    /// nor before an earlier offer to the same VC.
    ///
    /// # Errors
    /// [`NetworkError::PacketTooLarge`] above 65 527 bytes.
    ///
    /// # Panics
    /// If `now` is before [`Network::now`].
    pub fn offer(&mut self, now: Instant, vc: VcId, bytes: ByteCount, packet: u64) -> Result<(), NetworkError> {
        self.offer_marked(now, vc, bytes, Clp::Zero, packet)
    }

    /// Offers a packet whose cells leave the source with this loss priority, or with CLP = 1 if
    /// those of the VC do. See
    /// [`Network::offer`].
    ///
    /// # Errors
    /// [`NetworkError::PacketTooLarge`] above 65 527 bytes.
    ///
    /// # Panics
    /// If `now` is before [`Network::now`].
    pub fn offer_marked(
        &mut self,
        now: Instant,
        vc: VcId,
        bytes: ByteCount,
        clp: Clp,
        packet: u64,
    ) -> Result<(), NetworkError> {
        assert!(now >= self.now, "offered at {now}, after the network advanced to {}", self.now);
        let state = &mut self.vcs[vc.index()];
        let cells = state.encapsulation.cells(bytes).ok_or(NetworkError::PacketTooLarge { bytes })?;
        let in_flight = &mut self.in_flight;
        let clp = if state.clp == Clp::One { Clp::One } else { clp };
        let frame = in_flight.frames.add(vc.0, packet, bytes, cells, clp);
        state.stats.offered.add(cells, bytes);
        if clp == Clp::One {
            state.stats.offered_low_priority.add(cells, bytes);
        }
        if let Some(sender) = state.abr.sender {
            self.senders[sender as usize].0.offer(now, frame, (bytes, cells), clp);
            return Ok(());
        }
        let (at, spacing) = (state.free.max(Moment::at(now)), state.spacing);
        state.free = at.plus(spacing.times(cells.into()));
        let header = Header { payload: Payload::Frame(frame), clp, efci: false, last: true };
        let run = Run { at, spacing, header, vc: state.hops[0].connection, cells };
        if in_flight.trains {
            in_flight.push(state.source, run);
        } else {
            in_flight.push_cells(state.source, run);
        }
        Ok(())
    }

    /// A time not before [`Network::now`] and not after the next departure. There may be no
    /// departure at that time. `None`: nothing leaves unless something is offered.
    ///
    /// `offer` and `advance` may change it. A caller that advances to each such time sees every
    /// frame that arrives at the very time of its arrival.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        if self.in_flight.frames.has_departures() {
            return Some(self.now);
        }
        let onward = |vc: u32| self.in_flight.streams[self.vcs[vc as usize].source as usize].onward.duration();
        let senders = self.senders.iter().filter_map(|(sender, vc)| sender.bound(self.now, onward(*vc)));
        Some(earlier(self.in_flight.bounds.first(), senders.min())?.max(self.now))
    }

    /// Advances time: all happens that happens in picosecond `until` or earlier. Does nothing if
    /// that is past.
    pub fn advance(&mut self, until: Instant) {
        loop {
            let senders = self.senders.iter().filter_map(|(sender, _)| sender.next()).min();
            let Some(next) = earlier(self.in_flight.next.first(), senders).filter(|next| *next <= until) else { break };
            let step = self
                .look_ahead
                .map_or(until, |span| until.min(next.saturating_add(span.saturating_sub(Duration::from_ps(1)))));
            self.advance_senders(step);
            let mut index = 0;
            while let Some(due) = self.in_flight.next.due(step, index) {
                match self.switches.get_mut(due) {
                    Some(switch) => switch.advance(due, step, &mut self.in_flight),
                    None => self.arrive(due - self.switches.len(), step),
                }
                index = due + 1;
            }
        }
        self.now = self.now.max(until);
    }

    /// Appends what has left since the last call to `into`, in order of time; of one picosecond, in
    /// the order of VCs and then of offers.
    pub fn departures(&mut self, into: &mut Vec<Departure>) {
        self.in_flight.frames.take_departures(into);
    }

    /// Advances the sources of ABR. Cells that arrive at far ends by `until` left in earlier steps;
    /// RM cells among them change rates, so they arrive first.
    fn advance_senders(&mut self, until: Instant) {
        if self.senders.is_empty() {
            return;
        }
        let mut index = self.switches.len();
        while let Some(due) = self.in_flight.next.due(until, index) {
            self.arrive(due - self.switches.len(), until);
            index = due + 1;
        }
        for (sender, _) in &mut self.senders {
            sender.advance(Moment::end_of(until), &mut self.in_flight);
        }
    }

    /// Takes the cells that arrive at a far end.
    fn arrive(&mut self, far_end: usize, until: Instant) {
        let stream = self.far_ends[far_end];
        while let Some(run) = self.in_flight.take_until(stream, until) {
            let mut rest = Some(run);
            while let Some(run) = rest {
                let vc = &mut self.vcs[run.vc as usize];
                let (arrived, others) = loss::cross(&mut vc.loss, run, &mut self.in_flight);
                match arrived.map(|run| (run, run.header.payload)) {
                    Some((run, Payload::Frame(frame))) => self.arrive_run(&run, frame),
                    Some((run, Payload::Rm(rm))) => self.arrive_rm(&run, rm),
                    None => {}
                }
                rest = others;
            }
        }
        let next = self.in_flight.streams[stream as usize].next();
        self.in_flight.next.set(self.switches.len() + far_end, next);
    }

    /// Cells of a frame arrive at the far end.
    #[inline]
    fn arrive_run(&mut self, run: &Run, slot: u32) {
        let vc = &mut self.vcs[run.vc as usize];
        vc.abr.efci = run.header.efci;
        let frames = &mut self.in_flight.frames;
        let frame = frames.get(slot);
        let outcome = vc.far_end.take(frame.key(), run.cells, run.header.last, frame.cells);
        vc.stats.arrived(run, outcome, frame);
        let whole = matches!(outcome, Some(Reassembled::Whole(_)));
        frames.end_cells(slot, run.cells, run.last_at().instant(), whole);
    }

    /// An RM cell arrives: the destination returns it, the source obeys it.
    fn arrive_rm(&mut self, cell: &Run, rm: u32) {
        let end = &mut self.vcs[cell.vc as usize].abr;
        end.rm_arrived += 1;
        let in_flight = &mut self.in_flight;
        match (end.back, end.sender) {
            (Some(back), _) => {
                in_flight.rm_cells.get_mut(rm).ci |= core::mem::take(&mut end.efci);
                let back = &mut self.vcs[back as usize];
                back.abr.rm_returned += 1;
                // A policer may have tagged it on its way.
                let header = Header { clp: Clp::Zero, ..cell.header };
                in_flight.push(back.source, Run::cell(cell.at, back.hops[0].connection, header));
            }
            (None, Some(sender)) => {
                let rm = in_flight.rm_cells.remove(rm);
                self.senders[sender as usize].0.feedback(cell.at, &rm, in_flight);
            }
            (None, None) => unreachable!("RM cells are on VCs of ABR"),
        }
    }
}

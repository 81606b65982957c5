//! ABR in a network: senders that wait for their rate, RM cells on their way, and ports that watch and answer.
//!
//! A source of ABR is told how fast it may send by cells that come back; so it cannot say before when its cells go, as others do. It keeps its packets
//! (the buffer of the edge device) and sends cell by cell. RM cells go back on a channel of their own, by way of the same nodes; all ports of a node are one
//! stage then, so that a cell that goes back finds the port that it tells of. Time goes in steps of the shortest link, within which
//! nothing can come back; cells are not joined to trains.

use std::collections::VecDeque;

use lastmile_units::{ByteCount, Instant};

use super::fabric::Fabric;
use super::run::{END, RM, Run};
use crate::abr::erica::{self, Erica};
use crate::abr::source::Source;
use crate::abr::{Parameters, Rm};
use crate::discard::CellDrop;
use crate::time::{Moment, Spacing};

/// RM cells on their way.
#[derive(Debug, Default)]
pub(super) struct Rms {
    slots: Vec<Rm>,
    free: Vec<u32>,
}

impl Rms {
    fn add(&mut self, rm: Rm) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = rm;
            return slot;
        }
        self.slots.push(rm);
        (self.slots.len() - 1) as u32
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Rm {
        &mut self.slots[slot as usize]
    }

    pub(super) fn remove(&mut self, slot: u32) -> Rm {
        self.free.push(slot);
        self.slots[slot as usize]
    }
}

/// A VC of ABR, as its source has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AbrStats {
    /// ACR now, bit/s.
    pub acr_bps: u64,
    /// Mean of ACR over time, bit/s.
    pub acr_mean_bps: u64,
    /// Least ACR, bit/s.
    pub acr_min_bps: u64,
    /// Largest ACR, bit/s.
    pub acr_max_bps: u64,
    /// RM cells sent.
    pub rm_sent: u64,
    /// RM cells that came back.
    pub rm_returned: u64,
    /// Those of them with CI: somebody was congested.
    pub rm_congested: u64,
    /// Bytes of packets that wait at the source: the queue of the edge device.
    pub edge_bytes: u64,
    /// The most that ever waited.
    pub edge_peak_bytes: u64,
    /// Packets for which there was no room.
    pub edge_dropped: u64,
    /// Cells that those would have been.
    pub edge_dropped_cells: u64,
}

/// A packet that waits for the rate of its source.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: Moment,
    frame: u32,
    bytes: u64,
    cells: u16,
    flags: u16,
}

/// The source of a VC of ABR.
#[derive(Debug)]
pub(super) struct Sender {
    source: Source,
    /// The stream to the first stage, and what that knows the VC by.
    stream: u32,
    label: u16,
    /// From one cell to the next at PCR.
    peak: Spacing,
    /// Bytes that may wait.
    limit: Option<u64>,
    /// Offered, and not yet there.
    coming: VecDeque<Waiting>,
    queue: VecDeque<Waiting>,
    /// When the last cell went.
    last: Option<Moment>,
    /// The next goes no earlier: since then there is something to send, or ACR as it is.
    floor: Moment,
    stats: AbrStats,
    /// Sum of ACR times picoseconds, up to when.
    area: u128,
    area_until: u64,
}

impl Sender {
    pub(super) fn new(parameters: &Parameters, limit: Option<ByteCount>, stream: u32, label: u16) -> Self {
        let source = Source::new(parameters);
        let acr = source.acr();
        Self {
            stats: AbrStats { acr_bps: acr, acr_min_bps: acr, acr_max_bps: acr, ..AbrStats::default() },
            source,
            stream,
            label,
            peak: Spacing::of_cell(parameters.pcr),
            limit: limit.map(ByteCount::as_u64),
            coming: VecDeque::new(),
            queue: VecDeque::new(),
            last: None,
            floor: Moment::default(),
            area: 0,
            area_until: 0,
        }
    }

    /// A packet comes, now or later.
    pub(super) fn offer(&mut self, at: Instant, frame: u32, (bytes, cells): (ByteCount, u16), flags: u16) {
        self.coming.push_back(Waiting { at: Moment::at(at), frame, bytes: bytes.as_u64(), cells, flags });
    }

    /// The picosecond in which something happens here next, without RM cells from elsewhere; `u64::MAX` for never.
    pub(super) fn next(&self) -> u64 {
        let coming = self.coming.front().map_or(u64::MAX, |packet| packet.at.ps());
        coming.min(self.due().map_or(u64::MAX, Moment::ps))
    }

    /// Before when none of its packets leaves the network, `remaining` picoseconds behind the source at the least. All that was due by `now` is
    /// done; RM cells may raise the rate at any time, to PCR at most.
    pub(super) fn bound(&self, now: Instant, remaining: u64) -> u64 {
        let coming = self.coming.front();
        let dropped = coming.filter(|_| self.limit.is_some()).map_or(u64::MAX, |packet| packet.at.ps());
        let Some(packet) = self.queue.front().or(coming) else { return u64::MAX };
        let free = self.last.map_or(0, |last| last.plus(self.peak).ps());
        let first = packet.at.ps().max(free).max(now.as_ps().saturating_add(1));
        let last = first.saturating_add(self.peak.times(u64::from(packet.cells) - 1).ps());
        dropped.min(last.saturating_add(remaining))
    }

    fn due(&self) -> Option<Moment> {
        if self.queue.is_empty() {
            return None;
        }
        Some(self.last.map_or(self.floor, |last| self.floor.max(last.plus(self.source.spacing()))))
    }

    /// Does all that is due by `until`.
    pub(super) fn go_on(&mut self, until: Moment, fabric: &mut Fabric) {
        loop {
            let due = self.due();
            if let Some(packet) = self.coming.front().copied()
                && packet.at <= until
                && due.is_none_or(|due| packet.at <= due)
            {
                self.coming.pop_front();
                self.accept(packet, fabric);
                continue;
            }
            match due {
                Some(due) if due <= until => self.send(due, fabric),
                _ => return,
            }
        }
    }

    fn accept(&mut self, packet: Waiting, fabric: &mut Fabric) {
        let stats = &mut self.stats;
        if self.limit.is_some_and(|limit| stats.edge_bytes + packet.bytes > limit) {
            stats.edge_dropped += 1;
            stats.edge_dropped_cells += u64::from(packet.cells);
            fabric.frames.drop_cells(packet.frame, packet.cells, CellDrop::EdgeFull, [packet.at.ps(); 2]);
            return;
        }
        if self.queue.is_empty() {
            self.floor = self.floor.max(packet.at);
        }
        stats.edge_bytes += packet.bytes;
        stats.edge_peak_bytes = stats.edge_peak_bytes.max(stats.edge_bytes);
        self.queue.push_back(packet);
    }

    fn send(&mut self, at: Moment, fabric: &mut Fabric) {
        self.last = Some(at);
        let before = self.source.acr();
        if let Some(rm) = self.source.send(at) {
            self.stats.rm_sent += 1;
            self.account(at, before);
            let slot = fabric.rms.add(rm);
            fabric.push(self.stream, Run::new(at, slot, self.label, 1, 0, RM));
            return;
        }
        let packet = self.queue.front_mut().expect("something is due");
        packet.cells -= 1;
        let (frame, flags) = (packet.frame, packet.flags | if packet.cells == 0 { END } else { 0 });
        if packet.cells == 0 {
            self.stats.edge_bytes -= packet.bytes;
            self.queue.pop_front();
        }
        fabric.push(self.stream, Run::new(at, frame, self.label, 1, 0, flags));
    }

    /// An RM cell is back.
    pub(super) fn feedback(&mut self, at: Moment, rm: &Rm, fabric: &mut Fabric) {
        self.go_on(at, fabric);
        let before = self.source.acr();
        self.source.feedback(rm);
        self.stats.rm_returned += 1;
        self.stats.rm_congested += u64::from(rm.ci);
        self.account(at, before);
        self.floor = self.floor.max(at);
    }

    /// ACR has been `before` up to `at`.
    fn account(&mut self, at: Moment, before: u64) {
        self.area += u128::from(before) * u128::from(at.ps().saturating_sub(self.area_until));
        self.area_until = self.area_until.max(at.ps());
        let (acr, stats) = (self.source.acr(), &mut self.stats);
        stats.acr_bps = acr;
        (stats.acr_min_bps, stats.acr_max_bps) = (stats.acr_min_bps.min(acr), stats.acr_max_bps.max(acr));
    }

    pub(super) fn stats(&self, now: Instant) -> AbrStats {
        let rest = now.as_ps().saturating_sub(self.area_until);
        let area = self.area + u128::from(self.stats.acr_bps) * u128::from(rest);
        let mean = area.checked_div(now.as_ps().into()).map_or(self.stats.acr_bps, |mean| mean as u64);
        AbrStats { acr_mean_bps: mean, ..self.stats }
    }

    /// Cells of packets that wait or are still to come.
    pub(super) fn cells(&self) -> u64 {
        self.queue.iter().chain(&self.coming).map(|packet| u64::from(packet.cells)).sum()
    }
}

/// What a port does for VCs of ABR.
#[derive(Debug)]
pub(super) enum Control {
    /// Marks cells that find so many in their queue.
    Efci(u32),
    /// Measures, and answers RM cells.
    Erica(Box<Erica>),
}

/// What a stage remembers of a VC for ABR, by label.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// Its cells are ABR's, on their way there.
    pub(super) there: bool,
    /// It carries RM cells back, of the VC with this label.
    pub(super) back_of: Option<u16>,
    pub(super) seen: erica::Seen,
}

/// What a stage needs for ABR.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Its ports stand together only so that RM cells find them: each has a memory of its own.
    pub(super) apart: bool,
    /// By port.
    pub(super) controls: Vec<Option<Control>>,
    /// By label.
    pub(super) marks: Vec<Mark>,
}

impl Watch {
    /// An RM cell on its way back is told what the port allows by which its VC goes there.
    pub(super) fn answer(&mut self, run: &Run, port_of: impl Fn(u16) -> u16, fabric: &mut Fabric) {
        let back_of = self.marks[run.label() as usize].back_of;
        let Some(forward) = back_of.filter(|_| run.rm()) else { return };
        if let Some(Control::Erica(erica)) = &mut self.controls[port_of(forward) as usize] {
            let allowed = erica.allow(run.at(), &mut self.marks[forward as usize].seen);
            let rm = fabric.rms.get_mut(run.frame);
            rm.er = rm.er.min(allowed);
        }
    }

    /// A cell comes to the queue of a port in which so many wait. True if it is to be marked.
    pub(super) fn arrives(&mut self, run: &Run, port: u16, waiting: u32, fabric: &mut Fabric) -> bool {
        let mark = &mut self.marks[run.label() as usize];
        let rm = run.rm();
        match &mut self.controls[port as usize] {
            None => false,
            Some(Control::Efci(threshold)) => mark.there && !rm && waiting >= *threshold,
            Some(Control::Erica(erica)) if mark.there => {
                let ccr = rm.then(|| fabric.rms.get_mut(run.frame).ccr);
                erica.cell(run.at(), &mut mark.seen, ccr);
                false
            }
            Some(Control::Erica(erica)) => {
                erica.others(run.at(), run.cells().into());
                false
            }
        }
    }
}

//! The source of an ABR channel in a network: the buffer of the edge device, and the cells that
//! leave it.
//!
//! Returning RM cells set the rate, so the departure times of cells are not known in advance. The
//! source stores packets and sends cell by cell. RM cells return on a channel of their own along
//! the same nodes. Time advances in steps of the shortest link, within which no RM cell can both
//! leave and return; cells are not joined to runs.

use std::collections::VecDeque;

use lastmile_units::{ByteCount, Duration, Instant};

use super::source::Source;
use super::{Parameters, Rm};
use crate::cell::{Clp, Header, Payload, Run};
use crate::discard::CellDrop;
use crate::network::in_flight::InFlight;
use crate::network::tournament::earlier;
use crate::time::{Moment, Spacing};

/// Counters of the source of an ABR channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AbrStats {
    /// Present ACR, bit/s.
    pub acr_bps: u64,
    /// Mean of ACR over time, bit/s.
    pub acr_mean_bps: u64,
    /// Least ACR, bit/s.
    pub acr_min_bps: u64,
    /// Largest ACR, bit/s.
    pub acr_max_bps: u64,
    /// RM cells sent.
    pub rm_sent: u64,
    /// RM cells returned.
    pub rm_returned: u64,
    /// RM cells returned with CI: a port or the far end saw congestion.
    pub rm_congested: u64,
    /// Bytes of packets in the queue of the edge device.
    pub edge_bytes: u64,
    /// The largest such queue so far.
    pub edge_peak_bytes: u64,
    /// Packets dropped at a full edge device.
    pub edge_dropped: u64,
    /// Cells of their frames.
    pub edge_dropped_cells: u64,
}

/// A packet at the source.
#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Moment,
    frame: u32,
    bytes: u64,
    cells: u16,
    clp: Clp,
}

/// The source of an ABR channel.
#[derive(Debug)]
pub(crate) struct Sender {
    source: Source,
    /// The stream to the first switch.
    stream: u32,
    /// Index of the VC at that switch.
    vc: u16,
    /// From one cell to the next at PCR.
    peak: Spacing,
    /// Bytes that may wait. `None`: no limit.
    limit: Option<u64>,
    /// Packets offered for a later time.
    coming: VecDeque<Packet>,
    queue: VecDeque<Packet>,
    /// Departure of the last cell.
    last: Option<Moment>,
    /// The next cell departs no earlier: the later of the start of this backlog and the last change
    /// of ACR.
    floor: Moment,
    stats: AbrStats,
    /// Integral of ACR over time up to `area_until`, in bit/s times picoseconds.
    area: u128,
    area_until: u64,
}

impl Sender {
    pub(crate) fn new(parameters: &Parameters, limit: Option<ByteCount>, stream: u32, vc: u16) -> Self {
        let source = Source::new(parameters);
        let acr = source.acr();
        Self {
            stats: AbrStats { acr_bps: acr, acr_min_bps: acr, acr_max_bps: acr, ..AbrStats::default() },
            source,
            stream,
            vc,
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

    /// Offers a packet, at the present or a later time.
    pub(crate) fn offer(&mut self, at: Instant, frame: u32, (bytes, cells): (ByteCount, u16), clp: Clp) {
        self.coming.push_back(Packet { at: Moment::at(at), frame, bytes: bytes.as_u64(), cells, clp });
    }

    /// The time of the next event here if no RM cell returns. `None` is never.
    pub(crate) fn next(&self) -> Option<Instant> {
        let coming = self.coming.front().map(|packet| packet.at.instant());
        earlier(coming, self.due().map(Moment::instant))
    }

    /// No packet leaves the network before this time; the far end is at least `onward` from the
    /// source. All that was due by `now` is done. RM cells may raise the rate at any time, to PCR
    /// at most. `None`: there is no packet.
    pub(crate) fn bound(&self, now: Instant, onward: Duration) -> Option<Instant> {
        let coming = self.coming.front();
        let dropped = coming.filter(|_| self.limit.is_some()).map(|packet| packet.at.instant());
        let packet = self.queue.front().or(coming)?;
        let free = self.last.map_or(Instant::ZERO, |last| last.plus(self.peak).instant());
        let first = packet.at.instant().max(free).max(now.saturating_add(Duration::from_ps(1)));
        let last = first.saturating_add(self.peak.times(u64::from(packet.cells) - 1).duration());
        earlier(dropped, Some(last.saturating_add(onward)))
    }

    /// Departure of the next cell. `None`: there is none to send.
    fn due(&self) -> Option<Moment> {
        if self.queue.is_empty() {
            return None;
        }
        Some(self.last.map_or(self.floor, |last| self.floor.max(last.plus(self.source.spacing()))))
    }

    /// Does all that is due by `until`.
    pub(crate) fn advance(&mut self, until: Moment, in_flight: &mut InFlight) {
        loop {
            let due = self.due();
            if let Some(packet) = self.coming.front().copied()
                && packet.at <= until
                && due.is_none_or(|due| packet.at <= due)
            {
                self.coming.pop_front();
                self.accept(packet, in_flight);
                continue;
            }
            match due {
                Some(due) if due <= until => self.send(due, in_flight),
                _ => return,
            }
        }
    }

    fn accept(&mut self, packet: Packet, in_flight: &mut InFlight) {
        let stats = &mut self.stats;
        if self.limit.is_some_and(|limit| stats.edge_bytes + packet.bytes > limit) {
            stats.edge_dropped += 1;
            stats.edge_dropped_cells += u64::from(packet.cells);
            let span = [packet.at.instant(); 2];
            in_flight.frames.drop_cells(packet.frame, packet.cells, CellDrop::EdgeFull, span);
            return;
        }
        if self.queue.is_empty() {
            self.floor = self.floor.max(packet.at);
        }
        stats.edge_bytes += packet.bytes;
        stats.edge_peak_bytes = stats.edge_peak_bytes.max(stats.edge_bytes);
        self.queue.push_back(packet);
    }

    fn send(&mut self, at: Moment, in_flight: &mut InFlight) {
        self.last = Some(at);
        let before = self.source.acr();
        let header = if let Some(rm) = self.source.send(at) {
            self.stats.rm_sent += 1;
            self.account(at, before);
            Header { payload: Payload::Rm(in_flight.rm_cells.add(rm)), clp: Clp::Zero, efci: false, last: false }
        } else {
            let packet = self.queue.front_mut().expect("a backlog");
            packet.cells -= 1;
            let last = packet.cells == 0;
            let header = Header { payload: Payload::Frame(packet.frame), clp: packet.clp, efci: false, last };
            if last {
                self.stats.edge_bytes -= packet.bytes;
                self.queue.pop_front();
            }
            header
        };
        in_flight.push(self.stream, Run::cell(at, self.vc, header));
    }

    /// An RM cell has returned.
    pub(crate) fn feedback(&mut self, at: Moment, rm: &Rm, in_flight: &mut InFlight) {
        self.advance(at, in_flight);
        let before = self.source.acr();
        self.source.feedback(rm);
        self.stats.rm_returned += 1;
        self.stats.rm_congested += u64::from(rm.ci);
        self.account(at, before);
        self.floor = self.floor.max(at);
    }

    /// ACR was `before` up to `at`.
    fn account(&mut self, at: Moment, before: u64) {
        self.area += u128::from(before) * u128::from(at.ps().saturating_sub(self.area_until));
        self.area_until = self.area_until.max(at.ps());
        let (acr, stats) = (self.source.acr(), &mut self.stats);
        stats.acr_bps = acr;
        (stats.acr_min_bps, stats.acr_max_bps) = (stats.acr_min_bps.min(acr), stats.acr_max_bps.max(acr));
    }

    pub(crate) fn stats(&self, now: Instant) -> AbrStats {
        let rest = now.as_ps().saturating_sub(self.area_until);
        let area = self.area + u128::from(self.stats.acr_bps) * u128::from(rest);
        let mean = area.checked_div(now.as_ps().into()).map_or(self.stats.acr_bps, |mean| mean as u64);
        AbrStats { acr_mean_bps: mean, ..self.stats }
    }

    /// Cells of packets at the source or offered for a later time.
    pub(crate) fn cells(&self) -> u64 {
        self.queue.iter().chain(&self.coming).map(|packet| u64::from(packet.cells)).sum()
    }
}

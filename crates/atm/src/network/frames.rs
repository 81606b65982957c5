//! Frames in the network: their packets, the number of cells still inside, and their fate.

use lastmile_units::{ByteCount, Instant};

use super::VcId;
use crate::cell::Clp;
use crate::discard::CellDrop;

/// A packet that has left the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// Arrival of its last cell, or loss of its last cell inside the network.
    pub at: Instant,
    /// The VC of the packet.
    pub vc: VcId,
    /// The `packet` of its offer.
    pub packet: u64,
    /// The size of the packet.
    pub bytes: ByteCount,
    /// The fate of the packet.
    pub fate: Fate,
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The frame arrived whole.
    Whole,
    /// A cell was dropped, the first one for this reason; or the source had no space for the packet.
    Dropped(CellDrop),
    /// A cell was lost on a link, before any was dropped.
    Lost,
    /// All cells arrived, but the previous frame had lost its end.
    Joined,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) packet: u64,
    serial: u64,
    bytes: u32,
    pub(crate) vc: u32,
    /// Cells neither dropped, lost nor arrived.
    live: u16,
    /// All its cells.
    pub(crate) cells: u16,
    /// CLP at the source.
    pub(crate) clp: Clp,
    /// End of the last cell that arrived, was dropped or was lost.
    ended: Instant,
    /// The first cell dropped, with its reason, or lost on a link, without one.
    lost: Option<(Instant, Option<CellDrop>)>,
}

impl Frame {
    pub(crate) fn bytes(&self) -> ByteCount {
        ByteCount::new(self.bytes.into())
    }

    /// A number that differs from those of earlier and later frames in the slot.
    #[inline]
    pub(crate) fn key(&self) -> u32 {
        self.serial as u32
    }
}

/// All frames with cells in the network.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    slots: Vec<Frame>,
    free: Vec<u32>,
    offered: u64,
    /// With the order of their offers.
    departed: Vec<(Departure, u64)>,
}

impl Frames {
    pub(crate) fn add(&mut self, vc: u32, packet: u64, bytes: ByteCount, cells: u16, clp: Clp) -> u32 {
        let bytes = u32::try_from(bytes.as_u64()).unwrap_or(u32::MAX);
        let serial = self.offered;
        let frame = Frame { packet, serial, bytes, vc, live: cells, cells, clp, ended: Instant::ZERO, lost: None };
        self.offered += 1;
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = frame;
            return slot;
        }
        self.slots.push(frame);
        (self.slots.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Frame {
        &self.slots[slot as usize]
    }

    /// Frames with cells in the network.
    pub(crate) fn live(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// Drops cells of a frame; `span` has the times of the first and the last.
    pub(crate) fn drop_cells(&mut self, slot: u32, cells: u16, reason: CellDrop, span: [Instant; 2]) {
        self.note_loss(slot, span[0], Some(reason));
        self.end_cells(slot, cells, span[1], false);
    }

    /// A cell of a frame is lost on a link.
    pub(crate) fn lose_cell(&mut self, slot: u32, at: Instant) {
        self.note_loss(slot, at, None);
        self.end_cells(slot, 1, at, false);
    }

    fn note_loss(&mut self, slot: u32, at: Instant, reason: Option<CellDrop>) {
        let lost = &mut self.slots[slot as usize].lost;
        // Switches are handled one after the other, so an earlier loss may be reported later.
        *lost = Some(lost.map_or((at, reason), |before| before.min((at, reason))));
    }

    /// Records cells of a frame that end, the last one at `at`. `whole`: all cells of the frame have arrived.
    #[inline]
    pub(crate) fn end_cells(&mut self, slot: u32, cells: u16, at: Instant, whole: bool) {
        let frame = &mut self.slots[slot as usize];
        frame.live -= cells;
        frame.ended = frame.ended.max(at);
        if frame.live > 0 {
            return;
        }
        let lost = || frame.lost.map_or(Fate::Joined, |(_, reason)| reason.map_or(Fate::Lost, Fate::Dropped));
        let fate = if whole { Fate::Whole } else { lost() };
        let departure = Departure {
            at: frame.ended,
            vc: VcId(frame.vc),
            packet: frame.packet,
            bytes: ByteCount::new(frame.bytes.into()),
            fate,
        };
        self.departed.push((departure, frame.serial));
        self.free.push(slot);
    }

    pub(crate) fn has_departures(&self) -> bool {
        !self.departed.is_empty()
    }

    /// Packets that have left, in order of time; of one picosecond, in the order of VCs and then of
    /// offers.
    pub(crate) fn take_departures(&mut self, into: &mut Vec<Departure>) {
        if self.departed.len() > 1 {
            self.departed.sort_unstable_by_key(|(departure, serial)| (departure.at, departure.vc, *serial));
        }
        into.extend(self.departed.drain(..).map(|(departure, _)| departure));
    }
}

//! Frames in the network: what each is, how many of its cells still live, and the fate to report when none does.

use lastmile_units::{ByteCount, Instant};

use super::VcId;
use crate::discard::CellDrop;

/// A packet that has left the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// When: the picosecond in which its last cell arrived, or in which the last of it was lost.
    pub at: Instant,
    /// Its VC.
    pub vc: VcId,
    /// What it was offered as.
    pub packet: u64,
    /// What it was offered with.
    pub bytes: ByteCount,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Its frame arrived whole.
    Whole,
    /// A cell of it was dropped, the first for this reason; or the source had no room for all of it.
    Dropped(CellDrop),
    /// A cell of it was lost on the wire, before any was dropped.
    Lost,
    /// All its cells arrived, but the frame before had lost its end.
    Joined,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) packet: u64,
    serial: u64,
    bytes: u32,
    pub(super) vc: u32,
    /// Cells neither dropped nor arrived.
    live: u16,
    /// Cells of it when it was offered.
    pub(super) cells: u16,
    /// They were offered with CLP = 1.
    pub(super) low_priority: bool,
    /// When the last of those that ended did, picoseconds.
    ended: u64,
    /// When the first of it was dropped or lost, picoseconds, and why; lost on the wire for no reason.
    lost: Option<(u64, Option<CellDrop>)>,
}

impl Frame {
    pub(super) fn bytes(&self) -> ByteCount {
        ByteCount::new(self.bytes.into())
    }

    /// What tells it from all others, in the slot before and after.
    #[inline]
    pub(super) fn key(&self) -> u32 {
        self.serial as u32
    }
}

/// All frames of which cells live.
#[derive(Debug, Default)]
pub(super) struct Frames {
    slots: Vec<Frame>,
    free: Vec<u32>,
    offered: u64,
    /// With the order in which they were offered.
    gone: Vec<(Departure, u64)>,
}

impl Frames {
    pub(super) fn add(&mut self, vc: u32, packet: u64, bytes: ByteCount, cells: u16, low_priority: bool) -> u32 {
        let bytes = u32::try_from(bytes.as_u64()).unwrap_or(u32::MAX);
        let serial = self.offered;
        let frame = Frame { packet, serial, bytes, vc, live: cells, cells, low_priority, ended: 0, lost: None };
        self.offered += 1;
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = frame;
            return slot;
        }
        self.slots.push(frame);
        (self.slots.len() - 1) as u32
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Frame {
        &self.slots[slot as usize]
    }

    /// Frames of which cells live.
    pub(super) fn live(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// `cells` of it are dropped, the first and the last at `ps`.
    pub(super) fn drop_cells(&mut self, slot: u32, cells: u16, reason: CellDrop, ps: [u64; 2]) {
        self.note_loss(slot, ps[0], Some(reason));
        self.end_cells(slot, cells, ps[1], false);
    }

    /// A cell of it is lost on the wire.
    pub(super) fn lose_cell(&mut self, slot: u32, ps: u64) {
        self.note_loss(slot, ps, None);
        self.end_cells(slot, 1, ps, false);
    }

    fn note_loss(&mut self, slot: u32, ps: u64, reason: Option<CellDrop>) {
        let lost = &mut self.slots[slot as usize].lost;
        // Stages are gone through one after the other, so a later loss may be told first.
        *lost = Some(lost.map_or((ps, reason), |before| before.min((ps, reason))));
    }

    /// `cells` of it end here, the last at `ps`. `whole`: with them all of it has arrived.
    #[inline]
    pub(super) fn end_cells(&mut self, slot: u32, cells: u16, ps: u64, whole: bool) {
        let frame = &mut self.slots[slot as usize];
        frame.live -= cells;
        frame.ended = frame.ended.max(ps);
        if frame.live > 0 {
            return;
        }
        let lost = || frame.lost.map_or(Fate::Joined, |(_, reason)| reason.map_or(Fate::Lost, Fate::Dropped));
        let fate = if whole { Fate::Whole } else { lost() };
        let departure = Departure {
            at: Instant::from_ps(frame.ended),
            vc: VcId(frame.vc),
            packet: frame.packet,
            bytes: ByteCount::new(frame.bytes.into()),
            fate,
        };
        self.gone.push((departure, frame.serial));
        self.free.push(slot);
    }

    pub(super) fn any_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// What has left, in order of time; of one picosecond, in that of their VCs and then of their offers.
    pub(super) fn take_gone(&mut self, into: &mut Vec<Departure>) {
        if self.gone.len() > 1 {
            self.gone.sort_unstable_by_key(|(departure, serial)| (departure.at, departure.vc, *serial));
        }
        into.extend(self.gone.drain(..).map(|(departure, _)| departure));
    }
}

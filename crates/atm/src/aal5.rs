//! Packets in AAL5 frames: their number of cells, and their reassembly at the far end.
//!
//! Published: ITU-T I.363.5 (AAL5), RFC 2684 (routed packets, LLC/SNAP or VC-multiplexed). The
//! header of the last cell (PTI) is the only delimiter. So a lost last cell joins two frames, whose
//! CRC and length are wrong: both are lost. CRC and length are not computed: a frame is whole if
//! all its cells arrive and no others. A CRC of 32 bits misses one damage in 2^32.
//! Cost: a comparison for each run of cells.

use lastmile_linklayer::aal5;
use lastmile_units::ByteCount;

/// The largest packet: the largest length in the trailer, less the longest header.
pub const MAX_PACKET: ByteCount = ByteCount::new(65_535 - 8);

/// The header of a packet in its frame (RFC 2684, routed).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encapsulation {
    /// 8 bytes of LLC and SNAP that name the protocol.
    #[default]
    LlcSnap,
    /// No header: the VC carries one protocol.
    VcMux,
}

impl Encapsulation {
    /// Bytes before the packet.
    #[must_use]
    pub const fn header(self) -> u64 {
        match self {
            Self::LlcSnap => 8,
            Self::VcMux => 0,
        }
    }

    /// Cells of the frame of a packet of `bytes`, trailer and padding included: 1 to 1366. `None`
    /// above [`MAX_PACKET`].
    #[must_use]
    pub const fn cells(self, bytes: ByteCount) -> Option<u16> {
        if bytes.as_u64() > MAX_PACKET.as_u64() {
            return None;
        }
        Some(aal5::cells(bytes.as_u64() + self.header() + aal5::TRAILER as u64) as u16)
    }
}

/// The receiver of one VC: cells in, frames out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reassembler {
    /// Cells since the last end of a frame.
    cells: u32,
    /// The frame of the first of these cells.
    frame: u32,
    /// True if these cells are of several frames.
    mixed: bool,
}

/// The outcome at an end-of-frame cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reassembled {
    /// A frame of this many cells, whole.
    Whole(u32),
    /// This many cells, discarded: some are missing, or an earlier frame lost its end.
    Damaged(u32),
}

impl Reassembler {
    /// Takes `cells` consecutive cells of `frame`, which has `whole` cells. `end`: the last is the
    /// end-of-frame cell, at which the receiver checks the frame.
    #[inline]
    pub fn take(&mut self, frame: u32, cells: u16, end: bool, whole: u16) -> Option<Reassembled> {
        if self.cells == 0 {
            (self.frame, self.mixed) = (frame, false);
        } else if self.frame != frame {
            self.mixed = true;
        }
        self.cells += u32::from(cells);
        if !end {
            return None;
        }
        let cells = core::mem::take(&mut self.cells);
        let sound = !self.mixed && cells == u32::from(whole);
        Some(if sound { Reassembled::Whole(cells) } else { Reassembled::Damaged(cells) })
    }

    /// Cells received since the last end of a frame.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ano et al. 2002, figure 4: 8192 bytes and 40 of TCP/IP, 8 of LLC/SNAP, 8 of padding, 8 of
    /// trailer: 8256 = 172 * 48. Sun 1998: 1024 bytes and 40 are 23 cells.
    #[test]
    fn a_segment_of_8192_bytes_fills_172_cells() {
        assert_eq!(Encapsulation::LlcSnap.cells(ByteCount::new(8192 + 40)), Some(172));
        assert_eq!(Encapsulation::LlcSnap.cells(ByteCount::new(1024 + 40)), Some(23));
    }

    /// 40 + 8 = 48 bytes are a cell; LLC/SNAP makes two of it.
    #[test]
    fn an_ack_is_one_cell_or_two() {
        assert_eq!(Encapsulation::VcMux.cells(ByteCount::new(40)), Some(1));
        assert_eq!(Encapsulation::LlcSnap.cells(ByteCount::new(40)), Some(2));
        assert_eq!(Encapsulation::LlcSnap.cells(MAX_PACKET), Some(1366));
        assert_eq!(Encapsulation::LlcSnap.cells(ByteCount::new(65_528)), None);
    }

    #[test]
    fn a_frame_is_whole_in_any_number_of_pieces() {
        let mut far_end = Reassembler::default();
        assert_eq!(far_end.take(7, 100, false, 172), None);
        assert_eq!(far_end.pending(), 100);
        assert_eq!(far_end.take(7, 71, false, 172), None);
        assert_eq!(far_end.take(7, 1, true, 172), Some(Reassembled::Whole(172)));
        assert_eq!(far_end.take(8, 2, true, 2), Some(Reassembled::Whole(2)));
    }

    #[test]
    fn a_lost_cell_loses_the_frame_and_no_other() {
        let mut far_end = Reassembler::default();
        assert_eq!(far_end.take(7, 22, true, 23), Some(Reassembled::Damaged(22)));
        assert_eq!(far_end.take(8, 23, true, 23), Some(Reassembled::Whole(23)));
    }

    #[test]
    fn a_lost_last_cell_joins_two_frames_and_loses_both() {
        let mut far_end = Reassembler::default();
        assert_eq!(far_end.take(7, 22, false, 23), None);
        assert_eq!(far_end.take(8, 23, true, 23), Some(Reassembled::Damaged(45)));
        // Even where the sum is that of the second frame.
        assert_eq!(far_end.take(9, 10, false, 23), None);
        assert_eq!(far_end.take(10, 13, true, 23), Some(Reassembled::Damaged(23)));
        assert_eq!(far_end.take(11, 23, true, 23), Some(Reassembled::Whole(23)));
    }
}

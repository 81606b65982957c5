//! What an acknowledgement says that the receiver holds, taken down on the scoreboard: where losses are found by counting.
//!
//! Published: RFC 2018; RFC 2883, section 4 (reports of duplicates); RFC 6675, section 4 (Update).
//! Cost: nothing while nothing is missing; then a look at the scoreboard for each block.

use lastmile_packet::SeqNumber;

use crate::recovery::{AckInfo, News};
use crate::scoreboard::Scoreboard;
use crate::sender::{Phase, Sender};

impl Sender {
    /// The cumulative acknowledgement came up from `from`.
    #[cold]
    pub(crate) fn board_after(&mut self, from: u64, info: AckInfo<'_>) -> News {
        let una = self.una;
        let sacked = self.aside.board().map_or(0, Scoreboard::sacked);
        if let Some(board) = self.aside.board_mut()
            && self.sacking
        {
            board.advance(from, una);
        }
        let passed = self.aside.board().map_or(0, Scoreboard::sacked);
        let mut news = self.record_sack(info);
        news.advanced = true;
        news.delivered += (una - from) as u32 - (sacked - passed);
        if self.phase == Phase::Open {
            self.settle_board();
        }
        news
    }

    /// RFC 6675, section 4, Update.
    pub(crate) fn record_sack(&mut self, info: AckInfo<'_>) -> News {
        let (una, max, mss) = (self.una, self.max, self.mss);
        let options = info.segment.options();
        let again = self.trips.again(una);
        let mut news = News::default();
        let (sacked, lost) = self.aside.board().map_or((0, 0), |board| (board.sacked(), board.lost()));
        if self.repair.undo().is_some() {
            self.note_duplicate(info.segment);
        }
        for block in options.sack_blocks() {
            let Some((left, right)) = self.block_offsets(block.left, block.right) else { continue };
            let board = self.aside.begin_board(una);
            board.insert(left, right, |part| news.add(part, again));
        }
        if let Some(board) = self.aside.board_mut() {
            board.update(una, u32::from(mss));
            self.sacking |= !board.is_empty();
            news.delivered = board.sacked() - sacked;
            news.lost = board.lost() > lost;
        }
        debug_assert!(!news.any || max > una, "a block lies within what is out");
        news
    }

    /// The part of a block above `una`; `None` for nonsense and for reports of duplicates (RFC 2883, section 4) below
    /// it.
    pub(crate) fn block_offsets(&self, left: SeqNumber, right: SeqNumber) -> Option<(u64, u64)> {
        let base = self.wire(self.una);
        let right_ahead = right.distance_from(base).cast_signed();
        let left_ahead = left.distance_from(base).cast_signed();
        if right_ahead <= 0 || left_ahead >= right_ahead {
            return None;
        }
        let right = self.una + u64::from(right_ahead.cast_unsigned());
        let left = self.una + u64::from(left_ahead.max(0).cast_unsigned());
        if right > self.max { None } else { Some((left, right)) }
    }

    /// No repair is under way: the scoreboard steps aside once it holds nothing.
    pub(crate) fn settle_board(&mut self) {
        let (una, mss) = (self.una, u32::from(self.mss));
        let Some(board) = self.aside.board_mut() else { return };
        board.forget_resent(una);
        board.update(una, mss);
        self.sacking = !board.is_empty();
        // Allocated anew at the next loss: of very many senders only those in a repair pay for one.
        if board.is_empty() {
            self.aside.end_board();
        }
    }
}

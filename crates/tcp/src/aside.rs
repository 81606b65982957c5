//! What few senders need at a time, in a box of its own: the scoreboard where losses are found by counting, the effect of
//! reported duplicates, and what ECN and shut windows leave behind.
//!
//! It is made by the first that is not as in a new sender, and
//! goes when all is so again.
//! Cost: a pointer to follow where something is missing; nothing else.

use crate::ranges::Low;
use crate::scoreboard::Scoreboard;

/// Nothing, for most senders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Aside(Option<Box<Rare>>);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rare {
    board: Option<Box<Scoreboard>>,
    /// `max` at the last reduction for an ECN echo, if there was one.
    pub(crate) ecn_until: Option<Low>,
    pub(crate) duplicates: Duplicates,
    pub(crate) window_probes: u32,
    pub(crate) ecn_reductions: u32,
    /// Probes into the same shut window.
    pub(crate) probes: u8,
    /// A probe's octet beyond `max` may be acknowledged.
    pub(crate) probed: bool,
    /// The next new segment tells that the window was reduced (RFC 3168: CWR).
    pub(crate) tell_reduced: bool,
    /// High halves of counters.
    pub(crate) data_packets: u16,
    pub(crate) acks_received: u16,
}

/// What duplicates that are reported (DSACK) do to the reordering window of RACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Duplicates {
    /// What was out at the last one that widened the window, as long as that counts (RACK.dsack_round).
    pub(crate) round: Option<Low>,
    /// Quarters of the least round trip beyond the first (RACK.reo_wnd_mult - 1).
    pub(crate) wider: u8,
    /// RACK.reo_wnd_persist.
    pub(crate) persist: u8,
}

impl Aside {
    /// To read.
    pub(crate) fn get(&self) -> Option<&Rare> {
        self.0.as_deref()
    }

    /// To write: made now if it is not there.
    #[cold]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.0.get_or_insert_default()
    }

    /// What is kept near the cumulative acknowledgement.
    pub(crate) fn offsets(&mut self) -> impl Iterator<Item = &mut Low> {
        self.0.iter_mut().flat_map(|rare| rare.ecn_until.iter_mut().chain(&mut rare.duplicates.round))
    }

    #[inline]
    pub(crate) fn board(&self) -> Option<&Scoreboard> {
        self.0.as_ref()?.board.as_deref()
    }

    #[inline]
    pub(crate) fn board_mut(&mut self) -> Option<&mut Scoreboard> {
        self.0.as_mut()?.board.as_deref_mut()
    }

    /// The scoreboard, made now if there is none.
    pub(crate) fn begin_board(&mut self, una: u64) -> &mut Scoreboard {
        self.rare().board.get_or_insert_with(|| Box::new(Scoreboard::new(una)))
    }

    pub(crate) fn end_board(&mut self) {
        self.end(|rare| rare.board = None);
    }

    /// What reported duplicates do.
    pub(crate) fn duplicates(&self) -> Duplicates {
        self.0.as_ref().map_or_else(Duplicates::default, |rare| rare.duplicates)
    }

    /// Where there is something, `end` ends a part of it.
    pub(crate) fn end(&mut self, end: impl FnOnce(&mut Rare)) {
        if let Some(rare) = &mut self.0 {
            end(rare);
            if **rare == Rare::default() {
                self.0 = None;
            }
        }
    }
}

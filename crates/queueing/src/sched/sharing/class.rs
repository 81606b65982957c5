//! State of a class: its mode, its tokens, its counters.

use lastmile_units::Instant;

use super::bucket::Bucket;
use crate::{Backlog, Node};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    CanSend,
    MayBorrow,
    CannotSend,
}

#[derive(Clone, Debug)]
pub(super) enum Bound {
    None,
    Bucket(Bucket),
    Closed,
}

#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) mode: Mode,
    /// Priorities, a bit each, at which a leaf below is backlogged and its packets can reach this
    /// class.
    pub(super) active: u8,
    pub(super) priority: u8,
    pub(super) borrows: bool,
    pub(super) isolated: bool,
    /// 0 for a leaf; the level of an inner class exceeds those of its children.
    pub(super) level: u8,
    pub(super) parent: Option<u32>,
    /// The index of the class among the classes of its level.
    pub(super) index_in_level: u32,
    pub(super) index_among_siblings: u32,
    /// The first child; children have consecutive numbers.
    pub(super) first_child: u32,
    /// Index of its leaf, or of its set of borrowers.
    pub(super) content_index: u32,
    pub(super) own: Bound,
    /// `None`: no ceiling, or (at the root) a ceiling equal to its own rate, which needs no bucket.
    pub(super) ceil: Option<Bucket>,
    pub(super) ceil_is_own: bool,
    pub(super) tally: Tally,
}

impl Class {
    pub(super) const fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// True if it may send of its own tokens, whatever its mode was.
    #[inline]
    pub(super) fn owes_nothing(&self, now: Instant) -> bool {
        let pays = |bucket: &Bucket| bucket.ready_at() <= now;
        self.ceil.as_ref().is_none_or(pays)
            && match &self.own {
                Bound::None => true,
                Bound::Bucket(own) => pays(own),
                Bound::Closed => false,
            }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) wire_bytes: u64,
    pub(super) lent: u64,
    pub(super) borrowed: u64,
    pub(super) overlimits: u64,
    /// Time of the last charge.
    pub(super) last_charged: Instant,
}

/// The queue of a leaf.
pub(super) struct Leaf<P> {
    pub(super) queue: Node<P>,
    /// The backlog of the queue at the last update; only this tree changes it.
    pub(super) last_backlog: Backlog,
    pub(super) quantum: i64,
    /// Bytes that it may still send in its turn: at level 0, then at the level of each ancestor
    /// from the root down.
    pub(super) deficits: Vec<i64>,
}

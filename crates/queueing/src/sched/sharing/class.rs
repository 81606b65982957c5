//! A class at work: what it may do, what it owes, what it has done.

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
    /// Priorities at which something below waits and may be sent as far as this class: a bit each.
    pub(super) active: u8,
    pub(super) priority: u8,
    pub(super) borrows: bool,
    pub(super) isolated: bool,
    /// 0 for a leaf; an inner class is above those below it.
    pub(super) level: u8,
    pub(super) parent: Option<u32>,
    /// Its place among those of its level, and among its siblings.
    pub(super) place: u32,
    pub(super) sibling: u32,
    /// The first class below; they follow one another.
    pub(super) first_child: u32,
    /// Which queue, or which set of turns.
    pub(super) content: u32,
    pub(super) own: Bound,
    /// `None`: there is none, or it is like its own and is charged whenever that is, at the root.
    pub(super) ceil: Option<Bucket>,
    pub(super) ceil_is_own: bool,
    pub(super) tally: Tally,
}

impl Class {
    pub(super) const fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// It may send whatever it did before, of its own.
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
    /// When it was charged last.
    pub(super) at: Instant,
}

/// A queue at the end of a branch.
pub(super) struct Leaf<P> {
    pub(super) queue: Node<P>,
    /// What it held when it was asked last; it changes through this tree alone.
    pub(super) held: Backlog,
    pub(super) quantum: i64,
    /// What it may still send in its turn: at level 0, then of each class above from the root down.
    pub(super) deficits: Vec<i64>,
}

//! Parameters of classes, from which the tree is built.

use lastmile_units::{BitRate, Duration, WireBytes};

/// Priorities of leaves, 0 the most urgent (`TC_HTB_NUMPRIO` of Linux).
pub(crate) const PRIORITIES: usize = 8;

/// A rate and its burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tokens {
    pub(crate) rate: BitRate,
    pub(crate) burst: WireBytes,
}

/// The capacity that a class has of its own and may lend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// Unlimited.
    Everything,
    /// A rate.
    Rate(Tokens),
    /// No capacity: isolated classes below reserve all of it.
    Nothing,
}

/// Delays of mode changes relative to the tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slack {
    /// A class that sends continues until it owes a burst.
    pub(crate) hysteresis: bool,
    /// Tick of the clock at which waiting classes are checked again; zero: exact.
    pub(crate) timer: Duration,
}

/// Parameters of a class. Children follow their parent in a list of plans.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The number of the class in a configuration. `None`: no number, and no counters.
    pub(crate) index: Option<u32>,
    /// The parent of the class, as a position in the list of plans.
    pub(crate) parent: Option<usize>,
    pub(crate) own: Own,
    pub(crate) ceil: Option<Tokens>,
    /// May borrow from its parent.
    pub(crate) borrows: bool,
    /// Packets that it sends of its own capacity are not charged to its ancestors.
    pub(crate) isolated: bool,
    /// Below [`PRIORITIES`].
    pub(crate) priority: u8,
    /// Bytes on the wire in a turn. Not zero.
    pub(crate) quantum: u64,
}

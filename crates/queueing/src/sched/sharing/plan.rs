//! Classes before they are built.

use lastmile_units::{BitRate, Duration, WireBytes};

/// Priorities of leaves, 0 the most urgent (`TC_HTB_NUMPRIO` of Linux).
pub(crate) const PRIORITIES: usize = 8;

/// A rate and its burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tokens {
    pub(crate) rate: BitRate,
    pub(crate) burst: WireBytes,
}

/// What a class may send of its own, and lend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// As much as there is.
    Everything,
    /// This.
    Rate(Tokens),
    /// Nothing: all of it is set apart for isolated classes below.
    Nothing,
}

/// How far the modes of classes lag behind their tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slack {
    /// A class that sends goes on until it owes a burst.
    pub(crate) hysteresis: bool,
    /// Tick of the clock by which those that wait are looked at again; zero: at the very time.
    pub(crate) timer: Duration,
}

/// A class, before it is built. Those below one come after it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The number of the class in a configuration. `None`: it has none, and shows no counters.
    pub(crate) index: Option<u32>,
    /// The class above, by its place among the plans.
    pub(crate) parent: Option<usize>,
    pub(crate) own: Own,
    pub(crate) ceil: Option<Tokens>,
    /// Whether it may borrow from the class above.
    pub(crate) borrows: bool,
    /// What it sends of its own is not charged to the classes above.
    pub(crate) isolated: bool,
    /// Below [`PRIORITIES`].
    pub(crate) priority: u8,
    /// Bytes on the wire in a turn. Not zero.
    pub(crate) quantum: u64,
}

//! The state of a flow at a regenerator.

use lastmile_packet::{AckList, SeqNumber};
use lastmile_units::Instant;

use crate::ack::Newest;

/// State of a flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) newest: Newest,
    /// Arrival time of its last acknowledgement. `None`: only a signal has arrived.
    pub(super) last_ack_at: Option<Instant>,
    /// A duplicate or SACK blocks arrived: the next advance may be a filled hole.
    pub(super) may_be_hole: bool,
    /// Fraction of an ACK carried over, in parts of the factor's denominator.
    pub(super) carry: u32,
    /// The last signal, and the number of the ACK that it describes.
    pub(super) signal: Option<(SeqNumber, AckList)>,
}

impl Flow {
    pub(super) const fn of(newest: Newest) -> Self {
        Self { newest, last_ack_at: None, may_be_hole: false, carry: 0, signal: None }
    }
}

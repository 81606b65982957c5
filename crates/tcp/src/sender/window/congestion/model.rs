//! The interface of congestion controls that set window and pacing rate from a model of the path (Linux:
//! `cong_control`).

use lastmile_units::{Duration, Instant};

use crate::sender::delivery_rate::{LostSegment, RateSample};
use crate::sender::pacing::Pacer;

/// The phase of the repair, in the order of Linux's states.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RepairPhase {
    Open,
    /// A loss is repaired.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

/// An acknowledgement, and the controls that a model sets.
#[derive(Debug)]
pub(crate) struct ModelAck<'a> {
    pub(crate) sample: &'a RateSample,
    /// Segments found to be lost since the last acknowledgement.
    pub(crate) lost: &'a [LostSegment],
    pub(crate) phase: RepairPhase,
    pub(crate) pacing: &'a mut Pacer,
    /// The congestion window in octets.
    pub(crate) cwnd: u64,
    /// The window was full before the acknowledgement.
    pub(crate) cwnd_limited: bool,
    pub(crate) srtt: Option<Duration>,
    pub(crate) mss: u64,
    /// Send quanta that the hosts may hold at once (`offload_budget`): 3 of TCP, whose segmentation and receive offload
    /// each hold one next to that of the pacing; 1 of QUIC (draft-ietf-ccwg-bbr-05, section 5.5.8).
    pub(crate) held_quanta: u64,
}

/// Data are sent after a time with nothing in flight.
#[derive(Debug)]
pub(crate) struct ModelRestart<'a> {
    pub(crate) now: Instant,
    pub(crate) pacing: &'a mut Pacer,
    /// The congestion window in octets.
    pub(crate) cwnd: u64,
    pub(crate) app_limited: bool,
}

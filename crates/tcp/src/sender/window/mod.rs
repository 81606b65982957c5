//! The windows of a sender: the peer's receive window, and the congestion window with its answer to ECN.

mod accecn;
pub(crate) mod congestion;
mod ecn;
mod peer;
mod usage;

pub(crate) use accecn::{AccEcnSender, Marks};
pub(crate) use congestion::{
    Acked, Congestion, Expiry, Law, MarkedAck, ModelAck, ModelRestart, RepairPhase, RoundTrip,
};
pub(crate) use ecn::EcnResponse;
pub(crate) use peer::PeerWindow;
pub(crate) use usage::{Outcome, WindowUse};

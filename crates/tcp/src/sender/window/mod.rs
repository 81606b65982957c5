//! The windows of a sender: the peer's receive window, and the congestion window with its answer to ECN.

pub(crate) mod congestion;
mod ecn;
mod peer;

pub(crate) use congestion::{Acked, Congestion, RoundTrip};
pub(crate) use ecn::EcnResponse;
pub(crate) use peer::PeerWindow;

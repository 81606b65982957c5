//! Closed forms: what a line can do at best, so that every result can be shown beside its bound.
//!
//! | module | answers |
//! | --- | --- |
//! | [`asymmetry`] | does the upstream carry the ACKs that a full downstream needs? If not, how full does it get? |
//! | [`amp`] | what so many ACKs a second release, one way and with both directions in classes |
//! | [`ack_rate`] | what rate to reserve upstream for the ACKs of a download |
//! | [`delay`] | how long a queue takes to empty, and what a window gives over that round trip |
//! | [`fairness`] | how evenly something is shared |
//! | [`interval`] | how far the mean of a few runs can be trusted |
//! | [`voice`] | how well a call can be understood, from delay and loss (ITU-T G.107) |
//! | [`y1541`] | which service classes of ITU-T Y.1541 a path meets |
//!
//! Sizes are bytes on the wire, counted by `lastmile_linklayer`; rates are those of the line, headers and cells included,
//! unless a name says `ip` or `goodput`. Computed in exact fractions ([`Fraction`]) and rounded once, to `f64`, at the end.

pub mod ack_rate;
pub mod amp;
pub mod asymmetry;
pub mod delay;
pub mod fairness;
mod fraction;
pub mod interval;
pub mod voice;
pub mod y1541;

pub use fraction::Fraction;

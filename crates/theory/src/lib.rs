//! Closed forms: the best possible performance of a line, so that every result can be shown next to
//! its bound.
//!
//! | module | answers |
//! | --- | --- |
//! | [`asymmetry`] | does the upstream carry the ACKs that a full downstream needs? If not, how full does it get? |
//! | [`amp`] | which packet rate does a rate of ACKs release, for one direction and for both in classes? |
//! | [`ack_rate`] | which upstream rate should be reserved for the ACKs of a download? |
//! | [`delay`] | how long does a packet wait behind others? |
//! | [`grants`] | to which rate do upstream grants limit a download through its ACKs? |
//! | [`fairness`] | how fair is a division? |
//! | [`interval`] | what is the confidence interval of the mean of a few runs? |
//! | [`voice`] | which quality does a call have, from delay and loss (ITU-T G.107)? |
//! | [`y1541`] | which service classes of ITU-T Y.1541 does a path meet? |
//!
//! Sizes are bytes on the wire, counted by `lastmile_linklayer`; rates are those of the line,
//! headers and cells included, unless a name says `ip` or `goodput`. Results are exact fractions
//! ([`Fraction`]), rounded once, to `f64`, at the end.

pub mod ack_rate;
pub mod amp;
pub mod asymmetry;
pub mod delay;
pub mod fairness;
mod fraction;
pub mod grants;
pub mod interval;
mod user_rate;
pub mod voice;
pub mod y1541;

pub use fraction::Fraction;

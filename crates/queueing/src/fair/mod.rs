//! Fair queueing: each flow or class gets its share of the line, whatever the others do.
//!
//! Sizes are those on the wire of the line, where papers and RFCs count bytes of packets: the share of a line is a share
//! of its time.

pub(crate) mod flows;
pub mod fq_codel;
pub(crate) mod lengths;
pub mod sfq;

pub use flows::FlowKeys;
pub use fq_codel::FqCodel;
pub use sfq::Sfq;

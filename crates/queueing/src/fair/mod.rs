//! Fair queueing: each flow or class gets its share of the line, whatever the others do.
//!
//! Sizes are bytes on the wire of the line, where papers and RFCs count bytes of packets: the share
//! of a line is a share of its time.

pub mod drr;
pub(crate) mod flows;
pub mod fq_codel;
#[cfg(test)]
mod harness;
pub(crate) mod lengths;
pub mod members;
pub(crate) mod scheduler;
pub mod sfq;
mod tags;
pub mod wf2q_plus;
pub mod wfq;

pub use flows::FlowKeys;
pub use fq_codel::FqCodel;
pub use members::{Among, Class};
pub use sfq::Sfq;

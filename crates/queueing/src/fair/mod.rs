//! Fair queueing: each flow or class gets its share of the line, whatever the others do.
//!
//! Sizes are bytes on the wire of the line, where papers and RFCs count bytes of packets: the share
//! of a line is a share of its time.

pub mod drr;
pub(crate) mod flows;
pub mod fq_codel;
pub mod fq_pie;
#[cfg(test)]
mod harness;
pub(crate) mod lengths;
pub mod members;
pub mod per;
mod rounds;
pub(crate) mod scheduler;
pub mod sfq;
pub(crate) mod sized;
mod tags;
pub mod wf2q_plus;
pub mod wfq;

pub use flows::FlowKeys;
pub use fq_codel::FqCodel;
pub use fq_pie::FqPie;
pub use members::{Among, Class};
pub use per::Per;
pub use sfq::Sfq;

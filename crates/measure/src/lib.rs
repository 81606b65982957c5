//! A real line measured from its end: bandwidth, latency under load, buffers, encapsulation.
//!
//! | module | holds |
//! | --- | --- |
//! | [`report`] | the record of a measurement, as it is written to JSON |
//! | [`load`] | sources of load: one trait for every protocol |
//! | [`probe`] | probes of an idle or loaded line: one trait for every kind |
//! | [`conditions`] | working conditions: a grade and sentences |
//! | [`session`] | the phases of a measurement, run over a load and any number of probes |
//! | [`own`], [`serve`] | lastmile's own protocol: the client, and the server |
//! | [`congestion`] | congestion controls: what the kernel offers, and what sockets have |
//! | [`statistics`] | means and medians with intervals that are honest for dependent samples |
//! | [`train`] | packets of given sizes at given times, and their arrivals: the instrument of [`detect`] |
//! | [`flent`] | flent's data files, written and read |
//! | [`archive`] | measurements read from files, lastmile's and flent's |
//! | [`foreign`] | loads and probes against servers that exist |
//! | [`detect`] | encapsulation, gross rates, buffers and shapers of a line, inferred from trains |
//!
//! Publications: Brouer 2005, 3.2, 3.5, 6.2.1 and B.2; draft-ietf-ippm-responsiveness.

pub mod archive;
mod clock;
pub mod conditions;
pub mod congestion;
pub mod detect;
mod error;
pub mod flent;
pub mod foreign;
mod holes;
#[doc(hidden)]
pub mod hostile;
pub mod load;
pub mod own;
pub mod probe;
pub mod report;
pub mod serve;
pub mod session;
pub mod statistics;
pub mod train;

pub use error::Error;

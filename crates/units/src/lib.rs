//! Time, rates and sizes as integer newtypes that know their unit.
//!
//! The crate depends on no other crate of the workspace. Floats are for printing and statistics
//! only.
//!
//! | type | holds | resolution |
//! | --- | --- | --- |
//! | [`Instant`], [`Duration`] | a point in time, a span | picoseconds |
//! | [`BitRate`] | bits per second of a line, headers and cells included | 1 bit/s |
//! | [`ByteCount`], [`WireBytes`], [`CellCount`] | IP bytes, bytes on the wire, ATM cells | 1 |
//! | [`Limit`] | the capacity of a queue: packets, bytes or cells | 1 |
//! | [`Ratio`] | a share of a whole, 0 to 100 % | 10^-9 |
//! | [`Serialiser`] | the transmission time of bits at a rate, with the remainder of each division carried | exact |
//!
//! All parse from text by `FromStr` ([`parse`]) and print as text that parses to an equal value.
//!
//! No type has `Deref` or `From<u64>`: a constructor names the unit of every number.

mod limit;
pub mod parse;
mod rate;
mod ratio;
mod size;
mod time;

pub use limit::Limit;
pub use rate::{BitRate, Serialiser};
pub use ratio::Ratio;
pub use size::{ByteCount, CellCount, PacketCount, WireBytes};
pub use time::{Duration, Instant};

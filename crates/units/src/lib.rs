//! Time, rates and sizes as integer newtypes that know their unit.
//!
//! Nothing here depends on anything else, and nothing here is a float except for printing and statistics.
//!
//! | type | holds | resolution |
//! | --- | --- | --- |
//! | [`Instant`], [`Duration`] | a point in time, a span | picoseconds |
//! | [`BitRate`] | bits per second of a line, headers and cells included | 1 bit/s |
//! | [`ByteCount`], [`WireBytes`], [`CellCount`] | IP bytes, bytes on the wire, ATM cells | 1 |
//! | [`Serialiser`] | the time that bits take at a rate, the remainder of each division carried on | exact |
//!
//! No type here has `Deref` or `From<u64>`: a number becomes a quantity only by naming its unit.

mod rate;
mod size;
mod time;

pub use rate::{BitRate, Serialiser};
pub use size::{ByteCount, CellCount, PacketCount, WireBytes};
pub use time::{Duration, Instant};

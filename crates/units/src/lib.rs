//! Time, rates and sizes as integer newtypes that know their unit.
//!
//! Nothing here depends on anything else, and nothing here is a float except for printing and statistics.
//!
//! | type | holds | resolution |
//! | --- | --- | --- |
//! | [`Instant`], [`Duration`] | a point in time, a span | picoseconds |
//! | [`BitRate`] | bits per second of a line, headers and cells included | 1 bit/s |
//! | [`ByteCount`], [`WireBytes`], [`CellCount`] | IP bytes, bytes on the wire, ATM cells | 1 |
//! | [`Limit`] | what a queue may hold: packets, bytes or cells | 1 |
//! | [`Ratio`] | a share of a whole, 0 to 100 % | 10^-9 |
//! | [`Serialiser`] | the time that bits take at a rate, the remainder of each division carried on | exact |
//!
//! All are read from text by `FromStr` ([`parse`]) and print as text that reads back to the same value.
//!
//! No type here has `Deref` or `From<u64>`: a number becomes a quantity only by naming its unit.

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

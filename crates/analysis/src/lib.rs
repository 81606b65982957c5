//! What packets tell of their TCP connections: fed with headers and times, it says for each connection and direction what was sent again
//! and why, how long round trips were, what limited the sender, and over all why goodputs differ.
//!
//! No input or output, no clock: [`Analysis::packet`] takes the time of each packet. Connections know nothing of each other, so the order of
//! packets of different connections changes nothing. Memory for each is bounded ([`MOST_OUTSTANDING`], [`MOST_PAUSES`]).
//!
//! | file | holds |
//! | --- | --- |
//! | `connections.rs` | which packet belongs to which connection; who opened it |
//! | `captured.rs` | headers that a snap length has cut |
//! | `half.rs` | one direction: its data, and the ACKs of the other side |
//! | `half/cause.rs` | why a segment was sent again |
//! | `sent.rs` | segments that are not acknowledged yet |
//! | `ranges.rs` | what SACK has told of them |
//! | `roundtrip.rs`, `turnaround.rs` | the parts of the round trip on both sides of the capture |
//! | `limit.rs`, `sender.rs` | what a sender waited for; the same from where it cannot be seen at once |
//! | `segment_size.rs` | what a full segment is, where offloads merge several |
//! | `vantage.rs` | where the capture stands |
//! | `outcome.rs` | the numbers that come out |
//! | `fairness.rs` | how evenly connections shared, and what explains it |
//! | `stream.rs` | delay, jitter, losses and late packets of a stream of datagrams |

mod captured;
mod connections;
pub mod fairness;
mod half;
mod limit;
mod outcome;
mod ranges;
mod roundtrip;
mod segment_size;
mod sender;
mod sent;
pub mod stream;
mod turnaround;
mod vantage;

pub use captured::parse_captured;
pub use connections::{Analysis, Sighting};
pub use limit::{Limit, Shares};
pub use outcome::{Connection, Direction, Handshake, MOST_PAUSES, Opener, Pause, Repeats, RoundTrips};
pub use sender::Basis;
pub use sent::MOST_OUTSTANDING;
pub use vantage::Vantage;

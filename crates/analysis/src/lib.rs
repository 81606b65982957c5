//! Analysis of TCP connections from captured headers and times. Results for each connection and
//! direction are retransmissions and their causes, round trips, and the sender's limits; for groups
//! of connections, the causes of unequal goodputs.
//!
//! No input or output, no clock: [`Analysis::packet`] takes the time of each packet. Connections
//! are independent, so the order of packets of different connections has no effect. Memory per
//! connection is bounded ([`MOST_OUTSTANDING`], [`MOST_PAUSES`]).
//!
//! | file | holds |
//! | --- | --- |
//! | `connections.rs` | assignment of packets to connections; the opener of each |
//! | `buckets.rs` | distributions of delays, to three digits |
//! | `truncated.rs` | headers truncated by a snap length |
//! | `half.rs` | one direction: its data |
//! | `half/acks.rs` | the ACKs of the other side |
//! | `half/limits.rs` | the limits of its sender over time; the results |
//! | `half/trace.rs` | the sender's congestion window along its packets |
//! | `half/state.rs` | the parts of its state |
//! | `half/undo.rs`, `half/undone_repairs.rs` | repairs that the sender takes back |
//! | `half/numbers.rs` | packets that are missing, by their IPv4 identifications |
//! | `half/reports.rs` | reports of duplicates |
//! | `half/cause.rs` | the cause of a retransmission, from the packets around it |
//! | `cause.rs` | the causes of retransmissions, by name |
//! | `congestion.rs` | the estimate of a congestion window |
//! | `copies.rs` | copies of packets that a mirror port makes |
//! | `clock_steps.rs` | steps of the capture's clock, by timestamps |
//! | `timestamps.rs` | timestamps of packets, and their order |
//! | `trace.rs` | one packet as the analysis understands it |
//! | `outstanding.rs` | unacknowledged segments |
//! | `ranges.rs` | ranges acknowledged by SACK |
//! | `roundtrip.rs`, `response_time.rs` | the parts of the round trip on both sides of the capture |
//! | `limit.rs`, `sender.rs` | the limits of a sender; their reconstruction from a distant capture |
//! | `remote.rs`, `sender_clock.rs` | a distant sender with its packets and ACKs at the times of its own end |
//! | `runs.rs` | runs of packets that were not played |
//! | `segment_size.rs` | the size of a full segment, also where offloads merge several |
//! | `vantage.rs` | the position of the capture on the path |
//! | `outcome.rs` | the results |
//! | `ecn.rs` | explicit congestion notification |
//! | `datagrams.rs` | flows of UDP and QUIC |
//! | `datagrams/window.rs` | the fullest span of a flow |
//! | `joined.rs` | two captures of the same packets |
//! | `fairness.rs` | fairness among connections, and its explanation |
//! | `stream.rs` | delay, jitter, losses and late packets of a stream of datagrams |
//! | `quantiles.rs` | medians and percentiles of values themselves |
//! | `duplicates.rs` | the numbers of a stream that have come, so that copies count once |

pub mod buckets;
mod cause;
mod clock_steps;
mod congestion;
mod connections;
mod copies;
pub mod datagrams;
pub mod duplicates;
mod ecn;
pub mod fairness;
mod half;
pub mod joined;
mod limit;
mod outcome;
mod outstanding;
pub mod quantiles;
mod ranges;
mod remote;
mod response_time;
mod roundtrip;
mod runs;
mod segment_size;
mod sender;
mod sender_clock;
pub mod stream;
mod timestamps;
mod trace;
mod truncated;
mod vantage;

pub use cause::Cause;
pub use clock_steps::ClockStep;
pub use congestion::Phase;
pub use connections::{Analysis, Sighting};
pub use copies::Copies;
pub use ecn::{Codepoints, EcnFeedback};
pub use limit::{Limit, Shares};
pub use outcome::{
    Acks, Connection, Delays, Direction, Events, Handshake, LEAST_ANSWERS, Limits, MOST_PAUSES, Opener, Pause,
    Position, Repeats, RoundTrips, Volume, Window,
};
pub use outstanding::MOST_OUTSTANDING;
pub use sender::Basis;
pub use trace::{Acknowledgement, Data, Kind, SACK_BLOCKS, Sender, Traced};
pub use truncated::{is_fragment, parse_captured};
pub use vantage::Vantage;

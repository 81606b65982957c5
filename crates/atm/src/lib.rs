//! ATM, cell by cell: packets in AAL5 frames, contracts and their policing, switches that discard
//! frames, and networks of them.
//!
//! Pure like the datapath: no clock, no thread, no file, no randomness. Time comes in with every call.
//!
//! ```
//! use lastmile_atm::{LinkSpec, Network, NetworkSpec, VcSpec};
//! use lastmile_units::{BitRate, ByteCount, Duration, Instant};
//!
//! let mut spec = NetworkSpec::new();
//! let (host, server) = (spec.node("host"), spec.node("server"));
//! let oc3 = BitRate::from_kbit_per_s(149_760);
//! spec.link(LinkSpec::new(host, server, oc3, Duration::from_ms(10)));
//! let route = spec.route(&["host", "server"]).expect("a link");
//! let vc = spec.vc(VcSpec::new("transfer", 32, route));
//!
//! let mut network = Network::new(&spec)?;
//! network.offer(Instant::ZERO, vc, ByteCount::new(8232), 1)?;
//! let mut left = Vec::new();
//! while let Some(next) = network.next_event() {
//!     network.advance(next);
//!     network.departures(&mut left);
//! }
//! // 172 cells of 2.83 us, and the delay.
//! assert_eq!(left[0].at.as_ps(), 10_486_965_811);
//! # Ok::<(), lastmile_atm::NetworkError>(())
//! ```

pub mod aal5;
pub mod abr;
mod cell;
mod connection;
pub mod contract;
pub mod discard;
pub mod network;
mod port;
mod queue;
mod schedule;
mod switch;
pub mod time;
pub mod trial;

pub use contract::Contract;
pub use discard::{CellDrop, Discard};
pub use network::{
    Clp, Departure, Fate, LinkId, LinkSpec, Network, NetworkError, NetworkSpec, NodeId, QueueSpec, Queues, VcId,
    VcSpec, VpId,
};

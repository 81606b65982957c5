//! Plain data that both clocks share: the network that a scenario describes, and the outcome of a
//! run.
//!
//! The scenario crate makes a [`Network`], the simulator and the lab run it and return an
//! [`Outcome`](outcome::Outcome), the results crate turns that into tables, files and pages.
//!
//! | file | content |
//! | --- | --- |
//! | `network.rs`, `node.rs` | links, access lines, nodes |
//! | `traffic.rs` | sources, addresses of their ends, receiving applications |
//! | `applications.rs` | web pages, videos, conferences, games, swarms |
//! | `autorate.rs` | controllers of shapers |
//! | `atm.rs` | virtual channels and edge devices on links that carry cells |
//! | `check.rs`, `error.rs` | conditions that a network must meet to run |
//! | `directory.rs` | addresses, ports and first payload bytes of flows |
//! | `unloaded.rs` | delays over empty queues |
//! | `outcome.rs` | the result of a run |
//! | `observer.rs` | the interface for reports on single packets |

mod applications;
mod atm;
mod autorate;
mod check;
mod directory;
mod error;
mod ip;
mod network;
mod node;
mod observer;
pub mod outcome;
mod traffic;
mod transport;
mod unloaded;

pub use applications::{
    Audio, Backup, Conference, Datagrams, FileSizes, Game, Http, Rates, Rule, Spread, Swarm, Video, Web,
};
pub use atm::{AckHold, Atm, Circuit, Edge, MeterScope};
pub use autorate::Autorate;
pub use directory::{Directory, number_of};
pub use error::BuildError;
pub use ip::IpFields;
pub use lastmile_queueing::compress::Compression;
pub use lastmile_theory::voice::Codec;
pub use network::{AccessLine, Hop, Link, Network, Record};
pub use node::{Node, NodeIndex};
pub use observer::{Observer, Passage};
pub use traffic::{Echo, EndName, Listener, Names, Replay, Source, Steady, Traffic};
pub use transport::{OpenedBy, Transport};

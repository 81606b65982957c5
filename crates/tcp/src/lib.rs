//! TCP endpoints as state machines without I/O: RFC 9293 with the congestion control of five eras.
//!
//! An [`Endpoint`] is one end of one connection, sender and receiver at once. It knows no clock and no socket: its
//! owner hands it the time with every call, feeds it segments and timers, and takes segments out.
//!
//! ```
//! use std::sync::Arc;
//! use lastmile_packet::{FlowId, SeqNumber};
//! use lastmile_tcp::{Config, Endpoint, Open};
//! use lastmile_units::Instant;
//!
//! let config = Arc::new(Config::default());
//! let mut client = Endpoint::new(config.clone(), FlowId::new(0), Open::Active, SeqNumber::new(1));
//! let mut server = Endpoint::new(config, FlowId::new(1), Open::Passive, SeqNumber::new(9));
//! client.connect(Instant::ZERO);
//! client.write(100_000);
//! client.close();
//! loop {
//!     let Some(segment) = client.poll_transmit(Instant::ZERO) else { break };
//!     server.on_segment(Instant::ZERO, &segment);
//!     while let Some(segment) = server.poll_transmit(Instant::ZERO) {
//!         client.on_segment(Instant::ZERO, &segment);
//!     }
//! }
//! assert_eq!(server.delivered(), 100_000);
//! ```
//!
//! The contract of the owner: after every `on_segment`, `on_timer` and application call, call `poll_transmit` until it
//! says `None`, then look at `next_timer`. A timer may fire early or for nothing; it must not fire late.
//!
//! | module | holds |
//! | --- | --- |
//! | `config` | what a user may set, shared by all endpoints alike |
//! | `endpoint` | the public face and the connection states of RFC 9293; `handshake` opens a connection, `segments` makes what goes out, `observe` shows it |
//! | `sender` | what is known of the stream; `transmit` chooses what goes out next, `persist` asks a shut window, `recovery` is the answer to acknowledgements and timeouts, `sending` what stands for a sender with nothing to send, `aside` what few need |
//! | `congestion` | the congestion window: Tahoe, Reno, NewReno, SACK, CUBIC; HyStart and HyStart++ |
//! | `scoreboard`, `sacked` | what the receiver holds, by SACK (RFC 6675) |
//! | `rack`, `tail` | losses found by time, and a probe where nothing comes back (RFC 8985) |
//! | `prr` | the window while a loss is repaired (RFC 9937) |
//! | `receiver`, `reassembly` | acknowledgements, windows, data out of order; `quick_acks` is Linux's way to acknowledge |
//! | `rtt`, `measure`, `trips`, `sent` | retransmission timeout (RFC 6298, Linux), what measures a round trip, and when what is in flight went out |
//! | `undo` | taking back a repair that proves needless: Eifel, DSACK, F-RTO; `repair` is what is kept of a repair |
//! | `stats` | counters, and what limited the sender |

mod aside;
mod autotune;
mod config;
mod congestion;
mod endpoint;
mod flags;
mod handshake;
mod measure;
mod observe;
mod persist;
mod prr;
mod quick_acks;
mod rack;
mod ranges;
mod reassembly;
mod receiver;
mod recovery;
mod repair;
mod rtt;
mod sacked;
mod scoreboard;
mod segments;
mod sender;
mod sending;
mod sent;
mod stats;
mod tail;
mod timer;
mod transmit;
mod trips;
mod undo;

pub use config::{
    ByteCounting, Config, ConfigError, InitialWindow, LossDetection, Recovery, Rto, SlowStart, Variant, WindowScale,
};
pub use endpoint::{Endpoint, Open, State};
pub use stats::{Limit, LimitedTime, Stats};

//! TCP endpoints as state machines without I/O: RFC 9293 with the congestion control of six eras.
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
//! The contract of the owner: after every `on_segment`, `on_timer` and application call, call
//! `poll_transmit` until it returns `None`, then look at `next_timer`. A timer may fire early or
//! needlessly; it must not fire late.
//!
//! | module | holds |
//! | --- | --- |
//! | `config` | the settings, which equal endpoints share |
//! | [`controller`] | congestion control, pacing and delivery rates for a transport that numbers packets |
//! | `endpoint` | the public type and the connection states of RFC 9293; its handshake, its segments, its reports |
//! | `sender` | the sending half: the response to acknowledgements, the choice of the next segment, recovery |
//! | `sender::flight` | the octets in flight: the scoreboard (RFC 6675), the times of transmission |
//! | `sender::window` | the peer's window; the congestion window of each variant, HyStart and HyStart++; ECN |
//! | `sender::model` | models of the path, and what they need: `delivery_rate` samples, `pacing` |
//! | `sender::repair` | the repair of losses: RACK (RFC 8985), PRR (RFC 9937), undo (Eifel, DSACK, F-RTO) |
//! | `sender::timers` | the timer and its expiry: retransmission, reordering, tail loss probe, persist |
//! | `sender::rtt` | round trips and the retransmission timeout (RFC 6298, Linux) |
//! | [`ranges`] | sets of ranges of a stream |
//! | `random` | draws that equal seeds repeat |
//! | `receiver` | the receiving half: reassembly, the advertised window, the timing of acknowledgements |
//! | `stats` | counters, and the reasons that limit the sender |

mod config;
pub mod controller;
mod endpoint;
mod random;
pub mod ranges;
mod receiver;
mod sender;
mod stats;

pub use config::{
    AckConfig, ByteCounting, Config, ConfigError, CongestionConfig, Control, ControlAck, ControlLoss, Controls, Ecn,
    InitialWindow, LossDetection, LossKind, Recovery, RepairConfig, Rto, SlowStart, TimerConfig, Variant, WindowScale,
};
pub use endpoint::{Endpoint, Open, State};
pub use stats::{Limit, LimitClock, LimitedTime, RoundTrips, Stats};

//! QUIC endpoints as state machines without I/O: RFC 9000, RFC 9002, and the acknowledgement frequency of
//! draft-ietf-quic-ack-frequency.
//!
//! An [`Endpoint`] is one end of one connection with one bidirectional stream. It knows no clock and no socket: its
//! owner hands it the time with every call, feeds it packets and timers, and takes packets out. Packets are plain data
//! with the size of their UDP payload. A network that carries only sizes keeps the contents in an [`InTransit`], so
//! that nothing in it can read them.
//!
//! ```
//! use std::sync::Arc;
//! use lastmile_quic::{Config, Endpoint, Role};
//! use lastmile_units::Instant;
//!
//! let config = Arc::new(Config::default());
//! let mut client = Endpoint::new(config.clone(), Role::Client, 1);
//! let mut server = Endpoint::new(config, Role::Server, 2);
//! let mut now = Instant::ZERO;
//! client.write(100_000);
//! client.close();
//! client.connect(now);
//! while server.delivered() < 100_000 {
//!     now = [client.next_timer(), server.next_timer()].into_iter().flatten().min().unwrap_or(now).max(now);
//!     [&mut client, &mut server].into_iter().for_each(|end| end.on_timer(now));
//!     while let Some(packet) = client.poll_transmit(now) {
//!         server.on_packet(now, &packet);
//!         while let Some(packet) = server.poll_transmit(now) {
//!             client.on_packet(now, &packet);
//!         }
//!     }
//! }
//! ```
//!
//! The contract of the owner: after every `on_packet`, `on_timer` and application call, call `poll_transmit` until it
//! returns `None`, then look at `next_timer`. A timer may fire early or needlessly; it must not fire late.
//!
//! Congestion control is that of [`lastmile_tcp::controller`].
//!
//! | module | holds |
//! | --- | --- |
//! | `config` | the settings, which equal endpoints share |
//! | `packet` | packets and frames, and their sizes in bytes; [`varint`] |
//! | `received` | the packet numbers received, and the timing of acknowledgements |
//! | `sent` | the packets in flight; losses by packet and time threshold; persistent congestion |
//! | `rtt` | round trips and the probe timeout |
//! | `stream` | the octets of a stream at its sender and at its receiver, and their flow control |
//! | `endpoint` | the public type: handshake, packets in and out, timers, reports |
//! | `in_transit` | the contents of packets in a network |
//! | `stats` | counters |

mod config;
mod endpoint;
mod in_transit;
mod packet;
mod received_packets;
mod rtt;
mod sent_packets;
mod stats;
mod stream;
pub mod varint;

pub use config::{AckFrequency, Config, CongestionControl};
pub use endpoint::{Endpoint, Role};
pub use in_transit::InTransit;
pub use packet::{AckFrame, AckFrequencyFrame, Chunk, Flags, Form, Frames, Packet, SteadySizes};
pub use stats::Stats;

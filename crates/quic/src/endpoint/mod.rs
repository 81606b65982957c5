//! One end of a connection.
//!
//! Published: RFC 9000, RFC 9001 (sizes and order of the handshake), RFC 9002.
//!
//! Each part owns its state and answers questions about it: `handshake`, `received`, `sent`, `rtt`, the two parts of
//! the stream, and the congestion controller. No part knows [`Endpoint`], which asks them in the order of the RFCs.
//! Each event has a file: `receive`, `loss`, `transmit`, `timer`; `observe` has the reports. These files and this one
//! refer to one another, since they are one type.
//!
//! Differs: the three packet number spaces are one, and keys exist at once. No 0-RTT, Retry, migration, path
//! validation, key update, ECN, CONNECTION_CLOSE or idle timeout: a connection whose stream is finished stays silent.

mod control;
mod handshake;
mod loss;
mod observe;
mod receive;
mod timer;
mod transmit;

use std::sync::Arc;

use lastmile_tcp::controller::Controller;
use lastmile_tcp::{LimitClock, RoundTrips};
use lastmile_units::Instant;

use crate::received_packets::Received;
use crate::rtt::Rtt;
use crate::sent_packets::SentPackets;
use crate::stream::{FOREVER, ReceiveStream, SendStream};
use crate::{Config, Stats};
use control::Control;
use handshake::Handshake;
pub use handshake::Role;
use timer::Timers;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Arc<Config>,
    handshake: Handshake,
    controller: Controller,
    rtt: Rtt,
    received: Received,
    /// The spin bit of the packets that it sends.
    spin: bool,
    sent: SentPackets,
    send: SendStream,
    receive: ReceiveStream,
    control: Control,
    timers: Timers,
    limits: LimitClock,
    stats: Stats,
    round_trips: RoundTrips,
}

impl Endpoint {
    /// An end with this role. `seed` varies the phases of congestion controls that model the path.
    ///
    /// A field of `config` that is out of its range takes the nearest allowed value.
    #[must_use]
    pub fn new(config: Arc<Config>, role: Role, seed: u32) -> Self {
        let window = config.receive_window.as_u64();
        Self {
            handshake: Handshake::new(role),
            controller: Controller::new(config.congestion.variant(), Self::full(&config), seed),
            rtt: Rtt::default(),
            received: Received::new(config.max_ack_delay),
            spin: false,
            sent: SentPackets::default(),
            send: SendStream::new(window),
            receive: ReceiveStream::new(window),
            control: Control::default(),
            timers: Timers::default(),
            limits: LimitClock::default(),
            stats: Stats::default(),
            round_trips: RoundTrips::default(),
            config,
        }
    }

    /// Bytes of a full datagram.
    fn full(config: &Config) -> u16 {
        config.datagram.max(crate::config::LEAST_DATAGRAM)
    }

    /// The client opens the connection at `now`. No effect on a server.
    pub fn connect(&mut self, now: Instant) {
        self.handshake.connect(now);
    }

    /// The application offers `bytes` more. Ignored after [`close`](Self::close).
    pub fn write(&mut self, bytes: u64) {
        self.send.offer(bytes);
        self.control.offer(self.send.offered(), &self.config);
    }

    /// The application offers data without end.
    pub fn write_forever(&mut self) {
        self.write(FOREVER);
    }

    /// The stream ends after the offered data.
    pub fn close(&mut self) {
        self.send.close();
    }

    /// The stream ends here: offered data that were never sent are discarded.
    pub fn abort(&mut self) {
        self.send.truncate();
        self.send.close();
    }
}

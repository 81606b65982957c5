//! One end of a connection: its socket and its endpoint.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant as StdInstant;

use bytes::{Bytes, BytesMut};
use lastmile_live::clock::std_span;
use lastmile_units::Instant;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionStats, DatagramEvent, Endpoint, Event, Side,
    VarInt,
};
use rustix::io::Errno;

use crate::error::Error;

use super::super::udp;
use super::observed::Flight;
use super::settings::{Settings, lab_span};

/// The beginning of the lab's clock on the clock of the library.
pub(super) struct Zero(StdInstant);

impl Zero {
    /// The zero of a clock at which the lab's clock shows `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self(StdInstant::now() - std_span(now.since(Instant::ZERO)))
    }

    pub(super) fn std(&self, at: Instant) -> StdInstant {
        self.0 + std_span(at.since(Instant::ZERO))
    }

    pub(super) fn lab(&self, at: StdInstant) -> Instant {
        Instant::ZERO + lab_span(at.saturating_duration_since(self.0))
    }
}

/// One end of a connection.
pub(super) struct Peer {
    socket: UdpSocket,
    far: SocketAddr,
    endpoint: Endpoint,
    /// The configuration of the end that opens the connection, until it does.
    opens: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    connected: bool,
    buffer: Vec<u8>,
}

impl Peer {
    /// An end of this side; `flight` records the flight of its packets.
    pub(super) fn new(socket: UdpSocket, side: Side, settings: &Settings, flight: Flight) -> Result<Self, Error> {
        let far = socket.peer_addr().map_err(|error| Error::Quic(error.to_string()))?;
        let (opens, server) = match side {
            Side::Client => (Some(settings.client(flight)), None),
            Side::Server => (None, Some(settings.server(flight))),
        };
        let endpoint = Endpoint::new(settings.endpoint.clone(), server, false, None);
        Ok(Self { socket, far, endpoint, opens, connection: None, connected: false, buffer: Vec::new() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Opens the connection, if this end does.
    pub(super) fn open(&mut self, now: StdInstant) -> io::Result<()> {
        if let Some(config) = self.opens.take() {
            let opened = self.endpoint.connect(now, config, self.far, "lab.invalid");
            self.connection = Some(opened.map_err(io::Error::other)?);
        }
        Ok(())
    }

    /// When its next timer expires.
    pub(super) fn timer(&mut self) -> Option<StdInstant> {
        self.connection.as_mut()?.1.poll_timeout()
    }

    /// Timers that are due expire.
    pub(super) fn expire(&mut self, now: StdInstant) {
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|at| at <= now)
        {
            connection.handle_timeout(now);
        }
    }

    /// Takes the packets that have come.
    pub(super) fn hear(&mut self, now: StdInstant) -> io::Result<()> {
        let mut packet = [0; 65_536];
        loop {
            let length = match self.socket.recv(&mut packet) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The far end has refused an earlier packet.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::CONNREFUSED) => continue,
                Err(error) => return Err(error),
            };
            let mut answer = Vec::new();
            let packet = BytesMut::from(&packet[..length]);
            match self.endpoint.handle(now, self.far, None, None, packet, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut self.connection {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    if let Ok(accepted) = self.endpoint.accept(incoming, now, &mut answer, None) {
                        self.connection = Some(accepted);
                    }
                }
                Some(DatagramEvent::Response(transmit)) => udp::send(&self.socket, &answer[..transmit.size])?,
                None => {}
            }
        }
    }

    /// Takes note of what has happened to the connection; the reason if it broke.
    pub(super) fn notice(&mut self) -> Option<String> {
        let (_, connection) = self.connection.as_mut()?;
        let mut failure = None;
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost {
                    reason: ConnectionError::LocallyClosed | ConnectionError::ApplicationClosed(_),
                } => {}
                Event::ConnectionLost { reason } => failure = failure.or(Some(reason.to_string())),
                _ => {}
            }
        }
        failure
    }

    /// The connection, once there is one.
    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// The connection, once its handshake is complete at this end.
    pub(super) fn connected(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|_| self.connected).map(|(_, connection)| connection)
    }

    /// Closes the connection. Unsent data are discarded.
    pub(super) fn close(&mut self, now: StdInstant) {
        self.opens = None;
        if let Some(connection) = self.connection() {
            connection.close(now, VarInt::from_u32(0), Bytes::new());
        }
    }

    /// No packet is due any more, and none is expected.
    pub(super) fn is_over(&self) -> bool {
        self.opens.is_none() && self.connection.as_ref().is_none_or(|(_, connection)| connection.is_drained())
    }

    /// Sends all that it may send now.
    pub(super) fn send(&mut self, now: StdInstant) -> io::Result<()> {
        let Some((handle, connection)) = &mut self.connection else { return Ok(()) };
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            self.buffer.clear();
            let Some(transmit) = connection.poll_transmit(now, 1, &mut self.buffer) else { return Ok(()) };
            udp::send(&self.socket, &self.buffer[..transmit.size])?;
        }
    }

    /// The slow start threshold, once there is one.
    pub(super) fn threshold(&self) -> Option<u64> {
        let (_, connection) = self.connection.as_ref()?;
        connection.congestion_state().metrics().ssthresh.filter(|bytes| *bytes < u64::MAX)
    }

    /// The counters; `None` before there is a connection.
    pub(super) fn stats(&self) -> Option<ConnectionStats> {
        self.connection.as_ref().map(|(_, connection)| connection.stats())
    }
}

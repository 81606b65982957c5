//! One end of a connection: its socket, its endpoint, its one stream in each direction.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant as StdInstant;

use bytes::BytesMut;
use lastmile_live::clock::std_span;
use lastmile_units::Instant;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionStats, DatagramEvent, Dir, Endpoint, Event,
    Side, StreamId,
};
use rustix::io::Errno;

use crate::error::Error;

use super::super::octets::ZEROS;
use super::super::udp;
use super::observed::Flight;
use super::settings::{Settings, lab_span};

/// The beginning of the lab's clock on the clock of the library.
pub(super) struct Zero(StdInstant);

impl Zero {
    /// It is `now` by the lab's clock.
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
    /// Of the end that opens, until it does.
    opens: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    connected: bool,
    /// The stream of its own, once it has written something.
    own: Option<StreamId>,
    finished: bool,
    /// The stream of the other end, once it has come.
    others: Option<StreamId>,
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
        Ok(Self {
            socket,
            far,
            endpoint,
            opens,
            connection: None,
            connected: false,
            own: None,
            finished: false,
            others: None,
            buffer: Vec::new(),
        })
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
                Event::ConnectionLost { reason: ConnectionError::LocallyClosed } => {}
                Event::ConnectionLost { reason } => failure = failure.or(Some(reason.to_string())),
                _ => {}
            }
        }
        failure
    }

    /// Reads all that has come over the other end's stream; the number of bytes.
    pub(super) fn read(&mut self) -> u64 {
        let Some((_, connection)) = &mut self.connection else { return 0 };
        self.others = self.others.or_else(|| connection.streams().accept(Dir::Uni));
        let Some(id) = self.others else { return 0 };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return 0 };
        let mut bytes = 0;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len() as u64;
        }
        // The grant of more goes out with the packets of this turn.
        let _ = chunks.finalize();
        bytes
    }

    /// Bounds what it keeps unsent to about `unsent` bytes beyond a second window.
    pub(super) fn bound_unsent(&mut self, unsent: u64) {
        if let Some((_, connection)) = &mut self.connection {
            let window = connection.congestion_state().window();
            connection.set_send_window(window.saturating_mul(2).saturating_add(unsent));
        }
    }

    /// Writes as much of `left` bytes as there is space for, and ends its stream when nothing is left.
    pub(super) fn write(&mut self, left: &mut u64) {
        let Some((_, connection)) = &mut self.connection else { return };
        if !self.connected || self.finished {
            return;
        }
        if self.own.is_none() && *left > 0 {
            self.own = connection.streams().open(Dir::Uni);
        }
        let Some(id) = self.own else { return };
        let mut stream = connection.send_stream(id);
        while *left > 0 {
            let part = usize::try_from(*left).unwrap_or(usize::MAX).min(ZEROS.len());
            match stream.write(&ZEROS[..part]) {
                Ok(written) => *left -= written as u64,
                Err(_) => return,
            }
        }
        self.finished = stream.finish().is_ok();
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

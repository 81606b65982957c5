//! The task of a lab run as plain data.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use lastmile_live::emulate;
use lastmile_packet::{FlowId, FlowKey};
use lastmile_queueing::autorate;
use lastmile_sim::sources::{Dialogue, UserOutcome};
use lastmile_tcp::Ecn;
use lastmile_units::{Duration, Instant};

/// The line, the hosts, and for how long.
#[derive(Clone, Debug)]
pub struct Config {
    /// The line. Its ends are namespaces that the lab makes, whatever it says of them.
    pub line: emulate::Config,
    /// Settings of TCP for both hosts.
    pub hosts: HostConfig,
    /// When it ends.
    pub duration: Duration,
    /// Time between samples; `None` for none but those at which the offered traffic changes.
    pub interval: Option<Duration>,
    /// Controllers of shapers, and the hops of these: down, up. Hops up are numbered first.
    pub autorates: Vec<(autorate::Config, [usize; 2])>,
}

/// Settings of TCP that the kernel has for a namespace, not for a socket: sysctls of ip-sysctl of the kernel's
/// documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_dsack`.
    pub dsack: bool,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// `tcp_window_scaling`.
    pub window_scaling: bool,
    /// `tcp_ecn`: 0, 1, or 3 for Accurate ECN.
    pub ecn: Ecn,
    /// `tcp_slow_start_after_idle`.
    pub idle_restart: bool,
    /// The largest window that grows by itself, five eighths of the largest `tcp_rmem`; `tcp_wmem` follows above its
    /// default. `None` if no window grows: then the kernel's own settings hold.
    pub largest_window: Option<u32>,
}

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The one whose packets go up.
    Client,
    /// The one whose packets go down.
    Server,
}

impl End {
    /// The one at the far end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }

    /// This one, by its address among those of client and server.
    pub(crate) fn socket_address(self, addresses: [IpAddr; 2], port: u16) -> SocketAddr {
        SocketAddr::new(addresses[self.index()], port)
    }
}

/// One flow.
#[derive(Debug)]
pub struct Flow {
    /// Name, unique.
    pub name: String,
    /// The host that sends the data.
    pub from: End,
    /// When its traffic starts, and with it a phase.
    pub phase: Instant,
    /// When it starts.
    pub start: Instant,
    /// When its application stops offering data.
    pub stop: Option<Instant>,
    /// Differentiated services code point of its packets, 0 to 63.
    pub dscp: u8,
    /// Addresses of client and server, of one family: those of their devices, or others, which the lab adds. Echo is
    /// over IPv4.
    pub addresses: [IpAddr; 2],
    /// The kind of its traffic.
    pub kind: Kind,
}

/// The kind of a flow's traffic.
#[derive(Debug)]
pub enum Kind {
    /// A TCP transfer.
    Transfer(TransferPlan),
    /// A QUIC transfer.
    Quic(QuicPlan),
    /// UDP packets of one size.
    Datagrams(DatagramPlan),
    /// ICMP echo.
    Echo(EchoPlan),
    /// Connections that come and go as an application decides.
    Application(ApplicationPlan),
    /// Datagrams both ways, each with its contents: a conference, a game.
    Dialogue(DialoguePlan),
    /// Packets as they are, each at its time.
    Replay(ReplayPlan),
}

/// The window that a receiver advertises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// This one from the beginning on.
    Fixed(u32),
    /// The kernel's own choice, which grows with what is received, up to [`HostConfig::largest_window`].
    Grows,
}

/// A TCP transfer.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// Largest segment, TCP options included: payload and, with timestamps, 12 bytes.
    pub segment: u16,
    /// Window of the receiver.
    pub window: Window,
    /// Buffer of the sender; `None` for that of the kernel.
    pub send_buffer: Option<u32>,
    /// Bytes to transfer; `None` for as many as there is time for.
    pub bytes: Option<u64>,
    /// Bytes that the receiver sends first.
    pub request: u64,
    /// The host that opens the connection.
    pub opener: End,
    /// Port of the host that opens.
    pub opener_port: u16,
    /// Port that the other host listens on.
    pub listener_port: u16,
    /// The first bytes of the data.
    pub first_payload: Vec<u8>,
    /// The first bytes of the request.
    pub first_request: Vec<u8>,
    /// Least retransmission timeout.
    pub min_rto: Duration,
    /// Largest retransmission timeout.
    pub max_rto: Duration,
    /// Longest that an ACK is held back.
    pub delayed_ack: Duration,
    /// The receiver acknowledges at once where the kernel does by itself; otherwise every second segment.
    pub quick_acks: bool,
}

/// A QUIC transfer.
#[derive(Clone, Debug)]
pub struct QuicPlan {
    /// The settings of both ends.
    pub quic: Arc<lastmile_quic::Config>,
    /// Bytes to transfer; `None` for as many as there is time for.
    pub bytes: Option<u64>,
    /// Bytes that the receiver sends first.
    pub request: u64,
    /// The host that opens the connection.
    pub opener: End,
    /// Port of the host that opens.
    pub opener_port: u16,
    /// Port of the other host.
    pub listener_port: u16,
}

/// UDP packets.
pub struct DatagramPlan {
    /// Payload bytes of a packet.
    pub payload: u16,
    /// Port that they come from.
    pub from_port: u16,
    /// Port that they go to.
    pub to_port: u16,
    /// The first bytes of the first packet.
    pub first_payload: Vec<u8>,
    /// Play-out buffer of the receiver.
    pub buffer: Duration,
    /// When each packet leaves, counted from the start of the flow; ascending.
    pub departures: Box<dyn Iterator<Item = Duration> + Send>,
}

impl fmt::Debug for DatagramPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramPlan")
            .field("payload", &self.payload)
            .field("to_port", &self.to_port)
            .finish_non_exhaustive()
    }
}

/// Echo requests at a steady pace.
#[derive(Clone, Copy, Debug)]
pub struct EchoPlan {
    /// Time between two.
    pub interval: Duration,
    /// IP bytes of a request.
    pub size: u16,
}

/// Connections that come and go.
pub struct ApplicationPlan {
    /// The plan of each connection, but for its bytes and requests. Connections take ports from the opener's on, or any
    /// for zero.
    pub connection: ConnectionPlan,
    /// The application that decides.
    pub application: Box<dyn Application>,
}

impl fmt::Debug for ApplicationPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplicationPlan").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// A connection over either transport.
#[derive(Clone, Debug)]
pub enum ConnectionPlan {
    /// Over the kernel's TCP.
    Tcp(TransferPlan),
    /// Over QUIC.
    Quic(QuicPlan),
}

impl ConnectionPlan {
    /// The host that opens it.
    #[must_use]
    pub fn opener(&self) -> End {
        match self {
            Self::Tcp(plan) => plan.opener,
            Self::Quic(plan) => plan.opener,
        }
    }

    /// The ports of the host that opens, and of the other.
    #[must_use]
    pub fn ports(&self) -> [u16; 2] {
        match self {
            Self::Tcp(plan) => [plan.opener_port, plan.listener_port],
            Self::Quic(plan) => [plan.opener_port, plan.listener_port],
        }
    }
}

/// The decisions of an application, apart from the sockets that carry them out. The lab numbers the connections.
pub trait Application: Send {
    /// Handles the start, or a time that the application asked for. `delivered` returns the bytes that a connection has
    /// delivered in all.
    fn wake(&mut self, now: Instant, delivered: &dyn Fn(u32) -> u64);

    /// The next order; the lab asks again until there is none.
    fn next_order(&mut self) -> Option<Order>;

    /// The connection that the last order opened.
    fn opened(&mut self, connection: u32);

    /// A response has come whole over `connection`.
    fn completed(&mut self, now: Instant, connection: u32);

    /// `connection` broke.
    fn broke(&mut self, now: Instant, connection: u32);

    /// Data have come over `connection`.
    fn delivered(&mut self, now: Instant, connection: u32);

    /// Ends the application; its orders close the open connections.
    fn stop(&mut self, now: Instant);

    /// When it is to be woken, if at all.
    fn next_wake(&self) -> Option<Instant>;

    /// The result at the end of the run for the person who used it, if it has one.
    fn outcome(self: Box<Self>, now: Instant) -> Option<UserOutcome>;
}

/// An order of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Open a connection: with a first turn, or for as many bytes as there is time for.
    Open {
        /// The first request and its response.
        turn: Option<Turn>,
        /// More may be asked for.
        keep_open: bool,
    },
    /// Take another turn.
    Ask {
        /// Over which connection.
        connection: u32,
        /// The request and its response.
        turn: Turn,
    },
    /// Close this one when all that was asked for is sent.
    HangUp(u32),
    /// Offer no more over this one, and close it.
    Stop(u32),
}

/// A request of the end that opened a connection, and the response of the other end once it has all of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the response.
    pub bytes: u64,
}

/// Datagrams between two ports.
#[derive(Debug)]
pub struct DialoguePlan {
    /// The decisions of both ends.
    pub dialogue: Dialogue,
    /// The numbers of its datagrams: there, as the flow's data go, and back.
    pub flows: [FlowId; 2],
    /// Bytes of the headers of IP and UDP.
    pub headers: u8,
    /// Port of the end that sends the data.
    pub from_port: u16,
    /// Port of the other end.
    pub to_port: u16,
    /// Play-out buffer of the receiver.
    pub buffer: Duration,
}

/// Unchanged packets, each at its time. They are sent and received through the devices of the hosts, past routes and
/// TCP: the hosts do not answer unless an address is their own.
pub struct ReplayPlan {
    /// IP packets with the times after the start at which they leave; ascending.
    pub packets: Box<dyn Iterator<Item = (Duration, Vec<u8>)> + Send>,
    /// The flows that they belong to, by which they are known at the other end.
    pub flows: Vec<FlowKey>,
}

impl fmt::Debug for ReplayPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayPlan").field("flows", &self.flows).finish_non_exhaustive()
    }
}

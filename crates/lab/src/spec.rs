//! The task of a lab run as plain data.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use lastmile_live::emulate;
use lastmile_packet::FlowKey;
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
    /// Which host its data comes from.
    pub from: End,
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
    /// UDP packets of one size.
    Datagrams(DatagramPlan),
    /// ICMP echo.
    Echo(EchoPlan),
    /// TCP connections that come and go as an application decides.
    Application(ApplicationPlan),
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
    /// Bytes to transfer; `None` for as many as there is time for.
    pub bytes: Option<u64>,
    /// Bytes that the receiver sends first.
    pub request: u64,
    /// Which host opens the connection.
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

/// TCP connections that come and go.
pub struct ApplicationPlan {
    /// The plan of each connection, but for its bytes. Connections take ports from the opener's on, or any for zero.
    pub connection: TransferPlan,
    /// The application that decides.
    pub application: Box<dyn Application>,
}

impl fmt::Debug for ApplicationPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplicationPlan").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// The decisions of an application, apart from the sockets that carry them out. The lab numbers the connections.
pub trait Application: Send {
    /// It starts, or the time has come that it asked for. `delivered` returns the bytes that a connection has delivered
    /// in all.
    fn wake(&mut self, now: Instant, delivered: &dyn Fn(u32) -> u64);

    /// The next order; the lab asks again until there is none.
    fn next_order(&mut self) -> Option<Order>;

    /// The connection that the last order opened.
    fn opened(&mut self, connection: u32);

    /// Everything that was asked for has come over `connection`.
    fn completed(&mut self, now: Instant, connection: u32);

    /// `connection` broke.
    fn broke(&mut self, now: Instant, connection: u32);

    /// It is over; orders close what is open.
    fn stop(&mut self);

    /// When it is to be woken, if at all.
    fn next_wake(&self) -> Option<Instant>;

    /// The pages that the user of a browser has read.
    fn pages(&self) -> Option<Pages>;
}

/// An order of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Open a connection for a number of bytes, or for as many as there is time for; it may stay open for more.
    Open {
        /// Bytes of data.
        bytes: Option<u64>,
        /// More may be asked for.
        keep_open: bool,
    },
    /// Ask for more bytes.
    Ask {
        /// Over which connection.
        connection: u32,
        /// Bytes of data.
        bytes: u64,
    },
    /// Close this one when all that was asked for is sent.
    HangUp(u32),
    /// Offer no more over this one, and close it.
    Stop(u32),
}

/// Pages that a web user has read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pages {
    /// Pages asked for.
    pub pages: u64,
    /// Objects that arrived whole.
    pub objects: u64,
    /// Response times of the pages that arrived whole.
    pub responses: Vec<Duration>,
    /// Response times of the main objects.
    pub mains: Vec<Duration>,
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

//! What a lab is to do, as plain data.

use std::fmt;

use lastmile_units::{Duration, Instant};

use crate::emulate;

/// The line, the hosts, and for how long.
#[derive(Clone, Debug)]
pub struct Config {
    /// The line. Its ends are namespaces that the lab makes, whatever it says of them.
    pub line: emulate::Config,
    /// What the TCP of both hosts has in common.
    pub hosts: Hosts,
    /// When it ends.
    pub duration: Duration,
    /// Time between samples; `None` for none but those at which the offered traffic changes.
    pub interval: Option<Duration>,
}

/// What the kernel sets for a namespace, not for a socket: sysctls of ip-sysctl of the kernel's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_dsack`.
    pub dsack: bool,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// `tcp_window_scaling`.
    pub window_scaling: bool,
    /// `tcp_ecn`.
    pub ecn: bool,
    /// `tcp_slow_start_after_idle`.
    pub idle_restart: bool,
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

    pub(super) fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
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
    /// What it is.
    pub kind: Kind,
}

/// What a flow is.
#[derive(Debug)]
pub enum Kind {
    /// A TCP transfer.
    Transfer(TransferPlan),
    /// UDP packets of one size.
    Datagrams(DatagramPlan),
    /// ICMP echo.
    Echo(EchoPlan),
}

/// A TCP transfer.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// Largest segment, TCP options included: payload and, with timestamps, 12 bytes.
    pub segment: u16,
    /// Window that the receiver advertises at most.
    pub receive_window: u32,
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
}

/// UDP packets.
pub struct DatagramPlan {
    /// IP bytes of a packet, headers included.
    pub size: u16,
    /// Port that they come from.
    pub from_port: u16,
    /// Port that they go to.
    pub to_port: u16,
    /// The first bytes of the first packet.
    pub first_payload: Vec<u8>,
    /// When each packet leaves, counted from the start of the flow; ascending.
    pub departures: Box<dyn Iterator<Item = Duration> + Send>,
}

impl fmt::Debug for DatagramPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramPlan").field("size", &self.size).field("to_port", &self.to_port).finish_non_exhaustive()
    }
}

/// Echo requests at a steady pace.
#[derive(Clone, Copy, Debug)]
pub struct EchoPlan {
    /// Time between two.
    pub interval: Duration,
    /// IP bytes of a request, 28 at least.
    pub size: u16,
}

//! The outcome of a lab run as plain data. Times are counted from when the traffic could begin.

use lastmile_analysis::stream::Reception;
use lastmile_live::bump::HopGlance;
use lastmile_live::emulate;
use lastmile_model::outcome::Deliveries;
use lastmile_sim::sources::UserOutcome;
use lastmile_tcp::LimitedTime;
use lastmile_units::{Duration, Instant};

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The outcome of the line.
    pub line: emulate::Outcome,
    /// A row a flow, in the order of the plan.
    pub flows: Vec<FlowOutcome>,
    /// The state of each flow at the sample times, and whenever the offered traffic changed.
    pub samples: Vec<Sample>,
    /// The contents of the queues just after each of these times.
    pub glances: Vec<Glance>,
    /// Settings of sockets that this kernel does not have.
    pub refused: Vec<String>,
    /// True if emulator and generator ran before every ordinary process.
    pub realtime: bool,
    /// The longest delay of the generator in sending a datagram or a request.
    pub generator_late: Duration,
}

/// The outcome of one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowOutcome {
    /// Payload bytes that the receiving host has read.
    pub bytes_delivered: u64,
    /// Times of the first and the latest of them.
    pub deliveries: Option<Deliveries>,
    /// When the last of a given number of bytes came.
    pub end: Option<Instant>,
    /// Data segments, datagrams or echo requests sent, retransmissions included.
    pub packets_sent: u64,
    /// Data segments, datagrams or replies received.
    pub packets_received: u64,
    /// The part of TCP; for several connections their sums, and the settings of one of them.
    pub tcp: Option<TcpOutcome>,
    /// Connections that an application opened, and of these the ones that broke.
    pub connections: Option<(u64, u64)>,
    /// The result of an application for the person who used it.
    pub user: Option<UserOutcome>,
    /// When each echo request that was answered left, and how long that took.
    pub replies: Vec<(Instant, Duration)>,
    /// Datagrams at their receiver; `None` for other flows, and for datagrams too short to have numbers.
    pub stream: Option<StreamOutcome>,
    /// Why it ended early, in the kernel's words.
    pub failure: Option<String>,
}

/// Datagrams at their receiver.
#[derive(Clone, Debug)]
pub struct StreamOutcome {
    /// Packets that did not arrive although later ones did.
    pub lost: u64,
    /// Delays, jitter and late packets.
    pub reception: Box<Reception>,
}

/// The part of TCP, as the kernel reports it at the end. Of QUIC, what its library reports in the place of that.
#[derive(Clone, Debug, Default)]
pub struct TcpOutcome {
    /// The congestion control that the sender really had.
    pub congestion: String,
    /// Payload bytes of a full segment that the sender really sent.
    pub payload: u32,
    /// The largest window that the receiver advertised, at samples.
    pub peer_window: u32,
    /// ACKs that the receiver sent: its segments without data.
    pub acks_sent: u64,
    /// Segments without data that came back to the sender.
    pub acks_received: u64,
    /// Largest amount in flight, at samples.
    pub max_in_flight: u64,
    /// The last state of the sender.
    pub last: TcpSample,
}

/// The state of all flows at a time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Where the offered traffic changed: when it was to change by the plan. `None` for one of the regular samples.
    pub cut: Option<Instant>,
    /// Every flow, in the order of the plan.
    pub flows: Vec<FlowSample>,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowSample {
    /// Payload bytes that the receiving host had read.
    pub bytes_delivered: u64,
    /// The part of TCP; all zero until it is connected.
    pub tcp: Option<TcpSample>,
    /// Mean delay of the datagrams since the sample before, in seconds.
    pub delay_mean_s: Option<f64>,
    /// Jitter of the datagrams, in seconds.
    pub jitter_s: Option<f64>,
}

/// The state of a sender: `TCP_INFO`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpSample {
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow start threshold, once there is one.
    pub ssthresh_bytes: Option<u64>,
    /// Sent and not acknowledged.
    pub in_flight_bytes: u64,
    /// Acknowledged since the start.
    pub acked_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Retransmitted segments; of QUIC, packets that were declared lost.
    pub retransmissions: u64,
    /// Retransmission timeouts; `None` where the kernel does not report them.
    pub timeouts: Option<u64>,
    /// The limits of the sender, as the kernel accounts for them: a send buffer that is full counts
    /// as the application, a handshake as awaited ACKs.
    pub limited: LimitedTime,
}

/// A sample of the emulator's queues.
#[derive(Clone, Debug)]
pub struct Glance {
    /// When.
    pub at: Instant,
    /// Every hop, up and then down.
    pub hops: Vec<HopGlance>,
}

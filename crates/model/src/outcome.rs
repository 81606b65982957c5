//! The result of a run, as plain data. The results crate writes it to files.

mod applications;

use std::sync::Arc;

pub use lastmile_analysis::buckets::Buckets;
pub use lastmile_analysis::stream::Reception;
use lastmile_atm::CellDrop;
use lastmile_atm::contract::policer::Conformance;
use lastmile_atm::network::{AbrStats, HopStats, LinkStats, NetworkStats, VcStats};
use lastmile_queueing::line::Stats as LineStats;
use lastmile_queueing::line::grants::Counts as GrantCounts;
use lastmile_queueing::meter::conditioner;
use lastmile_queueing::{Count, DropReason};
use lastmile_tcp::{LimitedTime, RoundTrips};
use lastmile_units::{Duration, Instant};

pub use self::applications::{
    Applications, BackupOutcome, BrowsingOutcome, ConferenceOutcome, GameOutcome, ViewingOutcome,
};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Simulated time.
    pub duration: Duration,
    /// Number of events; `None` of a run on real hosts.
    pub events: Option<u64>,
    /// One row per flow, in the order of the traffic list.
    pub flows: Vec<FlowOutcome>,
    /// One row per link, in the order of the network's list.
    pub links: Vec<LinkOutcome>,
    /// One row per ping.
    pub probes: Vec<ProbeOutcome>,
    /// The people at applications.
    pub applications: Applications,
    /// Times at which the offered traffic changed, with the deliveries of each flow up to then. The
    /// first is the start of the run, the last its end.
    pub snapshots: Vec<Snapshot>,
    /// Samples over time.
    pub series: Vec<Series>,
    /// The account of all packets and bytes.
    pub conservation: Conservation,
    /// The outcome of cells, if any.
    pub atm: Option<AtmOutcome>,
    /// Packets of the traffic list's flows that were dropped, sorted.
    pub losses: Losses,
    /// Delays of all datagrams of each traffic from end to end, in nanoseconds, in the order of the
    /// traffic list; `None` for a traffic without datagrams.
    pub datagram_delays_ns: Vec<Option<Box<Buckets>>>,
}

/// Packets by flow, link and cause.
pub type Losses = Vec<(Loss, u64)>;

/// Dropped packets of one flow, link and cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Loss {
    /// Index of the flow among those of the traffic list, pings included.
    pub flow: usize,
    /// True for a packet from the receiver of the flow's data: an ACK, a reply.
    pub back: bool,
    /// Index of the link; for a packet in cells, of the link at the far end of its virtual channel.
    pub link: usize,
    /// The cause.
    pub cause: LossCause,
}

/// The cause of a drop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LossCause {
    /// A queue, regulator or wire of packets.
    Packet(DropReason),
    /// A cell of it was dropped; the reason of the first one.
    Cell(CellDrop),
    /// One of its cells was lost on the wire.
    CellOnWire,
    /// The preceding frame had lost its last cell.
    Joined,
    /// The conditioner of an edge device dropped it before it became cells.
    Edge,
    /// The packet exceeds a frame.
    TooLarge,
}

impl LossCause {
    /// True where a queue dropped the packet, so that it never took the wire.
    #[must_use]
    pub const fn is_of_queue(self) -> bool {
        matches!(self, Self::Packet(reason) if reason.is_of_queue())
    }
}

/// The outcome of a network's cells.
#[derive(Clone, Debug)]
pub struct AtmOutcome {
    /// One row per virtual channel, in the order of [`crate::Atm::network`].
    pub vcs: Vec<VcOutcome>,
    /// One row per link, in its order: the counters of its port.
    pub ports: Vec<LinkStats>,
    /// One row per virtual path, in its order: the counters of its policer, or `None` without one.
    pub paths: Vec<Option<Conformance>>,
    /// One row per class of packets and node at which they become cells.
    pub edges: Vec<EdgeOutcome>,
    /// Totals of all cells.
    pub cells: NetworkStats,
    /// Packets in frames at the end, as the simulator counts them, for comparison with the count of
    /// the cells.
    pub frames_inside: u64,
}

/// An edge device's treatment of the packets of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeOutcome {
    /// Index into [`crate::Atm::edges`].
    pub edge: usize,
    /// Index of the node in [`crate::Atm::network`].
    pub node: usize,
    /// Packets by color, cell loss priority and drop.
    pub counts: conditioner::Counts,
}

/// The outcome of a virtual channel.
#[derive(Clone, Debug)]
pub struct VcOutcome {
    /// Frames and cells from end to end.
    pub stats: VcStats,
    /// Cells at each of its links, in order.
    pub hops: Vec<HopStats>,
    /// The counters of its policer, or `None` without one.
    pub conformance: Option<Conformance>,
    /// Lost frames by the drop reason of their first lost cell: [`lastmile_atm::CellDrop::index`].
    pub lost: [u64; CellDrop::ALL.len()],
    /// Lost frames whose first lost cell was lost on the wire.
    pub on_wire: u64,
    /// Frames lost because the preceding frame had lost its end.
    pub joined: u64,
    /// Packets that exceed a frame.
    pub too_large: u64,
    /// Packets that the edge dropped.
    pub policed: u64,
    /// IP bytes of all lost packets.
    pub lost_bytes: u64,
    /// The counters of its ABR source, if it has one.
    pub abr: Option<AbrStats>,
    /// Number and delays of the ACKs held back for it.
    pub acks_held: Waits,
    /// Number of packets that arrived, and their delays from the source of the VC.
    pub transit: Waits,
    /// Transfer delay of the last cells of whole frames; empty if the source's sending times are
    /// unknown.
    pub cell_delays: CellDelays,
}

/// Transfer delays of cells (ITU-T I.356).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CellDelays {
    /// Measured cells.
    pub cells: u64,
    /// The smallest delay.
    pub min: Duration,
    /// The largest.
    pub max: Duration,
    /// Sum of the delays in picoseconds.
    pub sum_ps: u128,
}

impl CellDelays {
    /// Counts a cell.
    pub fn add(&mut self, delay: Duration) {
        self.min = if self.cells == 0 { delay } else { self.min.min(delay) };
        self.max = self.max.max(delay);
        self.sum_ps += u128::from(delay.as_ps());
        self.cells += 1;
    }
}

impl AtmOutcome {
    /// True if every cell and every frame is accounted for.
    #[must_use]
    pub fn holds(&self) -> bool {
        let lost = |vc: &VcOutcome| vc.lost.iter().sum::<u64>() + vc.on_wire + vc.joined;
        let ended: u64 = self.vcs.iter().map(|vc| vc.stats.whole.frames + lost(vc)).sum();
        let offered: u64 = self.vcs.iter().map(|vc| vc.stats.offered.frames).sum();
        self.cells.holds() && self.cells.frames_inside == self.frames_inside && offered == ended + self.frames_inside
    }
}

/// The outcome of one flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run.
    pub name: String,
    /// Start time.
    pub start: Instant,
    /// Time of the last delivery of data; with a given size, `None` until all of it is delivered.
    pub end: Option<Instant>,
    /// Payload bytes handed to the receiving application, in order.
    pub bytes_delivered: u64,
    /// Times of its deliveries; `None` without one.
    pub deliveries: Option<Deliveries>,
    /// Indices of the links that its data crosses, in order.
    pub data_path: Arc<[usize]>,
    /// Indices of the links that its ACKs cross, in order; empty without ACKs.
    pub ack_path: Arc<[usize]>,
    /// Datagrams or data segments sent, retransmissions included.
    pub data_packets: u64,
    /// Datagrams received; for TCP, data segments that arrived.
    pub data_packets_received: u64,
    /// The outcome of its TCP.
    pub tcp: Option<TcpOutcome>,
    /// Connections opened and connections broken, for a source that opens connections during the
    /// run. `tcp` is then the sum of all.
    pub connections: Option<(u64, u64)>,
    /// Dropped data packets, if known.
    pub data_packets_lost: Option<u64>,
    /// Delays of its data from end to end: of datagrams, and of TCP in runs with few flows.
    pub data_delays: Option<Box<Reception>>,
    /// Delays of its ACKs from end to end.
    pub ack_delays: Option<Box<Reception>>,
}

/// The times at which payload was handed to the receiving application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deliveries {
    /// Time of the first byte.
    pub first: Instant,
    /// Time of the latest byte.
    pub last: Instant,
}

impl Deliveries {
    /// Records a delivery at `now`.
    #[inline]
    pub fn note(deliveries: &mut Option<Self>, now: Instant) {
        deliveries.get_or_insert(Self { first: now, last: now }).last = now;
    }
}

/// The outcome of a flow's TCP.
#[derive(Clone, Debug)]
pub struct TcpOutcome {
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// ACKs that the data receiver sent.
    pub acks_sent: u64,
    /// ACKs that came back to the data sender.
    pub acks_received: u64,
    /// The time by the sender's limit.
    pub limited: LimitedTime,
    /// Smoothed round-trip time at the end.
    pub srtt: Option<Duration>,
    /// Largest amount of data in flight, in bytes.
    pub max_in_flight: u64,
    /// True if the connection closed in both directions.
    pub closed: bool,
}

/// The outcome of one link.
#[derive(Clone, Debug)]
pub struct LinkOutcome {
    /// Packets, bytes, cells, drops.
    pub stats: LineStats,
    /// Bits transmitted by the end of the run.
    pub wire_bits: u64,
    /// Bits on the wire of all packets in [`LineStats::transmitted`], whose transmission has begun.
    pub begun_bits: u64,
    /// Queueing delay of the packets that departed, in nanoseconds.
    pub queue_delay_ns: Buckets,
    /// Queueing delay of pure ACKs, in nanoseconds.
    pub ack_queue_delay_ns: Buckets,
    /// Queueing delay by class of the outermost scheduler, in its order, in nanoseconds; without
    /// classes that sent nothing.
    pub class_queue_delay_ns: Vec<(String, Buckets)>,
    /// Largest backlog in packets.
    pub max_backlog_packets: u64,
    /// Largest backlog in IP bytes.
    pub max_backlog_bytes: u64,
    /// Cells sent, OAM cells included; `None` on a line without cells.
    pub cells: Option<u64>,
    /// Counters of the queue's parts, as `tc -s` shows them: path, kind, name, value.
    pub counters: Vec<(String, &'static str, &'static str, u64)>,
    /// `None` on a line without grants.
    pub grants: Option<GrantsOutcome>,
}

/// Requests and grants of a line.
#[derive(Clone, Debug)]
pub struct GrantsOutcome {
    /// Requests, grants, and their bytes.
    pub counts: GrantCounts,
    /// Times from requests to the starts of their first grants, in nanoseconds.
    pub waited_ns: Buckets,
}

/// The outcome of one ping.
#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run.
    pub name: String,
    /// Time of the first request.
    pub start: Instant,
    /// Requests sent.
    pub sent: u64,
    /// Replies received.
    pub received: u64,
    /// Requests and replies that were dropped; `None` where drops are not known by flow.
    pub dropped: Option<u64>,
    /// The time of each answered request, and its round trip.
    pub replies: Vec<(Instant, Duration)>,
}

/// The state of each flow and link at a point in time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The time.
    pub at: Instant,
    /// Payload bytes delivered, by flow.
    pub bytes_delivered: Vec<u64>,
    /// Bits sent, by link.
    pub wire_bits: Vec<u64>,
    /// The time by each sender's limit up to this time, of an application over all its connections; `None` for flows
    /// without TCP, and where it was not measured.
    pub limited: Vec<Option<LimitedTime>>,
    /// Round trips of what each sender's peer had acknowledged by this time; `None` without TCP, and where they were
    /// not measured.
    pub round_trips: Vec<Option<RoundTrips>>,
    /// The progress of each transfer's data; `None` for others, and where it was not measured.
    pub streams: Vec<Option<StreamProgress>>,
    /// The receive window that each sender sees at this time; `None` without TCP, and where it was not measured.
    pub receive_window: Vec<Option<u64>>,
    /// Segments that each sender had retransmitted by this time.
    pub retransmissions: Vec<u64>,
    /// Reductions of the window for CE marks by this time; 0 where they are not counted.
    pub mark_reductions: Vec<u64>,
    /// Queueing delay of the packets that departed since the preceding snapshot, by link.
    pub queue_delay: Vec<Waits>,
    /// Queueing delay of the pure ACKs that departed since the preceding snapshot, by link.
    pub ack_queue_delay: Vec<Waits>,
    /// Packets dropped since the preceding snapshot.
    pub losses: Losses,
}

/// The progress of a stream of data up to a point in time, in octets of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamProgress {
    /// Sent at least once.
    pub sent: u64,
    /// Arrived at the receiver, in order or not.
    pub arrived: u64,
    /// Acknowledged without a gap, by the acknowledgements that the sender has received.
    pub acked: u64,
}

/// Number and delays of packets that waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Packets that left the queue.
    pub packets: u64,
    /// Sum of their delays, in nanoseconds.
    pub sum_ns: u64,
    /// Longest of their delays, in nanoseconds.
    pub max_ns: u64,
}

impl Waits {
    /// Counts a packet with a delay of `wait`.
    #[inline]
    pub fn add(&mut self, wait: Duration) {
        let ns = wait.as_ns();
        self.packets += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds the packets of `other`.
    pub fn join(&mut self, other: &Self) {
        self.packets += other.packets;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Mean delay in seconds; `None` without packets.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn mean_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum_ns as f64 / self.packets as f64 / 1e9)
    }
}

/// Samples of one quantity of one flow, link or probe.
#[derive(Clone, Debug)]
pub struct Series {
    /// The quantity with its unit: `queue_bytes`, `cwnd_bytes`, `goodput_bps`, ...
    pub name: &'static str,
    /// The name of the flow, link or probe.
    pub entity: String,
    /// Times and values.
    pub points: Vec<(Instant, f64)>,
}

impl Series {
    /// A series without samples.
    #[must_use]
    pub fn new(name: &'static str, entity: &str) -> Self {
        Self { name, entity: entity.to_owned(), points: Vec::new() }
    }

    /// Appends a sample.
    pub fn push(&mut self, at: Instant, value: f64) {
        self.points.push((at, value));
    }
}

/// The account of every packet and every IP byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Conservation {
    /// Sent by hosts.
    pub sent: Count,
    /// Created inside the network: ACKs that a regenerator restores, signals. Includes bytes by
    /// which ACKs grow (options that move from a dropped ACK into a waiting one, lists of
    /// suppressed numbers).
    pub created: Count,
    /// Received by hosts.
    pub delivered: Count,
    /// Dropped for any reason. Includes bytes by which ACKs shrink.
    pub dropped: Count,
    /// Waiting in queues.
    pub queued: Count,
    /// On a wire.
    pub in_flight: Count,
}

impl Conservation {
    /// True if the sums agree: every packet and byte has an origin and a destination.
    #[must_use]
    pub fn holds(&self) -> bool {
        let parts = [self.delivered, self.dropped, self.queued, self.in_flight];
        parts.iter().map(|a| a.packets).sum::<u64>() == self.sent.packets + self.created.packets
            && parts.iter().map(|a| a.bytes).sum::<u64>() == self.sent.bytes + self.created.bytes
    }
}

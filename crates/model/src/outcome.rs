//! What came of a run, as plain data: the results crate turns it into files.

use std::sync::Arc;

use hdrhistogram::Histogram;
pub use lastmile_analysis::stream::Reception;
use lastmile_atm::CellDrop;
use lastmile_atm::contract::policer::Conformance;
use lastmile_atm::network::{AbrStats, HopStats, LinkStats, NetworkStats, VcStats};
use lastmile_packet::Meta;
use lastmile_queueing::DropReason;
use lastmile_queueing::line::Stats as LineStats;
use lastmile_queueing::meter::conditioner;
use lastmile_tcp::LimitedTime;
use lastmile_units::{Duration, Instant};

/// All that a run leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Simulated time.
    pub duration: Duration,
    /// Events handled.
    pub events: u64,
    /// A row a flow, in the order of the traffic list.
    pub flows: Vec<FlowOutcome>,
    /// A row a link, in the order of the network's list.
    pub links: Vec<LinkOutcome>,
    /// A row a ping.
    pub probes: Vec<ProbeOutcome>,
    /// A row a web user.
    pub browsing: Vec<BrowsingOutcome>,
    /// Times at which the offered traffic changed, with what each flow had delivered by then. The first is the start of the
    /// run, the last its end.
    pub snapshots: Vec<Snapshot>,
    /// Samples over time.
    pub series: Vec<Series>,
    /// Where every byte went.
    pub conservation: Conservation,
    /// What the cells did, if there were any.
    pub atm: Option<AtmOutcome>,
    /// Packets of the traffic list's flows that were dropped, sorted.
    pub losses: Losses,
    /// Delays of all datagrams of each traffic from end to end, in nanoseconds; `None` for what sends none. In the order of the traffic list.
    pub datagram_delays_ns: Vec<Option<Box<Histogram<u64>>>>,
}

/// Packets by flow, link and cause.
pub type Losses = Vec<(Loss, u64)>;

/// Which packets were dropped, where and why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Loss {
    /// Number of the flow among those of the traffic list, pings included.
    pub flow: usize,
    /// A packet from the receiver of the flow's data: an ACK, a reply.
    pub back: bool,
    /// Index of the link; of a packet that was cells, the link at the far end of its virtual channel.
    pub link: usize,
    /// Why.
    pub cause: LossCause,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LossCause {
    /// A queue, regulator or wire of packets.
    Packet(DropReason),
    /// One of its cells was dropped, the first for this reason.
    Cell(CellDrop),
    /// One of its cells was lost on the wire.
    CellOnWire,
    /// The frame before it had lost its last cell.
    Joined,
    /// The conditioner of an edge device dropped it before it became cells.
    Edge,
    /// No frame holds it.
    TooLarge,
}

/// What became of the cells of a network.
#[derive(Clone, Debug)]
pub struct AtmOutcome {
    /// A row a virtual channel, in the order of [`crate::Atm::network`].
    pub vcs: Vec<VcOutcome>,
    /// A row a link, in its order: what its port did.
    pub ports: Vec<LinkStats>,
    /// A row a virtual path, in its order: what its policer found. `None`: it has none.
    pub paths: Vec<Option<Conformance>>,
    /// A row a class of packets and node at which they become cells.
    pub edges: Vec<EdgeOutcome>,
    /// All cells together.
    pub cells: NetworkStats,
    /// Packets that were frames at the end, as the simulator counts them: to be compared with what the cells say.
    pub frames_inside: u64,
}

/// What an edge device did with the packets of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeOutcome {
    /// Index into [`crate::Atm::edges`].
    pub edge: usize,
    /// Index of the node, of [`crate::Atm::network`].
    pub node: usize,
    /// Packets by color, cell loss priority and drop.
    pub counts: conditioner::Counts,
}

/// What became of a virtual channel.
#[derive(Clone, Debug)]
pub struct VcOutcome {
    /// Frames and cells from end to end.
    pub stats: VcStats,
    /// Cells at each of its links, in order.
    pub hops: Vec<HopStats>,
    /// What its policer found. `None`: it has none.
    pub conformance: Option<Conformance>,
    /// Frames lost, by why the first cell was: [`lastmile_atm::CellDrop::index`].
    pub lost: [u64; CellDrop::ALL.len()],
    /// Frames lost of which the first cell that was, was lost on the wire.
    pub on_wire: u64,
    /// Frames lost because the one before had lost its end.
    pub joined: u64,
    /// Packets that no frame holds.
    pub too_large: u64,
    /// Packets that the edge dropped.
    pub policed: u64,
    /// IP bytes of all that were lost.
    pub lost_bytes: u64,
    /// Its source, if that is one of ABR.
    pub abr: Option<AbrStats>,
    /// ACKs that were held back for it, and for how long.
    pub acks_held: Waits,
    /// Packets that arrived, and the time from their coming to the source of the VC to that.
    pub transit: Waits,
    /// Transfer delay of the last cells of frames that arrived whole; none where the source's sending times are not known.
    pub cell_delays: CellDelays,
}

/// Transfer delays of cells (ITU-T I.356).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CellDelays {
    /// Cells that were measured.
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
    /// True if every cell and every frame is somewhere.
    #[must_use]
    pub fn holds(&self) -> bool {
        let lost = |vc: &VcOutcome| vc.lost.iter().sum::<u64>() + vc.on_wire + vc.joined;
        let ended: u64 = self.vcs.iter().map(|vc| vc.stats.whole.frames + lost(vc)).sum();
        let offered: u64 = self.vcs.iter().map(|vc| vc.stats.offered.frames).sum();
        self.cells.holds() && self.cells.frames_inside == self.frames_inside && offered == ended + self.frames_inside
    }
}

/// What became of one flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run.
    pub name: String,
    /// When it started.
    pub start: Instant,
    /// When the last of its data was delivered and, with a given size, all of it was.
    pub end: Option<Instant>,
    /// Payload bytes handed to the receiving application, in order.
    pub bytes_delivered: u64,
    /// When the first payload byte was delivered.
    pub first_delivery: Option<Instant>,
    /// When the latest payload byte was delivered.
    pub last_delivery: Option<Instant>,
    /// The links that its data crosses, in order, by index into the network's list.
    pub data_path: Arc<[usize]>,
    /// The links that its ACKs cross, in order; empty for what has none.
    pub ack_path: Arc<[usize]>,
    /// Datagrams or data segments sent, retransmissions included.
    pub data_packets: u64,
    /// Datagrams received; for TCP, data segments that arrived.
    pub data_packets_received: u64,
    /// What only TCP has.
    pub tcp: Option<TcpOutcome>,
    /// Connections that were opened, and those of them that broke, where they come and go: then `tcp` tells of all together.
    pub connections: Option<(u64, u64)>,
    /// Data packets that were dropped, where that is known.
    pub data_packets_lost: Option<u64>,
    /// Delays of its data from end to end: of datagrams, and of TCP where flows are few.
    pub data_delays: Option<Box<Reception>>,
    /// Delays of its ACKs from end to end.
    pub ack_delays: Option<Box<Reception>>,
}

/// What only a TCP flow has.
#[derive(Clone, Debug)]
pub struct TcpOutcome {
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// ACKs that the data receiver sent.
    pub acks_sent: u64,
    /// ACKs that came back to the data sender.
    pub acks_received: u64,
    /// What kept the sender from sending, and for how long.
    pub limited: LimitedTime,
    /// Smoothed round-trip time at the end.
    pub srtt: Option<Duration>,
    /// Largest amount of data in flight, in bytes.
    pub max_in_flight: u64,
    /// True when the connection closed in both directions.
    pub closed: bool,
}

/// What became of one link.
#[derive(Clone, Debug)]
pub struct LinkOutcome {
    /// Packets, bytes, cells, drops.
    pub stats: LineStats,
    /// Bits that had left by the end of the run.
    pub wire_bits: u64,
    /// Time spent in the queue by packets that left it, in nanoseconds.
    pub queue_delay_ns: Histogram<u64>,
    /// The same for pure ACKs alone.
    pub ack_queue_delay_ns: Histogram<u64>,
    /// Time in the queue by class of the outermost scheduler, in its order, in nanoseconds; classes that sent nothing are left out.
    pub class_queue_delay_ns: Vec<(String, Histogram<u64>)>,
    /// Largest backlog in packets.
    pub max_backlog_packets: u64,
    /// Largest backlog in IP bytes.
    pub max_backlog_bytes: u64,
    /// Cells sent, OAM cells included, on a line of cells.
    pub cells: Option<u64>,
    /// Counters of the queue's parts, as tc -s would show them: path, kind, name, value.
    pub counters: Vec<(String, &'static str, &'static str, u64)>,
}

/// What became of one ping.
#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run.
    pub name: String,
    /// When the first request leaves.
    pub start: Instant,
    /// Requests sent.
    pub sent: u64,
    /// Replies received.
    pub received: u64,
    /// Each reply: when its request left, and how long it took.
    pub replies: Vec<(Instant, Duration)>,
}

/// What a web user met.
#[derive(Clone, Debug)]
pub struct BrowsingOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run; that of its flow.
    pub name: String,
    /// Pages asked for.
    pub pages: u64,
    /// Objects that arrived whole.
    pub objects: u64,
    /// Response time of each page that arrived whole, in their order: from the request to the last byte of its last object.
    pub responses: Vec<Duration>,
}

/// What each flow had delivered by a point in time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When.
    pub at: Instant,
    /// Payload bytes delivered, by flow.
    pub bytes_delivered: Vec<u64>,
    /// Bits sent, by link.
    pub wire_bits: Vec<u64>,
    /// What had kept each sender from sending, and for how long, up to now; `None` for what is not TCP.
    pub limited: Vec<Option<LimitedTime>>,
    /// Smoothed round-trip time of each sender now; `None` for what is not TCP or has no sample yet.
    pub srtt: Vec<Option<Duration>>,
    /// Segments that each sender had sent again by now.
    pub retransmissions: Vec<u64>,
    /// Time in the queue of the packets that left it since the snapshot before, by link.
    pub queue_delay: Vec<Waits>,
    /// The same for pure ACKs alone.
    pub ack_queue_delay: Vec<Waits>,
    /// Packets dropped since the snapshot before.
    pub losses: Losses,
}

/// How long packets waited, in sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Packets that left the queue.
    pub packets: u64,
    /// Sum of the times they waited, in nanoseconds.
    pub sum_ns: u64,
    /// Longest of them, in nanoseconds.
    pub max_ns: u64,
}

impl Waits {
    /// Counts a packet that waited for `wait`.
    #[inline]
    pub fn add(&mut self, wait: Duration) {
        let ns = wait.as_ns();
        self.packets += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts the packets of `other` too.
    pub fn join(&mut self, other: &Self) {
        self.packets += other.packets;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Mean wait in seconds; `None` if no packet left.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn mean_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum_ns as f64 / self.packets as f64 / 1e9)
    }
}

/// Samples of one quantity of one thing.
#[derive(Clone, Debug)]
pub struct Series {
    /// What is sampled, with its unit: `queue_bytes`, `cwnd_bytes`, `goodput_bps`, ...
    pub name: &'static str,
    /// What it is sampled of: a flow, link or probe by name.
    pub entity: String,
    /// When, and the value.
    pub points: Vec<(Instant, f64)>,
}

impl Series {
    /// No samples yet.
    #[must_use]
    pub fn new(name: &'static str, entity: &str) -> Self {
        Self { name, entity: entity.to_owned(), points: Vec::new() }
    }

    /// A sample.
    pub fn push(&mut self, at: Instant, value: f64) {
        self.points.push((at, value));
    }
}

/// Where every packet and every IP byte went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Conservation {
    /// Sent by hosts.
    pub sent: Amount,
    /// Made inside the network: ACKs that a regenerator restores, signals. Bytes by which ACKs grow (options that move from
    /// a dropped ACK into one that waits, lists of suppressed numbers) are here too.
    pub created: Amount,
    /// Received by hosts.
    pub delivered: Amount,
    /// Dropped, for whatever reason. Bytes by which ACKs shrink are here too.
    pub dropped: Amount,
    /// Waiting in queues.
    pub queued: Amount,
    /// On a wire.
    pub in_flight: Amount,
}

/// Packets and their IP bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

impl Amount {
    /// Counts a packet.
    #[inline]
    pub fn add(&mut self, packet: &Meta) {
        self.packets += 1;
        self.bytes += u64::from(packet.ip_len);
    }
}

impl Conservation {
    /// True when nothing was lost in silence and nothing came from nowhere.
    #[must_use]
    pub fn holds(&self) -> bool {
        let parts = [self.delivered, self.dropped, self.queued, self.in_flight];
        parts.iter().map(|a| a.packets).sum::<u64>() == self.sent.packets + self.created.packets
            && parts.iter().map(|a| a.bytes).sum::<u64>() == self.sent.bytes + self.created.bytes
    }
}

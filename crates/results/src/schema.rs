//! The shape of a result: what `summary.json` and `--json` hold, field by field.
//!
//! One shape for simulated, live and analysed runs. Names carry their units: `_s`, `_bps`, `_bytes`, `_bits`, `_packets`. A field
//! that has no value is `null`, never a stand-in number, and never absent. Nothing here depends on the machine that ran it, except
//! [`Timing`], which only [`Document`] holds. The page `docs/reference/results.md` documents each key for users.
//!
//! Maps are ordered by key and lists by the order of the scenario, so equal runs give equal bytes.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Which clock drove the datapath.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Simulated time.
    #[default]
    Simulated,
    /// The machine's monotonic clock, with real packets.
    Monotonic,
}

/// One run: inputs and every scalar result.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the scenario, from its file.
    pub scenario: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// Length of the run.
    pub duration_s: f64,
    /// Events that the simulator handled; zero with the monotonic clock.
    pub events: u64,
    /// Which clock drove it.
    pub clock: Clock,
    /// What the user gave.
    pub inputs: Inputs,
    /// A row a flow, in the order of the scenario.
    pub flows: Vec<Flow>,
    /// A row a link and direction.
    pub links: Vec<Link>,
    /// A row a ping.
    pub probes: Vec<Probe>,
    /// A row a web traffic, its users together.
    pub pages: Vec<Pages>,
    /// The run cut where the offered traffic changes.
    pub phases: Vec<Phase>,
    /// How evenly flows of one direction shared, a row a direction that has at least two TCP flows.
    pub fairness: Vec<Fairness>,
    /// A row an access line, where several share a DSLAM.
    pub lines: Vec<Line>,
    /// How evenly lines shared, a row a direction in which any of them got something.
    pub line_fairness: Vec<LineFairness>,
    /// Where every byte went.
    pub conservation: Conservation,
    /// What became of cells, where links carry cells.
    #[serde(default)]
    pub atm: Option<Atm>,
}

/// What became of cells.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Atm {
    /// A row a link of cells and direction: what its port did.
    pub ports: Vec<CellPort>,
    /// A row a virtual channel.
    pub vcs: Vec<VirtualChannel>,
    /// A row a virtual path.
    pub vps: Vec<VirtualPath>,
    /// A row a class of packets and node at which they become cells.
    #[serde(default)]
    pub edges: Vec<EdgeClass>,
    /// Cells of packets that arrived whole.
    pub goodput_cells: u64,
    /// Where every cell went.
    pub conservation: CellConservation,
}

/// The port of a link of cells.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CellPort {
    /// Name of the link.
    pub link: String,
    /// Cells that came to the port.
    pub arrived_cells: u64,
    /// Cells whose transmission began.
    pub sent_cells: u64,
    /// Cells that waited at the end.
    pub waiting_cells: u64,
    /// Cells dropped here.
    pub dropped_cells: u64,
    /// The same by reason; reasons with none are left out.
    pub drops_cells: BTreeMap<String, u64>,
    /// Cells that a policer tagged here.
    pub tagged_cells: u64,
    /// Cells that came with CLP = 1.
    #[serde(default)]
    pub low_priority_cells: u64,
    /// Cells dropped here with CLP = 1, those tagged here among them.
    #[serde(default)]
    pub dropped_low_priority_cells: u64,
    /// Cells of packets that crossed this link and arrived whole where they were bound for.
    pub goodput_cells: u64,
    /// Their share of the cells sent here.
    pub goodput_share: Option<f64>,
    /// Cells that may wait at most, in its queue, its queues together, or the memory of its switch; `null` for a host, which holds all.
    pub buffer_cells: Option<u64>,
    /// The most cells that waited in one of its queues.
    pub max_queue_cells: u64,
}

/// A virtual channel, one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct VirtualChannel {
    /// Name: that of its flow, with `back` behind it for what comes back.
    pub name: String,
    /// Virtual path identifier.
    pub vpi: u16,
    /// Virtual channel identifier.
    pub vci: u16,
    /// Name of its virtual path.
    pub vp: Option<String>,
    /// Links that it crosses, in order.
    pub route: Vec<String>,
    /// Packets that came to its source.
    pub offered_frames: u64,
    /// Their cells.
    pub offered_cells: u64,
    /// Packets that arrived whole.
    pub whole_frames: u64,
    /// Packets that came to its source and whose cells left it with CLP = 1.
    #[serde(default)]
    pub offered_low_priority_frames: u64,
    /// Those of them that arrived whole.
    #[serde(default)]
    pub whole_low_priority_frames: u64,
    /// Packets lost, by why the first cell was; reasons with none are left out.
    pub lost_frames: BTreeMap<String, u64>,
    /// Cells of packets that arrived whole.
    pub goodput_cells: u64,
    /// Cells that arrived in vain.
    pub badput_cells: u64,
    /// Cells dropped at all its links, by reason; reasons with none are left out.
    pub drops_cells: BTreeMap<String, u64>,
    /// Cells that a policer tagged.
    pub tagged_cells: u64,
    /// Mean time from a packet's coming to the source until all of it has arrived.
    pub transit_mean_s: Option<f64>,
    /// Longest such time.
    pub transit_max_s: Option<f64>,
    /// What its own policer found.
    pub policed: Option<Policed>,
    /// Its source, if that is one of available bit rate.
    #[serde(default)]
    pub abr: Option<AbrSource>,
}

/// The source of a virtual channel of available bit rate.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct AbrSource {
    /// Mean allowed cell rate over the run, 424 bits a cell.
    pub acr_mean_bps: f64,
    /// Least allowed cell rate.
    pub acr_min_bps: f64,
    /// Largest allowed cell rate.
    pub acr_max_bps: f64,
    /// RM cells that it sent.
    pub rm_sent_cells: u64,
    /// RM cells that came back.
    pub rm_returned_cells: u64,
    /// Those of them that told congestion (CI).
    pub rm_congested_cells: u64,
    /// The most that waited at the edge, in bytes of packets.
    pub edge_max_bytes: u64,
    /// Packets for which the edge had no room.
    pub edge_dropped_frames: u64,
    /// ACKs that the edge held back.
    pub acks_held: u64,
    /// Mean time for which it held them.
    pub ack_hold_mean_s: Option<f64>,
    /// Longest such time.
    pub ack_hold_max_s: Option<f64>,
}

/// A virtual path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct VirtualPath {
    /// Name.
    pub name: String,
    /// What its policer found.
    pub policed: Option<Policed>,
}

/// What an edge device did with the packets of a class.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EdgeClass {
    /// Name of the edge.
    pub name: String,
    /// The node.
    pub node: String,
    /// Packets by color: `green`, `yellow`, `red`, with their IP bytes.
    pub colors: BTreeMap<String, Counted>,
    /// Packets that became cells of CLP = 0.
    pub clp_0: Counted,
    /// Packets that became cells of CLP = 1.
    pub clp_1: Counted,
    /// Packets that the edge dropped.
    pub dropped: Counted,
}

/// Packets and their IP bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

/// Cells by what a policer found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Policed {
    /// Cells that conform.
    pub conforming_cells: u64,
    /// Those of them that came with CLP = 1.
    #[serde(default)]
    pub conforming_low_priority_cells: u64,
    /// Cells that do not, and went on with CLP = 1.
    pub tagged_cells: u64,
    /// Cells dropped above the peak rate.
    pub peak_cells: u64,
    /// Cells dropped above the sustainable rate.
    pub sustainable_cells: u64,
    /// Cells dropped that no frame may have (GFR).
    pub frame_cells: u64,
    /// Frames that were eligible for the guarantee (GFR).
    pub eligible_frames: u64,
}

/// Where every cell went: offered = arrived + dropped + inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CellConservation {
    /// Cells of all packets that came to the sources of virtual channels.
    pub offered: u64,
    /// Cells that arrived at the far ends.
    pub arrived: u64,
    /// Cells dropped.
    pub dropped: u64,
    /// Cells that waited or were on the wire at the end.
    pub inside: u64,
    /// True when the sum comes out, for cells and for packets.
    pub holds: bool,
}

/// What the user gave, as far as it decides the result.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Inputs {
    /// File name of the scenario, without its folder.
    pub file: Option<String>,
    /// Overrides, `key=value` as given, in order.
    pub set: Vec<String>,
    /// The scenario file's text.
    pub text: Option<String>,
}

/// One flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    /// Name, unique in the run.
    pub name: String,
    /// `down`, `up`, or what the scenario calls it.
    pub direction: Arc<str>,
    /// Kind of traffic: `bulk`, `writes`, `poisson`, `onoff`, `voice`, `blast`, `web`, `swarm`, `replay`.
    pub kind: Arc<str>,
    /// TCP variant of the sender; `null` for what is not TCP.
    pub tcp: Option<Arc<str>>,
    /// Advertised receive window at most; `null` for what is not TCP.
    pub receive_window_bytes: Option<u64>,
    /// Payload bytes of a full segment or datagram.
    pub payload_bytes: u64,
    /// Links that its data crosses, in order.
    pub data_path: Arc<[Arc<str>]>,
    /// Links that its ACKs cross, in order.
    pub ack_path: Arc<[Arc<str>]>,
    /// When it started.
    pub start_s: f64,
    /// When the last of its data was delivered and, with a given size, all of it was.
    pub end_s: Option<f64>,
    /// Payload handed to the receiving application, in order.
    pub bytes_delivered: u64,
    /// Delivered payload over the time from start to end, or to the end of the run for what has not ended.
    pub goodput_bps: f64,
    /// From start to end, for a transfer of given size.
    pub response_time_s: Option<f64>,
    /// Segments sent again.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Fast retransmits.
    pub fast_retransmits: Option<u64>,
    /// Data segments or datagrams sent, retransmissions included.
    pub data_packets: u64,
    /// Data segments or datagrams that arrived.
    pub data_packets_received: u64,
    /// ACKs that the data receiver sent.
    pub acks_sent: Option<u64>,
    /// ACKs that reached the data sender.
    pub acks_received: Option<u64>,
    /// TCP connections opened, for what opens them as it goes (`web`, `swarm`): the row tells of all of them together.
    pub connections: Option<u64>,
    /// Of these, the ones that were reset or given up.
    pub connections_failed: Option<u64>,
    /// Largest amount of data in flight.
    pub max_in_flight_bytes: Option<u64>,
    /// Smoothed round-trip time at the end.
    pub srtt_s: Option<f64>,
    /// What held the sender back, as shares of its active time that sum to 1.
    pub limited_by: Shares,
    /// What held it back, in words, drawn from what was measured.
    pub explanation: String,
    /// The closed-form bound on its goodput over its life; see `docs/reference/results.md`.
    pub bound_bps: Option<f64>,
    /// What sets the bound.
    pub bound_by: Option<Arc<str>>,
}

/// Shares of a sender's time that sum to 1, by cause; those of TCP have all four, others their source's alone, and what
/// was never active has none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// Nothing more to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<f64>,
    /// Nothing could be sent before an acknowledgement came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaiting_ack: Option<f64>,
    /// The congestion window was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<f64>,
    /// The receiver's window was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<f64>,
}

impl Shares {
    /// Each cause that there is, with its share, in the order of the alphabet.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let named = [
            ("application", self.application),
            ("awaiting_ack", self.awaiting_ack),
            ("congestion_window", self.congestion_window),
            ("receive_window", self.receive_window),
        ];
        named.into_iter().filter_map(|(name, share)| Some((name, share?)))
    }
}

/// One link and direction: queue, transmitter, wire.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    /// Name, unique in the run.
    pub name: String,
    /// Node that sends into it.
    pub from: String,
    /// Node at its far end.
    pub to: String,
    /// Rate of the wire, headers and cells included; `null` where transmission takes no time.
    pub rate_bps: Option<f64>,
    /// Propagation delay.
    pub delay_s: f64,
    /// Payload that it carries in a second of full-sized segments of the flows that cross it; of several sizes the largest rate.
    pub payload_capacity_bps: Option<f64>,
    /// What its queue holds at most, where that is counted in bytes.
    pub queue_limit_bytes: Option<u64>,
    /// Bits sent on the wire, headers and cells included.
    pub wire_bits: u64,
    /// IP bytes sent.
    pub ip_bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// ATM cells sent; zero on a line without cells.
    pub cells: u64,
    /// Share of the run that the wire was busy: wire bits over rate times duration.
    pub utilisation: Option<f64>,
    /// The same counting IP bytes alone: what of the line's rate carried IP.
    pub utilisation_ip: Option<f64>,
    /// Time in the queue of packets that left it.
    pub queue_delay_s: Delay,
    /// The same for pure ACKs alone.
    pub ack_queue_delay_s: Delay,
    /// Largest backlog in packets.
    pub max_backlog_packets: u64,
    /// Largest backlog in IP bytes.
    pub max_backlog_bytes: u64,
    /// Packets dropped, by reason; every reason is listed.
    pub drops: BTreeMap<String, u64>,
    /// IP bytes dropped, by reason; reasons with none are left out.
    pub dropped_bytes: BTreeMap<String, u64>,
    /// Counters of the queue's parts.
    pub counters: Vec<Counter>,
}

/// A counter of one part of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counter {
    /// Which part, as a path from the root; empty for the root.
    pub part: String,
    /// What kind of discipline that is.
    pub kind: String,
    /// What is counted.
    pub name: String,
    /// How many.
    pub value: u64,
}

/// Distribution of a delay in seconds; all `null` when nothing was measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Delay {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median: half of all values are at or below it.
    pub p50: Option<f64>,
    /// 99 of 100 values are at or below it.
    pub p99: Option<f64>,
    /// 999 of 1000 values are at or below it.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// How many values.
    pub count: u64,
}

/// One ping.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Probe {
    /// Name, unique in the run.
    pub name: String,
    /// Class of its packets: the name of their code point (RFC 2474, RFC 2597, RFC 3246), such as `default`, `EF`, `AF41`.
    pub class: String,
    /// Requests sent.
    pub sent: u64,
    /// Replies received.
    pub received: u64,
    /// Round-trip time.
    pub rtt_s: RoundTrip,
}

/// Distribution of a round-trip time in seconds; all `null` without a reply. Percentiles are exact (nearest rank).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RoundTrip {
    /// The smallest.
    pub min: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99 of 100 values are at or below it.
    pub p99: Option<f64>,
    /// 999 of 1000 values are at or below it.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Jitter as ITU-T Y.1541 has it: the 99.9th percentile less the smallest.
    pub jitter: Option<f64>,
}

/// The pages that the users of one web traffic read.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Pages {
    /// Name of the traffic.
    pub name: String,
    /// How many users.
    pub users: u64,
    /// Pages asked for.
    pub pages: u64,
    /// Pages that arrived whole.
    pub complete: u64,
    /// Objects that arrived whole.
    pub objects: u64,
    /// From the request for a page to the last byte of its last object, over the pages that arrived whole.
    pub response_s: PageResponse,
}

/// Distribution of a page's response time in seconds; all `null` without a whole page. Percentiles are exact (nearest rank).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PageResponse {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95 of 100 values are at or below it.
    pub p95: Option<f64>,
    /// 99 of 100 values are at or below it.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// A part of the run between two changes of the offered traffic.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    /// What sets it apart: `before upload`, `during upload`, `after upload`.
    pub name: String,
    /// Its begin.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// The flows that offered traffic or delivered data in it.
    pub flows: Vec<PhaseFlow>,
    /// Every link.
    pub links: Vec<PhaseLink>,
    /// Every ping; a reply counts for the phase in which its request left.
    pub probes: Vec<PhaseProbe>,
}

/// A flow within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseFlow {
    /// Name of the flow.
    pub name: String,
    /// Payload delivered over the length of the phase.
    pub goodput_bps: f64,
    /// What held the sender back in this phase, as shares that sum to 1; empty where it was not active.
    pub limited_by: Shares,
    /// What held it back, in words, drawn from what was measured.
    pub explanation: String,
    /// The closed-form bound on its goodput in this phase.
    pub bound_bps: Option<f64>,
    /// What sets the bound.
    pub bound_by: Option<String>,
    /// Where its ACKs shared a FIFO with data in this phase, and that binds closer: what they could release beside that data.
    pub two_way_bound_bps: Option<f64>,
    /// Which link, and what share of it data took.
    pub two_way_bound_by: Option<String>,
    /// Segments sent again in this phase.
    pub retransmissions: Option<u64>,
}

/// A link within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseLink {
    /// Name of the link.
    pub name: String,
    /// Share of the phase that the wire was busy.
    pub utilisation: Option<f64>,
    /// Mean time in the queue of packets that left it in this phase.
    pub queue_delay_mean_s: Option<f64>,
    /// Longest such time.
    pub queue_delay_max_s: Option<f64>,
    /// Mean for pure ACKs alone.
    pub ack_queue_delay_mean_s: Option<f64>,
    /// Longest for pure ACKs alone.
    pub ack_queue_delay_max_s: Option<f64>,
}

/// A ping within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseProbe {
    /// Name of the probe.
    pub name: String,
    /// Class of its packets.
    pub class: String,
    /// Replies to requests of this phase.
    pub received: u64,
    /// Their round-trip time.
    pub rtt_s: RoundTrip,
}

/// How evenly the TCP flows of one direction shared.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Fairness {
    /// The direction.
    pub direction: String,
    /// How many flows.
    pub flows: u64,
    /// Jain's index of their goodputs: (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (all equal).
    pub jain_index: f64,
}

/// What one access line of several got.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Line {
    /// Name of the line: `line-1`.
    pub name: String,
    /// The link towards its client.
    pub down_link: String,
    /// The link from its client.
    pub up_link: String,
    /// Goodput of the flows whose data crosses the link down, over the run.
    pub down_goodput_bps: f64,
    /// The same for the link up.
    pub up_goodput_bps: f64,
    /// Share of the run that the link down was busy.
    pub down_utilisation: Option<f64>,
    /// The same for the link up.
    pub up_utilisation: Option<f64>,
}

/// How evenly the lines shared in one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LineFairness {
    /// `down` or `up`.
    pub direction: String,
    /// How many lines.
    pub lines: u64,
    /// Jain's index of their goodputs, lines that got nothing included.
    pub jain_index: f64,
}

/// Where every IP byte and packet went: sent + created = delivered + dropped + queued + in flight.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Conservation {
    /// IP bytes sent by hosts.
    pub sent: u64,
    /// IP bytes made inside the network: restored ACKs, signals, and what ACKs grew by.
    pub created: u64,
    /// IP bytes received by hosts.
    pub delivered: u64,
    /// IP bytes dropped, and what ACKs shrank by.
    pub dropped: u64,
    /// IP bytes waiting in queues at the end.
    pub queued: u64,
    /// IP bytes on wires at the end.
    pub in_flight: u64,
    /// The same in packets.
    pub packets: ConservedPackets,
    /// IP bytes dropped, by reason; reasons with none are left out.
    pub dropped_by_reason: BTreeMap<String, u64>,
    /// True when both sums come out.
    pub holds: bool,
}

/// Where every packet went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ConservedPackets {
    /// Sent by hosts.
    pub sent: u64,
    /// Made inside the network.
    pub created: u64,
    /// Received by hosts.
    pub delivered: u64,
    /// Dropped.
    pub dropped: u64,
    /// Waiting in queues at the end.
    pub queued: u64,
    /// On wires at the end.
    pub in_flight: u64,
}

/// What the machine had to do with it. Never part of `summary.json`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Time that the run took.
    pub wall_s: f64,
    /// Events handled in a second of it.
    pub events_per_s: f64,
    /// Simulated seconds in a second of it.
    pub speed: f64,
    /// Largest resident memory of the process, where the system tells.
    pub memory_bytes: Option<u64>,
}

/// What `--json` prints: the summary, and what depends on the machine under `timing`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Document<'a> {
    /// The summary, its keys at the top level.
    #[serde(flatten)]
    pub summary: &'a Summary,
    /// What depends on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

impl Summary {
    /// The text of `summary.json`: indented by two, keys in the order of the fields, a line feed at the end.
    ///
    /// Numbers have the fewest digits that read back as the same value; what is no finite number is `null`.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    /// Writes that text, a little at a time: of very many flows it is longer than all else.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: impl io::Write) -> io::Result<()> {
        write_pretty(self, to)
    }
}

impl Document<'_> {
    /// The text that `--json` prints, in the form of [`Summary::to_json`].
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    /// Writes that text, a little at a time.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: impl io::Write) -> io::Result<()> {
        write_pretty(self, to)
    }
}

fn pretty(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    write_pretty(value, &mut text).expect("maps have string keys, and writing to memory cannot fail");
    String::from_utf8(text).expect("JSON is text")
}

fn write_pretty(value: &impl Serialize, mut to: impl io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, value)?;
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    fn has(value: &serde_json::Value, expected: &str) {
        for key in expected.split_whitespace() {
            assert!(value.get(key).is_some(), "no key {key:?} among {:?}", keys(value));
        }
    }

    /// Other programs rely on these keys: the result schema of the design, section 9.
    #[test]
    fn the_promised_keys_are_there() {
        let summary = Summary {
            flows: vec![Flow::default()],
            links: vec![Link::default()],
            probes: vec![Probe::default()],
            phases: vec![Phase {
                flows: vec![PhaseFlow::default()],
                probes: vec![PhaseProbe::default()],
                ..Phase::default()
            }],
            ..Summary::default()
        };
        let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
        has(&json, "scenario seed version duration_s events flows links probes phases conservation");
        let flow = "name direction kind tcp start_s end_s bytes_delivered goodput_bps response_time_s retransmissions timeouts \
            data_packets acks_sent acks_received limited_by bound_bps bound_by";
        has(&json["flows"][0], flow);
        has(&json["links"][0], "name rate_bps wire_bits ip_bytes packets cells utilisation queue_delay_s drops");
        has(&json["links"][0]["queue_delay_s"], "mean p50 p99 p999 max");
        has(&json["probes"][0], "name class sent received rtt_s");
        has(&json["probes"][0]["rtt_s"], "min mean p50 p99 p999 max");
        has(&json["phases"][0], "name from_s to_s flows probes");
        has(&json["phases"][0]["flows"][0], "name goodput_bps");
        has(&json["conservation"], "sent created delivered dropped queued in_flight");
    }

    #[test]
    fn only_the_document_tells_of_the_machine() {
        let summary = Summary::default();
        assert!(!summary.to_json().contains("timing"));
        let timing = Some(Timing { wall_s: 0.5, ..Timing::default() });
        let document = Document { summary: &summary, timing }.to_json();
        let json: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(json["timing"]["wall_s"], 0.5);
        assert_eq!(json["conservation"], serde_json::to_value(&summary.conservation).unwrap());
    }

    #[test]
    fn a_summary_reads_back_as_it_was_and_what_is_no_number_is_null() {
        let flow = Flow { goodput_bps: 0.1 + 0.2, ..Flow::default() };
        let summary = Summary { flows: vec![flow], ..Summary::default() };
        let text = summary.to_json();
        assert!(text.contains("\"goodput_bps\": 0.30000000000000004"), "{text}");
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
        let endless = Summary { duration_s: f64::INFINITY, ..Summary::default() };
        assert!(endless.to_json().contains("\"duration_s\": null"));
    }
}

//! Results of cells: ports, virtual channels and paths, ABR sources, edges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Results of cells.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Atm {
    /// One row per link of cells and direction: its port.
    pub ports: Vec<CellPort>,
    /// One row per virtual channel.
    pub vcs: Vec<VirtualChannel>,
    /// One row per virtual path.
    pub vps: Vec<VirtualPath>,
    /// One row per class of packets and node at which they become cells.
    #[serde(default)]
    pub edges: Vec<EdgeClass>,
    /// Cells of packets that arrived whole.
    pub goodput_cells: u64,
    /// The account of all cells.
    pub conservation: CellConservation,
}

/// The port of a link of cells.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CellPort {
    /// Name of the link.
    pub link: String,
    /// Cells that arrived at the port.
    pub arrived_cells: u64,
    /// Cells whose transmission began.
    pub sent_cells: u64,
    /// Cells in the queue at the end.
    pub waiting_cells: u64,
    /// Cells dropped at the port.
    pub dropped_cells: u64,
    /// Cells dropped at the port by reason, without zeros.
    pub drops_cells: BTreeMap<String, u64>,
    /// Cells sent that the link lost.
    #[serde(default)]
    pub lost_cells: u64,
    /// Cells that a policer tagged at the port.
    pub tagged_cells: u64,
    /// Cells that arrived with CLP = 1.
    #[serde(default)]
    pub low_priority_cells: u64,
    /// Cells with CLP = 1 dropped at the port, including those tagged there.
    #[serde(default)]
    pub dropped_low_priority_cells: u64,
    /// Cells of packets that crossed this link and arrived whole at their destination.
    pub goodput_cells: u64,
    /// The share of `goodput_cells` in the cells sent.
    pub goodput_share: Option<f64>,
    /// The most cells that may wait in its queue, in all its queues, or in the memory of its
    /// switch; `null` for a host, whose queue is unlimited.
    pub buffer_cells: Option<u64>,
    /// The most cells that waited in one of its queues.
    pub max_queue_cells: u64,
}

/// A virtual channel in one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct VirtualChannel {
    /// Name: that of its flow, followed by `back` for the reverse direction.
    pub name: String,
    /// Virtual path identifier.
    pub vpi: u16,
    /// Virtual channel identifier.
    pub vci: u16,
    /// Name of its virtual path.
    pub vp: Option<String>,
    /// Links that it crosses, in order.
    pub route: Vec<String>,
    /// Packets and cells of the channel.
    #[serde(flatten)]
    pub counts: ChannelCounts,
    /// Mean delay of a packet from its arrival at the source until its last cell has arrived.
    pub transit_mean_s: Option<f64>,
    /// Longest delay of a packet from its arrival at the source until its last cell has arrived.
    pub transit_max_s: Option<f64>,
    /// Cell transfer delay (CTD of ITU-T I.356) of the last cells of packets that arrived whole,
    /// from the start of their transmission at the source: the mean; `null` if the source's sending
    /// times are unknown.
    #[serde(default)]
    pub ctd_mean_s: Option<f64>,
    /// The smallest cell transfer delay.
    #[serde(default)]
    pub ctd_min_s: Option<f64>,
    /// The largest cell transfer delay.
    #[serde(default)]
    pub ctd_max_s: Option<f64>,
    /// Cell delay variation (2-point CDV of I.356): the largest less the smallest delay.
    #[serde(default)]
    pub cdv_s: Option<f64>,
    /// Results of its own policer.
    pub policed: Option<Policed>,
    /// Results of its source, if that is an ABR source.
    #[serde(default)]
    pub abr: Option<AbrSource>,
}

/// Packets and cells of a virtual channel.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ChannelCounts {
    /// Packets that arrived at its source.
    pub offered_frames: u64,
    /// Cells of the offered packets.
    pub offered_cells: u64,
    /// Packets that arrived whole.
    pub whole_frames: u64,
    /// Packets that arrived at its source and were sent in cells with CLP = 1.
    #[serde(default)]
    pub offered_low_priority_frames: u64,
    /// Offered packets with CLP = 1 that arrived whole.
    #[serde(default)]
    pub whole_low_priority_frames: u64,
    /// Packets lost, by the reason for the first lost cell, without zeros.
    pub lost_frames: BTreeMap<String, u64>,
    /// Cells of packets that arrived whole.
    pub goodput_cells: u64,
    /// Cells that arrived of packets that did not arrive whole.
    pub badput_cells: u64,
    /// Cells dropped at all its links, by reason, without zeros.
    pub drops_cells: BTreeMap<String, u64>,
    /// Cells lost on the wire at all its links.
    #[serde(default)]
    pub lost_cells: u64,
    /// Cells that a policer tagged.
    pub tagged_cells: u64,
}

/// The source of an ABR virtual channel.
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
    /// RM cells that returned.
    pub rm_returned_cells: u64,
    /// Returned RM cells that indicate congestion (CI).
    pub rm_congested_cells: u64,
    /// The largest backlog at the edge, in bytes of packets.
    pub edge_max_bytes: u64,
    /// Packets dropped at the edge's full queue.
    pub edge_dropped_frames: u64,
    /// ACKs that the edge held back.
    pub acks_held: u64,
    /// Mean delay of the ACKs held back.
    pub ack_hold_mean_s: Option<f64>,
    /// Longest delay of the ACKs held back.
    pub ack_hold_max_s: Option<f64>,
}

/// A virtual path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct VirtualPath {
    /// Name of the virtual path.
    pub name: String,
    /// Results of its policer.
    pub policed: Option<Policed>,
}

/// An edge device's treatment of the packets of a class.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EdgeClass {
    /// Name of the edge.
    pub name: String,
    /// Name of the node.
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

/// Cells by the policer's verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Policed {
    /// Cells that conform.
    pub conforming_cells: u64,
    /// Conforming cells that arrived with CLP = 1.
    #[serde(default)]
    pub conforming_low_priority_cells: u64,
    /// Cells that do not conform, and continued with CLP = 1.
    pub tagged_cells: u64,
    /// Cells dropped above the peak rate.
    pub peak_cells: u64,
    /// Cells dropped above the sustainable rate.
    pub sustainable_cells: u64,
    /// Cells dropped because their frame may not have them (GFR).
    pub frame_cells: u64,
    /// Frames that were eligible for the guarantee (GFR).
    pub eligible_frames: u64,
}

/// The account of all cells: offered = arrived + dropped + lost + inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CellConservation {
    /// Cells of all packets that arrived at the sources of virtual channels.
    pub offered: u64,
    /// Cells that arrived at the far ends.
    pub arrived: u64,
    /// Cells dropped.
    pub dropped: u64,
    /// Cells lost on the wire.
    #[serde(default)]
    pub lost: u64,
    /// Cells in queues or on the wire at the end.
    pub inside: u64,
    /// True if the sums agree, for cells and for packets.
    pub holds: bool,
}

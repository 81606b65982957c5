//! What became of cells: ports, virtual channels and paths, sources of available bit rate, edges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// Cells sent that the link lost.
    #[serde(default)]
    pub lost_cells: u64,
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
    /// Cells lost on the wire at all its links.
    #[serde(default)]
    pub lost_cells: u64,
    /// Cells that a policer tagged.
    pub tagged_cells: u64,
    /// Mean time from a packet's coming to the source until all of it has arrived.
    pub transit_mean_s: Option<f64>,
    /// Longest such time.
    pub transit_max_s: Option<f64>,
    /// Cell transfer delay (CTD of ITU-T I.356) of the last cells of packets that arrived whole, from the start of their transmission at the
    /// source: the mean; `null` where the sending times of the source are not known.
    #[serde(default)]
    pub ctd_mean_s: Option<f64>,
    /// The smallest.
    #[serde(default)]
    pub ctd_min_s: Option<f64>,
    /// The largest.
    #[serde(default)]
    pub ctd_max_s: Option<f64>,
    /// Cell delay variation (2-point CDV of I.356): the largest less the smallest.
    #[serde(default)]
    pub cdv_s: Option<f64>,
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

/// Where every cell went: offered = arrived + dropped + lost + inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CellConservation {
    /// Cells of all packets that came to the sources of virtual channels.
    pub offered: u64,
    /// Cells that arrived at the far ends.
    pub arrived: u64,
    /// Cells dropped.
    pub dropped: u64,
    /// Cells lost on the wire.
    #[serde(default)]
    pub lost: u64,
    /// Cells that waited or were on the wire at the end.
    pub inside: u64,
    /// True when the sum comes out, for cells and for packets.
    pub holds: bool,
}

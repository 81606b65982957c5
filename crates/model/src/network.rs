//! Networks as plain data: nodes, links, recording. The scenario crate builds them from files,
//! tests build them directly.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::line;
use lastmile_queueing::spec::Spec as QueueSpec;
use lastmile_units::{BitRate, Duration};

use crate::atm::Atm;
use crate::traffic::Traffic;

/// Index of a node in [`Network::nodes`].
pub type NodeIndex = usize;

/// A whole simulation: network, traffic and duration.
#[derive(Clone, Debug)]
pub struct Network {
    /// Hosts and routers; the traffic determines which nodes are hosts.
    pub nodes: Vec<Node>,
    /// Unidirectional links, each with its queue.
    pub links: Vec<Link>,
    /// The traffic.
    pub traffic: Vec<Traffic>,
    /// Simulated time.
    pub duration: Duration,
    /// Seed of every random stream.
    pub seed: u64,
    /// The largest random delay of each flow's start after its traffic's `start`, drawn by the
    /// seed. It is at most a tenth of the time until the traffic stops, and does not apply to
    /// captures.
    pub start_jitter: Duration,
    /// The recorded data in addition to totals.
    pub record: Record,
    /// The access lines, for results that compare them; the simulation uses links only.
    pub lines: Vec<AccessLine>,
    /// The links that carry cells, if any.
    pub atm: Option<Atm>,
}

/// An access line of a network: its two links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessLine {
    /// Name, unique among lines.
    pub name: String,
    /// Index of the link towards the client.
    pub down: usize,
    /// Index of the link from the client.
    pub up: usize,
}

/// A host or router.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, unique in the network.
    pub name: String,
    /// Constant delay for forwarding or receiving a packet.
    pub processing: Duration,
}

/// One direction of a link: queue, transmitter, wire.
#[derive(Clone, Debug)]
pub struct Link {
    /// Name, unique in the network, such as `up` or `dslam-gateway`.
    pub name: String,
    /// The node that transmits; its queue is the link's.
    pub from: NodeIndex,
    /// The node at the other end.
    pub to: NodeIndex,
    /// Rate of the wire, headers and cells included. `None` for transmission in no time.
    pub rate: Option<BitRate>,
    /// The conversion of IP packets to bytes on the wire.
    pub link_layer: LinkLayer,
    /// Propagation delay.
    pub delay: Duration,
    /// Probability that a packet is lost on the wire, in parts per 10^9.
    pub loss_ppb: u32,
    /// The queue in front of the transmitter.
    pub queue: QueueSpec,
    /// Header compression over this link.
    pub compression: Compression,
}

impl Network {
    /// The line that a link is made of, for either clock. Its delay includes the processing of the node at its end.
    #[must_use]
    pub fn line_of(&self, link: &Link) -> line::Config {
        line::Config {
            rate: link.rate,
            link_layer: link.link_layer,
            delay: link.delay + self.nodes[link.to].processing,
            loss_ppb: link.loss_ppb,
            compression: link.compression,
        }
    }
}

/// The recorded data in addition to totals.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Time between samples of queues, windows and rates; `None` for no series.
    pub interval: Option<Duration>,
    /// The number of flows up to which each flow has its own series and phases.
    pub flow_limit: usize,
}

impl Default for Record {
    fn default() -> Self {
        Self { interval: None, flow_limit: 64 }
    }
}

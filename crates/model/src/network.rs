//! Networks as plain data: nodes, links, what to record. The scenario crate builds them from files, tests build them by hand.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::line;
use lastmile_queueing::spec::Spec as QueueSpec;
use lastmile_units::{BitRate, Duration};

use crate::atm::Atm;
use crate::traffic::Traffic;

/// Index of a node in [`Network::nodes`].
pub type NodeIndex = usize;

/// A whole simulation: what there is, what runs over it, for how long.
#[derive(Clone, Debug)]
pub struct Network {
    /// Hosts and routers; which is which follows from the traffic.
    pub nodes: Vec<Node>,
    /// Unidirectional links, each with the queue in front of it.
    pub links: Vec<Link>,
    /// What runs.
    pub traffic: Vec<Traffic>,
    /// Simulated time.
    pub duration: Duration,
    /// Seed of every random stream.
    pub seed: u64,
    /// Each flow but those of captures starts up to this much after its traffic's `start`, drawn by the seed; at most a tenth of the
    /// time that is left until the traffic stops.
    pub start_jitter: Duration,
    /// What to record beside the totals.
    pub record: Record,
    /// The access lines, for results that compare them; the simulation itself knows links alone.
    pub lines: Vec<AccessLine>,
    /// The links that carry cells, if there are any.
    pub atm: Option<Atm>,
}

/// An access line of a network: which links it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessLine {
    /// Name, unique among lines.
    pub name: String,
    /// The link towards the client, by its index.
    pub down: usize,
    /// The link from the client, by its index.
    pub up: usize,
}

/// A host or router.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, unique in the network.
    pub name: String,
    /// What forwarding or receiving one packet costs, as a constant delay.
    pub processing: Duration,
}

/// One direction of a link: queue, transmitter, wire.
#[derive(Clone, Debug)]
pub struct Link {
    /// Name, unique in the network, such as `up` or `dslam-gateway`.
    pub name: String,
    /// The node whose queue this is.
    pub from: NodeIndex,
    /// The node at the other end.
    pub to: NodeIndex,
    /// Rate of the wire, headers and cells included. `None` takes no time at all.
    pub rate: Option<BitRate>,
    /// What an IP packet costs on this wire.
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

/// What to record beside the totals.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Time between samples of queues, windows and rates; `None` for no series.
    pub interval: Option<Duration>,
    /// The number of flows up to which each flow gets series and phases of its own.
    pub flow_limit: usize,
}

impl Default for Record {
    fn default() -> Self {
        Self { interval: None, flow_limit: 64 }
    }
}

//! Networks as plain data: nodes, links, recording. The scenario crate builds them from files,
//! tests build them directly.

use lastmile_packet::Packet;
use lastmile_queueing::Environment;
use lastmile_queueing::line::{self, Line};
use lastmile_queueing::random::Stream;
use lastmile_queueing::spec::{BuildError as QueueError, Spec as QueueSpec};
use lastmile_units::{Duration, Instant};

use crate::atm::Atm;
use crate::autorate::Autorate;
use crate::node::{Node, NodeIndex};
use crate::traffic::{Source, Traffic};

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
    /// The controllers that move rates of shapers.
    pub autorates: Vec<Autorate>,
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

/// One direction of a line: queue, transmitter, wire. The scenario describes it, both clocks build a
/// [`line::Line`] from it.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Name, unique in the network, such as `up` or `dslam-gateway`. It also names the random stream of the hop.
    pub name: String,
    /// Rate, encapsulation, delay, loss, header compression.
    pub line: line::Config,
    /// The queue in front of the transmitter.
    pub queue: QueueSpec,
}

impl Hop {
    /// The idle line of this hop in the run with this seed, under either clock. Losses, impairments, grants and the
    /// queue draw from one stream, `loss on link NAME`, and its children.
    ///
    /// # Errors
    /// A queue that the line cannot have.
    pub fn idle_line<P>(&self, seed: u64, environment: Environment) -> Result<Line<P>, QueueError>
    where
        P: Packet + Send + 'static,
    {
        let losses = Stream::new(seed, &format!("loss on link {}", self.name));
        let queue = self.queue.build_in(&environment.with_random(losses.child("queue")))?;
        Ok(Line::new(&self.line, queue, losses))
    }
}

/// A hop between two nodes.
#[derive(Clone, Debug)]
pub struct Link {
    /// The node that transmits; its queue is the hop's.
    pub from: NodeIndex,
    /// The node at the other end.
    pub to: NodeIndex,
    /// Queue, transmitter and wire.
    pub hop: Hop,
}

impl Network {
    /// The hop of a link as either clock builds it: its far end has the processing of the node there.
    #[must_use]
    pub fn hop_of(&self, link: &Link) -> Hop {
        let mut hop = link.hop.clone();
        hop.line.far_end += self.nodes[link.to].processing;
        hop
    }

    /// The start of a flow of `traffic` under either clock: up to [`Network::start_jitter`] after that of the traffic.
    #[must_use]
    pub fn start_of(&self, traffic: &Traffic, member: u32) -> Instant {
        let end = traffic.stop.unwrap_or(Instant::ZERO + self.duration);
        let most = self.start_jitter.min(end.since(traffic.start) / 10);
        if most.is_zero() || matches!(traffic.source, Source::Replay(_)) {
            return traffic.start;
        }
        let mut draw = Stream::new(self.seed, &format!("start of {}-{member}", traffic.name));
        traffic.start + Duration::from_ps(draw.below(most.as_ps()))
    }
}

/// The recorded data in addition to totals.
#[derive(Clone, Debug)]
pub struct Record {
    /// Time between samples of queues, windows and rates; `None` for no series.
    pub interval: Option<Duration>,
    /// The number of flows up to which each flow has its own series and phases.
    pub flow_limit: usize,
    /// Times that divide phases, in addition to the starts, stops and ends of the traffic.
    pub cuts: Vec<Instant>,
}

impl Default for Record {
    fn default() -> Self {
        Self { interval: None, flow_limit: 64, cuts: Vec::new() }
    }
}

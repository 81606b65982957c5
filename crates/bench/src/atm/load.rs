//! 48 connections over one OC-3 trunk: sources and network.
//!
//! Each connection keeps four frames of 172 cells (8 kB segments) in flight, over a round trip of
//! 80 ms: a sixth more than the trunk holds, so that it is never idle and a few thousand cells
//! queue. Every frame is acknowledged by a frame of two cells. Three hops each way: host, trunk,
//! host.

use lastmile_atm::contract::{Contract, Peak, Sbr, Sustainable};
use lastmile_atm::discard::Scheme;
use lastmile_atm::network::ClassSpec;
use lastmile_atm::{Departure, Discard, Fate, LinkId, LinkSpec, Network, NetworkSpec, QueueSpec, Queues, VcId, VcSpec};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};

const CONNECTIONS: usize = 48;
const WINDOW: usize = 4;
const OC3: BitRate = BitRate::from_kbit_per_s(149_760);
const SEGMENT: ByteCount = ByteCount::new(8_192 + 40);
const ACK: ByteCount = ByteCount::new(40);

/// The behaviour of the sources and the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Frames arrive at line rate in one FIFO.
    LineRate,
    /// Cells arrive at 35 Mbit/s per VC, so those of several frames alternate.
    Shaped,
    /// Shaped sources, and the FIFO drops frames by EPD with per-VC accounting.
    PerVc,
    /// Shaped sources, and the trunk has two classes: a quarter of the VCs is policed by SBR3, the
    /// others are UBR.
    TwoClasses,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::LineRate, Self::Shaped, Self::PerVc, Self::TwoClasses];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::LineRate => "frames at line rate",
            Self::Shaped => "shaped to 35 Mbit/s",
            Self::PerVc => "shaped, EPD per VC",
            Self::TwoClasses => "shaped, policed, two classes",
        }
    }
}

/// The network with its connections.
pub(crate) struct Load {
    network: Network,
    /// Data VCs, followed by those of ACKs.
    vcs: Vec<VcId>,
    trunk: LinkId,
    left: Vec<Departure>,
}

impl Load {
    pub(crate) fn new(kind: Kind, trains: bool) -> Self {
        let mut spec = NetworkSpec { trains, ..NetworkSpec::new() };
        let near = spec.node("near");
        let far = spec.node("far");
        let half = Duration::from_us(40_000 - 20);
        let scheme = match kind {
            Kind::PerVc => Scheme::EpdPerVc { threshold: CellCount::new(8_000), vcs: None },
            _ => Scheme::Tail,
        };
        let discard = Discard { scheme, ..Discard::default() };
        let queue = QueueSpec { limit: Some(CellCount::new(10_000)), discard };
        let queues = match kind {
            Kind::TwoClasses => {
                let class = |weight| ClassSpec { queue, priority: 0, weight };
                Queues::Classes(vec![class(1), class(3)])
            }
            _ => Queues::Fifo(queue),
        };
        let trunk = spec.link(LinkSpec::new(near, far, OC3, half).with_queues(queues.clone()));
        spec.link(LinkSpec::new(far, near, OC3, half).with_queues(queues));
        for index in 0..CONNECTIONS {
            for (host, switch) in [(format!("sender {index}"), near), (format!("receiver {index}"), far)] {
                let host = spec.node(host);
                spec.link(LinkSpec::new(host, switch, OC3, Duration::from_us(10)));
                spec.link(LinkSpec::new(switch, host, OC3, Duration::from_us(10)));
            }
        }
        let mut vcs = Vec::new();
        for back in [false, true] {
            for index in 0..CONNECTIONS {
                let (sender, receiver) = (format!("sender {index}"), format!("receiver {index}"));
                let mut path = [sender.as_str(), "near", "far", receiver.as_str()];
                if back {
                    path.reverse();
                }
                let route = spec.route(&path).expect("links between neighbours");
                vcs.push(spec.vc(vc(kind, index, back, route)));
            }
        }
        let mut network = Network::new(&spec).expect("a network");
        for (index, vc) in vcs[..CONNECTIONS].iter().enumerate() {
            let start = Instant::ZERO + Duration::from_us(1_237 * index as u64);
            for _ in 0..WINDOW {
                network.offer(start, *vc, SEGMENT, index as u64).expect("a packet that fits");
            }
        }
        Self { network, vcs, trunk, left: Vec::new() }
    }

    /// Runs the network until `until`.
    pub(crate) fn run(&mut self, until: Instant) {
        while let Some(next) = self.network.next_event()
            && next <= until
        {
            self.network.advance(next);
            self.network.departures(&mut self.left);
            for gone in self.left.drain(..) {
                let index = gone.packet as usize;
                // An ACK or a loss releases the next frame: the window is constant.
                let data = gone.vc.index() < CONNECTIONS;
                let (vc, bytes) = if data && gone.fate == Fate::Whole {
                    (self.vcs[CONNECTIONS + index], ACK)
                } else {
                    (self.vcs[index], SEGMENT)
                };
                self.network.offer(next, vc, bytes, gone.packet).expect("a packet that fits");
            }
        }
        self.network.advance(until);
    }

    /// Cells sent on all links, and those on the trunk.
    pub(crate) fn cells(&self) -> (u64, u64) {
        assert!(self.network.stats().holds(), "cells were lost in silence");
        let hops = self.vcs.iter().flat_map(|vc| (0..3).map(|hop| self.network.hop_stats(*vc, hop).sent));
        (hops.sum(), self.network.link_stats(self.trunk).cells.sent)
    }
}

fn vc(kind: Kind, index: usize, back: bool, route: Vec<LinkId>) -> VcSpec {
    let direction = if back { "acks" } else { "data" };
    let mut vc = VcSpec::new(format!("{direction} {index}"), 32 + index as u16, route);
    if kind != Kind::LineRate {
        vc.pcr = Some(BitRate::from_mbit_per_s(35));
    }
    if kind == Kind::TwoClasses && index >= CONNECTIONS / 4 {
        vc.class = 1;
    } else if kind == Kind::TwoClasses && !back {
        let peak = Peak { rate: OC3, cdvt: Duration::from_us(100) };
        let sustainable =
            Sustainable { rate: BitRate::from_kbit_per_s(3_120), mbs: CellCount::new(1_376), cdvt: Duration::ZERO };
        let contract = Contract::Sbr { variant: Sbr::Three, peak, sustainable };
        vc.upc = Some(lastmile_atm::network::Upc { at: vc.route[1], contract });
    }
    vc
}

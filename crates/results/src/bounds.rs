//! The closed-form bound beside each flow's result: the fair share of what the line can carry at best.
//!
//! For each phase of a run, rates grow equally for all flows until something holds them (max-min fairness: Bertsekas and Gallager,
//! Data Networks, section 6.5.2). What may hold a flow:
//!
//! - *its receive window*: window / round trip of the empty path, serialisation and processing included;
//! - *the rate of a link* that its data crosses, in payload of full segments: headers, encapsulation, cells and OAM come off;
//! - *the rate of a link* that its ACKs cross: one ACK of its size on the wire for every d segments (this is min(1, d/k) of
//!   [`lastmile_theory::asymmetry`]), unless a discipline on that link thins ACKs out;
//! - *its source*, for what is not TCP, which takes its offered rate before TCP shares the rest; of a capture, what it holds.
//!
//! Connections that come and go have no fair share, since their number is part of the result. A swarm is bounded by the rate of its links
//! alone, all its connections together; a web user by nothing, who asks for a page only when the last one has been read.
//!
//! A bound, not a forecast: ACKs and data that meet in one queue do not count against each other here ([`two_way`] has what they
//! leave each other), losses cost nothing, and slow start takes no time. How far a result stays below its bound is what the report is about. The bound is not strict where flows
//! do not share evenly: one may exceed its fair share because another did not take its own.
//!
//! Cost: sources times links times rounds, at most one round for each source and link; the number of flows does not matter.

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::spec::Spec;
use lastmile_sim::outcome::Outcome;
use lastmile_sim::spec::{Link, Network, Replay, Source, Traffic};
use lastmile_tcp::{Config, WindowScale};
use lastmile_theory::delay;
use lastmile_units::{ByteCount, Duration, Instant};

use crate::format;
use crate::phases::Interval;

/// The largest window that a header without the scale option can tell (RFC 9293, section 3.1).
const UNSCALED_WINDOW: u64 = 65_535;
/// IPv4 and UDP headers.
const DATAGRAM_HEADERS: u64 = 28;
/// What RFC 1144 leaves of the headers of a segment in an unbroken one-way transfer: change mask and checksum (section 3.2.2).
const VJ_HEADER: u64 = 3;
/// Less data than this share of a link is in nobody's way.
const DATA_IN_THE_WAY: f64 = 0.01;

/// A bound and what sets it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bound {
    /// Payload, bit/s.
    pub(crate) bps: f64,
    /// What sets it, in words.
    pub(crate) by: Arc<str>,
}

/// What a source's packets are like, and which way they go.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Index of the traffic.
    traffic: usize,
    /// Payload of a full packet.
    pub(crate) payload: u64,
    /// IP bytes of a full packet.
    pub(crate) data: ByteCount,
    /// What only TCP has.
    pub(crate) tcp: Option<TcpShape>,
    /// Links that data crosses.
    pub(crate) data_path: Vec<usize>,
    /// Links that ACKs cross.
    pub(crate) ack_path: Vec<usize>,
    /// Connections that come and go: their packets have a shape, but there is no telling how many there are.
    pub(crate) many: bool,
}

/// What only a TCP source has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpShape {
    /// Bytes of the IP and TCP headers.
    pub(crate) header: u64,
    /// Timestamps change in every header.
    timestamps: bool,
    /// Receive window that can be told, at most.
    pub(crate) window: u64,
    /// Segments for each ACK.
    pub(crate) segments_per_ack: u64,
}

impl Shape {
    /// The shape of the traffic of this index whose flows take these paths; `None` for pings and replays.
    pub(crate) fn new(network: &Network, index: usize, data_path: &[usize], ack_path: &[usize]) -> Option<Self> {
        let traffic = &network.traffic[index];
        let (payload, header, tcp) = match &traffic.source {
            Source::Bulk { sender, receiver, .. } => segments(sender, receiver),
            Source::Writes { tcp, .. } => segments(tcp, tcp),
            Source::Web(web) => segments(&web.server, &web.browser),
            Source::Swarm(swarm) => segments(&swarm.tcp, &swarm.tcp),
            Source::Poisson { size, .. } | Source::OnOff { size, .. } | Source::Constant { size, .. } => {
                (size.as_u64().saturating_sub(DATAGRAM_HEADERS), DATAGRAM_HEADERS, None)
            }
            // Captured packets have each a size of their own.
            Source::Replay(_) | Source::Ping { .. } => return None,
        };
        let data = ByteCount::new(payload + header);
        Some(Self {
            traffic: index,
            payload,
            data,
            tcp,
            data_path: data_path.to_vec(),
            ack_path: ack_path.to_vec(),
            many: traffic.opens(),
        })
    }

    /// IP bytes of a full data packet as `link` carries it, its header compressed or not.
    fn data_over(&self, link: &Link) -> ByteCount {
        self.tcp.map_or(self.data, |tcp| tcp.compressed(self.data, VJ_HEADER, link.compression))
    }

    /// IP bytes of a pure ACK as `link` carries it.
    fn ack_over(&self, link: &Link, tcp: TcpShape) -> ByteCount {
        // The ACK number moves by what the ACK covers: one byte of difference below 256, else three (RFC 1144, 3.2.2).
        let moved = if self.payload * tcp.segments_per_ack < 256 { 1 } else { 3 };
        tcp.compressed(ByteCount::new(tcp.header), VJ_HEADER + moved, link.compression)
    }

    /// Payload, bit/s, that `link` carries in full packets of this shape; `None` where transmission takes no time.
    pub(crate) fn capacity_bps(&self, link: &Link) -> Option<f64> {
        let ip = self.data_over(link);
        let packets = packet_rate(link, ip)?;
        Some(packets * format::to_f64(self.payload) * 8.0)
    }

    /// The round trip of an empty path in seconds: propagation, processing, and the transmission of one full segment and one ACK.
    pub(crate) fn base_rtt_s(&self, network: &Network) -> f64 {
        let ack = |link: &Link| self.tcp.map_or(ByteCount::ZERO, |tcp| self.ack_over(link, tcp));
        let there = network.crossing((self.traffic, false), &self.data_path, &|link| self.data_over(link));
        let back = network.crossing((self.traffic, true), &self.ack_path, &ack);
        (there + back).as_secs_f64()
    }
}

/// Payload of a full segment, bytes of its headers, and the rest of the shape of a connection.
fn segments(sender: &Config, receiver: &Config) -> (u64, u64, Option<TcpShape>) {
    let timestamps = sender.timestamps && receiver.timestamps;
    let header = if sender.ipv6 { 60 } else { 40 } + if timestamps { 12 } else { 0 };
    let scaled = sender.window_scale != WindowScale::Off && receiver.window_scale != WindowScale::Off;
    let window = receiver.receive_window.as_u64().min(if scaled { u64::MAX } else { UNSCALED_WINDOW });
    let segments_per_ack = if receiver.delayed_ack.is_zero() { 1 } else { u64::from(receiver.ack_every) };
    let tcp = TcpShape { header, timestamps, window, segments_per_ack };
    (u64::from(sender.mss.min(receiver.mss)), header, Some(tcp))
}

impl TcpShape {
    fn compressed(self, packet: ByteCount, vj_header: u64, compression: Compression) -> ByteCount {
        match compression {
            // With other options than the packet before, RFC 1144 sends the whole header; timestamps nearly always differ.
            Compression::Rfc1144 { .. } if !self.timestamps && self.header == 40 => {
                ByteCount::new(packet.as_u64() - self.header + vj_header)
            }
            Compression::FixedRatio(ratio) => ratio.compressed(packet, ByteCount::new(self.header)),
            Compression::None | Compression::Rfc1144 { .. } => packet,
        }
    }
}

/// Packets of `ip` bytes that `link` carries in a second, OAM cells off; `None` where transmission takes no time.
fn packet_rate(link: &Link, ip: ByteCount) -> Option<f64> {
    let layer: LinkLayer = link.link_layer;
    let bits = format::to_f64(ip.as_u64()) * 8.0;
    link.rate.map(|rate| delay::ip_rate_bps(rate, layer, ip) / bits)
}

/// True when something in front of the link thins pure ACKs out, so that their number says little.
pub(crate) fn regulates_acks(queue: &Spec) -> bool {
    match queue {
        Spec::Sad { .. } | Spec::AckFilter { .. } => true,
        Spec::AckCollapsing { .. } | Spec::CakeAckFilter { .. } => true,
        Spec::AckPacing { queue, .. } | Spec::WindowClamp { queue, .. } => regulates_acks(queue),
        Spec::Cake(config) if config.ack_filter.is_some() => true,
        other => other.below().into_iter().any(regulates_acks),
    }
}

/// The bound of each traffic between `from` and `to`; `None` for pings, web users and what is not active then.
pub(crate) fn in_phase(
    network: &Network,
    outcome: &Outcome,
    shapes: &[Option<Shape>],
    (from, to): (Instant, Instant),
) -> Vec<Option<Bound>> {
    let mut bounds = vec![None; network.traffic.len()];
    let mut room = Room::new(network);
    // What is not responsive takes its rate first.
    for responsive in [false, true] {
        let mut demands = Vec::new();
        for (index, shape) in shapes.iter().enumerate() {
            let Some(shape) = shape.as_ref().filter(|shape| shape.tcp.is_some() == responsive) else { continue };
            let count = active(network, outcome, index, (from, to));
            if count > 0 && shape.many {
                bounds[index] = room.narrowest(network, index, shape);
            } else if count > 0 {
                demands.push(Demand::new(network, index, shape, count));
            }
        }
        room.fill(network, demands, &mut bounds);
    }
    for (index, traffic) in network.traffic.iter().enumerate() {
        if let Source::Replay(capture) = &traffic.source {
            bounds[index] = captured(capture, traffic, (from, to));
        }
    }
    bounds
}

/// What a replay offers between `from` and `to`: the payload of the packets that leave then. `None` for none.
fn captured(capture: &Replay, traffic: &Traffic, (from, to): (Instant, Instant)) -> Option<Bound> {
    let until = traffic.stop.map_or(to, |stop| stop.min(to));
    let leaves = |after: Duration| traffic.start + after;
    let first = capture.packets.partition_point(|(after, _)| leaves(*after) < from);
    let within = capture.packets[first..].iter().take_while(|(after, _)| leaves(*after) < until);
    let bytes = within.map(|(_, packet)| u64::from(packet.ip_len.saturating_sub(packet.header_len.into()))).sum();
    let bps = format::to_f64(bytes) * 8.0 / to.since(from.max(traffic.start)).as_secs_f64();
    (bytes > 0).then(|| Bound { bps, by: format!("its capture, which offers {}", format::rate(bps)).into() })
}

/// What the ACKs of a flow release beside the data that they met on their way: the two-way form of the AMP bound
/// ([`lastmile_theory::amp`]), `M (1-g) Cr / Pack` packets, where data had the share g of the link in `part`.
///
/// Only where data and ACKs share one FIFO: a discipline that tells them apart can give ACKs more. `None` where no data was in their
/// way. `sharing` counts the flows whose ACKs cross each link.
pub(crate) fn two_way(network: &Network, shape: &Shape, part: &Interval, sharing: &[usize]) -> Option<Bound> {
    let tcp = shape.tcp?;
    let covers = format::to_f64(shape.payload * tcp.segments_per_ack) * 8.0;
    let over = |index: &usize| {
        let link = &network.links[*index];
        let acks = packet_rate(link, shape.ack_over(link, tcp)).filter(|_| matches!(link.queue, Spec::Fifo { .. }))?;
        let seen = format::to_f64(part.ack_waits[*index].packets) / part.length_s();
        let busy = format::to_f64(part.wire_bits[*index]) / format::to_f64(link.rate?.as_bps()) / part.length_s();
        let (data, left) = beside_data(acks, seen, busy);
        let bps = left * covers / format::to_f64(sharing[*index].max(1) as u64);
        let by = format!("ACKs on link {}, beside data that takes {} of it", link.name, format::percent(data));
        (data >= DATA_IN_THE_WAY).then(|| Bound { bps, by: by.into() })
    };
    shape.ack_path.iter().filter_map(over).min_by(|a, b| a.bps.total_cmp(&b.bps))
}

/// The share of data on a link that was so busy and carried `seen` ACKs a second, and the ACKs a second that fit beside it, of
/// `acks` alone.
fn beside_data(acks: f64, seen: f64, busy: f64) -> (f64, f64) {
    let data = (busy - seen / acks).clamp(0.0, 1.0);
    (data, acks * (1.0 - data))
}

/// How many flows of traffic `index` offered data between `from` and `to`.
pub(crate) fn active(network: &Network, outcome: &Outcome, index: usize, (from, to): (Instant, Instant)) -> usize {
    let traffic = &network.traffic[index];
    if traffic.start >= to || traffic.stop.is_some_and(|stop| stop <= from) {
        return 0;
    }
    outcome.flows.iter().filter(|flow| flow.traffic == index && flow.end.is_none_or(|end| end > from)).count()
}

/// What the active flows of one traffic want, and what a bit of their payload costs.
struct Demand {
    traffic: usize,
    count: f64,
    /// What a flow may have at most whatever the links allow.
    cap: Bound,
    /// Share of a resource's second that one bit of payload a second takes.
    costs: Vec<(Resource, f64)>,
}

/// A link's rate, once for data and once for ACKs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resource {
    Data(usize),
    Acks(usize),
}

impl Demand {
    fn new(network: &Network, traffic: usize, shape: &Shape, count: usize) -> Self {
        let mut costs = Vec::new();
        for index in &shape.data_path {
            if let Some(bps) = shape.capacity_bps(&network.links[*index]) {
                costs.push((Resource::Data(*index), bps.recip()));
            }
        }
        for index in shape.ack_path.iter().filter(|_| shape.tcp.is_some()) {
            let (link, tcp) = (&network.links[*index], shape.tcp.expect("filtered"));
            let acks = packet_rate(link, shape.ack_over(link, tcp)).filter(|_| !regulates_acks(&link.queue));
            let covers = format::to_f64(shape.payload * tcp.segments_per_ack) * 8.0;
            if let Some(acks) = acks {
                costs.push((Resource::Acks(*index), (acks * covers).recip()));
            }
        }
        Self { traffic, count: format::to_f64(count as u64), cap: cap(network, traffic, shape), costs }
    }

    fn cost(&self, resource: Resource) -> f64 {
        self.costs.iter().filter(|(other, _)| *other == resource).map(|(_, cost)| *cost).sum()
    }
}

/// What one flow of `traffic` may have at most whatever the links allow.
fn cap(network: &Network, traffic: usize, shape: &Shape) -> Bound {
    let payload_share = format::to_f64(shape.payload) / format::to_f64(shape.data.as_u64());
    let data = |bps: f64| Bound { bps, by: format!("its source, which offers {}", format::rate(bps)).into() };
    let offered = |ip_bps: f64| data(ip_bps * payload_share);
    match (&network.traffic[traffic].source, shape.tcp) {
        (Source::Bulk { .. }, Some(tcp)) => by_window(network, shape, &tcp),
        (Source::Writes { rate, .. }, Some(tcp)) => {
            let window = by_window(network, shape, &tcp);
            let source = data(format::to_f64(rate.as_bps()));
            if source.bps < window.bps { source } else { window }
        }
        (Source::Poisson { rate, .. }, _) => offered(format::to_f64(rate.as_bps())),
        (Source::OnOff { peak, on, off, .. }, _) => {
            let (on, off) = (on.as_secs_f64(), off.as_secs_f64());
            offered(format::to_f64(peak.as_bps()) * on / (on + off))
        }
        (Source::Constant { interval, size, .. }, _) => {
            offered(format::to_f64(size.as_u64()) * 8.0 / interval.as_secs_f64())
        }
        (_, _) => Bound { bps: 0.0, by: Arc::default() },
    }
}

/// A window each round trip.
fn by_window(network: &Network, shape: &Shape, tcp: &TcpShape) -> Bound {
    let rtt = shape.base_rtt_s(network);
    let bps = format::to_f64(tcp.window) * 8.0 / rtt;
    let by = format!("receive window {} / empty round trip {}", format::window(tcp.window), format::seconds(rtt));
    Bound { bps: if bps.is_finite() { bps } else { f64::MAX }, by: by.into() }
}

/// What is left of every resource, as a share of it.
struct Room {
    data: Vec<f64>,
    acks: Vec<f64>,
}

impl Room {
    fn new(network: &Network) -> Self {
        Self { data: vec![1.0; network.links.len()], acks: vec![1.0; network.links.len()] }
    }

    fn left(&self, resource: Resource) -> f64 {
        match resource {
            Resource::Data(link) => self.data[link],
            Resource::Acks(link) => self.acks[link],
        }
    }

    /// What the narrowest link on the way of data leaves to the connections of a swarm, all together; `None` for a web user, and where
    /// no link has a rate.
    fn narrowest(&self, network: &Network, traffic: usize, shape: &Shape) -> Option<Bound> {
        let Source::Swarm(_) = network.traffic[traffic].source else { return None };
        let links = shape.data_path.iter().filter_map(|index| {
            let link = &network.links[*index];
            let bps = shape.capacity_bps(link)? * self.data[*index];
            Some(Bound { bps, by: format!("rate of link {}, all its connections together", link.name).into() })
        });
        links.min_by(|a, b| a.bps.total_cmp(&b.bps))
    }

    fn take(&mut self, resource: Resource, share: f64) {
        let left = match resource {
            Resource::Data(link) => &mut self.data[link],
            Resource::Acks(link) => &mut self.acks[link],
        };
        *left = (*left - share).max(0.0);
    }

    /// Raises all of `demands` together, freezing each when its cap or a resource holds it.
    fn fill(&mut self, network: &Network, mut demands: Vec<Demand>, bounds: &mut [Option<Bound>]) {
        while !demands.is_empty() {
            let (level, tight) = self.next_level(&demands);
            let holds = |demand: &Demand| match tight {
                Some(resource) => demand.cost(resource) > 0.0,
                None => demand.cap.bps <= level,
            };
            let by = tight.map(|resource| name(network, resource, &demands));
            let (held, rising): (Vec<Demand>, Vec<Demand>) = demands.into_iter().partition(holds);
            debug_assert!(!held.is_empty(), "every round holds at least one demand");
            for demand in held {
                for (resource, cost) in &demand.costs {
                    self.take(*resource, cost * level * demand.count);
                }
                let by = by.as_deref().map_or(demand.cap.by, Arc::from);
                bounds[demand.traffic] = Some(Bound { bps: level, by });
            }
            demands = rising;
        }
    }

    /// The rate at which the first of `demands` is held, and the resource that holds it; `None` where it is a cap.
    fn next_level(&self, demands: &[Demand]) -> (f64, Option<Resource>) {
        let cap = demands.iter().map(|demand| demand.cap.bps).fold(f64::INFINITY, f64::min);
        let mut least = (cap, None);
        for (resource, _) in demands.iter().flat_map(|demand| &demand.costs) {
            let cost: f64 = demands.iter().map(|demand| demand.cost(*resource) * demand.count).sum();
            let level = self.left(*resource) / cost;
            if level < least.0 {
                least = (level, Some(*resource));
            }
        }
        least
    }
}

fn name(network: &Network, resource: Resource, demands: &[Demand]) -> String {
    let sharing: f64 = demands.iter().filter(|demand| demand.cost(resource) > 0.0).map(|demand| demand.count).sum();
    let link = |index: usize| &network.links[index].name;
    match (resource, sharing > 1.0) {
        (Resource::Data(index), false) => format!("rate of link {}", link(index)),
        (Resource::Data(index), true) => format!("rate of link {}, shared by {sharing}", link(index)),
        (Resource::Acks(index), false) => format!("ACKs on link {}", link(index)),
        (Resource::Acks(index), true) => format!("ACKs on link {}, of {sharing} flows", link(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_linklayer::preset;
    use lastmile_theory::Fraction;
    use lastmile_theory::amp::Line;
    use lastmile_units::BitRate;

    /// Table 5 of Kalyanaraman et al. 1999: of 64 kbit/s, packets have 0.1, 0.5 and 0.9, and ACKs of 40 bytes the rest.
    #[test]
    fn acks_beside_data_are_those_of_the_closed_form() {
        let line = Line {
            forward: BitRate::from_mbit_per_s(8),
            reverse: BitRate::from_kbit_per_s(64),
            forward_link: preset::IP.link,
            reverse_link: preset::IP.link,
            data: ByteCount::new(1_000),
            ack: ByteCount::new(40),
            packets_per_ack: Fraction::ONE,
        };
        for tenths in [1_u32, 5, 9] {
            let share = Fraction::new(tenths.into(), 10).expect("a share");
            let expected = line.two_way(Fraction::ONE, share).expect("a line").reverse_acks.as_f64();
            // A full link: 200 ACKs a second alone, and what data leaves of them is there.
            let seen = 200.0 * (1.0 - f64::from(tenths) / 10.0);
            let (data, left) = beside_data(200.0, seen, 1.0);
            assert!((data - f64::from(tenths) / 10.0).abs() < 1e-12 && (left - expected).abs() < 1e-9, "{data} {left}");
        }
        // What is idle counts as room for ACKs.
        assert_eq!(beside_data(200.0, 50.0, 0.5), (0.25, 150.0));
    }
}

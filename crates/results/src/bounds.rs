//! The bound of each flow's goodput: no run exceeds it.
//!
//! The bound of a flow as the only one on its path, over a span T, is the least of:
//!
//! - *the rate of each link* that its data crosses, as payload of segments of the best size for the
//!   wire, without headers, encapsulation, cell headers and OAM cells; of a line whose rate changes,
//!   its mean rate over T;
//! - *its receive window*: one window per round trip of the empty path, serialisation and
//!   processing included, and one more for the window that the span cuts;
//! - *the rate of each link* that its ACKs cross, one ACK for every d segments (min(1, d/k) of
//!   [`lastmile_theory::asymmetry`]), plus the data in flight. It applies only where each ACK
//!   arrives: on a link that drops packets or merges ACKs, the remaining ACKs acknowledge more than
//!   d segments;
//! - *its source*, if that has a maximum rate; for a capture, the packets in it.
//!
//! Data that entered the path before a phase may be delivered in the phase. The bound of a phase
//! therefore adds a receive window, and for datagrams the largest backlog of the path's queues.
//! Poisson sources and applications that write at random have no bound of their own. Web users have
//! none: each requests a page only after reading the last one.
//!
//! A bound is not a forecast. Flows that share a link each have the bound of a single flow;
//! [`fair`] has their equal shares.

pub(crate) mod fair;

use std::sync::Arc;

use lastmile_linklayer::{LinkLayer, aal5};
use lastmile_model::outcome::{FlowOutcome, Outcome};
use lastmile_model::{IpFields, Link, Network, Replay, Source, Traffic, Transport};
use lastmile_queueing::compress::Compression;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_quic::SteadySizes;
use lastmile_tcp::{Config, WindowScale};
use lastmile_theory::{ack_rate, asymmetry};
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

use crate::format;
use crate::interval::Interval;

/// The largest window of a header without window scaling (RFC 9293, section 3.1).
const UNSCALED_WINDOW: u64 = 65_535;
/// Bytes of a segment's headers under RFC 1144 in an unbroken one-way transfer: change mask and
/// checksum (section 3.2.2).
const VJ_HEADER: u64 = 3;
/// Data below this share of a link's rate do not delay ACKs noticeably.
const DATA_IN_THE_WAY: f64 = 0.01;
/// The rate for which limits are computed on a line whose rate changes.
const NOMINAL: BitRate = BitRate::from_mbit_per_s(1_000);

/// The time from one point to another.
pub(crate) type Span = (Instant, Instant);

/// A bound and its cause.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bound {
    /// Payload, bit/s.
    pub(crate) bps: f64,
    /// The cause, in words.
    pub(crate) by: Arc<str>,
    /// The link that causes it; `None` for a window or the source.
    pub(crate) link: Option<usize>,
}

impl Bound {
    /// A bound by a window or the source.
    fn of_ends(bps: f64, by: impl Into<Arc<str>>) -> Self {
        Self { bps, by: by.into(), link: None }
    }

    fn of_link(link: usize, bps: f64, by: impl Into<Arc<str>>) -> Self {
        Self { bps, by: by.into(), link: Some(link) }
    }
}

/// The packets of a source and their path.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Index of the traffic.
    traffic: usize,
    /// Payload of a full packet.
    pub(crate) payload: u64,
    /// IP bytes of a full packet.
    pub(crate) data: ByteCount,
    /// TCP's own part; `None` for datagrams.
    pub(crate) tcp: Option<TcpShape>,
    /// Links that data crosses.
    pub(crate) data_path: Vec<usize>,
    /// Links that ACKs cross.
    pub(crate) ack_path: Vec<usize>,
    /// True for a source that opens connections during the run: the shape of its packets is known,
    /// the number of connections is not.
    pub(crate) many: bool,
}

/// The shape of a source whose packets are acknowledged: TCP, or QUIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpShape {
    /// Bytes of the headers of IP and TCP, which a link may compress, or of IP and UDP.
    header: u64,
    /// IP bytes of an ACK.
    ack: u64,
    /// True for QUIC, whose ACKs no link can tell from data.
    pub(crate) hidden: bool,
    /// True for timestamps, which change every header.
    timestamps: bool,
    /// The largest receive window that a header can express.
    pub(crate) window: u64,
    /// Segments for each ACK.
    pub(crate) segments_per_ack: u64,
}

impl Shape {
    /// The shape of the traffic with this index, whose flows take these paths; `None` for pings and
    /// replays.
    pub(crate) fn new(network: &Network, index: usize, data_path: &[usize], ack_path: &[usize]) -> Option<Self> {
        let traffic = &network.traffic[index];
        let (payload, header, tcp) = match &traffic.source {
            Source::Bulk { sender, receiver, .. } => segments(sender, receiver),
            Source::Quic { quic, .. } => packets(quic, traffic.ip),
            Source::Writes { tcp, .. } => segments(tcp, tcp),
            Source::Web(_) | Source::Video(_) | Source::Backup(_) => match traffic.source.transport()? {
                Transport::Tcp(tcp) => segments(tcp, tcp),
                Transport::Quic(quic) => packets(quic, traffic.ip),
            },
            Source::Swarm(swarm) => segments(&swarm.tcp, &swarm.tcp),
            Source::Poisson { size, .. } | Source::OnOff { size, .. } | Source::Constant { size, .. } => {
                let headers = u64::from(traffic.ip.datagram_headers());
                (size.as_u64().saturating_sub(headers), headers, None)
            }
            // Captured packets differ in size, and so do those of frames and games.
            Source::Replay(_) | Source::Conference(_) | Source::Game(_) | Source::Ping { .. } => return None,
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

    /// IP bytes of a full data packet on `link`, after header compression if it has any.
    fn data_over(&self, link: &Link) -> ByteCount {
        self.tcp.map_or(self.data, |tcp| tcp.compressed(self.data, VJ_HEADER, link.hop.line.compression))
    }

    /// IP bytes of a pure ACK on `link`.
    fn ack_over(&self, link: &Link, tcp: TcpShape) -> ByteCount {
        // The ACK number grows by the acknowledged bytes: one byte of difference below 256, else
        // three (RFC 1144, 3.2.2).
        let moved = if self.payload * tcp.segments_per_ack < 256 { 1 } else { 3 };
        tcp.compressed(ByteCount::new(tcp.ack), VJ_HEADER + moved, link.hop.line.compression)
    }

    /// Payload, bit/s, that `link` carries in full packets of this shape within `span`; `None` without a
    /// transmission time.
    pub(crate) fn capacity_bps(&self, link: &Link, span: Span) -> Option<f64> {
        Some(self.steady_bps(link)? * of_nominal(link, span))
    }

    /// [`Shape::capacity_bps`] at a constant rate: the link's, or the nominal one where that changes.
    fn steady_bps(&self, link: &Link) -> Option<f64> {
        let packets = steady_rate(link, self.data_over(link))?;
        Some(packets * format::to_f64(self.payload) * 8.0)
    }

    /// [`Shape::steady_bps`] in packets of the most efficient size: in cells a full packet may need more padding than a
    /// shorter one.
    fn best_bps(&self, link: &Link) -> Option<f64> {
        let header = self.data.as_u64() - self.payload;
        let sizes = self.payload.saturating_sub(aal5::CELL_PAYLOAD).max(1)..=self.payload;
        let of = |payload: u64| {
            let shape = Self { payload, data: ByteCount::new(payload + header), ..self.clone() };
            shape.steady_bps(link)
        };
        sizes.filter_map(of).reduce(f64::max)
    }

    /// The goodput, bit/s, with an ACK for each of these numbers of packets, if no ACK is lost: min(1, d/k) of the
    /// capacity. `None` for TCP, whose ACKs a middlebox can thin, and without rates.
    pub(crate) fn by_ratio(&self, network: &Network, ratios: &[u32], span: Span) -> Option<Vec<f64>> {
        let tcp = self.tcp.filter(|tcp| tcp.hidden)?;
        let least = |rates: &mut dyn Iterator<Item = f64>| rates.reduce(f64::min);
        let links = |path: &[usize]| path.iter().map(|index| &network.links[*index]).collect::<Vec<_>>();
        let (data, acks) = (links(&self.data_path), links(&self.ack_path));
        let capacity_bps = least(&mut data.iter().filter_map(|link| self.capacity_bps(link, span)))?;
        let acks_per_s = least(&mut acks.iter().filter_map(|link| packet_rate(link, self.ack_over(link, tcp), span)))?;
        let payload = ByteCount::new(self.payload);
        let of = |every: &u32| ack_rate::download_bps(capacity_bps, acks_per_s, payload, *every);
        Some(ratios.iter().map(of).collect())
    }

    /// The round trip of an empty path in seconds: propagation, processing, and the transmission of
    /// one full segment and one ACK.
    pub(crate) fn base_rtt_s(&self, network: &Network) -> f64 {
        let ack = |link: &Link| self.tcp.map_or(ByteCount::ZERO, |tcp| self.ack_over(link, tcp));
        let there = network.unloaded_delay((self.traffic, false), &self.data_path, &|link| self.data_over(link));
        let back = network.unloaded_delay((self.traffic, true), &self.ack_path, &ack);
        (there + back).as_secs_f64()
    }

    /// The least round trip of an empty path in seconds: of lines that change, with their highest rate and least delay.
    fn least_rtt_s(&self, network: &Network) -> f64 {
        let there = self.data_path.iter().map(|index| &network.links[*index]).map(|link| (link, self.data_over(link)));
        let back = self.ack_path.iter().map(|index| &network.links[*index]);
        let back = back.filter_map(|link| Some((link, self.ack_over(link, self.tcp?))));
        let spared = there.chain(back).filter(|(link, _)| link.hop.line.trace.is_some()).map(|(link, ip)| {
            let line = &link.hop.line;
            let wire = line.link_layer.on_wire(ip);
            let typical = line.rate.map_or(Duration::ZERO, |rate| rate.time_for(wire)) + line.delay;
            typical.as_secs_f64() - line.least_time(wire).as_secs_f64()
        });
        (self.base_rtt_s(network) - spared.sum::<f64>()).max(0.0)
    }
}

/// Payload of a full segment, bytes of its headers, and the shape of the connection.
fn segments(sender: &Config, receiver: &Config) -> (u64, u64, Option<TcpShape>) {
    let timestamps = sender.timestamps && receiver.timestamps;
    let header = if sender.ipv6 { 60 } else { 40 } + if timestamps { 12 } else { 0 };
    let scaled = sender.window_scale != WindowScale::Off && receiver.window_scale != WindowScale::Off;
    let window = receiver.receive_window.as_u64().min(if scaled { u64::MAX } else { UNSCALED_WINDOW });
    let segments_per_ack = if receiver.acks.delayed_ack.is_zero() { 1 } else { u64::from(receiver.acks.ack_every) };
    let tcp = TcpShape { header, ack: header, hidden: false, timestamps, window, segments_per_ack };
    (u64::from(sender.mss.min(receiver.mss)), header, Some(tcp))
}

/// Payload of a full packet of QUIC, bytes of all its headers, and the shape of the connection.
fn packets(quic: &lastmile_quic::Config, ip: IpFields) -> (u64, u64, Option<TcpShape>) {
    let (sizes, header) = (SteadySizes::new(quic.datagram, quic.connection_id), u64::from(ip.datagram_headers()));
    let tcp = TcpShape {
        header,
        ack: header + sizes.ack,
        hidden: true,
        timestamps: false,
        window: quic.receive_window.as_u64(),
        segments_per_ack: quic.ack_every().into(),
    };
    (sizes.payload, header + u64::from(quic.datagram) - sizes.payload, Some(tcp))
}

impl TcpShape {
    /// The queue thins the flow's ACKs, so that their number is no measure of delivered data.
    pub(crate) fn is_thinned(self, queue: &Spec) -> bool {
        !self.hidden && regulates_acks(queue)
    }

    fn compressed(self, packet: ByteCount, vj_header: u64, compression: Compression) -> ByteCount {
        match compression {
            // Headers of TCP are compressed, those of UDP are not.
            _ if self.hidden => packet,
            // If the options differ from the preceding packet's, RFC 1144 sends the whole header;
            // timestamps nearly always differ.
            Compression::Rfc1144 { .. } if !self.timestamps && self.header == 40 => {
                ByteCount::new(packet.as_u64() - self.header + vj_header)
            }
            Compression::FixedRatio(ratio) => ratio.compressed(packet, ByteCount::new(self.header)),
            Compression::None | Compression::Rfc1144 { .. } => packet,
        }
    }
}

/// Packets of `ip` bytes that `link` carries per second within `span`, without OAM cells; `None` without a transmission
/// time.
fn packet_rate(link: &Link, ip: ByteCount, span: Span) -> Option<f64> {
    Some(steady_rate(link, ip)? * of_nominal(link, span))
}

/// [`packet_rate`] at a constant rate: the link's, or the nominal one where that changes.
fn steady_rate(link: &Link, ip: ByteCount) -> Option<f64> {
    let layer: LinkLayer = link.hop.line.link_layer;
    let rate = if link.hop.line.trace.is_some() { Some(NOMINAL) } else { link.hop.line.rate };
    Some(asymmetry::ip_rate_bps(rate?, layer, ip) / (format::to_f64(ip.as_u64()) * 8.0))
}

/// The mean rate within `span` of a line whose rate changes, as a part of the nominal one; 1 on other lines.
fn of_nominal(link: &Link, (from, to): Span) -> f64 {
    let mean = link.hop.line.trace.as_ref().and_then(|trace| trace.rate_between(from, to));
    mean.map_or(1.0, |bps| bps / format::to_f64(NOMINAL.as_bps()))
}

/// True if the queue thins the pure ACKs of TCP.
fn regulates_acks(queue: &Spec) -> bool {
    match queue {
        Spec::Sad(_) | Spec::AckFilter(_) => true,
        Spec::Supplied(config) => config.thins_acks(),
        Spec::AckCollapsing(_) | Spec::CakeAckFilter(_) => true,
        Spec::AckPacing(Over { queue, .. }) | Spec::WindowClamp(Over { queue, .. }) => regulates_acks(queue),
        Spec::Cake(config) if config.ack_filter.is_some() => true,
        other => other.below().into_iter().any(regulates_acks),
    }
}

/// The bounds of one traffic's flows, without the allowance for data in flight. Those of links that change are for the
/// nominal rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// The bound by each link of the data's path, and by a source with a maximum rate.
    rates: Vec<Bound>,
    /// The receive window, in bytes, and its rate.
    window: Option<(u64, Bound)>,
    /// The bound by each link of the ACKs' path, if each ACK arrives.
    acks: Vec<Bound>,
}

impl Limits {
    /// The limits of the flows of this shape; none for web users.
    pub(crate) fn new(network: &Network, outcome: &Outcome, shape: &Shape) -> Self {
        let traffic = &network.traffic[shape.traffic];
        if matches!(traffic.source, Source::Web(_)) {
            return Self::default();
        }
        let all = if shape.many { ", all its connections together" } else { "" };
        let links = shape.data_path.iter().filter_map(|index| {
            let link = &network.links[*index];
            Some(Bound::of_link(*index, shape.best_bps(link)?, format!("rate of link {}{all}", link.hop.name)))
        });
        let rates = links.chain(offered_at_most(traffic, shape)).collect();
        let tcp = shape.tcp.filter(|_| !shape.many);
        let window = tcp.map(|tcp| (tcp.window, by_window(network, shape, &tcp)));
        let acks = tcp.map_or_else(Vec::new, |tcp| by_acks(network, outcome, shape, tcp));
        Self { rates, window, acks }
    }
}

/// The bound of a flow over a span. With `whole` no data was sent before the span, otherwise at
/// most the flow's largest flight. `None` for a flow without bound, for an empty span, and for
/// connections opened during the run within a phase, which may deliver at once all data received
/// out of order.
pub(crate) fn of_flow(
    (network, outcome): (&Network, &Outcome),
    (shape, limits): (Option<&Shape>, &Limits),
    flow: &FlowOutcome,
    (from, to): Span,
    whole: bool,
) -> Option<Bound> {
    let span_s = to.since(from).as_secs_f64();
    if span_s <= 0.0 || (!whole && shape.is_some_and(|shape| shape.many)) {
        return None;
    }
    let traffic = &network.traffic[flow.traffic];
    if let Source::Replay(capture) = &traffic.source {
        let begin = if whole { traffic.start } else { from };
        return captured(capture, traffic, (begin, to), span_s);
    }
    let with = |bound: &Bound, bytes: f64| {
        let part = bound.link.map_or(1.0, |link| of_nominal(&network.links[link], (from, to)));
        Bound { bps: bound.bps * part + bytes * 8.0 / span_s, ..bound.clone() }
    };
    let packet = format::to_f64(shape?.payload);
    // Data that a receiver holds out of order is no part of the flight, and is delivered at once
    // when the hole closes: at most a window.
    let before = match (whole, &limits.window) {
        (true, _) => 0.0,
        (false, Some((bytes, _))) => format::to_f64(*bytes),
        (false, None) => in_flight(network, outcome, flow),
    };
    let rates = limits.rates.iter().map(|bound| with(bound, before + packet));
    let window = limits.window.iter().map(|(bytes, bound)| with(bound, format::to_f64(*bytes)));
    let flight = flow.tcp.as_ref().map_or(0.0, |tcp| format::to_f64(tcp.max_in_flight));
    let acks = limits.acks.iter().map(|bound| with(bound, before + flight + packet));
    let bounds = rates.chain(window).chain(acks).filter(|bound| bound.bps < f64::MAX);
    bounds.min_by(|a, b| a.bps.total_cmp(&b.bps))
}

/// The most bytes of a flow in flight: of TCP by its sender's account, of others the largest
/// backlog of the path's queues and the contents of its wires.
fn in_flight(network: &Network, outcome: &Outcome, flow: &FlowOutcome) -> f64 {
    if let Some(tcp) = &flow.tcp {
        return format::to_f64(tcp.max_in_flight);
    }
    let held = |index: &usize| {
        let link = &network.links[*index];
        let wire = link
            .hop
            .line
            .rate
            .map_or(0.0, |rate| format::to_f64(rate.as_bps()) / 8.0 * link.hop.line.delay.as_secs_f64());
        format::to_f64(outcome.links[*index].max_backlog_bytes) + wire
    };
    flow.data_path.iter().map(held).sum()
}

/// The bound by each link of the ACKs' path, if each ACK arrives: no drops, and no merged ACKs.
fn by_acks(network: &Network, outcome: &Outcome, shape: &Shape, tcp: TcpShape) -> Vec<Bound> {
    let covers = format::to_f64(shape.payload * tcp.segments_per_ack) * 8.0;
    let lossless = shape.ack_path.iter().all(|link| keeps_acks(network, outcome, *link, tcp));
    let bounds = shape.ack_path.iter().filter(|_| lossless).filter_map(|index| {
        let link = &network.links[*index];
        let bps = steady_rate(link, shape.ack_over(link, tcp))? * covers;
        Some(Bound::of_link(*index, bps, format!("ACKs on link {}", link.hop.name)))
    });
    bounds.collect()
}

/// True for a link that neither lost nor merged ACKs.
fn keeps_acks(network: &Network, outcome: &Outcome, link: usize, tcp: TcpShape) -> bool {
    let dropped = outcome.links[link].stats.dropped.iter().any(|count| count.packets > 0);
    let of_cells = network.atm.as_ref().is_some_and(|atm| atm.links.contains(&link));
    !dropped && !of_cells && !tcp.is_thinned(&network.links[link].hop.queue)
}

/// The bound of a datagram source with a maximum rate.
fn offered_at_most(traffic: &Traffic, shape: &Shape) -> Option<Bound> {
    let payload_share = format::to_f64(shape.payload) / format::to_f64(shape.data.as_u64());
    let ip_bps = match &traffic.source {
        Source::OnOff { peak, .. } => format::to_f64(peak.as_bps()),
        Source::Constant { interval, size, .. } => format::to_f64(size.as_u64()) * 8.0 / interval.as_secs_f64(),
        _ => return None,
    };
    let bps = ip_bps * payload_share;
    Some(Bound::of_ends(bps, format!("its source, which offers {}", format::rate(bps))))
}

/// The bound of a replay: the payload of its packets sent between `from` and `to`, over `span_s`.
/// `None` without packets.
fn captured(capture: &Replay, traffic: &Traffic, (from, to): Span, span_s: f64) -> Option<Bound> {
    let until = traffic.stop.map_or(to, |stop| stop.min(to));
    let leaves = |after: Duration| traffic.start + after;
    let first = capture.packets.partition_point(|(after, _)| leaves(*after) < from);
    let within = capture.packets[first..].iter().take_while(|(after, _)| leaves(*after) < until);
    let bytes = within.map(|(_, packet)| u64::from(packet.ip_len.saturating_sub(packet.header_len.into()))).sum();
    let bps = format::to_f64(bytes) * 8.0 / span_s;
    (bytes > 0).then(|| Bound::of_ends(bps, format!("its capture, which offers {}", format::rate(bps))))
}

/// The bound of a window per round trip.
fn by_window(network: &Network, shape: &Shape, tcp: &TcpShape) -> Bound {
    let rtt = shape.least_rtt_s(network);
    let bps = format::to_f64(tcp.window) * 8.0 / rtt;
    let by = format!("receive window {} / empty round trip {}", format::window(tcp.window), format::seconds(rtt));
    Bound::of_ends(if bps.is_finite() { bps } else { f64::MAX }, by)
}

/// The packets that a flow's ACKs release next to the data on their path: the two-way form of the
/// AMP bound ([`lastmile_theory::amp`]), `M (1-g) Cr / Pack` packets, where data had the share g of
/// the link in `part`.
///
/// It applies only if data and ACKs share one FIFO and no ACK is lost on the path: a discipline
/// that separates them can give ACKs more, and after losses the remaining ACKs acknowledge more.
/// `None` without data on their path. The ACKs of other flows are not subtracted, because their
/// shares of the rest have no bound.
pub(crate) fn two_way(
    (network, outcome): (&Network, &Outcome),
    shape: &Shape,
    flow: &FlowOutcome,
    part: &Interval,
) -> Option<Bound> {
    // ACKs of QUIC are not counted among the other packets of a link.
    let tcp = shape.tcp.filter(|tcp| !tcp.hidden)?;
    if !shape.ack_path.iter().all(|link| keeps_acks(network, outcome, *link, tcp)) {
        return None;
    }
    let covers = format::to_f64(shape.payload * tcp.segments_per_ack) * 8.0;
    // Data in flight at the start of the part, and after a loss the receiver's out-of-order data,
    // are delivered without ACKs of the part.
    let held = if flow.tcp.as_ref()?.retransmissions > 0 { format::to_f64(tcp.window) } else { 0.0 };
    let before = in_flight(network, outcome, flow) + held + format::to_f64(shape.payload);
    let before = before * 8.0 / part.length_s();
    let over = |index: &usize| {
        let link = &network.links[*index];
        let acks = packet_rate(link, shape.ack_over(link, tcp), (part.from, part.to));
        let acks = acks.filter(|_| matches!(link.hop.queue, Spec::Fifo(_)))?;
        let seen = format::to_f64(part.ack_waits[*index].packets) / part.length_s();
        let busy = part.utilisation(*index, link)?;
        let (data, left) = next_to_data(acks, seen, busy);
        let bps = left * covers + before;
        let by = format!("ACKs on link {}, next to data that takes {} of it", link.hop.name, format::percent(data));
        (data >= DATA_IN_THE_WAY).then(|| Bound::of_link(*index, bps, by))
    };
    shape.ack_path.iter().filter_map(over).min_by(|a, b| a.bps.total_cmp(&b.bps))
}

/// The share of data on a link with utilisation `busy` and `seen` ACKs a second, and the ACKs a
/// second that fit next to it, of `acks` on an idle link.
fn next_to_data(acks: f64, seen: f64, busy: f64) -> (f64, f64) {
    let data = (busy - seen / acks).clamp(0.0, 1.0);
    (data, acks * (1.0 - data))
}

/// The number of flows of traffic `index` that offered data between `from` and `to`.
pub(crate) fn active(network: &Network, outcome: &Outcome, index: usize, (from, to): (Instant, Instant)) -> usize {
    let traffic = &network.traffic[index];
    if traffic.start >= to || traffic.stop.is_some_and(|stop| stop <= from) {
        return 0;
    }
    outcome.flows.iter().filter(|flow| flow.traffic == index && flow.end.is_none_or(|end| end > from)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_linklayer::preset;
    use lastmile_theory::Fraction;
    use lastmile_theory::amp::Line;

    /// Table 5 of Kalyanaraman et al. 1999: of 64 kbit/s, packets have 0.1, 0.5 and 0.9, and ACKs
    /// of 40 bytes the rest.
    #[test]
    fn acks_next_to_data_are_those_of_the_closed_form() {
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
            // A full link: 200 ACKs a second without data, and their part that data leaves.
            let seen = 200.0 * (1.0 - f64::from(tenths) / 10.0);
            let (data, left) = next_to_data(200.0, seen, 1.0);
            assert!((data - f64::from(tenths) / 10.0).abs() < 1e-12 && (left - expected).abs() < 1e-9, "{data} {left}");
        }
        // Idle time counts as capacity for ACKs.
        assert_eq!(next_to_data(200.0, 50.0, 0.5), (0.25, 150.0));
    }
}

//! The packets of a source, and the rates at which they get through links.

use lastmile_linklayer::aal5;
use lastmile_model::{Directory, IpFields, Link, Network, Source, Transport};
use lastmile_packet::{FlowDirectory as _, FlowId, Protocol};
use lastmile_queueing::classify::{Data, Packets};
use lastmile_queueing::compress::Compression;
use lastmile_queueing::spec::Spec;
use lastmile_quic::SteadySizes;
use lastmile_tcp::{AckConfig, Config, WindowScale};
use lastmile_theory::ack_rate;
use lastmile_units::{ByteCount, Duration};

use super::cells::CellLimit;
use super::constraint::{Constraint, Span};
use crate::format;

/// Bytes of a segment's headers under RFC 1144 in an unbroken one-way transfer: change mask and
/// checksum (section 3.2.2).
const VJ_HEADER: u64 = 3;
/// Bytes of the headers of IPv6 and TCP, which RFC 1144 does not compress.
const IPV6_AND_TCP: u64 = 60;

/// The packets of a source and their path.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Index of the traffic.
    pub(super) traffic: usize,
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
    /// The constraints that all packets with data pass for certain, by number of the link.
    pub(crate) constraints: Vec<(usize, Constraint)>,
    /// True for a source that opens connections during the run: the shape of its packets is known,
    /// the number of connections is not.
    pub(crate) many: bool,
    /// True where a simulated source puts all its data into full packets.
    whole: bool,
}

/// The shape of a source whose packets are acknowledged: TCP, or QUIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpShape {
    /// Bytes of the headers of IP and TCP, which a link may compress, or of IP and UDP.
    header: u64,
    /// IP bytes of an ACK.
    ack: u64,
    /// True for QUIC, whose ACKs no link can distinguish from data.
    pub(crate) hidden: bool,
    /// True for timestamps that change every header.
    timestamps: bool,
    /// The largest receive window that a header can express.
    pub(crate) window: u64,
    /// The sender's buffer, if it has a limit.
    pub(crate) send_buffer: Option<u64>,
    /// Segments for each ACK.
    pub(crate) segments_per_ack: u64,
    /// The most segments for an ACK, where the receiver gathers them or reads late; `None` without a limit.
    pub(crate) most_per_ack: Option<u64>,
}

impl Shape {
    /// The shape of the traffic with this index, whose flows take these paths; `None` for pings and
    /// replays. `directory` has the addresses of simulated flows; packets of others may have any.
    pub(crate) fn new(
        (network, directory): (&Network, Option<&Directory>),
        index: usize,
        data_path: &[usize],
        ack_path: &[usize],
    ) -> Option<Self> {
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
        let mut tcp = tcp;
        if let (Some(tcp), Some(receiver)) = (&mut tcp, receiver(&traffic.source)) {
            let links = data_path.iter().map(|index| &network.links[*index]);
            tcp.most_per_ack = most_per_ack(&receiver.acks, tcp.segments_per_ack, payload, spacing(links, data));
        }
        let mut shape = Self {
            traffic: index,
            payload,
            data,
            tcp,
            data_path: data_path.to_vec(),
            ack_path: ack_path.to_vec(),
            constraints: Vec::new(),
            many: traffic.opens(),
            whole: is_whole(network, &traffic.source, [data_path, ack_path]),
        };
        let packets = directory.map_or_else(Packets::default, |directory| shape.packets(network, directory).into());
        shape.constraints = Constraint::along(network, data_path, &packets);
        let of_cells = CellLimit::along(network, index, data_path, shape.many).into_iter();
        let slower = |link: usize, limit: &CellLimit| {
            network.links[link].hop.line.rate.is_none_or(|rate| limit.cell_bps < format::to_f64(rate.as_bps()))
        };
        let of_cells = of_cells.filter(|(link, limit)| slower(*link, limit));
        shape.constraints.extend(of_cells.map(|(link, limit)| (link, Constraint::Cells(limit))));
        if shape.whole {
            let least = Self { tcp: shape.tcp.map(TcpShape::with_equal_timestamps), ..shape.clone() };
            for (index, constraint) in &mut shape.constraints {
                *constraint = least.on_full_packets(&network.links[*index], constraint);
            }
        }
        Some(shape)
    }

    /// The packets with data of all simulated flows of this traffic.
    fn packets(&self, network: &Network, directory: &Directory) -> Data {
        let traffic = &network.traffic[self.traffic];
        let first: u32 = network.traffic[..self.traffic].iter().map(|traffic| traffic.count).sum();
        let flows = (first..first + traffic.count).map(|flow| directory.addresses(FlowId::new(2 * flow)));
        let full = self.data.as_u64();
        let shortest = if self.whole { full } else { full - self.payload + 1 };
        let size = |bytes: u64| u16::try_from(bytes).unwrap_or(u16::MAX);
        let sets_dscp = |link: &usize| network.links[*link].hop.queue.sets_dscp();
        let keeps_dscp = network.atm.is_none() && !self.data_path.iter().any(sets_dscp);
        Data {
            sizes: [size(shortest), size(full)],
            dscp: keeps_dscp.then_some(traffic.ip.dscp),
            protocol: if self.tcp.is_some_and(|tcp| !tcp.hidden) { Protocol::Tcp } else { Protocol::Udp },
            flows: flows.collect(),
            are_all_flows: !self.many,
        }
    }

    /// True if all packets with data pass this constraint of link number `index`.
    pub(super) fn passes(&self, index: usize, constraint: &Constraint) -> bool {
        self.constraints.iter().any(|(link, own)| *link == index && own == constraint)
    }

    /// Bits of a full packet on the wire of `link`.
    pub(super) fn wire_bits(&self, link: &Link) -> f64 {
        format::to_f64(link.hop.line.link_layer.on_wire(self.data_over(link)).as_u64()) * 8.0
    }

    /// IP bytes of a full data packet on `link`, after header compression if it has any.
    fn data_over(&self, link: &Link) -> ByteCount {
        self.tcp.map_or(self.data, |tcp| tcp.compressed(self.data, VJ_HEADER, link.hop.line.compression))
    }

    /// IP bytes of a pure ACK on `link`.
    pub(super) fn ack_over(&self, link: &Link, tcp: TcpShape) -> ByteCount {
        // The ACK number grows by the acknowledged bytes: one byte of difference below 256, else
        // three (RFC 1144, 3.2.2).
        let moved = if self.payload * tcp.segments_per_ack < 256 { 1 } else { 3 };
        tcp.compressed(ByteCount::new(tcp.ack), VJ_HEADER + moved, link.hop.line.compression)
    }

    /// Payload, bit/s, that the wire of `link` carries in full packets of this shape within `span`; `None` without a
    /// transmission time.
    pub(crate) fn capacity_bps(&self, link: &Link, span: Span) -> Option<f64> {
        let wire = Constraint::wire(link)?;
        Some(wire.packets_per_s(link, self.data_over(link)) * wire.part(link, span) * self.payload_bits())
    }

    /// Payload, bit/s, that `constraint` of `link` lets pass in full packets of this shape within `span` in the mean.
    pub(super) fn mean_bps(&self, link: &Link, constraint: &Constraint, span: Span) -> f64 {
        let constraint = self.on_full_packets(link, constraint);
        constraint.packets_per_s_in_the_mean(link, self.data_over(link), span) * self.payload_bits()
    }

    /// The constraint on full packets of this shape.
    pub(super) fn on_full_packets(&self, link: &Link, constraint: &Constraint) -> Constraint {
        constraint.clone().of_packets(link, self.data_over(link))
    }

    /// Payload, bit/s, that `constraint` lets pass in packets of the most efficient size that the source may send, with
    /// headers that compress best: in cells a full packet may need more padding than a shorter one. On a wire that
    /// changes for the nominal rate.
    pub(super) fn best_bps(&self, link: &Link, constraint: &Constraint, simulated: bool) -> f64 {
        let header = self.data.as_u64() - self.payload;
        // A kernel sends shorter segments where its application is late.
        let whole = self.whole && (simulated || self.tcp.is_none());
        let shortest = if whole { self.payload } else { self.payload.saturating_sub(aal5::CELL_PAYLOAD).max(1) };
        let constraint = if whole { constraint.clone() } else { constraint.of_any_sizes(link) };
        let sizes = shortest..=self.payload;
        let of = |payload: u64| {
            let tcp = self.tcp.map(TcpShape::with_equal_timestamps);
            let shape = Self { payload, data: ByteCount::new(payload + header), tcp, ..self.clone() };
            constraint.packets_per_s(link, shape.data_over(link)) * shape.payload_bits()
        };
        sizes.map(of).fold(0.0, f64::max)
    }

    fn payload_bits(&self) -> f64 {
        format::to_f64(self.payload) * 8.0
    }

    /// The goodput, bit/s, with an ACK for `every` packets, if no ACK is lost: min(1, d/k) of the capacity. `None` for
    /// TCP, whose ACKs a middlebox can thin, and without rates.
    pub(crate) fn by_ratio(&self, network: &Network, every: u32, span: Span) -> Option<f64> {
        let tcp = self.tcp.filter(|tcp| tcp.hidden)?;
        let capacities = self.constraints.iter().map(|(link, of)| self.mean_bps(&network.links[*link], of, span));
        let acks = self.ack_path.iter().map(|index| &network.links[*index]);
        let acks = acks.filter_map(|link| Some(Constraint::least(link, self.ack_over(link, tcp), span)?.0));
        let [capacity_bps, acks_per_s] = [capacities.reduce(f64::min)?, acks.reduce(f64::min)?];
        Some(ack_rate::download_bps(capacity_bps, acks_per_s, ByteCount::new(self.payload), every))
    }

    /// The round trip of an empty path in seconds: propagation, processing, and the transmission of
    /// one segment and one ACK. The segment is full, or all that a smaller window, send buffer or transfer holds.
    pub(crate) fn base_rtt_s(&self, network: &Network) -> f64 {
        let held = self.tcp.map_or(u64::MAX, |tcp| tcp.most_held().0);
        let bytes = bytes_of(&network.traffic[self.traffic].source).unwrap_or(u64::MAX);
        self.with_payload(self.payload.min(held).min(bytes)).rtt_s(network)
    }

    /// The least round trip of an empty path in seconds: of lines that change, with their highest rate and least delay;
    /// with the least delay, too, where it varies from packet to packet.
    ///
    /// A transfer sends less than a full segment only where a window or send buffer holds less, and then all that it
    /// holds, so that the next segment waits for the ACK. What an application writes is sent as it comes, in segments
    /// of any size.
    pub(super) fn least_rtt_s(&self, network: &Network) -> f64 {
        let is_divided = matches!(network.traffic[self.traffic].source, Source::Writes { .. });
        let held = self.tcp.map_or(u64::MAX, |tcp| tcp.most_held().0);
        let least = self.with_payload(if is_divided { 1 } else { self.payload.min(held) });
        (least.rtt_s(network) - least.spared_s(network)).max(0.0)
    }

    /// This shape with segments of `payload` bytes, each with an ACK of its own.
    fn with_payload(&self, payload: u64) -> Self {
        let data = ByteCount::new(self.data.as_u64() - self.payload + payload);
        let tcp = self.tcp.map(|tcp| TcpShape { segments_per_ack: 1, ..tcp });
        Self { payload, data, tcp, ..self.clone() }
    }

    /// The round trip of one packet and one ACK over an empty path in seconds.
    fn rtt_s(&self, network: &Network) -> f64 {
        let ack = |link: &Link| self.tcp.map_or(ByteCount::ZERO, |tcp| self.ack_over(link, tcp));
        let there = network.unloaded_delay((self.traffic, false), &self.data_path, &|link| self.data_over(link));
        let back = network.unloaded_delay((self.traffic, true), &self.ack_path, &ack);
        (there + back).as_secs_f64()
    }

    /// The seconds by which that round trip is shorter at its best.
    fn spared_s(&self, network: &Network) -> f64 {
        let there = self.data_path.iter().map(|index| &network.links[*index]).map(|link| (link, self.data_over(link)));
        let back = self.ack_path.iter().map(|index| &network.links[*index]);
        let back = back.filter_map(|link| Some((link, self.ack_over(link, self.tcp?))));
        let changes = |link: &Link| link.hop.line.trace.is_some() || link.hop.line.impairments.may_hasten();
        let spared = there.chain(back).filter(|(link, _)| changes(link)).map(|(link, ip)| {
            let line = &link.hop.line;
            let wire = line.link_layer.on_wire(ip);
            let typical = line.rate.map_or(Duration::ZERO, |rate| rate.time_for(wire)) + line.delay;
            typical.as_secs_f64() - line.least_time(wire).as_secs_f64()
        });
        spared.sum()
    }
}

/// The bytes of a transfer that has an end.
pub(crate) const fn bytes_of(source: &Source) -> Option<u64> {
    match source {
        Source::Bulk { bytes, .. } | Source::Quic { bytes, .. } => *bytes,
        _ => None,
    }
}

/// Payload of a full segment, bytes of its headers, and the shape of the connection.
fn segments(sender: &Config, receiver: &Config) -> (u64, u64, Option<TcpShape>) {
    let timestamps = sender.timestamps && receiver.timestamps;
    let header = if sender.ipv6 { 60 } else { 40 } + if timestamps { 12 } else { 0 };
    let scaled = sender.window_scale != WindowScale::Off && receiver.window_scale != WindowScale::Off;
    let window = receiver.largest_window(scaled);
    let segments_per_ack = if receiver.acks.delayed_ack.is_zero() { 1 } else { u64::from(receiver.acks.ack_every) };
    let most_per_ack = Some(segments_per_ack);
    let send_buffer = sender.send_buffer.map(ByteCount::as_u64);
    let tcp = TcpShape {
        header,
        ack: header,
        hidden: false,
        timestamps,
        window,
        send_buffer,
        segments_per_ack,
        most_per_ack,
    };
    (u64::from(sender.mss.min(receiver.mss)), header, Some(tcp))
}

/// True for a source whose simulation puts all its data into full packets: datagrams of one size, and transfers without
/// an end, whose last segment is full too.
///
/// A window under two segments is sent in parts, and the override timer sends a part of what an open window leaves
/// (RFC 9293, section 3.8.6.2.1). A receiver that reads at once leaves at least a quarter of its buffer: the right edge
/// waits for at most half of it, and a scaled window is rounded down by less than half (RFC 7323, section 2.3). So four
/// segments of buffer are enough, unless something lowers the window on its way. A send buffer below a segment is sent
/// as a whole.
fn is_whole(network: &Network, source: &Source, paths: [&[usize]; 2]) -> bool {
    match source {
        Source::Poisson { .. } | Source::OnOff { .. } | Source::Constant { .. } => true,
        Source::Bulk { sender, receiver, bytes: None, .. } => {
            let alike = (sender.mss, sender.timestamps) == (receiver.mss, receiver.timestamps);
            let buffer = receiver.receive_window.as_u64().min(u16::MAX.into());
            let fits = sender.send_buffer.is_none_or(|buffer| buffer.as_u64() >= u64::from(sender.mss));
            let mut links = paths.into_iter().flatten().map(|index| &network.links[*index]);
            alike && fits && buffer >= 4 * u64::from(sender.mss) && !links.any(|link| lowers_windows(&link.hop.queue))
        }
        _ => false,
    }
}

/// True if this discipline, or one below, lowers receive windows.
fn lowers_windows(queue: &Spec) -> bool {
    matches!(queue, Spec::WindowClamp(_)) || queue.below().into_iter().any(lowers_windows)
}

/// The configuration of the end that receives the data over TCP.
fn receiver(source: &Source) -> Option<&Config> {
    match source {
        Source::Bulk { receiver, .. } => Some(receiver),
        Source::Writes { tcp, .. } => Some(tcp),
        Source::Swarm(swarm) => Some(&swarm.tcp),
        other => match other.transport()? {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Quic(_) => None,
        },
    }
}

/// The time between two full segments at their receiver, by the slowest link; `None` where a line may bunch them.
fn spacing<'a>(links: impl Iterator<Item = &'a Link>, data: ByteCount) -> Option<Duration> {
    let mut slowest = Duration::ZERO;
    for link in links {
        let line = &link.hop.line;
        if line.grants.is_some() || line.impairments.may_hasten() {
            return None;
        }
        let rate = match &line.trace {
            Some(trace) => Some(trace.peak_rate()?),
            None => line.rate,
        };
        slowest = slowest.max(rate.map_or(Duration::ZERO, |rate| rate.time_for(line.link_layer.on_wire(data))));
    }
    (!slowest.is_zero()).then_some(slowest)
}

/// The most segments for an ACK that is due after `every`: receive offload joins what arrives within its time, at most
/// 64 KiB, and an application that reads late acknowledges what has arrived meanwhile, up to twice the mean.
fn most_per_ack(acks: &AckConfig, every: u64, payload: u64, spacing: Option<Duration>) -> Option<u64> {
    let read = if acks.quick_acks { acks.read_delay.saturating_mul(2) } else { Duration::ZERO };
    if acks.gro.is_zero() && read.is_zero() {
        return Some(every);
    }
    let within = |time: Duration| spacing.map(|spacing| time.as_ps() / spacing.as_ps());
    let joined = if acks.gro.is_zero() { 0 } else { within(acks.gro)?.min(u64::from(u16::MAX) / payload) };
    Some(every + within(read)? + if read.is_zero() { joined } else { 2 * joined })
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
        send_buffer: None,
        segments_per_ack: quic.ack_every().into(),
        most_per_ack: Some(quic.ack_every().into()),
    };
    (sizes.payload, header + u64::from(quic.datagram) - sizes.payload, Some(tcp))
}

impl TcpShape {
    /// The most octets that are sent and not acknowledged, and the limit.
    pub(crate) fn most_held(&self) -> (u64, &'static str) {
        match self.send_buffer {
            Some(bytes) if bytes < self.window => (bytes, "send buffer"),
            _ => (self.window, "receive window"),
        }
    }

    /// The queue thins the flow's ACKs, so that their number is no measure of delivered data.
    pub(crate) fn is_thinned(self, queue: &Spec) -> bool {
        !self.hidden && queue.thins_acks()
    }

    /// The shape of segments that follow one another within a tick of the timestamps' clock.
    pub(super) fn with_equal_timestamps(self) -> Self {
        Self { timestamps: false, ..self }
    }

    fn compressed(self, packet: ByteCount, vj_header: u64, compression: Compression) -> ByteCount {
        match compression {
            // Headers of TCP are compressed, those of UDP are not.
            _ if self.hidden => packet,
            // If the options differ from the preceding packet's, RFC 1144 sends the whole header;
            // timestamps nearly always differ.
            Compression::Rfc1144 { .. } if !self.timestamps && self.header < IPV6_AND_TCP => {
                ByteCount::new(packet.as_u64() - self.header + vj_header)
            }
            Compression::FixedRatio(ratio) => ratio.compressed(packet, ByteCount::new(self.header)),
            Compression::None | Compression::Rfc1144 { .. } => packet,
        }
    }
}

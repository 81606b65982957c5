use std::process::Command;

use lastmile_packet::{
    FlowAddresses, FlowId, Frame, IpAddresses, Options, Protocol, SackBlock, SeqNumber, SynOptions, TcpFlags,
    header_len,
};
use lastmile_units::Duration;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;
use crate::atomic::tests::TestDir;

const MSS: u16 = 1448;

fn v4() -> FlowAddresses {
    FlowAddresses::of_simulated(FlowId::new(0))
}

fn v6() -> FlowAddresses {
    let ip = IpAddresses::new("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()).unwrap();
    FlowAddresses { ip, source_port: 50_001, destination_port: 49_152 }
}

/// A packet of these parts, with the lengths that a simulated host sets.
fn packet(protocol: Protocol, addresses: &FlowAddresses, options: Options, payload_len: u16) -> Meta {
    let mut meta = Meta { protocol, ..Meta::default() };
    meta.set_options(options);
    meta.header_len = header_len(protocol, addresses.ip.is_ipv6(), &options);
    meta.ip_len = u16::from(meta.header_len) + payload_len;
    meta
}

/// Both ends of a hand-made connection: their next sequence numbers, and the packets in the order
/// of the wire.
struct Conversation {
    client: FlowAddresses,
    packets: Vec<(FlowAddresses, Meta)>,
    next: [SeqNumber; 2],
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Conversation {
    fn new(client: FlowAddresses) -> Self {
        // The server's numbers wrap within the first segments.
        let next = [SeqNumber::new(1000), SeqNumber::new(u32::MAX - 2000)];
        Self { client, packets: Vec::new(), next }
    }

    /// Sends from one end; the acknowledgement number is `ack` or everything that the other end
    /// sent.
    fn send(&mut self, from: usize, flags: TcpFlags, options: Options, payload_len: u16) {
        let ack = if flags.contains(TcpFlags::ACK) { self.next[1 - from] } else { SeqNumber::new(0) };
        self.send_at(from, self.next[from], ack, flags, options, payload_len);
        let phantom = u32::from(flags.intersects(TcpFlags::SYN.with(TcpFlags::FIN)));
        self.next[from] = self.next[from].add(u32::from(payload_len) + phantom);
    }

    fn send_at(
        &mut self,
        from: usize,
        seq: SeqNumber,
        ack: SeqNumber,
        flags: TcpFlags,
        options: Options,
        payload_len: u16,
    ) {
        let addresses = if from == CLIENT { self.client } else { self.client.reversed() };
        let now = self.packets.len() as u32 + 1;
        let meta = Meta {
            seq,
            ack,
            flags,
            window: 500,
            ip_id: if addresses.ip.is_ipv6() { 0 } else { now as u16 },
            ..packet(Protocol::Tcp, &addresses, options.with_timestamps(now, now - 1), payload_len)
        };
        self.packets.push((addresses, meta));
    }
}

/// Set-up, a request, five segments of which the second is lost after the capture and
/// retransmitted, close: as captured at the server.
fn download(client: FlowAddresses) -> Vec<(FlowAddresses, Meta)> {
    let ack = TcpFlags::ACK;
    let plain = Options::NONE;
    let syn = Options::syn(SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true });
    let mut tcp = Conversation::new(client);
    tcp.send(CLIENT, TcpFlags::SYN, syn, 0);
    tcp.send(SERVER, TcpFlags::SYN.with(ack), syn, 0);
    tcp.send(CLIENT, ack, plain, 0);
    tcp.send(CLIENT, ack.with(TcpFlags::PSH), plain, 101);
    let first = tcp.next[SERVER];
    for _ in 0..5 {
        tcp.send(SERVER, ack, plain, MSS);
    }
    let at = |segment: u32| first.add(segment * u32::from(MSS));
    tcp.send_at(CLIENT, tcp.next[CLIENT], at(1), ack, plain, 0);
    for received in 3..=5 {
        let sack = Options::NONE.with_sack(&[SackBlock { left: at(2), right: at(received) }]);
        tcp.send_at(CLIENT, tcp.next[CLIENT], at(1), ack, sack, 0);
    }
    tcp.send_at(SERVER, at(1), tcp.next[CLIENT], ack, plain, MSS);
    tcp.send(CLIENT, ack, plain, 0);
    tcp.send(SERVER, TcpFlags::FIN.with(ack), plain, 0);
    tcp.send(CLIENT, TcpFlags::FIN.with(ack), plain, 0);
    tcp.send(SERVER, ack, plain, 0);
    tcp.packets
}

/// UDP of several sizes, odd ones and an empty one among them, and two pings.
fn datagrams(flow: FlowAddresses) -> Vec<(FlowAddresses, Meta)> {
    let mut packets: Vec<_> =
        [0, 1, 160, 1472].map(|len| (flow, packet(Protocol::Udp, &flow, Options::NONE, len))).into();
    for seq in [1, 2] {
        for (protocol, addresses) in [(Protocol::EchoRequest, flow), (Protocol::EchoReply, flow.reversed())] {
            let ping = packet(protocol, &addresses, Options::NONE, 56);
            packets.push((addresses, Meta { seq: SeqNumber::new(seq), traffic_class: 0xB8, ..ping }));
        }
    }
    packets
}

fn everything() -> Vec<(FlowAddresses, Meta)> {
    [download(v4()), download(v6()), datagrams(v4()), datagrams(v6())].concat()
}

/// Packet n passes at n * 1.0000005 ms, alternately on two interfaces: truncation drops half a
/// nanosecond.
fn at(index: usize) -> Instant {
    Instant::from_ps(Duration::from_ms(index as u64).as_ps() + 500 * index as u64)
}

fn capture(keep: Keep) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), keep).unwrap();
    let interfaces = [writer.add_interface("modem").unwrap(), writer.add_interface("dslam").unwrap()];
    for (index, (addresses, meta)) in everything().iter().enumerate() {
        writer.write(interfaces[index % 2], at(index), meta, addresses).unwrap();
    }
    writer.into_inner()
}

/// Runs tshark on the file. Without tshark the test fails in continuous integration and is skipped
/// elsewhere.
fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    let checks = ["ip", "tcp", "udp"].map(|protocol| format!("{protocol}.check_checksum:TRUE"));
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(checks.iter().flat_map(|check| ["-o", check]))
        .args(["-o", "tcp.relative_sequence_numbers:FALSE"])
        .args(arguments)
        .output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) if std::env::var_os("CI").is_some() => panic!("tshark must be installed: {error}"),
        Err(_) => {
            eprintln!("skipped: tshark is not installed");
            None
        }
    }
}

fn fields(file: &Path, names: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut arguments = vec!["-T", "fields"];
    arguments.extend(names.iter().flat_map(|name| ["-e", name]));
    let rows = tshark(file, &arguments)?;
    Some(rows.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect())
}

#[test]
fn tshark_finds_every_checksum_good_and_nothing_malformed() {
    let dir = TestDir::new("tshark-checksums");
    let file = dir.file("all.pcapng");
    std::fs::write(&file, capture(Keep::Whole)).unwrap();
    let statuses = ["ip", "tcp", "udp", "icmp", "icmpv6"].map(|protocol| format!("{protocol}.checksum.status"));
    let mut names = vec!["_ws.malformed", "frame.protocols"];
    names.extend(statuses.iter().map(String::as_str));
    let Some(rows) = fields(&file, &names) else { return };
    assert_eq!(rows.len(), everything().len());
    for (row, (addresses, meta)) in rows.iter().zip(everything()) {
        assert_eq!(row[0], "", "malformed: {row:?}");
        // 1 is good (Wireshark's proto.h: PROTO_CHECKSUM_E_GOOD); IPv6 has none.
        let ipv6 = addresses.ip.is_ipv6();
        let transport = match meta.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            _ if ipv6 => "icmpv6",
            _ => "icmp",
        };
        let mut protocols = row[1].split(':');
        assert_eq!(protocols.next(), Some("raw"));
        assert_eq!(protocols.next(), Some(if ipv6 { "ipv6" } else { "ip" }));
        assert_eq!(protocols.next(), Some(transport), "{row:?}");
        assert!(protocols.all(|above| above == "data"), "{row:?}");
        for (status, name) in row[2..].iter().zip(["ip", "tcp", "udp", "icmp", "icmpv6"]) {
            let there = name == transport || name == "ip" && !ipv6;
            assert_eq!(status, if there { "1" } else { "" }, "{name} of {row:?}");
        }
    }
}

/// The lost segment is the only anomaly: one retransmission and three duplicate ACKs for each
/// family.
#[test]
fn tshark_follows_the_tcp_conversations_without_a_complaint() {
    let dir = TestDir::new("tshark-conversation");
    for keep in [Keep::Headers, Keep::Whole] {
        let file = dir.file("all.pcapng");
        std::fs::write(&file, capture(keep)).unwrap();
        let count = |filter: &str| Some(tshark(&file, &["-Y", filter])?.lines().count());
        let Some(retransmissions) = count("tcp.analysis.retransmission") else { return };
        assert_eq!(retransmissions, 2, "{keep:?}");
        assert_eq!(count("tcp.analysis.duplicate_ack"), Some(6), "{keep:?}");
        let noticed = "tcp.analysis.flags && !tcp.analysis.retransmission && !tcp.analysis.duplicate_ack";
        assert_eq!(count(noticed), Some(0), "{keep:?}");
        assert_eq!(count("tcp.analysis.ack_lost_segment || tcp.analysis.lost_segment"), Some(0), "{keep:?}");
        assert_eq!(count("_ws.expert.severity >= 0x600000"), Some(0), "{keep:?}");
        // Set-up, data and close were captured (Wireshark's user guide, section 7.5: 31 is
        // "complete with data").
        let complete = tshark(&file, &["-Y", "tcp.completeness == 31", "-T", "fields", "-e", "tcp.stream"]);
        let mut streams: Vec<_> = complete.iter().flat_map(|streams| streams.lines()).collect();
        streams.dedup();
        assert_eq!(streams, ["0", "1"], "{keep:?}");
    }
}

#[test]
fn tshark_reads_the_values_that_were_written() {
    let dir = TestDir::new("tshark-values");
    let file = dir.file("all.pcapng");
    std::fs::write(&file, capture(Keep::Headers)).unwrap();
    let names = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "frame.cap_len",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.window_size_value",
        "tcp.hdr_len",
        "tcp.options.timestamp.tsval",
        "tcp.options.sack_le",
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "udp.srcport",
    ];
    let Some(rows) = fields(&file, &names) else { return };
    for (index, (row, (addresses, meta))) in rows.iter().zip(everything()).enumerate() {
        let ns = at(index).as_ps() / 1000;
        let tcp = meta.protocol == Protocol::Tcp;
        let text = |value: u32| if tcp { value.to_string() } else { String::new() };
        let optional = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
        let syn = meta.options().syn_options();
        let ip_header_len = if addresses.ip.is_ipv6() { 40 } else { 20 };
        let sack: Vec<_> = meta.options().sack_blocks().map(|block| block.left.raw().to_string()).collect();
        let udp = meta.protocol == Protocol::Udp;
        let expected = [
            format!("{}.{:09}", EPOCH_UNIX_S + ns / 1_000_000_000, ns % 1_000_000_000),
            ["modem", "dslam"][index % 2].to_owned(),
            meta.ip_len.to_string(),
            meta.header_len.to_string(),
            text(meta.seq.raw()),
            text(meta.ack.raw()),
            text(u32::from(meta.window)),
            text(u32::from(meta.header_len) - ip_header_len),
            optional(meta.options().timestamps().map(|(value, _)| value)),
            sack.join(","),
            optional(syn.mss.map(u32::from)),
            optional(syn.window_scale.map(u32::from)),
            optional(udp.then_some(u32::from(addresses.source_port))),
        ];
        assert_eq!(row[..], expected, "packet {}", index + 1);
    }
}

#[test]
fn equal_packets_give_equal_bytes_and_kept_headers_are_a_prefix() {
    assert_eq!(capture(Keep::Headers), capture(Keep::Headers));
    let packets = |bytes: Vec<u8>| {
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                packets.push((packet.interface_id, packet.timestamp, packet.original_len, packet.data.to_vec()));
            }
        }
        packets
    };
    let (headers, whole) = (packets(capture(Keep::Headers)), packets(capture(Keep::Whole)));
    assert_eq!(headers.len(), everything().len());
    for ((headers, whole), (_, meta)) in headers.iter().zip(&whole).zip(everything()) {
        assert_eq!((headers.0, headers.1, headers.2), (whole.0, whole.1, whole.2));
        assert_eq!(headers.3.len(), usize::from(meta.header_len));
        assert_eq!(whole.3.len(), usize::from(meta.ip_len));
        assert!(whole.3.starts_with(&headers.3));
    }
}

/// The section header and first interface, byte by byte (draft-ietf-opsawg-pcapng, sections 4.1 and 4.2).
#[test]
fn the_file_begins_with_these_bytes() {
    let mut writer = CaptureWriter::new(Vec::new(), Keep::Whole).unwrap();
    writer.add_interface("up").unwrap();
    let section = [0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0];
    let any_length = [0xFF; 8];
    let interface = [1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0];
    let options = [2, 0, 2, 0, b'u', b'p', 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let expected = [&section[..], &any_length, &[28, 0, 0, 0], &interface, &options, &[40, 0, 0, 0]].concat();
    assert_eq!(writer.into_inner(), expected);
}

#[test]
fn real_packets_are_kept_as_they_are() {
    let (addresses, meta) = download(v4())[4];
    let mut bytes = Vec::new();
    write_packet(&meta, &addresses, &mut bytes);
    let (frame, _) = Frame::new(bytes);
    let mut expected = CaptureWriter::new(Vec::new(), Keep::Headers).unwrap();
    let interface = expected.add_interface("lan").unwrap();
    expected.write(interface, at(1), &meta, &addresses).unwrap();
    let mut real = CaptureWriter::new(Vec::new(), Keep::Headers).unwrap();
    let interface = real.add_interface("lan").unwrap();
    real.write_bytes(interface, at(1), frame.bytes()).unwrap();
    let before = expected.into_inner();
    assert_eq!(real.blocks.get_ref(), &before);
    real.write_bytes(interface, at(2), &[0xFF; 1000]).unwrap();
    // A block of 32 bytes around the first 255, padded to 256.
    assert_eq!(real.into_inner().len() - before.len(), 32 + 256);
}

#[test]
fn an_interface_of_another_capture_is_an_error() {
    let mut first = CaptureWriter::new(Vec::new(), Keep::Headers).unwrap();
    let mut second = CaptureWriter::new(Vec::new(), Keep::Headers).unwrap();
    let interface = first.add_interface("only here").unwrap();
    let result = second.write_bytes(interface, at(0), &[]);
    assert!(matches!(result, Err(CaptureError::UnknownInterface(0))));
}

#[test]
fn a_capture_file_is_there_only_once_committed() {
    let dir = TestDir::new("capture-commit");
    let path = dir.file("capture.pcapng");
    drop(CaptureWriter::create(&path, Keep::Headers).unwrap());
    assert!(!path.exists());
    let mut writer = CaptureWriter::create(&path, Keep::Headers).unwrap();
    writer.add_interface("up").unwrap();
    writer.commit().unwrap();
    assert_eq!(std::fs::read(&path).unwrap().len(), 28 + 40);
}

//! `kind = "replay"`: the packets of a capture file.
//!
//! Reads pcap and pcapng: Ethernet with VLAN tags and PPPoE, PPP, raw IP, Linux cooked and loopback captures. What is no IP is left out; what
//! cannot be read, because its headers were not captured or contradict themselves, is left out and counted. A file that ends in the middle of a
//! packet is read up to there. Payloads need not be there: packets have the length that their IP header gives.
//!
//! Times are nanoseconds after the first packet of the file. pcapng tells their unit interface by interface (`if_tsresol`, by default the
//! microsecond).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::net::IpAddr;
use std::path::Path;

use lastmile_packet::{FlowId, FlowKey, parse_headers};
use lastmile_sim::spec::Replay;
use lastmile_units::Duration;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

use crate::document::Value;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::value::FromNode;

/// Most packets of a capture: 720 MB of memory.
const MOST_PACKETS: usize = 10_000_000;
/// First four bytes of a pcapng file, in either byte order.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

pub(crate) static REPLAY: Section = Section {
    heading: "`kind = \"replay\"`",
    about: "The packets of a capture (pcap, pcapng), each at its time and as it was: sizes, protocol, DSCP, flows, TCP headers. Open-loop: \
            nothing answers, and what is lost is not sent again. `direction = \"both\"` replays both directions, as two traffics.",
    keys: &[
        Key::required("file", Kind::Text, "The capture; a relative path counts from the scenario file's folder."),
        Key::optional(
            "client_prefix",
            Kind::Other("IP prefix"),
            "all packets of the file, whichever way they go",
            "Addresses on the client's side of the capture, such as \"192.168.1.0/24\": `up` replays what comes from them, `down` \
             what goes to them. Required for `direction = \"both\"`.",
        ),
        Key::with_default("offset", Kind::Time, "0 s", "Where in the capture to begin: time after its first packet."),
        Key::with_default(
            "speed",
            Kind::Other("number"),
            "1",
            "How much faster than captured, from 0.001 to 1000; 2 halves the gaps between packets.",
        ),
    ],
};

/// A share of an address space, such as `192.168.0.0/16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefix {
    address: IpAddr,
    bits: u32,
}

impl Prefix {
    fn contains(self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u32| self.bits == 0 || (a ^ b) >> (width - self.bits) == 0;
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromNode for Prefix {
    fn from_value(value: &Value) -> Result<Self, String> {
        let Value::String(text) = value else {
            return Err(format!("{}, where a prefix is expected, such as \"192.168.1.0/24\"", value.name()));
        };
        let (address, bits) = text.split_once('/').map_or((text.as_str(), None), |(a, bits)| (a, Some(bits)));
        let wrong = || format!("{text:?} is no prefix, such as \"192.168.1.0/24\" or \"2001:db8::/32\"");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv6() { 128 } else { 32 };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if bits > width { Err(wrong()) } else { Ok(Self { address, bits }) }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// A factor in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Factor(u64);

impl FromNode for Factor {
    fn from_value(value: &Value) -> Result<Self, String> {
        let (Value::Integer(text) | Value::Float(text)) = value else {
            return Err(format!("{}, where a number is expected, such as 2 or 0.5", value.name()));
        };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let thousandths = if decimals.len() <= 3 { format!("{whole}{decimals:0<3}").parse().ok() } else { None };
        match thousandths {
            Some(factor @ 1..=1_000_000) => Ok(Self(factor)),
            _ => Err(format!("{text} is no number from 0.001 to 1000 with up to three decimals")),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::Integer(text.into())).expect("the schema's defaults parse")
    }
}

/// Which packets of a capture to replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// All.
    All,
    /// From addresses of the client's side to others.
    Up(Prefix),
    /// To addresses of the client's side from others.
    Down(Prefix),
}

impl Way {
    fn takes(self, key: &FlowKey) -> bool {
        let (source, destination) = (key.addresses.ip.source(), key.addresses.ip.destination());
        match self {
            Self::All => true,
            Self::Up(prefix) => prefix.contains(source) && !prefix.contains(destination),
            Self::Down(prefix) => prefix.contains(destination) && !prefix.contains(source),
        }
    }
}

/// A capture as it was read.
#[derive(Debug, Default)]
struct Capture {
    /// Nanoseconds since 1970, and the packet.
    packets: Vec<(u64, lastmile_packet::Parsed)>,
    /// Frames that carry no IP.
    foreign: u64,
    /// Packets whose headers are not whole or contradict themselves, and those without a time.
    unreadable: u64,
    /// Why the file could not be read to its end.
    broken: Option<String>,
}

/// Reads the keys of a replay and its file: the packets of each of `ways`, true for down.
pub(crate) fn read(table: &Table<'_>, folder: &Path, ways: &[Option<bool>]) -> Option<Vec<Replay>> {
    let file: Option<String> = table.get("file");
    let prefix: Option<Prefix> = table.optional("client_prefix");
    let (offset, speed) = (table.get::<Duration>("offset"), table.get::<Factor>("speed"));
    if ways.len() > 1 && !table.has("client_prefix") {
        let hint = "addresses on the client's side, such as client_prefix = \"192.168.1.0/24\"";
        table.error("direction", "both directions of a capture without client_prefix", Some(hint.into()));
        return None;
    }
    let path = folder.join(file?);
    let capture = match load(&path) {
        Ok(capture) => capture,
        Err(problem) => {
            table.error("file", format!("{}: {}: {problem}", table.path("file"), path.display()), None);
            return None;
        }
    };
    tell(table, &path, &capture);
    let (offset, speed) = (offset?, speed?);
    let replays = ways.iter().map(|down| {
        let way = match (prefix, down) {
            (Some(prefix), Some(true)) => Way::Down(prefix),
            (Some(prefix), _) => Way::Up(prefix),
            (None, _) => Way::All,
        };
        replay(&capture, way, offset, speed)
    });
    let replays: Vec<Replay> = replays.collect();
    if replays.iter().any(|replay| replay.packets.is_empty()) {
        let message = format!("{}: no packet of {} is left to replay", table.path("file"), path.display());
        let hint = "see client_prefix, direction and offset; and whether the capture has IP packets at all";
        table.error("file", message, Some(hint.into()));
        return None;
    }
    Some(replays)
}

fn tell(table: &Table<'_>, path: &Path, capture: &Capture) {
    let path = path.display();
    let read = capture.packets.len();
    if let Some(why) = &capture.broken {
        let message = format!("{path} breaks off after {read} packets: {why}");
        table.warning("file", message, Some("what comes before is replayed".into()));
    }
    if capture.unreadable > 0 {
        let message = format!("{path}: {} packets beside {read} cannot be read and are left out", capture.unreadable);
        table.warning("file", message, Some("headers that were not captured whole, or contradict themselves".into()));
    }
}

fn replay(capture: &Capture, way: Way, offset: Duration, speed: Factor) -> Replay {
    let mut replay = Replay::default();
    let mut flows: BTreeMap<FlowKey, u32> = BTreeMap::new();
    let first = capture.packets.first().map_or(0, |(at, _)| *at);
    for (at, parsed) in capture.packets.iter().filter(|(_, parsed)| way.takes(&parsed.key)) {
        let Some(ns) = (at - first).checked_sub(offset.as_ns()) else { continue };
        // The clock holds 213 days: what comes later than that comes never.
        let ps = u128::from(ns) * 1_000_000 / u128::from(speed.0);
        let Ok(ps) = u64::try_from(ps) else { break };
        let next = replay.flows.len() as u32;
        let flow = *flows.entry(parsed.key).or_insert(next);
        if flow == next {
            replay.flows.push(parsed.key);
        }
        replay.packets.push((Duration::from_ps(ps), lastmile_packet::Meta { flow: FlowId::new(flow), ..parsed.meta }));
    }
    replay
}

fn load(path: &Path) -> Result<Capture, String> {
    let mut file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    })?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(|_| "too short for a capture".to_owned())?;
    file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
    let file = BufReader::with_capacity(1 << 16, file);
    let mut capture = if magic == PCAPNG { pcapng(file)? } else { pcap(file)? };
    // Captures of several interfaces, or processors, are not quite in order.
    capture.packets.sort_by_key(|(at, _)| *at);
    Ok(capture)
}

fn pcap(file: impl Read) -> Result<Capture, String> {
    let mut reader = PcapReader::new(file).map_err(|_| "neither pcap nor pcapng".to_owned())?;
    let link = reader.header().datalink;
    check_link(link)?;
    let mut capture = Capture::default();
    while let Some(packet) = reader.next_packet() {
        match packet {
            Ok(packet) => {
                let at = u64::try_from(packet.timestamp.as_nanos()).ok();
                capture.take(at, link, &packet.data)?;
            }
            Err(error) => {
                capture.broken = Some(broken(&error));
                break;
            }
        }
    }
    Ok(capture)
}

fn pcapng(file: impl Read) -> Result<Capture, String> {
    let mut reader = PcapNgReader::new(file).map_err(|error| format!("no pcapng: {}", broken(&error)))?;
    let mut capture = Capture::default();
    loop {
        // A block borrows the reader, which knows the interfaces.
        let (interface, raw, data) = match reader.next_block() {
            None => break,
            Some(Err(error)) => {
                capture.broken = Some(broken(&error));
                break;
            }
            // Their library takes every time for nanoseconds: the number is as in the file.
            Some(Ok(Block::EnhancedPacket(packet))) => {
                (packet.interface_id, u64::try_from(packet.timestamp.as_nanos()).ok(), packet.data.into_owned())
            }
            Some(Ok(Block::Packet(packet))) => {
                (packet.interface_id.into(), Some(packet.timestamp), packet.data.into_owned())
            }
            Some(Ok(Block::SimplePacket(_))) => {
                // It has no time.
                capture.unreadable += 1;
                continue;
            }
            Some(Ok(_)) => continue,
        };
        let Some(description) = reader.interfaces().get(interface as usize) else {
            capture.unreadable += 1;
            continue;
        };
        check_link(description.linktype)?;
        let at = raw.and_then(|raw| to_ns(raw, description));
        capture.take(at, description.linktype, &data)?;
    }
    Ok(capture)
}

/// A time of an interface in nanoseconds: `if_tsresol` is a negative power of ten, or of two where its highest bit is set.
fn to_ns(raw: u64, interface: &InterfaceDescriptionBlock<'_>) -> Option<u64> {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    let resolution = resolution.unwrap_or(6);
    let power = u32::from(resolution & 0x7f);
    let per_second = if resolution & 0x80 == 0 { 10_u128.checked_pow(power)? } else { 2_u128.checked_pow(power)? };
    u64::try_from(u128::from(raw).checked_mul(1_000_000_000)? / per_second).ok()
}

fn broken(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "it ends in the middle of a packet".to_owned(),
        PcapError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it ends in the middle of a packet".to_owned()
        }
        other => other.to_string(),
    }
}

impl Capture {
    /// Takes a frame.
    fn take(&mut self, at: Option<u64>, link: DataLink, frame: &[u8]) -> Result<(), String> {
        let Some(ip) = ip_of(link, frame) else {
            self.foreign += 1;
            return Ok(());
        };
        let Some((at, parsed)) = at.zip(parse_headers(ip).ok()) else {
            self.unreadable += 1;
            return Ok(());
        };
        if self.packets.len() == MOST_PACKETS {
            return Err(format!("more than {MOST_PACKETS} packets"));
        }
        self.packets.push((at, parsed));
        Ok(())
    }
}

fn check_link(link: DataLink) -> Result<(), String> {
    const KNOWN: [DataLink; 9] = [
        DataLink::ETHERNET,
        DataLink::RAW,
        DataLink::IPV4,
        DataLink::IPV6,
        DataLink::PPP,
        DataLink::LINUX_SLL,
        DataLink::LINUX_SLL2,
        DataLink::NULL,
        DataLink::LOOP,
    ];
    if KNOWN.contains(&link) { Ok(()) } else { Err(format!("link type {link:?} is not known")) }
}

/// The IP packet in a frame, if there is one.
fn ip_of(link: DataLink, frame: &[u8]) -> Option<&[u8]> {
    let ethertype = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    match link {
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(frame),
        DataLink::ETHERNET => by_type(ethertype(12)?, frame.get(14..)?),
        DataLink::LINUX_SLL => by_type(ethertype(14)?, frame.get(16..)?),
        DataLink::LINUX_SLL2 => by_type(ethertype(0)?, frame.get(20..)?),
        // The address family, whose numbers differ by system: the packet itself tells the version.
        DataLink::NULL | DataLink::LOOP => frame.get(4..).filter(|ip| is_ip(ip)),
        DataLink::PPP => ppp(frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame)),
        _ => None,
    }
}

/// What an Ethernet type says of the bytes after it.
fn by_type(ethertype: u16, rest: &[u8]) -> Option<&[u8]> {
    match ethertype {
        0x0800 | 0x86dd => Some(rest),
        // VLAN tags: four bytes, of which the last two are the next type (IEEE 802.1Q, 802.1ad).
        0x8100 | 0x88a8 => by_type(u16::from_be_bytes([*rest.get(2)?, *rest.get(3)?]), rest.get(4..)?),
        // PPPoE session: six bytes of header (RFC 2516).
        0x8864 => ppp(rest.get(6..)?),
        _ => None,
    }
}

/// What a PPP frame without address and control carries.
fn ppp(frame: &[u8]) -> Option<&[u8]> {
    match frame {
        [0x00, 0x21 | 0x57, ip @ ..] | [0x21 | 0x57, ip @ ..] => Some(ip),
        _ => None,
    }
}

fn is_ip(packet: &[u8]) -> bool {
    packet.first().is_some_and(|byte| matches!(byte >> 4, 4 | 6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_packet::{FlowAddresses, Meta, Protocol, write_packet};
    use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
    use std::time::Duration as WallDuration;

    fn packet(flow: u32, len: u16) -> Vec<u8> {
        let meta = Meta { protocol: Protocol::Udp, ip_len: len, header_len: 28, ..Meta::default() };
        let mut bytes = Vec::new();
        write_packet(&meta, &FlowAddresses::of_simulated(FlowId::new(flow)), &mut bytes);
        bytes
    }

    fn ethernet(ethertype: &[u8], ip: &[u8]) -> Vec<u8> {
        [&[0; 12][..], ethertype, ip].concat()
    }

    fn file(link: DataLink, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let header = PcapHeader { datalink: link, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for (us, frame) in frames {
            let at = WallDuration::from_micros(*us);
            writer.write_packet(&PcapPacket::new(at, frame.len() as u32, frame)).unwrap();
        }
        writer.into_writer()
    }

    #[test]
    fn ip_is_found_under_tags_and_sessions() {
        let ip = packet(0, 100);
        let pppoe = [&[0x88, 0x64, 0x11, 0, 0, 1, 0, 102, 0, 0x21][..]].concat();
        let tagged = [0x81, 0x00, 0x00, 0x05, 0x08, 0x00];
        for head in [&[0x08, 0x00][..], &tagged, &pppoe] {
            assert_eq!(ip_of(DataLink::ETHERNET, &ethernet(head, &ip)), Some(&ip[..]), "{head:02x?}");
        }
        assert_eq!(ip_of(DataLink::ETHERNET, &ethernet(&[0x08, 0x06], &[0; 28])), None, "ARP");
        assert_eq!(ip_of(DataLink::PPP, &[&[0xff, 0x03, 0x00, 0x21], &ip[..]].concat()), Some(&ip[..]));
        assert_eq!(ip_of(DataLink::NULL, &[&[2, 0, 0, 0], &ip[..]].concat()), Some(&ip[..]));
        assert_eq!(ip_of(DataLink::ETHERNET, &[0; 10]), None);
    }

    #[test]
    fn what_cannot_be_read_is_counted_and_what_is_no_ip_left_out() {
        let whole = packet(0, 100);
        let frames = [
            (10, ethernet(&[0x08, 0x00], &whole)),
            (20, ethernet(&[0x08, 0x06], &[0; 28])),
            (30, ethernet(&[0x08, 0x00], &whole[..12])),
            // Only the headers: as good as the whole.
            (40, ethernet(&[0x08, 0x00], &whole[..28])),
        ];
        let bytes = file(DataLink::ETHERNET, &frames);
        let capture = pcap(&bytes[..]).unwrap();
        assert_eq!((capture.packets.len(), capture.foreign, capture.unreadable), (2, 1, 1));
        assert_eq!(capture.packets[1].1.meta.ip_len, 100);
        assert_eq!(capture.broken, None);
        let cut = pcap(&bytes[..bytes.len() - 5]).unwrap();
        assert_eq!(cut.packets.len(), 1);
        assert_eq!(cut.broken.as_deref(), Some("it ends in the middle of a packet"));
        assert_eq!(pcap(&b"no capture at all, but a text"[..]).unwrap_err(), "neither pcap nor pcapng");
    }

    #[test]
    fn packets_keep_their_times_and_flows_and_speed_divides_the_gaps() {
        let frames = [(1_000, packet(0, 100)), (3_000, packet(2, 60)), (2_000, packet(1, 50)), (9_000, packet(0, 100))];
        let mut capture = pcap(&file(DataLink::RAW, &frames)[..]).unwrap();
        capture.packets.sort_by_key(|(at, _)| *at);
        let times = |replay: &Replay| replay.packets.iter().map(|(at, _)| at.as_ns() / 1_000).collect::<Vec<_>>();
        let all = replay(&capture, Way::All, Duration::ZERO, Factor(1_000));
        assert_eq!(times(&all), [0, 1_000, 2_000, 8_000]);
        assert_eq!(all.flows.len(), 3);
        let flows: Vec<u32> = all.packets.iter().map(|(_, packet)| packet.flow.index()).collect();
        assert_eq!(flows, [0, 1, 2, 0]);
        let fast = replay(&capture, Way::All, Duration::from_ms(2), Factor(2_000));
        assert_eq!(times(&fast), [0, 3_000]);
        // Simulated flow 1 is the reverse of 0: it goes to 10.0.0.1.
        let client = Prefix::from_default("10.0.0.0/8");
        assert_eq!(times(&replay(&capture, Way::Up(client), Duration::ZERO, Factor(1_000))), [0, 2_000, 8_000]);
        assert_eq!(times(&replay(&capture, Way::Down(client), Duration::ZERO, Factor(1_000))), [1_000]);
    }

    #[test]
    fn times_of_an_interface_count_in_its_unit() {
        let mut interface = InterfaceDescriptionBlock::new(DataLink::RAW, 0);
        assert_eq!(to_ns(3, &interface), Some(3_000), "microseconds where nothing is said");
        interface.options.push(InterfaceDescriptionOption::IfTsResol(9));
        assert_eq!(to_ns(3, &interface), Some(3));
        interface.options[0] = InterfaceDescriptionOption::IfTsResol(0x80 | 10);
        assert_eq!(to_ns(512, &interface), Some(500_000_000), "1024ths of a second");
    }

    #[test]
    fn prefixes_and_factors_are_read_exactly() {
        let prefix = |text: &str| Prefix::from_value(&Value::String(text.into()));
        assert!(prefix("192.168.1.0/24").unwrap().contains("192.168.1.77".parse().unwrap()));
        assert!(!prefix("192.168.1.0/24").unwrap().contains("192.168.2.77".parse().unwrap()));
        assert!(prefix("0.0.0.0/0").unwrap().contains("8.8.8.8".parse().unwrap()));
        assert!(prefix("2001:db8::1").unwrap().contains("2001:db8::1".parse().unwrap()));
        assert!(!prefix("::/0").unwrap().contains("8.8.8.8".parse().unwrap()));
        for wrong in ["192.168.1.0/33", "192.168", "10.0.0.0/x", ""] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
        let factor = |text: &str| Factor::from_value(&Value::Float(text.into())).ok();
        assert_eq!(factor("0.5"), Some(Factor(500)));
        assert_eq!(factor("2"), Some(Factor(2_000)));
        for wrong in ["0.0", "-1", "1001", "0.0001", "1e3"] {
            assert_eq!(factor(wrong), None, "{wrong}");
        }
    }
}

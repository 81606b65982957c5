//! `kind = "replay"`: the packets of a capture file.
//!
//! Every format of [`crate::capture`] can be replayed. Frames without IP are left out. Packets whose headers
//! were not captured, or contradict themselves, are left out and counted. Payloads need not be there: packets
//! have the length that their IP header gives. Times count from the first packet of the file.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::net::IpAddr;
use std::path::Path;

use lastmile_model::Replay;
use lastmile_packet::{FlowId, FlowKey, parse_headers};
use lastmile_units::Duration;

use crate::capture::Frame;
use crate::document::Value;
use crate::files::Files;
use crate::reader::Table;
use crate::schema::{ADDRESS, Key, Kind, Section};
use crate::value::FromNode;

/// Most packets of a capture: 720 MB of memory.
const MOST_PACKETS: usize = 10_000_000;

pub(crate) static REPLAY: Section = Section {
    heading: "`kind = \"replay\"`",
    about: "The packets of a capture (pcap, pcapng), each at its time and unchanged: sizes, protocol, DSCP, flows, \
            TCP headers. The replay is open-loop: no host answers, and losses are not retransmitted. `direction = \
            \"both\"` replays both directions, as \
            two traffics.",
    keys: &[
        Key::required("file", Kind::Text, "The capture; a relative path counts from the scenario file's folder."),
        Key::optional(
            "client_prefix",
            Kind::Other("IP prefix", &[Kind::Matching(ADDRESS)]),
            "all packets of the file, whichever way they go",
            "Addresses on the client's side of the capture, such as \"192.168.1.0/24\": `up` replays what comes \
             from them, `down` \
             what goes to them. Required for `direction = \"both\"`.",
        ),
        Key::with_default("offset", Kind::Time, "0 s", "Where in the capture to begin: time after its first packet."),
        Key::with_default(
            "speed",
            Kind::Other("number", &[Kind::Number]),
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

/// The packets of a capture to replay.
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
    let capture = match load(table.files(), &path) {
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
        let message = format!("{path}: {} packets besides {read} cannot be read and are left out", capture.unreadable);
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

fn load(files: &dyn Files, path: &Path) -> Result<Capture, String> {
    let file = files.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    })?;
    let mut capture = Capture::read(BufReader::with_capacity(1 << 16, file))?;
    // Captures of several interfaces, or processors, are not quite in order.
    capture.packets.sort_by_key(|(at, _)| *at);
    Ok(capture)
}

impl Capture {
    fn read(file: impl Read) -> Result<Self, String> {
        let mut capture = Self::default();
        capture.broken = crate::capture::read(file, &mut |frame| capture.take(frame))?.broken;
        Ok(capture)
    }

    /// Takes a frame.
    fn take(&mut self, frame: Frame<'_>) -> Result<(), String> {
        let Some(ip) = frame.ip else {
            self.foreign += 1;
            return Ok(());
        };
        let Some((at, parsed)) = frame.at_ns.zip(parse_headers(ip).ok()) else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_packet::{FlowAddresses, Meta, Protocol, write_packet};
    use pcap_file::DataLink;
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
        let capture = Capture::read(&bytes[..]).unwrap();
        assert_eq!((capture.packets.len(), capture.foreign, capture.unreadable), (2, 1, 1));
        assert_eq!(capture.packets[1].1.meta.ip_len, 100);
        assert_eq!(capture.broken, None);
        let cut = Capture::read(&bytes[..bytes.len() - 5]).unwrap();
        assert_eq!(cut.packets.len(), 1);
        assert_eq!(cut.broken.as_deref(), Some("it ends in the middle of a packet"));
        assert_eq!(Capture::read(&b"no capture at all, but a text"[..]).unwrap_err(), "neither pcap nor pcapng");
    }

    #[test]
    fn packets_keep_their_times_and_flows_and_speed_divides_the_gaps() {
        let frames = [(1_000, packet(0, 100)), (3_000, packet(2, 60)), (2_000, packet(1, 50)), (9_000, packet(0, 100))];
        let mut capture = Capture::read(&file(DataLink::RAW, &frames)[..]).unwrap();
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

//! Capture files, packet by packet: pcap and pcapng.
//!
//! Link layers: Ethernet with VLAN tags and PPPoE, PPP, raw IP, Linux cooked and loopback captures. A file that ends in the middle of a packet
//! is read up to there. Times are nanoseconds since 1970; pcapng tells their unit interface by interface (`if_tsresol`, by default the
//! microsecond).

use std::io::Read;

use lastmile_units::{Duration, Instant};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

/// First four bytes of a pcapng file, in either byte order.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Nanoseconds since 1970; `None` for a packet without a time.
    pub at_ns: Option<u64>,
    /// What was captured of the IP packet in it; `None` where there is none.
    pub ip: Option<&'a [u8]>,
}

/// Reads a capture and hands over its packets in the order of the file, until `take` refuses one. Returns why the file could not be read to
/// its end, if so.
///
/// # Errors
///
/// When the file is no capture, or of a link layer that is not known, and what `take` returns.
pub fn read(
    mut file: impl Read,
    take: &mut dyn FnMut(Frame<'_>) -> Result<(), String>,
) -> Result<Option<String>, String> {
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(|_| "too short for a capture".to_owned())?;
    let file = magic.as_slice().chain(file);
    if magic == PCAPNG { pcapng(file, take) } else { pcap(file, take) }
}

fn pcap(file: impl Read, take: &mut dyn FnMut(Frame<'_>) -> Result<(), String>) -> Result<Option<String>, String> {
    let mut reader = PcapReader::new(file).map_err(|_| "neither pcap nor pcapng".to_owned())?;
    let link = reader.header().datalink;
    check_link(link)?;
    while let Some(packet) = reader.next_packet() {
        match packet {
            Ok(packet) => {
                let at_ns = u64::try_from(packet.timestamp.as_nanos()).ok();
                take(Frame { at_ns, ip: ip_of(link, &packet.data) })?;
            }
            Err(error) => return Ok(Some(broken(&error))),
        }
    }
    Ok(None)
}

fn pcapng(file: impl Read, take: &mut dyn FnMut(Frame<'_>) -> Result<(), String>) -> Result<Option<String>, String> {
    let mut reader = PcapNgReader::new(file).map_err(|error| format!("no pcapng: {}", broken(&error)))?;
    // Those of the section; the reader has them too, but not while a block is borrowed from it.
    let mut interfaces: Vec<InterfaceDescriptionBlock<'static>> = Vec::new();
    loop {
        // Their library takes every time for nanoseconds: the number is as in the file.
        let (interface, raw, data) = match reader.next_block() {
            None => return Ok(None),
            Some(Err(error)) => return Ok(Some(broken(&error))),
            Some(Ok(Block::EnhancedPacket(packet))) => {
                (packet.interface_id, u64::try_from(packet.timestamp.as_nanos()).ok(), packet.data)
            }
            Some(Ok(Block::Packet(packet))) => (packet.interface_id.into(), Some(packet.timestamp), packet.data),
            // It has no time, and is of the first interface.
            Some(Ok(Block::SimplePacket(packet))) => (0, None, packet.data),
            Some(Ok(Block::InterfaceDescription(interface))) => {
                interfaces.push(interface.into_owned());
                continue;
            }
            Some(Ok(Block::SectionHeader(_))) => {
                interfaces.clear();
                continue;
            }
            Some(Ok(_)) => continue,
        };
        let frame = match interfaces.get(interface as usize) {
            Some(description) => {
                check_link(description.linktype)?;
                let at_ns = raw.and_then(|raw| to_ns(raw, description));
                Frame { at_ns, ip: ip_of(description.linktype, &data) }
            }
            // Of no interface: nobody knows its time or its link layer.
            None => Frame { at_ns: None, ip: Some(&[]) },
        };
        take(frame)?;
    }
}

/// The times of a capture's packets, counted from its first one.
#[derive(Clone, Debug, Default)]
pub struct Times {
    first_ns: Option<u64>,
}

impl Times {
    /// The longest capture. Sums of a few such spans are still times.
    pub const LONGEST: Duration = Duration::from_s(50 * 86_400);

    /// When a packet came; at the beginning if it came before the first one. `None` for one that came later than [`Times::LONGEST`]:
    /// a damaged time.
    pub fn since_first(&mut self, at_ns: u64) -> Option<Instant> {
        let since_ns = at_ns.saturating_sub(*self.first_ns.get_or_insert(at_ns));
        (since_ns <= Self::LONGEST.as_ns()).then(|| Instant::ZERO + Duration::from_ns(since_ns))
    }
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

    fn ethernet(ethertype: &[u8], ip: &[u8]) -> Vec<u8> {
        [&[0; 12][..], ethertype, ip].concat()
    }

    #[test]
    fn ip_is_found_under_tags_and_sessions() {
        let ip = [0x45; 100];
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
    fn a_time_of_another_age_is_none_of_the_capture() {
        let mut times = Times::default();
        assert_eq!(times.since_first(1_000), Some(Instant::ZERO));
        assert_eq!(times.since_first(3_000), Some(Instant::ZERO + Duration::from_us(2)));
        assert_eq!(times.since_first(500), Some(Instant::ZERO), "before the first");
        assert_eq!(times.since_first(u64::MAX), None);
        let longest = Times::LONGEST.as_ns();
        assert_eq!(times.since_first(1_000 + longest), Some(Instant::ZERO + Times::LONGEST));
        assert_eq!(times.since_first(1_001 + longest), None);
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
}

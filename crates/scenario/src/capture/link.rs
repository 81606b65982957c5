//! The IP packet in a captured frame, and the interface that the frame passed.

use pcap_file::DataLink;

/// The interface that a frame passed, and the way it went there, as far as the capture says.
///
/// A capture of several interfaces (`-i any`) of a host that forwards holds each packet once for each interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sighting {
    /// The interface: its index in a Linux cooked capture of version 2, or its number in a pcapng file.
    pub interface: u32,
    /// True for a packet that the capturing host sent (packet type 4 of Linux cooked captures).
    pub sent: bool,
}

/// The link layer of this number. Raw IP is 12 on most systems and 14 on OpenBSD where a program writes the system's
/// number (`DLT_RAW`) in place of that of files, 101.
pub(super) fn of(number: u32) -> DataLink {
    match number {
        12 | 14 => DataLink::RAW,
        number => DataLink::from(number),
    }
}

/// Refuses a link layer that is not known.
pub(super) fn check(link: DataLink) -> Result<(), String> {
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

/// Where the frame was seen, of a file's interface `number`.
#[inline]
pub(super) fn sighting(link: DataLink, number: u32, frame: &[u8]) -> Sighting {
    const OUTGOING: u8 = 4;
    match (link, frame) {
        // sll_protocol, reserved, sll_ifindex, sll_hatype, sll_pkttype: LINKTYPE_LINUX_SLL2.
        (DataLink::LINUX_SLL2, [_, _, _, _, a, b, c, d, _, _, kind, ..]) => {
            Sighting { interface: u32::from_be_bytes([*a, *b, *c, *d]), sent: *kind == OUTGOING }
        }
        (DataLink::LINUX_SLL, [_, kind, ..]) => Sighting { interface: number, sent: *kind == OUTGOING },
        // The direction stands nowhere: both directions are one.
        _ => Sighting { interface: number, sent: false },
    }
}

/// The IP packet in a frame, if there is one.
#[inline]
pub(super) fn ip_of(link: DataLink, frame: &[u8]) -> Option<&[u8]> {
    let ethertype = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    match link {
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(frame),
        DataLink::ETHERNET => by_type(ethertype(12)?, frame.get(14..)?),
        DataLink::LINUX_SLL => by_type(ethertype(14)?, frame.get(16..)?),
        DataLink::LINUX_SLL2 => by_type(ethertype(0)?, frame.get(20..)?),
        // The address family, whose numbers differ by system: the packet itself has the version.
        DataLink::NULL | DataLink::LOOP => frame.get(4..).filter(|ip| is_ip(ip)),
        DataLink::PPP => ppp(frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame)),
        _ => None,
    }
}

/// The content after an Ethernet type.
fn by_type(ethertype: u16, rest: &[u8]) -> Option<&[u8]> {
    match ethertype {
        0x0800 | 0x86dd => Some(rest),
        // VLAN tags: four bytes, of which the last two are the next type (IEEE 802.1Q, 802.1ad, and the types of outer
        // tags before that).
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            by_type(u16::from_be_bytes([*rest.get(2)?, *rest.get(3)?]), rest.get(4..)?)
        }
        // PPPoE session: six bytes of header (RFC 2516).
        0x8864 => ppp(rest.get(6..)?),
        _ => None,
    }
}

/// The content of a PPP frame without address and control.
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
        let doubly = |outer: [u8; 2]| [&outer[..], &[0, 6], &tagged].concat();
        let (first, second, third) = (doubly([0x88, 0xa8]), doubly([0x91, 0]), doubly([0x92, 0]));
        for head in [&[0x08, 0x00][..], &tagged, &first, &second, &third, &pppoe] {
            assert_eq!(ip_of(DataLink::ETHERNET, &ethernet(head, &ip)), Some(&ip[..]), "{head:02x?}");
        }
        assert_eq!(ip_of(DataLink::ETHERNET, &ethernet(&[0x08, 0x06], &[0; 28])), None, "ARP");
        assert_eq!(ip_of(DataLink::PPP, &[&[0xff, 0x03, 0x00, 0x21], &ip[..]].concat()), Some(&ip[..]));
        assert_eq!(ip_of(DataLink::NULL, &[&[2, 0, 0, 0], &ip[..]].concat()), Some(&ip[..]));
        assert_eq!(ip_of(DataLink::ETHERNET, &[0; 10]), None);
    }

    #[test]
    fn raw_ip_has_three_numbers() {
        for number in [12, 14, 101] {
            assert_eq!(of(number), DataLink::RAW);
        }
        assert_eq!((of(1), of(0)), (DataLink::ETHERNET, DataLink::NULL));
    }

    #[test]
    fn cooked_captures_say_which_interface_a_packet_passed_and_which_way() {
        let second = [0x08, 0, 0, 0, 0, 0, 0, 7, 0, 1, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(sighting(DataLink::LINUX_SLL2, 0, &second), Sighting { interface: 7, sent: true });
        let first = [0, 4, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
        assert_eq!(sighting(DataLink::LINUX_SLL, 0, &first), Sighting { interface: 0, sent: true });
        assert_eq!(sighting(DataLink::ETHERNET, 3, &[0; 14]), Sighting { interface: 3, sent: false });
        assert_eq!(sighting(DataLink::LINUX_SLL2, 0, &[]), Sighting::default());
    }
}

//! Checksums that a host has left to a device, finished.

use lastmile_packet::checksum::Sum;
use lastmile_packet::ethernet::{Located, locate};

use super::levels::{Level, Levels, SCTP, TCP, UDP, word};
use super::work::Checksum;

/// SCTP has a CRC32c in place of the Internet checksum (RFC 9260, section 6.8), 8 bytes into its
/// header. No other transport has a checksum there.
const SCTP_FIELD: usize = 8;
const CRC32C: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// Ports of tunnels whose outer checksum may be there: VXLAN (RFC 7348, and what Linux had before), Geneve (RFC 8926).
const TUNNEL_PORTS: [u16; 3] = [4789, 8472, 6081];

/// The offset of the field in the UDP header. ICMP and TCP have theirs at 2 and 16.
const UDP_FIELD: usize = 6;

/// The checksum as it is transmitted in the field at this offset of the transport header. Zero and 0xFFFF are the
/// same sum; UDP transmits 0xFFFF, since zero means that there is no checksum (RFC 768), all others zero (RFC 1624).
pub(super) fn transmitted(checksum: u16, field: usize) -> u16 {
    if checksum == 0 && field == UDP_FIELD { 0xFFFF } else { checksum }
}

/// Finishes a checksum over what the frame's packet has from there on, without the padding behind
/// it; `None` when the field is not in the frame.
pub(super) fn finish(frame: &mut [u8], Checksum { start, at }: Checksum) -> Option<()> {
    let end = packet_end(frame).filter(|end| *end > at).unwrap_or(frame.len());
    let (frame, field) = (&mut frame[..end], at.checked_sub(start)?);
    if field == SCTP_FIELD {
        frame.get_mut(at..at + 4)?.fill(0);
        // Transmitted with the least significant byte first (RFC 9260, appendix A).
        let checksum = CRC32C.checksum(&frame[start..]).to_le_bytes();
        frame[at..at + 4].copy_from_slice(&checksum);
        return Some(());
    }
    frame.get(at..at + 2)?;
    let checksum = transmitted(Sum::ZERO.bytes(frame.get(start..)?).checksum(), field);
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Finishes the checksum of a packet, in a tunnel or not, whose field holds what a host puts there
/// for a device, where nobody says that it does; true if it did. A sound packet whose checksum
/// happens to look so stays as it is.
pub(crate) fn finish_if_partial(frame: &mut [u8]) -> bool {
    let found = partial(frame);
    found.is_some_and(|checksum| finish(frame, checksum).is_some())
}

/// Where the IP packet of a frame ends, by its own length.
fn packet_end(frame: &[u8]) -> Option<usize> {
    let Located { prefix, end: Ok(limit) } = locate(frame) else { return None };
    let start = usize::from(prefix.len);
    Level::length(frame, start).map(|len| start + len).filter(|end| *end <= limit)
}

/// Where such a field is.
fn partial(frame: &[u8]) -> Option<Checksum> {
    let Located { prefix, end: Ok(limit) } = locate(frame) else { return None };
    let mut found = None;
    Levels::find(frame, usize::from(prefix.len), limit, |level| {
        found = open_field(frame, limit, level);
        found.is_some() || !may_be_tunnel(frame, level)
    })?;
    found
}

/// The open checksum of what this level carries, in a frame that holds packets up to `limit`.
fn open_field(frame: &[u8], limit: usize, level: &Level) -> Option<Checksum> {
    let start = level.transport;
    let field = match level.protocol {
        TCP => 16,
        UDP => UDP_FIELD,
        SCTP => SCTP_FIELD,
        _ => return None,
    };
    let checksum = Checksum { start, at: start + field };
    let end = level.end(frame).filter(|end| *end <= limit)?;
    let transport = frame.get(start..end)?;
    if level.protocol == SCTP {
        return (transport.get(field..field + 4)? == [0; 4]).then_some(checksum);
    }
    let pseudo_header = level.pseudo_header(frame, transport.len());
    let sound = || pseudo_header.bytes(transport).checksum() == 0;
    (word(transport, field)? == pseudo_header.fold() && !sound()).then_some(checksum)
}

/// True where it is worth looking for a packet in the packet. Of UDP, that is one without a
/// checksum, which tunnels alone send, or one to a tunnel's port.
fn may_be_tunnel(frame: &[u8], level: &Level) -> bool {
    let field = |at| word(frame, level.transport + at);
    match level.protocol {
        TCP | SCTP => false,
        UDP => field(UDP_FIELD) == Some(0) || field(2).is_some_and(|port| TUNNEL_PORTS.contains(&port)),
        _ => true,
    }
}

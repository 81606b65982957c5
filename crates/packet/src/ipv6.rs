//! IPv6 headers (RFC 8200).
//!
//! The reader skips hop-by-hop options, destination options and routing headers without segments
//! left. It stops at a fragment header, at an authentication header (which a changed ACK would
//! invalidate), at ESP, and at a routing header with segments left (the transport checksum covers
//! the last hop instead of the destination). Jumbograms (RFC 2675) do not fit 16-bit lengths and
//! are errors.

use core::net::Ipv6Addr;

use crate::fields::{IpHeader, ParseError, double_word, header, word};
use crate::{AckList, IpAddresses, list};

/// Bytes of the fixed header.
pub(crate) const HEADER_LEN: usize = 40;
/// Offsets of source and destination address.
pub(crate) const ADDRESSES: core::ops::Range<usize> = 8..40;
/// Hop limit of written packets, as Linux's default.
const HOP_LIMIT: u8 = 64;

/// The most bytes of headers, extensions included, that the reader walks. With 60 bytes of TCP,
/// more would not fit `Meta::header_len`.
const LONGEST_WALK: usize = 190;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
pub(crate) const DESTINATION_OPTIONS: u8 = 60;

/// Reads a header and its extensions.
pub(crate) fn read(bytes: &[u8]) -> Result<IpHeader, ParseError> {
    let fixed: &[u8; HEADER_LEN] = header(bytes, 0)?;
    let payload_len = word(fixed, 4);
    let packet_len = usize::from(payload_len) + HEADER_LEN;
    let Ok(packet_len) = u16::try_from(packet_len) else {
        return Err(too_long(payload_len));
    };
    if payload_len == 0 && fixed[6] == HOP_BY_HOP {
        return Err(too_long(payload_len));
    }
    let [source, destination] = [8, 24].map(|at| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        Ipv6Addr::from(octets)
    });
    let walk = walk_extensions(&bytes[..bytes.len().min(usize::from(packet_len))], fixed[6])?;
    Ok(IpHeader {
        addresses: IpAddresses::V6 { source, destination },
        protocol: walk.protocol,
        len: walk.len,
        packet_len,
        id: 0,
        traffic_class: (double_word(fixed, 0) >> 20) as u8,
        opaque: walk.opaque,
        list: read_list(bytes, fixed[6], &walk),
    })
}

const fn too_long(payload_len: u16) -> ParseError {
    ParseError::Length { offset: 4, field: "payload length", value: payload_len as usize }
}

/// The list, if the destination options that hold it are the only extension.
fn read_list(bytes: &[u8], first: u8, walk: &Walk) -> Option<AckList> {
    let extension = bytes.get(HEADER_LEN..usize::from(walk.len))?;
    let only = first == DESTINATION_OPTIONS && extension.first() == Some(&walk.protocol) && !walk.opaque;
    if only { list::read_ipv6(extension) } else { None }
}

struct Walk {
    protocol: u8,
    len: u8,
    opaque: bool,
}

/// Follows the next-header chain to the first header that the reader does not skip.
fn walk_extensions(packet: &[u8], first: u8) -> Result<Walk, ParseError> {
    let mut protocol = first;
    let mut offset = HEADER_LEN;
    loop {
        let on_its_way = match protocol {
            HOP_BY_HOP | DESTINATION_OPTIONS => false,
            ROUTING => header::<8>(packet, offset)?[3] != 0,
            FRAGMENT => true,
            _ => return Ok(Walk { protocol, len: offset as u8, opaque: false }),
        };
        let extension: &[u8; 8] = header(packet, offset)?;
        let end = offset + 8 * (usize::from(extension[1]) + 1);
        if on_its_way || end > LONGEST_WALK {
            return Ok(Walk { protocol, len: offset as u8, opaque: true });
        }
        if packet.len() < end {
            return Err(ParseError::Truncated { offset: packet.len(), needed: end });
        }
        protocol = extension[0];
        offset = end;
    }
}

/// Writes a header at the start of `out`, flow label 0. The list, if present, is the only
/// extension.
pub(crate) fn write(
    out: &mut [u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
    next_header: u8,
    packet_len: u16,
    traffic_class: u8,
    list: &[u8],
) {
    let extension = list::write_ipv6(&mut out[HEADER_LEN..], next_header, list);
    let first = 6 << 28 | u32::from(traffic_class) << 20;
    out[0..4].copy_from_slice(&first.to_be_bytes());
    out[4..6].copy_from_slice(&(packet_len - HEADER_LEN as u16).to_be_bytes());
    out[6] = if extension > 0 { DESTINATION_OPTIONS } else { next_header };
    out[7] = HOP_LIMIT;
    out[8..24].copy_from_slice(&source.octets());
    out[24..40].copy_from_slice(&destination.octets());
}

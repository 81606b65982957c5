//! IPv4 headers (RFC 791).

use core::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::fields::{IpHeader, ParseError, header, word};
use crate::{IpAddresses, list};

/// Bytes of a header without options.
pub(crate) const HEADER_LEN: usize = 20;
/// Offset of the header's checksum.
pub(crate) const CHECKSUM_AT: usize = 10;
/// Offsets of source and destination address.
pub(crate) const ADDRESSES: core::ops::Range<usize> = 12..20;
/// Time to live of written packets: the default that RFC 1340 recommends and Linux uses.
const TTL: u8 = 64;
/// Written packets must not be fragmented: their senders do path MTU discovery (RFC 1191,
/// section 3).
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// More-fragments flag and fragment offset: in a whole packet all are 0.
const FRAGMENT: u16 = 0x3FFF;

/// Reads a header. Options other than a list are skipped.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Result<IpHeader, ParseError> {
    let fixed: &[u8; HEADER_LEN] = header(bytes, 0)?;
    let len = fixed[0] & 0x0F;
    let header_len = 4 * usize::from(len);
    if header_len < HEADER_LEN {
        return Err(ParseError::Length { offset: 0, field: "IHL", value: usize::from(len) });
    }
    let packet_len = word(fixed, 2);
    if usize::from(packet_len) < header_len {
        return Err(ParseError::Length { offset: 2, field: "total length", value: usize::from(packet_len) });
    }
    if bytes.len() < header_len {
        return Err(ParseError::Truncated { offset: bytes.len(), needed: header_len });
    }
    let source = Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]);
    let destination = Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]);
    Ok(IpHeader {
        addresses: IpAddresses::V4 { source, destination },
        protocol: fixed[9],
        len: 4 * len,
        packet_len,
        id: word(fixed, 4),
        traffic_class: fixed[1],
        opaque: is_fragment(fixed),
        list: if header_len == HEADER_LEN { None } else { list::read_ipv4(&bytes[HEADER_LEN..header_len]) },
    })
}

/// Writes a header at the start of `out`. The list, if present, is the only option.
pub(crate) fn write(
    out: &mut [u8],
    (source, destination): (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    packet_len: u16,
    id: u16,
    traffic_class: u8,
    list: &[u8],
) {
    out[..HEADER_LEN].fill(0);
    let len = HEADER_LEN + list::write_ipv4(&mut out[HEADER_LEN..], list);
    let out = &mut out[..len];
    out[0] = first_byte(len);
    out[1] = traffic_class;
    out[2..4].copy_from_slice(&packet_len.to_be_bytes());
    out[4..6].copy_from_slice(&id.to_be_bytes());
    out[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
    out[8] = TTL;
    out[9] = protocol;
    out[12..16].copy_from_slice(&source.octets());
    out[16..20].copy_from_slice(&destination.octets());
    let checksum = Sum::ZERO.bytes(out).checksum();
    out[CHECKSUM_AT..12].copy_from_slice(&checksum.to_be_bytes());
}

/// True for the header of a fragment.
#[inline]
pub(crate) fn is_fragment(fixed: &[u8; HEADER_LEN]) -> bool {
    word(fixed, 6) & FRAGMENT != 0
}

/// The first byte of a header of `len` bytes: version and IHL.
pub(crate) const fn first_byte(len: usize) -> u8 {
    0x40 | (len / 4) as u8
}

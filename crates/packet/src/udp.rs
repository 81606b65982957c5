//! UDP headers (RFC 768).

use crate::fields::{ParseError, header, word};
use crate::{FlowAddresses, Meta, Protocol, ipv4};

/// Bytes of the header.
pub(crate) const HEADER_LEN: usize = 8;
/// Offset of the checksum.
pub(crate) const CHECKSUM_AT: usize = 6;

/// Reads the header at `offset`; returns the ports.
pub(crate) fn read(packet: &[u8], offset: usize, meta: &mut Meta) -> Result<(u16, u16), ParseError> {
    let fixed: &[u8; HEADER_LEN] = header(packet, offset)?;
    let len = usize::from(word(fixed, 4));
    // A length below that of the IP packet is allowed: UDP options follow the datagram (RFC 9868,
    // section 7).
    if len < HEADER_LEN || offset + len > usize::from(meta.ip_len) {
        return Err(ParseError::Length { offset: offset + 4, field: "UDP length", value: len });
    }
    meta.protocol = Protocol::Udp;
    meta.header_len = (offset + HEADER_LEN) as u8;
    Ok((word(fixed, 0), word(fixed, 2)))
}

/// A fast path for [`read`]: a valid datagram behind an IPv4 header without options. It overwrites
/// the rest of `meta`.
#[inline]
pub(crate) fn read_usual(datagram: &[u8], meta: &mut Meta) -> Option<(u16, u16)> {
    let fixed: &[u8; HEADER_LEN] = datagram.first_chunk()?;
    if !(HEADER_LEN..=datagram.len()).contains(&usize::from(word(fixed, 4))) {
        return None;
    }
    let header_len = (ipv4::HEADER_LEN + HEADER_LEN) as u8;
    *meta = Meta { protocol: Protocol::Udp, header_len, ..Meta::default() };
    Some((word(fixed, 0), word(fixed, 2)))
}

/// The length of a datagram that [`read`] accepted.
pub(crate) fn length(datagram: &[u8]) -> usize {
    usize::from(word(datagram, 4))
}

/// Writes the header with checksum 0 for a datagram of `len` bytes.
pub(crate) fn write(out: &mut [u8], addresses: &FlowAddresses, len: u16) {
    out[0..2].copy_from_slice(&addresses.source_port.to_be_bytes());
    out[2..4].copy_from_slice(&addresses.destination_port.to_be_bytes());
    out[4..6].copy_from_slice(&len.to_be_bytes());
    out[6..8].fill(0);
}

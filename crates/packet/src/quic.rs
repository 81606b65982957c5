//! The headers of simulated QUIC packets, as far as a network can read them.
//!
//! Published: RFC 9000, sections 17.2 (long headers), 17.3.1 (short header) and 17.4 (spin bit).
//!
//! Differs: zeros stand for all that is encrypted, packet numbers included. A connection ID repeats the flow's number,
//! so an end has one ID.

use crate::{FlowId, Meta, Protocol};

/// Version 1.
const VERSION: [u8; 4] = [0, 0, 0, 1];
/// Header Form and Fixed Bit of a long header.
const LONG: u8 = 0xc0;
/// Long Packet Type 2.
const HANDSHAKE: u8 = 0x20;
/// Fixed Bit of a short header.
const SHORT: u8 = 0x40;
const SPIN: u8 = 0x20;
/// The two bits before a variable-length integer of two bytes (section 16).
const TWO_BYTES: u16 = 0x4000;
/// The longest connection ID of version 1 (section 17.2).
const LONGEST_ID: u8 = 20;
/// Flags, version, two connection IDs with their lengths, the length of a token, and the length of the rest.
const LONGEST: usize = 1 + VERSION.len() + 2 * (1 + LONGEST_ID as usize) + 1 + 2;

/// The header of a QUIC packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuicHeader {
    /// The first byte of the packet.
    first: u8,
    /// Bytes of a connection ID.
    connection_id: u8,
}

impl QuicHeader {
    /// The header of an Initial packet. A connection ID has at most 20 bytes, here and below; longer ones are cut.
    #[must_use]
    pub fn initial(connection_id: u8) -> Self {
        Self::new(LONG, connection_id)
    }

    /// The header of a Handshake packet.
    #[must_use]
    pub fn handshake(connection_id: u8) -> Self {
        Self::new(LONG | HANDSHAKE, connection_id)
    }

    /// The header of a 1-RTT packet.
    #[must_use]
    pub fn short(connection_id: u8, spin: bool) -> Self {
        Self::new(SHORT | if spin { SPIN } else { 0 }, connection_id)
    }

    fn new(first: u8, connection_id: u8) -> Self {
        Self { first, connection_id: connection_id.min(LONGEST_ID) }
    }

    fn is_long(self) -> bool {
        self.first & LONG == LONG
    }

    /// Writes the header of a packet of `flow` with `payload` bytes at the start of `out`, and returns its length.
    fn write(self, out: &mut [u8], flow: FlowId, payload: u16) -> usize {
        let mut header = Header { bytes: [0; LONGEST], len: 0 };
        header.put(&[self.first]);
        if self.is_long() {
            header.put(&VERSION);
            header.put(&[self.connection_id]);
        }
        header.put_id(flow.index(), self.connection_id);
        if self.is_long() {
            header.put(&[self.connection_id]);
            // The flows of a connection have neighbouring numbers.
            header.put_id(flow.index() ^ 1, self.connection_id);
            if self.first & HANDSHAKE == 0 {
                // Token Length.
                header.put(&[0]);
            }
            let rest = payload.saturating_sub(header.len as u16 + 2);
            header.put(&(TWO_BYTES | rest & !(TWO_BYTES | 0x8000)).to_be_bytes());
        }
        let len = header.len.min(payload.into());
        out[..len].copy_from_slice(&header.bytes[..len]);
        len
    }
}

struct Header {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Header {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn put_id(&mut self, flow: u32, bytes: u8) {
        let id = flow.to_be_bytes();
        (0..usize::from(bytes)).for_each(|index| self.put(&[id[index % id.len()]]));
    }
}

impl Meta {
    /// Gives a datagram the header of a QUIC packet. It takes the place of TCP's window, and is part of the payload.
    pub fn set_quic(&mut self, header: QuicHeader) {
        self.window = u16::from_be_bytes([header.connection_id, header.first]);
    }

    /// The header of a simulated QUIC packet.
    fn quic(&self) -> Option<QuicHeader> {
        let [connection_id, first] = self.window.to_be_bytes();
        (self.protocol == Protocol::Udp && first != 0).then_some(QuicHeader { first, connection_id })
    }
}

/// Writes the header of QUIC behind that of UDP, if the packet has one, and returns its length.
pub(crate) fn write(out: &mut [u8], meta: &Meta, payload: u16) -> usize {
    meta.quic().map_or(0, |header| header.write(out, meta.flow, payload))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::{FlowAddresses, IpAddresses, MAX_HEADER_LEN, checksums_hold, header_len, write_headers, write_packet};

    fn meta(header: QuicHeader, payload: u16, ipv6: bool) -> Meta {
        let mut meta = Meta { protocol: Protocol::Udp, flow: FlowId::new(6), ..Meta::default() };
        meta.header_len = header_len(Protocol::Udp, ipv6, &meta.options());
        meta.ip_len = u16::from(meta.header_len) + payload;
        meta.set_quic(header);
        meta
    }

    fn written(header: QuicHeader, payload: u16) -> Vec<u8> {
        let meta = meta(header, payload, false);
        let mut bytes = [0; MAX_HEADER_LEN];
        let len = write_headers(&meta, &FlowAddresses::of_simulated(meta.flow), &mut bytes);
        bytes[28..len].to_vec()
    }

    /// RFC 9000, figure 15: flags, version, both connection IDs with their lengths, token length, length. The rest of
    /// 1200 bytes is 1200 - 1 - 4 - 5 - 5 - 1 - 2 = 1182 = 0x49e.
    #[test]
    fn an_initial_packet_has_the_fields_of_the_rfc() {
        let expected = [0xc0, 0, 0, 0, 1, 4, 0, 0, 0, 6, 4, 0, 0, 0, 7, 0, 0x44, 0x9e];
        assert_eq!(written(QuicHeader::initial(4), 1200), expected);
        assert_eq!(written(QuicHeader::initial(0), 1200), [0xc0, 0, 0, 0, 1, 0, 0, 0, 0x44, 0xa6]);
    }

    /// Figure 17: as an Initial packet without a token.
    #[test]
    fn a_handshake_packet_has_no_token() {
        let expected = [0xe0, 0, 0, 0, 1, 2, 0, 0, 2, 0, 0, 0x40, 0x58];
        assert_eq!(written(QuicHeader::handshake(2), 101), expected);
    }

    /// Section 17.3.1: flags and the destination's connection ID. Nothing is written beyond the payload.
    #[test]
    fn a_short_header_has_the_spin_bit() {
        assert_eq!(written(QuicHeader::short(8, false), 30), [0x40, 0, 0, 0, 6, 0, 0, 0, 6]);
        assert_eq!(written(QuicHeader::short(1, true), 30), [0x60, 0]);
        assert_eq!(written(QuicHeader::short(8, true), 3), [0x60, 0, 0]);
    }

    #[test]
    fn the_checksum_covers_it_and_the_lengths_stay() {
        for ipv6 in [false, true] {
            let meta = meta(QuicHeader::initial(20), 1200, ipv6);
            let ip = match ipv6 {
                true => IpAddresses::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::UNSPECIFIED },
                false => IpAddresses::V4 { source: Ipv4Addr::LOCALHOST, destination: Ipv4Addr::BROADCAST },
            };
            let addresses = FlowAddresses { ip, source_port: 50_000, destination_port: 443 };
            let mut packet = Vec::new();
            write_packet(&meta, &addresses, &mut packet);
            assert_eq!(packet.len(), usize::from(meta.ip_len));
            let parsed = crate::parse_headers(&packet).expect("a datagram");
            assert_eq!((parsed.meta.payload_len(), parsed.meta.protocol), (1200, Protocol::Udp));
            let udp = &packet[usize::from(parsed.transport_offset)..];
            assert_eq!(udp[8..13], [0xc0, 0, 0, 0, 1]);
            assert_eq!(checksums_hold(&packet), Ok(true));
        }
    }
}

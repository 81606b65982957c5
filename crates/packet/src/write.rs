//! From [`Meta`] and [`FlowAddresses`] to the bytes of an IP packet with right lengths and
//! checksums.
//!
//! A simulated packet has no payload, so its bytes are zeros, and the checksum over the headers is
//! that of the whole packet. The header of QUIC is payload of UDP, and is written. IPv4 packets carry DF; time to live
//! and hop limit are 64.

use crate::checksum::Sum;
use crate::{
    AckList, FlowAddresses, IpAddresses, Meta, Options, Protocol, icmp, ipv4, ipv6, list, protocol, quic, signal, tcp,
    udp,
};

/// The longest header that is written: IPv6 with a list and TCP with 40 bytes of options.
pub const MAX_HEADER_LEN: usize = ipv6::HEADER_LEN + list::MAX_HEADER_BYTES + tcp::HEADER_LEN + Options::MAX_BYTES;

/// Bytes of the IP and transport headers that [`write_headers`] writes: `Meta::header_len` of a
/// simulated packet.
#[must_use]
pub const fn header_len(protocol: Protocol, ipv6: bool, options: &Options) -> u8 {
    let ip = if ipv6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN } as u8;
    ip + match protocol {
        Protocol::Tcp => options.list_header_bytes(ipv6) + tcp::HEADER_LEN as u8 + options.header_bytes(),
        Protocol::Udp => udp::HEADER_LEN as u8,
        Protocol::EchoRequest | Protocol::EchoReply => icmp::HEADER_LEN as u8,
        Protocol::AckSignal => (signal::HEADER_LEN + options.signal_list_len()) as u8,
        Protocol::Other => 0,
    }
}

/// Writes the headers at the start of `out`, with the checksums of a packet whose payload is
/// `meta.payload_len()` zeros, and returns their length.
///
/// The addresses give the IP version. Lengths follow from protocol and options, which for simulated
/// packets equal those in `meta`. A `meta` read from bytes with unusual option padding, unknown
/// options or IP options is written with the usual layout and without the unknown parts. A payload
/// that exceeds 65 535 bytes with the headers is truncated. [`Protocol::Other`] is written as
/// protocol 253.
pub fn write_headers(meta: &Meta, addresses: &FlowAddresses, out: &mut [u8; MAX_HEADER_LEN]) -> usize {
    let payload_len = usize::from(meta.ip_len.saturating_sub(u16::from(meta.header_len)));
    let ipv6 = addresses.ip.is_ipv6();
    let headers_len = usize::from(header_len(meta.protocol, ipv6, &meta.options()));
    let packet_len = (headers_len + payload_len).min(usize::from(u16::MAX)) as u16;
    let list = if meta.protocol == Protocol::Tcp { meta.options().list() } else { AckList::EMPTY };
    let list = list.as_bytes();
    let ip_len = if ipv6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN } + list::header_bytes(list.len(), ipv6);
    let transport_len = packet_len - ip_len as u16;
    let (ip_out, transport_out) = out.split_at_mut(ip_len);

    let (protocol, quic_len) = write_transport(transport_out, meta, addresses, transport_len);
    match addresses.ip {
        IpAddresses::V4 { source, destination } => {
            ipv4::write(ip_out, (source, destination), protocol, packet_len, meta.ip_id, meta.traffic_class, list);
        }
        IpAddresses::V6 { source, destination } => {
            ipv6::write(ip_out, source, destination, protocol, packet_len, meta.traffic_class, list);
        }
    }
    headers_len + quic_len
}

/// Replaces `out` by the whole packet, with a payload of zeros.
pub fn write_packet(meta: &Meta, addresses: &FlowAddresses, out: &mut Vec<u8>) {
    let mut headers = [0; MAX_HEADER_LEN];
    let headers_len = write_headers(meta, addresses, &mut headers);
    out.clear();
    out.extend_from_slice(&headers[..headers_len]);
    out.resize(written_len(&headers), 0);
}

/// The length of the IP packet whose headers [`write_headers`] wrote.
#[must_use]
pub fn written_len(headers: &[u8; MAX_HEADER_LEN]) -> usize {
    if headers[0] >> 4 == 6 {
        ipv6::HEADER_LEN + usize::from(u16::from_be_bytes([headers[4], headers[5]]))
    } else {
        usize::from(u16::from_be_bytes([headers[2], headers[3]]))
    }
}

/// Writes the transport header with its checksum, and a header of QUIC; returns the protocol number, and the length of
/// the latter.
fn write_transport(out: &mut [u8], meta: &Meta, addresses: &FlowAddresses, transport_len: u16) -> (u8, usize) {
    let ipv6 = addresses.ip.is_ipv6();
    let protocol = meta.protocol.number(ipv6);
    let mut quic_len = 0;
    let (len, checksum_at) = match meta.protocol {
        Protocol::Tcp => (tcp::write(out, meta, addresses), tcp::CHECKSUM_AT),
        Protocol::Udp => {
            udp::write(out, addresses, transport_len);
            quic_len = quic::write(&mut out[udp::HEADER_LEN..], meta, transport_len - udp::HEADER_LEN as u16);
            (udp::HEADER_LEN + quic_len, udp::CHECKSUM_AT)
        }
        Protocol::EchoRequest | Protocol::EchoReply => {
            icmp::write(out, meta, addresses, if ipv6 { icmp::V6 } else { icmp::V4 });
            (icmp::HEADER_LEN, icmp::CHECKSUM_AT)
        }
        Protocol::AckSignal => (signal::write(out, meta, addresses), signal::CHECKSUM_AT),
        Protocol::Other => return (protocol, 0),
    };
    let mut sum = Sum::ZERO.bytes(&out[..len]);
    if protocol != protocol::ICMP_V4 {
        sum = sum.pseudo_header(&addresses.ip, protocol, transport_len);
    }
    let checksum = match (protocol, sum.checksum()) {
        // RFC 768: a computed 0 is sent as all ones, because 0 means no checksum.
        (protocol::UDP, 0) => 0xFFFF,
        (_, checksum) => checksum,
    };
    out[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
    (protocol, quic_len)
}

#[cfg(test)]
mod tests;

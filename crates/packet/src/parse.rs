//! From the bytes of an IP packet to [`Meta`] and [`FlowKey`].
//!
//! Reads the headers that the datapath can use and nothing else: no copy, no allocation, no checksum but that of a signal (a middlebox
//! passes a damaged packet on, for its receiver to drop; [`crate::Frame`] looks at those of TCP). What is sound but not understood, such as fragments, encrypted or
//! authenticated packets and unknown protocols, becomes [`Protocol::Other`], which nothing regulates; what contradicts
//! itself is an error. Bytes behind the IP packet, such as the padding of Ethernet, are not read.
//!
//! Cost: 20 to 35 ns for a TCP segment, by its options, on a 2.5 GHz x86-64 core.

use core::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::{AckList, FlowAddresses, FlowKey, IpAddresses, Mark, Meta, Protocol, icmp, ipv4, ipv6, signal, tcp, udp};

/// Why bytes are not a readable IP packet. Offsets count from the first byte of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// The bytes end inside a header, or before the length that the IP header gives.
    #[error("truncated at byte {offset}: at least {needed} bytes are needed")]
    Truncated {
        /// Where the bytes end.
        offset: usize,
        /// How many would be needed to read on.
        needed: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {version} at byte 0: 4 or 6 is needed")]
    Version {
        /// The version that the first four bits give.
        version: u8,
    },
    /// A length field contradicts the packet around it.
    #[error("{field} at byte {offset} is {value}, which does not fit the packet")]
    Length {
        /// Where the field stands.
        offset: usize,
        /// The field in the words of its RFC.
        field: &'static str,
        /// Its value as it stands in the header.
        value: usize,
    },
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed {
    /// The packet's metadata. `arrived` and `flow` are for the caller to set.
    pub meta: Meta,
    /// The packet's flow.
    pub key: FlowKey,
    /// Where the transport header starts; for [`Protocol::Other`] where the IP header ends.
    pub transport_offset: u8,
}

/// What the IP layer tells the transport layer.
pub(crate) struct IpHeader {
    pub(crate) addresses: IpAddresses,
    /// Protocol number of what follows.
    pub(crate) protocol: u8,
    /// Bytes up to the transport header, at most 190.
    pub(crate) len: u8,
    /// Bytes of the whole packet.
    pub(crate) packet_len: u16,
    pub(crate) id: u16,
    pub(crate) traffic_class: u8,
    /// True when the transport header must not be read: a fragment, or the checksum covers other addresses.
    pub(crate) opaque: bool,
    /// The list that a pure ACK carries, if there is something that may be one.
    pub(crate) list: Option<AckList>,
}

/// Reads an IP packet that is there whole.
///
/// # Errors
///
/// When the bytes end too early or contradict themselves.
pub fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let mut meta = Meta::default();
    let (key, transport_offset) = read(bytes, &mut meta)?;
    Ok(Parsed { meta, key, transport_offset })
}

/// Reads an IP packet of which the payload may be missing, as in captures that keep the headers only.
///
/// # Errors
///
/// When the bytes end inside a header or contradict themselves.
pub fn parse_headers(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let mut meta = Meta::default();
    let (key, transport_offset) = read_headers(bytes, &mut meta)?;
    Ok(Parsed { meta, key, transport_offset })
}

/// As [`read`] for nearly all packets: whole IPv4 packets without options that carry UDP, or TCP with the timestamps of an established
/// connection or no option. `None`: any other, and `meta` is as before.
///
/// A third of the instructions, since nothing is in question here that the others have in question.
#[inline]
pub(crate) fn read_usual(bytes: &[u8], meta: &mut Meta) -> Option<(FlowKey, u8)> {
    let ip: &[u8; ipv4::HEADER_LEN] = bytes.first_chunk()?;
    let packet_len = word(ip, 2);
    if ip[0] != ipv4::first_byte(ipv4::HEADER_LEN) || ipv4::is_fragment(ip) {
        return None;
    }
    let transport = bytes.get(ipv4::HEADER_LEN..usize::from(packet_len))?;
    let ports = match ip[9] {
        tcp::PROTOCOL => tcp::read_usual(transport, meta)?,
        udp::PROTOCOL => udp::read_usual(transport, meta)?,
        _ => return None,
    };
    meta.ip_len = packet_len;
    meta.ip_id = word(ip, 4);
    meta.traffic_class = ip[1];
    let source = Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]);
    let destination = Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]);
    let ip_addresses = IpAddresses::V4 { source, destination };
    let addresses = FlowAddresses { ip: ip_addresses, source_port: ports.0, destination_port: ports.1 };
    Some((FlowKey { addresses, protocol: ip[9] }, ipv4::HEADER_LEN as u8))
}

/// As [`parse`], the metadata where they are to stay; returns flow and transport offset. After an error they say nothing.
pub(crate) fn read(bytes: &[u8], meta: &mut Meta) -> Result<(FlowKey, u8), ParseError> {
    let read = read_headers(bytes, meta)?;
    let needed = usize::from(meta.ip_len);
    if bytes.len() < needed {
        return Err(ParseError::Truncated { offset: bytes.len(), needed });
    }
    Ok(read)
}

// A caller that copies what this returns pays for it with every packet.
#[inline]
fn read_headers(bytes: &[u8], meta: &mut Meta) -> Result<(FlowKey, u8), ParseError> {
    let ip = read_ip(bytes)?;
    let packet = &bytes[..bytes.len().min(usize::from(ip.packet_len))];
    *meta = Meta::default();
    meta.ip_len = ip.packet_len;
    meta.ip_id = ip.id;
    meta.traffic_class = ip.traffic_class;
    meta.header_len = ip.len;
    meta.protocol = Protocol::Other;
    meta.mark = mark(&ip.addresses);
    let offset = usize::from(ip.len);
    let ports = match (ip.opaque, ip.protocol) {
        (false, tcp::PROTOCOL) => tcp::read(packet, offset, meta)?,
        (false, udp::PROTOCOL) => udp::read(packet, offset, meta)?,
        (false, icmp::PROTOCOL_V4) if !ip.addresses.is_ipv6() => icmp::read(packet, offset, icmp::V4, meta)?,
        (false, icmp::PROTOCOL_V6) if ip.addresses.is_ipv6() => icmp::read(packet, offset, icmp::V6, meta)?,
        (false, signal::PROTOCOL) => {
            // A signal is taken in where it was meant to go: not one that a router would drop for its header.
            let sound = ip.addresses.is_ipv6() || Sum::ZERO.bytes(&packet[..offset]).checksum() == 0;
            let payload = if packet.len() < usize::from(ip.packet_len) { &[] } else { &packet[offset..] };
            if sound { signal::read(payload, &ip.addresses, meta).unwrap_or_default() } else { (0, 0) }
        }
        _ => (0, 0),
    };
    if let Some(list) = &ip.list
        && !list.is_empty()
        && meta.is_pure_ack()
        && meta.options().may_have_list()
    {
        meta.set_options(meta.options().with_list(list));
    }
    // A signal is of the flow of its ACK.
    let protocol = if meta.protocol == Protocol::AckSignal { tcp::PROTOCOL } else { ip.protocol };
    let addresses = FlowAddresses { ip: ip.addresses, source_port: ports.0, destination_port: ports.1 };
    Ok((FlowKey { addresses, protocol }, ip.len))
}

/// True when the checksums of IPv4, TCP, UDP and ICMP echo are right; those that a packet lacks (IPv6, UDP over IPv4 with a
/// checksum of 0, [`Protocol::Other`]) count as right. With IPv4 source routing the transport checksum covers the last hop,
/// which is not looked for: such packets count as wrong until they are there.
///
/// # Errors
///
/// As [`parse`].
pub fn checksums_hold(bytes: &[u8]) -> Result<bool, ParseError> {
    let Parsed { meta, key, transport_offset } = parse(bytes)?;
    let (ip_header, transport) = bytes[..usize::from(meta.ip_len)].split_at(usize::from(transport_offset));
    if !meta.mark.ipv6() && Sum::ZERO.bytes(ip_header).checksum() != 0 {
        return Ok(false);
    }
    let covered = match meta.protocol {
        // The checksum of a signal was looked at when it was read.
        Protocol::Other | Protocol::AckSignal => return Ok(true),
        Protocol::Udp => {
            if transport[6..8] == [0, 0] {
                // RFC 768: no checksum. RFC 8200, section 8.1: over IPv6 there must be one.
                return Ok(!meta.mark.ipv6());
            }
            &transport[..udp::length(transport)]
        }
        Protocol::Tcp | Protocol::EchoRequest | Protocol::EchoReply => transport,
    };
    let pseudo_header = if key.protocol == icmp::PROTOCOL_V4 {
        Sum::ZERO
    } else {
        Sum::ZERO.pseudo_header(&key.addresses.ip, key.protocol, covered.len() as u16)
    };
    Ok(pseudo_header.bytes(covered).checksum() == 0)
}

#[inline]
fn read_ip(bytes: &[u8]) -> Result<IpHeader, ParseError> {
    match bytes.first() {
        None => Err(ParseError::Truncated { offset: 0, needed: 1 }),
        Some(first) => match first >> 4 {
            4 => ipv4::read(bytes),
            6 => ipv6::read(bytes),
            version => Err(ParseError::Version { version }),
        },
    }
}

fn mark(addresses: &IpAddresses) -> Mark {
    let mut mark = Mark::default();
    if addresses.is_ipv6() {
        mark.set_ipv6();
    }
    mark
}

/// The `N` bytes from `offset` on, or where they end too early.
pub(crate) fn header<const N: usize>(bytes: &[u8], offset: usize) -> Result<&[u8; N], ParseError> {
    bytes
        .get(offset..)
        .and_then(<[u8]>::first_chunk)
        .ok_or(ParseError::Truncated { offset: bytes.len(), needed: offset + N })
}

/// Two bytes of a header as a number. The index is a constant below the array's length wherever this is used.
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Four bytes of a header as a number, as [`word`].
pub(crate) fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;

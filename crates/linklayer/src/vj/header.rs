//! IPv4 and TCP headers as bytes: offsets of the fields that compression uses.

use super::MAX_HEADER;

/// The protocol number of TCP in the IP header.
pub(super) const PROTOCOL_TCP: u8 = 6;

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const URG: u8 = 0x20;

/// Offsets in an IPv4 header.
pub(super) mod ip {
    pub(in crate::vj) const VERSION_AND_LENGTH: usize = 0;
    pub(in crate::vj) const TOTAL_LENGTH: usize = 2;
    pub(in crate::vj) const ID: usize = 4;
    pub(in crate::vj) const FRAGMENT: usize = 6;
    pub(in crate::vj) const PROTOCOL: usize = 9;
    pub(in crate::vj) const CHECKSUM: usize = 10;
    pub(in crate::vj) const ADDRESSES: usize = 12;
    pub(in crate::vj) const OPTIONS: usize = 20;
}

/// Offsets in a TCP header.
pub(super) mod tcp {
    pub(in crate::vj) const PORTS: usize = 0;
    pub(in crate::vj) const SEQUENCE: usize = 4;
    pub(in crate::vj) const ACK: usize = 8;
    pub(in crate::vj) const OFFSET: usize = 12;
    pub(in crate::vj) const FLAGS: usize = 13;
    pub(in crate::vj) const WINDOW: usize = 14;
    pub(in crate::vj) const CHECKSUM: usize = 16;
    pub(in crate::vj) const URGENT: usize = 18;
    pub(in crate::vj) const OPTIONS: usize = 20;
}

pub(super) fn read16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn read32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn write16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(super) fn write32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// The lengths of the two headers. A value proves that the bytes hold both headers whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Offset of the TCP header.
    pub(super) tcp: usize,
    /// Offset of the data.
    pub(super) data: usize,
}

impl Shape {
    /// The shape of the IPv4 and TCP headers at the front of `bytes`, whatever the protocol field
    /// says; `None` unless both are whole.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let &first = bytes.get(ip::VERSION_AND_LENGTH)?;
        let tcp = usize::from(first & 0x0f) * 4;
        if first >> 4 != 4 || tcp < ip::OPTIONS {
            return None;
        }
        let length = usize::from(*bytes.get(tcp + tcp::OFFSET)? >> 4) * 4;
        let data = tcp + length;
        let total = usize::from(read16(bytes, ip::TOTAL_LENGTH));
        (length >= tcp::OPTIONS && bytes.len() >= data && total >= data).then_some(Self { tcp, data })
    }
}

/// The last header of a connection, as one end of the line stores it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    bytes: [u8; MAX_HEADER],
    /// `None` for a slot never used.
    shape: Option<Shape>,
}

impl Slot {
    pub(super) const EMPTY: Self = Self { bytes: [0; MAX_HEADER], shape: None };

    /// The header and its shape; `None` in a slot without a header.
    pub(super) fn header(&self) -> Option<(&[u8], Shape)> {
        self.shape.map(|shape| (&self.bytes[..shape.data], shape))
    }

    pub(super) fn header_mut(&mut self) -> Option<(&mut [u8], Shape)> {
        self.shape.map(|shape| (&mut self.bytes[..shape.data], shape))
    }

    /// Stores a copy of `header`, whose length must be that of `shape`, with `protocol` in the
    /// protocol field.
    pub(super) fn remember(&mut self, header: &[u8], shape: Shape, protocol: u8) -> &[u8] {
        self.shape = Some(shape);
        let kept = &mut self.bytes[..shape.data];
        kept.copy_from_slice(&header[..shape.data]);
        kept[ip::PROTOCOL] = protocol;
        kept
    }
}

/// Bytes of data behind the headers, from the total length field.
pub(super) fn data_length(header: &[u8], shape: Shape) -> u32 {
    u32::from(read16(header, ip::TOTAL_LENGTH)) - u32::try_from(shape.data).expect("at most 120")
}

/// The IP header checksum of `header[..tcp]`, its own field taken as zero (RFC 791).
pub(super) fn ip_checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>() - u32::from(read16(header, ip::CHECKSUM));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(sum).expect("folded twice")
}

//! The fields of headers, and the errors of headers that contradict themselves.

use crate::{AckList, IpAddresses};

/// Why bytes are not a readable IP packet. Offsets count from the first byte of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// The bytes end inside a header, or before the length that the IP header gives.
    #[error("truncated at byte {offset}: at least {needed} bytes are needed")]
    Truncated {
        /// The number of bytes.
        offset: usize,
        /// The number of bytes needed.
        needed: usize,
    },
    /// The packet is neither IPv4 nor IPv6.
    #[error("IP version {version} at byte 0: 4 or 6 is needed")]
    Version {
        /// The version that the first four bits give.
        version: u8,
    },
    /// A length field contradicts the packet around it.
    #[error("{field} at byte {offset} is {value}, which does not fit the packet")]
    Length {
        /// Offset of the field.
        offset: usize,
        /// The field's name in its RFC.
        field: &'static str,
        /// The value of the field in the header.
        value: usize,
    },
}

/// The fields of an IP header that the transport layer needs.
pub(crate) struct IpHeader {
    pub(crate) addresses: IpAddresses,
    /// Protocol number of the next header.
    pub(crate) protocol: u8,
    /// Offset of the transport header, at most 190.
    pub(crate) len: u8,
    /// Bytes of the whole packet.
    pub(crate) packet_len: u16,
    pub(crate) id: u16,
    pub(crate) traffic_class: u8,
    /// True if the transport header must not be read: a fragment, or a checksum over other
    /// addresses.
    pub(crate) opaque: bool,
    /// The list of a pure ACK, if the header has a valid one.
    pub(crate) list: Option<AckList>,
}

/// The `N` bytes from `offset` on, or the error that gives the end of the bytes.
pub(crate) fn header<const N: usize>(bytes: &[u8], offset: usize) -> Result<&[u8; N], ParseError> {
    bytes
        .get(offset..)
        .and_then(<[u8]>::first_chunk)
        .ok_or(ParseError::Truncated { offset: bytes.len(), needed: offset + N })
}

/// Two bytes of a header as a number. Every caller's index is a constant below the array's length.
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Four bytes of a header as a number. Every caller's index is a constant below the array's length.
pub(crate) fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

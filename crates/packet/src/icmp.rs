//! Echo requests and replies of ICMP (RFC 792) and ICMPv6 (RFC 4443, section 4).

use crate::fields::{ParseError, word};
use crate::{FlowAddresses, Meta, Protocol, SeqNumber};

/// Bytes of the header of an echo message.
pub(crate) const HEADER_LEN: usize = 8;
/// Offset of the checksum.
pub(crate) const CHECKSUM_AT: usize = 2;

/// The types of echo request and reply.
#[derive(Clone, Copy)]
pub(crate) struct EchoTypes {
    request: u8,
    reply: u8,
}

/// RFC 792.
pub(crate) const V4: EchoTypes = EchoTypes { request: 8, reply: 0 };
/// RFC 4443, sections 4.1 and 4.2.
pub(crate) const V6: EchoTypes = EchoTypes { request: 128, reply: 129 };

/// Reads the header at `offset` and returns the ports, with the identifier where [`FlowAddresses`]
/// puts it. Messages other than echo stay [`Protocol::Other`].
pub(crate) fn read(packet: &[u8], offset: usize, types: EchoTypes, meta: &mut Meta) -> Result<(u16, u16), ParseError> {
    let message = packet.get(offset..).unwrap_or_default();
    let Some((&kind, rest)) = message.split_first() else {
        return Err(ParseError::Truncated { offset: packet.len(), needed: offset + 1 });
    };
    let protocol = match kind {
        kind if kind == types.request => Protocol::EchoRequest,
        kind if kind == types.reply => Protocol::EchoReply,
        _ => return Ok((0, 0)),
    };
    if rest.len() < HEADER_LEN - 1 {
        return Err(ParseError::Truncated { offset: packet.len(), needed: offset + HEADER_LEN });
    }
    let identifier = word(message, 4);
    meta.protocol = protocol;
    meta.header_len = (offset + HEADER_LEN) as u8;
    meta.seq = SeqNumber::new(u32::from(word(message, 6)));
    Ok(if protocol == Protocol::EchoRequest { (identifier, 0) } else { (0, identifier) })
}

/// Writes the header of an echo request or reply with checksum 0. The sequence number is the lower
/// half of `meta.seq`.
pub(crate) fn write(out: &mut [u8], meta: &Meta, addresses: &FlowAddresses, types: EchoTypes) {
    let (kind, identifier) = if meta.protocol == Protocol::EchoReply {
        (types.reply, addresses.destination_port)
    } else {
        (types.request, addresses.source_port)
    };
    out[0] = kind;
    out[1..4].fill(0);
    out[4..6].copy_from_slice(&identifier.to_be_bytes());
    out[6..8].copy_from_slice(&(meta.seq.raw() as u16).to_be_bytes());
}

//! Header compression over a line, with the state that RFC 1144 keeps at both ends.
//!
//! A packet is compressed when its transmission begins, behind the queue, so packets that the queue
//! drops cost no state. A packet lost on the wire leaves the decompressor behind: headers that it
//! rebuilds wrongly fail their checksum, and the packets are dropped with
//! [`DropReason::HeaderCompression`](crate::DropReason::HeaderCompression), until the sender's
//! retransmission brings an uncompressed header. After a frame that bit errors have damaged, the
//! decompressor tosses frames that do not name their connection (RFC 1144, section 4.1).
//!
//! Published: RFC 1144; the fixed ratio is the model of simulators of that time.
//! Differs: a header that is rebuilt wrongly, but with an equal checksum, is dropped too, where a
//! real host would accept it. RFC 1144 names the case: an ACK number and a window that moved by
//! opposite amounts.
//! Cost: the headers are written twice and compared with the connection's last.

use std::collections::VecDeque;
use std::sync::Arc;

use lastmile_linklayer::fixed_ratio::FixedRatio;
use lastmile_linklayer::vj::{Compressed, Compressor, Decompressor, MAX_COMPRESSED};
use lastmile_packet::{FlowDirectory, MAX_HEADER_LEN, NumberedFlows, Packet, Protocol};
use lastmile_units::ByteCount;

/// How TCP/IP headers are sent over a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// RFC 1144 with 1 to 256 connections remembered.
    Rfc1144 {
        /// Connection slots at each end.
        slots: u16,
    },
    /// Every TCP header shrinks by a fixed ratio.
    FixedRatio(FixedRatio),
}

/// Both ends of a compressed line.
pub(crate) enum Codec {
    FixedRatio(FixedRatio),
    Rfc1144(Box<VanJacobson>),
}

/// The compressor at the near end, the headers on the wire, the decompressor at the far end.
pub(crate) struct VanJacobson {
    compressor: Compressor,
    decompressor: Decompressor,
    /// The directory of addresses of simulated flows.
    flows: Arc<dyn FlowDirectory>,
    /// The compressed headers of each packet on the wire, in order, and whether a damaged frame is before it.
    on_wire: VecDeque<(bool, Headers)>,
    /// A damaged frame is before the next packet.
    damaged: bool,
}

/// The headers of one packet on the wire.
enum Headers {
    /// Headers other than TCP/IP, unchanged.
    Plain,
    /// Unchanged but for the slot number that they name.
    Uncompressed(Box<[u8]>),
    Compressed {
        bytes: [u8; MAX_COMPRESSED],
        len: u8,
    },
}

impl Codec {
    /// `None` without compression, or for a number of slots out of range.
    pub(crate) fn new(compression: Compression) -> Option<Self> {
        match compression {
            Compression::None => None,
            Compression::FixedRatio(ratio) => Some(Self::FixedRatio(ratio)),
            Compression::Rfc1144 { slots } => Some(Self::Rfc1144(Box::new(VanJacobson {
                compressor: Compressor::new(slots)?,
                decompressor: Decompressor::new(slots)?,
                flows: Arc::new(NumberedFlows),
                on_wire: VecDeque::new(),
                damaged: false,
            }))),
        }
    }

    /// Sets the directory of addresses of simulated flows.
    pub(crate) fn set_flows(&mut self, flows: Arc<dyn FlowDirectory>) {
        match self {
            Self::FixedRatio(_) => {}
            Self::Rfc1144(both) => both.flows = flows,
        }
    }

    /// Compresses a packet as its transmission begins, and returns its IP bytes with compressed
    /// headers. `lost`: it never arrives.
    pub(crate) fn transmit(&mut self, packet: &impl Packet, lost: bool) -> ByteCount {
        let meta = packet.meta();
        match self {
            Self::FixedRatio(ratio) if meta.protocol == Protocol::Tcp => {
                ratio.compressed(meta.ip_bytes(), ByteCount::new(u64::from(meta.header_len)))
            }
            Self::FixedRatio(_) => meta.ip_bytes(),
            Self::Rfc1144(both) => both.transmit(packet, lost),
        }
    }

    /// The packet whose transmission began last arrives damaged. The far end sees that its check sequence is wrong.
    pub(crate) fn damage_last(&mut self) {
        if let Self::Rfc1144(both) = self {
            both.damaged |= both.on_wire.pop_back().is_some();
        }
    }

    /// Decompresses the next packet on the wire as it arrives: true if its headers are rebuilt
    /// exactly.
    pub(crate) fn arrive(&mut self, packet: &impl Packet) -> bool {
        match self {
            Self::FixedRatio(_) => true,
            Self::Rfc1144(both) => both.arrive(packet),
        }
    }
}

impl VanJacobson {
    fn transmit(&mut self, packet: &impl Packet, lost: bool) -> ByteCount {
        let mut buffer = [0; MAX_HEADER_LEN];
        let len = packet.headers(&*self.flows, &mut buffer);
        let compressed = self.compressor.compress(&buffer[..len], packet.meta().ip_len);
        let saved = compressed.saved() as u64;
        let headers = match compressed {
            Compressed::Ip => Headers::Plain,
            Compressed::UncompressedTcp { header, .. } => Headers::Uncompressed(header.into()),
            Compressed::CompressedTcp { header, .. } => {
                let mut bytes = [0; MAX_COMPRESSED];
                bytes[..header.len()].copy_from_slice(header);
                Headers::Compressed { bytes, len: header.len() as u8 }
            }
        };
        if !lost {
            self.on_wire.push_back((std::mem::take(&mut self.damaged), headers));
        }
        packet.meta().ip_bytes().saturating_sub(ByteCount::new(saved))
    }

    fn arrive(&mut self, packet: &impl Packet) -> bool {
        let (damaged, headers) = self.on_wire.pop_front().expect("each packet on the wire has its headers here");
        if damaged {
            self.decompressor.line_error();
        }
        let mut original = [0; MAX_HEADER_LEN];
        let len = packet.headers(&*self.flows, &mut original);
        let restored = match &headers {
            Headers::Plain => return true,
            Headers::Uncompressed(bytes) => self.decompressor.uncompressed(bytes),
            Headers::Compressed { bytes, len } => {
                let bytes = &bytes[..usize::from(*len)];
                let saved = usize::from(packet.meta().header_len) - bytes.len();
                let frame_len = packet.meta().ip_len - u16::try_from(saved).expect("shorter than the packet");
                self.decompressor.compressed(bytes, frame_len).map(|restored| restored.header)
            }
        };
        restored.is_ok_and(|restored| same_to_tcp(restored, &original[..len]))
    }
}

/// True when TCP at the far end would accept the headers: all fields that its checksum covers are
/// equal. The IPv4 identification and header checksum are not covered, and lag after a loss (RFC
/// 1144, section 4).
fn same_to_tcp(restored: &[u8], original: &[u8]) -> bool {
    const IDENTIFICATION: core::ops::Range<usize> = 4..6;
    const HEADER_CHECKSUM: core::ops::Range<usize> = 10..12;
    restored.len() == original.len()
        && restored.iter().zip(original).enumerate().all(|(at, (restored, original))| {
            restored == original || IDENTIFICATION.contains(&at) || HEADER_CHECKSUM.contains(&at)
        })
}

#[cfg(test)]
mod tests {
    use lastmile_packet::{FlowId, Meta, SeqNumber, TcpFlags};

    use super::*;

    fn ack(flow: u32, number: u32) -> Meta {
        let (flow, seq, ack) = (FlowId::new(flow), SeqNumber::new(1), SeqNumber::new(number));
        let ip_id = (number / 100) as u16;
        Meta { flow, seq, ack, ip_len: 40, ip_id, header_len: 40, flags: TcpFlags::ACK, ..Meta::default() }
    }

    /// A frame that changes the connection is damaged, so the next of that connection, which does not name it, would be
    /// taken for one of the other.
    #[test]
    fn a_damaged_frame_leaves_other_connections_alone() {
        let mut codec = Codec::new(Compression::Rfc1144 { slots: 16 }).expect("slots in range");
        let carry = |codec: &mut Codec, packet: Meta| {
            codec.transmit(&packet, false);
            codec.arrive(&packet)
        };
        let before = [ack(2, 100), ack(4, 100), ack(4, 200)].map(|packet| carry(&mut codec, packet));
        assert_eq!(before, [true; 3]);
        codec.transmit(&ack(2, 200), false);
        codec.damage_last();
        let after = [ack(2, 300), ack(4, 300), ack(4, 400)].map(|packet| carry(&mut codec, packet));
        assert_eq!(after, [false, true, true], "the first names no connection");
    }
}

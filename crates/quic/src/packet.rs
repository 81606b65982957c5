//! Packets and frames as plain data, and their sizes in bytes.
//!
//! Published: RFC 9000, sections 17 (packets) and 19 (frames), appendix A.2 (packet numbers); RFC 9001, sections 5.3
//! (the tag of the AEAD) and 5.4.2 (the sample of header protection); draft-ietf-quic-ack-frequency, sections 4 and 5.
//!
//! Differs: packets are not coalesced; the first packet of the server's handshake, which has Initial and Handshake
//! packets in one datagram, counts as one Initial packet. A STREAM frame always has its length. Tokens are empty.

use lastmile_tcp::ranges::Range;
use lastmile_units::Duration;

use crate::config::LEAST_DATAGRAM;
use crate::varint;

/// The tag of AES-GCM and ChaCha20-Poly1305 (RFC 9001, section 5.3).
const TAG: u64 = 16;
/// RFC 9001, section 5.4.2: packet number and payload have at least 4 bytes, so that the sample exists.
const LEAST_PROTECTED: u64 = 4;
/// The unit of the ACK Delay field in microseconds: 2^3 by default (RFC 9000, section 18.2: `ack_delay_exponent`).
pub(crate) const ACK_DELAY_UNIT_US: u64 = 8;
/// Bytes of a frame type below 64, and of `ACK_FREQUENCY` (0xaf).
const TYPE: u64 = 1;
const ACK_FREQUENCY_TYPE: u64 = 2;
/// The stream ID of the connection's only stream, 0.
const STREAM_ID: u64 = 1;
/// The length field of a STREAM or CRYPTO frame, and of a long header, for 64 to 16 383 bytes.
const LENGTH: u64 = 2;

/// The form of a packet's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// A long header with a token: it begins a handshake, in a datagram of at least 1200 bytes.
    Initial,
    /// A long header.
    Handshake,
    /// A short header, for application data.
    #[default]
    Short,
}

/// Octets of a stream, sent together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chunk {
    /// The first octet.
    pub start: u64,
    /// One past the last octet; equal to `start` for a FIN alone.
    pub end: u64,
    /// The stream ends here.
    pub fin: bool,
}

impl Chunk {
    /// The octets; `None` for a FIN alone.
    pub(crate) fn range(self) -> Option<Range> {
        (self.start < self.end).then_some(Range { start: self.start, end: self.end })
    }

    /// Bytes of the header of a STREAM frame at this offset (RFC 9000, section 19.8).
    pub(crate) const fn stream_header(start: u64) -> u64 {
        let offset = if start == 0 { 0 } else { varint::size(start) };
        TYPE + STREAM_ID + offset + LENGTH
    }

    /// Bytes of the header of a CRYPTO frame at this offset (RFC 9000, section 19.6).
    pub(crate) const fn crypto_header(start: u64) -> u64 {
        TYPE + varint::size(start) + LENGTH
    }
}

/// An ACK frame (RFC 9000, section 19.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AckFrame {
    /// The range of packet numbers that ends with the largest one.
    pub first: Range,
    /// The ranges below it, from the highest down.
    pub more: Vec<Range>,
    /// The time since the largest one arrived, in steps of 8 us.
    pub delay: Duration,
}

impl AckFrame {
    /// The largest packet number that it acknowledges.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.first.end - 1
    }

    /// The acknowledged ranges, from the highest down.
    pub fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        core::iter::once(self.first).chain(self.more.iter().copied())
    }

    /// The bytes of the frame: type, largest number, delay, number of ranges, first range, and for each further range
    /// the gap and the length.
    #[must_use]
    pub fn size(&self) -> u64 {
        let delay = self.delay.as_us() / ACK_DELAY_UNIT_US;
        let head = TYPE + varint::size(self.largest()) + varint::size(delay) + varint::size(self.more.len() as u64);
        let mut above = self.first;
        let mut bytes = head + varint::size(above.len() - 1);
        for range in &self.more {
            // Section 19.3.1: gap = smallest number above - largest number below - 2.
            bytes += varint::size(above.start - range.end - 1) + varint::size(range.len() - 1);
            above = *range;
        }
        bytes
    }
}

/// An `ACK_FREQUENCY` frame (draft-ietf-quic-ack-frequency, section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckFrequencyFrame {
    /// Sequence number of the frame.
    pub sequence: u64,
    /// Ack-eliciting packets that the peer may receive without an acknowledgement.
    pub threshold: u64,
    /// Requested Max Ack Delay.
    pub max_delay: Duration,
    /// Reordering Threshold.
    pub reordering: u64,
}

impl AckFrequencyFrame {
    fn size(&self) -> u64 {
        let values = [self.sequence, self.threshold, self.max_delay.as_us(), self.reordering];
        ACK_FREQUENCY_TYPE + values.into_iter().map(varint::size).sum::<u64>()
    }
}

/// Frames of a packet that consist of their type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// PING (RFC 9000, section 19.2).
    pub ping: bool,
    /// HANDSHAKE_DONE (RFC 9000, section 19.20).
    pub handshake_done: bool,
    /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency, section 5).
    pub immediate_ack: bool,
}

/// The frames of a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frames {
    /// ACK.
    pub ack: Option<AckFrame>,
    /// CRYPTO.
    pub crypto: Option<Chunk>,
    /// Up to two STREAM frames: a repaired gap and what follows it.
    pub streams: [Option<Chunk>; 2],
    /// `MAX_STREAM_DATA` and `MAX_DATA` with this value (RFC 9000, sections 19.9 and 19.10).
    pub max_data: Option<u64>,
    /// `ACK_FREQUENCY`.
    pub ack_frequency: Option<AckFrequencyFrame>,
    /// Frames without fields.
    pub flags: Flags,
}

impl Frames {
    /// RFC 9000, section 1.2: any frame but ACK, PADDING and CONNECTION_CLOSE elicits an acknowledgement.
    #[must_use]
    pub fn elicits_ack(&self) -> bool {
        self.carries_data() || self.max_data.is_some() || self.ack_frequency.is_some() || self.flags != Flags::default()
    }

    /// The packet carries octets of a stream or of the handshake.
    #[must_use]
    pub fn carries_data(&self) -> bool {
        self.crypto.is_some() || self.streams[0].is_some()
    }

    /// Bytes of the frames.
    #[must_use]
    pub fn size(&self) -> u64 {
        let ack = self.ack.as_ref().map_or(0, AckFrame::size);
        let crypto = self.crypto.map_or(0, |chunk| Chunk::crypto_header(chunk.start) + chunk.end - chunk.start);
        let stream = |chunk: &Chunk| Chunk::stream_header(chunk.start) + chunk.end - chunk.start;
        let streams: u64 = self.streams.iter().flatten().map(stream).sum();
        let windows = |value| 2 * TYPE + STREAM_ID + 2 * varint::size(value);
        let frequency = self.ack_frequency.map_or(0, |frame| frame.size());
        let Flags { ping, handshake_done, immediate_ack } = self.flags;
        let flags = [ping, handshake_done, immediate_ack].into_iter().filter(|set| *set).count() as u64;
        ack + crypto + streams + self.max_data.map_or(0, windows) + frequency + flags
    }
}

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Packet number.
    pub number: u64,
    /// Bytes of the UDP payload.
    pub size: u16,
    /// The form of its header.
    pub form: Form,
    /// The spin bit of a short header (RFC 9000, section 17.4).
    pub spin: bool,
    /// The frames of the packet.
    pub frames: Frames,
}

/// The header of a packet, for its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) form: Form,
    pub(crate) number: u64,
    /// The largest number of its sender that the peer has acknowledged.
    pub(crate) acked: Option<u64>,
    /// Bytes of the connection ID.
    pub(crate) connection_id: u8,
}

impl Header {
    /// Bytes of the encoded packet number: RFC 9000, appendix A.2, at least twice the numbers that are not
    /// acknowledged.
    pub(crate) fn number_len(self) -> u64 {
        let unacked = self.acked.map_or(self.number + 1, |acked| self.number - acked);
        // The bits of log2(unacked) + 1, rounded up.
        let bits = u64::from(unacked.next_power_of_two().trailing_zeros()) + 1;
        bits.div_ceil(8).clamp(1, 4)
    }

    /// Bytes of the packet without its frames: header and tag.
    pub(crate) fn overhead(self) -> u64 {
        let id = u64::from(self.connection_id);
        let header = match self.form {
            Form::Short => 1 + id,
            // Flags, version, two connection IDs with their lengths, length; Initial: length of the token.
            Form::Handshake => 1 + 4 + 2 * (1 + id) + LENGTH,
            Form::Initial => 1 + 4 + 2 * (1 + id) + 1 + LENGTH,
        };
        header + self.number_len() + TAG
    }

    /// Bytes of the UDP payload of a packet with frames of `frames` bytes, padding included.
    pub(crate) fn packet_size(self, frames: u64) -> u64 {
        let padding = LEAST_PROTECTED.saturating_sub(self.number_len() + frames);
        let size = self.overhead() + frames + padding;
        if self.form == Form::Initial { size.max(LEAST_DATAGRAM.into()) } else { size }
    }
}

/// The packets of a long transfer in order, without losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteadySizes {
    /// Octets of the stream in a full data packet.
    pub payload: u64,
    /// Bytes of the UDP payload of an acknowledgement.
    pub ack: u64,
}

impl SteadySizes {
    /// The sizes with datagrams of `datagram` bytes. Numbers, offsets and ranges are those after some megabytes.
    #[must_use]
    pub fn new(datagram: u16, connection_id: u8) -> Self {
        // Numbers from 64 on and below 16 384, acknowledged one round trip ago; offsets from 2^14 on and below 2^30.
        let header = Header { form: Form::Short, number: 10_000, acked: Some(9_900), connection_id };
        let overhead = header.overhead() + Chunk::stream_header(1 << 20);
        let ack = AckFrame { first: Range { start: 9_000, end: 10_000 }, more: Vec::new(), delay: Duration::ZERO };
        // A receiver's own packets are acknowledged rarely.
        let header = Header { number: 5_000, acked: Some(0), ..header };
        Self { payload: u64::from(datagram).saturating_sub(overhead), ack: header.packet_size(ack.size()) }
    }
}

#[cfg(test)]
mod tests;

//! The sending end of RFC 1144 header compression.

use super::header::{self, ACK, FIN, PROTOCOL_TCP, PSH, RST, SYN, Shape, Slot, URG, ip, read16, read32, tcp};
use super::{DEFAULT_SLOTS, FrameKind, MAX_COMPRESSED, MAX_SLOTS, mask};

/// The replacement for a packet's headers; the data follows unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressed<'a> {
    /// The packet is sent unchanged: it is not TCP, or cannot be compressed.
    Ip,
    /// Headers of unchanged length; the protocol field holds the slot.
    UncompressedTcp {
        /// The slot in which the receiver stores the headers.
        slot: u8,
        /// IP and TCP header with the slot in the protocol field.
        header: &'a [u8],
    },
    /// A compressed header of 3 to 16 bytes.
    CompressedTcp {
        /// Mask, checksum and differences.
        header: &'a [u8],
        /// Length of the IP and TCP headers that it replaces.
        replaces: usize,
    },
}

impl Compressed<'_> {
    /// The kind with which the line must mark the frame.
    #[must_use]
    pub const fn kind(&self) -> FrameKind {
        match self {
            Self::Ip => FrameKind::Ip,
            Self::UncompressedTcp { .. } => FrameKind::UncompressedTcp,
            Self::CompressedTcp { .. } => FrameKind::CompressedTcp,
        }
    }

    /// Bytes saved: 24 to 117 for a compressed header, else 0.
    #[must_use]
    pub const fn saved(&self) -> usize {
        match self {
            Self::CompressedTcp { header, replaces } => *replaces - header.len(),
            Self::Ip | Self::UncompressedTcp { .. } => 0,
        }
    }
}

/// The sending end of a line. Stores the last header sent of each connection.
#[derive(Clone, Debug)]
pub struct Compressor {
    slots: Box<[Slot]>,
    /// Slot numbers, the most recently used first.
    recent: Box<[u8]>,
    /// The slot of the preceding packet, if the receiver knows it.
    last_sent: Option<u8>,
    out: [u8; MAX_COMPRESSED],
}

impl Default for Compressor {
    /// 16 slots; a packet names its slot only if it differs from the preceding packet's.
    fn default() -> Self {
        Self::new(DEFAULT_SLOTS).expect("within bounds")
    }
}

impl Compressor {
    /// A compressor with `slots` slots, 1 to [`MAX_SLOTS`]; `None` otherwise. The receiver needs at
    /// least this number.
    #[must_use]
    pub fn new(slots: u16) -> Option<Self> {
        if slots == 0 || slots > MAX_SLOTS {
            return None;
        }
        Some(Self {
            slots: vec![Slot::EMPTY; usize::from(slots)].into(),
            // The RFC assigns its slots from the last to the first. The order has no effect.
            recent: (0..slots).rev().map(|slot| u8::try_from(slot).expect("at most 256 slots")).collect(),
            last_sent: None,
            out: [0; MAX_COMPRESSED],
        })
    }

    /// The headers to send for a packet of `total_len` bytes that begins with `header`.
    ///
    /// `header` must hold at least the IP and TCP headers with their options; further bytes are
    /// ignored. A packet whose own length field differs from `total_len`, or that is not whole IPv4
    /// and TCP, becomes [`Compressed::Ip`].
    pub fn compress(&mut self, header: &[u8], total_len: u16) -> Compressed<'_> {
        let Some(shape) = compressible(header, total_len) else { return Compressed::Ip };
        let header = &header[..shape.data];
        let (slot, known) = self.touch(header, shape);
        let state = &mut self.slots[usize::from(slot)];
        let previous = if known { state.header().filter(|&(_, previous)| previous == shape) } else { None };
        let name = (self.last_sent != Some(slot)).then_some(slot);
        let length = previous.and_then(|(previous, _)| differences(previous, header, shape, name, &mut self.out));
        self.last_sent = Some(slot);
        let kept = state.remember(header, shape, slot);
        match length {
            Some(length) => Compressed::CompressedTcp { header: &self.out[..length], replaces: shape.data },
            None => Compressed::UncompressedTcp { slot, header: kept },
        }
    }

    /// Moves the connection's slot to the front. Returns the slot, and whether it already held this
    /// connection.
    fn touch(&mut self, header: &[u8], shape: Shape) -> (u8, bool) {
        let same = |&slot: &u8| {
            self.slots[usize::from(slot)]
                .header()
                .is_some_and(|(known, known_shape)| connection(known, known_shape) == connection(header, shape))
        };
        let found = self.recent.iter().position(same);
        // No slot holds the connection: it takes the least recently used one.
        let at = found.unwrap_or(self.recent.len() - 1);
        self.recent[..=at].rotate_right(1);
        (self.recent[0], found.is_some())
    }
}

/// Addresses and ports.
fn connection(header: &[u8], shape: Shape) -> (&[u8], &[u8]) {
    let ports = shape.tcp + tcp::PORTS;
    (&header[ip::ADDRESSES..ip::OPTIONS], &header[ports..ports + 4])
}

/// The shape of a whole, unfragmented packet of an open connection. Of RFC 793's flags only ACK,
/// PSH and URG may be set.
fn compressible(header: &[u8], total_len: u16) -> Option<Shape> {
    let shape = Shape::of(header)?;
    let more_or_offset = read16(header, ip::FRAGMENT) & 0x3fff;
    let flags = header[shape.tcp + tcp::FLAGS];
    let plain = header[ip::PROTOCOL] == PROTOCOL_TCP
        && read16(header, ip::TOTAL_LENGTH) == total_len
        && more_or_offset == 0
        && flags & (SYN | FIN | RST | ACK) == ACK;
    plain.then_some(shape)
}

/// Whether the fields without an encoding are unchanged: RFC 1144 section 3.2.2, and the TCP bits
/// defined since.
fn constant_fields_match(previous: &[u8], header: &[u8], shape: Shape) -> bool {
    let same = |from: usize, to: usize| previous[from..to] == header[from..to];
    let tcp = shape.tcp;
    let flags = |header: &[u8]| header[tcp + tcp::FLAGS] & !(PSH | URG);
    same(ip::VERSION_AND_LENGTH, ip::TOTAL_LENGTH)
        && same(ip::FRAGMENT, ip::PROTOCOL)
        && same(ip::OPTIONS, tcp)
        && same(tcp + tcp::OFFSET, tcp + tcp::FLAGS)
        && flags(previous) == flags(header)
        && same(tcp + tcp::OPTIONS, shape.data)
}

/// Writes the compressed header into `out` and returns its length; `None` if the packet must be
/// sent uncompressed.
fn differences(
    previous: &[u8],
    header: &[u8],
    shape: Shape,
    name: Option<u8>,
    out: &mut [u8; MAX_COMPRESSED],
) -> Option<usize> {
    if !constant_fields_match(previous, header, shape) {
        return None;
    }
    let at = shape.tcp;
    let grown16 = |field: usize| read16(header, field).wrapping_sub(read16(previous, field));
    let grown32 = |field: usize| read32(header, field).wrapping_sub(read32(previous, field));
    let flags = header[at + tcp::FLAGS];

    let mut mask = 0;
    let mut numbers = Numbers::new(out, name, read16(header, at + tcp::CHECKSUM));
    let first = numbers.length;
    if flags & URG != 0 {
        mask |= mask::URGENT;
        numbers.push(read16(header, at + tcp::URGENT));
    } else if grown16(at + tcp::URGENT) != 0 {
        // The urgent pointer changes without the flag: of no use, but RFC 793 allows it.
        return None;
    }
    let window = grown16(at + tcp::WINDOW);
    if window != 0 {
        mask |= mask::WINDOW;
        numbers.push(window);
    }
    // Growth above 65 535 fails; a decrease wraps to more than 65 535 and fails too.
    let ack = u16::try_from(grown32(at + tcp::ACK)).ok()?;
    if ack != 0 {
        mask |= mask::ACK;
        numbers.push(ack);
    }
    let sequence = u16::try_from(grown32(at + tcp::SEQUENCE)).ok()?;
    if sequence != 0 {
        mask |= mask::SEQUENCE;
        numbers.push(sequence);
    }

    let last_data = header::data_length(previous, shape);
    let by_last_data = u32::from(sequence) == last_data && previous[at + tcp::FLAGS] & URG == 0;
    match mask {
        // Data right after an ACK is new. Otherwise the packet is probably a retransmission, a
        // duplicate ACK or a window probe, and the receiver may have missed the original.
        0 if last_data > 0 || header::data_length(header, shape) == 0 => return None,
        mask::ECHO | mask::DATA => return None,
        mask::SEQUENCE_AND_ACK if by_last_data && ack == sequence => {
            mask = mask::ECHO;
            numbers.length = first;
        }
        mask::SEQUENCE if by_last_data => {
            mask = mask::DATA;
            numbers.length = first;
        }
        _ => {}
    }

    let id = grown16(ip::ID);
    if id != 1 {
        mask |= mask::IP_ID;
        numbers.push(id);
    }
    if flags & PSH != 0 {
        mask |= mask::PUSH;
    }
    if name.is_some() {
        mask |= mask::CONNECTION;
    }
    let length = numbers.length;
    out[0] = mask;
    Some(length)
}

/// The compressed header under construction; its mask is written last.
struct Numbers<'a> {
    out: &'a mut [u8; MAX_COMPRESSED],
    length: usize,
}

impl<'a> Numbers<'a> {
    fn new(out: &'a mut [u8; MAX_COMPRESSED], name: Option<u8>, checksum: u16) -> Self {
        let mut numbers = Self { out, length: 1 };
        if let Some(slot) = name {
            numbers.append(&[slot]);
        }
        numbers.append(&checksum.to_be_bytes());
        numbers
    }

    /// Appends one byte for 1 to 255, and a zero byte and two more for 0 and 256 to 65 535.
    fn push(&mut self, number: u16) {
        match number.to_be_bytes() {
            [0, low] if low != 0 => self.append(&[low]),
            [high, low] => self.append(&[0, high, low]),
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.out[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

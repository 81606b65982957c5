//! The receiving end of RFC 1144 header compression.

use core::fmt;

use super::header::{self, PROTOCOL_TCP, PSH, Shape, Slot, URG, ip, read16, read32, tcp, write16, write32};
use super::{DEFAULT_SLOTS, MAX_SLOTS, mask};

/// Restored headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored<'a> {
    /// IP and TCP header. Lengths and IP checksum are right, the TCP checksum is the sender's.
    pub header: &'a [u8],
    /// Length of the compressed header in the frame; the data follows it.
    pub consumed: usize,
}

/// Why a frame is tossed. After every reason but [`Toss::AfterError`] only a frame that names its
/// connection is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Toss {
    /// The line lost a frame, and this frame relies on the slot of the preceding one.
    AfterError,
    /// A slot number above the number of slots.
    NoSuchSlot(u8),
    /// A slot without a header, or no current slot.
    EmptySlot,
    /// The frame ends within its header.
    Truncated,
    /// An uncompressed frame without whole IPv4 and TCP headers.
    Malformed,
    /// More than 65 535 bytes with restored headers.
    TooLong,
}

impl core::error::Error for Toss {}

impl fmt::Display for Toss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterError => f.write_str("follows a line error without naming its connection"),
            Self::NoSuchSlot(slot) => write!(f, "names slot {slot}, which does not exist"),
            Self::EmptySlot => f.write_str("names a slot that holds no header yet"),
            Self::Truncated => f.write_str("ends within its compressed header"),
            Self::Malformed => f.write_str("holds no whole IPv4 and TCP headers"),
            Self::TooLong => f.write_str("is longer than 65535 bytes once restored"),
        }
    }
}

/// The receiving end of a line.
#[derive(Clone, Debug)]
pub struct Decompressor {
    slots: Box<[Slot]>,
    current: Current,
}

/// The slot of a frame that has no connection number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    /// The slot of the preceding frame.
    Slot(u8),
    /// Unknown: RFC 1144's toss flag is set.
    Unknown,
}

impl Default for Decompressor {
    /// 16 slots.
    fn default() -> Self {
        Self::new(DEFAULT_SLOTS).expect("within bounds")
    }
}

impl Decompressor {
    /// A decompressor with `slots` slots, 1 to [`MAX_SLOTS`]; `None` otherwise.
    #[must_use]
    pub fn new(slots: u16) -> Option<Self> {
        (1..=MAX_SLOTS)
            .contains(&slots)
            .then(|| Self { slots: vec![Slot::EMPTY; usize::from(slots)].into(), current: Current::Unknown })
    }

    /// Records that the line lost or damaged a frame. Frames are tossed until one names its
    /// connection (RFC 1144 section 4.1).
    pub fn line_error(&mut self) {
        self.current = Current::Unknown;
    }

    /// Stores and returns the headers of a frame of kind `UncompressedTcp` that begins with
    /// `header`.
    ///
    /// # Errors
    /// A frame that is not whole, or a slot that does not exist.
    pub fn uncompressed(&mut self, header: &[u8]) -> Result<&[u8], Toss> {
        self.current = Current::Unknown;
        let shape = Shape::of(header).ok_or(Toss::Malformed)?;
        let number = header[ip::PROTOCOL];
        let slot = self.slots.get_mut(usize::from(number)).ok_or(Toss::NoSuchSlot(number))?;
        self.current = Current::Slot(number);
        Ok(slot.remember(header, shape, PROTOCOL_TCP))
    }

    /// The headers of a frame of kind `CompressedTcp` of `frame_len` bytes that begins with
    /// `frame`.
    ///
    /// `frame` must hold at least the compressed header; the data behind it may be absent.
    ///
    /// # Errors
    /// A frame that belongs to no known connection, or that is not whole. The state of its slot is
    /// then unchanged.
    pub fn compressed(&mut self, frame: &[u8], frame_len: u16) -> Result<Restored<'_>, Toss> {
        let mut reader = Reader { frame, at: 0 };
        let truncated = |current: &mut Current| {
            *current = Current::Unknown;
            Toss::Truncated
        };
        let Some(mask) = reader.byte() else { return Err(truncated(&mut self.current)) };
        if mask & mask::CONNECTION != 0 {
            let Some(number) = reader.byte() else { return Err(truncated(&mut self.current)) };
            self.current = Current::Slot(number);
        }
        let Current::Slot(number) = self.current else { return Err(Toss::AfterError) };
        // Any error below leaves the current slot unknown until a frame succeeds.
        self.current = Current::Unknown;
        let slot = self.slots.get_mut(usize::from(number)).ok_or(Toss::NoSuchSlot(number))?;
        let (header, shape) = slot.header_mut().ok_or(Toss::EmptySlot)?;
        let change = Change::read(&mut reader, mask, header, shape).ok_or(Toss::Truncated)?;
        let consumed = reader.at;
        let data = usize::from(frame_len).checked_sub(consumed).ok_or(Toss::Truncated)?;
        let total_len = u16::try_from(shape.data + data).map_err(|_| Toss::TooLong)?;
        change.apply(header, shape, total_len);
        self.current = Current::Slot(number);
        Ok(Restored { header, consumed })
    }
}

/// The new values in a compressed header.
struct Change {
    checksum: u16,
    flags: u8,
    urgent: u16,
    window: u16,
    ack: u32,
    sequence: u32,
    id: u16,
}

impl Change {
    /// Reads the new values; `None` if the frame ends too early.
    fn read(reader: &mut Reader<'_>, mask: u8, header: &[u8], shape: Shape) -> Option<Self> {
        let at = shape.tcp;
        let checksum = reader.pair()?;
        let keep = header[at + tcp::FLAGS] & !(PSH | URG);
        let mut change = Self {
            checksum,
            flags: keep | if mask & mask::PUSH != 0 { PSH } else { 0 },
            urgent: read16(header, at + tcp::URGENT),
            window: read16(header, at + tcp::WINDOW),
            ack: read32(header, at + tcp::ACK),
            sequence: read32(header, at + tcp::SEQUENCE),
            id: read16(header, ip::ID).wrapping_add(1),
        };
        let last_data = header::data_length(header, shape);
        match mask & mask::SPECIALS {
            mask::ECHO => {
                change.ack = change.ack.wrapping_add(last_data);
                change.sequence = change.sequence.wrapping_add(last_data);
            }
            mask::DATA => change.sequence = change.sequence.wrapping_add(last_data),
            changed => {
                if changed & mask::URGENT != 0 {
                    change.flags |= URG;
                    change.urgent = reader.number()?;
                }
                if changed & mask::WINDOW != 0 {
                    change.window = change.window.wrapping_add(reader.number()?);
                }
                if changed & mask::ACK != 0 {
                    change.ack = change.ack.wrapping_add(reader.number()?.into());
                }
                if changed & mask::SEQUENCE != 0 {
                    change.sequence = change.sequence.wrapping_add(reader.number()?.into());
                }
            }
        }
        if mask & mask::IP_ID != 0 {
            change.id = read16(header, ip::ID).wrapping_add(reader.number()?);
        }
        Some(change)
    }

    fn apply(&self, header: &mut [u8], shape: Shape, total_len: u16) {
        let at = shape.tcp;
        write16(header, at + tcp::CHECKSUM, self.checksum);
        header[at + tcp::FLAGS] = self.flags;
        write16(header, at + tcp::URGENT, self.urgent);
        write16(header, at + tcp::WINDOW, self.window);
        write32(header, at + tcp::ACK, self.ack);
        write32(header, at + tcp::SEQUENCE, self.sequence);
        write16(header, ip::ID, self.id);
        write16(header, ip::TOTAL_LENGTH, total_len);
        let checksum = header::ip_checksum(&header[..at]);
        write16(header, ip::CHECKSUM, checksum);
    }
}

/// Reads bytes from the front of a frame.
struct Reader<'a> {
    frame: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.frame.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn pair(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// One byte, or two after a zero byte.
    fn number(&mut self) -> Option<u16> {
        match self.byte()? {
            0 => self.pair(),
            short => Some(short.into()),
        }
    }
}

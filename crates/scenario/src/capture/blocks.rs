//! The blocks of a pcapng file (IETF draft-ietf-opsawg-pcapng, section 3), whatever they have in them.

use std::io::{ErrorKind, Read};

use pcap_file::{Endianness, PcapError};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;

/// Octets of the type and the first length, and of these with the second length.
const HEAD: usize = 8;
const FRAME: usize = 12;

/// The longest block that is read. A packet has at most 262 144 octets; tables of names and keys may be longer.
const LONGEST: usize = 8_000_000;

/// Octets that are read at once.
const BUFFER: usize = 1 << 18;

/// A block.
pub(super) struct Block<'a> {
    pub(super) kind: u32,
    pub(super) order: Endianness,
    pub(super) body: &'a [u8],
}

impl<'a> Block<'a> {
    /// Octets of the whole block in the file.
    pub(super) fn length(&self) -> u64 {
        (self.body.len() + FRAME) as u64
    }

    /// The 32 bits with this number.
    #[inline]
    pub(super) fn word(&self, number: usize) -> Option<u32> {
        Some(word(self.order, *self.body.get(4 * number..)?.first_chunk()?))
    }

    /// The options from `at` on, by code: up to their end, that of the block, or one that is longer than the rest.
    pub(super) fn options(&self, at: usize) -> impl Iterator<Item = (u16, &'a [u8])> {
        const END: u16 = 0;
        let order = self.order;
        let mut rest = self.body.get(at..).unwrap_or_default();
        std::iter::from_fn(move || {
            let (head, values) = rest.split_first_chunk::<4>()?;
            let [code, length] = [[head[0], head[1]], [head[2], head[3]]].map(|half| match order {
                Endianness::Big => u16::from_be_bytes(half),
                Endianness::Little => u16::from_le_bytes(half),
            });
            let value = values.get(..usize::from(length)).filter(|_| code != END)?;
            rest = values.get(value.len().next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }
}

/// Words of four octets each.
#[inline]
pub(super) fn words<const N: usize, const WORDS: usize>(octets: &[u8; N]) -> [[u8; 4]; WORDS] {
    const { assert!(N == 4 * WORDS) };
    std::array::from_fn(|number| std::array::from_fn(|octet| octets[4 * number + octet]))
}

#[inline]
pub(super) fn word(order: Endianness, octets: [u8; 4]) -> u32 {
    match order {
        Endianness::Big => u32::from_be_bytes(octets),
        Endianness::Little => u32::from_le_bytes(octets),
    }
}

/// Reads blocks one after another.
pub(super) struct Blocks<R> {
    file: R,
    buffer: Vec<u8>,
    /// The part of the buffer that is not handed over.
    from: usize,
    to: usize,
    /// The byte order of the section.
    order: Endianness,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(file: R) -> Self {
        Self { file, buffer: vec![0; BUFFER], from: 0, to: 0, order: Endianness::Big }
    }

    /// The next block; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Block<'_>>, PcapError> {
        if !self.has(FRAME)? {
            return if self.from == self.to { Ok(None) } else { Err(PcapError::IncompleteBuffer) };
        }
        let Some(head) = self.buffer[self.from..].first_chunk::<FRAME>() else { return Ok(None) };
        let [kind, length, magic] = words(head);
        // The type of a section's header is the same in both orders.
        if u32::from_be_bytes(kind) == SECTION_HEADER {
            self.order = match u32::from_be_bytes(magic) {
                0x1a2b_3c4d => Endianness::Big,
                0x4d3c_2b1a => Endianness::Little,
                _ => return Err(PcapError::InvalidField("the byte order of a section")),
            };
        }
        let order = self.order;
        let (kind, length) = (word(order, kind), word(order, length) as usize);
        if !(FRAME..=LONGEST).contains(&length) || !length.is_multiple_of(4) {
            return Err(PcapError::InvalidField("the length of a block"));
        }
        if !self.has(length)? {
            return Err(PcapError::IncompleteBuffer);
        }
        let block = &self.buffer[self.from..self.from + length];
        self.from += length;
        match block.split_last_chunk() {
            Some((block, again)) if word(order, *again) as usize == length => {
                Ok(Some(Block { kind, order, body: &block[HEAD..] }))
            }
            _ => Err(PcapError::InvalidField("the two lengths of a block differ")),
        }
    }

    /// True if the file has so many octets more. They are in the buffer then.
    #[inline]
    fn has(&mut self, octets: usize) -> Result<bool, PcapError> {
        if self.to - self.from >= octets { Ok(true) } else { self.load(octets) }
    }

    fn load(&mut self, octets: usize) -> Result<bool, PcapError> {
        self.buffer.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.buffer.len() < octets {
            self.buffer.resize(octets, 0);
        }
        while self.to < octets {
            match self.file.read(&mut self.buffer[self.to..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.to += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(PcapError::IoError(error)),
            }
        }
        Ok(true)
    }
}

//! The TCP options of a segment, in 32 bytes of values and one that says which there are.
//!
//! Published: RFC 9293, section 3.1; RFC 2018 (SACK); RFC 7323 (window scale, timestamps).
//! Differs: of options that are not understood only that they are there is kept.
//! Cost: a copy of two words for each; a list of acknowledgement numbers is read byte by byte.

use crate::{AckList, SeqNumber, list};

/// A selective acknowledgement (RFC 2018): bytes `left..right` have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlock {
    /// First byte of the block.
    pub left: SeqNumber,
    /// First byte after it.
    pub right: SeqNumber,
}

/// Which TCP options a segment carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct OptionSet(pub(crate) u8);

impl OptionSet {
    const TIMESTAMPS: u8 = 0x01;
    const SACK_COUNT: u8 = 0x06;
    const MSS: u8 = 0x08;
    const WINDOW_SCALE: u8 = 0x10;
    const SACK_PERMITTED: u8 = 0x20;
    const UNKNOWN: u8 = 0x40;
    const LIST: u8 = 0x80;
}

/// Options that a SYN carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SynOptions {
    /// Maximum segment size (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018, section 2).
    pub sack_permitted: bool,
}

/// The TCP options of a segment: timestamps beside SACK blocks (at most three), beside the options of a SYN, or beside the
/// list of acknowledgement numbers that the segment's IP header carries, which has no room of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    pub(crate) words: OptionWords,
    pub(crate) set: OptionSet,
}

/// The values of TCP options, apart from the [`OptionSet`] that says which there are, so that both pack into [`crate::Meta`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OptionWords {
    /// Timestamp value and echo reply (RFC 7323, section 3).
    timestamps: (u32, u32),
    /// SACK blocks; a SYN keeps MSS and window scale in the first words instead; a list its length in the first byte, then
    /// its bytes. The list of a signal begins in the timestamps.
    sack: [u32; 6],
}

impl OptionWords {
    const BYTES: usize = size_of::<Self>();
    /// Where the words of SACK begin.
    const SACK_AT: usize = 8;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = [self.timestamps.0, self.timestamps.1].into_iter().chain(self.sack);
        for (out, word) in bytes.chunks_exact_mut(4).zip(words) {
            out.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { timestamps: (word(0), word(4)), sack: [8, 12, 16, 20, 24, 28].map(word) }
    }

    #[inline]
    pub(crate) const fn are_zero(&self) -> bool {
        let Self { timestamps: (value, echo_reply), sack: [a, b, c, d, e, f] } = self;
        *value | *echo_reply | *a | *b | *c | *d | *e | *f == 0
    }

    /// The words two by two: the timestamps, then the words of SACK.
    pub(crate) const fn pairs(self) -> [[u32; 2]; 4] {
        let Self { timestamps: (value, echo_reply), sack: [a, b, c, d, e, f] } = self;
        [[value, echo_reply], [a, b], [c, d], [e, f]]
    }

    pub(crate) const fn from_pairs([[value, echo_reply], [a, b], [c, d], [e, f]]: [[u32; 2]; 4]) -> Self {
        Self { timestamps: (value, echo_reply), sack: [a, b, c, d, e, f] }
    }

    /// The words with a list from byte `at` on.
    pub(crate) fn with_list(self, at: usize, list: &[u8]) -> Self {
        let mut bytes = self.to_bytes();
        bytes[at..].fill(0);
        bytes[at] = list.len() as u8;
        bytes[at + 1..=at + list.len()].copy_from_slice(list);
        Self::from_bytes(&bytes)
    }

    pub(crate) fn list(self, at: usize) -> AckList {
        let bytes = self.to_bytes();
        let list = bytes.get(at + 1..=at + usize::from(bytes[at])).unwrap_or_default();
        AckList::read(list).unwrap_or(AckList::EMPTY)
    }
}

impl Options {
    /// No options.
    pub const NONE: Self = Self { words: OptionWords { timestamps: (0, 0), sack: [0; 6] }, set: OptionSet(0) };
    /// The most SACK blocks that a segment carries here, as many as fit beside timestamps.
    pub const MAX_SACK_BLOCKS: usize = 3;
    /// The most bytes that options can take: the data offset counts to 15 words, of which the header has five (RFC 9293,
    /// section 3.1).
    pub const MAX_BYTES: usize = 40;

    /// The options of a SYN.
    #[must_use]
    pub const fn syn(options: SynOptions) -> Self {
        let mut this = Self::NONE;
        if let Some(mss) = options.mss {
            this.set.0 |= OptionSet::MSS;
            this.words.sack[0] = mss as u32;
        }
        if let Some(shift) = options.window_scale {
            this.set.0 |= OptionSet::WINDOW_SCALE;
            this.words.sack[1] = shift as u32;
        }
        if options.sack_permitted {
            this.set.0 |= OptionSet::SACK_PERMITTED;
        }
        this
    }

    /// The same options with timestamps.
    #[must_use]
    pub const fn with_timestamps(mut self, value: u32, echo_reply: u32) -> Self {
        self.words.timestamps = (value, echo_reply);
        self.set.0 |= OptionSet::TIMESTAMPS;
        self
    }

    /// The same options with these SACK blocks; only the first three count. A SYN has nothing to acknowledge selectively:
    /// blocks take the place of its options.
    #[must_use]
    pub fn with_sack(mut self, blocks: &[SackBlock]) -> Self {
        const SYN: u8 = OptionSet::MSS | OptionSet::WINDOW_SCALE | OptionSet::SACK_PERMITTED;
        let count = blocks.len().min(Self::MAX_SACK_BLOCKS);
        if count > 0 && self.has_list() {
            self = self.without_list();
        }
        if count > 0 || self.sack_count() > 0 {
            self.words.sack = [0; 6];
            self.set.0 &= !SYN;
        }
        for (words, block) in self.words.sack.chunks_exact_mut(2).zip(&blocks[..count]) {
            words.copy_from_slice(&[block.left.raw(), block.right.raw()]);
        }
        self.set.0 = (self.set.0 & !OptionSet::SACK_COUNT) | ((count as u8) << 1);
        self
    }

    /// The same options, marked as standing beside others that are not understood: such a segment is never regulated.
    #[must_use]
    pub const fn with_unknown(mut self) -> Self {
        self.set.0 |= OptionSet::UNKNOWN;
        self
    }

    /// The same options beside this list, which takes the place of an earlier one. Only an ACK without SACK blocks
    /// ([`Options::may_have_list`]) has one; an empty list, or one of more than [`AckList::MAX_OPTION_BYTES`], is none.
    #[must_use]
    pub fn with_list(mut self, list: &AckList) -> Self {
        debug_assert!(self.may_have_list(), "SACK blocks and the options of a SYN are in the list's place");
        self = self.without_list();
        if !list.is_empty() && list.as_bytes().len() <= AckList::MAX_OPTION_BYTES && self.may_have_list() {
            self.words = self.words.with_list(OptionWords::SACK_AT, list.as_bytes());
            self.set.0 |= OptionSet::LIST;
        }
        self
    }

    /// The same options without a list.
    #[must_use]
    pub const fn without_list(mut self) -> Self {
        if self.has_list() {
            self.words.sack = [0; 6];
            self.set.0 &= !OptionSet::LIST;
        }
        self
    }

    /// True when there is a list.
    #[must_use]
    pub const fn has_list(&self) -> bool {
        self.set.0 & OptionSet::LIST != 0
    }

    /// True for options beside which a list has room: no SACK blocks, none of a SYN.
    #[must_use]
    pub const fn may_have_list(&self) -> bool {
        self.set.0 & !(OptionSet::TIMESTAMPS | OptionSet::LIST) == 0
    }

    /// The list; empty if there is none.
    #[must_use]
    pub fn list(&self) -> AckList {
        if self.has_list() { self.words.list(OptionWords::SACK_AT) } else { AckList::EMPTY }
    }

    /// Bytes that the list takes in the IP header, 0 for none.
    #[must_use]
    pub const fn list_header_bytes(&self, ipv6: bool) -> u8 {
        let len = if self.has_list() { (self.words.sack[0] >> 24) as usize } else { 0 };
        list::header_bytes(len, ipv6) as u8
    }

    /// Bytes of the list of a signal.
    pub(crate) const fn signal_list_len(&self) -> usize {
        (self.words.timestamps.0 >> 24) as usize
    }

    /// Timestamp value and echo reply.
    #[must_use]
    pub const fn timestamps(&self) -> Option<(u32, u32)> {
        if self.set.0 & OptionSet::TIMESTAMPS != 0 { Some(self.words.timestamps) } else { None }
    }

    /// How many SACK blocks there are.
    #[must_use]
    pub const fn sack_count(&self) -> usize {
        ((self.set.0 & OptionSet::SACK_COUNT) >> 1) as usize
    }

    /// The SACK blocks, in the order of the header.
    pub fn sack_blocks(&self) -> impl Iterator<Item = SackBlock> + '_ {
        self.words
            .sack
            .chunks_exact(2)
            .take(self.sack_count())
            .map(|w| SackBlock { left: SeqNumber::new(w[0]), right: SeqNumber::new(w[1]) })
    }

    /// The options that only a SYN carries.
    #[must_use]
    pub const fn syn_options(&self) -> SynOptions {
        SynOptions {
            mss: if self.set.0 & OptionSet::MSS != 0 { Some(self.words.sack[0] as u16) } else { None },
            window_scale: if self.set.0 & OptionSet::WINDOW_SCALE != 0 { Some(self.words.sack[1] as u8) } else { None },
            sack_permitted: self.set.0 & OptionSet::SACK_PERMITTED != 0,
        }
    }

    /// True when the segment carries options that are not understood.
    #[must_use]
    pub const fn has_unknown(&self) -> bool {
        self.set.0 & OptionSet::UNKNOWN != 0
    }

    /// Bytes that the options take in the header, padded to a multiple of four as real stacks lay them out: timestamps 12,
    /// n SACK blocks 4 + 8n, MSS 4, window scale 4; SACK permitted 4, or 0 beside timestamps, whose padding it fills.
    #[must_use]
    pub const fn header_bytes(&self) -> u8 {
        let set = self.set.0;
        let mut bytes = 0;
        if set & OptionSet::TIMESTAMPS != 0 {
            bytes += 12;
        } else if set & OptionSet::SACK_PERMITTED != 0 {
            bytes += 4;
        }
        if set & OptionSet::MSS != 0 {
            bytes += 4;
        }
        if set & OptionSet::WINDOW_SCALE != 0 {
            bytes += 4;
        }
        let blocks = self.sack_count() as u8;
        if blocks > 0 {
            bytes += 4 + 8 * blocks;
        }
        bytes
    }
}

//! The TCP options of a segment, in 32 bytes of values and two bytes of flags for those present.
//!
//! Published: RFC 9293, section 3.1; RFC 2018 (SACK); RFC 7323 (window scale, timestamps);
//! RFC 9768, section 3.2.3 (Accurate ECN). Differs: of unknown options only their presence is stored. Cost: a copy of
//! two words for each; a list of acknowledgement numbers is read byte by byte.

use crate::{AckList, EcnBytes, EcnLayout, SeqNumber, list};

/// A selective acknowledgement (RFC 2018): bytes `left..right` have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlock {
    /// First byte of the block.
    pub left: SeqNumber,
    /// First byte after the block.
    pub right: SeqNumber,
}

/// The set of TCP options of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub(crate) struct OptionSet(pub(crate) u16);

impl OptionSet {
    const TIMESTAMPS: u16 = 0x01;
    /// Number of SACK blocks, up to three.
    const SACK_COUNT: u16 = 0x06;
    /// Four SACK blocks: the count of three with `SACK_PERMITTED`, which no segment has together
    /// with blocks.
    const FOUR_BLOCKS: u16 = Self::SACK_COUNT | Self::SACK_PERMITTED;
    const MSS: u16 = 0x08;
    const WINDOW_SCALE: u16 = 0x10;
    const SACK_PERMITTED: u16 = 0x20;
    const UNKNOWN: u16 = 0x40;
    const LIST: u16 = 0x80;
    const ACCECN: u16 = 0x100;
    const CUT: u16 = 0x200;
}

/// Options of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SynOptions {
    /// Maximum segment size (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018, section 2).
    pub sack_permitted: bool,
}

/// The TCP options of a segment. Timestamps combine with one of: at most three SACK blocks, the
/// options of a SYN, or the list of acknowledgement numbers from the segment's IP header, which
/// shares the space of the SACK blocks. Four SACK blocks exclude timestamps. The AccECN option combines with one SACK
/// block or with the options of a SYN, and excludes a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    pub(crate) words: OptionWords,
    pub(crate) set: OptionSet,
}

/// The values of TCP options. The set of those present is separate, so that both pack
/// into [`crate::Meta`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct OptionWords {
    /// Timestamp value and echo reply (RFC 7323, section 3), or the fourth SACK block.
    timestamps: (u32, u32),
    /// SACK blocks. A SYN has MSS and window scale in the first words instead. A list has its
    /// length in the first byte, then its bytes. The list of a signal begins in the timestamps.
    sack: [u32; 6],
}

impl OptionWords {
    const BYTES: usize = size_of::<Self>();
    /// Offset of the SACK words.
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

    /// The words in pairs: the timestamps, then the SACK words.
    pub(crate) const fn pairs(self) -> [[u32; 2]; 4] {
        let Self { timestamps: (value, echo_reply), sack: [a, b, c, d, e, f] } = self;
        [[value, echo_reply], [a, b], [c, d], [e, f]]
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
    /// The most SACK blocks of a segment, limited by [`Options::MAX_BYTES`] (RFC 2018, section 3).
    pub const MAX_SACK_BLOCKS: usize = 4;
    /// The most SACK blocks together with timestamps (RFC 2018, section 3).
    pub const MAX_SACK_BLOCKS_BESIDE_TIMESTAMPS: usize = 3;
    /// The most bytes of options: the data offset is at most 15 words, and the header has five
    /// (RFC 9293, section 3.1).
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

    /// A copy with timestamps. They replace a fourth SACK block.
    #[must_use]
    pub const fn with_timestamps(mut self, value: u32, echo_reply: u32) -> Self {
        if self.has_four_blocks() {
            self.set.0 &= !OptionSet::SACK_PERMITTED;
        }
        self.words.timestamps = (value, echo_reply);
        self.set.0 |= OptionSet::TIMESTAMPS;
        self
    }

    /// A copy with these SACK blocks in place of the earlier ones. At most four are kept, three
    /// together with timestamps. Blocks replace the options of a SYN, which has nothing to
    /// acknowledge selectively.
    #[must_use]
    pub fn with_sack(mut self, blocks: &[SackBlock]) -> Self {
        const SYN: u16 = OptionSet::MSS | OptionSet::WINDOW_SCALE | OptionSet::SACK_PERMITTED;
        let most = match self.timestamps() {
            Some(_) => Self::MAX_SACK_BLOCKS_BESIDE_TIMESTAMPS,
            None => Self::MAX_SACK_BLOCKS,
        };
        let blocks = &blocks[..blocks.len().min(most)];
        if !blocks.is_empty() && self.has_list() {
            self = self.without_list();
        }
        if blocks.len() > 1 {
            self.set.0 &= !OptionSet::ACCECN;
        }
        let counters = self.accecn_counters();
        if !blocks.is_empty() || self.sack_count() > 0 {
            if self.has_four_blocks() {
                self.words.timestamps = (0, 0);
            }
            self.words.sack = [0; 6];
            self.set.0 &= !SYN;
        }
        for (words, block) in self.words.sack.chunks_exact_mut(2).zip(blocks) {
            words.copy_from_slice(&[block.left.raw(), block.right.raw()]);
        }
        self.set.0 &= !OptionSet::SACK_COUNT;
        self.set.0 |= match blocks {
            [_, _, _, fourth] => {
                self.words.timestamps = (fourth.left.raw(), fourth.right.raw());
                OptionSet::FOUR_BLOCKS
            }
            few => (few.len() as u16) << 1,
        };
        if let Some((counters, layout)) = counters { self.with_accecn_as(counters, layout) } else { self }
    }

    /// A copy with the AccECN option and all its counters, ECT(0) first. It takes the place of a list and of all SACK
    /// blocks but the first.
    #[must_use]
    pub fn with_accecn(self, counters: EcnBytes) -> Self {
        self.with_accecn_as(counters, EcnLayout::ALL)
    }

    /// A copy with the AccECN option in this layout, which leaves out the other counters.
    #[must_use]
    pub fn with_accecn_as(mut self, counters: EcnBytes, layout: EcnLayout) -> Self {
        self = self.without_list();
        if self.sack_count() > 1 {
            let first = self.sack_blocks().next();
            self = self.with_sack(first.as_slice());
        }
        let mut values = counters.in_order(layout.order()).map(|counter| counter & EcnBytes::MASK);
        values[usize::from(layout.counters())..].fill(0);
        let EcnBytes { ect0, ce, ect1 } = EcnBytes::from_order(values, layout.order());
        self.words.sack[2..].copy_from_slice(&[layout.to_word(), ect0, ce, ect1]);
        self.set.0 |= OptionSet::ACCECN;
        self
    }

    /// The counters of the AccECN option, if it has all of them.
    #[must_use]
    pub const fn accecn(&self) -> Option<EcnBytes> {
        match self.accecn_counters() {
            Some((counters, layout)) if layout.counters() == EcnLayout::MOST => Some(counters),
            _ => None,
        }
    }

    /// The counters of the AccECN option, and which it has; the others are 0.
    #[must_use]
    pub const fn accecn_counters(&self) -> Option<(EcnBytes, EcnLayout)> {
        if self.set.0 & OptionSet::ACCECN == 0 {
            return None;
        }
        let [_, _, layout, ect0, ce, ect1] = self.words.sack;
        Some((EcnBytes { ect0, ce, ect1 }, EcnLayout::from_word(layout)))
    }

    /// The layout of the AccECN option.
    #[must_use]
    pub const fn accecn_layout(&self) -> Option<EcnLayout> {
        match self.accecn_counters() {
            Some((_, layout)) => Some(layout),
            None => None,
        }
    }

    /// A copy marked as having unknown options, so that the segment is never regulated.
    #[must_use]
    pub const fn with_unknown(mut self) -> Self {
        self.set.0 |= OptionSet::UNKNOWN;
        self
    }

    /// A copy marked as incomplete: a capture cut the header within its options.
    #[must_use]
    pub const fn with_cut(mut self) -> Self {
        self.set.0 |= OptionSet::CUT;
        self
    }

    /// True for options that a capture cut: those that follow are unknown.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.set.0 & OptionSet::CUT != 0
    }

    /// A copy with this list in place of an earlier one. Only an ACK without SACK blocks
    /// ([`Options::may_have_list`]) can have one. An empty list, or one above
    /// [`AckList::MAX_OPTION_BYTES`], counts as none.
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

    /// A copy without a list.
    #[must_use]
    pub const fn without_list(mut self) -> Self {
        if self.has_list() {
            self.words.sack = [0; 6];
            self.set.0 &= !OptionSet::LIST;
        }
        self
    }

    /// True if there is a list.
    #[must_use]
    pub const fn has_list(&self) -> bool {
        self.set.0 & OptionSet::LIST != 0
    }

    /// True for options that leave space for a list: no SACK blocks and no options of a SYN.
    #[must_use]
    pub const fn may_have_list(&self) -> bool {
        self.set.0 & !(OptionSet::TIMESTAMPS | OptionSet::LIST) == 0
    }

    /// The list; empty if there is none.
    #[must_use]
    pub fn list(&self) -> AckList {
        if self.has_list() { self.words.list(OptionWords::SACK_AT) } else { AckList::EMPTY }
    }

    /// Bytes of the list in the IP header, 0 for none.
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

    /// The number of SACK blocks.
    #[must_use]
    pub const fn sack_count(&self) -> usize {
        ((self.set.0 & OptionSet::SACK_COUNT) >> 1) as usize + self.has_four_blocks() as usize
    }

    const fn has_four_blocks(&self) -> bool {
        self.set.0 & (OptionSet::FOUR_BLOCKS | OptionSet::TIMESTAMPS) == OptionSet::FOUR_BLOCKS
    }

    /// The SACK blocks, in the order of the header.
    pub fn sack_blocks(&self) -> impl Iterator<Item = SackBlock> + '_ {
        let [fourth, first, second, third] = self.words.pairs();
        [first, second, third, fourth]
            .into_iter()
            .take(self.sack_count())
            .map(|[left, right]| SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(right) })
    }

    /// The options that only a SYN carries.
    #[must_use]
    pub const fn syn_options(&self) -> SynOptions {
        SynOptions {
            mss: if self.set.0 & OptionSet::MSS != 0 { Some(self.words.sack[0] as u16) } else { None },
            window_scale: if self.set.0 & OptionSet::WINDOW_SCALE != 0 { Some(self.words.sack[1] as u8) } else { None },
            sack_permitted: self.set.0 & OptionSet::FOUR_BLOCKS == OptionSet::SACK_PERMITTED,
        }
    }

    /// True for a segment with unknown options.
    #[must_use]
    pub const fn has_unknown(&self) -> bool {
        self.set.0 & OptionSet::UNKNOWN != 0
    }

    /// Bytes of the options in the header, padded to a multiple of four in the usual layout:
    /// timestamps 12, n SACK blocks 4 + 8n, MSS 4, window scale 4. SACK permitted takes 4, or 0
    /// together with timestamps, whose padding it replaces. The AccECN option takes 4, 8, 8 or 12
    /// with none to three counters.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> u8 {
        let set = self.set.0;
        // Most segments have no others.
        if set & !OptionSet::TIMESTAMPS == 0 {
            return 12 * set as u8;
        }
        let mut bytes = 0;
        if set & OptionSet::TIMESTAMPS != 0 {
            bytes += 12;
        } else if set & OptionSet::FOUR_BLOCKS == OptionSet::SACK_PERMITTED {
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
        if let Some(layout) = self.accecn_layout() {
            bytes += layout.header_bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2018, section 3: four blocks fit 40 bytes, three together with timestamps.
    #[test]
    fn a_fourth_sack_block_has_the_place_of_timestamps() {
        let block = |n| SackBlock { left: SeqNumber::new(n), right: SeqNumber::new(n + 1) };
        let blocks = [block(10), block(20), block(30), block(40)];
        let four = Options::NONE.with_sack(&blocks);
        assert_eq!(four.sack_blocks().collect::<Vec<_>>(), blocks);
        assert_eq!((four.header_bytes(), four.timestamps()), (36, None));
        assert_eq!((four.syn_options(), four.may_have_list()), (SynOptions::default(), false));

        let stamped = Options::NONE.with_timestamps(1, 2);
        assert_eq!(four.with_timestamps(1, 2), stamped.with_sack(&blocks[..3]));
        assert_eq!(stamped.with_sack(&blocks), stamped.with_sack(&blocks[..3]));
        assert_eq!(stamped.with_sack(&blocks).header_bytes(), Options::MAX_BYTES as u8);
        for fewer in 0..4 {
            assert_eq!(four.with_sack(&blocks[..fewer]), Options::NONE.with_sack(&blocks[..fewer]));
        }
        let syn = SynOptions { mss: Some(1460), window_scale: None, sack_permitted: true };
        assert_eq!(Options::syn(syn).with_sack(&blocks), four);
    }

    /// RFC 9768, section 3.2.3: 11 bytes and a NOP; with timestamps and one SACK block the 40 bytes are nearly full.
    #[test]
    fn the_accecn_option_stands_beside_timestamps_and_one_block() {
        let counters = EcnBytes { ect0: 0x0100_0001, ce: 0x00ff_ffff, ect1: 1 };
        let kept = EcnBytes { ect0: 1, ..counters };
        let block = |n| SackBlock { left: SeqNumber::new(n), right: SeqNumber::new(n + 1) };
        let stamped = Options::NONE.with_timestamps(1, 2);
        let all = stamped.with_accecn(counters).with_sack(&[block(5)]);
        assert_eq!((all.accecn(), all.sack_count(), all.header_bytes()), (Some(kept), 1, 36));
        assert_eq!(stamped.with_sack(&[block(5)]).with_accecn(counters), all);
        assert_eq!(all.with_sack(&[block(5), block(9)]).accecn(), None, "several blocks need the space");
        let two = stamped.with_sack(&[block(5), block(9)]).with_accecn(counters);
        assert_eq!(two, all);
        let syn = SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true };
        let syn_ack = Options::syn(syn).with_timestamps(1, 2).with_accecn(counters);
        assert_eq!((syn_ack.syn_options(), syn_ack.accecn(), syn_ack.header_bytes()), (syn, Some(kept), 32));
        assert!(!syn_ack.may_have_list() && !all.may_have_list());
    }
}

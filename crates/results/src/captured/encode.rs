//! Encodings of Parquet pages: differences, numbers of few bits, and where values are.
//!
//! Published: the format's description, `Encodings.md` (DELTA_BINARY_PACKED, RLE, RLE_DICTIONARY, PLAIN). The encoders
//! of the `parquet` crate have the same results, and checks for each value.
//! Cost: some 30 instructions a number, one to six a place in a dictionary.

/// Rows that are encoded at once, as a page of each column: as many as a second-level cache holds.
pub(super) const BLOCK: usize = 1 << 12;
/// Differences between two least ones.
const DELTAS: usize = 256;
/// Differences with a width of their own: as many words as a difference has bits.
const PART: usize = u64::BITS as usize;
/// Numbers of few bits that have whole octets together.
const GROUP: usize = 8;
/// Groups of equal numbers from which on a run is shorter, whatever their bits.
const RUN: usize = 4;
/// Rows of a word of [`Bits`].
const WORD: usize = u64::BITS as usize;

/// A bit for each row of a block.
pub(super) struct Bits([u64; BLOCK / WORD]);

impl Default for Bits {
    fn default() -> Self {
        Self([0; BLOCK / WORD])
    }
}

impl Bits {
    /// Sets the bit of a row that has none yet. The remainder is the row itself; it spares a check.
    #[inline]
    pub(super) fn set(&mut self, row: usize, bit: bool) {
        self.0[row % BLOCK / WORD] |= u64::from(bit) << (row % WORD);
    }

    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The bits of the first rows.
    pub(super) fn plain(&self, rows: usize, to: &mut Vec<u8>) {
        let end = to.len() + rows.div_ceil(8);
        to.extend(self.0.iter().flat_map(|word| word.to_le_bytes()));
        to.truncate(end);
    }

    /// The bits of the first rows as levels: runs of equal words, and others bit by bit.
    pub(super) fn levels(&self, rows: usize, to: &mut Vec<u8>) {
        let words = &self.0[..rows.div_ceil(WORD)];
        let last = u64::MAX >> (words.len() * WORD - rows);
        let value = |word: &u64| match *word {
            0 => Some(0),
            u64::MAX => Some(1),
            _ => None,
        };
        if let Some((end, before)) = words.split_last()
            && *end == last
            && before.iter().all(|word| *word == u64::MAX)
        {
            run(1, rows, to);
            return;
        }
        let mut rest = rows;
        for words in words.chunk_by(|one, next| value(one) == value(next)) {
            let rows = rest.min(words.len() * WORD);
            rest -= rows;
            if let Some(value) = value(&words[0]) {
                run(value, rows, to);
            } else {
                bit_packed(words.iter().flat_map(|word| word.to_le_bytes()), rows, to);
            }
        }
    }
}

fn run(level: u8, rows: usize, to: &mut Vec<u8>) {
    varint((rows as u64) << 1, to);
    to.push(level);
}

/// A run of this many numbers of a bit each.
fn bit_packed(bytes: impl Iterator<Item = u8>, count: usize, to: &mut Vec<u8>) {
    let groups = count.div_ceil(8);
    varint((groups as u64) << 1 | 1, to);
    to.extend(bytes.take(groups));
}

fn varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn signed(value: i64, to: &mut Vec<u8>) {
    varint((value << 1 ^ value >> 63).cast_unsigned(), to);
}

/// The values by their differences.
pub(super) fn deltas(values: &[i64], to: &mut Vec<u8>) {
    for number in [DELTAS, DELTAS / PART, values.len()] {
        varint(number as u64, to);
    }
    signed(values.first().copied().unwrap_or_default(), to);
    let mut block = [0; DELTAS];
    let next = values.get(1..).unwrap_or_default();
    for (values, next) in values.chunks(DELTAS).zip(next.chunks(DELTAS)) {
        let mut least = i64::MAX;
        for ((delta, value), next) in block.iter_mut().zip(values).zip(next) {
            *delta = next.wrapping_sub(*value);
            least = least.min(*delta);
        }
        block[next.len()..].fill(least);
        signed(least, to);
        let widths = to.len();
        to.extend([0; DELTAS / PART]);
        for (number, part) in block.chunks_exact_mut(PART).take(next.len().div_ceil(PART)).enumerate() {
            let mut bits = 0;
            for delta in part.iter_mut() {
                *delta = delta.wrapping_sub(least);
                bits |= *delta;
            }
            let width = i64::BITS - bits.leading_zeros();
            to[widths + number] = width as u8;
            pack(part, width, to);
        }
    }
}

/// The lowest bits of each value, the first at the lowest. They fill words.
#[inline]
fn pack(part: &[i64], width: u32, to: &mut Vec<u8>) {
    let (mut word, mut filled) = (0, 0);
    for value in part.iter().map(|value| value.cast_unsigned()) {
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            to.extend_from_slice(&word.to_le_bytes());
            filled -= u64::BITS;
            // The bits that did not fit.
            word = if filled > 0 { value >> (width - filled) } else { 0 };
        }
    }
}

/// The places of values in a dictionary of `length` values: runs of equal places, and others bit by bit.
pub(super) fn places(places: &[u8], length: usize, to: &mut Vec<u8>) {
    let width = length.saturating_sub(1).checked_ilog2().unwrap_or(0) + 1;
    to.push(width as u8);
    let (groups, _) = places.as_chunks::<GROUP>();
    let (mut packed, mut at) = (0, 0);
    for equal in groups.chunk_by(|one, next| one == next) {
        let from = at;
        at += GROUP * equal.len();
        if equal.len() >= RUN && equal[0] == [equal[0][0]; GROUP] {
            narrow(&places[packed..from], width, to);
            run(equal[0][0], at - from, to);
            packed = at;
        }
    }
    narrow(&places[packed..], width, to);
}

/// Numbers of so many bits.
fn narrow(numbers: &[u8], width: u32, to: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    varint((numbers.len().div_ceil(GROUP) as u64) << 1 | 1, to);
    let (groups, rest) = numbers.as_chunks();
    let mut last = [0; GROUP];
    last[..rest.len()].copy_from_slice(rest);
    for group in groups.iter().chain((!rest.is_empty()).then_some(&last)) {
        let mut word = u64::from_le_bytes(*group);
        // Neighbours move together: bytes, pairs of them, and the halves of the word.
        for (bits, mask) in [(8, 0x00ff_00ff_00ff_00ff), (16, 0x0000_ffff_0000_ffff), (32, 0xffff_ffff)] {
            word = word & mask | (word >> bits & mask) << (width * bits / 8);
        }
        // Eight numbers have as many octets as one has bits.
        let end = to.len() + width as usize;
        to.extend_from_slice(&word.to_le_bytes());
        to.truncate(end);
    }
}

//! The payload of loads and trains: bytes that no link can compress.

/// A block of bytes without pattern, the same each time: a generator of xorshift (Marsaglia 2003).
pub(crate) fn block(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words = (0..len.div_ceil(8)).flat_map(|_| next().to_be_bytes());
    words.take(len).collect()
}

//! SipHash-1-3 of whole words, without the buffer of a hasher that takes bytes as they come: half of the instructions.
//!
//! Published: Aumasson and Bernstein 2012, "SipHash: a fast short-input PRF", with one round a word and three at the end.

/// The hash of `words` and of a tail of fewer than eight bytes, the first of them the lowest, of `len` bytes together.
#[inline]
pub(super) fn siphash_1_3(key: [u64; 2], words: &[u64], tail: u64, len: u8) -> u64 {
    // "somepseudorandomlygeneratedbytes".
    let mut state = State([
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ]);
    for word in words {
        state.take(*word);
    }
    state.take(tail | u64::from(len) << 56);
    state.0[2] ^= 0xFF;
    (0..3).for_each(|_| state.round());
    let State([v0, v1, v2, v3]) = state;
    v0 ^ v1 ^ v2 ^ v3
}

struct State([u64; 4]);

impl State {
    #[inline]
    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline]
    fn round(&mut self) {
        let [mut v0, mut v1, mut v2, mut v3] = self.0;
        v0 = v0.wrapping_add(v1);
        v2 = v2.wrapping_add(v3);
        v1 = v1.rotate_left(13) ^ v0;
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.rotate_left(32).wrapping_add(v3);
        v2 = v2.wrapping_add(v1);
        v1 = v1.rotate_left(17) ^ v2;
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.rotate_left(32);
        self.0 = [v0, v1, v2, v3];
    }
}

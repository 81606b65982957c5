//! A map by flow with equal behaviour in every run. It is never iterated.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use lastmile_packet::FlowId;

/// State by flow.
pub(crate) type FlowMap<T> = HashMap<FlowId, T, BuildHasherDefault<FlowHasher>>;

/// State by tag: the index of a flow, or a hash of addresses with a secret key.
pub(crate) type TagMap<T> = HashMap<u64, T, BuildHasherDefault<FlowHasher>>;

/// Hashes the index of a flow by a multiplication whose halves are combined, so that every bit
/// affects both ends of the result: the map takes the bucket from one end and its tag from the
/// other.
///
/// This program assigns flow indices, not the sender of packets, so no secret key is needed.
#[derive(Clone, Default)]
pub(crate) struct FlowHasher(u64);

impl Hasher for FlowHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let wide = u128::from(self.0 ^ value ^ ODD) * u128::from(ODD);
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

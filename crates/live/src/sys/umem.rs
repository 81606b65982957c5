//! The memory for frames that AF_XDP shares between this program and the kernel (UMEM), cut into chunks.
//!
//! A chunk belongs either to this program or to the kernel. [`Chunk`] is the right to use one: there is at most one of
//! each, and it cannot be copied. Lending a chunk to the kernel takes the right away; only a chunk that was lent comes
//! back, once.

use std::io;

use super::mapping::Mapping;

/// Bytes of a chunk: one page, so that every kernel takes it. A frame must fit next to the space that the kernel keeps
/// in front of it.
pub(super) const CHUNK: usize = 4096;

/// All chunks, and who has them.
#[derive(Debug)]
pub(super) struct Umem {
    mapping: Mapping,
    /// By number: true while the kernel has it.
    lent: Vec<bool>,
}

/// The right to use the chunk of this number.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Chunk(u32);

impl Umem {
    /// Memory for `count` chunks, all of which belong to the caller.
    pub(super) fn new(count: u32) -> io::Result<(Self, Vec<Chunk>)> {
        let mapping = Mapping::anonymous(CHUNK * count as usize)?;
        Ok((Self { mapping, lent: vec![false; count as usize] }, (0..count).map(Chunk).collect()))
    }

    /// Address and length, for the kernel.
    pub(super) fn place(&self) -> [u64; 2] {
        self.mapping.place()
    }

    /// The address of a chunk for the kernel's rings. The kernel has the chunk from now on.
    pub(super) fn lend(&mut self, Chunk(number): Chunk) -> u64 {
        self.lent[number as usize] = true;
        u64::from(number) * CHUNK as u64
    }

    /// The chunk of an address that the kernel has named, if it was lent.
    pub(super) fn take_back(&mut self, address: u64) -> Option<Chunk> {
        let number = address / CHUNK as u64;
        let lent = self.lent.get_mut(usize::try_from(number).ok()?)?;
        std::mem::take(lent).then_some(Chunk(number as u32))
    }

    /// The bytes of a chunk.
    pub(super) fn bytes(&mut self, Chunk(number): &Chunk) -> &mut [u8] {
        let start = self.mapping.at(*number as usize * CHUNK);
        // SAFETY: a chunk lies in the mapping. The caller has the right to it, so the kernel keeps off it; `self` is
        // borrowed for as long as the slice lives, so there is no second one.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), CHUNK) }
    }

    /// Has the processor fetch what stands at an address into its cache.
    #[inline]
    pub(super) fn fetch(&self, address: u64) {
        self.mapping.fetch(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_comes_back_once_and_only_if_it_was_lent() {
        let (mut umem, mut chunks) = Umem::new(3).unwrap();
        assert_eq!(umem.take_back(4096), None, "it was never lent");
        let address = umem.lend(chunks.remove(1));
        assert_eq!(address, 4096);
        // The kernel names a byte within it, behind its own space.
        assert_eq!(umem.take_back(address + 256), Some(Chunk(1)));
        assert_eq!(umem.take_back(address), None);
        assert_eq!(umem.take_back(3 * 4096), None, "outside");
        assert_eq!(umem.take_back(u64::MAX), None);
    }

    #[test]
    fn each_chunk_has_bytes_of_its_own() {
        let (mut umem, chunks) = Umem::new(2).unwrap();
        umem.bytes(&chunks[0]).fill(1);
        umem.bytes(&chunks[1]).fill(2);
        assert_eq!(umem.bytes(&chunks[0]), [1; CHUNK]);
        assert_eq!(umem.bytes(&chunks[1]), [2; CHUNK]);
    }
}

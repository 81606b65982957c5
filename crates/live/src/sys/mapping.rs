//! Memory that the kernel shares with this program: mmap(2). The calls of rustix for it are as unsafe, since its
//! address is.

use std::io;
use std::ptr::{self, NonNull};

/// Memory that is given back when this goes.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this value alone (and to the kernel, whichever thread it serves).
unsafe impl Send for Mapping {}

impl Mapping {
    /// Memory of this process, in huge pages where the kernel has them: one look-up of an address serves 512 times as
    /// much.
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let mapping = Self::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        // SAFETY: advice about the whole of the mapping, which changes nothing that it holds. A kernel without huge
        // pages refuses it.
        unsafe { libc::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Ok(mapping)
    }

    pub(super) fn new(len: usize, flags: libc::c_int, fd: libc::c_int, offset: libc::off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: no address is asked for, so no other memory is touched.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, fd, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(mapped) if start != libc::MAP_FAILED => Ok(Self { start: mapped, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Address and length, for the kernel.
    pub(super) fn place(&self) -> [u64; 2] {
        [self.start.as_ptr() as u64, self.len as u64]
    }

    /// A pointer to the byte at this offset. It is valid for as long as the mapping is.
    ///
    /// # Panics
    /// The offset is outside the mapping.
    #[inline]
    pub(super) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.len, "byte {offset} of a mapping of {} bytes", self.len);
        // SAFETY: within the mapping.
        unsafe { self.start.add(offset) }
    }

    /// Has the processor fetch the byte at this offset, and the 127 that follow, into its cache, without waiting for
    /// it. An offset outside the mapping does nothing useful, and no harm.
    #[inline]
    pub(super) fn fetch(&self, offset: u64) {
        let at = self.start.as_ptr().wrapping_add(offset as usize);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: nothing is read, and an address at which nothing is does no harm.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(at.cast());
            _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(64).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nobody can borrow from it any more. A failure leaves it, which
        // does no harm.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

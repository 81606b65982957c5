//! Memory that the kernel shares with this program: mmap(2).

use std::io;
use std::ptr::{self, NonNull};

/// Memory that is given back when this goes.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
}

// SAFETY: the memory belongs to this value alone (and to the kernel, whichever thread it serves).
unsafe impl Send for Mapping {}

impl Mapping {
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        Self::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
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

    /// So many bytes from this place on. Only for chunks that the kernel has handed over.
    pub(super) fn slice(&mut self, at: u64, len: u32) -> &mut [u8] {
        let (at, len) = (at as usize, len as usize);
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "a frame lies in the memory");
        // SAFETY: within the mapping, as just seen, for as long as that is borrowed; the kernel keeps off chunks that it
        // has handed over.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nobody can borrow from it any more. A failure leaves it, which does no harm.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

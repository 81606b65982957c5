//! Locks on open files that end with their process, however it ends: flock(2).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// Locks an open file, for as long as it stays open, unless another open file of it has the lock. True if it got the lock.
pub(crate) fn try_lock(file: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: takes a descriptor, open for as long as it is borrowed, and flags.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

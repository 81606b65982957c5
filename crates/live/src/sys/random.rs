//! Random bytes from the kernel: getrandom(2).

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes that nobody outside can guess.
pub(crate) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // Up to 256 bytes come whole, or not at all.
    if getrandom(&mut bytes, GetRandomFlags::empty())? == N {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

//! Random bytes from the kernel: getrandom(2).

use std::io;

/// Bytes that nobody outside can guess.
pub(crate) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: the pointer and the length are those of one array.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    match usize::try_from(filled) {
        Ok(count) if count == N => Ok(bytes),
        // Up to 256 bytes come whole, or not at all.
        Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

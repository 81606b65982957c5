//! The octets of a transfer, and calls that do not wait for a socket.

use std::io;

/// Bytes of data or of a request: as many as one call takes.
pub(super) static ZEROS: [u8; 65_536] = [0; 65_536];

/// No error for a socket that is not ready.
pub(super) fn unless_blocked(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}

//! Reading and writing of a stream, whose bytes nobody looks at.

use quinn_proto::{Connection, StreamId};

use super::super::octets::ZEROS;

/// Reads all that has come; the number of bytes, and whether they are the last.
pub(super) fn read(connection: &mut Connection, id: StreamId) -> (u64, bool) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return (0, false) };
    let mut bytes = 0;
    let whole = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    // The grant of more goes out with the packets of this turn.
    let _ = chunks.finalize();
    (bytes, whole)
}

/// Writes as much of `left` bytes as there is space for. True once the stream is ended, which follows the last of them.
pub(super) fn write(connection: &mut Connection, id: StreamId, left: &mut u64) -> bool {
    let mut stream = connection.send_stream(id);
    while *left > 0 {
        let part = usize::try_from(*left).unwrap_or(usize::MAX).min(ZEROS.len());
        match stream.write(&ZEROS[..part]) {
            Ok(written) => *left -= written as u64,
            Err(_) => return false,
        }
    }
    stream.finish().is_ok()
}

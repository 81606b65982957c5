//! Payload that has arrived beyond a hole: behind a lost segment that is not retransmitted yet.
//!
//! An application reads payload in order. At the end of the ramp of a load, tens of kilobytes lie beyond holes that
//! slow start left; counted when a hole is filled, they are more than the line carries after the ramp. Here they count
//! when they arrive.
//!
//! Linux states the number of received segments with data, and the bytes received in order (`tcp_info`). Between two
//! times, the payload of the new segments less the new bytes in order is the change of the payload beyond holes. It is
//! zero while no memory holds received segments (`SO_MEMINFO`). Segments that arrive twice, and those shorter than the
//! longest one, count as payload until the next such time, and do not afterwards. A receiver that keeps bytes waiting,
//! to hold a limit, counts those that it has read.

use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::sys::socket::{self, Received};

/// The payload of a stream at its receiver.
#[derive(Default, Debug)]
pub(crate) struct Payload {
    /// Bytes that the application has read.
    read: u64,
    /// Bytes that were counted as arrived.
    counted: u64,
    /// The latest state without payload beyond a hole.
    whole: Received,
}

impl Payload {
    /// Takes the number of bytes that were just read, perhaps none. Returns the bytes that have arrived since the last
    /// call, in order or not.
    pub(crate) fn take(&mut self, socket: impl AsFd, read: usize) -> u64 {
        self.count(read as u64, state(socket.as_fd()))
    }

    /// Counts with the state of the socket, and whether it holds no segment.
    fn count(&mut self, read: u64, state: Option<(Received, bool)>) -> u64 {
        self.read += read;
        let beyond = state.map_or(0, |(received, is_empty)| {
            if is_empty {
                self.whole = received;
            }
            let segments = received.segments.wrapping_sub(self.whole.segments);
            let payload = u64::from(segments) * u64::from(received.mss);
            payload.saturating_sub(received.bytes.saturating_sub(self.whole.bytes))
        });
        let arrived = self.read + beyond;
        let new = arrived.saturating_sub(self.counted);
        self.counted += new;
        new
    }
}

/// The state of the socket and whether it holds no segment; `None` while bytes wait to be read, and where the kernel
/// does not tell. The memory is read after the counts: payload beyond a hole would still be there, or wait to be read.
fn state(socket: BorrowedFd<'_>) -> Option<(Received, bool)> {
    let received = socket::info(socket).ok()?.received;
    let is_empty = socket::receive_memory(socket).ok()? == 0;
    let waiting = rustix::io::ioctl_fionread(socket).ok()?;
    (waiting == 0).then_some((received, is_empty))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn state(segments: u32, bytes: u64) -> Received {
        Received { segments, bytes, mss: 1_000 }
    }

    /// Ten segments of 1000 bytes in order, one lost, and 49 beyond the hole; the retransmission fills it.
    #[test]
    fn payload_beyond_a_hole_counts_when_it_arrives() {
        let mut payload = Payload::default();
        assert_eq!(payload.count(10_000, Some((state(10, 10_000), true))), 10_000);
        assert_eq!(payload.count(0, Some((state(40, 10_000), false))), 30_000);
        assert_eq!(payload.count(0, Some((state(59, 10_000), false))), 19_000);
        assert_eq!(payload.count(50_000, Some((state(60, 60_000), true))), 1_000, "the retransmission alone is new");
        // Three segments came twice: they do not count once a state without a hole is seen.
        assert_eq!(payload.count(1_000, Some((state(64, 61_000), true))), 1_000);
        assert_eq!(payload.count(0, Some((state(66, 61_000), false))), 2_000);
        assert_eq!(payload.count(0, None), 0, "bytes are not counted backwards");
        assert_eq!(payload.count(4_000, None), 2_000);
    }

    /// Two segments that came twice beside a hole: counted too early, and made up for by the payload that follows.
    #[test]
    fn segments_that_came_twice_add_nothing_in_the_end() {
        let mut payload = Payload::default();
        assert_eq!(payload.count(0, Some((state(5, 0), false))), 5_000, "three, of which two came twice");
        assert_eq!(payload.count(4_000, Some((state(6, 4_000), true))), 0);
        assert_eq!(payload.count(2_000, Some((state(8, 6_000), true))), 1_000);
    }

    /// Segments that are shorter than the longest: without a hole all bytes are read, and no more are counted.
    #[test]
    fn a_real_stream_without_losses_counts_what_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut receiver = listener.accept().unwrap().0;
        sender.set_nodelay(true).unwrap();
        let (mut payload, mut counted, mut buffer) = (Payload::default(), 0, [0; 4_096]);
        for len in [4_000, 1, 700, 3] {
            sender.write_all(&buffer[..len]).unwrap();
            receiver.read_exact(&mut buffer[..len]).unwrap();
            counted += payload.take(&receiver, len);
        }
        assert_eq!(counted, 4_704);
    }
}

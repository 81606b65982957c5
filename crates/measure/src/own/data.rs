//! The payload of loads and trains, bytes that no link can compress; and the receiver of a load.

use std::io;

use socket2::SockRef;

/// A block of bytes without pattern, the same each time: a generator of xorshift (Marsaglia 2003).
pub(crate) fn block(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words = (0..len.div_ceil(8)).flat_map(|_| next().to_be_bytes());
    words.take(len).collect()
}

/// The receiver of a load acknowledges as that of a plain transfer, once the handshake of the stream is over.
///
/// The kernel takes an end that has answered data for an interactive one, whose answers carry acknowledgements: it no
/// longer acknowledges a segment with PSH at once (`inet_csk_in_pingpong_mode`). The sender's segments then leave in
/// other groups. Over 768 kbit/s of ATM with a queue of 32 kB, and small packets next to the load, each loss comes with
/// a second one: the median latency is 290 to 307 ms, and 344 to 360 ms after this call.
pub(crate) fn receive_as_a_transfer(socket: &SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_quickack(true)
}

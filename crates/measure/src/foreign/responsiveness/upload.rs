//! An upload that waits little at the client: own probes wait behind what the client has taken and not yet sent.
//!
//! Source: draft-ietf-ippm-responsiveness-09, section 6.1.1: 5 ms of the connection's rate wait unsent. Three places
//! hold data: the frame that HTTP/2 is writing, the record that TLS has sealed, and the socket. Each holds 5 ms, and a
//! segment at least; frames and records end at 16 kB. Difference: the draft names the socket alone.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Unsent;

/// The head of an HTTP/2 frame: RFC 9113, section 4.1.
const FRAME_HEAD: u32 = 9;
/// Bytes around the content of a TLS 1.3 record: a head of 5, the type, and a tag of 16 (RFC 8446, section 5.2).
const RECORD: u32 = 5 + 1 + 16;
/// The largest content of a record, and the largest frame that a server takes unasked.
const MOST: u32 = 16 << 10;
/// A segment of Ethernet with timestamps, which a frame in its record fills.
const SEGMENT: u32 = 1448;
/// Seconds of a connection's rate that wait in each place.
const WAITING_S: f64 = 0.005;
/// Frames that HTTP/2 keeps for later, whose size is that of the time when they were made.
pub(super) const KEPT: usize = 32 << 10;

/// Bytes that wait in each place of every upload of a run.
#[derive(Debug)]
pub(super) struct Waiting {
    unsent: Unsent,
    bytes: AtomicU32,
}

impl Waiting {
    /// Until the rate is known: a full record.
    pub(super) fn new(unsent: Unsent) -> Self {
        Self { unsent, bytes: AtomicU32::new(MOST) }
    }

    fn bytes(&self) -> u32 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Unsent bytes that wait in the socket; `None` for as many as it takes.
    pub(super) fn socket_bytes(&self) -> Option<u32> {
        (self.unsent == Unsent::FiveMilliseconds).then(|| self.bytes())
    }

    /// Follows the rate of all connections together, unless frames and records are full.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "5 ms of a rate")]
    pub(super) fn follow(&self, rate_bps: f64, connections: u32) {
        if self.unsent == Unsent::FiveMilliseconds {
            let of_rate = rate_bps / f64::from(connections) / 8.0 * WAITING_S;
            self.bytes.store((of_rate as u32).max(SEGMENT), Ordering::Relaxed);
        }
    }

    /// Payload of the next frame.
    fn frame(&self) -> u32 {
        self.bytes().min(MOST + RECORD) - RECORD - FRAME_HEAD
    }
}

/// The data of one upload, and counts of what surrounds them.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) waiting: Arc<Waiting>,
    /// At least [`MOST`] bytes, of which each frame is a part.
    block: Bytes,
    payload: AtomicU64,
    frames: AtomicU64,
    content: AtomicU64,
    records: AtomicU64,
}

impl Upload {
    pub(super) fn new(waiting: Arc<Waiting>, block: Bytes) -> Self {
        let [payload, frames, content, records] = [(); 4].map(|()| AtomicU64::new(0));
        Self { waiting, block, payload, frames, content, records }
    }

    fn frame(&self) -> Bytes {
        let frame = self.block.slice(..self.block.len().min(self.waiting.frame() as usize));
        self.payload.fetch_add(frame.len() as u64, Ordering::Relaxed);
        self.frames.fetch_add(1, Ordering::Relaxed);
        frame
    }

    /// TLS has taken these bytes in one record.
    fn sealed(&self, bytes: usize) {
        self.content.fetch_add(bytes as u64, Ordering::Relaxed);
        self.records.fetch_add(1, Ordering::Relaxed);
    }

    /// The part of the stream of TCP that is payload. Heads are a few per cent, so frames on their way do not count.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn payload_share(&self) -> f64 {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64;
        let share = |inner: &AtomicU64, heads: &AtomicU64, head: u32| {
            let all = of(inner) + of(heads) * f64::from(head);
            if all > 0.0 { of(inner) / all } else { 1.0 }
        };
        share(&self.payload, &self.frames, FRAME_HEAD) * share(&self.content, &self.records, RECORD)
    }
}

/// The body of a request: none, or data without end.
pub(super) struct Payload(pub(super) Option<Arc<Upload>>);

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.as_ref().map(|upload| Ok(Frame::data(upload.frame()))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

/// A connection under TLS, which takes a frame of an upload once the record in front has gone to the socket.
pub(super) struct Secured {
    pub(super) tls: TlsStream<TcpStream>,
    pub(super) upload: Option<Arc<Upload>>,
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_read(context, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { tls, upload } = self.get_mut();
        if let Some(upload) = upload {
            let limit = upload.waiting.frame() + FRAME_HEAD;
            tls.get_mut().1.set_buffer_limit(Some(limit as usize));
        }
        let taken = Pin::new(tls).poll_write_vectored(context, buffers);
        if let (Some(upload), Poll::Ready(Ok(bytes))) = (upload, &taken) {
            upload.sealed(*bytes);
        }
        taken
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload() -> Upload {
        Upload::new(Arc::new(Waiting::new(Unsent::FiveMilliseconds)), Bytes::from(vec![0; MOST as usize]))
    }

    #[test]
    fn five_milliseconds_of_the_rate_wait_and_a_segment_at_least() {
        let waiting = Waiting::new(Unsent::FiveMilliseconds);
        // 5 ms of 100 Mbit/s over four connections; 5 ms of 1 Mbit/s are 625 bytes.
        waiting.follow(100e6, 4);
        assert_eq!((waiting.bytes(), waiting.frame()), (15_625, 15_625 - 31));
        waiting.follow(1e6, 1);
        assert_eq!((waiting.bytes(), waiting.frame()), (1448, 1417));
        // A record has at most 2^14 bytes, a head of 9 among them.
        waiting.follow(1e9, 1);
        assert_eq!((waiting.bytes(), waiting.frame()), (625_000, 16_375));
        assert_eq!(waiting.socket_bytes(), Some(625_000));
    }

    #[test]
    fn an_upload_that_fills_the_socket_sends_full_frames_at_any_rate() {
        let waiting = Waiting::new(Unsent::SocketBuffer);
        for rate_bps in [1e6, 100e6, 1e9] {
            assert_eq!((waiting.frame(), waiting.socket_bytes()), (16_353, None));
            waiting.follow(rate_bps, 1);
        }
    }

    /// Of a segment of 1448 bytes the frame's head takes 9 and the record 22.
    #[test]
    fn payload_is_what_frames_and_records_surround() {
        let upload = upload();
        assert!((upload.payload_share() - 1.0).abs() < 1e-12, "nothing sent");
        upload.waiting.follow(1e6, 1);
        for _ in 0..10 {
            assert_eq!(upload.frame().len(), 1417);
            upload.sealed(1426);
        }
        assert!((upload.payload_share() - 1417.0 / 1448.0).abs() < 1e-12);
        // A frame in two records: ten heads of records more.
        for _ in 0..10 {
            upload.frame();
            upload.sealed(1000);
            upload.sealed(426);
        }
        assert!((upload.payload_share() - 28_340.0 / (28_520.0 + 30.0 * 22.0)).abs() < 1e-12);
    }
}

//! The UDP socket of all sessions.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use lastmile_live::sys::stamped;

/// Time after which the thread looks whether the server has ended.
const LOOKING: Duration = Duration::from_millis(50);

/// Space for datagrams that arrive while this thread waits for a processor.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The socket of all sessions.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    is_v6: bool,
}

impl Socket {
    pub(super) fn new(socket: socket2::Socket) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(LOOKING))?;
        // As far as the machine lets it grow.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        stamped::enable(socket.as_fd())?;
        let socket = UdpSocket::from(socket);
        let is_v6 = socket.local_addr()?.is_ipv6();
        Ok(Self { socket, is_v6 })
    }

    /// Sends a datagram. A full queue loses it, as one further on would.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let to = match to.ip() {
            IpAddr::V4(ip) if self.is_v6 => SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()),
            _ => to,
        };
        self.socket.send_to(datagram, to).map(drop)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

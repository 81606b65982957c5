//! TCP sockets that are set up before they open, options of sockets, and the kernel's state of a connection: tcp(7),
//! ip(7).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};

use super::{check, get_option, set_option};

/// Options of linux/tcp.h that libc has no names for.
const TCP_RTO_MAX_MS: libc::c_int = 44;
const TCP_RTO_MIN_US: libc::c_int = 45;
const TCP_DELACK_MAX_US: libc::c_int = 46;
/// A request of linux/sockios.h that libc has no name for.
const SIOCOUTQNSD: libc::Ioctl = 0x894B;

/// A socket for `address` and what can be reached from it, in the network namespace of the calling thread. It neither
/// listens nor has connected yet, and never blocks.
pub fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    Ok(fd)
}

/// Gives the socket an address of its own. bind(2).
pub fn bind(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    Ok(net::bind(fd, &address)?)
}

/// The port that the socket has. getsockname(2).
pub fn port(fd: BorrowedFd<'_>) -> io::Result<u16> {
    Ok(SocketAddr::try_from(net::getsockname(fd)?)?.port())
}

/// Waits for connections. listen(2).
pub fn listen(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(net::listen(fd, 1024)?)
}

/// Begins to connect; the socket is writable once it has. connect(2).
pub fn connect(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    match net::connect(fd, &address) {
        Err(Errno::INPROGRESS) => Ok(()),
        other => Ok(other?),
    }
}

/// Takes at most `most` received bytes and throws them away: how many there were, zero at the end of the stream.
/// `MSG_TRUNC` of tcp(7), without a buffer, which rustix would take for filled.
pub fn discard(fd: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with MSG_TRUNC a TCP socket counts bytes without copying any, so the buffer is never written to.
    let taken = unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), most, flags) };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

/// Sends what there is space for, and never waits: how many bytes it took. With `more` to come the last of them is not
/// marked as the end of what there is (PSH), which a receiver would acknowledge at once. `MSG_MORE` of send(2).
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8], more: bool) -> io::Result<usize> {
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    flags.set(SendFlags::MORE, more);
    Ok(net::send(fd, bytes, flags)?)
}

/// Bytes that wait for their first transmission. `SIOCOUTQNSD` of linux/sockios.h, an ioctl(2) that no crate offers
/// safely.
pub fn unsent(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int, which outlives it.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), SIOCOUTQNSD, &raw mut bytes) })?;
    usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Chooses the congestion control by its name.
pub fn set_congestion(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(fd, name)?)
}

/// The congestion control that the socket has.
pub fn congestion(fd: BorrowedFd<'_>) -> io::Result<String> {
    Ok(sockopt::tcp_congestion(fd)?)
}

/// Room for what was received and not yet read, above the limit of the machine: needs `CAP_NET_ADMIN`. The kernel
/// counts its own overhead in; twice `bytes` are what it takes.
pub fn set_receive_buffer(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    Ok(sockopt::set_socket_recv_buffer_size_force(fd, bytes as usize)?)
}

/// Memory for data that are not acknowledged or not sent, with the kernel's overhead; twice `bytes`, at least 4.5 KiB.
pub fn set_send_buffer(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    Ok(sockopt::set_socket_send_buffer_size_force(fd, bytes as usize)?)
}

/// The largest window to advertise. The kernel sets its own again when the size of segments changes.
pub fn clamp_window(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &int(bytes))
}

/// Acknowledges every second segment, and a lone one late: without it the kernel acknowledges 16 segments one by one at
/// the beginning and after every pause of a retransmission timeout, and one that is marked (PSH) when it is read. The
/// kernel forgets it when an ACK was late or a segment came twice. `TCP_QUICKACK` of tcp(7).
pub fn delay_acks(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(sockopt::set_tcp_quickack(fd, false)?)
}

/// The largest segment, TCP options included.
pub fn set_segment(fd: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &libc::c_int::from(bytes))
}

/// The socket is writable while fewer bytes than this wait to be sent for the first time.
pub fn set_unsent_low(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &int(bytes))
}

/// A timer of TCP that a socket may have of its own, since Linux 6.15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Least retransmission timeout: Linux takes at most 200 ms (`TCP_RTO_MIN` of net/tcp.h).
    MinRto,
    /// Largest retransmission timeout: Linux takes 1 s to 120 s.
    MaxRto,
    /// Longest delay of an ACK: Linux takes at most 200 ms (`TCP_DELACK_MAX` of net/tcp.h).
    DelayedAck,
}

/// Sets a timer; one that this kernel does not have, or a time that it does not take, is an error.
pub fn set_timer(fd: BorrowedFd<'_>, timer: Timer, span: Duration) -> io::Result<()> {
    let (name, count) = match timer {
        Timer::MinRto => (TCP_RTO_MIN_US, span.as_micros()),
        Timer::MaxRto => (TCP_RTO_MAX_MS, span.as_millis()),
        Timer::DelayedAck => (TCP_DELACK_MAX_US, span.as_micros()),
    };
    let count = libc::c_int::try_from(count).unwrap_or(libc::c_int::MAX);
    set_option(fd, libc::IPPROTO_TCP, name, &count)
}

/// The differentiated services code point of its packets.
pub fn set_dscp(fd: BorrowedFd<'_>, dscp: u8) -> io::Result<()> {
    match sockopt::socket_domain(fd)? {
        AddressFamily::INET6 => Ok(sockopt::set_ipv6_tclass(fd, u32::from(dscp) << 2)?),
        _ => Ok(sockopt::set_ip_tos(fd, dscp << 2)?),
    }
}

/// Held at the largest that an option can be.
fn int(bytes: u32) -> libc::c_int {
    libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX)
}

/// The kernel's report of a connection: `tcp_info` of linux/tcp.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// Payload of a segment that is sent.
    pub mss: u32,
    /// What is sent and not acknowledged cumulatively.
    pub outstanding: Outstanding,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: u32,
    /// Slow start threshold in segments.
    pub ssthresh: u32,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Retransmitted segments.
    pub retransmissions: u32,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Segments sent.
    pub segments_out: u32,
    /// Segments received.
    pub segments_in: u32,
    /// Segments that are sent and that the peer has acknowledged out of order (SACK).
    pub sacked: u32,
    /// Payload that was received.
    pub received: Received,
    /// Segments with data that were sent, retransmissions included.
    pub data_out: u32,
    /// Time with something to send or in flight.
    pub busy: Busy,
    /// The window that the peer advertises.
    pub peer_window: u32,
    /// Retransmission timeouts; `None` before Linux 6.7.
    pub timeouts: Option<u16>,
}

/// Segments that are sent and not acknowledged cumulatively.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outstanding {
    /// All of them.
    pub unacked: u32,
    /// Those that count as lost.
    pub lost: u32,
    /// Those that are retransmitted.
    pub retransmitted: u32,
}

/// The payload that a connection has received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Segments with data, in order or not, also those that came twice.
    pub segments: u32,
    /// Bytes in order.
    pub bytes: u64,
    /// Payload of a full segment, as the kernel has seen them.
    pub mss: u32,
}

/// The time of a connection with something to send or in flight, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Busy {
    /// All of it.
    pub total_us: u64,
    /// The part in which the receiver's window was the limit.
    pub receive_window_us: u64,
    /// The part in which the send buffer was the limit.
    pub send_buffer_us: u64,
}

/// The kernel's report of the connection now.
pub fn info(fd: BorrowedFd<'_>) -> io::Result<Info> {
    let mut bytes = [0_u8; 256];
    let len = get_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    Ok(Info::parse(bytes.get(..len).unwrap_or(&bytes)))
}

/// Memory of received segments that the application has not read, those beyond a lost one included. `SO_MEMINFO`,
/// `SK_MEMINFO_RMEM_ALLOC` of linux/sock_diag.h.
pub fn receive_memory(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut words = [0_u32; 9];
    get_option(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words)?;
    Ok(words[0])
}

impl Info {
    /// Payload in flight, in the segments that the congestion control counts: `tcp_packets_in_flight()` of net/tcp.h.
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        let Outstanding { unacked, lost, retransmitted } = self.outstanding;
        let [sent, again, sacked, lost] = [unacked, retransmitted, self.sacked, lost].map(u64::from);
        (sent + again).saturating_sub(sacked + lost) * u64::from(self.mss)
    }

    /// Members by their place in the struct, which only grows; those that an older kernel lacks are zero.
    fn parse(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        let u64_at = |at: usize| match bytes.get(at..at + 8) {
            Some(&[a, b, c, d, e, f, g, h]) => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        };
        Self {
            mss: u32_at(16),
            outstanding: Outstanding { unacked: u32_at(24), lost: u32_at(32), retransmitted: u32_at(36) },
            srtt_us: u32_at(68),
            ssthresh: u32_at(76),
            cwnd: u32_at(80),
            retransmissions: u32_at(100),
            bytes_acked: u64_at(120),
            segments_out: u32_at(136),
            segments_in: u32_at(140),
            sacked: u32_at(28),
            received: Received { segments: u32_at(152), bytes: u64_at(128), mss: u32_at(20) },
            data_out: u32_at(156),
            busy: Busy { total_us: u64_at(168), receive_window_us: u64_at(176), send_buffer_us: u64_at(184) },
            peer_window: u32_at(228),
            timeouts: bytes.get(240..242).map(|b| u16::from_ne_bytes([b[0], b[1]])),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn members_are_read_from_their_places_and_missing_ones_are_zero() {
        let mut bytes = [0_u8; 248];
        for (index, word) in bytes.chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&u32::try_from(index).unwrap().to_ne_bytes());
        }
        let info = Info::parse(&bytes);
        assert_eq!((info.mss, info.cwnd, info.retransmissions, info.peer_window), (4, 20, 25, 57));
        assert_eq!((info.sacked, info.received.mss, info.received.segments), (7, 5, 38));
        assert_eq!(info.outstanding, Outstanding { unacked: 6, lost: 8, retransmitted: 9 });
        assert_eq!(info.received.bytes.to_ne_bytes()[..4], 32_u32.to_ne_bytes());
        assert_eq!(info.timeouts.map(u32::from), Some(60));
        let short = Info::parse(&bytes[..160]);
        assert_eq!((short.data_out, short.busy.total_us, short.timeouts), (39, 0, None));
    }

    /// packets_out - (sacked_out + lost_out) + retrans_out = 100 - (40 + 10) + 5.
    #[test]
    fn what_is_in_flight_is_the_kernels_estimate() {
        let outstanding = Outstanding { unacked: 100, lost: 10, retransmitted: 5 };
        let info = Info { mss: 1000, sacked: 40, outstanding, ..Info::default() };
        assert_eq!(info.in_flight_bytes(), 55_000);
        assert_eq!(Info { sacked: 200, ..info }.in_flight_bytes(), 0);
    }

    /// Loopback: no namespace and no rights are needed.
    #[test]
    fn a_connection_tells_of_itself() {
        for own in ["127.0.0.1:0", "[::1]:0"] {
            let own: SocketAddr = own.parse().unwrap();
            let listener = open(own).unwrap();
            bind(listener.as_fd(), own).unwrap();
            assert_ne!(port(listener.as_fd()).unwrap(), 0);
            set_dscp(listener.as_fd(), 46).unwrap();
            set_congestion(listener.as_fd(), "reno").unwrap();
            listen(listener.as_fd()).unwrap();
            let listener = std::net::TcpListener::from(listener);
            let address = listener.local_addr().unwrap();
            let client = open(address).unwrap();
            connect(client.as_fd(), address).unwrap();
            listener.set_nonblocking(false).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            assert_eq!(congestion(server.as_fd()).unwrap(), "reno", "as the listener");
            io::Write::write_all(&mut server, &[0; 100]).unwrap();
            let mut got = 0;
            while got < 100 {
                got += discard(client.as_fd(), 64).unwrap_or(0);
            }
            assert_eq!(got, 100);
            let info = info(server.as_fd()).unwrap();
            assert!(info.mss > 500 && info.cwnd > 0 && info.data_out > 0, "{info:?}");
            assert!(set_congestion(client.as_fd(), "lastmile-none").is_err());
        }
    }
}

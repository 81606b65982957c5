//! TCP sockets that are set up before they open, options of sockets, and what the kernel tells of a connection: tcp(7), ip(7).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::address::Address;
use super::{check, check_fd};

/// Options of linux/tcp.h that libc has no names for.
const TCP_RTO_MAX_MS: libc::c_int = 44;
const TCP_RTO_MIN_US: libc::c_int = 45;
const TCP_DELACK_MAX_US: libc::c_int = 46;
/// A request of linux/sockios.h that libc has no name for.
const SIOCOUTQNSD: libc::Ioctl = 0x894B;

/// A socket for `address` and what can be reached from it, in the network namespace of the calling thread. It neither listens nor has connected
/// yet, and never blocks.
pub fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes three numbers.
    let fd = check_fd(unsafe { libc::socket(Address::from(address).family(), kind, 0) })?;
    set(fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    Ok(fd)
}

/// Gives the socket an address of its own. bind(2).
pub fn bind(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let address = Address::from(address);
    // SAFETY: the pointer and the length are those of one struct, which outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), address.pointer(), address.len()) }).map(drop)
}

/// The port that the socket has. getsockname(2).
pub fn port(fd: BorrowedFd<'_>) -> io::Result<u16> {
    let mut address = Address::longest();
    let mut len = address.len();
    // SAFETY: the pointer and the length are those of one struct; both outlive the call.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), address.pointer_mut(), &raw mut len) })?;
    Ok(address.port())
}

/// Waits for connections. listen(2).
pub fn listen(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor, open for as long as it is borrowed, and a number.
    check(unsafe { libc::listen(fd.as_raw_fd(), 1024) }).map(drop)
}

/// Begins to connect; the socket is writable once it has. connect(2).
pub fn connect(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let address = Address::from(address);
    // SAFETY: the pointer and the length are those of one struct, which outlives the call.
    match check(unsafe { libc::connect(fd.as_raw_fd(), address.pointer(), address.len()) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(drop),
    }
}

/// Takes at most `most` received bytes and throws them away: how many there were, zero at the end of the stream.
/// `MSG_TRUNC` of tcp(7).
pub fn discard(fd: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with MSG_TRUNC a TCP socket counts bytes without copying any, so the buffer is never written to.
    let taken = unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), most, flags) };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

/// Sends what there is room for, and never waits: how many bytes it took. With `more` to come the last of them is not marked as the end of
/// what there is (PSH), which a receiver would acknowledge at once. `MSG_MORE` of send(2).
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8], more: bool) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | if more { libc::MSG_MORE } else { 0 };
    // SAFETY: the pointer and the length are those of one slice, which outlives the call.
    let taken = unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

/// Bytes that wait to be sent for the first time. `SIOCOUTQNSD` of linux/sockios.h.
pub fn unsent(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int, which outlives it.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), SIOCOUTQNSD, &raw mut bytes) })?;
    usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Chooses the congestion control by its name.
pub fn set_congestion(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let len = libc::socklen_t::try_from(name.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the pointer and the length are those of one text, which outlives the call.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), len) };
    check(result).map(drop)
}

/// The congestion control that the socket has.
pub fn congestion(fd: BorrowedFd<'_>) -> io::Result<String> {
    let mut name = [0_u8; 16];
    let len = read(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name)?;
    let name = &name[..len];
    Ok(String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned())
}

/// Room for what was received and not yet read. The kernel counts its own overhead in; twice `bytes` are what it takes.
pub fn set_receive_buffer(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, int(bytes))
}

/// The largest window to advertise. The kernel sets its own again when the size of segments changes.
pub fn clamp_window(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, int(bytes))
}

/// Acknowledges every second segment, and a lone one late: without it the kernel acknowledges 16 segments one by one at the beginning and after
/// every pause of a retransmission timeout, and one that is marked (PSH) when it is read. The kernel forgets it when an ACK was late or a
/// segment came twice. `TCP_QUICKACK` of tcp(7).
pub fn delay_acks(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0)
}

/// The largest segment, TCP options included.
pub fn set_segment(fd: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, libc::c_int::from(bytes))
}

/// The socket is writable while fewer bytes than this wait to be sent for the first time.
pub fn set_unsent_low(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, int(bytes))
}

/// Bounds of the retransmission timeout, and the longest delay of an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// Least retransmission timeout.
    pub min_rto: Duration,
    /// Largest retransmission timeout.
    pub max_rto: Duration,
    /// Longest delay of an ACK.
    pub delayed_ack: Duration,
}

/// Sets the timers; the first that this kernel refuses is an error.
pub fn set_timers(fd: BorrowedFd<'_>, timers: Timers) -> io::Result<()> {
    let us = |span: Duration| libc::c_int::try_from(span.as_micros()).unwrap_or(libc::c_int::MAX);
    let max_ms = libc::c_int::try_from(timers.max_rto.as_millis()).unwrap_or(libc::c_int::MAX);
    set(fd, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, max_ms)?;
    set(fd, libc::IPPROTO_TCP, TCP_RTO_MIN_US, us(timers.min_rto))?;
    set(fd, libc::IPPROTO_TCP, TCP_DELACK_MAX_US, us(timers.delayed_ack))
}

/// The differentiated services code point of its packets.
pub fn set_dscp(fd: BorrowedFd<'_>, dscp: u8) -> io::Result<()> {
    let mut domain = [0; size_of::<libc::c_int>()];
    read(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, &mut domain)?;
    let (level, option) = match libc::c_int::from_ne_bytes(domain) {
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        _ => (libc::IPPROTO_IP, libc::IP_TOS),
    };
    set(fd, level, option, libc::c_int::from(dscp) << 2)
}

/// Held at the largest that an option can be.
fn int(bytes: u32) -> libc::c_int {
    libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX)
}

fn set(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("four");
    // SAFETY: `value` is an int of the size that is given, and outlives the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), size) }).map(drop)
}

/// Fills `to` with an option and says how many bytes there were.
fn read(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, to: &mut [u8]) -> io::Result<usize> {
    let mut len = libc::socklen_t::try_from(to.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the pointer and the length are those of one slice, and the length outlives the call.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, to.as_mut_ptr().cast(), &raw mut len) };
    check(result)?;
    usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// What the kernel tells of a connection: `struct tcp_info` of linux/tcp.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// Payload of a segment that is sent.
    pub mss: u32,
    /// Segments in flight.
    pub unacked: u32,
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
    /// Segments with data that were received.
    pub data_in: u32,
    /// Segments with data that were sent, retransmissions included.
    pub data_out: u32,
    /// Microseconds with something to send or in flight.
    pub busy_us: u64,
    /// Of those, held up by the receiver's window.
    pub receive_window_us: u64,
    /// Of those, held up by the send buffer.
    pub send_buffer_us: u64,
    /// The window that the peer advertises.
    pub peer_window: u32,
    /// Retransmission timeouts; `None` before Linux 6.7.
    pub timeouts: Option<u16>,
}

/// What the kernel tells of the connection now.
pub fn info(fd: BorrowedFd<'_>) -> io::Result<Info> {
    let mut bytes = [0; 256];
    let len = read(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    Ok(Info::parse(&bytes[..len.min(bytes.len())]))
}

impl Info {
    /// Members by their place in the struct, which only grows; those that an older kernel lacks are zero.
    fn parse(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        let u64_at = |at: usize| match bytes.get(at..at + 8) {
            Some(&[a, b, c, d, e, f, g, h]) => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        };
        Self {
            mss: u32_at(16),
            unacked: u32_at(24),
            srtt_us: u32_at(68),
            ssthresh: u32_at(76),
            cwnd: u32_at(80),
            retransmissions: u32_at(100),
            bytes_acked: u64_at(120),
            segments_out: u32_at(136),
            segments_in: u32_at(140),
            data_in: u32_at(152),
            data_out: u32_at(156),
            busy_us: u64_at(168),
            receive_window_us: u64_at(176),
            send_buffer_us: u64_at(184),
            peer_window: u32_at(228),
            timeouts: bytes.get(240..242).map(|b| u16::from_ne_bytes([b[0], b[1]])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_their_places_and_missing_ones_are_zero() {
        let mut bytes = [0_u8; 248];
        for (index, word) in bytes.chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&u32::try_from(index).unwrap().to_ne_bytes());
        }
        let info = Info::parse(&bytes);
        assert_eq!((info.mss, info.cwnd, info.retransmissions, info.peer_window), (4, 20, 25, 57));
        assert_eq!(info.timeouts.map(u32::from), Some(60));
        let short = Info::parse(&bytes[..160]);
        assert_eq!((short.data_out, short.busy_us, short.timeouts), (39, 0, None));
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

//! ICMP echo to one host, over IPv4 (RFC 792) and IPv6 (RFC 4443), with the kernel's receive times: raw(7), icmp(7),
//! socket(7) `SO_TIMESTAMPNS`.
//!
//! A raw socket is tried first, and a ping socket where the kernel refuses it: a ping socket needs no right but
//! membership in a group of `net.ipv4.ping_group_range`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime};

use lastmile_packet::checksum::Sum;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, send, sendto, socket_with};

use super::{random, set_option, socket, stamped, wait};

/// Bytes of the header of an echo message.
const HEADER: usize = 8;
const REQUEST_V4: u8 = 8;
const REPLY_V4: u8 = 0;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;
/// `ICMP_FILTER` of linux/icmp.h and `ICMPV6_FILTER` of linux/icmpv6.h.
const FILTER: libc::c_int = 1;

/// A socket for echo requests to one host, in the network namespace of the thread that opened it. Never blocks.
#[derive(Debug)]
pub struct EchoSocket {
    fd: OwnedFd,
    kind: EchoKind,
    v6: bool,
    identifier: [u8; 2],
    /// The host, where the socket is not connected to it.
    target: Option<SocketAddr>,
}

/// The kernel's two kinds of ICMP sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EchoKind {
    /// Sends and receives any ICMP message; needs `CAP_NET_RAW`. raw(7).
    Raw,
    /// Sends echo requests alone, with an identifier of the kernel's choice, and receives their replies alone; open to
    /// the groups of `net.ipv4.ping_group_range`. icmp(7).
    Ping,
}

/// IP bytes of a request with as many bytes of data as one of ping(8) has: 84 of IPv4, 104 of IPv6.
#[must_use]
pub const fn usual_ip_len(target: IpAddr) -> usize {
    least_ip_len(target) + 56
}

/// IP bytes of a request without data.
#[must_use]
pub const fn least_ip_len(target: IpAddr) -> usize {
    HEADER + if target.is_ipv6() { 40 } else { 20 }
}

impl EchoSocket {
    /// A socket that exchanges messages with `target` alone, whose port is zero. Its packets are marked with this code
    /// point, and sent from `own` on a host that has several addresses.
    ///
    /// # Errors
    /// Neither kind of socket is allowed, or there is no route to the host.
    pub fn open(target: SocketAddr, own: Option<IpAddr>, code_point: u8) -> io::Result<Self> {
        let socket = Self::of_either_kind(target, code_point)?;
        if let Some(own) = own {
            socket::bind(socket.fd.as_fd(), SocketAddr::new(own, 0))?;
        }
        socket::connect(socket.fd.as_fd(), target)?;
        Ok(socket)
    }

    /// As [`EchoSocket::open`], where the kernel looks up the route and the address of its own for each request: they
    /// may change, and need not be there yet. The network's errors are not reported.
    ///
    /// # Errors
    /// Neither kind of socket is allowed.
    pub fn open_unconnected(target: SocketAddr, code_point: u8) -> io::Result<Self> {
        let socket = Self::of_either_kind(target, code_point)?;
        if socket.kind == EchoKind::Raw {
            socket.take_replies_alone()?;
        }
        Ok(Self { target: Some(target), ..socket })
    }

    fn of_either_kind(target: SocketAddr, code_point: u8) -> io::Result<Self> {
        let refused =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported);
        match Self::of_kind(EchoKind::Raw, target, code_point) {
            Err(error) if refused(&error) => Self::of_kind(EchoKind::Ping, target, code_point),
            other => other,
        }
    }

    fn of_kind(kind: EchoKind, target: SocketAddr, code_point: u8) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, protocol) = match target {
            SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let socket_type = match kind {
            EchoKind::Raw => SocketType::RAW,
            EchoKind::Ping => SocketType::DGRAM,
        };
        let fd = socket_with(family, socket_type, flags, Some(protocol))?;
        stamped::enable(fd.as_fd())?;
        socket::set_dscp(fd.as_fd(), code_point)?;
        Ok(Self { fd, kind, v6: target.is_ipv6(), identifier: random::bytes()?, target: None })
    }

    /// Keeps the messages of other types, which every raw socket gets, from this one: `ICMP_FILTER` of raw(7),
    /// `ICMP6_FILTER` of RFC 3542. Bits that are set hold back.
    fn take_replies_alone(&self) -> io::Result<()> {
        if self.v6 {
            let mut held = [u32::MAX; 8];
            held[usize::from(REPLY_V6 / 32)] &= !(1 << (REPLY_V6 % 32));
            set_option(self.fd.as_fd(), libc::IPPROTO_ICMPV6, FILTER, &held)
        } else {
            set_option(self.fd.as_fd(), libc::SOL_RAW, FILTER, &!(1_u32 << REPLY_V4))
        }
    }

    /// The kind of the socket.
    #[must_use]
    pub const fn kind(&self) -> EchoKind {
        self.kind
    }

    /// Sends a request of this length as an IP packet.
    ///
    /// # Errors
    /// No route, a device that is down, or a packet too long for one that may not be fragmented. A full queue on the
    /// way out is no error: it loses the request, as one further on would.
    pub fn request(&self, sequence: u16, ip_len: usize) -> io::Result<()> {
        let ip_header = if self.v6 { 40 } else { 20 };
        let mut message = vec![0; ip_len.saturating_sub(ip_header).max(HEADER)];
        message[4..6].copy_from_slice(&self.identifier);
        message[6..8].copy_from_slice(&sequence.to_be_bytes());
        if self.v6 {
            // The kernel adds the checksum, which covers the addresses.
            message[0] = REQUEST_V6;
        } else {
            message[0] = REQUEST_V4;
            let checksum = Sum::ZERO.bytes(&message).checksum();
            message[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
        let sent = match &self.target {
            None => send(&self.fd, &message, SendFlags::empty()),
            Some(target) => sendto(&self.fd, &message, SendFlags::empty(), target),
        };
        match sent {
            // The network refused an earlier request.
            Ok(_) | Err(Errno::NOBUFS | Errno::AGAIN | Errno::CONNREFUSED) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until a packet waits, or this time has passed.
    ///
    /// # Errors
    /// None that a socket in use causes.
    pub fn wait(&self, patience: Duration) -> io::Result<()> {
        wait::readable([Some(self.fd.as_fd())], Some(patience))?;
        Ok(())
    }

    /// The next reply that waits, to a request of this socket: its sequence number, and when the kernel received it.
    ///
    /// # Errors
    /// An error that the network has reported, such as an unreachable host; later replies are not lost by it.
    pub fn reply(&self) -> io::Result<Option<(u16, Option<SystemTime>)>> {
        // Replies contain what was sent; a longer one is cut.
        let mut buffer = [0; 128];
        while let Some(stamped::From { len, sender, stamp }) = stamped::receive_from(self.fd.as_fd(), &mut buffer)? {
            // A connected socket gets nothing of others.
            if self.target.is_some_and(|target| sender.map(|sender| sender.ip()) != Some(target.ip())) {
                continue;
            }
            if let Some(sequence) = self.sequence_of(buffer.get(..len).unwrap_or(&buffer)) {
                return Ok(Some((sequence, stamp)));
            }
        }
        Ok(None)
    }

    /// The sequence number, if this is a reply to a request of this socket.
    fn sequence_of(&self, packet: &[u8]) -> Option<u16> {
        // Raw sockets of IPv4 alone hand over the IP header.
        let header = match (self.kind, self.v6) {
            (EchoKind::Raw, false) => usize::from(packet.first()? & 0x0f) * 4,
            _ => 0,
        };
        let [kind, 0, _, _, id0, id1, seq0, seq1, ..] = *packet.get(header..)? else { return None };
        let expected = if self.v6 { REPLY_V6 } else { REPLY_V4 };
        // The kernel chooses the identifier of a ping socket, and hands over its replies alone.
        let own = self.kind == EchoKind::Ping || [id0, id1] == self.identifier;
        (kind == expected && own).then(|| u16::from_be_bytes([seq0, seq1]))
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(kind: EchoKind, v6: bool) -> EchoSocket {
        let fd = std::fs::File::open("/dev/null").unwrap().into();
        EchoSocket { fd, kind, v6, identifier: [0xab, 0xcd], target: None }
    }

    /// RFC 792: type, code, checksum, identifier, sequence number; a raw socket of IPv4 has the IP header before it.
    #[test]
    fn replies_are_told_by_type_and_identifier() {
        let reply = |kind| [kind, 0, 1, 2, 0xab, 0xcd, 3, 4];
        let mut packet = vec![0x45; 20];
        packet.extend_from_slice(&reply(REPLY_V4));
        let raw = socket(EchoKind::Raw, false);
        assert_eq!(raw.sequence_of(&packet), Some(0x0304));
        assert_eq!(raw.sequence_of(&packet[..27]), None);
        assert_eq!(raw.sequence_of(&[]), None);
        packet[24] = 0xaa;
        assert_eq!(raw.sequence_of(&packet), None, "another identifier");
        let v6 = socket(EchoKind::Raw, true);
        assert_eq!(v6.sequence_of(&reply(REPLY_V6)), Some(0x0304));
        assert_eq!(v6.sequence_of(&reply(REQUEST_V6)), None, "loopback shows requests too");
        assert_eq!(socket(EchoKind::Ping, false).sequence_of(&[0, 0, 1, 2, 9, 9, 3, 4]), Some(0x0304));
    }

    #[test]
    #[ignore = "needs root for a raw socket"]
    fn loopback_answers_requests_of_any_length_by_both_families() {
        for target in ["127.0.0.1", "::1"] {
            let target: IpAddr = target.parse().unwrap();
            let connected = EchoSocket::open(SocketAddr::new(target, 0), Some(target), 46).unwrap();
            let unconnected = EchoSocket::open_unconnected(SocketAddr::new(target, 0), 46).unwrap();
            for socket in [connected, unconnected] {
                for (sequence, ip_len) in [(1, least_ip_len(target)), (2, usual_ip_len(target)), (3, 1400)] {
                    socket.request(sequence, ip_len).unwrap();
                    socket.wait(Duration::from_secs(1)).unwrap();
                    let reply = socket.reply().unwrap().map(|(sequence, _)| sequence);
                    assert_eq!(reply, Some(sequence), "{target} {ip_len}");
                }
            }
        }
    }
}

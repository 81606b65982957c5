//! ICMP sockets whose received packets carry the kernel's time stamp: raw(7), icmp(7), socket(7) `SO_TIMESTAMPNS`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, send, socket_with};

use super::{socket, stamped};

/// A raw ICMP socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct IcmpSocket(OwnedFd);

impl IcmpSocket {
    /// Opens a socket that sends to `target` and, apart from errors, receives only from it. Never blocks.
    pub fn connect(target: Ipv4Addr) -> io::Result<Self> {
        Self::between(None, target)
    }

    /// A path from one address of the host, for hosts that have several.
    pub fn between(own: Option<Ipv4Addr>, target: Ipv4Addr) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::ICMP))?;
        stamped::enable(fd.as_fd())?;
        if let Some(own) = own {
            socket::bind(fd.as_fd(), SocketAddr::new(own.into(), 0))?;
        }
        socket::connect(fd.as_fd(), SocketAddr::new(target.into(), 0))?;
        Ok(Self(fd))
    }

    /// Sends an ICMP message, header included.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        send(&self.0, message, SendFlags::empty())?;
        Ok(())
    }

    /// The next packet, IP header included, and when the kernel received it; `None` when none waits.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<SystemTime>)>> {
        stamped::receive(self.0.as_fd(), buffer)
    }
}

/// A socket for echo requests to one host, by IPv4 or IPv6.
#[derive(Debug)]
pub struct EchoSocket {
    fd: OwnedFd,
    kind: EchoKind,
    v6: bool,
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

impl EchoSocket {
    /// A socket that exchanges messages with `target` alone, its packets marked with this code point. Never blocks.
    pub fn connect(kind: EchoKind, target: SocketAddr, code_point: u8) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, protocol) = match target {
            SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let kind_of_socket = match kind {
            EchoKind::Raw => SocketType::RAW,
            EchoKind::Ping => SocketType::DGRAM,
        };
        let fd = socket_with(family, kind_of_socket, flags, Some(protocol))?;
        stamped::enable(fd.as_fd())?;
        socket::set_dscp(fd.as_fd(), code_point)?;
        socket::connect(fd.as_fd(), target)?;
        Ok(Self { fd, kind, v6: target.is_ipv6() })
    }

    /// The kind of the socket.
    #[must_use]
    pub const fn kind(&self) -> EchoKind {
        self.kind
    }

    /// True for IPv6.
    #[must_use]
    pub const fn is_v6(&self) -> bool {
        self.v6
    }

    /// Sends an ICMP message, header included. The kernel fills in the checksum of ICMPv6.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        send(&self.fd, message, SendFlags::empty())?;
        Ok(())
    }

    /// The next ICMP message, without IP header, and when the kernel received it; `None` when none waits.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<(&'a [u8], Option<SystemTime>)>> {
        let Some((len, stamp)) = stamped::receive(self.fd.as_fd(), buffer)? else { return Ok(None) };
        let packet = buffer.get(..len).unwrap_or_default();
        // Raw sockets of IPv4 alone hand over the IP header.
        let header = match (self.kind, self.v6) {
            (EchoKind::Raw, false) => packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4),
            _ => 0,
        };
        Ok(Some((packet.get(header..).unwrap_or_default(), stamp)))
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

//! A raw ICMP socket whose received packets carry the kernel's time stamp: raw(7), socket(7) `SO_TIMESTAMPNS`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;

use super::{check_fd, socket, stamped};

/// A raw ICMP socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct IcmpSocket(OwnedFd);

impl IcmpSocket {
    /// Opens a socket that sends to `target` and, apart from errors, receives only from it. Never blocks.
    pub fn connect(target: Ipv4Addr) -> io::Result<Self> {
        Self::between(None, target)
    }

    /// The same from an address of the host's, where it has several.
    pub fn between(own: Option<Ipv4Addr>, target: Ipv4Addr) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes three numbers.
        let fd = check_fd(unsafe { libc::socket(libc::AF_INET, kind, libc::IPPROTO_ICMP) })?;
        stamped::enable(fd.as_fd())?;
        if let Some(own) = own {
            socket::bind(fd.as_fd(), SocketAddr::new(own.into(), 0))?;
        }
        socket::connect(fd.as_fd(), SocketAddr::new(target.into(), 0))?;
        Ok(Self(fd))
    }

    /// Sends an ICMP message, header included.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of one slice.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next packet, IP header included, and when the kernel received it; `None` when none waits.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<SystemTime>)>> {
        stamped::receive(self.0.as_fd(), buffer)
    }
}

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

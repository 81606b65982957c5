//! A raw ICMP socket whose received packets carry the kernel's time stamp: raw(7), socket(7) `SO_TIMESTAMPNS`.

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

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

//! A raw ICMP socket whose received packets carry the kernel's time stamp: raw(7), socket(7) `SO_TIMESTAMPNS`.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;

use super::{check, check_fd, control, set_option};

/// A raw ICMP socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct IcmpSocket(OwnedFd);

impl IcmpSocket {
    /// Opens a socket that sends to `target` and, apart from errors, receives only from it. Never blocks.
    pub(crate) fn connect(target: Ipv4Addr) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes three numbers.
        let fd = check_fd(unsafe { libc::socket(libc::AF_INET, kind, libc::IPPROTO_ICMP) })?;
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(target.octets()) },
            sin_zero: [0; 8],
        };
        let size = libc::socklen_t::try_from(size_of_val(&address)).expect("sixteen");
        // SAFETY: `address` has the size that is given, and outlives the call.
        check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
        Ok(Self(fd))
    }

    /// Sends an ICMP message, header included.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of one slice.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next packet, IP header included, and when the kernel received it; `None` when none waits. recvmsg(2), cmsg(3).
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<SystemTime>)>> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // Room for one struct timespec and its header, aligned as a header must be.
        let mut control = [0_u64; 8];
        // SAFETY: integers and pointers, of which all zero is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the message points to a buffer and a control block with their lengths, all of which outlive the call.
        let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) };
        match usize::try_from(received) {
            Ok(len) => {
                let mut time = None;
                control::messages(&message, |level, kind, data| time = time.or(control::stamp(level, kind, data)));
                Ok(Some((len, time)))
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

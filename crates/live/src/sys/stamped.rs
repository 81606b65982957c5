//! Packets with the time at which the kernel received them: socket(7) `SO_TIMESTAMPNS`, recvmsg(2), cmsg(3). rustix
//! reads no control messages with times.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::SystemTime;

use rustix::net::sockopt;

use super::{control, set_option};

/// Makes the kernel add the receive time to each packet of this socket.
pub fn enable(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)
}

/// Sets the send buffer of this socket. Linux doubles it, for its own data about each packet.
pub fn set_send_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    Ok(sockopt::set_socket_send_buffer_size(socket, bytes as usize)?)
}

/// The next packet and when the kernel received it; `None` when none waits, or none came in time.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<SystemTime>)>> {
    let mut message = control::message();
    received(socket, buffer, &mut message)
}

/// A packet with its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct From {
    /// Its length.
    pub len: usize,
    /// Address and port of the sender; `None` for other families than IPv4 and IPv6.
    pub sender: Option<SocketAddr>,
    /// When the kernel received it.
    pub stamp: Option<SystemTime>,
}

/// As [`receive`], with the sender's address and port.
pub fn receive_from(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<From>> {
    // Room for the address of any family, aligned as one must be; longer than that of IPv6.
    let mut name = [0_u64; 16];
    let mut message = control::message();
    message.msg_name = name.as_mut_ptr().cast();
    message.msg_namelen = size_of_val(&name) as _;
    let received = received(socket, buffer, &mut message)?;
    let name: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = name.get(..message.msg_namelen as usize).unwrap_or_default();
    Ok(received.map(|(len, stamp)| From { len, sender: address(name), stamp }))
}

/// Receives into `buffer` a packet whose `message` may have a place for the sender's address.
fn received(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    message: &mut libc::msghdr,
) -> io::Result<Option<(usize, Option<SystemTime>)>> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Room for one struct timespec and its header, aligned as a header must be.
    let mut control = [0_u64; 8];
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message points to a buffer, a control block and perhaps a name with their lengths, all of which
    // outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), message, 0) };
    match usize::try_from(received) {
        Ok(len) => {
            let mut time = None;
            control::messages(message, |level, kind, data| time = time.or(control::stamp(level, kind, data)));
            Ok(Some((len, time)))
        }
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        },
    }
}

/// Structs `sockaddr_in` and `sockaddr_in6` of ip(7) and ipv6(7). An IPv4 address in one of IPv6 is one of IPv4.
fn address(name: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = name.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    match libc::c_int::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => Some(SocketAddr::new(Ipv4Addr::from(*rest.first_chunk::<4>()?).into(), port)),
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?);
            Some(SocketAddr::new(address.to_canonical(), port))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    /// Loopback: no namespace and no rights are needed.
    #[test]
    fn a_datagram_comes_with_its_sender_and_its_time() {
        for (own, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let socket = UdpSocket::bind(own).unwrap();
            enable(socket.as_fd()).unwrap();
            socket.set_nonblocking(true).unwrap();
            assert!(receive_from(socket.as_fd(), &mut [0; 10]).unwrap().is_none());
            let to = SocketAddr::new(to.parse().unwrap(), socket.local_addr().unwrap().port());
            let sender = UdpSocket::bind((to.ip(), 0)).unwrap();
            sender.send_to(b"abc", to).unwrap();
            // On a busy machine the kernel hands it over later.
            socket.set_nonblocking(false).unwrap();
            socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            let mut buffer = [0; 10];
            let From { len, sender: from, stamp } = receive_from(socket.as_fd(), &mut buffer).unwrap().unwrap();
            assert_eq!((&buffer[..len], from), (&b"abc"[..], Some(sender.local_addr().unwrap())));
            assert!(stamp.unwrap().elapsed().unwrap().as_secs() < 25);
        }
    }
}

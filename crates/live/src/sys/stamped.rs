//! Packets with the time at which the kernel received them: socket(7) `SO_TIMESTAMPNS`, recvmsg(2), cmsg(3). rustix
//! reads no control messages with times.

use std::io;
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

/// Sets the receive buffer of this socket, above the limit of the machine. Needs CAP_NET_ADMIN.
pub fn force_receive_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    Ok(sockopt::set_socket_recv_buffer_size_force(socket, bytes as usize)?)
}

/// The next packet and when the kernel received it; `None` when none waits, or none came in time.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<SystemTime>)>> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Room for one struct timespec and its header, aligned as a header must be.
    let mut control = [0_u64; 8];
    let mut message = control::message();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message points to a buffer and a control block with their lengths, all of which outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
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

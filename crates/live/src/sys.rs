//! The system calls that neither the standard library nor rustix offers, each behind a safe function, and safe calls in
//! the words of this program. The only unsafe code of lastmile.
//!
//! Every function says which manual page it stands for and takes and gives owned or borrowed file descriptors, so that
//! none leaks or is used after its end. An error is the call's own `errno`.
//!
//! | module | holds |
//! | --- | --- |
//! | `wait` | ppoll(2), timer slack, real-time scheduling |
//! | `namespace` | setns(2), unshare(2), the mounts that give a namespace a name |
//! | `device` | tun(4), ethtool(8): make a device, and what its driver does to packets |
//! | `address` | addresses and routes of a device |
//! | `link`, `netlink` | rtnetlink(7): what a device is and what it is a port of; bridges |
//! | `random` | getrandom(2) |
//! | `bpf` | two small programs in the kernel, and the links that hold them: bpf(2) |
//! | `nft` | a chain of nftables that drops what comes in, and ends with its socket |
//! | `outgoing` | when the kernel gave each packet to a device: a ring of packet(7) |
//! | `mapping` | memory shared with the kernel: mmap(2) |
//! | [`packet`] | packet sockets: packet(7), recvmmsg(2), sendmmsg(2) |
//! | [`stamped`] | packets with the kernel's receive time; the buffers of a socket |
//! | `xdp` | AF_XDP sockets |
//! | `ring`, `umem` | the rings of AF_XDP and the memory for its frames, with who may use which part |
//! | [`socket`] | sockets that are set up before they open, `TCP_INFO` |
//! | [`icmp`] | sockets for echo requests whose replies carry the kernel's receive time |
//! | `statistics` | counters of interfaces, queueing disciplines and classes: rtnetlink(7) |
#![allow(unsafe_code, reason = "system calls that no safe library has")]

pub(crate) mod address;
pub(crate) mod bpf;
mod control;
pub(crate) mod device;
pub mod icmp;
pub(crate) mod link;
mod mapping;
pub(crate) mod namespace;
mod netlink;
pub(crate) mod nft;
pub(crate) mod outgoing;
pub mod packet;
pub(crate) mod random;
mod ring;
pub mod socket;
pub mod stamped;
pub(crate) mod statistics;
mod umem;
pub(crate) mod wait;
pub(crate) mod xdp;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// The result of a call that returns -1 and sets `errno` on failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The descriptor that a call has just opened.
fn check_fd(result: libc::c_int) -> io::Result<OwnedFd> {
    let fd: RawFd = check(result)?;
    // SAFETY: the kernel has just returned this descriptor, so it is open and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an option of a socket that rustix does not name to a value of the type that it takes. setsockopt(2).
fn set_option<T>(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let size = libc::socklen_t::try_from(size_of::<T>()).expect("a small struct");
    // SAFETY: `value` has the size that is given, and outlives the call; every option used takes the type that is
    // passed.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(value).cast(), size) }).map(drop)
}

/// Reads an option of a socket that rustix does not name into a value of the type that it fills; returns how many bytes
/// it filled. getsockopt(2).
fn get_option<T>(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: &mut T) -> io::Result<usize> {
    let mut size = libc::socklen_t::try_from(size_of::<T>()).expect("a small struct");
    let to = ptr::from_mut(value).cast();
    // SAFETY: `value` has the size that is given, is of integers as every option used is, and outlives the call.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, &raw mut size) })?;
    Ok(size as usize)
}

//! TUN devices, and what the driver of a device does to packets: tun(4) of the kernel's documentation, ethtool(8).
//! Their calls are ioctl(2)s with a struct `ifreq`, which no crate offers safely.
//!
//! All of it acts on the network namespace of the calling thread.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::check;

/// Where TUN devices come from.
pub(crate) const CLONE_DEVICE: &str = "/dev/net/tun";

/// Makes a TUN device and gives the file through which its packets go, opened without blocking, and its name. A `%d` in
/// `pattern` becomes the first number that is free. The device ends with the file.
pub(crate) fn open_tun(pattern: &str) -> io::Result<(File, String)> {
    // No IFF_VNET_HDR: the kernel then finishes checksums and cuts large segments before the packet comes here.
    open_clone(pattern, libc::IFF_TUN | libc::IFF_NO_PI)
}

/// Makes a TAP device as a virtual machine has it, each of whose frames begins with a struct `virtio_net_hdr`, and
/// gives its file. The machine takes from the kernel whatever `offloads` names (`TUN_F_*`).
#[cfg(test)]
pub(crate) fn open_tap(name: &str, offloads: libc::c_uint) -> io::Result<File> {
    let (file, _) = open_clone(name, libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR)?;
    // SAFETY: takes a number.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as libc::Ioctl, libc::c_ulong::from(offloads)) })?;
    Ok(file)
}

fn open_clone(pattern: &str, flags: libc::c_int) -> io::Result<(File, String)> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(CLONE_DEVICE)?;
    let mut request = request(pattern)?;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    ioctl(file.as_fd(), libc::TUNSETIFF, &mut request)?;
    Ok((file, text(&request.ifr_name)?))
}

/// The number of receive queues of the device. One where its driver does not say.
/// `ETHTOOL_GCHANNELS` of linux/ethtool.h.
pub(crate) fn receive_queues(name: &str) -> io::Result<u32> {
    const GET_CHANNELS: u32 = 0x3C;
    /// Where struct `ethtool_channels` has its `rx_count` and `combined_count`.
    const COUNTS: [usize; 2] = [5, 8];
    let mut channels = [0_u32; 9];
    channels[0] = GET_CHANNELS;
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
    match on_socket(libc::SIOCETHTOOL, &mut request) {
        Ok(()) => Ok(COUNTS.map(|at| channels[at]).iter().sum::<u32>().max(1)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(error),
    }
}

/// Has hosts finish checksums and cut segments before they hand them to the device. `ETHTOOL_STXCSUM`, `ETHTOOL_STSO`
/// and `ETHTOOL_SGSO` of linux/ethtool.h.
pub(crate) fn switch_off_transmit_offloads(name: &str) -> io::Result<()> {
    for command in [0x24, 0x1F, 0x17] {
        let mut value: [u32; 2] = [command, 0];
        let mut request = request(name)?;
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        on_socket(libc::SIOCETHTOOL, &mut request)?;
    }
    Ok(())
}

/// True when the device hands over VLAN tags beside the frame, not in it.
pub(crate) fn takes_off_tags(name: &str) -> io::Result<bool> {
    const RECEIVE_VLAN: u32 = 1 << 8;
    Ok(ethtool_value(name, GET_FLAGS)? & RECEIVE_VLAN != 0)
}

/// True when the device or the kernel joins frames that came in one after the other: LRO or GRO.
pub(crate) fn joins_frames(name: &str) -> io::Result<bool> {
    const GET_GRO: u32 = 0x2B;
    const LRO: u32 = 1 << 15;
    Ok(ethtool_value(name, GET_GRO)? != 0 || ethtool_value(name, GET_FLAGS)? & LRO != 0)
}

/// `ETHTOOL_GFLAGS` of linux/ethtool.h.
const GET_FLAGS: u32 = 0x25;

/// The device's answer to a command of linux/ethtool.h that takes a struct `ethtool_value`.
fn ethtool_value(name: &str, command: u32) -> io::Result<u32> {
    let mut value = [command, 0];
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    on_socket(libc::SIOCETHTOOL, &mut request)?;
    Ok(value[1])
}

fn text(name: &[libc::c_char]) -> io::Result<String> {
    let name = name.iter().take_while(|&&byte| byte != 0).flat_map(|byte| byte.to_ne_bytes()).collect();
    String::from_utf8(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: integers and a union of integers and addresses, of which all zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = name_bytes(name)?;
    Ok(request)
}

/// The name of a device, ended by a zero: at most 15 bytes.
fn name_bytes(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut bytes = [0; libc::IFNAMSIZ];
    if name.is_empty() || name.len() >= bytes.len() || name.contains(['\0', '/', ' ']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name for a device")));
    }
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(bytes)
}

fn on_socket(operation: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    ioctl(any_socket()?.as_fd(), operation as libc::Ioctl, request)
}

/// Any socket of the namespace serves for netdevice(7).
fn any_socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
}

fn ioctl(fd: BorrowedFd<'_>, operation: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every operation used here takes a pointer to an ifreq, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), operation, std::ptr::from_mut(request)) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_or_odd_is_refused() {
        for name in ["", "sixteen-bytes-xx", "a/b", "a b", "a\0b"] {
            assert_eq!(name_bytes(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
        assert!(name_bytes("fifteen-bytes-x").is_ok());
    }
}

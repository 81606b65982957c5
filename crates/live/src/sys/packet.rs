//! Packet sockets: packet(7), recvmmsg(2), sendmmsg(2).
//!
//! Receiving and sending are two sockets. The one that receives gives each frame with the offload that was left undone
//! (`PACKET_VNET_HDR`), its VLAN tag if the kernel took that off (`PACKET_AUXDATA`), and the kernel's receive time; the
//! one that sends takes bare frames. It passes by the device's queueing discipline (`PACKET_QDISC_BYPASS`) where its
//! caller is the queue.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::SystemTime;

use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{check, control, get_option, set_option};

/// Frames that one call receives or sends at most.
pub const BATCH: usize = 64;

/// The bytes in front of each received frame: struct `virtio_net_hdr` (linux/virtio_net.h).
pub const OFFLOAD_LEN: usize = 10;

/// Room for a received frame: a segment before segmentation has at most 65 535 bytes of IP, and headers of the link.
const SLOT: usize = OFFLOAD_LEN + 65_536 + 64;

/// Room for two control messages, of 16 and 20 bytes, in words that align them.
const CONTROL_WORDS: usize = 10;

/// The socket that receives.
#[derive(Debug)]
pub struct Receiver {
    socket: OwnedFd,
    index: libc::c_int,
}

/// The socket that sends.
#[derive(Debug)]
pub struct Sender(OwnedFd);

/// Memory for one batch of received frames, and what the kernel says of each.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    about: Vec<About>,
}

/// The kernel's metadata of a received frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    /// Bytes of offload header and frame.
    pub len: usize,
    /// True when the frame was longer than its room, and the rest is lost.
    pub cut: bool,
    /// When the kernel received it.
    pub stamp: Option<SystemTime>,
    /// Protocol and control information of the tag that the kernel took off.
    pub tag: Option<(u16, u16)>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// Empty. Of the memory only what frames have touched is really taken.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: vec![0; SLOT * BATCH], about: Vec::with_capacity(BATCH) }
    }

    /// A received frame with the offload header before it, and what is to be known of it.
    pub fn get(&mut self, index: usize) -> (&mut [u8], About) {
        let about = self.about[index];
        (&mut self.bytes[index * SLOT..][..about.len], about)
    }
}

impl Receiver {
    /// Receives every frame that comes in through the device of this name in the namespace of the calling thread,
    /// whomever it is for, and none that goes out. `buffer` bytes of the kernel's memory keep those that have not been
    /// read.
    pub fn open(device: &str, buffer: u32) -> io::Result<Self> {
        let index = index_of(device)?;
        let receiver = Self { socket: open()?, index };
        let socket = receiver.as_fd();
        for (level, name, value) in [
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
            (libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1),
            (libc::SOL_PACKET, libc::PACKET_AUXDATA, 1),
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, libc::c_int::try_from(buffer).unwrap_or(libc::c_int::MAX)),
        ] {
            set_option(socket, level, name, &value)?;
        }
        receiver.be_promiscuous()?;
        // Last: until it is bound, the socket receives nothing.
        bind(socket, index, libc::ETH_P_ALL as u16)?;
        Ok(receiver)
    }

    /// Receives nothing, but puts the device into promiscuous mode for as long as it lives.
    pub fn deaf(device: &str) -> io::Result<Self> {
        let receiver = Self { socket: open()?, index: index_of(device)? };
        receiver.be_promiscuous()?;
        Ok(receiver)
    }

    fn be_promiscuous(&self) -> io::Result<()> {
        let everything = libc::packet_mreq {
            mr_ifindex: self.index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(self.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &everything)
    }

    /// Receives at most `limit` frames and never waits; returns how many.
    pub fn receive(&self, batch: &mut Batch, limit: usize) -> io::Result<usize> {
        let limit = limit.min(BATCH);
        let mut controls = [[0_u64; CONTROL_WORDS]; BATCH];
        let (mut parts, mut messages) = empty_batch();
        let slots = batch.bytes.chunks_exact_mut(SLOT);
        for (((slot, control), part), message) in
            slots.zip(&mut controls).zip(&mut parts).zip(&mut messages).take(limit)
        {
            *part = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: SLOT };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of_val(control) as _;
        }
        let count = libc::c_uint::try_from(limit).expect("at most a batch");
        let socket = self.socket.as_raw_fd();
        // rustix has no recvmmsg(2). SAFETY: `count` messages, each with a part and a control block of the lengths
        // given, all of which outlive the call; null for no timeout.
        let received =
            unsafe { libc::recvmmsg(socket, messages.as_mut_ptr(), count, libc::MSG_DONTWAIT as _, ptr::null_mut()) };
        batch.about.clear();
        match usize::try_from(received) {
            Ok(received) => {
                batch.about.extend(messages[..received].iter().map(about));
                Ok(received)
            }
            Err(_) => match io::Error::last_os_error() {
                error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
                error => Err(error),
            },
        }
    }

    /// Frames that found no room in the buffer, since the last call.
    pub fn dropped(&self) -> io::Result<u32> {
        let mut counted = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        get_option(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counted)?;
        Ok(counted.tp_drops)
    }

    /// True while the device is there, up or down.
    pub fn device_exists(&self) -> bool {
        index_to_name(&self.socket, self.index.cast_unsigned()).is_ok()
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Sender {
    /// Sends through the device of this name in the namespace of the calling thread, past its queueing discipline.
    /// Packet sockets do not hear of these frames either.
    pub fn open(device: &str, buffer: u32) -> io::Result<Self> {
        let sender = Self::open_queued(device, buffer)?;
        set_option(sender.0.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)?;
        Ok(sender)
    }

    /// Sends through the queueing discipline of this device, as a host does.
    pub fn open_queued(device: &str, buffer: u32) -> io::Result<Self> {
        let index = index_of(device)?;
        let sender = Self(open()?);
        let buffer = libc::c_int::try_from(buffer).unwrap_or(libc::c_int::MAX);
        set_option(sender.0.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &buffer)?;
        // Protocol 0: it receives nothing.
        bind(sender.0.as_fd(), index, 0)?;
        Ok(sender)
    }

    /// Sends frames in their order, at most a batch of them, until one is refused; returns how many were sent, or why
    /// not even the first was. Never waits.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let (mut parts, mut messages) = empty_batch();
        let mut count: libc::c_uint = 0;
        for ((frame, part), message) in frames.zip(&mut parts).zip(&mut messages) {
            // The kernel only reads through this pointer.
            *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        let socket = self.0.as_raw_fd();
        // The sendmmsg(2) of rustix wants a vector of messages for each batch; that of musl makes a system call for
        // each message. SAFETY: `count` messages, each with a part that borrows a frame, all of which outlive the
        // call. What a C library has between their fields is zero.
        let sent =
            unsafe { libc::syscall(libc::SYS_sendmmsg, socket, messages.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

fn about(message: &libc::mmsghdr) -> About {
    let mut about = About {
        len: (message.msg_len as usize).min(SLOT),
        cut: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        ..About::default()
    };
    control::messages(&message.msg_hdr, |level, kind, data| {
        if let Some(stamp) = control::stamp(level, kind, data) {
            about.stamp = Some(stamp);
        } else if (level, kind) == (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
            about.tag = tag(data);
        }
    });
    about
}

/// The tag in a struct `tpacket_auxdata`: `tp_status` in the first four bytes, `tp_vlan_tci` and `tp_vlan_tpid` in the
/// last.
fn tag(auxiliary: &[u8]) -> Option<(u16, u16)> {
    const VLAN: u16 = 0x8100;
    let status = u32::from_ne_bytes(*auxiliary.first_chunk()?);
    let [.., tci0, tci1, tpid0, tpid1] = auxiliary else { return None };
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let protocol = if known { u16::from_ne_bytes([*tpid0, *tpid1]) } else { VLAN };
    (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| (protocol, u16::from_ne_bytes([*tci0, *tci1])))
}

fn empty_batch() -> ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) {
    let part = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
    ([part; BATCH], [libc::mmsghdr { msg_hdr: control::message(), msg_len: 0 }; BATCH])
}

pub(super) fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?)
}

/// The number of a device in the namespace of the calling thread. netdevice(7).
pub fn index_of(device: &str) -> io::Result<libc::c_int> {
    // Any socket of the namespace serves.
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(name_to_index(&socket, device)?.cast_signed())
}

pub(super) fn bind(socket: BorrowedFd<'_>, index: libc::c_int, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let size = libc::socklen_t::try_from(size_of_val(&address)).expect("twenty");
    // rustix has no addresses of AF_PACKET.
    // SAFETY: `address` has the size that is given, and outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// linux/if_packet.h: status, len, snaplen (32 bits each), mac, net, tci, tpid (16 bits each).
    #[test]
    fn a_tag_is_there_only_if_the_status_says_so() {
        let auxiliary = |status: u32| {
            let mut bytes = status.to_ne_bytes().to_vec();
            bytes.extend([0; 12]);
            bytes.extend(100_u16.to_ne_bytes());
            bytes.extend(0x88A8_u16.to_ne_bytes());
            bytes
        };
        assert_eq!(tag(&auxiliary(1)), None);
        assert_eq!(tag(&auxiliary(1 | 1 << 4)), Some((0x8100, 100)));
        assert_eq!(tag(&auxiliary(1 | 1 << 4 | 1 << 6)), Some((0x88A8, 100)));
        assert_eq!(tag(&[]), None);
        assert_eq!(size_of::<libc::tpacket_auxdata>(), auxiliary(0).len());
    }
}

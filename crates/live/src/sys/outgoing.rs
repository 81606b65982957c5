//! When the kernel gave each packet to a device: a packet socket that hears what goes out, and whose ring this program
//! reads without a system call. packet(7), `PACKET_RX_RING` with `TPACKET_V2`; the kernel's documentation,
//! networking/packet_mmap.
//!
//! Of each packet the ring keeps its length, its beginning and its time. It knows neither whether the device took the
//! packet nor when somebody read it there.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use super::mapping::Mapping;
use super::packet::{bind, index_of, open};
use super::set_option;

/// Bytes of a record: struct `tpacket2_hdr`, a link-layer address, room for a header of the link that no TUN device
/// has, and the packet's beginning.
const RECORD: usize = 128;
/// Records: twice as many packets as the device holds unread.
const RECORDS: usize = 8192;
/// Bytes that the kernel allocates together.
const BLOCK: usize = 1 << 16;

/// Metadata of a packet that the kernel gave to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Given<'a> {
    /// When.
    pub(crate) at: SystemTime,
    /// Its length as an IP packet.
    pub(crate) len: usize,
    /// Its first bytes, or all of it.
    pub(crate) beginning: &'a [u8],
}

/// The ring of one device.
#[derive(Debug)]
pub(crate) struct Outgoing {
    // The memory goes after the socket that uses it.
    _socket: OwnedFd,
    memory: Mapping,
    next: usize,
}

impl Outgoing {
    /// Hears what the kernel gives to the device of this name in the namespace of the calling thread, from now on.
    pub(crate) fn open(device: &str) -> io::Result<Self> {
        let (socket, index) = (open()?, index_of(device)?);
        only_what_goes_out(&socket)?;
        set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &libc::tpacket_versions::TPACKET_V2)?;
        let number = |number: usize| libc::c_uint::try_from(number).expect("at most a mebibyte");
        let size = libc::tpacket_req {
            tp_block_size: number(BLOCK),
            tp_block_nr: number(RECORDS * RECORD / BLOCK),
            tp_frame_size: number(RECORD),
            tp_frame_nr: number(RECORDS),
        };
        set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &size)?;
        let memory = Mapping::new(RECORDS * RECORD, libc::MAP_SHARED, socket.as_raw_fd(), 0)?;
        // Last: until it is bound, the socket hears nothing.
        bind(socket.as_fd(), index, libc::ETH_P_ALL as u16)?;
        Ok(Self { _socket: socket, memory, next: 0 })
    }

    /// The oldest packet that was not consumed.
    pub(crate) fn first(&self) -> Option<Given<'_>> {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: a record lies in the mapping. The kernel has just handed it over, and keeps off it until it is given
        // back, which borrows `self` mutably.
        let record = unsafe { std::slice::from_raw_parts(self.memory.at(self.next * RECORD).as_ptr(), RECORD) };
        // linux/if_packet.h, struct tpacket2_hdr: status, len, snaplen, mac and net (16 bits each), sec, nsec.
        let word = |at: usize| u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let begin = usize::from(u16::from_ne_bytes([record[12], record[13]]));
        let kept = word(8) as usize;
        Some(Given {
            at: SystemTime::UNIX_EPOCH + Duration::new(word(16).into(), word(20).min(999_999_999)),
            len: word(4) as usize,
            beginning: record.get(begin..begin + kept).unwrap_or(&[]),
        })
    }

    /// Gives the place of the first one back to the kernel; nothing if there is none.
    pub(crate) fn consume(&mut self) {
        if self.first().is_some() {
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % RECORDS;
        }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: a record lies in the mapping, aligned to its size, and begins with an integer that both sides use as
        // an atomic one.
        unsafe { self.memory.at(self.next * RECORD).cast().as_ref() }
    }
}

/// Not what comes in: a filter of packet(7), in the instructions of the kernel's documentation, networking/filter.
fn only_what_goes_out(socket: &OwnedFd) -> io::Result<()> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let packet_type = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
    let instruction = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut filter = [
        instruction(LOAD_WORD, 0, packet_type),
        instruction(JUMP_IF_EQUAL, 1, libc::PACKET_OUTGOING.into()),
        instruction(RETURN, 0, 0),
        // As much as there is.
        instruction(RETURN, 0, u32::MAX),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

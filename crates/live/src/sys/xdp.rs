//! AF_XDP sockets: frames in memory that the kernel and this program share, without a system call for each. The kernel's
//! documentation, networking/af_xdp; linux/if_xdp.h.
//!
//! A socket serves one receive queue of a device. Its memory is cut into chunks of one page. Half of them go round on the way in (fill
//! ring to the kernel, receive ring back), half on the way out (transmit ring, completion ring). Each ring has one producer
//! and one consumer, whose counts only grow and meet through acquire and release, as the kernel's side of it does.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;
use super::{bpf, check, check_fd, set_option};

/// Bytes of a chunk: a frame must fit, beside the room that the kernel keeps in front of it.
const CHUNK: usize = 4096;
/// Bytes that the kernel keeps in front of a received frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// The longest frame that fits.
pub(crate) const MAX_FRAME: usize = CHUNK - HEADROOM;
/// Entries of each ring, a power of two, and chunks each way.
const ENTRIES: u32 = 4096;
/// Frames that are fetched ahead of the one that is read: another processor has written them, and its cache is far.
const AHEAD: usize = 4;

/// In what way the kernel runs the program that redirects frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// In the driver, before it makes a packet buffer.
    Native,
    /// After that, by the network stack.
    Generic,
}

impl Mode {
    /// `XDP_FLAGS_DRV_MODE` and `XDP_FLAGS_SKB_MODE`.
    pub(super) fn flags(self) -> u32 {
        match self {
            Self::Native => 1 << 2,
            Self::Generic => 1 << 1,
        }
    }
}

/// A socket on one queue of a device.
#[derive(Debug)]
pub(crate) struct XdpSocket {
    // Rings and memory go after the socket that uses them.
    socket: OwnedFd,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    memory: Mapping,
    /// Chunks for sending that the kernel does not have.
    free: Vec<u64>,
}

impl XdpSocket {
    /// Opens a socket on `queue` of the device of this number in the namespace of the calling thread. It receives nothing
    /// until a program redirects frames to it.
    pub(crate) fn open(device: libc::c_int, queue: u32) -> io::Result<Self> {
        // SAFETY: takes three numbers.
        let socket = check_fd(unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
        let memory = Mapping::anonymous(CHUNK * ENTRIES as usize * 2)?;
        // The fields of struct xdp_umem_reg up to `flags`: all kernels with AF_XDP take these.
        let register: [u64; 3] = [memory.start.as_ptr() as u64, memory.len as u64, chunk_size_and_headroom()];
        set_option(socket.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &register)?;
        for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING] {
            set_option(socket.as_fd(), libc::SOL_XDP, ring, &ENTRIES)?;
        }
        let offsets = offsets(socket.as_fd())?;
        let mut opened = Self {
            receive: Ring::map(socket.as_fd(), &offsets.rx, libc::XDP_PGOFF_RX_RING)?,
            transmit: Ring::map(socket.as_fd(), &offsets.tx, libc::XDP_PGOFF_TX_RING)?,
            fill: Ring::map(socket.as_fd(), &offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t)?,
            completion: Ring::map(socket.as_fd(), &offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t)?,
            free: (u64::from(ENTRIES)..2 * u64::from(ENTRIES)).map(|chunk| chunk * CHUNK as u64).collect(),
            socket,
            memory,
        };
        opened.fill.produce((0..u64::from(ENTRIES)).map(|chunk| chunk * CHUNK as u64));
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: device.cast_unsigned(),
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let size = libc::socklen_t::try_from(size_of_val(&address)).expect("sixteen");
        // SAFETY: `address` has the size that is given, and outlives the call.
        check(unsafe { libc::bind(opened.socket.as_raw_fd(), (&raw const address).cast(), size) })?;
        Ok(opened)
    }

    /// Hands at most `limit` waiting frames to `take`, and gives their chunks back to the kernel; returns how many there were.
    pub(crate) fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&mut [u8])) -> usize {
        let Self { receive, fill, memory, .. } = self;
        let count = receive.available().min(limit);
        let fetch = |memory: &Mapping, index| {
            if index < count {
                memory.fetch(receive.peek(index).addr);
            }
        };
        (0..AHEAD).for_each(|index| fetch(memory, index));
        for index in 0..count {
            fetch(memory, index + AHEAD);
            let frame = receive.peek(index);
            take(memory.slice(frame.addr, frame.len));
        }
        // The chunk's number is what the fill ring wants; the place of the frame in it is the kernel's affair.
        let chunk = |index| receive.peek(index).addr & !(CHUNK as u64 - 1);
        fill.produce((0..count).map(chunk));
        receive.consume(count);
        count
    }

    /// Puts a frame up for sending; false when no chunk is free, or the frame is longer than one.
    pub(crate) fn queue(&mut self, frame: &[u8]) -> bool {
        if frame.len() > MAX_FRAME {
            return false;
        }
        let Some(address) = self.free.pop() else { return false };
        let len = frame.len() as u32;
        self.memory.slice(address, len).copy_from_slice(frame);
        self.transmit.produce([libc::xdp_desc { addr: address, len, options: 0 }].into_iter());
        true
    }

    /// Has the kernel send what is put up, and takes back the chunks of what it has sent. Never waits.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        // In copy mode the kernel sends within this call, a few at a time.
        let result = self.transmit_pending();
        let done = self.completion.available();
        let completion = &self.completion;
        self.free.extend((0..done).map(|index| completion.peek(index)));
        self.completion.consume(done);
        result
    }

    fn transmit_pending(&self) -> io::Result<()> {
        loop {
            let before = self.transmit.pending();
            if before == 0 {
                return Ok(());
            }
            // SAFETY: no buffer and no address: the call only says that there is work.
            let sent =
                unsafe { libc::sendto(self.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
            if sent < 0 {
                let error = io::Error::last_os_error();
                // EAGAIN: it sent as many as it does at once.
                if error.raw_os_error() != Some(libc::EAGAIN) || self.transmit.pending() == before {
                    return Err(error);
                }
            }
        }
    }

    /// Takes back what is put up and was not sent: the last ones. Returns how many.
    pub(crate) fn withdraw(&mut self) -> usize {
        // In copy mode the kernel takes frames from the ring within sendto(2) alone, so nobody reads these now.
        let unsent = self.transmit.pending();
        for index in 0..unsent {
            self.free.push(self.transmit.peek(index).addr);
        }
        self.transmit.unproduce(unsent);
        unsent
    }

    /// # Errors
    /// The device is gone.
    pub(crate) fn check(&self) -> io::Result<()> {
        let mut error: libc::c_int = 0;
        get_option(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Frames that found no room in the ring, or no chunk, or were longer than one, since the socket was opened.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        let mut counted = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        get_option(self.socket.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS, &mut counted)?;
        Ok(counted.rx_dropped + counted.rx_ring_full)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Two numbers of 32 bits in one of 64, in the order of the struct.
fn chunk_size_and_headroom() -> u64 {
    let [a, b, c, d] = (CHUNK as u32).to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}

/// Leads all frames that come in through the device of this number, in the namespace of the calling thread, to these sockets, of
/// which each serves the queue of its place; until the link is closed.
pub(crate) fn redirect(device: libc::c_int, sockets: &[XdpSocket], mode: Mode) -> io::Result<OwnedFd> {
    bpf::redirect(device, sockets, mode.flags())
}

fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: a struct of integers, of which all zero is a value.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    get_option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

fn get_option<T>(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut size = libc::socklen_t::try_from(size_of::<T>()).expect("a small struct");
    let to = ptr::from_mut(value).cast();
    // SAFETY: `value` has the size that is given, is of the type that the option fills, and outlives the call.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, &raw mut size) }).map(drop)
}

/// A ring shared with the kernel, of which this program has one end.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    _mapping: Mapping,
}

// SAFETY: the pointers lead into the mapping, which this value owns.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn map(socket: BorrowedFd<'_>, offsets: &libc::xdp_ring_offset, page: libc::off_t) -> io::Result<Self> {
        let len = offsets.desc as usize + ENTRIES as usize * size_of::<T>();
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let mapping = Mapping::new(len, flags, socket.as_raw_fd(), page)?;
        // SAFETY: the kernel gave these offsets for this mapping, each aligned for what is there.
        let at = |offset: u64| unsafe { mapping.start.add(offset as usize) };
        Ok(Self {
            producer: at(offsets.producer).cast(),
            consumer: at(offsets.consumer).cast(),
            entries: at(offsets.desc).cast(),
            _mapping: mapping,
        })
    }

    fn count(&self, end: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: leads into the mapping, which lives as long as `self`, to an integer that both sides use as an atomic one.
        unsafe { end.as_ref() }
    }

    fn entry(&self, count: u32) -> *mut T {
        // SAFETY: the remainder is below the number of entries.
        unsafe { self.entries.add((count % ENTRIES) as usize).as_ptr() }
    }

    /// Of a ring that the kernel fills: how many entries wait.
    fn available(&self) -> usize {
        let consumed = self.count(self.consumer).load(Ordering::Relaxed);
        self.count(self.producer).load(Ordering::Acquire).wrapping_sub(consumed) as usize
    }

    /// Of a ring that this program fills: how many entries the kernel has not taken.
    fn pending(&self) -> usize {
        let produced = self.count(self.producer).load(Ordering::Relaxed);
        produced.wrapping_sub(self.count(self.consumer).load(Ordering::Acquire)) as usize
    }

    /// An entry that has not been consumed, 0 for the first; only below [`Ring::available`] or [`Ring::pending`].
    fn peek(&self, index: usize) -> T {
        let consumed = self.count(self.consumer).load(Ordering::Relaxed);
        // SAFETY: within the ring; one side has written it, and nobody touches it until it is consumed.
        unsafe { self.entry(consumed.wrapping_add(index as u32)).read() }
    }

    /// Gives the places of the first so many entries back to the kernel.
    fn consume(&mut self, count: usize) {
        let consumer = self.count(self.consumer);
        consumer.store(consumer.load(Ordering::Relaxed).wrapping_add(count as u32), Ordering::Release);
    }

    /// Takes the last so many entries back, which the kernel has not taken.
    fn unproduce(&mut self, count: usize) {
        let producer = self.count(self.producer);
        producer.store(producer.load(Ordering::Relaxed).wrapping_sub(count as u32), Ordering::Release);
    }

    /// Hands entries to the kernel. There is room: no more chunks go round than a ring has entries.
    fn produce(&mut self, entries: impl Iterator<Item = T>) {
        let mut produced = self.count(self.producer).load(Ordering::Relaxed);
        for entry in entries {
            // SAFETY: within the ring, at a place that the kernel has given back.
            unsafe { self.entry(produced).write(entry) };
            produced = produced.wrapping_add(1);
        }
        self.count(self.producer).store(produced, Ordering::Release);
    }
}

//! AF_XDP sockets: frames in memory that the kernel and this program share, without a system call for each. The
//! kernel's documentation, networking/af_xdp; linux/if_xdp.h.
//!
//! A socket serves one receive queue of a device. Half of its chunks circulate on the way in (fill ring to the kernel,
//! receive ring back), half on the way out (transmit ring, completion ring).
//!
//! In copy mode the kernel takes frames from the transmit ring within two system calls of this process: sendto(2),
//! which reports what became of the last frame, and poll(2), which does not. So no frame may be left in the ring when a
//! poll can come: [`XdpSocket::transmit`] cancels what the kernel has not taken, by putting descriptors in its place
//! that the kernel skips. The producer's count stays; the kernel has a copy of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpUmemReg, XdpUmemRegFlags};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt};

use super::bpf::{self, Redirecting};
use super::ring::{Consumer, ENTRIES, Producer};
use super::umem::{CHUNK, Chunk, Umem};

/// Bytes that the kernel keeps in front of a received frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// The longest frame that fits.
pub(crate) const MAX_FRAME: usize = CHUNK - HEADROOM;
/// Frames that are fetched ahead of the one that is read: another processor has written them, and its cache is far.
const AHEAD: usize = 4;
/// Bytes of the socket's send buffer: as many as the device may hold of frames that were sent.
const SEND_BUFFER: usize = 8 << 20;
/// A descriptor that the kernel skips: it lies in no chunk.
const NOTHING: libc::xdp_desc = libc::xdp_desc { addr: u64::MAX, len: 0, options: 0 };

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
    receive: Consumer<libc::xdp_desc>,
    transmit: Producer<libc::xdp_desc>,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    umem: Umem,
    /// Chunks for sending.
    free: Vec<Chunk>,
    /// Up to which count of the transmit ring it is known what became of the frames.
    settled: u32,
}

impl XdpSocket {
    /// Opens a socket on `queue` of the device of this number in the namespace of the calling thread. It receives
    /// nothing until a program redirects frames to it.
    pub(crate) fn open(device: libc::c_int, queue: u32) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER)?;
        let (umem, mut free) = Umem::new(2 * ENTRIES)?;
        let received = free.split_off(ENTRIES as usize);
        let [addr, len] = umem.place();
        let register = XdpUmemReg {
            addr,
            len,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, register)?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, ENTRIES)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, ENTRIES)?;
        sockopt::set_xdp_rx_ring_size(&socket, ENTRIES)?;
        sockopt::set_xdp_tx_ring_size(&socket, ENTRIES)?;
        let offsets = sockopt::xdp_mmap_offsets(&socket)?;
        let (fill_page, completion_page) =
            (libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t);
        let mut opened = Self {
            receive: Consumer::map(socket.as_fd(), &offsets.rx, libc::XDP_PGOFF_RX_RING)?,
            transmit: Producer::map(socket.as_fd(), &offsets.tx, libc::XDP_PGOFF_TX_RING)?,
            fill: Producer::map(socket.as_fd(), &offsets.fr, fill_page)?,
            completion: Consumer::map(socket.as_fd(), &offsets.cr, completion_page)?,
            umem,
            free,
            settled: 0,
            socket,
        };
        received.into_iter().for_each(|chunk| opened.offer(chunk));
        opened.fill.publish();
        let flags = SocketAddrXdpFlags::XDP_COPY | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        bind(&opened.socket, &SocketAddrXdp::new(flags, device.cast_unsigned(), queue))?;
        Ok(opened)
    }

    /// Offers a chunk to the kernel for a frame to be received.
    fn offer(&mut self, chunk: Chunk) {
        let Self { umem, fill, free, .. } = self;
        let address = umem.lend(chunk);
        if let Err(address) = fill.push(address) {
            // No more chunks circulate on the way in than the ring has entries. One that found none would serve for
            // sending.
            free.extend(umem.take_back(address));
        }
    }

    /// Hands at most `limit` waiting frames to `take`, and gives their chunks back to the kernel; returns how many
    /// there were.
    pub(crate) fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&mut [u8])) -> usize {
        let Self { receive, fill, umem, free, .. } = self;
        let batch = receive.batch(limit);
        let fetch = |umem: &Umem, index| {
            if let Some(frame) = batch.get(index) {
                umem.fetch(frame.addr);
            }
        };
        (0..AHEAD).for_each(|index| fetch(umem, index));
        for index in 0..batch.len() {
            fetch(umem, index + AHEAD);
            let Some(frame) = batch.get(index) else { break };
            let Some(chunk) = umem.take_back(frame.addr) else { continue };
            let from = frame.addr as usize % CHUNK;
            if let Some(bytes) = umem.bytes(&chunk).get_mut(from..from + frame.len as usize) {
                take(bytes);
            }
            if let Err(address) = fill.push(umem.lend(chunk)) {
                free.extend(umem.take_back(address));
            }
        }
        fill.publish();
        batch.len()
    }

    /// Has the kernel pass what was cancelled, so that it looks at what comes next.
    ///
    /// # Errors
    /// It takes nothing now: the device is down.
    pub(crate) fn pass_cancelled(&mut self) -> io::Result<()> {
        let mut pending = self.transmit.produced().wrapping_sub(self.transmit.taken());
        // A call passes one descriptor at least, and the call after the last one says so.
        for _ in 0..=pending.min(ENTRIES) {
            if pending == 0 {
                return Ok(());
            }
            match self.call() {
                Err(error) if error.raw_os_error() != Some(libc::EAGAIN) => return Err(error),
                _ => pending = self.transmit.produced().wrapping_sub(self.transmit.taken()),
            }
        }
        if pending == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EAGAIN)) }
    }

    /// Puts a frame up for sending; false where no chunk or no entry is free, or the frame is longer than
    /// [`MAX_FRAME`].
    pub(crate) fn put_up(&mut self, frame: &[u8]) -> bool {
        if frame.len() > MAX_FRAME {
            return false;
        }
        let Some(chunk) = self.free.pop() else { return false };
        self.umem.bytes(&chunk)[..frame.len()].copy_from_slice(frame);
        let addr = self.umem.lend(chunk);
        match self.transmit.push(libc::xdp_desc { addr, len: frame.len() as u32, options: 0 }) {
            Ok(()) => true,
            Err(refused) => {
                self.free.extend(self.umem.take_back(refused.addr));
                false
            }
        }
    }

    /// Has the kernel send what was put up, and says of each frame in its order what became of it. Never waits. Nothing
    /// is left in the ring that the kernel could send later.
    pub(crate) fn transmit(&mut self, verdict: &mut dyn FnMut(io::Result<()>)) {
        self.transmit.publish();
        let mut open = self.transmit.produced().wrapping_sub(self.settled);
        while open > 0 {
            let called = self.call();
            let taken = self.taken(open);
            let dropped = matches!(&called, Err(error) if error.raw_os_error() == Some(libc::EBUSY));
            // EBUSY: the device has no carrier, and the last frame that the kernel took is lost. If that was the first
            // one, the kernel does not say yet that it took it.
            let settled = if dropped { taken.max(1).min(open) } else { taken };
            let lost = u32::from(dropped).min(settled);
            (lost..settled).for_each(|_| verdict(Ok(())));
            (0..lost).for_each(|_| verdict(Err(io::Error::from_raw_os_error(libc::ENETDOWN))));
            self.settled = self.settled.wrapping_add(settled);
            open -= settled;
            if settled == 0 {
                let errno = called.err().and_then(|error| error.raw_os_error()).unwrap_or(libc::EAGAIN);
                self.cancel(open);
                (0..open).for_each(|_| verdict(Err(io::Error::from_raw_os_error(errno))));
                break;
            }
        }
        self.take_back();
    }

    /// The number of the `open` frames that the kernel says it has taken.
    fn taken(&self, open: u32) -> u32 {
        let beyond = self.transmit.taken().wrapping_sub(self.settled);
        // Behind what is settled by the frame that it dropped and has not counted.
        if beyond > ENTRIES { 0 } else { beyond.min(open) }
    }

    /// Puts nothing in the place of the last `open` frames.
    fn cancel(&mut self, open: u32) {
        let Self { transmit, umem, free, settled, .. } = self;
        transmit.replace_last(open, |frame| {
            free.extend(umem.take_back(frame.addr));
            NOTHING
        });
        *settled = transmit.produced();
    }

    /// Takes back the chunks of what was sent.
    fn take_back(&mut self) {
        let Self { completion, umem, free, .. } = self;
        let batch = completion.batch(usize::MAX);
        free.extend((0..batch.len()).filter_map(|index| umem.take_back(batch.get(index)?)));
    }

    /// In copy mode the kernel sends within this call, a few frames at a time.
    fn call(&self) -> io::Result<()> {
        send(&self.socket, &[], SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// # Errors
    /// The device is gone.
    pub(crate) fn check(&self) -> io::Result<()> {
        Ok(sockopt::socket_error(&self.socket)??)
    }

    /// Received frames that the kernel dropped since the socket was opened.
    pub(crate) fn dropped(&self) -> io::Result<Dropped> {
        let counted = sockopt::xdp_statistics(&self.socket)?;
        // The kernel counts both a frame that is too long and one for which there is no chunk as dropped, and the
        // latter once more.
        let without_chunk = counted.rx_fill_ring_empty_descs.unwrap_or(0).min(counted.rx_dropped);
        let unread = without_chunk + counted.rx_ring_full.unwrap_or(0);
        Ok(Dropped { unread, too_long: counted.rx_dropped - without_chunk })
    }
}

/// Received frames that the kernel dropped, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dropped {
    /// No entry of the receive ring or no chunk was free.
    pub(crate) unread: u64,
    /// Longer than [`MAX_FRAME`].
    pub(crate) too_long: u64,
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Redirects all frames that arrive at the device with this index, in the namespace of the calling thread, to these
/// sockets. The socket at index `i` serves receive queue `i`.
pub(crate) fn redirect(device: libc::c_int, sockets: &[XdpSocket], mode: Mode) -> io::Result<Redirecting> {
    bpf::redirect(device, sockets, mode.flags())
}

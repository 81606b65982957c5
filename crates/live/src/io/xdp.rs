//! AF_XDP: frames taken from a device before the kernel has made packet buffers of them, in memory shared with it.
//!
//! A program of eleven instructions leads what comes in through each queue of the device to a socket
//! of this process, and past the rest of the kernel: a bridge below carries nothing meanwhile. The
//! program hangs on a link that lives by a descriptor of this process; when that ends, however it
//! does, the device is the kernel's again. So this is its own [`super::Bypass`].
//!
//! Against packet sockets it has drawbacks, since the kernel says nothing about a frame but its bytes:
//! - no receive time: frames count as arrived when they are read;
//! - no VLAN tag that the device took off (`rxvlan`), or that a host hands to a virtual device beside
//!   the frame (`txvlan` on the other end of a veth): such a frame would leave without its tag. Those
//!   offloads must be off;
//! - no word on partial checksums. They are recognised, in tunnels too: the field holds the sum of the
//!   pseudo-header, and the checksum is wrong. A packet damaged on its way looks so once in 65 536
//!   times;
//! - no frame longer than 3840 bytes. A device with a larger MTU is refused. With the program in its
//!   driver a veth makes its other end cut; before the network stack, a device that joins frames
//!   (`gro`, `lro`) is refused. A longer frame that comes all the same is dropped and counted
//!   ([`Counters::cut_short`]).
//!
//! Frames are copied between the kernel's buffers and the shared memory (`XDP_COPY`), which every driver can.
//!
//! Cost: two copies each way, one system call for up to 32 sent frames, none for received ones while more wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, SystemTime};

use lastmile_packet::Frame;
use lastmile_units::Instant;

use super::handover::Handover;
use super::{Counters, Framing, Port, Refusal, offload};
use crate::clock::Clock;
use crate::error::{Context, Error};
use crate::netns::Namespace;
use crate::sys::bpf::Redirecting;
use crate::sys::xdp::{self, Mode, XdpSocket};
use crate::sys::{device, link, packet, wait};

/// The largest MTU whose packets fit into a frame with an Ethernet header and two tags.
const MOST_MTU: u32 = xdp::MAX_FRAME as u32 - 14 - 2 * 4;

/// A device, by AF_XDP sockets on all its queues.
#[derive(Debug)]
pub struct Xdp {
    /// Detaches the program when it goes: first.
    program: Redirecting,
    name: String,
    sockets: Vec<XdpSocket>,
    /// Readable when a socket is, where there are several.
    any: Option<OwnedFd>,
    /// Keeps the device in promiscuous mode, as a bridge would.
    _promiscuous: packet::Receiver,
    native: bool,
    /// The queue that frames are read from first, so that none has to wait for another for ever.
    first: usize,
    counters: Counters,
    handover: Handover,
}

impl Xdp {
    /// Takes over the device of this name in `namespace`, or in that of the calling thread: in its
    /// driver if that can, before the network stack otherwise.
    ///
    /// # Errors
    /// Not root, no such device, a kernel without AF_XDP, a device that has such a program already,
    /// or one that carries longer frames than AF_XDP does.
    pub fn open(namespace: Option<&Namespace>, name: &str) -> Result<Self, Error> {
        match namespace {
            Some(namespace) => namespace.run(|| Self::open_here(name))?,
            None => Self::open_here(name),
        }
    }

    fn open_here(name: &str) -> Result<Self, Error> {
        let what = || format!("opening AF_XDP sockets on {name}");
        let mtu = link::mtu(name).context(what)?;
        if mtu > MOST_MTU {
            return Err(Error::PacketsTooLong { name: name.to_owned(), mtu, most: MOST_MTU });
        }
        let opened = Self::take_over(name).context(what)?;
        if !opened.native && device::joins_frames(name).context(what)? {
            return Err(Error::JoinsFrames { name: name.to_owned() });
        }
        Ok(opened)
    }

    fn take_over(name: &str) -> io::Result<Self> {
        let index = packet::index_of(name)?;
        let promiscuous = packet::Receiver::deaf(name)?;
        let queues = device::receive_queues(name)?;
        let open = || (0..queues).map(|queue| open_queue(index, queue)).collect::<io::Result<Vec<_>>>();
        let mut sockets = open()?;
        let (program, native) = match xdp::redirect(index, &sockets, Mode::Native) {
            Ok(program) => (program, true),
            // The driver knows nothing of it, or has an MTU too large for it.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE)) => {
                drop(sockets);
                sockets = open()?;
                (xdp::redirect(index, &sockets, Mode::Generic)?, false)
            }
            Err(error) => return Err(error),
        };
        let any = match sockets.as_slice() {
            [_] => None,
            several => Some(wait::any_of(several)?),
        };
        let (counters, handover, name) = (Counters::default(), Handover::default(), name.to_owned());
        Ok(Self { program, name, sockets, any, _promiscuous: promiscuous, native, first: 0, counters, handover })
    }

    /// True when the program runs in the device's driver.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.native
    }
}

/// A queue whose last socket is closed is free only when a worker of the kernel has come to it
/// (`xp_put_pool`), also if the process was killed: looks so often whether it is, so long apart.
const LOOKS: (u32, Duration) = (100, Duration::from_millis(10));

fn open_queue(index: libc::c_int, queue: u32) -> io::Result<XdpSocket> {
    for _ in 0..LOOKS.0 {
        match XdpSocket::open(index, queue) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => thread::sleep(LOOKS.1),
            opened => return opened,
        }
    }
    XdpSocket::open(index, queue)
}

impl Port for Xdp {
    fn name(&self) -> &str {
        &self.name
    }

    fn framing(&self) -> Framing {
        Framing::Ethernet
    }

    fn receive(
        &mut self,
        clock: &dyn Clock,
        limit: usize,
        take: &mut dyn FnMut(Instant, &[u8]),
    ) -> io::Result<Instant> {
        let now = clock.now();
        let read = SystemTime::now();
        let Self { sockets, first, counters, .. } = self;
        let (count, mut taken) = (sockets.len(), 0);
        for index in 0..count {
            taken += sockets[(*first + index) % count].receive(limit - taken, &mut |frame| {
                counters.offloads.finished += u64::from(offload::finish_if_partial(frame));
                take(now, frame);
            });
        }
        *first = (*first + 1) % count;
        if taken == 0 {
            sockets.iter().try_for_each(XdpSocket::check)?;
            self.handover.emptied(read);
        }
        // An unread frame has not arrived yet, in the sense of this device.
        Ok(now)
    }

    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, Result<(), Refusal>)) {
        let socket = &mut self.sockets[0];
        if let Err(error) = socket.pass_cancelled() {
            frames.drain(..).for_each(|frame| done(frame, Err(Refusal::from(&error))));
            return;
        }
        let (mut rest, mut results) = (frames.as_slice(), Vec::with_capacity(frames.len()));
        while let Some(frame) = rest.first() {
            if frame.bytes().len() > xdp::MAX_FRAME {
                results.push(Err(Refusal::Invalid));
                rest = &rest[1..];
                continue;
            }
            let put_up = rest.iter().take_while(|frame| socket.put_up(frame.bytes())).count();
            socket.transmit(&mut |result| results.push(result.map_err(|error| Refusal::from(&error))));
            if put_up == 0 {
                // No chunk, or no entry of the ring, was free.
                results.push(Err(Refusal::Full));
            }
            rest = &rest[put_up.max(1)..];
        }
        for (frame, result) in frames.drain(..).zip(results) {
            done(frame, result);
        }
    }

    fn let_go(&mut self, from: SystemTime) {
        self.program.end();
        self.handover.begin(from);
    }

    fn has_let_go(&self) -> bool {
        self.handover.is_over()
    }

    fn counters(&mut self) -> io::Result<Counters> {
        let mut counters = self.counters;
        for socket in &self.sockets {
            let dropped = socket.dropped()?;
            counters.dropped_unread += dropped.unread;
            counters.cut_short += dropped.too_long;
        }
        Ok(counters)
    }
}

impl AsFd for Xdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.any {
            Some(any) => any.as_fd(),
            None => self.sockets[0].as_fd(),
        }
    }
}

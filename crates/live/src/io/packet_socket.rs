//! A packet socket: every frame that comes in through a network device, and the way out through it. packet(7).
//!
//! The portable path between two interfaces. Frames come and go in batches, each with the kernel's
//! own receive time, so that how late the program wakes up changes no arrival. The kernel's
//! omissions are restored: VLAN tags, checksums, segments ([`super::offload`]). Sent frames bypass
//! the device's queueing discipline, since the program in between is the queue.
//!
//! The device is in promiscuous mode for as long as this lives. Nothing keeps the kernel from
//! handling the same frames: that is for [`super::Bypass`].
//!
//! Cost: a system call for up to 64 frames, one copy each way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::SystemTime;

use lastmile_packet::Frame;
use lastmile_units::Instant;

use super::handover::Handover;
use super::offload::Offload;
use super::{Counters, Framing, Port, Refusal};
use crate::clock::{Arrivals, Clock, StampMap};
use crate::error::{Context, Error};
use crate::netns::Namespace;
use crate::sys::packet::{About, Batch, OFFLOAD_LEN, Receiver, Sender};

/// The receive buffer for the time in which this program is not running. At 600 000 small packets a
/// second, for each of which it counts about 800 bytes, this lasts longer than the longest lateness
/// seen.
const RECEIVE_BUFFER: u32 = 32 << 20;

/// The send buffer of the device.
const SEND_BUFFER: u32 = 8 << 20;

/// A device, by its packet sockets.
#[derive(Debug)]
pub struct PacketSocket {
    device: String,
    receiver: Receiver,
    sender: Sender,
    batch: Batch,
    scratch: Vec<u8>,
    /// Up to when all frames have been handed over.
    arrivals: Arrivals,
    counters: Counters,
    /// The kernel has said that the device went down, and no frame has come since. It says so once,
    /// before a device that is removed is gone.
    down: bool,
    handover: Handover,
}

impl PacketSocket {
    /// Opens the device of this name in `namespace`, or in that of the calling thread.
    ///
    /// # Errors
    /// Not root, or there is no such device.
    pub fn open(namespace: Option<&Namespace>, device: &str) -> Result<Self, Error> {
        let open = || Ok((Receiver::open(device, RECEIVE_BUFFER)?, Sender::open(device, SEND_BUFFER)?));
        let opened = match namespace {
            Some(namespace) => namespace.run(open)?,
            None => open(),
        };
        let (receiver, sender) = opened.context(|| format!("opening the device {device}"))?;
        Ok(Self {
            device: device.to_owned(),
            receiver,
            sender,
            batch: Batch::new(),
            scratch: Vec::new(),
            arrivals: Arrivals::new(),
            counters: Counters::default(),
            down: false,
            handover: Handover::default(),
        })
    }

    /// The device's name.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Reads at most `limit` frames; `None` where as many could not be read, and others may wait behind them.
    fn batch(&mut self, limit: usize) -> io::Result<Option<usize>> {
        for _ in 0..limit {
            match self.receiver.receive(&mut self.batch, limit) {
                // One that is down may come back.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) && self.receiver.device_exists() => {
                    self.down = true;
                    return Ok(Some(0));
                }
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => return Err(removed()),
                Ok(0) if self.down && !self.receiver.device_exists() => return Err(removed()),
                // A piece to be cut in a way that struct virtio_net_hdr has no word for (fragments
                // of UDP, SCTP): the kernel has dropped that one frame.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.counters.offloads.refused += 1,
                Ok(count) => {
                    self.down &= count == 0;
                    return Ok(Some(count));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

fn removed() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the interface was removed")
}

impl Port for PacketSocket {
    fn name(&self) -> &str {
        &self.device
    }

    fn framing(&self) -> Framing {
        Framing::Ethernet
    }

    /// As many frames as `limit` says, of which some may become several.
    fn receive(
        &mut self,
        clock: &dyn Clock,
        limit: usize,
        take: &mut dyn FnMut(Instant, &[u8]),
    ) -> io::Result<Instant> {
        let (before, began) = (clock.now(), SystemTime::now());
        let count = match self.batch(limit)? {
            Some(0) => {
                self.handover.emptied(began);
                return Ok(self.arrivals.at(before));
            }
            Some(count) => count,
            None => return Ok(self.arrivals.latest()),
        };
        let (map, now) = (StampMap::measure(clock), clock.now());
        let Self { batch, scratch, arrivals, counters, handover, .. } = self;
        let mut complete_to = before;
        for index in 0..count {
            let (bytes, about) = batch.get(index);
            if handover.is_past(about.stamp.unwrap_or(began)) {
                continue;
            }
            let arrived = match about.stamp {
                Some(stamp) => arrivals.stamped(&map, stamp, now),
                None => {
                    counters.unstamped += 1;
                    arrivals.at(before)
                }
            };
            complete_to = arrived;
            hand_on(bytes, about, scratch, counters, &mut |frame| take(arrived, frame));
        }
        // A batch that is not full has emptied the socket.
        if count < limit {
            handover.emptied(began);
            complete_to = arrivals.at(before);
        }
        Ok(complete_to)
    }

    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, Result<(), Refusal>)) {
        let mut waiting = frames.as_slice();
        let mut refused = Vec::new();
        while !waiting.is_empty() {
            match self.sender.send(waiting.iter().map(Frame::bytes)) {
                Ok(sent) => waiting = &waiting[sent..],
                Err(error) => {
                    refused.push((frames.len() - waiting.len(), Refusal::from(&error)));
                    waiting = &waiting[1..];
                }
            }
        }
        let mut refused = refused.into_iter().peekable();
        for (index, frame) in frames.drain(..).enumerate() {
            let refusal = refused.next_if(|(at, _)| *at == index);
            done(frame, refusal.map_or(Ok(()), |(_, refusal)| Err(refusal)));
        }
    }

    fn let_go(&mut self, from: SystemTime) {
        self.handover.begin(from);
    }

    fn has_let_go(&self) -> bool {
        self.handover.is_over()
    }

    fn counters(&mut self) -> io::Result<Counters> {
        self.counters.dropped_unread += u64::from(self.receiver.dropped()?);
        Ok(self.counters)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// Puts back what the kernel took off, and does what it left undone.
fn hand_on(
    bytes: &mut [u8],
    about: About,
    scratch: &mut Vec<u8>,
    Counters { offloads, cut_short, .. }: &mut Counters,
    take: &mut dyn FnMut(&[u8]),
) {
    let Some(header) = bytes.first_chunk::<OFFLOAD_LEN>().filter(|_| !about.cut) else {
        *cut_short += 1;
        return;
    };
    let offload = Offload::read(header);
    match about.tag {
        Some(tag) if bytes.len() >= OFFLOAD_LEN + ADDRESSES_LEN => {
            put_back(bytes, tag);
            offload.moved(TAG_LEN).complete(&mut bytes[OFFLOAD_LEN - TAG_LEN..], scratch, offloads, take);
        }
        _ => offload.complete(&mut bytes[OFFLOAD_LEN..], scratch, offloads, take),
    }
}

/// Destination and source of an Ethernet frame.
const ADDRESSES_LEN: usize = 12;

/// A VLAN tag: protocol and control information.
const TAG_LEN: usize = 4;

/// Moves the addresses of the frame behind the offload header forward, over that, and puts the tag behind them.
fn put_back(bytes: &mut [u8], (protocol, control): (u16, u16)) {
    bytes.copy_within(OFFLOAD_LEN..OFFLOAD_LEN + ADDRESSES_LEN, OFFLOAD_LEN - TAG_LEN);
    let tag = &mut bytes[OFFLOAD_LEN - TAG_LEN + ADDRESSES_LEN..][..TAG_LEN];
    tag[..2].copy_from_slice(&protocol.to_be_bytes());
    tag[2..].copy_from_slice(&control.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Offloads;

    fn handed_on(frame: &[u8], tag: Option<(u16, u16)>, cut: bool) -> (Vec<Vec<u8>>, Counters) {
        let mut bytes = [&[0; OFFLOAD_LEN], frame].concat();
        let about = About { len: bytes.len(), cut, stamp: None, tag };
        let (mut out, mut counters) = (Vec::new(), Counters::default());
        hand_on(&mut bytes, about, &mut Vec::new(), &mut counters, &mut |frame| out.push(frame.to_vec()));
        (out, counters)
    }

    #[test]
    fn a_tag_that_the_kernel_took_off_stands_behind_the_addresses_again() {
        let frame: Vec<u8> = (0..60).collect();
        assert_eq!(handed_on(&frame, None, false).0, [&frame[..]]);
        let tagged = [&frame[..12], &[0x88, 0xA8, 0x20, 0x07], &frame[12..]].concat();
        assert_eq!(handed_on(&frame, Some((0x88A8, 0x2007)), false).0, [tagged]);
        assert_eq!(handed_on(&frame[..11], Some((0x8100, 1)), false).0, [&frame[..11]], "a runt has no place for it");
    }

    #[test]
    fn a_frame_that_the_kernel_cut_short_is_counted() {
        let (out, counters) = handed_on(&[0; 60], None, true);
        assert_eq!((out.len(), counters.cut_short), (0, 1));
    }

    /// The kernel finds TCP's header at byte 34 of the frame as it has it, four before where it is with its tag.
    #[test]
    fn a_checksum_is_finished_behind_a_tag() {
        let mut bytes = vec![0; OFFLOAD_LEN + 60];
        bytes[0] = 1;
        bytes[6..8].copy_from_slice(&34_u16.to_ne_bytes());
        bytes[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        bytes[OFFLOAD_LEN + 59] = 1;
        let about = About { len: bytes.len(), cut: false, stamp: None, tag: Some((0x8100, 7)) };
        let (mut out, mut counters) = (Vec::new(), Counters::default());
        hand_on(&mut bytes, about, &mut Vec::new(), &mut counters, &mut |frame| out.extend_from_slice(frame));
        assert_eq!(out.len(), 64);
        assert_eq!(out[54..56], [0xFF, 0xFE], "the complement of 1");
        assert_eq!(counters.offloads, Offloads { finished: 1, ..Offloads::default() });
    }
}

//! Work that the kernel leaves to a network device and that no device will do once a frame has come
//! here: checksums still to be finished, segments still to be cut.
//!
//! A host whose device can do it hands over a checksum field that holds the sum of the
//! pseudo-header alone, and TCP or UDP data of up to 64 kB in one piece. Between two virtual
//! devices nobody ever does the rest. A line must carry what would have been on the wire, so it is
//! done here. The kernel says what is left to do in front of each frame, as a struct
//! `virtio_net_hdr` (Virtual I/O Device specification 1.2, section 5.1.6).
//!
//! Both are done inside of tunnels too: a host, a container or a virtual machine leaves the inner
//! checksum and the cutting of the inner segments to the device, and the kernel joins segments of a
//! tunnel that it receives (GRO).
//!
//! Cost: one sum over the bytes; for segments one copy as well.

mod checksum;
mod cut;
mod levels;
mod work;

use crate::error::{Context, Error};
use crate::netns::Namespace;
use crate::sys::device;
use crate::sys::packet::OFFLOAD_LEN;
use checksum::finish;
pub(crate) use checksum::finish_if_partial;
use cut::Cut;
pub use work::{Checksum, Segments, Transport};

const NEEDS_CHECKSUM: u8 = 1;
/// TCP with ECN by RFC 3168; the kernel does not set it where Accurate ECN is in use.
const ECN: u8 = 0x80;

/// Work that is left to do for one frame. Offsets count from the frame's first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The checksum is over everything from this offset on.
    pub checksum: Option<Checksum>,
    /// Payload to be cut.
    pub segments: Option<Segments>,
}

/// Counts of work done, and of work that could not be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offloads {
    /// Checksums finished, segments aside.
    pub finished: u64,
    /// Frames cut.
    pub cut: u64,
    /// Segments that they became.
    pub segments: u64,
    /// Frames dropped: to be cut in a way that is not known here, or with headers that do not fit.
    pub refused: u64,
}

impl Offload {
    /// Reads the header in front of a frame.
    #[must_use]
    pub fn read(header: &[u8; OFFLOAD_LEN]) -> Self {
        let [flags, kind, _, _, size @ .., start0, start1, offset0, offset1] = *header;
        let start = usize::from(u16::from_ne_bytes([start0, start1]));
        let offset = usize::from(u16::from_ne_bytes([offset0, offset1]));
        let transport = match kind & !ECN {
            1 | 4 => Some(Transport::Tcp),
            5 => Some(Transport::Udp),
            _ => None,
        };
        let size = usize::from(u16::from_ne_bytes(size));
        let segments = Segments { transport, size, reduces: kind & ECN != 0 };
        Self {
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some(Checksum { start, at: start + offset }),
            segments: (kind & !ECN != 0).then_some(segments),
        }
    }

    /// The work for a frame that has got this number of bytes more before its transport header.
    #[must_use]
    pub fn moved(self, by: usize) -> Self {
        let checksum = self.checksum.map(|Checksum { start, at }| Checksum { start: start + by, at: at + by });
        Self { checksum, ..self }
    }

    /// Does what is left to do and hands on the frame, or the segments that it becomes, in order.
    /// `scratch` is memory to build them in. A frame whose work cannot be done is counted and
    /// dropped: nobody behind could do it either.
    pub fn complete(self, frame: &mut [u8], scratch: &mut Vec<u8>, done: &mut Offloads, take: &mut dyn FnMut(&[u8])) {
        match (self.segments, self.checksum) {
            (None, None) => take(frame),
            (None, Some(checksum)) => match finish(frame, checksum) {
                Some(()) => {
                    done.finished += 1;
                    take(frame);
                }
                None => done.refused += 1,
            },
            (Some(segments), checksum) => {
                let Some(cut) = Cut::new(frame, segments, checksum) else {
                    done.refused += 1;
                    return;
                };
                done.cut += 1;
                for index in 0..cut.count() {
                    cut.write(index, scratch);
                    done.segments += 1;
                    take(scratch);
                }
            }
        }
    }
}

/// Has the hosts of `namespace`, or of that of the calling thread, do all this themselves for what
/// they send through `device`: `ethtool -K DEVICE tx off tso off gso off`.
///
/// # Errors
/// Not root, no such device, or one that does not let itself be told.
pub fn switch_off(namespace: Option<&Namespace>, device: &str) -> Result<(), Error> {
    let switch_off = || device::switch_off_transmit_offloads(device);
    let result = match namespace {
        Some(namespace) => namespace.run(switch_off)?,
        None => switch_off(),
    };
    result.context(|| format!("switching the offloads of {device} off"))
}

/// The command that makes the hosts in front of `device` do all this themselves.
#[must_use]
pub fn remedy(device: &str) -> String {
    format!("ethtool -K {device} gro off lro off rxvlan off, and tso off gso off tx off where the packets come from")
}

#[cfg(test)]
mod tests;

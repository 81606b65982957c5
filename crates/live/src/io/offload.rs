//! What the kernel leaves to a network device and no device will do once a frame has come here: checksums still to be
//! finished, segments still to be cut.
//!
//! A host whose device can do it hands over a checksum field that holds the sum of the pseudo-header alone, and TCP or UDP
//! data of up to 64 kB in one piece. Between two virtual devices nobody ever does the rest. A line must carry what would
//! have been on the wire, so it is done here. The kernel says what is left to do in front of each frame, as a struct
//! `virtio_net_hdr` (Virtual I/O Device specification 1.2, section 5.1.6).
//!
//! Segments get what the kernel would give them: sequence numbers that go on, PSH and FIN on the last alone, CWR on the first
//! alone (RFC 3168, section 6.1.2), IPv4 identifications that count up, and lengths and checksums of their own.
//!
//! Cost: one sum over the bytes; for segments one copy as well.

use lastmile_packet::checksum::Sum;
use lastmile_packet::ethernet::{Located, Prefix, locate};

use crate::error::{Context, Error};
use crate::lab::Namespace;
use crate::sys::device;
use crate::sys::packet::OFFLOAD_LEN;

const NEEDS_CHECKSUM: u8 = 1;
const ECN: u8 = 0x80;

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// What is left to do for one frame. Offsets count from the frame's first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The checksum is over everything from this offset on.
    pub checksum: Option<Checksum>,
    /// Payload to be cut.
    pub segments: Option<Segments>,
}

/// A checksum field that holds the sum of the pseudo-header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checksum {
    /// Where the sum begins: the transport header.
    pub start: usize,
    /// Where the field is.
    pub at: usize,
}

/// Payload in one piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segments {
    /// Of which protocol; `None` for one that is not cut here.
    pub transport: Option<Transport>,
    /// Payload of each segment but the last.
    pub size: usize,
}

/// Transport protocols whose payload is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP, a datagram each (not the fragments of one).
    Udp,
}

/// What was done, and what could not be.
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
        let segments = Segments { transport, size: usize::from(u16::from_ne_bytes(size)) };
        Self {
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some(Checksum { start, at: start + offset }),
            segments: (kind & !ECN != 0).then_some(segments),
        }
    }

    /// The same for a frame that has got so many bytes more before its transport header.
    #[must_use]
    pub fn moved(self, by: usize) -> Self {
        let checksum = self.checksum.map(|Checksum { start, at }| Checksum { start: start + by, at: at + by });
        Self { checksum, ..self }
    }

    /// Does what is left to do and hands on the frame, or the segments that it becomes, in order. `scratch` is memory to build
    /// them in. What cannot be done is counted, and the frame dropped: nobody behind could do it either.
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
                let cut = checksum.and_then(|checksum| Cut::new(frame, segments, checksum.start));
                let Some(cut) = cut else {
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

/// Finishes a checksum; `None` when the field is not in the frame.
fn finish(frame: &mut [u8], Checksum { start, at }: Checksum) -> Option<()> {
    if at < start {
        return None;
    }
    frame.get(at..at + 2)?;
    let checksum = not_zero(Sum::ZERO.bytes(frame.get(start..)?).checksum());
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Finishes the checksum of a TCP or UDP packet whose field holds the sum of the pseudo-header alone, where nobody says that it
/// does; true if it did. A sound packet whose checksum happens to be that sum stays as it is.
pub(crate) fn finish_if_partial(frame: &mut [u8]) -> bool {
    let found = partial(frame);
    found.is_some_and(|(packet_end, checksum)| finish(&mut frame[..packet_end], checksum).is_some())
}

/// Where the packet ends that has such a field, and where that is.
fn partial(frame: &[u8]) -> Option<(usize, Checksum)> {
    let Located { prefix, end: Ok(end) } = locate(frame) else { return None };
    let start = usize::from(prefix.len);
    let ip = frame.get(start..end)?;
    let word = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let (protocol, addresses, header_len, ip_len) = match ip.first()? >> 4 {
        // Whole packets alone: a fragment has no checksum of its own.
        4 if ip.len() >= 20 && word(6) & 0x3FFF == 0 => {
            (ip[9], &ip[12..20], usize::from(ip[0] & 0x0F) * 4, usize::from(word(2)))
        }
        6 if ip.len() >= 40 => (ip[6], &ip[8..40], 40, usize::from(word(4)) + 40),
        _ => return None,
    };
    let at = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    let transport = ip.get(header_len..ip_len)?;
    let field = u16::from_be_bytes(*transport.get(at..)?.first_chunk()?);
    let pseudo_header = Sum::ZERO.bytes(addresses).word(u16::from(protocol)).word(transport.len() as u16);
    let sound = || pseudo_header.bytes(transport).checksum() == 0;
    let checksum = Checksum { start: start + header_len, at: start + header_len + at };
    (field == pseudo_header.fold() && !sound()).then_some((start + ip_len, checksum))
}

/// Zero and 0xFFFF are the same sum, but in UDP zero means that there is none (RFC 768).
fn not_zero(checksum: u16) -> u16 {
    if checksum == 0 { 0xFFFF } else { checksum }
}

/// A frame to be cut.
struct Cut<'a> {
    /// Headers of link, IP and transport.
    headers: &'a [u8],
    payload: &'a [u8],
    prefix: Prefix,
    ipv6: bool,
    transport: Transport,
    transport_at: usize,
    size: usize,
}

impl<'a> Cut<'a> {
    /// `None` when the frame is not one that can be cut: no such protocol, headers that do not fit, or nothing to cut.
    fn new(frame: &'a [u8], segments: Segments, transport_at: usize) -> Option<Self> {
        let Located { prefix, end: Ok(end) } = locate(frame) else { return None };
        let transport = segments.transport?;
        let ip = usize::from(prefix.len);
        let ipv6 = frame.get(ip)? >> 4 == 6;
        let fixed = if ipv6 { 40 } else { 20 };
        if transport_at < ip + fixed || !ipv6 && transport_at != ip + usize::from(frame[ip] & 0x0F) * 4 {
            return None;
        }
        let header_len = match transport {
            Transport::Tcp => usize::from(frame.get(transport_at + 12)? >> 4) * 4,
            Transport::Udp => UDP_HEADER_LEN,
        };
        let (headers, payload) = frame.get(..end)?.split_at_checked(transport_at + header_len)?;
        let whole = match transport {
            Transport::Tcp => header_len >= TCP_HEADER_LEN,
            Transport::Udp => true,
        };
        let Segments { size, .. } = segments;
        let fits = headers.len() + size - ip <= usize::from(u16::MAX);
        (whole && fits && size > 0 && !payload.is_empty()).then_some(Self {
            headers,
            payload,
            prefix,
            ipv6,
            transport,
            transport_at,
            size,
        })
    }

    fn count(&self) -> usize {
        self.payload.len().div_ceil(self.size)
    }

    /// Makes `out` the segment of this number.
    fn write(&self, index: usize, out: &mut Vec<u8>) {
        let from = index * self.size;
        let to = (from + self.size).min(self.payload.len());
        out.clear();
        out.extend_from_slice(self.headers);
        out.extend_from_slice(&self.payload[from..to]);
        self.write_transport(out, from, to == self.payload.len());
        self.write_ip(out, index);
        self.write_checksum(out);
    }

    fn write_transport(&self, out: &mut [u8], from: usize, last: bool) {
        let len = (out.len() - self.transport_at) as u16;
        let transport = &mut out[self.transport_at..];
        match self.transport {
            Transport::Tcp => {
                let first = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
                transport[4..8].copy_from_slice(&first.wrapping_add(from as u32).to_be_bytes());
                if !last {
                    transport[13] &= !(FIN | PSH);
                }
                if from > 0 {
                    transport[13] &= !CWR;
                }
            }
            Transport::Udp => transport[4..6].copy_from_slice(&len.to_be_bytes()),
        }
    }

    fn write_ip(&self, out: &mut [u8], index: usize) {
        let start = usize::from(self.prefix.len);
        let len = (out.len() - start) as u16;
        self.prefix.mend(out, len);
        let ip = &mut out[start..];
        if self.ipv6 {
            ip[4..6].copy_from_slice(&(len - 40).to_be_bytes());
            return;
        }
        let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
        ip[2..4].copy_from_slice(&len.to_be_bytes());
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        ip[10..12].fill(0);
        let checksum = Sum::ZERO.bytes(&ip[..self.transport_at - start]).checksum();
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn write_checksum(&self, out: &mut [u8]) {
        let ip = usize::from(self.prefix.len);
        let (addresses, protocol, at) = match (self.ipv6, self.transport) {
            (false, Transport::Tcp) => (ip + 12..ip + 20, TCP, 16),
            (false, Transport::Udp) => (ip + 12..ip + 20, UDP, 6),
            (true, Transport::Tcp) => (ip + 8..ip + 40, TCP, 16),
            (true, Transport::Udp) => (ip + 8..ip + 40, UDP, 6),
        };
        let at = self.transport_at + at;
        out[at..at + 2].fill(0);
        let len = (out.len() - self.transport_at) as u16;
        let pseudo_header = Sum::ZERO.bytes(&out[addresses]).word(u16::from(protocol)).word(len);
        let checksum = not_zero(pseudo_header.bytes(&out[self.transport_at..]).checksum());
        out[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Has the hosts of `namespace`, or of that of the calling thread, do all this themselves for what they send through `device`:
/// `ethtool -K DEVICE tx off tso off gso off`.
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

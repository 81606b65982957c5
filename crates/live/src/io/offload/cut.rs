//! Payload in one piece, cut into the segments that a device would have sent.
//!
//! Each segment gets what the kernel would give it: sequence numbers that go on, PSH and FIN on the
//! last alone, CWR on the first alone where ECN is that of RFC 3168 (section 6.1.2) and on all where
//! it counts marks (RFC 9768, section 3.2.2), and at every level of a tunnel IPv4 identifications
//! that count up, lengths and checksums of its own. An identification of zero in a packet that must
//! not be fragmented says nothing (RFC 6864, section 4.1) and stays.

use lastmile_packet::checksum::Sum;
use lastmile_packet::ethernet::{Located, Prefix, locate};

use super::checksum::transmitted;
use super::levels::{GRE_CHECKSUM, Level, Levels, TCP, UDP, UDP_HEADER_LEN, gre_sequence, word};
use super::work::{Checksum, Segments, Transport};

const TCP_HEADER_LEN: usize = 20;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// No host leaves more work than this to a device: the smallest segment of TCP that Linux makes
/// (`TCP_MIN_GSO_SIZE`), and the most datagrams in a piece (`UDP_MAX_SEGMENTS`). A virtual machine
/// that asks for more would have one frame become thousands.
const LEAST_TCP: usize = 8;
const MOST_DATAGRAMS: usize = 128;
const DONT_FRAGMENT: u16 = 0x4000;

/// A frame to be cut.
pub(super) struct Cut<'a> {
    /// Headers of link, tunnels, IP and transport.
    headers: &'a [u8],
    payload: &'a [u8],
    prefix: Prefix,
    levels: Levels,
    transport: Transport,
    size: usize,
    /// CWR is on the first segment alone.
    reduces: bool,
    /// The kernel has joined segments that were alike, flags included (`SKB_GSO_FRAGLIST`).
    alike: bool,
}

impl<'a> Cut<'a> {
    /// `None` when the frame is not one that can be cut: no such protocol, headers that do not fit, or nothing to cut.
    ///
    /// A host that leaves cutting to a device leaves the checksum to it too, and says where that
    /// is: there is the header whose payload is cut. Where the kernel has joined sound packets as
    /// they were, no checksum is open; then it is the first header of that protocol.
    pub(super) fn new(frame: &'a [u8], segments: Segments, open: Option<Checksum>) -> Option<Self> {
        let Segments { transport, size, reduces } = segments;
        let Located { prefix, end: Ok(limit) } = locate(frame) else { return None };
        let transport = transport?;
        let protocol = match transport {
            Transport::Tcp => TCP,
            Transport::Udp => UDP,
        };
        let levels = Levels::find(frame, usize::from(prefix.len), limit, |level| match open {
            Some(checksum) => level.transport == checksum.start,
            None => level.protocol == protocol,
        })?;
        let (last, end) = (levels.last(), levels.end);
        let header_len = match transport {
            Transport::Tcp => usize::from(frame.get(last.transport + 12)? >> 4) * 4,
            Transport::Udp => UDP_HEADER_LEN,
        };
        let whole = last.protocol == protocol && (transport == Transport::Udp || header_len >= TCP_HEADER_LEN);
        let (headers, payload) = frame.get(..end)?.split_at_checked(last.transport + header_len)?;
        let many = payload.len().div_ceil(size.max(1));
        let usual = match transport {
            Transport::Tcp => size >= LEAST_TCP,
            Transport::Udp => size > 0 && many <= MOST_DATAGRAMS,
        };
        let fits = headers.len() + size - usize::from(prefix.len) <= usize::from(u16::MAX);
        let alike = open.is_none();
        (whole && fits && usual && !payload.is_empty()).then_some(Self {
            headers,
            payload,
            prefix,
            levels,
            transport,
            size,
            reduces,
            alike,
        })
    }

    pub(super) fn count(&self) -> usize {
        self.payload.len().div_ceil(self.size)
    }

    /// Makes `out` the segment of this number.
    pub(super) fn write(&self, index: usize, out: &mut Vec<u8>) {
        let from = index * self.size;
        let to = (from + self.size).min(self.payload.len());
        out.clear();
        out.extend_from_slice(self.headers);
        out.extend_from_slice(&self.payload[from..to]);
        if self.transport == Transport::Tcp {
            self.write_tcp(out, from, to == self.payload.len());
        }
        // From the inside out, since checksums cover what is inside.
        for level in self.levels.all().iter().rev() {
            write_transport(level, index, out);
            write_ip(level, index, out);
        }
        let ip_len = out.len() - usize::from(self.prefix.len);
        self.prefix.mend(out, ip_len as u16);
    }

    fn write_tcp(&self, out: &mut [u8], from: usize, last: bool) {
        let tcp = &mut out[self.levels.last().transport..];
        let first = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        tcp[4..8].copy_from_slice(&first.wrapping_add(from as u32).to_be_bytes());
        if !last && !self.alike {
            tcp[13] &= !(FIN | PSH);
        }
        if from > 0 && self.reduces && !self.alike {
            tcp[13] &= !CWR;
        }
    }
}

/// Lengths, numbers and checksum of what an IP header carries.
fn write_transport(level: &Level, index: usize, out: &mut [u8]) {
    let at = level.transport;
    let len = out.len() - at;
    match level.protocol {
        TCP => put_sum(out, at, at + 16, level.pseudo_header(out, len)),
        UDP => {
            out[at + 4..at + 6].copy_from_slice(&(len as u16).to_be_bytes());
            // Zero: whoever sent it wanted none.
            if out[at + 6..at + 8] != [0, 0] {
                put_sum(out, at, at + 6, level.pseudo_header(out, len));
            }
        }
        _ if level.is_gre() => {
            let flags = word(out, at).unwrap_or(0);
            if let Some(number) = gre_sequence(flags, at) {
                let first = u32::from_be_bytes([out[number], out[number + 1], out[number + 2], out[number + 3]]);
                out[number..number + 4].copy_from_slice(&first.wrapping_add(index as u32).to_be_bytes());
            }
            if flags & GRE_CHECKSUM != 0 {
                out[at + 4..at + 6].fill(0);
                let checksum = Sum::ZERO.bytes(&out[at..]).checksum();
                out[at + 4..at + 6].copy_from_slice(&checksum.to_be_bytes());
            }
        }
        _ => {}
    }
}

/// The checksum over what begins at `from`, with this sum of the pseudo-header, into the field at `at`.
fn put_sum(out: &mut [u8], from: usize, at: usize, pseudo_header: Sum) {
    out[at..at + 2].fill(0);
    let checksum = transmitted(pseudo_header.bytes(&out[from..]).checksum(), at - from);
    out[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

fn write_ip(level: &Level, index: usize, out: &mut [u8]) {
    let ip = &mut out[level.ip..];
    let len = ip.len() as u16;
    if level.ipv6 {
        ip[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        return;
    }
    let identification = u16::from_be_bytes([ip[4], ip[5]]);
    let fixed = identification == 0 && u16::from_be_bytes([ip[6], ip[7]]) & DONT_FRAGMENT != 0;
    let identification = if fixed { 0 } else { identification.wrapping_add(index as u16) };
    ip[2..4].copy_from_slice(&len.to_be_bytes());
    ip[4..6].copy_from_slice(&identification.to_be_bytes());
    ip[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(&ip[..level.transport - level.ip]).checksum();
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

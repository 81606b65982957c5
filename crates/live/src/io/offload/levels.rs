//! The IP headers of a frame, one inside the other: a packet, or a packet in tunnels.
//!
//! A tunnel is an IP header with something behind it and then another IP header: IP in IP (RFC
//! 2003, 2473), 6in4 (RFC 4213), GRE (RFC 2784, 2890), or anything that UDP carries (VXLAN, Geneve,
//! GUE, FOU, whatever their ports). Tunnels over GRE and UDP put headers of their own, and often
//! Ethernet, in between. Nothing there has to be understood: the inner IP header is found by what
//! it says of itself. It begins with its version, its length ends where the outer packet ends, and
//! over IPv4 its checksum holds.
//!
//! Cost: for a packet without a tunnel a few comparisons; behind GRE or UDP one comparison for each
//! byte up to the inner header.

use lastmile_packet::checksum::Sum;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;
const ROUTING: u8 = 43;
const GRE: u8 = 47;
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;

pub(super) const UDP_HEADER_LEN: usize = 8;

/// Tunnels in tunnels that are followed.
const MOST: usize = 4;
/// The longest header of a tunnel that is known is that of Geneve: 8 bytes and 252 of options, then
/// Ethernet with two tags.
const LONGEST_TUNNEL_HEADER: usize = 8 + 252 + 14 + 8;

/// An IP header and what it carries. Offsets count from the first byte of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Level {
    pub(super) ip: usize,
    pub(super) ipv6: bool,
    /// Where what it carries begins, behind options and extension headers.
    pub(super) transport: usize,
    pub(super) protocol: u8,
}

impl Level {
    /// The header at `ip` of a packet that ends at `end`; `None` for a damaged one, for a fragment, and for TCP or
    /// UDP behind a routing header with segments left: the final destination that its checksum covers (RFC 8200,
    /// section 8.1) is not the one of the header.
    fn read(frame: &[u8], ip: usize, end: usize) -> Option<Self> {
        let packet = frame.get(ip..end)?;
        let level = match packet.first()? >> 4 {
            4 if packet.len() >= 20 && word(packet, 6)? & 0x3FFF == 0 => {
                let header_len = usize::from(packet[0] & 0x0F) * 4;
                let transport = ip + header_len;
                (header_len >= 20).then_some(Self { ip, ipv6: false, transport, protocol: packet[9] })?
            }
            6 if packet.len() >= 40 => {
                let (mut at, mut protocol, mut is_routed) = (40, packet[6], false);
                // Hop-by-hop options, routing, destination options (RFC 8200, section 4).
                while matches!(protocol, 0 | ROUTING | 60) {
                    let len = (usize::from(*packet.get(at + 1)?) + 1) * 8;
                    is_routed |= protocol == ROUTING && *packet.get(at + 3)? != 0;
                    protocol = packet[at];
                    at += len;
                }
                let has_checksum = matches!(protocol, TCP | UDP);
                (!(is_routed && has_checksum)).then_some(Self { ip, ipv6: true, transport: ip + at, protocol })?
            }
            _ => return None,
        };
        (level.transport <= end).then_some(level)
    }

    /// The length of a packet by the header at `ip`.
    pub(super) fn length(frame: &[u8], ip: usize) -> Option<usize> {
        match frame.get(ip)? >> 4 {
            4 => Some(usize::from(word(frame, ip + 2)?)),
            6 => Some(usize::from(word(frame, ip + 4)?) + 40),
            _ => None,
        }
    }

    /// The sum of the pseudo-header for `len` bytes behind this one.
    pub(super) fn pseudo_header(&self, frame: &[u8], len: usize) -> Sum {
        let addresses = if self.ipv6 { self.ip + 8..self.ip + 40 } else { self.ip + 12..self.ip + 20 };
        Sum::ZERO.bytes(&frame[addresses]).word(u16::from(self.protocol)).word(len as u16)
    }

    /// Where the header of a tunnel begins that this level carries; `None` if it carries none.
    fn tunnel(&self, frame: &[u8]) -> Option<usize> {
        match self.protocol {
            IPV4_IN_IP | IPV6_IN_IP => Some(self.transport),
            UDP => Some(self.transport + UDP_HEADER_LEN),
            GRE => {
                let flags = word(frame, self.transport)?;
                // Version 0 alone; each of checksum, key and sequence number takes four bytes (RFC 2890).
                let optional = [GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE].iter().filter(|&&flag| flags & flag != 0).count();
                (flags & 0x0007 == 0).then_some(self.transport + 4 + 4 * optional)
            }
            _ => None,
        }
    }

    /// Where its packet ends.
    pub(super) fn end(&self, frame: &[u8]) -> Option<usize> {
        Self::length(frame, self.ip).map(|len| self.ip + len)
    }

    pub(super) fn is_gre(&self) -> bool {
        self.protocol == GRE
    }

    /// True where the inner packet follows at once, with no header of the tunnel between.
    fn is_bare(&self) -> bool {
        matches!(self.protocol, IPV4_IN_IP | IPV6_IN_IP)
    }
}

pub(super) const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
pub(super) const GRE_SEQUENCE: u16 = 0x1000;

/// Where the sequence number of a GRE header stands, if it has one.
pub(super) fn gre_sequence(flags: u16, gre: usize) -> Option<usize> {
    let before = [GRE_CHECKSUM, GRE_KEY].iter().filter(|&&flag| flags & flag != 0).count();
    (flags & GRE_SEQUENCE != 0).then_some(gre + 4 + 4 * before)
}

/// The levels of a packet, outermost first, up to one that `is_last` accepts.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    levels: [Level; MOST],
    count: usize,
    /// Where the packet ends. Padding of the link may follow.
    pub(super) end: usize,
}

impl Levels {
    /// The levels of the packet at `ip`, in a frame that holds packets up to `limit`; `None` where
    /// no level is the last, or a level between cannot be followed.
    pub(super) fn find(frame: &[u8], ip: usize, limit: usize, mut is_last: impl FnMut(&Level) -> bool) -> Option<Self> {
        let end = ip + Level::length(frame, ip)?;
        if end > limit {
            return None;
        }
        let first = Level::read(frame, ip, end)?;
        Self { levels: [first; MOST], count: 1, end }.continued(frame, &mut is_last)
    }

    /// These levels, and those within the last of them. Bytes of a tunnel's header may look like an IP header of the
    /// right length, so each place that does is tried.
    fn continued(self, frame: &[u8], is_last: &mut impl FnMut(&Level) -> bool) -> Option<Self> {
        if is_last(self.last()) {
            return Some(self);
        }
        let outer = self.last();
        let from = outer.tunnel(frame)?;
        let to = if outer.is_bare() { from } else { from + LONGEST_TUNNEL_HEADER };
        let mut inner = (from..=to.min(self.end)).filter(|&at| begins_packet(frame, at, self.end));
        inner.find_map(|inner| {
            // PPPoE in a tunnel has a length that nobody here mends.
            let in_pppoe = inner >= from + 8 && frame[inner - 8..inner - 6] == [0x11, 0x00];
            if in_pppoe || self.count == MOST {
                return None;
            }
            let mut longer = self.clone();
            longer.levels[self.count] = Level::read(frame, inner, self.end)?;
            longer.count += 1;
            longer.continued(frame, is_last)
        })
    }

    pub(super) fn all(&self) -> &[Level] {
        &self.levels[..self.count]
    }

    pub(super) fn last(&self) -> &Level {
        &self.levels[self.count - 1]
    }
}

/// True where an IP header stands whose packet ends at `end`.
fn begins_packet(frame: &[u8], at: usize, end: usize) -> bool {
    let Some(first) = frame[..end].get(at) else { return false };
    let fits = Level::length(frame, at).is_some_and(|len| at + len == end);
    match first >> 4 {
        4 if fits => {
            let header = frame.get(at..at + usize::from(first & 0x0F) * 4);
            header.is_some_and(|header| header.len() >= 20 && Sum::ZERO.bytes(header).checksum() == 0)
        }
        6 => fits,
        _ => false,
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

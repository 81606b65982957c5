//! The properties of each packet that a comparison of two captures keeps.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;

use lastmile_packet::{FlowKey, HashKey, IpAddresses, Parsed, Protocol, TcpFlags};

use crate::Sighting;

/// A packet, as it is recognised in the other capture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Fingerprint {
    pub(super) hash: u64,
    /// Its place in the capture, which a clock that is set does not change.
    pub(super) number: u32,
    pub(super) at_ns: i64,
    /// A hash of its flow in either direction.
    pub(super) flow: u32,
    /// Of TCP a hash of the fields that the parts of a divided segment share; without payload, of all but the window.
    /// Otherwise zero.
    pub(super) burst: u32,
    /// The TCP sequence number.
    pub(super) seq: u32,
    /// Of other packets than those of TCP a hash of their first octets; zero where the capture lacks any of these.
    pub(super) content: u32,
    /// Octets of payload.
    pub(super) payload: u16,
    /// True for the direction of the lesser key.
    pub(super) forward: bool,
    /// True for payload, SYN or FIN, which are retransmitted if they are lost.
    pub(super) retains: bool,
}

/// The first octets of a packet's content, which tell apart those that have no number: with a snap length of 68 octets
/// Ethernet frames have as many of UDP over IPv4. The longest header of QUIC that stays the same has 21 (RFC 9000,
/// section 17.3.1).
const CONTENT: usize = 24;

/// The packets of one capture, for their comparison with another.
#[derive(Clone, Debug, Default)]
pub struct Fingerprints {
    pub(super) all: Vec<Fingerprint>,
    /// Flows of TCP that no router forwards.
    pub(super) local: BTreeSet<u32>,
    pub(super) key: HashKey,
    /// The hashes of packets without the octets of their `content`.
    cut: HashSet<u64, HashKey>,
    /// The interface at which each direction of a flow counts: the one that showed it first.
    sightings: HashMap<FlowKey, Sighting, HashKey>,
}

impl Fingerprints {
    /// Adds a packet captured at this time since 1970, by the clock of its capture. A packet that stays on its link is
    /// omitted: those of two links may be equal, as reports of MLD are. The numbers of TCP tell its packets apart, and
    /// the first octets of others in `ip`, the captured part of the packet.
    /// A forwarding host shows each packet at several interfaces; the first one of each direction counts.
    pub fn packet(&mut self, at_ns: u64, sighting: Sighting, packet: &Parsed, ip: &[u8]) {
        if *self.sightings.entry(packet.key).or_insert(sighting) != sighting {
            return;
        }
        let meta = &packet.meta;
        let is_local = is_of_a_link(&packet.key.addresses.ip);
        if is_local && meta.protocol != Protocol::Tcp {
            return;
        }
        let payload = meta.payload_len();
        let mut hasher = self.key.build_hasher();
        hasher.write_u64(self.key.hash_one(packet.key));
        hasher.write_u32(u32::from(meta.ip_len) << 16 | u32::from(meta.ip_id));
        let mut burst = 0;
        if meta.protocol == Protocol::Tcp {
            hasher.write_u64(u64::from(meta.seq.raw()) << 32 | u64::from(meta.ack.raw()));
            hasher.write_u32(u32::from(meta.window) << 8 | u32::from(meta.flags.bits()));
            let (value, echo) = meta.options().timestamps().unwrap_or_default();
            hasher.write_u64(u64::from(value) << 32 | u64::from(echo));
            for block in meta.options().sack_blocks() {
                hasher.write_u64(u64::from(block.left.raw()) << 32 | u64::from(block.right.raw()));
            }
            let octets = (meta.ack.raw(), value, echo);
            let whole = (meta.seq.raw(), meta.ip_len, meta.ip_id, meta.flags.bits());
            let shared = if payload > 0 { self.key.hash_one(octets) } else { self.key.hash_one((octets, whole)) };
            burst = shared as u32 | 1;
        }
        let flow = self.key.hash_one(packet.key.min(packet.key.reversed())) as u32;
        if is_local {
            self.local.insert(flow);
        }
        let hash = hasher.finish();
        let content = if meta.protocol == Protocol::Tcp { 0 } else { self.content(packet, ip) };
        if content == 0 && meta.protocol != Protocol::Tcp {
            self.cut.insert(hash);
        }
        self.all.push(Fingerprint {
            hash,
            number: u32::try_from(self.all.len()).unwrap_or(u32::MAX),
            at_ns: i64::try_from(at_ns).unwrap_or(i64::MAX),
            flow,
            burst,
            seq: meta.seq.raw(),
            content,
            payload,
            forward: packet.key <= packet.key.reversed(),
            retains: payload > 0 || meta.flags.intersects(TcpFlags::SYN.with(TcpFlags::FIN)),
        });
    }

    /// A hash of the first octets behind the header of UDP and of SCTP, whose checksum the sender's device may
    /// complete, and else behind that of IP. Zero where the capture lacks any of them.
    fn content(&self, packet: &Parsed, ip: &[u8]) -> u32 {
        const SCTP: u8 = 132;
        let header = match (packet.meta.protocol, packet.key.protocol) {
            (Protocol::Udp, _) => 8,
            (_, SCTP) => 12,
            _ => 0,
        };
        let from = usize::from(packet.transport_offset) + header;
        let to = usize::from(packet.meta.ip_len).clamp(from, from + CONTENT);
        ip.get(from..to).map_or(0, |octets| self.key.hash_one(octets) as u32 | 1)
    }

    /// Tells equal packets of the two captures apart by their contents, where both have them.
    pub(super) fn tell_apart(&mut self, other: &mut Self) {
        let mut cut = std::mem::take(&mut self.cut);
        cut.extend(other.cut.drain());
        for one in self.all.iter_mut().chain(&mut other.all).filter(|one| one.content != 0) {
            if !cut.contains(&one.hash) {
                one.hash ^= u64::from(one.content) << 32 | u64::from(one.content);
            }
        }
    }
}

/// True for a packet that its hop limit or its kind keeps on its link: multicast with a hop limit of 1 at most, as that
/// of IGMP (RFC 3376, section 4), and neighbour discovery (RFC 4861, section 4).
#[must_use]
pub fn ends_on_its_link(packet: &Parsed, ip: &[u8]) -> bool {
    let addresses = &packet.key.addresses.ip;
    let hop_limit = ip.get(if addresses.is_ipv6() { 7 } else { 8 });
    let kind = ip.get(usize::from(packet.transport_offset));
    let is_discovery = packet.key.protocol == ICMP_V6 && kind.is_some_and(|kind| DISCOVERY.contains(kind));
    is_discovery || addresses.destination().is_multicast() && hop_limit.is_some_and(|hops| *hops <= 1)
}

/// The protocol number of ICMPv6, and the types of neighbour discovery.
const ICMP_V6: u8 = 58;
const DISCOVERY: RangeInclusive<u8> = 133..=137;

/// True for packets that stay on their link: from or to a link-local or unspecified address (RFC 3927, section 7;
/// RFC 4291, sections 2.5.2 and 2.5.6), to a multicast group of a link (RFC 5771, section 4; RFC 4291, section 2.7), or
/// to all hosts of it (RFC 919).
fn is_of_a_link(addresses: &IpAddresses) -> bool {
    let is_here = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_unspecified(),
    };
    let destination = addresses.destination();
    let to_all = match destination {
        IpAddr::V4(to) => to.is_broadcast() || to.octets()[..3] == [224, 0, 0],
        IpAddr::V6(to) => to.is_multicast() && scope(to) <= LINK_SCOPE,
    };
    to_all || is_here(addresses.source()) || is_here(destination)
}

/// The scope of a multicast group, of which 2 is the link.
const LINK_SCOPE: u16 = 2;

fn scope(group: Ipv6Addr) -> u16 {
    group.segments()[0] & 0xf
}

//! Copies of packets that a mirror port (SPAN) makes: it shows each packet where it enters the switch and where it
//! departs, microseconds apart.
//!
//! A copy has the headers of a packet of the last millisecond, checksum included, and its hop limit or one less, if the
//! switch routes. A network duplicates few packets of two hosts, and a mirror all: with equal hop limits a copy counts
//! as one of a mirror where at least one in [`USUAL`] packets of its hosts has one. Packets without a number (IPv6, or
//! identification 0) and without data may be equal without being copies, as duplicate ACKs are: they count where others
//! of their hosts have copies. Cost: a hash of the headers, one of each host, and two look-ups in tables of fixed size,
//! in which few hosts share an entry.

use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use lastmile_packet::{IpAddresses, Meta, Parsed, Protocol, TcpFlags};
use lastmile_units::{Duration, Instant};

use crate::connections::Sighting;

/// The longest time between the copies of a mirror.
const WITHIN: Duration = Duration::from_ms(1);
/// A mirror copies at least one in this number of packets.
const USUAL: u64 = 4;
const SLOTS: usize = 1 << 10;

/// The last packet with headers of this hash.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    seen: Option<(u64, Instant, Sighting)>,
    hop_limit: u8,
}

/// The packets of two hosts without copies, and the copies.
#[derive(Clone, Copy, Debug, Default)]
struct Hosts {
    packets: u64,
    copies: u64,
}

/// The packets of the last millisecond.
#[derive(Clone, Debug)]
pub struct Copies {
    slots: Box<[Slot; SLOTS]>,
    hosts: Box<[Hosts; SLOTS]>,
    state: FixedState,
    count: u64,
}

impl Default for Copies {
    fn default() -> Self {
        let (slots, hosts) = (Box::new([Slot::default(); SLOTS]), Box::new([Hosts::default(); SLOTS]));
        Self { slots, hosts, state: FixedState::default(), count: 0 }
    }
}

impl Copies {
    /// True for a copy that a mirror made of an earlier packet. `ip` is the captured part of the packet.
    pub fn is_copy(&mut self, now: Instant, sighting: Sighting, packet: &Parsed, ip: &[u8]) -> bool {
        let is_six = packet.meta.mark.ipv6();
        let (hop_limit, addresses) = if is_six { (7, 8) } else { (8, 12) };
        let end = ip.len().min(usize::from(packet.meta.header_len));
        let (Some(&hop_limit), Some(headers)) = (ip.get(hop_limit), ip.get(addresses..end)) else { return false };
        let digest = self.digest(&packet.meta, headers);
        let hosts_slot = self.hosts_slot(&packet.key.addresses.ip);
        let hosts = &mut self.hosts[hosts_slot];
        let slot = &mut self.slots[digest as usize % SLOTS];
        let is_equal = slot.seen.is_some_and(|(other, at, before)| {
            other == digest && before == sighting && now.since(at.min(now)) <= WITHIN
        });
        let is_routed = slot.hop_limit.abs_diff(hop_limit) == 1;
        let is_usual = (hosts.copies + 1) * USUAL >= hosts.packets && (hosts.copies > 0 || is_single(packet));
        if is_equal && (is_routed || slot.hop_limit == hop_limit && is_usual) {
            // A mirror makes one copy.
            slot.seen = None;
            hosts.copies += 1;
            self.count += 1;
            return true;
        }
        *slot = Slot { seen: Some((digest, now, sighting)), hop_limit };
        hosts.packets += 1;
        false
    }

    /// The length and the number of the packet, and its headers from the addresses on.
    fn digest(&self, meta: &Meta, headers: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write_u32(u32::from(meta.ip_len) << 16 | u32::from(meta.ip_id));
        hasher.write(headers);
        hasher.finish()
    }

    /// The entry of two hosts, the same for both directions.
    fn hosts_slot(&self, ends: &IpAddresses) -> usize {
        let state = &self.state;
        let [one, other] = match *ends {
            IpAddresses::V4 { source, destination } => [source, destination].map(|host| state.hash_one(host.to_bits())),
            IpAddresses::V6 { source, destination } => [source, destination].map(|host| state.hash_one(host.to_bits())),
        };
        (one ^ other) as usize % SLOTS
    }

    /// The number of copies.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

/// True for a packet that no other of the same millisecond equals, except for a copy.
fn is_single(packet: &Parsed) -> bool {
    let meta = &packet.meta;
    let retains = meta.payload_len() > 0 || meta.flags.intersects(TcpFlags::SYN.with(TcpFlags::FIN));
    meta.ip_id != 0 || meta.protocol == Protocol::Tcp && retains
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_captured;

    /// A TCP packet with this identification, hop limit, sequence number and payload.
    fn four(id: u16, hop_limit: u8, seq: u32, payload: u16) -> Vec<u8> {
        let mut ip = vec![0x45, 0];
        ip.extend((40 + payload).to_be_bytes());
        ip.extend(id.to_be_bytes());
        ip.extend([0x40, 0, hop_limit, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2]);
        ip.extend(seq.to_be_bytes());
        ip.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        ip
    }

    /// The same over IPv6, without payload for `seq` 0.
    fn six(seq: u32) -> Vec<u8> {
        let payload = if seq == 0 { 0 } else { 100 };
        let mut ip = vec![0x60, 0, 0, 0, 0, 20 + payload, 6, 64];
        ip.extend([1; 16]);
        ip.extend([2; 16]);
        ip.extend(&four(0, 0, seq, 0)[20..]);
        ip
    }

    /// Which of these packets, by their microsecond, are copies.
    fn copies(packets: &[(u64, Vec<u8>)]) -> Vec<bool> {
        let mut copies = Copies::default();
        let found = packets.iter().map(|(us, ip)| {
            let packet = parse_captured(ip, ip.len() as u32).unwrap();
            copies.is_copy(Instant::ZERO + Duration::from_us(*us), Sighting::default(), &packet, ip)
        });
        let found: Vec<bool> = found.collect();
        assert_eq!(copies.count(), found.iter().filter(|copy| **copy).count() as u64);
        found
    }

    #[test]
    fn a_mirror_copies_each_packet_once_within_a_millisecond() {
        let (one, two) = (four(1, 64, 0, 100), four(2, 64, 100, 100));
        // Two at once, their copies, and a third equal one, which is none.
        let packets = [(0, &one), (1, &two), (5, &one), (6, &two), (7, &one)].map(|(at, ip)| (at, ip.clone()));
        assert_eq!(copies(&packets), [false, false, true, true, false]);
        assert_eq!(copies(&[(0, one.clone()), (1_000, one.clone())]), [false, true]);
        assert_eq!(copies(&[(0, one.clone()), (1_001, one)]), [false, false]);
    }

    #[test]
    fn a_routed_copy_has_a_hop_less_and_a_retransmission_another_number() {
        let mut packets: Vec<(u64, Vec<u8>)> = (0..100).map(|id| (9 * u64::from(id), four(id, 64, 0, 100))).collect();
        packets.push((900, four(99, 63, 0, 100)));
        packets.push((910, four(101, 63, 0, 100)));
        let found = copies(&packets);
        assert_eq!(found.iter().position(|copy| *copy), Some(100));
        assert_eq!(found.iter().filter(|copy| **copy).count(), 1);
    }

    /// Of 100 packets the network duplicates every tenth.
    #[test]
    fn duplicates_of_a_network_are_no_copies_of_a_mirror() {
        let packets = (1..=100_u16).flat_map(|id| {
            let packet = (u64::from(id) * 100, four(id, 64, u32::from(id), 100));
            vec![packet; if id % 10 == 0 { 2 } else { 1 }]
        });
        assert!(copies(&packets.collect::<Vec<_>>()).iter().all(|copy| !copy));
    }

    /// Over IPv6 duplicate ACKs of one millisecond are equal. Beside copies of data they are copies.
    #[test]
    fn equal_acks_without_a_number_are_copies_beside_those_of_data() {
        assert_eq!(copies(&[(0, six(0)), (5, six(0))]), [false, false]);
        let packets = [(0, six(1)), (5, six(1)), (10, six(0)), (15, six(0)), (20, six(0))];
        assert_eq!(copies(&packets), [false, true, false, true, false]);
    }
}

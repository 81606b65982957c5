//! The packets for measuring a datapath: data, pure ACKs and UDP of many flows.

use std::net::Ipv4Addr;

use lastmile_packet::checksum::{Sum, mend};
use lastmile_packet::{
    FlowAddresses, Frame, IpAddresses, Meta, Options, Protocol, SeqNumber, TcpFlags, header_len, write_packet,
};

/// Ethernet addresses and the EtherType of IPv4.
const LINK: [u8; LINK_LEN] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
const LINK_LEN: usize = 14;
const SOURCE_AT: usize = LINK_LEN + 12;
const TRANSPORT_AT: usize = LINK_LEN + 20;
const SEQ_AT: usize = LINK_LEN + 24;
const ACK_AT: usize = LINK_LEN + 28;
/// Payload of a full segment, by which sequence numbers grow.
const SEGMENT: u32 = 1448;
/// A prime, so that flows send in a scattered order, not by their numbers.
const STRIDE: u64 = 7_919;

/// Of four packets two are TCP data, one is a pure ACK with timestamps (52 bytes), one is UDP. Data
/// and UDP are of one size.
pub(crate) struct Traffic {
    templates: [Vec<u8>; 4],
    flows: u64,
    number: u64,
}

impl Traffic {
    /// Packets of `ip_len` bytes, of `flows` flows: a multiple of four, or one of each protocol.
    pub(crate) fn new(ip_len: u16, flows: u32) -> Self {
        let [data, ack, udp] = [(Protocol::Tcp, ip_len), (Protocol::Tcp, 52), (Protocol::Udp, ip_len)]
            .map(|(protocol, ip_len)| template(protocol, ip_len));
        Self { templates: [data.clone(), ack, data, udp], flows: flows.into(), number: 0 }
    }

    /// The next frame, with right checksums, because the datapath verifies them.
    #[inline]
    pub(crate) fn next(&mut self) -> &mut [u8] {
        let (turn, flow) = (self.number / self.flows, self.number * STRIDE % self.flows);
        let template = &mut self.templates[(self.number % 4) as usize];
        let is_tcp = template[LINK_LEN + 9] == 6;
        self.number += 1;
        let checksum_at = TRANSPORT_AT + if is_tcp { 16 } else { 6 };
        put(template, SOURCE_AT, (10 << 24) + flow as u32, &[LINK_LEN + 10, checksum_at]);
        if is_tcp {
            let sent = (turn as u32).wrapping_mul(SEGMENT);
            // A flow of pure ACKs has a constant sequence number.
            let at = if template.len() == LINK_LEN + 52 { ACK_AT } else { SEQ_AT };
            put(template, at, sent, &[checksum_at]);
        }
        template
    }

    /// `count` frames, each in its own memory.
    pub(crate) fn frames(mut self, count: usize) -> Vec<Frame> {
        (0..count).map(|_| Frame::ethernet(self.next().to_vec()).0).collect()
    }
}

/// Writes a number into a frame, and updates the checksums at these offsets.
#[inline]
fn put(frame: &mut [u8], at: usize, number: u32, checksums: &[usize]) {
    let removed = Sum::ZERO.bytes(&frame[at..at + 4]);
    frame[at..at + 4].copy_from_slice(&number.to_be_bytes());
    let added = Sum::ZERO.bytes(&frame[at..at + 4]);
    for at in checksums {
        let checksum = mend(u16::from_be_bytes([frame[*at], frame[at + 1]]), removed, added);
        frame[*at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn template(protocol: Protocol, ip_len: u16) -> Vec<u8> {
    let mut meta = Meta { ip_len, protocol, flags: TcpFlags::ACK, window: 8_000, ..Meta::default() };
    meta.seq = SeqNumber::new(1);
    if protocol == Protocol::Tcp {
        meta.set_options(Options::NONE.with_timestamps(1, 1));
    }
    meta.header_len = header_len(protocol, false, &meta.options());
    let ip = IpAddresses::V4 { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(198, 18, 0, 1) };
    let mut packet = Vec::new();
    write_packet(&meta, &FlowAddresses { ip, source_port: 40_000, destination_port: 443 }, &mut packet);
    [&LINK[..], &packet].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn packets_are_of_so_many_flows_and_a_quarter_are_pure_acks() {
        let mut traffic = Traffic::new(64, 1000);
        let read: Vec<_> = (0..4000).map(|_| Frame::ethernet(traffic.next().to_vec())).collect();
        let keys: BTreeSet<_> = read.iter().map(|(_, key)| key.unwrap()).collect();
        assert_eq!(keys.len(), 1000);
        let metas = || read.iter().map(|(frame, _)| *lastmile_packet::Packet::meta(frame));
        assert_eq!(metas().filter(|meta| meta.pure_ack().is_some()).count(), 1000, "with right checksums");
        assert_eq!(metas().filter(|meta| meta.protocol == Protocol::Udp).count(), 1000);
        assert!(metas().all(|meta| meta.ip_len == if meta.is_pure_ack() { 52 } else { 64 }));
    }
}

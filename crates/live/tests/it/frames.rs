//! Frames of every kind, from one host to another that knows nothing of them.

use lastmile_live::clock::MonotonicClock;
use lastmile_live::io::{PacketSocket, Port};
use lastmile_packet::Frame;
use lastmile_units::Instant;

/// Who gets the frames: no host.
pub(crate) const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x99];

/// Who sends them.
const SOMEBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x98];

/// A frame of this type for nobody.
pub(crate) fn ethernet(ether_type: u16, behind: &[u8]) -> Vec<u8> {
    [&NOBODY[..], &SOMEBODY, &ether_type.to_be_bytes(), behind].concat()
}

/// An IPv4 packet of `ip_len` bytes with zeros behind what it carries, and no checksum.
pub(crate) fn ipv4(protocol: u8, dscp: u8, ip_len: u16, carried: &[u8]) -> Vec<u8> {
    let [high, low] = ip_len.to_be_bytes();
    let mut packet = vec![0x45, dscp << 2, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([198, 18, 0, 2, 198, 18, 0, 1]);
    packet.extend_from_slice(carried);
    packet.resize(ip_len.into(), 0);
    packet
}

/// Where the number of a [`datagram`] stands.
const NUMBER_AT: usize = 14 + 20 + 8;

/// A UDP datagram as an IP packet of `ip_len` bytes, at least 32, with its number behind the headers.
pub(crate) fn datagram(number: u32, dscp: u8, ip_len: u16) -> Frame {
    let [high, low] = (ip_len - 20).to_be_bytes();
    let carried = [&[0x23, 0x8C, 0, 9, high, low, 0, 0], &number.to_be_bytes()[..]].concat();
    Frame::ethernet(ethernet(0x0800, &ipv4(17, dscp, ip_len, &carried))).0
}

/// DSCP, length as an IP packet and number of what [`datagram`] made; `None` for anything else.
pub(crate) fn read_datagram(frame: &[u8]) -> Option<(u8, u16, u32)> {
    if frame.len() < NUMBER_AT + 4 || frame[..6] != NOBODY || frame[12..15] != [0x08, 0x00, 0x45] {
        return None;
    }
    let number = frame[NUMBER_AT..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes))?;
    Some((frame[15] >> 2, (frame.len() - 14) as u16, number))
}

/// Sends frames, each of which the device must take.
pub(crate) fn send(port: &mut PacketSocket, mut frames: Vec<Frame>) {
    port.send(&mut frames, &mut |_, result| assert_eq!(result, Ok(())));
}

/// All that has come.
pub(crate) fn everything(port: &mut PacketSocket, clock: &MonotonicClock, take: &mut dyn FnMut(Instant, &[u8])) {
    const BATCH: usize = 64;
    let mut came = BATCH;
    while came == BATCH {
        came = 0;
        let mut count = |at, bytes: &[u8]| {
            came += 1;
            take(at, bytes);
        };
        port.receive(clock, BATCH, &mut count).unwrap();
    }
}

//! Signals: packets that carry the list of acknowledgement numbers which the next ACK of a flow
//! replaces, from a Smart ACK Dropper to an ACK regenerator.
//!
//! Wire format behind the IP header, protocol 253 (for experiments, RFC 3692, section 2.1):
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 | 0xA7 |
//! | 1 | length of the list, 1 to 31 |
//! | 2, 3 | Internet checksum over the pseudo-header and the whole signal |
//! | 4 to 7 | source and destination port of the flow, as in the ACK |
//! | 8 to 11 | acknowledgement number of the ACK |
//! | 12 and on | the list (see `list.rs`) |
//!
//! Source, destination and traffic class are those of the ACK, so that it takes the same path. A
//! signal that no regenerator consumes reaches the ACK's receiver, which does not handle
//! protocol 253. Published: no.

use crate::checksum::Sum;
use crate::fields::{double_word, word};
use crate::{AckList, FlowAddresses, IpAddresses, Meta, SeqNumber, protocol};

/// Bytes before the list.
pub(crate) const HEADER_LEN: usize = 12;
/// Offset of the checksum.
pub(crate) const CHECKSUM_AT: usize = 2;

const MAGIC: u8 = 0xA7;

/// Reads a signal and returns the ports of its flow. `None`, with `meta` unchanged, for anything
/// else. A damaged or truncated signal counts as a packet of an unknown protocol.
pub(crate) fn read(payload: &[u8], addresses: &IpAddresses, meta: &mut Meta) -> Option<(u16, u16)> {
    let [MAGIC, len, ..] = payload else { return None };
    if payload.len() != HEADER_LEN + usize::from(*len) {
        return None;
    }
    let list = AckList::read(&payload[HEADER_LEN..])?;
    if Sum::ZERO.pseudo_header(addresses, protocol::SIGNAL, payload.len() as u16).bytes(payload).checksum() != 0 {
        return None;
    }
    meta.ack = SeqNumber::new(double_word(payload, 8));
    meta.become_signal(&list);
    Some((word(payload, 4), word(payload, 6)))
}

/// Writes a signal with checksum 0; returns its length.
pub(crate) fn write(out: &mut [u8], meta: &Meta, addresses: &FlowAddresses) -> usize {
    let list = meta.list();
    let list = list.as_bytes();
    out[..4].copy_from_slice(&[MAGIC, list.len() as u8, 0, 0]);
    out[4..6].copy_from_slice(&addresses.source_port.to_be_bytes());
    out[6..8].copy_from_slice(&addresses.destination_port.to_be_bytes());
    out[8..12].copy_from_slice(&meta.ack.raw().to_be_bytes());
    let len = HEADER_LEN + list.len();
    out[HEADER_LEN..len].copy_from_slice(list);
    len
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{ack_list, pure_ack};
    use crate::{Frame, Packet, Protocol, checksums_hold, parse, write_packet};

    fn list(steps: &[u32]) -> AckList {
        let mut list = AckList::EMPTY;
        assert!(steps.iter().all(|step| list.push(*step, AckList::MAX_BYTES)));
        list
    }

    /// IP 20, then magic, length 3, checksum, ports 50 000 and 49 152, number 7000, two steps
    /// of 1460. The checksum: the pseudo-header 0A00 + 0001 + C000 + 0201 + 00FD + 000F, then
    /// A703 + C350 + C000 + 0000 + 1B58 + B40B + 0200: 3C8C4 in all, folded C8C7, complement 3738.
    #[test]
    fn a_signal_has_these_bytes() {
        let mut ack = Meta { ip_len: 40, header_len: 40, flags: crate::TcpFlags::ACK, ..Meta::default() };
        ack.ack = SeqNumber::new(7000);
        let signal = Packet::signal(&ack, &list(&[1460, 1460]));
        assert_eq!((signal.ip_len, signal.header_len, signal.payload_len()), (35, 35, 0));
        let mut out = Vec::new();
        write_packet(&signal, &FlowAddresses::of_simulated(signal.flow), &mut out);
        assert_eq!(out[9], 253);
        assert_eq!(out[20..], [0xA7, 3, 0x37, 0x38, 0xC3, 0x50, 0xC0, 0, 0, 0, 0x1B, 0x58, 0xB4, 0x0B, 2]);
    }

    proptest! {
        #[test]
        fn a_signal_comes_back_and_is_of_the_flow_of_its_ack((ack, addresses) in pure_ack(), list in ack_list(31)) {
            prop_assume!(!list.is_empty());
            let mut bytes = Vec::new();
            write_packet(&ack, &addresses, &mut bytes);
            let (frame, key) = Frame::new(bytes.clone());
            let signal = frame.signal(&list);
            prop_assert_eq!(checksums_hold(signal.bytes()), Ok(true));
            let parsed = parse(signal.bytes()).unwrap();
            prop_assert_eq!(parsed.meta, *signal.meta());
            prop_assert_eq!(parsed.key, key.unwrap());
            prop_assert_eq!(signal.meta().protocol, Protocol::AckSignal);
            prop_assert_eq!((signal.meta().ack, signal.meta().list()), (ack.ack, list));
            prop_assert_eq!(*signal.meta(), ack.signal(&list));
            write_packet(signal.meta(), &addresses, &mut bytes);
            prop_assert_eq!(signal.bytes(), &bytes);
        }

        #[test]
        fn a_damaged_signal_is_an_unknown_packet(list in ack_list(31), at in 0..12_usize, bit in 0..8_u8) {
            prop_assume!(!list.is_empty());
            let signal = Packet::signal(&Meta { ip_len: 40, header_len: 40, ..Meta::default() }, &list);
            let mut bytes = Vec::new();
            write_packet(&signal, &FlowAddresses::of_simulated(signal.flow), &mut bytes);
            bytes[20 + at] ^= 1 << bit;
            prop_assert_eq!(parse(&bytes).unwrap().meta.protocol, Protocol::Other);
        }
    }
}

use core::net::Ipv4Addr;

use lastmile_packet::{FlowAddresses, FlowId, FlowKey, IpAddresses, Meta, Options, SeqNumber, SynOptions};
use lastmile_units::{Duration, PacketCount};

use super::*;
use crate::{DropReason, Fifo, Overflow};

const SYN_ACK: TcpFlags = TcpFlags::SYN.with(TcpFlags::ACK);
/// The number of the SYN that is answered.
const SEQ: SeqNumber = SeqNumber::new(u32::MAX);

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_s(seconds)
}

/// From the server of the first simulated connection, flow 1, whose reverse is flow 0.
fn segment(flags: TcpFlags, shift: Option<u8>) -> Meta {
    let mut meta = Meta { flow: FlowId::new(1), ack: SEQ.add(1), flags, header_len: 40, ip_len: 40, ..Meta::default() };
    meta.set_options(Options::syn(SynOptions { window_scale: shift, ..SynOptions::default() }));
    meta
}

/// The recorded answer for flow 0 after these packets have passed a witness.
fn asked(packets: &[Meta], now: Instant, seq: SeqNumber, data: u16) -> Option<bool> {
    let environment = Environment::default();
    let mut witness = Witness::new(&environment, Fifo::in_packets(PacketCount::new(9), Overflow::Tail));
    let mut none = |_, packet: Meta, reason: DropReason| panic!("{packet:?} dropped: {reason:?}");
    for packet in packets {
        witness.enqueue(at(0), *packet, &mut none);
        assert_eq!(witness.dequeue(at(0), &mut none), Some(*packet), "nothing is changed");
    }
    let client = Meta { flow: FlowId::new(0), ..Meta::default() };
    environment.handshakes.scales(now, &client.key(&*environment.flows).expect("a simulated flow"), seq, data)
}

#[test]
fn the_answer_to_a_syn_says_whether_windows_are_scaled() {
    let now = at(1);
    assert_eq!(asked(&[segment(SYN_ACK, Some(7))], now, SEQ, 0), Some(true));
    assert_eq!(asked(&[segment(SYN_ACK, Some(0))], now, SEQ, 0), Some(true), "a shift of 0 is an option, too");
    assert_eq!(asked(&[segment(SYN_ACK, None)], now, SEQ, 0), Some(false));
    assert_eq!(asked(&[], now, SEQ, 0), None);
    assert_eq!(asked(&[segment(TcpFlags::SYN, Some(7))], now, SEQ, 0), None, "no answer: a SYN of its own");
    assert_eq!(asked(&[segment(TcpFlags::ACK, Some(7))], now, SEQ, 0), None);
}

#[test]
fn an_answer_to_another_syn_is_none() {
    let answer = segment(SYN_ACK, Some(7));
    assert_eq!(asked(&[answer], at(1), SEQ.add(1), 0), None);
    assert_eq!(asked(&[answer], at(1), SEQ.add(u32::MAX), 0), None);
    // RFC 7413: of ten bytes in the SYN the server takes all, some or none.
    for (ack, heard) in [(0, None), (1, Some(true)), (11, Some(true)), (12, None)] {
        let answer = Meta { ack: SEQ.add(ack), ..answer };
        assert_eq!(asked(&[answer], at(1), SEQ, 10), heard, "{ack}");
    }
    // The later answer counts.
    assert_eq!(asked(&[segment(SYN_ACK, None), answer], at(1), SEQ, 0), Some(true));
    let earlier = Meta { ack: SEQ.add(50), ..segment(SYN_ACK, None) };
    assert_eq!(asked(&[earlier, answer], at(1), SEQ, 0), Some(true));
}

#[test]
fn with_unknown_options_only_a_found_window_scale_counts() {
    let unknown = |shift| {
        let mut meta = segment(SYN_ACK, shift);
        meta.set_options(meta.options().with_unknown());
        meta
    };
    assert_eq!(asked(&[unknown(None)], at(1), SEQ, 0), None);
    assert_eq!(asked(&[unknown(Some(7))], at(1), SEQ, 0), Some(true));
}

#[test]
fn a_damaged_answer_is_none() {
    let answer = segment(SYN_ACK, Some(7));
    let mut damaged = segment(SYN_ACK, None);
    damaged.mark.set_unverified();
    assert_eq!(asked(&[damaged], at(1), SEQ, 0), None);
    assert_eq!(asked(&[answer, damaged], at(1), SEQ, 0), Some(true));
}

#[test]
fn an_answer_is_forgotten() {
    let answer = [segment(SYN_ACK, Some(7))];
    assert_eq!(asked(&answer, at(59), SEQ, 0), Some(true));
    assert_eq!(asked(&answer, at(60), SEQ, 0), None);
}

/// A flood of answers displaces only the oldest.
#[test]
fn memory_is_bounded() {
    let handshakes = Handshakes::default();
    let key = |n: u32| {
        let ip = IpAddresses::V4 { source: Ipv4Addr::from(n), destination: Ipv4Addr::new(192, 0, 2, 1) };
        FlowKey { addresses: FlowAddresses { ip, source_port: 80, destination_port: 50_000 }, protocol: 6 }
    };
    let most = 1 << 16;
    for n in 0..2 * most + 1 {
        handshakes.note(at(0), key(n), Answer { ack: SEQ.add(1), scales: Some(true) });
    }
    let known = |n: u32| handshakes.scales(at(0), &key(n).reversed(), SEQ, 0);
    assert_eq!((known(0), known(most - 1), known(most), known(2 * most)), (None, None, Some(true), Some(true)));
}

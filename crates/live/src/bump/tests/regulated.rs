//! Regulators between ports with Ethernet frames.

use lastmile_packet::{SeqNumber, TcpFlags, checksums_hold, header_len};
use lastmile_queueing::ack::sad;

use super::*;

/// A pure ACK of the flow from this port.
pub(super) fn ack(port: u16, number: u32) -> Vec<u8> {
    let meta = Meta {
        protocol: Protocol::Tcp,
        flags: TcpFlags::ACK,
        ack: SeqNumber::new(number),
        window: 500,
        header_len: 40,
        ip_len: 40,
        ..Meta::default()
    };
    assert_eq!(header_len(Protocol::Tcp, false, &meta.options()), 40);
    let ip = IpAddresses::V4 { source: Ipv4Addr::new(198, 18, 0, 2), destination: Ipv4Addr::new(198, 18, 0, 1) };
    let mut bytes = Vec::new();
    write_packet(&meta, &FlowAddresses { ip, source_port: port, destination_port: 80 }, &mut bytes);
    bytes
}

/// An Ethernet II frame of IPv4.
pub(super) fn framed(packet: &[u8]) -> Vec<u8> {
    [&[2; 12], &[8, 0][..], packet].concat()
}

/// 8 kbit/s without encapsulation: a byte takes a millisecond.
pub(super) fn slow(queue: Spec) -> Vec<HopConfig> {
    vec![HopConfig { queue, ..hop("slow", Some(BitRate::from_kbit_per_s(8)), "ip", Duration::ZERO, 0) }]
}

pub(super) fn sad() -> Spec {
    Spec::Sad {
        duplicates: sad::Duplicates::Keep,
        report: sad::Report::None,
        exempt: Match::Never,
        queue: Box::new(Spec::fifo(1000)),
    }
}

/// The frames that leave when these come at once.
pub(super) fn across(bump: &mut Bump, frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let start = Instant::ZERO + Duration::from_ms(bump.reports().0.received.bytes);
    let port = || FakePort { framing: Framing::Ethernet, ..FakePort::default() };
    let (mut a, mut b) = (port(), port());
    a.arriving = frames.into_iter().map(|frame| (start, frame)).collect();
    let clock = FakeClock(Cell::new(start));
    bump.turn(&clock, &mut a, &mut b).unwrap();
    loop {
        let next = a.arriving.front().map(|(at, _)| *at);
        let Some(wake) = [bump.next_wake(), next].into_iter().flatten().min() else { break };
        clock.0.set(wake.max(clock.now()));
        bump.turn(&clock, &mut a, &mut b).unwrap();
    }
    b.sent.into_iter().map(|(_, frame)| frame).collect()
}

pub(super) fn count(bump: &Bump, name: &str) -> u64 {
    let hops = bump.reports().0.hops;
    hops[0].queue_counters.iter().find(|counter| counter.name == name).expect("a counter of this name").value
}

/// The frame ahead of them holds the line while the ACKs come.
#[test]
fn a_damaged_ack_neither_gives_its_values_nor_takes_any() {
    let first = framed(&packet(0, 100));
    let damaged = |number: u32| {
        let mut bytes = ack(1000, number);
        bytes[30] ^= 0x40;
        assert_eq!(checksums_hold(&bytes), Ok(false));
        framed(&bytes)
    };
    let sound = |number: u32| framed(&ack(1000, number));
    let mut bump = bump(slow(sad()));
    let came = vec![first.clone(), damaged(500), sound(1000), damaged(2000), sound(3000), damaged(9000)];
    let left = across(&mut bump, came);
    assert_eq!(left, [first, damaged(500), sound(3000), damaged(2000), damaged(9000)]);
    assert_eq!((count(&bump, "dropped_ack_merged"), count(&bump, "passed_damaged")), (1, 3));
    assert!(bump.reports().0.is_balanced());
}

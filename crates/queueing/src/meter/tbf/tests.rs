use lastmile_linklayer::Framing;
use lastmile_packet::Meta;

use super::*;
use crate::fifo::{Fifo, Overflow};

type Shaper = Tbf<Meta, Fifo<Meta>>;

/// 1 Mbit/s: a byte takes 8 us.
const RATE: BitRate = BitRate::from_kbit_per_s(1_000);

fn config(burst: u64) -> Config {
    Config {
        rate: RATE,
        burst: WireBytes::new(burst),
        peak: None,
        largest: ByteCount::new(1000),
        catch_up: Duration::ZERO,
    }
}

fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn shaper(config: &Config) -> Shaper {
    shaper_on(&plain(), config)
}

fn shaper_on(link_layer: &LinkLayer, config: &Config) -> Shaper {
    Tbf::new(config, link_layer, Fifo::in_packets(PacketCount::new(1000), Overflow::Tail))
        .expect("a burst that is large enough")
}

fn packet(number: u16) -> Meta {
    Meta { ip_id: number, ip_len: 1000, ..Meta::default() }
}

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(count)
}

fn fill(shaper: &mut Shaper, now: Instant, packets: u16) {
    for number in 0..packets {
        shaper.enqueue(now, packet(number), &mut |_, packet, reason| panic!("{packet:?} dropped: {reason:?}"));
    }
}

/// Number of packets that depart at `now`.
fn take(shaper: &mut Shaper, now: Instant) -> usize {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    std::iter::from_fn(|| shaper.dequeue(now, &mut none)).count()
}

/// 1000 bytes take 8 ms at 1 Mbit/s.
#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    let mut shaper = shaper(&config(3000));
    fill(&mut shaper, ms(0), 10);
    assert_eq!(take(&mut shaper, ms(0)), 3);
    assert_eq!(shaper.next_ready(ms(0)), Some(ms(8)));
    assert_eq!(take(&mut shaper, ms(7)), 0);
    assert_eq!(take(&mut shaper, ms(8)), 1);
    assert_eq!(shaper.next_ready(ms(8)), Some(ms(16)));
    // Late by the time of two packets: the bucket went on earning.
    assert_eq!(take(&mut shaper, ms(32)), 3);
}

/// Cells, not bytes: 1000 bytes and 8 of AAL5 trailer take 21 cells, 1113 bytes, 8.904 ms at 1 Mbit/s.
#[test]
fn the_rate_counts_bytes_on_the_wire() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    let mut shaper = shaper_on(&atm, &config(1113));
    fill(&mut shaper, ms(0), 3);
    assert_eq!(take(&mut shaper, ms(0)), 1);
    assert_eq!(shaper.next_ready(ms(0)), Some(Instant::ZERO + Duration::from_us(8_904)));
}

#[test]
fn a_peak_rate_spreads_the_burst() {
    let peak = Some(Peak { rate: BitRate::from_mbit_per_s(4), burst: WireBytes::new(1000) });
    let mut shaper = shaper(&Config { peak, ..config(3000) });
    fill(&mut shaper, ms(0), 10);
    let mut left = Vec::new();
    let mut now = ms(0);
    for _ in 0..5 {
        now = shaper.next_ready(now).expect("packets wait");
        left.push(now);
        assert_eq!(take(&mut shaper, now), 1);
    }
    // 2 ms a packet at the peak rate. The burst of three and the tokens earned meanwhile depart at
    // it: the fourth packet has its 8 ms of tokens at that time, the fifth waits until 16 ms.
    assert_eq!(left, [ms(0), ms(2), ms(4), ms(8), ms(16)]);
}

/// Each dequeue is 1 ms late, with a bucket of one packet: without catching up, all lateness is
/// lost.
#[test]
fn a_late_caller_loses_rate_unless_it_may_catch_up() {
    let sent_in_a_second = |catch_up| {
        let mut shaper = shaper(&Config { catch_up, ..config(1000) });
        fill(&mut shaper, ms(0), 500);
        let (mut now, mut sent) = (ms(0), 0);
        while now < ms(1000) {
            sent += take(&mut shaper, now);
            now = shaper.next_ready(now).expect("packets wait") + Duration::from_ms(1);
        }
        sent
    };
    // 9 ms a packet from 0 to 999 ms: 112. At the rate: 8 ms a packet, 125.
    assert_eq!(sent_in_a_second(Duration::ZERO), 112);
    assert_eq!(sent_in_a_second(Duration::from_ms(2)), 125);
}

/// No dequeue for 100 ms: the packets that then depart at once are the burst and those earned in 16
/// ms, not in 100 ms.
#[test]
fn catching_up_is_bounded() {
    let mut shaper = shaper(&Config { catch_up: Duration::from_ms(16), ..config(1000) });
    fill(&mut shaper, ms(0), 500);
    assert_eq!(take(&mut shaper, ms(0)), 1);
    // Charged from 84 ms on: one in the bucket at 84 ms, one at 92 ms, one at 100 ms.
    assert_eq!(take(&mut shaper, ms(100)), 3);
}

/// No packet is charged before its arrival: after a pause only the burst passes, whatever
/// `catch_up` is.
#[test]
fn no_packet_is_charged_before_its_arrival() {
    let mut shaper = shaper(&Config { catch_up: Duration::from_ms(16), ..config(1000) });
    fill(&mut shaper, ms(100), 10);
    assert_eq!(take(&mut shaper, ms(100)), 1);
    assert_eq!(shaper.next_ready(ms(100)), Some(ms(108)));
}

#[test]
fn a_packet_larger_than_the_burst_is_dropped_on_arrival() {
    let mut shaper = shaper(&config(1000));
    let mut dropped = Vec::new();
    let large = Meta { ip_len: 1001, ..packet(1) };
    shaper.enqueue(ms(0), large, &mut |_, packet, reason| dropped.push((packet, reason)));
    assert_eq!(dropped, [(large, DropReason::TooLarge)]);
    assert_eq!(shaper.next_ready(ms(0)), None);
    assert_eq!(shaper.backlog(), Backlog::default());
}

#[test]
fn a_shaper_that_would_pass_nothing_is_refused() {
    let build = |config: &Config| Shaper::new(config, &plain(), Fifo::in_packets(PacketCount::new(1), Overflow::Tail));
    let needed = WireBytes::new(1000);
    let burst = WireBytes::new(999);
    assert_eq!(build(&config(999)).err(), Some(TbfError::BurstTooSmall { burst, needed }));
    let with_peak = |rate, burst| Config { peak: Some(Peak { rate, burst }), ..config(1000) };
    let fast = BitRate::from_mbit_per_s(2);
    assert_eq!(build(&with_peak(fast, burst)).err(), Some(TbfError::PeakBurstTooSmall { burst, needed }));
    let not_above = build(&with_peak(RATE, needed)).err();
    assert_eq!(not_above, Some(TbfError::PeakNotAboveRate { peak: RATE, rate: RATE }));
}

/// The committed packet is part of the backlog.
#[test]
fn the_backlog_holds_the_committed_packet() {
    let mut shaper = shaper(&config(1000));
    fill(&mut shaper, ms(0), 3);
    let backlog = |packets, bytes| Backlog { packets: PacketCount::new(packets), bytes: ByteCount::new(bytes) };
    assert_eq!(shaper.backlog(), backlog(3, 3000));
    assert_eq!(take(&mut shaper, ms(0)), 1);
    assert_eq!(shaper.backlog(), backlog(2, 2000));
}

/// While a head waits, packets larger than the burst, or than the peak burst, use no space in the
/// queue.
#[test]
fn too_large_packets_are_never_queued() {
    let peak = Some(Peak { rate: BitRate::from_mbit_per_s(4), burst: WireBytes::new(1000) });
    for peak in [None, peak] {
        let burst = if peak.is_some() { 3000 } else { 1000 };
        let mut shaper = shaper(&Config { peak, ..config(burst) });
        fill(&mut shaper, ms(0), 2);
        let mut reasons = Vec::new();
        shaper.enqueue(ms(0), Meta { ip_len: 1001, ..packet(1) }, &mut |_, _, reason| reasons.push(reason));
        assert_eq!(reasons, [DropReason::TooLarge]);
        assert_eq!(shaper.backlog().packets, PacketCount::new(2));
        assert_eq!(take(&mut shaper, ms(0)), 1);
        assert_eq!(take(&mut shaper, ms(100)), 1);
        let mut told = Vec::new();
        shaper.counters(&mut |counter| {
            if counter.kind == "tbf" {
                told.push((counter.name, counter.value));
            }
        });
        let sent = [("sent_packets", 2), ("sent_bytes", 2000), ("sent_wire_bytes", 2000), ("dropped_too_large", 1)];
        assert_eq!(told, sent);
    }
}

/// A queue whose packets grow by a byte, as an ACK does that is given a list.
struct Grows(Fifo<Meta>);

impl Discipline<Meta> for Grows {
    fn enqueue(&mut self, now: Instant, packet: Meta, drops: &mut dyn DropSink<Meta>) {
        self.0.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<Meta>) -> Option<Meta> {
        self.0.dequeue(now, drops).map(|packet| Meta { ip_len: packet.ip_len + 1, ..packet })
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.0.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.0.counters(visit);
    }
}

#[test]
fn packets_that_grew_too_large_below_are_dropped_and_counted() {
    let fifo = Fifo::in_packets(PacketCount::new(10), Overflow::Tail);
    let mut shaper = Tbf::new(&config(1000), &plain(), Grows(fifo)).expect("a burst that is large enough");
    let mut reasons = Vec::new();
    shaper.enqueue(ms(0), packet(1), &mut |_, _, reason| reasons.push(reason));
    assert_eq!((reasons, shaper.too_large), (vec![DropReason::TooLarge], 1));
    assert_eq!(shaper.next_ready(ms(0)), None);
}

/// 1000 bytes are 21 cells, 1113 bytes on the wire.
#[test]
fn sent_packets_are_counted_in_ip_bytes_and_bytes_on_the_wire() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    let mut shaper = shaper_on(&atm, &config(3000));
    fill(&mut shaper, ms(0), 2);
    assert_eq!(take(&mut shaper, ms(0)), 2);
    let mut told = Vec::new();
    shaper.counters(&mut |counter| {
        if counter.kind == "tbf" {
            told.push((counter.name, counter.value));
        }
    });
    let sent = [("sent_packets", 2), ("sent_bytes", 2000), ("sent_wire_bytes", 2226), ("dropped_too_large", 0)];
    assert_eq!(told, sent);
}

/// The bucket is empty at 0 ms, and full again at 8 ms: the ready time of a packet that arrives at
/// 1 ms is known.
#[test]
fn a_packet_that_comes_to_an_empty_queue_is_ready_when_it_conforms() {
    let mut shaper = shaper(&config(1000));
    fill(&mut shaper, ms(0), 1);
    assert_eq!(take(&mut shaper, ms(0)), 1);
    fill(&mut shaper, ms(1), 1);
    assert_eq!(shaper.next_ready(ms(1)), Some(ms(8)));
}

/// Half the rate below: the queue below returns the second packet at 16 ms.
#[test]
fn a_queue_that_is_ready_later_is_asked_then() {
    let inner = shaper(&Config { rate: BitRate::from_kbit_per_s(500), ..config(1000) });
    let mut outer = Tbf::new(&config(1000), &plain(), inner).expect("a burst that is large enough");
    for number in 0..2 {
        outer.enqueue(ms(0), packet(number), &mut |_, _, _| {});
    }
    assert_eq!(outer.dequeue(ms(0), &mut |_, _, _| {}), Some(packet(0)));
    assert_eq!(outer.next_ready(ms(0)), Some(ms(16)));
    assert_eq!(outer.dequeue(ms(16), &mut |_, _, _| {}), Some(packet(1)));
}

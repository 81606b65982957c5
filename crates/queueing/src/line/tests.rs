use lastmile_packet::{FlowId, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_units::{BitRate, PacketCount, Ratio};
use proptest::prelude::*;

use super::*;
use crate::compress::Compression;
use crate::discipline::{Backlog, Counter};
use crate::sched::priority;
use crate::spec::{ClassSpec, Spec};
use crate::{Fifo, Match, Overflow};

mod changing;
mod granted;
mod impaired;
mod interrupted;

/// Records start, end and queueing time of each transmission, drops with their times, and created
/// packets.
#[derive(Default)]
struct Log {
    transmitted: Vec<(u32, Instant, Instant)>,
    waited: Vec<Duration>,
    dropped: Vec<(u32, DropReason)>,
    dropped_at: Vec<Instant>,
    created: Vec<u32>,
    granted: Vec<Duration>,
}

impl DropSink<Meta> for Log {
    fn dropped(&mut self, now: Instant, packet: Meta, reason: DropReason) {
        self.dropped.push((packet.seq.raw(), reason));
        self.dropped_at.push(now);
    }

    fn created(&mut self, _now: Instant, packet: &Meta) {
        self.created.push(packet.seq.raw());
    }
}

impl TransmissionSink<Meta> for Log {
    fn transmitted(&mut self, start: Instant, end: Instant, waited: Duration, packet: &Meta) {
        self.transmitted.push((packet.seq.raw(), start, end));
        self.waited.push(waited);
    }

    fn granted(&mut self, waited: Duration) {
        self.granted.push(waited);
    }
}

fn config(kbit: u64, preset: &str) -> Config {
    Config::new(Some(BitRate::from_kbit_per_s(kbit)), LinkLayer::from_name(preset).unwrap(), Duration::from_ms(5))
}

fn line(config: &Config, packets: u64) -> Line<Meta> {
    let queue = Fifo::in_packets(PacketCount::new(packets), Overflow::Tail);
    Line::new(config, Box::new(queue), Stream::new(1, "loss"))
}

fn packet(number: u32, ip_len: u16) -> Meta {
    Meta { seq: SeqNumber::new(number), ip_len, header_len: 28, protocol: Protocol::Udp, ..Meta::default() }
}

fn at_us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

/// 1500 bytes over pppoa-vcmux: 32 cells, 1696 bytes; at 512 kbit/s 26.5 ms.
#[test]
fn a_packet_takes_its_wire_time_and_the_delay() {
    let mut line = line(&config(512, "pppoa-vcmux"), 10);
    let mut log = Log::default();
    line.enqueue(at_us(0), packet(1, 1_500), &mut log);
    assert_eq!(line.next_arrival(), Some(at_us(31_500)));
    assert_eq!(line.next_transmission(), None);
    assert_eq!(line.take_arrival(at_us(31_499), &mut log), None);
    assert_eq!(line.take_arrival(at_us(31_500), &mut log).unwrap().seq.raw(), 1);
    assert_eq!(line.cells(), Some(CellCount::new(32)));
}

/// 1000 bytes at 8 kbit/s take 1 s: after 250 ms a quarter of the bits have been sent.
#[test]
fn bits_count_as_they_are_sent() {
    let mut line = line(&config(8, "ip"), 10);
    line.enqueue(at_us(0), packet(1, 1_000), &mut Log::default());
    assert_eq!(line.stats().wire_bytes.bits(), 8_000);
    let sent = [0, 250_000, 1_000_000, 2_000_000].map(|us| line.bits_sent(at_us(us)));
    assert_eq!(sent, [0, 2_000, 8_000, 8_000]);
}

#[test]
fn a_packet_that_does_not_fit_the_queue_is_dropped_and_counted() {
    let mut line = line(&config(512, "ip"), 2);
    let mut log = Log::default();
    for number in 0..5 {
        line.enqueue(at_us(0), packet(number, 1_000), &mut log);
    }
    // One is being sent, two wait.
    assert_eq!(log.dropped, [(3, DropReason::Tail), (4, DropReason::Tail)]);
    assert_eq!(line.stats().dropped[DropReason::Tail.index()], Count { packets: 2, bytes: 2_000 });
}

#[test]
fn a_lost_packet_takes_its_time_on_the_wire() {
    let mut line = line(&Config { loss: Ratio::ONE, ..config(512, "ip") }, 10);
    let mut log = Log::default();
    line.enqueue(at_us(0), packet(1, 640), &mut log);
    line.enqueue(at_us(0), packet(2, 640), &mut log);
    assert_eq!((log.dropped, log.dropped_at), (vec![(1, DropReason::WireLoss)], vec![at_us(0)]));
    assert_eq!(line.next_transmission(), Some(at_us(10_000)));
    assert_eq!(line.next_arrival(), None);
}

/// Packets that wait in the ring of the line depart before those of the next queue.
#[test]
fn a_replaced_fifo_sends_its_packets_first() {
    let mut line = line(&config(512, "ip"), 3);
    let mut log = Log::default();
    (1..=4).for_each(|number| line.enqueue(at_us(0), packet(number, 640), &mut log));
    assert_eq!((line.backlog().packets, line.in_flight().packets), (PacketCount::new(3), 1));
    line.hand_over(Spec::fifo(1).build(&config(512, "ip").link_layer).unwrap(), config(512, "ip").link_layer);
    assert_eq!((line.backlog().packets, line.in_flight().packets), (PacketCount::new(3), 1));
    line.enqueue(at_us(5_000), packet(5, 640), &mut log);
    line.transmit(Instant::MAX, &mut log);
    assert_eq!(log.transmitted.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(log.transmitted[4].1, at_us(40_000));
    assert_eq!((line.backlog().packets, line.in_flight().packets), (PacketCount::ZERO, 5));
}

/// 640 bytes at 512 kbit/s take 10 ms. The second packet arrives at 2 ms and its transmission
/// begins at 10 ms.
#[test]
fn queueing_time_counts_from_arrival() {
    let mut line = line(&config(512, "ip"), 10);
    let mut log = Log::default();
    line.enqueue(at_us(0), packet(1, 640), &mut log);
    line.enqueue(at_us(2_000), packet(2, 640), &mut log);
    line.transmit(at_us(10_000), &mut log);
    assert_eq!(log.waited, [Duration::ZERO, Duration::from_ms(8)]);
}

/// A packet that arrives exactly when the line becomes free is in the queue before the line
/// dequeues.
#[test]
fn a_packet_that_arrives_as_the_line_becomes_free_still_competes() {
    let classes = [Match::PureAck, Match::Any].map(|matches| ClassSpec { matches, queue: Spec::fifo(10) });
    let queue = Spec::Priority(priority::Config { classes: classes.into() })
        .build(&LinkLayer::from_name("ip").unwrap())
        .unwrap();
    let mut line = Line::new(&config(512, "ip"), queue, Stream::new(1, "loss"));
    let mut log = Log::default();
    line.enqueue(at_us(0), packet(1, 640), &mut log);
    line.enqueue(at_us(0), packet(2, 640), &mut log);
    line.enqueue(at_us(10_000), Meta { seq: SeqNumber::new(3), ..ack(1) }, &mut log);
    assert_eq!(log.transmitted.iter().map(|sent| sent.0).collect::<Vec<_>>(), [1, 3]);
}

/// A byte at 3 kbit/s takes 2 666 666 666.67 ps. Back-to-back transmissions carry the fraction of a
/// picosecond; a pause resets it.
#[test]
fn parts_of_a_picosecond_are_carried_until_a_pause() {
    let mut line = line(&config(3, "ip"), 10);
    let mut log = Log::default();
    for at in [0, 1_000_000] {
        line.enqueue(at_us(at), packet(1, 1), &mut log);
        line.enqueue(at_us(at), packet(2, 1), &mut log);
        line.transmit(at_us(at + 500_000), &mut log);
    }
    let spans: Vec<u64> = log.transmitted.iter().map(|(_, start, end)| end.since(*start).as_ps()).collect();
    assert_eq!(spans, [2_666_666_666, 2_666_666_667, 2_666_666_666, 2_666_666_667]);
}

#[test]
fn without_a_rate_a_packet_takes_the_delay_alone() {
    let mut line = line(&Config { rate: None, ..config(512, "ip") }, 10);
    let mut log = Log::default();
    line.enqueue(at_us(7_000), packet(1, 1_500), &mut log);
    line.enqueue(at_us(7_000), packet(2, 1_500), &mut log);
    assert_eq!(log.transmitted, [1, 2].map(|number| (number, at_us(7_000), at_us(7_000))));
    assert_eq!(line.next_arrival(), Some(at_us(12_000)));
    assert_eq!(line.bits_sent(at_us(7_000)), 24_000);
}

/// A queue that is always ready, even in the past, and creates a packet of ten bytes for each
/// packet enqueued.
struct Twins(Fifo<Meta>);

impl Discipline<Meta> for Twins {
    fn enqueue(&mut self, now: Instant, packet: Meta, drops: &mut dyn DropSink<Meta>) {
        let twin = Meta { seq: SeqNumber::new(packet.seq.raw() + 100), ip_len: 10, ..packet };
        self.0.enqueue(now, packet, drops);
        drops.created(now, &twin);
        self.0.enqueue(now, twin, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<Meta>) -> Option<Meta> {
        self.0.dequeue(now, drops)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.0.next_ready(now).map(|_| Instant::ZERO)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.0.counters(visit);
    }
}

/// 640 bytes take 10 ms, 10 bytes 156.25 us. Two packets arrive, two are created, one does not fit.
/// By 16 ms only the first has arrived, transmitted from 1 to 11 ms.
#[test]
fn everything_is_counted_and_nothing_is_sent_before_its_arrival() {
    let queue = Twins(Fifo::in_packets(PacketCount::new(2), Overflow::Tail));
    let mut line = Line::new(&config(512, "ip"), Box::new(queue), Stream::new(1, "loss"));
    let mut log = Log::default();
    line.enqueue(at_us(1_000), packet(1, 640), &mut log);
    line.enqueue(at_us(1_000), packet(2, 640), &mut log);
    line.transmit(at_us(12_000), &mut log);
    let mut arrived = Vec::new();
    while let Some(packet) = line.take_arrival(at_us(16_000), &mut log) {
        arrived.push(packet.seq.raw());
    }
    let sent: Vec<_> = log.transmitted.iter().map(|(number, start, _)| (*number, *start)).collect();
    let ns = |ns| Instant::ZERO + Duration::from_ns(ns);
    assert_eq!(sent, [(1, at_us(1_000)), (101, at_us(11_000)), (2, ns(11_156_250))]);
    assert_eq!((arrived, log.created), (vec![1], vec![101, 102]));
    assert_eq!(log.dropped, [(102, DropReason::Tail)]);
    let count = |packets, bytes| Count { packets, bytes };
    let mut dropped = [Count::default(); DropReason::ALL.len()];
    dropped[DropReason::Tail.index()] = count(1, 10);
    let expected = Stats {
        enqueued: count(2, 1_280),
        transmitted: count(3, 1_290),
        wire_bytes: WireBytes::new(1_290),
        arrived: count(1, 640),
        created: count(2, 20),
        duplicated: Count::default(),
        reordered: Count::default(),
        dropped,
    };
    assert_eq!(*line.stats(), expected);
}

/// Two flows between the same two ends are one connection to RFC 1144: after its first header each
/// packet takes 4 bytes.
#[test]
fn header_compression_sees_the_addresses_of_flows() {
    struct Alike;
    impl FlowDirectory for Alike {
        fn addresses(&self, _: FlowId) -> lastmile_packet::FlowAddresses {
            let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
            let ip = lastmile_packet::IpAddresses::V4 { source, destination };
            lastmile_packet::FlowAddresses { ip, source_port: 1, destination_port: 2 }
        }
    }
    let wire_bytes = |mut line: Line<Meta>| {
        for number in 1..=10 {
            let flow = FlowId::new(number % 2);
            line.enqueue(at_us(0), Meta { flow, ..ack(number * 100) }, &mut Log::default());
        }
        line.transmit(at_us(1_000_000), &mut Log::default());
        line.stats().wire_bytes.as_u64()
    };
    let line = || line(&Config { compression: Compression::Rfc1144 { slots: 16 }, ..config(16, "ip") }, 100);
    assert_eq!(wire_bytes(line().with_flows(Arc::new(Alike))), 40 + 9 * 4);
    assert!(wire_bytes(line()) > 2 * 40 + 8 * 4, "two connections without");
}

fn ack(number: u32) -> Meta {
    Meta {
        flow: FlowId::new(3),
        seq: SeqNumber::new(1),
        ack: SeqNumber::new(number),
        ip_len: 40,
        ip_id: (number / 100) as u16,
        header_len: 40,
        window: 1_000,
        flags: TcpFlags::ACK,
        ..Meta::default()
    }
}

/// RFC 1144: the first header is sent whole. Each later one has mask, checksum and an ACK
/// difference of 100 in one byte: 4 bytes for 40.
#[test]
fn acks_shrink_to_4_bytes_and_are_rebuilt_whole() {
    let mut line = line(&Config { compression: Compression::Rfc1144 { slots: 16 }, ..config(16, "ip") }, 100);
    let mut log = Log::default();
    for number in 1..=10 {
        line.enqueue(at_us(0), ack(number * 100), &mut log);
    }
    line.transmit(at_us(1_000_000), &mut log);
    assert_eq!(line.stats().wire_bytes.as_u64(), 40 + 9 * 4);
    let mut arrived = 0;
    while let Some(packet) = line.take_arrival(at_us(1_000_000), &mut log) {
        arrived += 1;
        assert_eq!(packet.ack.raw(), arrived * 100);
    }
    assert_eq!((arrived, log.dropped.len()), (10, 0));
}

/// A compressed packet is lost on the wire. The packets after it are rebuilt wrongly and dropped
/// until an uncompressed header arrives, here because the ACK number went back.
#[test]
fn a_loss_breaks_header_compression_until_an_uncompressed_header_comes() {
    let compressed = Config { compression: Compression::Rfc1144 { slots: 16 }, ..config(16, "ip") };
    let mut line = line(&compressed, 100);
    let mut log = Log::default();
    line.enqueue(at_us(0), ack(100), &mut log);
    line.transmit(at_us(500_000), &mut log);
    line.losses.0 = Ratio::ONE;
    line.enqueue(at_us(500_000), ack(200), &mut log);
    line.losses.0 = Ratio::ZERO;
    line.enqueue(at_us(1_000_000), ack(300), &mut log);
    line.enqueue(at_us(1_000_000), ack(400), &mut log);
    line.enqueue(at_us(1_000_000), ack(300), &mut log);
    line.enqueue(at_us(1_000_000), ack(500), &mut log);
    line.transmit(at_us(2_000_000), &mut log);
    let arrived: Vec<u32> =
        std::iter::from_fn(|| line.take_arrival(at_us(2_000_000), &mut log)).map(|p| p.ack.raw()).collect();
    assert_eq!(arrived, [100, 300, 500], "the second 300 went uncompressed and brought the far end back");
    let reasons: Vec<DropReason> = log.dropped.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons, [DropReason::WireLoss, DropReason::HeaderCompression, DropReason::HeaderCompression]);
}

proptest! {
    /// A caller that wakes late, and then does several things at once, causes the transmissions of
    /// one that is on time.
    #[test]
    fn lateness_never_enters_the_rate(
        arrivals in prop::collection::vec((0_u64..30_000, 40_u16..1_500), 1..80),
        lateness_us in prop::collection::vec(0_u64..200_000, 1..20),
    ) {
        let config = config(512, "pppoe-llcsnap");
        let mut at = 0;
        let packets: Vec<(Instant, Meta)> = arrivals
            .iter()
            .enumerate()
            .map(|(number, (gap_us, ip_len))| {
                at += gap_us;
                (at_us(at), packet(number as u32, *ip_len))
            })
            .collect();
        // On time: each transmission starts when it is due.
        let (mut exact, mut exact_log) = (line(&config, 20), Log::default());
        for (at, packet) in &packets {
            while let Some(due) = exact.next_transmission().filter(|due| due < at) {
                exact.transmit(due, &mut exact_log);
            }
            exact.enqueue(*at, *packet, &mut exact_log);
        }
        while let Some(due) = exact.next_transmission() {
            exact.transmit(due, &mut exact_log);
        }
        // Late: woken by arrivals, and by a clock that overshoots.
        let (mut late, mut late_log) = (line(&config, 20), Log::default());
        for (number, (at, packet)) in packets.iter().enumerate() {
            let lateness = Duration::from_us(lateness_us[number % lateness_us.len()]);
            let woken = late.next_transmission().map(|due| due + lateness);
            if let Some(woken) = woken.filter(|woken| woken < at) {
                late.transmit(woken, &mut late_log);
            }
            late.enqueue(*at, *packet, &mut late_log);
        }
        late.transmit(Instant::MAX, &mut late_log);
        prop_assert_eq!(exact_log.transmitted, late_log.transmitted);
        prop_assert_eq!(exact_log.dropped, late_log.dropped);
    }
}

//! Lines whose packets may be interrupted between cells or between fragments.

use lastmile_linklayer::multilink::{Multilink, SequenceNumber};

use super::*;
use crate::sched::priority;
use crate::{ClassIndex, Priority};

/// A line of 512 kbit/s, PPPoA, whose packets may be interrupted. Packets up to 100 bytes are the
/// most urgent, then those up to 200 bytes, then larger ones.
fn interrupted(interleave: Interleave) -> Line<Meta> {
    let class = |matches| ClassSpec { matches, queue: Spec::fifo(100) };
    let classes = vec![class(Match::AtMostBytes(100)), class(Match::AtMostBytes(200)), class(Match::Any)];
    let config = config(512, "pppoa-vcmux");
    let link_layer = config.link_layer.with_interleave(interleave).expect("cells and PPP");
    let queue = Spec::Priority(priority::Config { classes }).build(&link_layer).expect("three classes");
    Line::new(&Config { link_layer, ..config }, queue, Stream::new(1, "loss"))
}

fn fragments(bytes: u64) -> Interleave {
    Interleave::Fragments(Multilink::new(ByteCount::new(bytes), SequenceNumber::Long).expect("not empty"))
}

/// The arrival time of each packet, by its number.
fn arrivals(line: &mut Line<Meta>, log: &mut Log) -> Vec<(u32, Instant)> {
    let mut arrived = Vec::new();
    while let Some(next) = line.next_transmission().into_iter().chain(line.next_arrival()).min() {
        line.transmit(next, log);
        while let Some(packet) = line.take_arrival(next, log) {
            arrived.push((packet.seq.raw(), next));
        }
    }
    arrived
}

/// 1500 bytes begin at 0; 84 bytes arrive at 1 ms. A cell takes 828.125 us; the delay is 5 ms.
///
/// - never: 32 cells, then the 2 cells of the small packet: 34 cells;
/// - between cells: the second cell of the large packet ends, then 2 cells: 4 cells;
/// - fragments of 160 bytes, 4 cells each: the first fragment ends, then 3 cells of the small
///   packet: 7 cells. The large packet takes 38 cells, plus 3 for the small one.
#[test]
fn an_urgent_packet_waits_for_a_packet_a_cell_or_a_fragment() {
    let cell_ns = 828_125;
    let after = |cells: u64| Instant::ZERO + Duration::from_ns(cells * cell_ns) + Duration::from_ms(5);
    for (interleave, urgent, large) in
        [(Interleave::Never, 34, 32), (Interleave::Cells, 4, 34), (fragments(160), 7, 41)]
    {
        let mut line = interrupted(interleave);
        let mut log = Log::default();
        line.enqueue(at_us(0), packet(1, 1500), &mut log);
        line.enqueue(at_us(1_000), packet(2, 84), &mut log);
        let mut arrived = arrivals(&mut line, &mut log);
        arrived.sort_unstable();
        assert_eq!(arrived, [(1, after(large)), (2, after(urgent))], "{interleave:?}");
        assert_eq!(line.stats().wire_bytes.as_u64(), 53 * urgent.max(large));
        assert_eq!(line.in_flight(), Count::default());
    }
}

/// The packet of middle size interrupts the largest and is interrupted by the smallest. All three
/// are then partly sent.
#[test]
fn an_interrupting_packet_may_be_interrupted() {
    let mut line = interrupted(Interleave::Cells);
    let mut log = Log::default();
    for (ms, number, bytes) in [(0, 1, 1500), (1, 2, 200), (2, 3, 84)] {
        line.enqueue(at_us(1_000 * ms), packet(number, bytes), &mut log);
    }
    line.transmit(at_us(2_600), &mut log);
    assert_eq!(line.in_flight(), Count { packets: 3, bytes: 1784 });
    let order: Vec<u32> = arrivals(&mut line, &mut log).into_iter().map(|(number, _)| number).collect();
    assert_eq!(order, [3, 2, 1]);
    assert_eq!(log.transmitted.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [1, 2, 3]);
}

/// At 2 ms, with 29 of its cells left, a packet of 1500 bytes meets a new queue that prefers small
/// packets, and a new encapsulation with or without interruption. The packet continues in pieces;
/// packets that arrive are sent after it, in the order of the new queue.
#[test]
fn a_partly_sent_packet_departs_before_those_of_a_new_queue() {
    for to in [Interleave::Cells, Interleave::Never] {
        let mut line = interrupted(Interleave::Cells);
        let mut log = Log::default();
        line.enqueue(at_us(0), packet(1, 1500), &mut log);
        line.transmit(at_us(2_000), &mut log);
        let link = line.meter.link().with_interleave(to).expect("a line of cells");
        let class = |matches| ClassSpec { matches, queue: Spec::fifo(100) };
        let classes = vec![class(Match::AtMostBytes(100)), class(Match::Any)];
        line.hand_over(Spec::Priority(priority::Config { classes }).build(&link).expect("two classes"), link);
        line.enqueue(at_us(2_000), packet(2, 1400), &mut log);
        line.enqueue(at_us(2_000), packet(3, 84), &mut log);
        let arrived: Vec<u32> = arrivals(&mut line, &mut log).into_iter().map(|(number, _)| number).collect();
        assert_eq!(arrived, [1, 3, 2], "{to:?}");
        assert_eq!(line.in_flight(), Count::default());
        // 32, 30 and 2 cells.
        assert_eq!(line.stats().wire_bytes.as_u64(), 64 * 53);
    }
}

/// Packets of 32 cells, 26.5 ms each: three are queued, and an urgent one arrives exactly when the
/// second has been sent. It is sent next, whether or not the line was woken when the first had been
/// sent.
#[test]
fn an_urgent_packet_that_arrives_as_another_departs_is_next_even_for_a_late_caller() {
    for woken in [true, false] {
        let mut line = interrupted(Interleave::Never);
        let mut log = Log::default();
        for number in 1..=3 {
            line.enqueue(at_us(0), packet(number, 1500), &mut log);
        }
        if woken {
            line.transmit(at_us(26_500), &mut log);
        }
        line.enqueue(at_us(53_000), packet(4, 84), &mut log);
        let arrived: Vec<u32> = arrivals(&mut line, &mut log).into_iter().map(|(number, _)| number).collect();
        assert_eq!(arrived, [1, 2, 4, 3], "{woken}");
    }
}

/// A transmission that takes no time cannot be interrupted: such a line, as in a middlebox, counts
/// bytes and sends at once.
#[test]
fn a_line_without_a_rate_sends_packets_whole() {
    let config = Config { rate: None, ..config(512, "pppoa-vcmux") };
    let link_layer = config.link_layer.with_interleave(fragments(160)).expect("PPP");
    let mut line = Line::new(
        &Config { link_layer, ..config },
        Spec::fifo(9).build(&link_layer).expect("a FIFO"),
        Stream::new(1, "loss"),
    );
    let mut log = Log::default();
    line.enqueue(at_us(0), packet(1, 1500), &mut log);
    assert_eq!((line.stats().wire_bytes.as_u64(), line.partly_sent.len()), (38 * 53, 0));
    assert_eq!(arrivals(&mut line, &mut log), [(1, at_us(5_000))]);
}

/// Drops its whole backlog on dequeue, as an AQM may.
#[derive(Default)]
struct Dropping(Vec<Meta>);

impl Discipline<Meta> for Dropping {
    fn enqueue(&mut self, _now: Instant, packet: Meta, _drops: &mut dyn DropSink<Meta>) {
        self.0.push(packet);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<Meta>) -> Option<Meta> {
        self.0.drain(..).for_each(|packet| drops.dropped(now, packet, DropReason::Aqm));
        None
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        (!self.0.is_empty()).then_some(now)
    }

    fn backlog(&self) -> Backlog {
        Backlog::default()
    }

    fn counters(&self, _visit: &mut dyn FnMut(Counter<'_>)) {}
}

/// An urgent packet is ready and then dropped. The packet dequeued in its place has the level of
/// the partly sent packet, and is sent after it.
#[test]
fn an_urgent_packet_dropped_at_dequeue_interrupts_nothing() {
    let config = config(512, "pppoa-vcmux");
    let link_layer = config.link_layer.with_interleave(Interleave::Cells).expect("a line of cells");
    let below = Fifo::in_packets(PacketCount::new(9), Overflow::Tail);
    let classify = |packet: &Meta| ClassIndex::new(u16::from(packet.ip_len > 100));
    let queue = Priority::new(classify, vec![Box::new(Dropping::default()), Box::new(below)]).expect("two classes");
    let mut line = Line::new(&Config { link_layer, ..config }, Box::new(queue), Stream::new(1, "loss"));
    let mut log = Log::default();
    for (ms, number, bytes) in [(0, 1, 1500), (1, 2, 1400), (2, 3, 84)] {
        line.enqueue(at_us(1_000 * ms), packet(number, bytes), &mut log);
    }
    let order: Vec<u32> = arrivals(&mut line, &mut log).into_iter().map(|(number, _)| number).collect();
    assert_eq!((order, log.dropped), (vec![1, 2], vec![(3, DropReason::Aqm)]));
}

proptest! {
    /// Every packet arrives once, whole, in the order of its level. The line is never idle with a
    /// backlog. A packet of the first level waits for one piece, and for earlier packets of its
    /// level.
    #[test]
    fn interrupted_packets_are_conserved(
        packets in prop::collection::vec((0_u64..60_000, 20_u16..1_500), 1..60),
        fragment in 0_u64..600,
    ) {
        let interleave = if fragment < 50 { Interleave::Cells } else { fragments(fragment) };
        let mut line = interrupted(interleave);
        let link = *line.meter.link();
        let (mut log, mut now, mut arrived, mut wire) = (Log::default(), 0, Vec::new(), 0);
        for (number, (gap, bytes)) in packets.iter().enumerate() {
            now += gap;
            while let Some(next) = line.next_transmission().into_iter().chain(line.next_arrival()).min()
                && next <= at_us(now)
            {
                line.transmit(next, &mut log);
                arrived.extend(line.take_arrival(next, &mut log).map(|packet| (packet.seq.raw(), next)));
            }
            line.enqueue(at_us(now), packet(number as u32, *bytes), &mut log);
            wire += link.on_wire(ByteCount::new((*bytes).into())).as_u64();
            let waiting = line.backlog().packets.as_u64();
            prop_assert_eq!(waiting + line.in_flight().packets + arrived.len() as u64, number as u64 + 1);
        }
        arrived.extend(arrivals(&mut line, &mut log));
        prop_assert_eq!(line.stats().wire_bytes.as_u64(), wire);
        prop_assert!(log.dropped.is_empty());
        let level = |number: u32| packets[number as usize].1.saturating_sub(1) / 100;
        for wanted in 0..3 {
            let of: Vec<u32> =
                arrived.iter().map(|(number, _)| *number).filter(|number| level(*number).min(2) == wanted).collect();
            prop_assert!(of.is_sorted());
        }
        prop_assert_eq!(arrived.len(), packets.len());
        // First level: one piece of another packet, then earlier packets of its own level.
        let rate = BitRate::from_kbit_per_s(512);
        let piece = match interleave {
            Interleave::Fragments(multilink) => multilink.fragment_on_wire(link),
            _ => WireBytes::new(53),
        };
        let mut free = Instant::ZERO;
        let mut came = 0;
        for (number, (gap, bytes)) in packets.iter().enumerate() {
            came += gap;
            if level(number as u32) == 0 {
                let takes = rate.time_for(link.on_wire(ByteCount::new((*bytes).into())));
                free = free.max(at_us(came) + rate.time_for(piece)) + takes;
                let at = arrived.iter().find(|(other, _)| *other == number as u32).expect("it arrived").1;
                prop_assert!(at <= free + Duration::from_ms(5) + Duration::from_ns(1), "{number}: {at}, not {free}");
            }
        }
    }
}

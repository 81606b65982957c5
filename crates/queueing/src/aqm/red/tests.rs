use lastmile_linklayer::Framing;
use lastmile_packet::Meta;
use lastmile_units::CellCount;

use super::*;

/// A line without overhead: the bytes on the wire are the IP packet.
fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn packets(count: u64) -> Limit {
    Limit::Packets(PacketCount::new(count))
}

fn percent(percent: u32) -> Ratio {
    Ratio::from_percent(percent).expect("a share")
}

/// A weight of a half, 1000-byte packets, and 8 Mbit/s: a packet takes 1 ms.
fn config() -> Config {
    Config {
        limit: packets(1000),
        weight: Weight::Share(percent(50)),
        bandwidth: BitRate::from_mbit_per_s(8),
        gentle: false,
        ..Config::default()
    }
}

fn red(config: &Config) -> Red<Meta> {
    Red::new(config, &plain()).expect("a range").expect("no cells")
}

fn packet(number: u16, ecn: u8) -> Meta {
    Meta { ip_id: number, ip_len: 1000, traffic_class: ecn, ..Meta::default() }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

/// With w = 1/2, four packets that arrive at once find 0, 1, 2 and 3: the average is 0, then 0 +
/// 1/2 = 1/2, 1/2 + 3/4 = 5/4, 5/4 + 7/8 = 17/8. All depart at 0. After 3.9 ms, three packets of 1
/// ms would have found an empty queue: 17/8 / 2^3 = 17/64. The next packet finds one: 17/64 +
/// 47/128 = 81/128.
#[test]
fn the_average_is_exact() {
    let mut red = red(&config());
    let average = |red: &Red<Meta>, whole: u64, of: u64| assert_eq!(red.detector.average * of, whole * ONE);
    for expected in [(0, 1), (1, 2), (5, 4), (17, 8)] {
        red.enqueue(us(0), packet(0, 0), &mut none);
        average(&red, expected.0, expected.1);
    }
    while red.dequeue(us(0), &mut none).is_some() {}
    red.enqueue(us(3900), packet(0, 0), &mut none);
    average(&red, 17, 64);
    red.enqueue(us(3900), packet(0, 0), &mut none);
    average(&red, 81, 128);
}

/// An average of 10 packets decays to 10 * 0.998^500 = 10 * 0.367 510 625. (1/2)^500 leaves zero.
#[test]
fn a_pause_lets_the_average_decay_by_a_power() {
    let weight = |ppm| u64::from(Ratio::from_ppm(ppm).expect("a share").as_parts_per_billion()) * ONE / 1_000_000_000;
    let left = decayed(10 * ONE, weight(2000), 500) as f64 / ONE as f64;
    assert!((left - 3.675_106).abs() < 0.000_01, "{left}");
    assert_eq!(decayed(10 * ONE, weight(500_000), 500), 0);
    assert_eq!(decayed(10 * ONE, weight(500_000), 0), 10 * ONE);
}

/// Section 4 of the paper: for a min of 5 packets and bursts of 50, the weight may be at most
/// 0.0042 (it is 0.00419...). The largest power of two below is 2^-8 = 0.0039.
#[test]
fn the_weight_for_a_burst_is_that_of_the_paper() {
    let of = |config: &Config| config.weight(&plain());
    let burst = |burst| Config { weight: Weight::Burst(PacketCount::new(burst)), ..config() };
    assert_eq!(of(&burst(50)), Ok(ONE >> 8));
    let below = |weight: f64| 51.0 + ((1.0 - weight).powi(51) - 1.0) / weight;
    assert!(below(0.0041) < 5.0 && below(0.0042) > 5.0 && below(0.0042) < 5.01, "the formula of the paper");
    let exact = average_after_burst(50, ONE >> 8) as f64 / ONE as f64;
    assert!((exact - below(1.0 / 256.0)).abs() < 1e-6, "{exact}");
    // 5000 bytes are 5 packets of 1000; (2 * 5 + 15) / 3 = 8 packets are advised: 2^-2 leaves an
    // average of 5.30, 2^-3 one of 3.41.
    let bytes = |count| Limit::Bytes(ByteCount::new(count));
    assert_eq!(of(&Config { min: bytes(5000), max: bytes(15_000), ..burst(50) }), Ok(ONE >> 8));
    assert_eq!(of(&Config { weight: Weight::Advised, ..config() }), Ok(ONE >> 3));
    assert_eq!(of(&burst(0)), Err(RedError::Burst(PacketCount::new(0))));
}

/// Numbers of packets between two signals, for `times` gaps, with a constant average.
fn gaps(config: &Config, average: u64, times: usize) -> Vec<u64> {
    let mut detector = red(config).detector;
    detector.average = average;
    let mut gap = || {
        let passed = std::iter::repeat_with(|| detector.judge()).take_while(|verdict| *verdict == Verdict::Pass);
        passed.count() as u64 + 1
    };
    gap();
    (0..times).map(|_| gap()).collect()
}

/// Halfway from 5 to 15 packets the probability is half of 4 %, so after a drop the next is one of
/// the next 49 packets, each equally likely: 1000 of 49 000 with a standard deviation of 31.
#[test]
fn drops_are_spread_evenly() {
    let config = Config { probability: percent(4), ..config() };
    let gaps = gaps(&config, 10 * ONE, 49_000);
    for gap in 1..50 {
        let seen = gaps.iter().filter(|&&other| other == gap).count();
        assert!((850..1150).contains(&seen), "{seen} gaps of {gap}");
    }
    assert!(gaps.iter().all(|&gap| gap < 50));
}

/// The mean gap is 1/(2p) packets: at 1/4, 1/2 and 3/4 of a max of 10 %.
#[test]
fn the_probability_grows_with_the_average() {
    let config = Config { probability: percent(10), min: packets(4), max: packets(8), ..config() };
    let mean = |average| gaps(&config, average, 20_000).iter().sum::<u64>() as f64 / 20_000.0;
    for (average, expected) in [(5, 20.0), (6, 10.0), (7, 20.0 / 3.0)] {
        let mean = mean(average * ONE);
        // Uniform numbers up to 39 have a deviation of 11, so a mean of 20 000 has one of 0.08.
        assert!((mean / expected - 1.0).abs() < 0.05, "{mean} where {expected} is expected");
    }
    let mut below = red(&config).detector;
    below.average = 4 * ONE - 1;
    assert!((0..10_000).all(|_| below.judge() == Verdict::Pass));
    below.average = 4 * ONE;
    assert!((0..10_000).all(|_| below.judge() == Verdict::Pass), "a probability of zero at min itself");
}

/// At max every packet is dropped. With `gentle`, the probability at max is 10 %, at one and a half
/// times max 10 + 90 / 2 = 55 %, at twice max 100 %.
#[test]
fn gentle_has_no_step_at_max() {
    let step = Config { probability: percent(10), ..config() };
    let gentle = Config { gentle: true, ..step };
    let signals = |config: &Config, half_packets: u64| {
        let mut detector = red(config).detector;
        detector.average = half_packets * ONE / 2;
        detector.chance().map(|(part, whole)| (part * 1000 / whole) as u32)
    };
    let at = [29, 30, 45, 59, 60];
    assert_eq!(at.map(|at| signals(&step, at)), [95, 1000, 1000, 1000, 1000].map(Some));
    assert_eq!(at.map(|at| signals(&gentle, at)), [95, 100, 550, 970, 1000].map(Some));
    // Above a half the packet after a signal always is signalled: 1 / (1 - p) * p is above 1.
    assert_eq!(gaps(&gentle, 45 * ONE / 2, 1000), vec![1; 1000]);
    let mean = gaps(&gentle, 15 * ONE, 20_000).iter().sum::<u64>() as f64 / 20_000.0;
    assert!((4.8..5.2).contains(&mean), "one of 1 to 9, not {mean}");
}

/// Sends 1000 packets, each of which finds ten, at an average of ten; returns (dropped, marked).
fn signals(config: &Config, ecn: u8) -> (u64, u64) {
    let mut red = red(config);
    red.detector.average = 10 * ONE;
    for number in 0..1010 {
        if number >= 10 {
            while red.backlog().packets.as_u64() > 10 {
                red.dequeue(us(0), &mut none);
            }
            red.detector.average = 10 * ONE;
        }
        let mut sink = |_, _, reason| assert_eq!(reason, DropReason::Aqm);
        red.enqueue(us(0), packet(number, ecn), &mut sink);
    }
    (red.dropped, red.marked)
}

#[test]
fn a_mark_replaces_a_drop() {
    let (dropped, marked) = signals(&Config { ecn: true, ..config() }, 2);
    assert!(dropped == 0 && marked > 0, "{dropped} dropped, {marked} marked");
    let (dropped, marked) = signals(&Config { ecn: true, ..config() }, 0);
    assert!(dropped > 0 && marked == 0, "{dropped} dropped, {marked} marked of who knows no marks");
    let (dropped, marked) = signals(&config(), 2);
    assert!(dropped > 0 && marked == 0, "{dropped} dropped, {marked} marked without ecn");
}

/// An average of ten above a max of six: every packet is signalled, by a drop with `hard_drop`.
#[test]
fn above_max_marks_may_become_drops() {
    let above = Config { ecn: true, max: packets(6), limit: packets(2000), ..config() };
    let (dropped, marked) = signals(&above, 2);
    assert!(dropped == 0 && marked >= 1000, "{dropped} dropped, {marked} marked");
    let hard = Config { hard_drop: true, ..above };
    let mut red = red(&hard);
    red.detector.average = 40 * ONE;
    let mut dropped = 0;
    red.enqueue(us(0), packet(0, 2), &mut |_, _, _| dropped += 1);
    assert_eq!((dropped, red.dropped, red.marked, red.detector.forced), (1, 1, 0, 1));
}

#[test]
fn thresholds_must_be_a_range() {
    let with = |min, max| Config { min, max, ..config() }.check().is_ok();
    let bytes = Limit::Bytes(ByteCount::new(15));
    assert!(with(packets(5), packets(6)));
    assert!(!with(packets(5), packets(5)) && !with(packets(0), packets(5)) && !with(packets(5), bytes));
    assert!(!with(packets(5), packets((1 << 30) + 1)));
    let cells = |count| Limit::Cells(CellCount::new(count));
    let of_cells = Config { min: cells(5), max: cells(15), ..config() };
    assert!(Red::<Meta>::new(&of_cells, &plain()).expect("a range").is_none(), "no cells on this line");
}

#[test]
fn parameters_with_which_red_cannot_work_are_refused() {
    let refused = |config: Config| Red::<Meta>::new(&config, &plain()).expect_err("it is refused");
    assert_eq!(refused(Config { probability: percent(0), ..config() }), RedError::ZeroProbability);
    assert_eq!(refused(Config { average_packet: ByteCount::ZERO, ..config() }), RedError::ZeroPacket);
    assert_eq!(refused(Config { weight: Weight::Share(percent(0)), ..config() }), RedError::ZeroWeight);
    let burst = |packets| Config {
        weight: Weight::Burst(PacketCount::new(packets)),
        min: self::packets(1 << 20),
        max: self::packets(1 << 21),
        ..config()
    };
    assert!(Red::<Meta>::new(&burst(Config::LONGEST_BURST), &plain()).is_ok());
    let longer = Config::LONGEST_BURST + 1;
    assert_eq!(refused(burst(longer)), RedError::Burst(PacketCount::new(longer)));
}

/// Floyd 1997; tc-red(8).
#[test]
fn the_defaults_are_those_of_floyd_and_tc() {
    let config = Config::default();
    assert_eq!((config.min, config.max, config.limit), (packets(5), packets(15), packets(100)));
    assert_eq!((config.probability, config.weight), (percent(2), Weight::Advised));
    assert_eq!((config.average_packet, config.bandwidth), (ByteCount::new(1000), BitRate::from_mbit_per_s(10)));
    assert_eq!((config.ecn, config.hard_drop, config.gentle, config.seed), (false, false, true, 1));
}

/// A burst of one packet leaves an average equal to the weight, which must be below `min`. For 500
/// bytes, half of a packet, a weight of a half is too large and a quarter is not.
#[test]
fn a_burst_must_leave_the_average_below_min_and_not_at_it() {
    let bytes = |count| Limit::Bytes(ByteCount::new(count));
    let weight = Weight::Burst(PacketCount::new(1));
    assert_eq!(Config { min: bytes(500), max: bytes(1500), weight, ..config() }.weight(&plain()), Ok(ONE >> 2));
    assert_eq!(Config { min: bytes(501), max: bytes(1500), weight, ..config() }.weight(&plain()), Ok(ONE >> 1));
}

fn atm() -> LinkLayer {
    LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes")
}

/// 1000 bytes are 21 cells: 105 cells are the 5 packets of the paper's example, and three queued
/// packets are 63 cells.
#[test]
fn cells_count_as_packets_of_average_size() {
    let cells = |count| Limit::Cells(CellCount::new(count));
    let weight = Weight::Burst(PacketCount::new(50));
    let of_cells = Config { min: cells(105), max: cells(315), weight, ..config() };
    assert_eq!(of_cells.weight(&atm()), Ok(ONE >> 8));
    let mut red = Red::new(&of_cells, &atm()).expect("a range").expect("a line of cells");
    for _ in 0..3 {
        red.enqueue(us(0), packet(0, 0), &mut none);
    }
    assert_eq!(red.backlog_in_limit_units(), 63);
    let bytes = |count| Limit::Bytes(ByteCount::new(count));
    let mut red = self::red(&Config { min: bytes(5000), max: bytes(15_000), ..config() });
    for _ in 0..3 {
        red.enqueue(us(0), packet(0, 0), &mut none);
    }
    assert_eq!(red.backlog_in_limit_units(), 3000);
}

/// 21 cells take 1.113 ms at 8 Mbit/s: 3.3 ms are two packets, and 8 packets decay to 2.
#[test]
fn a_pause_is_counted_in_packets_on_the_wire() {
    let mut red = Red::<Meta>::new(&config(), &atm()).expect("a range").expect("a limit in packets");
    red.idle = Some(us(0));
    red.detector.average = 8 * ONE;
    red.observe(us(3300));
    assert_eq!(red.detector.average, 2 * ONE);
}

/// Pauses from 0 and from 10 ms: by 13 ms three packets of 1 ms would have arrived.
#[test]
fn a_pause_begins_when_the_last_packet_leaves() {
    let mut red = red(&config());
    for at in [0, 10_000] {
        red.enqueue(us(at), packet(0, 0), &mut none);
        assert!(red.dequeue(us(at), &mut none).is_some());
    }
    red.detector.average = 8 * ONE;
    red.observe(us(13_000));
    assert_eq!(red.detector.average, ONE);
}

/// Packets of 1 ms, a weight of a half, and arrivals that are dropped: each millisecond halves the average once.
#[test]
fn a_pause_counts_once_however_many_packets_are_dropped_in_it() {
    let mut red = red(&config());
    red.idle = Some(us(0));
    red.detector.average = 8 * ONE;
    let averages = [1_000, 1_500, 2_000, 2_100, 3_999, 4_000].map(|at| {
        red.observe(us(at));
        red.detector.average * 4 / ONE
    });
    assert_eq!(averages, [16, 16, 8, 8, 4, 2]);
}

/// Figure 2 of the paper: the count is -1 below `min`, 0 at the first packet above it, and 0 again
/// at each signal.
#[test]
fn packets_are_counted_from_the_first_above_min() {
    let mut detector = red(&Config { probability: Ratio::from_ppm(1).expect("a share"), ..config() }).detector;
    detector.average = 6 * ONE;
    for expected in 0..3 {
        assert_eq!((detector.judge(), detector.since), (Verdict::Pass, Some(expected)));
    }
    detector.average = 4 * ONE;
    assert_eq!((detector.judge(), detector.since), (Verdict::Pass, None));
    detector.average = 15 * ONE;
    assert_eq!((detector.judge(), detector.since), (Verdict::Signal { hard: false }, Some(0)));
    assert_eq!(detector.forced, 1, "max itself is above");
}

#[test]
fn hard_drop_is_for_an_average_of_max_and_more() {
    let mut detector = red(&Config { probability: percent(100), hard_drop: true, ..config() }).detector;
    let mut verdict = |average| {
        detector.average = average;
        std::iter::repeat_with(|| detector.judge()).find(|verdict| *verdict != Verdict::Pass)
    };
    assert_eq!(verdict(15 * ONE - 1), Some(Verdict::Signal { hard: false }));
    assert_eq!(verdict(15 * ONE), Some(Verdict::Signal { hard: true }));
}

#[test]
fn seeds_give_other_drops() {
    let of = |seed| gaps(&Config { seed, ..config() }, 10 * ONE, 20);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

/// A packet to be marked is dropped when the queue is full, and does not count as a mark.
#[test]
fn a_mark_frees_no_space() {
    let full = Config { ecn: true, limit: packets(20), max: packets(6), ..config() };
    let mut red = red(&full);
    for _ in 0..20 {
        red.queue.put(packet(0, 2));
    }
    red.detector.average = 20 * ONE;
    let mut dropped = Vec::new();
    red.enqueue(us(0), packet(7, 2), &mut |_, packet: Meta, reason| dropped.push((packet.ip_id, reason)));
    let large = Config { limit: Limit::Bytes(ByteCount::new(999)), ..full };
    let mut small = self::red(&large);
    small.enqueue(us(0), packet(8, 2), &mut |_, packet: Meta, reason| dropped.push((packet.ip_id, reason)));
    assert_eq!(dropped, [(7, DropReason::Tail), (8, DropReason::TooLarge)]);
    assert!(red.dequeue(us(0), &mut none).is_some());
    let counts = |red: &Red<Meta>| {
        let mut counts = Vec::new();
        red.counters(&mut |counter| {
            if counter.value > 0 {
                counts.push((counter.name, counter.value));
            }
        });
        counts
    };
    // The average was above max, whether or not the packet was dropped.
    assert_eq!(counts(&red), [("sent_packets", 1), ("sent_bytes", 1000), ("dropped_tail", 1), ("forced", 1)]);
    assert_eq!(counts(&small), [("dropped_too_large", 1)]);
}

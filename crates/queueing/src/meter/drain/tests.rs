use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::Meta;
use lastmile_units::Ratio;

use super::*;
use crate::Match;
use crate::fifo::{Fifo, Overflow};

type Shaper = Drain<Meta, Fifo<Meta>>;

/// 1 Mbit/s: 1000 bytes take 8 ms.
const LINE: BitRate = BitRate::from_kbit_per_s(1_000);

fn percent(share: u32) -> Ratio {
    Ratio::from_percent(share).expect("a share")
}

/// 98 % and 80 %: a packet of 1000 bytes takes 8.163 ms, or 10 ms during a drain.
fn config() -> Config {
    let law = Law { depth: percent(80), patience: Duration::from_s(1), longest: Duration::from_s(5) };
    Config {
        line: LINE,
        share: percent(98),
        drain: Some(law),
        urgent: Match::Never,
        largest: ByteCount::new(1000),
        catch_up: Duration::ZERO,
    }
}

fn shaper(config: &Config) -> Shaper {
    let environment = Environment::new(LinkLayer::new(0, Framing::None).expect("no overhead"));
    Drain::new(config, &environment, Fifo::in_packets(PacketCount::new(100_000), Overflow::Tail)).expect("a shaper")
}

fn us(count: u64) -> Instant {
    Instant::ZERO + Duration::from_us(count)
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

fn arrive(shaper: &mut Shaper, at: Instant) {
    shaper.enqueue(at, Meta { ip_len: 1000, arrived: at, ..Meta::default() }, &mut none);
}

/// Sends packets `gap` apart until a drain begins or ends; returns their number.
fn until_the_drain_changes(shaper: &mut Shaper, last: &mut Instant, gap: Duration) -> u32 {
    let before = shaper.is_draining();
    for packets in 1..10_000 {
        *last += gap;
        arrive(shaper, *last);
        if shaper.is_draining() != before {
            return packets;
        }
    }
    panic!("nothing turned");
}

fn counter(shaper: &Shaper, wanted: &str) -> u64 {
    let mut found = None;
    shaper.counters(&mut |counter| {
        if counter.name == wanted && counter.path.is_empty() {
            found = Some(counter.value);
        }
    });
    found.expect("a counter of this name")
}

/// 1000 bytes take 10 ms at 80 % of 1 Mbit/s. A pause saves no tokens.
#[test]
fn one_packet_leaves_at_a_time() {
    let mut shaper = shaper(&Config { share: percent(80), drain: None, ..config() });
    for _ in 0..3 {
        arrive(&mut shaper, us(0));
    }
    assert!(shaper.dequeue(us(0), &mut none).is_some());
    assert_eq!(shaper.next_ready(us(0)), Some(us(10_000)));
    assert!(shaper.dequeue(us(9_999), &mut none).is_none());
    assert!(shaper.dequeue(us(10_000), &mut none).is_some());
    assert_eq!(shaper.next_ready(us(10_000)), Some(us(20_000)));
    assert!(shaper.dequeue(us(25_000), &mut none).is_some());
    assert_eq!(shaper.next_ready(us(25_000)), None);
    arrive(&mut shaper, us(26_000));
    assert_eq!(shaper.next_ready(us(26_000)), Some(us(35_000)), "the third left at 25 ms and takes until 35 ms");
}

/// A caller late by at most `catch_up` does not cost rate.
#[test]
fn a_late_caller_is_charged_from_when_a_packet_was_due() {
    let catch_up = Duration::from_ms(1);
    let mut shaper = shaper(&Config { share: percent(80), drain: None, catch_up, ..config() });
    for _ in 0..4 {
        arrive(&mut shaper, us(0));
    }
    assert!(shaper.dequeue(us(500), &mut none).is_some());
    assert_eq!(shaper.next_ready(us(500)), Some(us(10_000)));
    assert!(shaper.dequeue(us(15_000), &mut none).is_some());
    assert_eq!(shaper.next_ready(us(15_000)), Some(us(24_000)), "14 ms is as far back as it goes");
}

/// The margin is 2 %, half of it must be idle: 1 % of a second makes a bucket of 10 ms. Back to
/// back each packet takes 1 % of 8 ms from it, 80 us, and 125 gaps empty it. With gaps of 10 ms a
/// packet adds 2 ms and time takes 0.1 ms: six of them are 11.4 ms.
#[test]
fn a_second_without_idle_time_begins_a_drain_and_idle_time_ends_it() {
    let mut shaper = shaper(&config());
    let mut now = us(0);
    assert_eq!(until_the_drain_changes(&mut shaper, &mut now, Duration::from_ms(8)), 126);
    assert_eq!(until_the_drain_changes(&mut shaper, &mut now, Duration::from_ms(10)), 6);
    assert_eq!((counter(&shaper, "drains"), counter(&shaper, "drained_ms")), (1, 60));
    // None of the six had departed: all bytes arrived came from the far queue.
    assert_eq!(counter(&shaper, "drained_wire_bytes"), 6_000);
}

/// Traffic at 98 % of the line leaves 2 % idle, twice the required share.
#[test]
fn arrivals_at_the_share_never_count_as_a_queue() {
    let mut shaper = shaper(&config());
    for number in 0..10_000 {
        arrive(&mut shaper, us(8_163 * number));
    }
    assert_eq!(counter(&shaper, "drains"), 0);
}

/// Every other packet has a time stamp late by an eighth of a packet: only the first millisecond
/// looks like idle time.
#[test]
fn late_stamps_count_as_idle_time_once() {
    let mut shaper = shaper(&config());
    let mut packets = 0;
    while !shaper.is_draining() {
        arrive(&mut shaper, us(8_000 * packets + 1_000 * (packets % 2)));
        packets += 1;
        assert!(packets < 200, "lateness passes for idle time");
    }
    // A full bucket cannot take the first millisecond.
    assert!((126..=127).contains(&packets), "{packets}");
    for more in packets..packets + 100 {
        arrive(&mut shaper, us(8_000 * more + 1_000 * (more % 2)));
    }
    assert!(shaper.is_draining(), "lateness ended the drain");
}

/// A bucket of 10 ms, and bunches of five packets of 8 ms each at 97 % of the line: no standing
/// queue, and no drain.
#[test]
fn bunches_do_not_count_as_a_queue() {
    let mut shaper = shaper(&config());
    for number in 0..2_000 {
        arrive(&mut shaper, us(5 * 8_250 * (number / 5)));
    }
    assert_eq!(counter(&shaper, "drains"), 0);
}

/// Bunches of five packets without a pause between them, as from a line that delivers five packets
/// at a time: a standing queue.
#[test]
fn bunches_without_idle_time_between_them_are_a_queue() {
    let mut shaper = shaper(&config());
    let mut packets = 0;
    while !shaper.is_draining() {
        arrive(&mut shaper, us(5 * 8_000 * (packets / 5)));
        packets += 1;
        assert!(packets < 200, "the pause between bunches passes for idle time");
    }
    assert!((121..=131).contains(&packets), "{packets}");
    for more in packets..packets + 100 {
        arrive(&mut shaper, us(5 * 8_000 * (more / 5)));
    }
    assert!(shaper.is_draining(), "the pause between bunches ended the drain");
}

/// A line 10 % faster than configured: the excess counts against it for at most the
/// patience.
#[test]
fn a_line_faster_than_configured_does_not_count_as_busy_for_long() {
    let mut shaper = shaper(&config());
    for number in 0..10_000 {
        arrive(&mut shaper, us(7_200 * number));
    }
    let mut now = us(7_200 * 9_999);
    if !shaper.is_draining() {
        until_the_drain_changes(&mut shaper, &mut now, Duration::from_ms(8));
    }
    // A second ahead: at 80 % of the line one fifth of the time is idle, so recovery takes five
    // seconds.
    let packets = until_the_drain_changes(&mut shaper, &mut now, Duration::from_ms(10));
    assert!((490..=510).contains(&packets), "{packets}");
}

/// Unresponsive traffic: a drain is given up after 5 s; the next begins after 2 s, then 4 s.
#[test]
fn an_unsuccessful_drain_is_given_up_and_the_next_begins_later() {
    let mut shaper = shaper(&config());
    let mut now = us(0);
    let gap = Duration::from_ms(8);
    let turns: Vec<u32> = (0..6).map(|_| until_the_drain_changes(&mut shaper, &mut now, gap)).collect();
    // Gaps of 8 ms, of which the first packet has none: 1 s, and then 5 s, 2 s, 5 s, 4 s, 5 s.
    assert_eq!(turns, [126, 625, 250, 625, 500, 625]);
    assert_eq!((counter(&shaper, "drains"), counter(&shaper, "drains_given_up")), (3, 3));
    // Idle time alone does not restore the patience; a drain that ends by a full bucket does.
    now += Duration::from_s(10);
    assert_eq!(until_the_drain_changes(&mut shaper, &mut now, gap), 1 + 1000);
    now += Duration::from_s(1);
    assert_eq!(until_the_drain_changes(&mut shaper, &mut now, gap), 1);
    assert_eq!(until_the_drain_changes(&mut shaper, &mut now, gap), 125);
}

/// A silent line is idle, though no packet arrives to show it: queued packets find the drain over.
#[test]
fn silence_is_idle_time() {
    let mut shaper = shaper(&config());
    let mut now = us(0);
    until_the_drain_changes(&mut shaper, &mut now, Duration::from_ms(8));
    // A packet of 8 ms may be on the wire; 11 ms more, less their share of 1 %, fill the bucket of
    // 10 ms.
    let silent = now + Duration::from_ms(19);
    assert!(shaper.dequeue(now + Duration::from_ms(17), &mut none).is_some());
    assert!(shaper.is_draining());
    while shaper.next_ready(silent).is_some_and(|ready| ready <= silent) {
        shaper.dequeue(silent, &mut none);
    }
    assert!(shaper.dequeue(now + Duration::from_ms(60), &mut none).is_some());
    assert!(!shaper.is_draining());
}

/// 1000 bytes take 8.163265306 ms at 98 %: two of them may be owed.
#[test]
fn urgent_packets_do_not_wait_and_are_charged() {
    let mut shaper = shaper(&Config { urgent: Match::Dscp(46), drain: None, ..config() });
    let mut urgent = Meta { ip_len: 1000, ..Meta::default() };
    urgent.set_dscp(46);
    arrive(&mut shaper, us(0));
    arrive(&mut shaper, us(0));
    for _ in 0..4 {
        shaper.enqueue(us(0), urgent, &mut none);
    }
    let left = |shaper: &mut Shaper, at| shaper.dequeue(at, &mut none).map(|packet| packet.dscp());
    // Owed after each of them: 8.2 ms, 16.3 ms, and more than two packets with the third.
    for _ in 0..3 {
        assert_eq!(left(&mut shaper, us(0)), Some(46));
    }
    assert_eq!(left(&mut shaper, us(0)), None);
    assert_eq!(left(&mut shaper, us(8_164)), Some(46), "8.2 ms of 24.5 ms are paid");
    assert_eq!(left(&mut shaper, us(32_653)), None);
    assert_eq!(left(&mut shaper, us(32_654)), Some(0), "the others wait until all four are paid");
    assert_eq!((counter(&shaper, "urgent"), shaper.backlog().packets), (4, PacketCount::new(1)));
    assert_eq!(counter(&shaper, "urgent_bytes"), 4_000);
}

#[test]
fn an_urgent_packet_leaves_without_the_class_that_it_has_passed() {
    let mut shaper = shaper(&Config { urgent: Match::Class(0), ..config() });
    for class in [1, 0] {
        shaper.enqueue(us(0), Meta { ip_len: 100, class: Some(class), ..Meta::default() }, &mut none);
    }
    let mut left = |at| shaper.dequeue(us(at), &mut none).map(|packet| packet.class);
    assert_eq!([left(1_000), left(10_000)], [Some(None), Some(Some(1))]);
}

#[test]
fn shares_and_times_that_do_nothing_are_refused() {
    let refused = |config: Config| config.check().expect_err("it does nothing").to_string();
    let law = |law: Law| Config { drain: Some(law), ..config() };
    let own = config().drain.expect("a law");
    assert_eq!(
        refused(Config { share: Ratio::ONE, ..config() }),
        "a share of 100 %; it must be below 100 %, so that the line is idle when its far end has no queue"
    );
    assert_eq!(refused(law(Law { depth: percent(98), ..own })), "a drain to 98 % that is not below the share of 98 %");
    assert_eq!(
        refused(law(Law { patience: Duration::ZERO, ..own })),
        "a time of zero: patience and longest must be above zero"
    );
    assert_eq!(refused(law(Law { depth: Ratio::ZERO, ..own })), "0 % of 1 Mbit/s is nothing");
    assert!(
        Config { share: Ratio::ONE, drain: None, ..config() }.check().is_ok(),
        "without a drain no margin is needed"
    );
}

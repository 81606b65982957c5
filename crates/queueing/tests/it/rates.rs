//! Shapers whose rate changes while packets wait: what departs is what the rates carry, to the picosecond.

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::Meta;
use lastmile_queueing::ack::{pacing, regenerator};
use lastmile_queueing::line::{self, Line};
use lastmile_queueing::meter::{drain, tbf};
use lastmile_queueing::random::Stream;
use lastmile_queueing::sched::hfsc::{self, ServiceCurve, Share};
use lastmile_queueing::sched::htb;
use lastmile_queueing::sched::tree::{Class, Tree};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{DropReason, DropSink, Match, Node, cake};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio, WireBytes};
use proptest::prelude::*;

const PS_PER_S: u128 = 1_000_000_000_000;

/// The same length in bytes on the wire as in IP bytes.
fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn rate(kbit: u64) -> BitRate {
    BitRate::from_kbit_per_s(kbit)
}

/// One tin of CAKE without AQM in effect: a round-trip time of 100 s.
fn cake(kbit: u64, ingress: bool) -> Spec {
    Spec::Cake(cake::Config {
        bandwidth: Some(rate(kbit)),
        diffserv: cake::Diffserv::BestEffort,
        rtt: Duration::from_s(100),
        ingress,
        ..cake::Config::default()
    })
}

fn drain(kbit: u64, queue: Spec) -> Spec {
    let config = drain::Config {
        line: rate(kbit),
        share: Ratio::ONE,
        drain: None,
        urgent: Match::Never,
        largest: ByteCount::new(1500),
        catch_up: Duration::ZERO,
    };
    Spec::Drain(Over { config, queue: Box::new(queue) })
}

fn tbf(kbit: u64, queue: Spec) -> Spec {
    let config = tbf::Config {
        rate: rate(kbit),
        burst: WireBytes::new(1500),
        peak: None,
        largest: ByteCount::new(1500),
        catch_up: Duration::ZERO,
    };
    Spec::Tbf(Over { config, queue: Box::new(queue) })
}

fn class<S>(name: &str, parent: Option<&str>, share: S, queue: Option<Spec>) -> Class<S> {
    Class { name: name.to_owned(), parent: parent.map(str::to_owned), share, queue }
}

/// A link with these classes, of which the last takes all packets.
fn tree<S>(link: S, classes: impl IntoIterator<Item = S>) -> Tree<S> {
    let below = classes.into_iter().zip(["a", "b"]);
    let below = below.map(|(share, name)| class(name, Some("link"), share, Some(Spec::fifo(100))));
    Tree { classes: [class("link", None, link, None)].into_iter().chain(below).collect(), rules: vec![], default: None }
}

/// A class of three quarters of the link, and one of the last quarter at most. Bursts are of one packet.
fn htb(kbit: u64) -> htb::Config {
    let share = |part| htb::Share::of(rate(kbit * part / 4));
    let mut tree = tree(share(4), [share(3), share(1)]);
    tree.default = Some("b".to_owned());
    htb::Config::new(tree)
}

/// As [`htb`], and the class of a quarter has a guarantee of as much again in its first 24 ms at this rate.
fn hfsc(kbit: u64) -> hfsc::Config {
    let curve = |part| ServiceCurve::linear(rate(kbit * part / 4));
    let share = |part| Share { link_share: Some(curve(part)), upper_limit: Some(curve(part)), real_time: None };
    let first = ServiceCurve::two_pieces(Some(rate(kbit / 2)), Duration::from_ms(24), rate(kbit / 4));
    hfsc::Config { tree: tree(share(4), [share(3), Share { real_time: Some(first), ..share(1) }]) }
}

/// Bits times 10^12 that the rates carry from the beginning of the clock until `at`; `changes` are times in
/// microseconds and rates in kbit/s.
fn carried(first: u64, changes: &[(u64, u64)], at: Instant) -> u128 {
    let mut sum = 0;
    let (mut since, mut kbit) = (Instant::ZERO, first);
    for &(us, next) in changes.iter().chain(&[(u64::MAX / 1_000_000, 1)]) {
        let until = (Instant::ZERO + Duration::from_us(us)).min(at);
        sum += u128::from(until.since(since).as_ps()) * u128::from(kbit) * 1000;
        (since, kbit) = (until.max(since), next);
    }
    sum
}

/// Takes transmissions, and no drops.
struct NothingLost;

impl DropSink<Meta> for NothingLost {
    fn dropped(&mut self, _now: Instant, packet: Meta, reason: DropReason) {
        panic!("{packet:?} is dropped: {reason:?}");
    }
}

impl line::TransmissionSink<Meta> for NothingLost {
    fn transmitted(&mut self, _start: Instant, _end: Instant, _waited: Duration, _packet: &Meta) {}
}

/// The departures of packets of these sizes from a line that takes no time, all enqueued at the beginning.
fn departures(queue: Node<Meta>, sizes: &[u16], changes: &[(u64, u64)]) -> Vec<(Instant, u16)> {
    let mut line = Line::new(&line::Config::new(None, plain(), Duration::ZERO), queue, Stream::new(1, "losses"));
    let mut lost = NothingLost;
    for (number, size) in (0..).zip(sizes) {
        let packet = Meta { ip_id: number, ip_len: *size, ..Meta::default() };
        line.enqueue(Instant::ZERO, packet, &mut lost);
    }
    let mut changes = changes.iter().map(|(us, kbit)| (Instant::ZERO + Duration::from_us(*us), rate(*kbit))).peekable();
    let mut departed = Vec::new();
    loop {
        while let Some(at) = line.next_arrival() {
            departed.extend(line.take_arrival(at, &mut lost).map(|packet| (at, packet.ip_len)));
        }
        let Some(due) = line.next_transmission() else { return departed };
        match changes.next_if(|(at, _)| *at <= due) {
            Some((at, rate)) => assert!(line.set_rate(at, rate, &mut lost), "a shaper"),
            None => line.transmit(due, &mut lost),
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<(u64, u64)>> {
    // Times between changes in us, many shorter than a packet; rates in kbit/s.
    prop::collection::vec((0_u64..5000, 100_u64..20_000), 0..40).prop_map(|steps| {
        let mut at = 0;
        steps
            .into_iter()
            .map(|(gap, kbit)| {
                at += gap;
                (at, kbit)
            })
            .collect()
    })
}

proptest! {
    /// A packet departs in the picosecond in which the rates have carried all packets ahead of it. CAKE and the
    /// transmitter round down, over one another as well.
    #[test]
    fn a_transmitter_keeps_every_rate_exactly(
        first in 100_u64..20_000,
        changes in changes(),
        sizes in prop::collection::vec(40_u16..=1500, 1..60),
    ) {
        for spec in [
            cake(first, false),
            cake(first, true),
            drain(first, Spec::fifo(100)),
            drain(first, cake(first, false)),
        ] {
            let departed = departures(spec.build(&plain()).expect("valid"), &sizes, &changes);
            prop_assert_eq!(departed.len(), sizes.len());
            let mut bits = 0;
            for (at, size) in departed {
                let carried = |at| carried(first, &changes, at);
                prop_assert!(carried(at) <= bits * PS_PER_S, "{} too late: {} bits", at, bits);
                prop_assert!(carried(at + Duration::from_ps(1)) > bits * PS_PER_S, "{} too early: {} bits", at, bits);
                bits += 8 * u128::from(size);
            }
        }
    }

    /// HTB owes a packet, and its burst is another: the third waits until the rates have carried the first, and times
    /// are rounded by a picosecond for the debt and the burst. In HFSC the second waits for that, and a picosecond of
    /// the curves is up to 200 of the clock.
    #[test]
    fn a_tree_of_classes_keeps_every_rate(
        first in 100_u64..20_000,
        changes in changes(),
        packets in 3_usize..60,
    ) {
        let one = |share| Share { link_share: Some(share), upper_limit: Some(share), real_time: None };
        let line = ServiceCurve::linear(rate(first));
        let trees = [
            (Spec::Htb(htb::Config::new(tree(htb::Share::of(rate(first)), [htb::Share::of(rate(first))]))), 1, 2),
            (Spec::Hfsc(hfsc::Config { tree: tree(one(line), [one(line)]) }), 0, 202),
        ];
        for (mut spec, ahead, late_ps) in trees {
            if let Spec::Htb(config) = &mut spec {
                config.tree.default = Some("a".to_owned());
            }
            let departed = departures(spec.build(&plain()).expect("valid"), &vec![1500; packets], &changes);
            prop_assert_eq!(departed.len(), packets);
            for (number, (at, _)) in (0_u128..).zip(departed) {
                let bits = number.saturating_sub(ahead) * 12_000 * PS_PER_S;
                let carried = |at| carried(first, &changes, at);
                prop_assert!(carried(at + Duration::from_ps(1)) >= bits, "packet {} at {} is early", number, at);
                let before = Instant::from_ps(at.as_ps().saturating_sub(late_ps));
                prop_assert!(number <= ahead || carried(before) < bits, "packet {} at {} is late", number, at);
            }
        }
    }

    /// A token bucket of one packet, full at first, lets each next one go when the rates have earned it, rounded up.
    #[test]
    fn a_token_bucket_earns_at_every_rate_exactly(
        first in 100_u64..20_000,
        changes in changes(),
        packets in 1_usize..60,
    ) {
        let departed = departures(
            tbf(first, Spec::fifo(100)).build(&plain()).expect("valid"), &vec![1500; packets], &changes,
        );
        prop_assert_eq!(departed.len(), packets);
        for (number, (at, _)) in (0_u128..).zip(departed) {
            let (bits, carried) = (number * 12_000 * PS_PER_S, |at| carried(first, &changes, at));
            prop_assert!(carried(at) >= bits, "packet {} at {} is early", number, at);
            let before = Instant::from_ps(at.as_ps().saturating_sub(1));
            prop_assert!(number == 0 || carried(before) < bits, "packet {} at {} is late", number, at);
        }
    }
}

/// 1500 bytes take 12 ms at 1 Mbit/s. The rate doubles when 8 ms of them have passed, so the other 4 ms take 2.
#[test]
fn a_packet_that_waits_continues_at_the_new_rate() {
    for spec in [cake(1000, false), drain(1000, Spec::fifo(9)), tbf(1000, Spec::fifo(9))] {
        let departed = departures(spec.build(&plain()).expect("valid"), &[1500; 3], &[(8000, 2000)]);
        let times: Vec<u64> = departed.iter().map(|(at, _)| at.since(Instant::ZERO).as_us()).collect();
        assert_eq!(times, [0, 10_000, 16_000], "{spec:?}");
    }
}

/// ACK regulation that holds packets gives the rate to the shaper below it. An interpolating regenerator passes what is
/// no ACK.
#[test]
fn ack_regulation_over_a_shaper_forwards_its_rate() {
    let below = || Box::new(tbf(1000, Spec::fifo(9)));
    let know = regenerator::Know::Interpolate { stride: 1460 };
    let regenerator = regenerator::Config { know, ..regenerator::Config::default() };
    let pacing = pacing::Config { rate: rate(1000), max_hold: Duration::from_ms(100), exempt: Match::Never };
    for spec in [
        Spec::AckRegenerator(Over { config: regenerator, queue: below() }),
        Spec::AckPacing(Over { config: pacing, queue: below() }),
    ] {
        let departed = departures(spec.build(&plain()).expect("valid"), &[1500; 3], &[(8000, 2000)]);
        let times: Vec<u64> = departed.iter().map(|(at, _)| at.since(Instant::ZERO).as_us()).collect();
        assert_eq!(times, [0, 10_000, 16_000], "{spec:?}");
    }
}

/// A class with a quarter of 4 Mbit/s sends 1500 bytes each 12 ms, and each 6 ms after the link has 8. HTB sends two at
/// first. HFSC guarantees twice the rate for 24 ms, which are four packets, each 6 ms.
#[test]
fn rates_of_classes_are_in_proportion() {
    let times = |spec: Spec, count, changes: &[(u64, u64)]| -> Vec<u64> {
        let departed = departures(spec.build(&plain()).expect("valid"), &vec![1500; count], changes);
        departed.iter().map(|(at, _)| at.since(Instant::ZERO).as_us()).collect()
    };
    assert_eq!(times(Spec::Htb(htb(4000)), 6, &[(24_000, 8000)]), [0, 0, 12_000, 24_000, 30_000, 36_000]);
    assert_eq!(times(Spec::Htb(htb(4000)), 5, &[(18_000, 8000)]), [0, 0, 12_000, 21_000, 27_000]);
    assert_eq!(times(Spec::Hfsc(hfsc(4000)), 6, &[]), [0, 6_000, 12_000, 18_000, 24_000, 36_000]);
    assert_eq!(times(Spec::Hfsc(hfsc(4000)), 6, &[(6_000, 8000)]), [0, 6_000, 9_000, 12_000, 15_000, 21_000]);

    // A tree that is built for another rate and has this one from the beginning.
    let (mut faster, mut steeper) = (htb(4000), hfsc(4000));
    assert!(faster.set_rate(rate(16_000)) && steeper.set_rate(rate(16_000)));
    assert_eq!(faster.tree.classes[1].share.rate, rate(12_000));
    assert_eq!(
        steeper.tree.classes[2].share.real_time,
        Some(ServiceCurve::two_pieces(Some(rate(8000)), Duration::from_ms(6), rate(4000),))
    );
    assert_eq!(times(Spec::Htb(faster), 5, &[(0, 4000)]), [0, 0, 12_000, 24_000, 36_000]);
    assert_eq!(times(Spec::Hfsc(steeper), 6, &[(0, 4000)]), [0, 6_000, 12_000, 18_000, 24_000, 36_000]);
}

/// A queue without a shaper, a CAKE without a bandwidth, a drain with a law, and trees that no class limits keep what
/// they have.
#[test]
fn a_queue_without_a_shaper_refuses_a_rate() {
    let unlimited = Spec::Cake(cake::Config::default());
    let Spec::Drain(mut drained) = drain(1000, Spec::fifo(9)) else { unreachable!() };
    drained.config.share = Ratio::from_percent(98).expect("a share");
    let depth = Ratio::from_percent(80).expect("a share");
    drained.config.drain = Some(drain::Law { depth, patience: Duration::from_s(1), longest: Duration::from_s(5) });
    let (mut two, mut unlimited_tree) = (htb(1000), hfsc(1000));
    two.tree.classes[1].parent = None;
    unlimited_tree.tree.classes[0].share.upper_limit = None;
    let trees = [Spec::Htb(two), Spec::Hfsc(unlimited_tree)];
    for spec in [Spec::fifo(9), unlimited, Spec::Drain(drained)].into_iter().chain(trees) {
        let mut queue = spec.build::<Meta>(&plain()).expect("valid");
        assert!(!queue.set_rate(Instant::ZERO, rate(500)), "{spec:?}");
    }
}

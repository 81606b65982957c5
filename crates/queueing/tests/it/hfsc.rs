//! HFSC in random traffic: guaranteed service by the definition of its authors, and limits in every span of time.

use lastmile_linklayer::preset;
use lastmile_packet::{FlowId, Meta};
use lastmile_queueing::sched::hfsc::{Config, ServiceCurve, Share};
use lastmile_queueing::sched::tree::{Class, Rule, Tree};
use lastmile_queueing::{Discipline as _, Match, Node, Spec};
use lastmile_units::{BitRate, Duration, Instant};
use proptest::prelude::*;

use crate::traffic::Probe;

/// 1500 bytes take 1.2 ms.
const RATE: BitRate = BitRate::from_mbit_per_s(10);
const LARGEST_US: u64 = 1200;

/// The first rate, its time in microseconds, and the second rate; rates in kbit/s.
type Pieces = (u64, u64, u64);

/// Service of a curve in bits by a time in microseconds, times 1000: kbit/s times microseconds.
fn service((m1, d, m2): Pieces, us: u64) -> u64 {
    m1 * us.min(d) + m2 * us.saturating_sub(d)
}

fn kbit(rate: u64) -> Option<BitRate> {
    BitRate::from_bps(rate * 1000)
}

/// Class `n` has flow `n`, the curve, and a share; below one class with the limit.
fn spec(curves: &[Pieces], limit: Option<u64>, shares: [u64; 3]) -> Config {
    let line = |rate| kbit(rate).map(ServiceCurve::linear);
    let root = Share { real_time: None, link_share: line(1), upper_limit: limit.and_then(line) };
    let mut classes = vec![Class { name: "all".into(), parent: None, share: root, queue: None }];
    let mut rules = Vec::new();
    for (number, (&(m1, d, m2), share)) in (0..).zip(curves.iter().zip(shares)) {
        let m2 = kbit(m2).expect("above zero");
        let curve = ServiceCurve::two_pieces(kbit(m1), Duration::from_us(d), m2);
        let share = Share { real_time: Some(curve), link_share: line(share), upper_limit: None };
        let name = format!("class {number}");
        rules.push(Rule { matches: Match::Flow(FlowId::new(number)), class: name.clone() });
        classes.push(Class { name, parent: Some("all".into()), share, queue: Some(Spec::fifo(10_000)) });
    }
    Config { tree: Tree { classes, rules, default: None } }
}

/// Serves a load of (gap in microseconds, class, size): for each packet its class and size, and when it arrived and had
/// been transmitted, in microseconds. Sizes are multiples of 250 bytes, so that times are whole.
fn served(config: &Config, load: &[(u64, u32, u16)]) -> Vec<(u32, u64, u64, u64)> {
    let mut scheduler: Node<Probe> = Spec::Hfsc(config.clone()).build(&preset::IP.link).expect("it can be built");
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    let us = |instant: Instant| instant.as_ps() / 1_000_000;
    let mut arrivals = load.iter().scan(0, |now, &(gap, class, size)| {
        *now += gap;
        Some((*now, class, size))
    });
    let (mut next, mut free, mut out) = (arrivals.next(), Instant::ZERO, Vec::new());
    loop {
        let ready = scheduler.next_ready(free).map(|ready| ready.max(free));
        let arrival = next.map(|(at, ..)| Instant::ZERO + Duration::from_us(at));
        if let (Some((_, class, size)), Some(arrival)) = (next, arrival)
            && ready.is_none_or(|ready| arrival <= ready)
        {
            let packet = Meta { flow: FlowId::new(class), ip_len: size, arrived: arrival, ..Meta::default() };
            let packet = Probe::from(packet);
            scheduler.enqueue(arrival, packet, &mut none);
            free = free.max(arrival);
            next = arrivals.next();
        } else if let Some(ready) = ready {
            let packet = scheduler.dequeue(ready, &mut none).expect("a packet at the promised time");
            free = ready + RATE.time_for(preset::IP.link.on_wire(packet.ip_bytes()));
            out.push((packet.flow.index(), u64::from(packet.ip_len) * 8, us(packet.arrived), us(free)));
        } else {
            return out;
        }
    }
}

fn load() -> impl Strategy<Value = Vec<(u64, u32, u16)>> {
    let gap = prop_oneof![3 => Just(0_u64), 3 => 0..2000_u64, 1 => 0..40_000_u64];
    let size = prop_oneof![Just(250_u16), Just(1500), (1..7_u16).prop_map(|n| n * 250)];
    prop::collection::vec((gap, 0..3_u32, size), 1..120)
}

/// Two curves that fit the link together with a third: each at most a third of it at every time.
fn curves() -> impl Strategy<Value = Vec<Pieces>> {
    prop::collection::vec((0..3300_u64, 1000..30_000_u64, 50..3300_u64), 3)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The paper's definition, and theorem 2: at every time t at which a class is backlogged there is a beginning s of
    /// one of its backlogs by which it has got the service of its curve in t - s, less the time of one largest packet.
    /// Service counts when a packet has been transmitted, so that the packet that is next may be missing.
    #[test]
    fn guarantees_hold_in_any_traffic(load in load(), curves in curves(), shares in [1..50_u64, 1..50_u64, 1..50_u64]) {
        let config = spec(&curves, None, shares);
        prop_assert_eq!(Spec::Hfsc(config.clone()).check_link(RATE), Ok(()));
        let sent = served(&config, &load);
        prop_assert_eq!(sent.len(), load.len());
        for class in 0..3 {
            let own: Vec<_> = sent.iter().filter(|(of, ..)| *of == class).collect();
            let mut begins = Vec::new();
            let mut done = 0;
            let mut last_began = None;
            for &&(_, bits, arrived, end) in &own {
                // It begins a backlog if the transmission of the packet before it had begun.
                if last_began.is_none_or(|last: u64| arrived > last) {
                    begins.push((arrived, done));
                }
                // Just before it has been transmitted the class is backlogged, and this packet is missing.
                let until = end.saturating_sub(LARGEST_US + 1);
                let holds = begins.iter().any(|&(begin, before)| {
                    let got = (done + bits - before) * 1000;
                    got >= service(curves[class as usize], until.saturating_sub(begin))
                });
                prop_assert!(holds, "class {class}: {bits} bits at {end} us of {begins:?}");
                done += bits;
                last_began = Some(end - bits / 10);
            }
        }
    }

    /// 2 Mbit/s for all classes together, whose guarantees are next to nothing: any span has that rate and a packet.
    #[test]
    fn a_limit_holds_in_every_span(load in load(), shares in [1..50_u64, 1..50_u64, 1..50_u64]) {
        let config = spec(&[(0, 60_000_000, 1); 3], Some(2000), shares);
        let sent = served(&config, &load);
        for (first, &(_, bits, _, end)) in sent.iter().enumerate() {
            let start = end - bits / 10;
            let mut total = 0;
            for &(_, bits, _, end) in &sent[first..] {
                let start_of_last = end - bits / 10;
                // A packet begins when the limit has reached what was sent before it. Each guarantee may add a packet.
                prop_assert!(total * 1000 <= 2000 * (start_of_last - start + 1) + 4 * 12_000_000, "{total} bits");
                total += bits;
            }
        }
    }
}

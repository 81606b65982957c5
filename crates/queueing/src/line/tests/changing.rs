//! Lines whose capacity changes.

use std::sync::Arc;

use super::*;
use crate::line::trace::{Opportunities, Step, Steps, Trace, TraceError};

fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

/// A step at `at` milliseconds with a rate in kbit/s, none for 0, and a delay of `delay` milliseconds.
fn step(at: u64, kbit: u64, delay: u64) -> Step {
    Step { at: ms(at), rate: BitRate::from_bps(kbit * 1_000), delay: ms(delay), loss: Ratio::ZERO }
}

fn stepping(steps: Vec<Step>, period: Option<Duration>) -> Line<Meta> {
    let trace = Trace::Steps(Arc::new(Steps::new(steps, period).expect("in order")));
    line(&Config { trace: Some(trace), ..config(1, "ip") }, 100)
}

fn blocks(at: &[u64], period: u64) -> Line<Meta> {
    let at = at.iter().map(|at| ms(*at)).collect();
    let opportunities = Opportunities::new(at, ms(period), Opportunities::MAHIMAHI_BYTES).expect("in order");
    let trace = Trace::Opportunities(Arc::new(opportunities));
    line(&Config { trace: Some(trace), delay: Duration::ZERO, ..config(1, "ip") }, 100)
}

/// Sends packets of these lengths at these times (us) and returns start and end of each transmission, in us.
fn run(line: &mut Line<Meta>, packets: &[(u64, u16)]) -> Vec<(u64, u64)> {
    let mut log = Log::default();
    for (number, (at, len)) in (0..).zip(packets) {
        while let Some(due) = line.next_transmission().filter(|due| *due < at_us(*at)) {
            line.transmit(due, &mut log);
        }
        line.enqueue(at_us(*at), packet(number, *len), &mut log);
    }
    while let Some(due) = line.next_transmission() {
        line.transmit(due, &mut log);
    }
    let us = |at: Instant| at.as_ps() / 1_000_000;
    log.transmitted.iter().map(|(_, start, end)| (us(*start), us(*end))).collect()
}

/// 1500 bytes are 12 ms at 1 Mbit/s. From 4 ms on, 6000 bits are sent by 10 ms, the others at 2 Mbit/s in 3 ms.
#[test]
fn a_packet_crosses_a_change_of_rate() {
    let mut line = stepping(vec![step(0, 1_000, 5), step(10, 2_000, 5)], None);
    assert_eq!(run(&mut line, &[(4_000, 1_500), (4_000, 1_500)]), [(4_000, 13_000), (13_000, 19_000)]);
}

/// An outage from 10 to 30 ms, again every 50 ms: 5 ms of the packet are sent before it, 7 ms after it. A packet
/// that comes during an outage begins at its end.
#[test]
fn packets_wait_for_the_end_of_an_outage() {
    let mut line = stepping(vec![step(0, 1_000, 5), step(10, 0, 5), step(30, 1_000, 5)], Some(ms(50)));
    assert_eq!(run(&mut line, &[(5_000, 1_500), (70_000, 1_500)]), [(5_000, 37_000), (80_000, 92_000)]);
}

#[test]
fn the_bits_of_a_packet_are_sent_until_its_end() {
    let mut line = stepping(vec![step(0, 1_000, 5), step(10, 2_000, 5)], None);
    line.enqueue(at_us(4_000), packet(0, 1_500), &mut Log::default());
    // 4.5 ms at 1 Mbit/s, 6 ms at 1 and 1 ms at 2 Mbit/s.
    let sent = [4_000, 8_500, 11_000, 13_000, 14_000].map(|us| line.bits_sent(at_us(us)));
    assert_eq!(sent, [0, 4_500, 8_000, 12_000, 12_000]);
}

/// An outage in the middle of a packet: before it 8 ms at 1 Mbit/s, none in it.
#[test]
fn no_bits_are_sent_in_an_outage() {
    let mut line = stepping(vec![step(0, 1_000, 5), step(8, 0, 5), step(100, 1_000, 5)], None);
    line.enqueue(at_us(0), packet(0, 1_500), &mut Log::default());
    let sent = [4_000, 8_000, 50_000, 100_000, 102_000, 104_000].map(|us| line.bits_sent(at_us(us)));
    assert_eq!(sent, [4_000, 8_000, 8_000, 8_000, 10_000, 12_000]);
}

/// 2 s of each 5 s.
#[test]
fn the_time_of_outages_is_that_of_all_periods() {
    let steps = vec![step(0, 1_000, 5), step(1_000, 0, 5), step(3_000, 1_000, 5)];
    let trace = Trace::Steps(Arc::new(Steps::new(steps, Some(ms(5_000))).expect("a trace")));
    let between = |from: u64, to: u64| trace.outage_between(at_us(from * 1_000), at_us(to * 1_000));
    let expected = [((0, 5_000), 2_000), ((0, 1_500), 500), ((2_000, 6_500), 1_500), ((3_000, 6_000), 0)];
    for ((from, to), outage) in expected {
        assert_eq!(between(from, to), ms(outage), "{from} to {to}");
    }
}

/// 20 Mbit/s for 2 s and 1 Mbit/s for 13, of which 5 Mbit/s can be used: (2 * 5 + 13 * 1) / 15 Mbit/s.
#[test]
fn the_mean_of_the_lesser_rate_is_not_the_lesser_mean() {
    let steps = vec![step(0, 20_000, 5), step(2_000, 1_000, 5)];
    let trace = Trace::Steps(Arc::new(Steps::new(steps, None).expect("a trace")));
    let mean = trace.rate_up_to(BitRate::from_mbit_per_s(5), at_us(0), at_us(15_000_000)).expect("a span");
    assert!((mean - 23e6 / 15.0).abs() < 1.0, "{mean}");
}

/// Three packets of 1000 bytes in blocks of 1504 at 5, 10 and 20 ms: 504 bytes of the second in the first block, 496 in
/// the second, and all of the third there.
#[test]
fn bits_are_sent_with_their_blocks() {
    let mut line = blocks(&[5, 10, 20], 100);
    (0..3).for_each(|number| line.enqueue(at_us(0), packet(number, 1_000), &mut Log::default()));
    let mut sent = Vec::new();
    for ms in [4, 5, 9, 10, 15] {
        while let Some(due) = line.next_transmission().filter(|due| *due <= at_us(ms * 1_000)) {
            line.transmit(due, &mut Log::default());
        }
        sent.push(line.bits_sent(at_us(ms * 1_000)));
    }
    assert_eq!(sent, [0, 12_032, 12_032, 24_000, 24_000]);
}

/// The delay falls from 50 to 5 ms at 10 ms: the second packet, sent at 16 ms, would arrive 38 ms before the first.
#[test]
fn a_shorter_delay_does_not_reorder() {
    let mut line = stepping(vec![step(0, 1_000, 50), step(10, 1_000, 5)], None);
    let mut log = Log::default();
    line.enqueue(at_us(0), packet(0, 1_000), &mut log);
    line.enqueue(at_us(0), packet(1, 1_000), &mut log);
    line.transmit(at_us(8_000), &mut log);
    let mut arrived = Vec::new();
    while let Some(at) = line.next_arrival() {
        arrived.push((at, line.take_arrival(at, &mut log).expect("it is there").seq.raw()));
    }
    assert_eq!(arrived, [(at_us(58_000), 0), (at_us(58_000), 1)]);
}

/// mahimahi, `mm-link`: two opportunities of 1504 bytes at 1 ms and one at 5 ms, again every 10 ms. A packet may
/// span opportunities, and an opportunity may carry several packets; one without a packet is lost.
#[test]
fn packets_leave_at_opportunities() {
    let mut line = blocks(&[1, 1, 5], 10);
    let packets = [(0, 1_504), (0, 752), (0, 1_504), (0, 1_504), (7_000, 100)];
    let ends: Vec<u64> = run(&mut line, &packets).into_iter().map(|(_, end)| end).collect();
    // The third packet has half of the second and half of the third opportunity; the fourth has the rest of the
    // third and half of that at 11 ms, whose other half takes the fifth.
    assert_eq!(ends, [1_000, 1_000, 5_000, 11_000, 11_000]);
}

/// mahimahi's traces may end with an opportunity at their period.
#[test]
fn an_opportunity_at_the_end_of_the_period_counts_once() {
    let mut line = blocks(&[4, 10], 10);
    let ends: Vec<u64> =
        run(&mut line, &[(9_000, 1_504), (9_000, 1_504), (20_000, 1_504)]).into_iter().map(|(_, end)| end).collect();
    assert_eq!(ends, [10_000, 14_000, 20_000]);
}

/// Opportunities at 1, 1, 5 and 10 ms of 10: from 5 ms on they are at 0, 5, 6 and 6 ms; a start 3 periods later is no
/// other.
#[test]
fn opportunities_go_on_from_the_start() {
    let trace = |at: &[u64]| {
        Opportunities::new(at.iter().map(|at| ms(*at)).collect(), ms(10), Opportunities::MAHIMAHI_BYTES).unwrap()
    };
    let recorded = trace(&[1, 1, 5, 10]);
    assert_eq!(recorded.starting_at(ms(5)), trace(&[0, 5, 6, 6]));
    assert_eq!(recorded.starting_at(ms(35)), trace(&[0, 5, 6, 6]));
    assert_eq!(recorded.starting_at(ms(10)), recorded);
    assert_eq!(trace(&[0, 4]).starting_at(ms(2)), trace(&[2, 8]));
}

/// Steps at 0, 4 and 9 ms, again every 10 ms: from 6 ms on the second holds for 3 ms more, and for its first 2 ms at
/// the end.
#[test]
fn steps_go_on_from_the_start() {
    let recorded = [step(0, 1, 10), step(4, 2, 20), step(9, 3, 30)];
    let looped = Steps::new(recorded.to_vec(), Some(ms(10))).unwrap();
    let expected = [step(0, 2, 20), step(3, 3, 30), step(4, 1, 10), step(8, 2, 20)];
    assert_eq!(looped.starting_at(ms(6)).unwrap(), Steps::new(expected.to_vec(), Some(ms(10))).unwrap());
    let at_a_step = [step(0, 2, 20), step(5, 3, 30), step(6, 1, 10)];
    assert_eq!(looped.starting_at(ms(24)).unwrap(), Steps::new(at_a_step.to_vec(), Some(ms(10))).unwrap());
    assert_eq!(looped.starting_at(Duration::ZERO).unwrap(), looped);

    let once = Steps::new(recorded.to_vec(), None).unwrap();
    let rest = [step(0, 2, 20), step(3, 3, 30)];
    assert_eq!(once.starting_at(ms(6)).unwrap(), Steps::new(rest.to_vec(), None).unwrap());
    let late = TraceError::StartsInLastStep { start: ms(9), last: ms(9) };
    assert_eq!(once.starting_at(ms(9)), Err(late));
}

#[test]
fn traces_that_no_line_can_have_are_refused() {
    let error = |steps, period| Steps::new(steps, period).expect_err("wrong");
    assert_eq!(error(vec![], None), TraceError::Empty);
    assert_eq!(error(vec![step(1, 1, 0)], None), TraceError::LateStart(ms(1)));
    assert_eq!(error(vec![step(0, 1, 0), step(0, 1, 0)], None), TraceError::Order { entry: 2, at: Duration::ZERO });
    assert_eq!(
        error(vec![step(0, 1, 0), step(5, 1, 0)], Some(ms(5))),
        TraceError::BehindEnd { entry: 2, at: ms(5), period: ms(5) }
    );
    assert_eq!(error(vec![step(0, 1, 0), step(5, 0, 0)], None), TraceError::NeverSendsAgain(ms(5)));
    assert_eq!(error(vec![step(0, 0, 0), step(5, 0, 0)], None), TraceError::NeverSends);
    assert_eq!(error(vec![step(0, 0, 0)], Some(ms(5))), TraceError::NeverSends);
}

/// 1 Mbit/s for a fifth of the time and 6 Mbit/s for the rest are 5 Mbit/s.
#[test]
fn the_mean_rate_weighs_by_time() {
    let steps = Steps::new(vec![step(0, 1_000, 0), step(10, 6_000, 0)], Some(ms(50))).expect("in order");
    let steps = Trace::Steps(Arc::new(steps));
    assert_eq!(steps.mean_rate(ms(100)), Some(BitRate::from_kbit_per_s(5_000)));
    assert_eq!(steps.mean_rate(ms(60)), BitRate::from_bps(260_000_000 / 60));
    let opportunities = Opportunities::new(vec![ms(1), ms(2)], ms(2), ByteCount::new(1_250)).expect("in order");
    let opportunities = Trace::Opportunities(Arc::new(opportunities));
    assert_eq!(opportunities.mean_rate(ms(20)), Some(BitRate::from_kbit_per_s(10_000)));
    // Four blocks in 5 ms, two of them at once at the bounds of each period: 9.6256 Mbit/s. In 7.5 ms are six.
    let bounds = Opportunities::new([0, 1, 3, 5].map(ms).into(), ms(5), Opportunities::MAHIMAHI_BYTES).unwrap();
    let bounds = Trace::Opportunities(Arc::new(bounds));
    let mean = |us| bounds.mean_rate(Duration::from_us(us)).unwrap().as_bps();
    assert_eq!([5_000, 50_000, 7_500].map(mean), [9_625_600, 9_625_600, 9_625_600]);
}

proptest! {
    /// Steps of one rate are a constant rate, to the picosecond.
    #[test]
    fn equal_steps_are_a_constant_rate(
        kbit in 1_u64..100_000,
        steps in 1_u64..5,
        period in 5_u64..40,
        packets in proptest::collection::vec((0_u64..20_000, 28_u16..1_500), 1..40),
    ) {
        let mut at = 0;
        let packets: Vec<(u64, u16)> = packets.into_iter().map(|(gap, len)| { at += gap; (at, len) }).collect();
        let mut constant = line(&config(kbit, "ip"), 100);
        let list = (0..steps).map(|number| step(number, kbit, 5)).collect();
        let mut stepping = stepping(list, Some(ms(period)));
        let mut logs = [Log::default(), Log::default()];
        for (line, log) in [&mut constant, &mut stepping].into_iter().zip(&mut logs) {
            for (at, len) in &packets {
                line.transmit(at_us(*at), log);
                line.enqueue(at_us(*at), packet(0, *len), log);
            }
            while let Some(due) = line.next_transmission() {
                line.transmit(due, log);
            }
        }
        prop_assert_eq!(&logs[0].transmitted, &logs[1].transmitted);
    }

    /// A trace from a start on sends each packet when the whole trace would send it, less the start.
    #[test]
    fn a_start_moves_the_trace_and_nothing_else(
        start in 0_u64..200,
        steps in proptest::collection::vec((0_u64..5_000, 0_u64..20), 1..6),
        blocks in proptest::collection::vec(0_u64..40, 1..20),
        packets in proptest::collection::vec((0_u64..20_000, 28_u16..1_500), 1..40),
    ) {
        let mut list: Vec<Step> = (0..).zip(&steps).map(|(at, (kbit, delay))| step(at * 7, *kbit, *delay)).collect();
        list[0] = step(0, 1_000, 3);
        let mut blocks = blocks;
        blocks.sort_unstable();
        let at = blocks.into_iter().map(ms).collect();
        let blocks = Opportunities::new(at, ms(40), Opportunities::MAHIMAHI_BYTES).expect("in order");
        let steps = Steps::new(list, Some(ms(7 * steps.len() as u64))).expect("in order");
        for trace in [Trace::Steps(Arc::new(steps)), Trace::Opportunities(Arc::new(blocks))] {
            let sent = |trace: &Trace, later: u64| {
                let mut line = line(&Config { trace: Some(trace.clone()), ..config(1, "ip") }, 100);
                let mut at = later;
                let packets: Vec<(u64, u16)> = packets.iter().map(|(gap, len)| { at += gap; (at, *len) }).collect();
                let ends = run(&mut line, &packets).into_iter().map(|(start, end)| (start - later, end - later));
                ends.collect::<Vec<_>>()
            };
            let started = trace.starting_at(ms(start)).expect("it repeats");
            prop_assert_eq!(sent(&started, 0), sent(&trace, start * 1_000));
        }
    }

    /// No line sends more by a point of time than its rates allow.
    #[test]
    fn no_more_is_sent_than_the_rates_allow(
        rates in proptest::collection::vec(0_u64..5_000, 1..6),
        packets in proptest::collection::vec((0_u64..5_000, 28_u16..1_500), 1..40),
    ) {
        let mut rates = rates;
        rates[0] += 1;
        let list: Vec<Step> = (0..).zip(&rates).map(|(number, kbit)| step(number * 7, *kbit, 0)).collect();
        let period = ms(7 * rates.len() as u64);
        let mut line = stepping(list, Some(period));
        let mut at = 0;
        let packets: Vec<(u64, u16)> = packets.into_iter().map(|(gap, len)| { at += gap; (at, len) }).collect();
        let mut bits = 0;
        let ends = run(&mut line, &packets);
        for ((_, len), (_, end)) in packets.iter().zip(ends) {
            bits += u128::from(*len) * 8;
            // Bits times 10^9: microseconds times bit/s are 10^-6 bits, and the rates are in kbit/s.
            let allowed: u128 = (0..=end).map(|us| u128::from(rates[(us / 7_000) as usize % rates.len()])).sum();
            prop_assert!(bits * 1_000 <= allowed, "{bits} bits by {end} us, {allowed} / 1000 allowed");
        }
    }
}

//! Lines that send what was granted. The wire sends a byte in a microsecond, and a slot has 1 ms,
//! unless a test says otherwise.

use core::num::NonZeroU64;

use super::*;
use crate::Tbf;
use crate::line::grants::{
    Asks, Bucket, Config as Grants, Contention, Counts, GrantsError, Outstanding, Proactive, Requests, Slots, Span,
};
use crate::line::trace::{Step, Steps};
use crate::meter::tbf;

mod changing_rates;
mod properties;

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn slots(usable: &[(u64, u64)], length: u64) -> Slots {
    let spans = usable.iter().map(|(start, end)| Span { start: us(*start), end: us(*end) });
    Slots::new(us(length), spans.collect()).expect("slots")
}

fn byte_rate() -> BitRate {
    BitRate::from_mbit_per_s(8)
}

/// One request at a time, each for the backlog, in each slot; the grant comes 3 ms later at the
/// earliest.
fn requests() -> Requests {
    Requests {
        every: us(1_000),
        contention: None,
        piggyback: false,
        response: us(3_000),
        asks: Asks::Backlog { most: None, first: None },
        outstanding: Outstanding::One,
    }
}

fn asking(requests: Requests) -> Grants {
    Grants { requests: Some(requests), ..Grants::new(byte_rate(), slots(&[(0, 1_000)], 1_000)) }
}

fn granted(grants: Grants) -> Line<Meta> {
    assert_eq!(grants.check(), Ok(()));
    line(&Config { grants: Some(Box::new(grants)), ..config(1, "ip") }, 1_000)
}

/// Sends packets of these lengths at these times (us), wakes up on time, and returns number, start
/// and end of each transmission, in us; the end is that of an uninterrupted one.
fn run(line: &mut Line<Meta>, packets: &[(u64, u16)]) -> Vec<(u32, u64, u64)> {
    let mut log = Log::default();
    for (number, (at, len)) in (0..).zip(packets) {
        while let Some(due) = line.next_transmission().filter(|due| *due < at_us(*at)) {
            line.transmit(due, &mut log);
        }
        line.enqueue(at_us(*at), packet(number, *len), &mut log);
    }
    for _ in 0..100_000 {
        let Some(due) = line.next_transmission() else { break };
        line.transmit(due, &mut log);
    }
    assert_eq!(line.next_transmission(), None, "work is granted in the end");
    let us = |at: Instant| at.as_ps() / 1_000_000;
    log.transmitted.iter().map(|(number, start, end)| (*number, us(*start), us(*end))).collect()
}

/// Arrivals at the far end in us; the wire takes 5 ms.
fn arrivals(line: &mut Line<Meta>) -> Vec<u64> {
    let mut arrived = Vec::new();
    while let Some(at) = line.next_arrival() {
        line.take_arrival(at, &mut Log::default()).expect("it is there");
        arrived.push(at.as_ps() / 1_000_000);
    }
    arrived
}

/// DDDSU of 0.5 ms, with an uplink in U alone: the opportunity at 1 ms is in D and moves to U at 2 ms. 3 ms later is
/// after the U of 4.5 ms, so that the grant is the U of 7 ms.
#[test]
fn a_request_leaves_in_an_uplink_slot() {
    let dddsu = slots(&[(0, 0), (0, 0), (0, 0), (0, 0), (0, 500)], 500);
    let mut line = granted(Grants { requests: Some(requests()), ..Grants::new(byte_rate(), dddsu) });
    let mut log = Log::default();
    line.enqueue(at_us(300), packet(0, 400), &mut log);
    assert_eq!(line.next_transmission(), Some(at_us(2_000)));
    while let Some(due) = line.next_transmission() {
        line.transmit(due, &mut log);
    }
    assert_eq!((log.granted, log.transmitted[0].1), (vec![us(5_000)], at_us(7_000)));
}

/// A packet at 0.3 ms asks at 1 ms; the grant begins 3 ms later.
#[test]
fn a_packet_waits_for_an_opportunity_and_its_grant() {
    let mut line = granted(asking(requests()));
    assert_eq!(run(&mut line, &[(300, 500)]), [(0, 4_000, 4_500)]);
    assert_eq!(arrivals(&mut line), [9_500]);
}

/// The packet of 1500 bytes is asked for at 7 ms, and has grants from 10 and 11 ms on. The one of 500 is asked for with
/// the second, and granted 3 ms later.
#[test]
fn grants_are_counted_and_requests_wait_for_their_first() {
    let mut line = granted(asking(Requests { every: us(7_000), piggyback: true, ..requests() }));
    let mut log = Log::default();
    line.enqueue(at_us(300), packet(0, 1_500), &mut log);
    line.transmit(at_us(8_000), &mut log);
    line.enqueue(at_us(8_000), packet(1, 500), &mut log);
    while let Some(due) = line.next_transmission() {
        line.transmit(due, &mut log);
    }
    assert_eq!(log.granted, [us(3_000), us(3_000)]);
    let expected = Counts { requests: 2, piggybacked: 1, grants: 3, granted: 2_000, ..Counts::default() };
    assert_eq!(line.grants(), Some(&expected));
}

/// A response of 3.2 ms after 1 ms ends within the slot from 4 ms; the grant is the next slot.
#[test]
fn a_grant_begins_with_a_slot() {
    let mut line = granted(asking(Requests { response: us(3_200), ..requests() }));
    assert_eq!(run(&mut line, &[(300, 500)]), [(0, 5_000, 5_500)]);
}

/// CED, December 2006: bursts a second are 1 / request-grant time, that is MAP interval plus MAP-ahead. With 1 + 4
/// ms a modem without concatenation sends every 5 ms.
#[test]
fn without_concatenation_a_request_grant_time_passes_between_packets() {
    let one = Requests { asks: Asks::Packet, response: us(4_000), ..requests() };
    let mut line = granted(asking(one));
    let sent = run(&mut line, &[(0, 40), (0, 40), (0, 40), (0, 40)]);
    assert_eq!(sent, [(0, 4_000, 4_040), (1, 9_000, 9_040), (2, 14_000, 14_040), (3, 19_000, 19_040)]);
    assert_eq!(line.grants().unwrap().requests, 4);
}

#[test]
fn with_concatenation_the_backlog_leaves_in_one_burst() {
    let mut line = granted(asking(Requests { response: us(4_000), ..requests() }));
    let sent = run(&mut line, &[(0, 40), (0, 40), (0, 40), (0, 40)]);
    // The first packet asks alone: at 0 ms the others have not arrived.
    assert_eq!(sent, [(0, 4_000, 4_040), (1, 9_000, 9_040), (2, 9_040, 9_080), (3, 9_080, 9_120)]);
}

/// The second packet arrives while the first waits for its grant, at 4 ms, and is asked for with the first.
#[test]
fn a_piggybacked_request_needs_no_opportunity() {
    let mut line = granted(asking(Requests { piggyback: true, response: us(2_500), ..requests() }));
    // Opportunity 1 ms, grant from 3.5 ms on: 4 ms. Asked again at 4 ms: 6.5 ms, so 7 ms.
    assert_eq!(run(&mut line, &[(300, 500), (1_100, 500)]), [(0, 4_000, 4_500), (1, 7_000, 7_500)]);
    let mut line = granted(asking(Requests { response: us(2_500), ..requests() }));
    // Without: the first opportunity after the grant is at 5 ms; 7.5 ms, so 8 ms.
    assert_eq!(run(&mut line, &[(300, 500), (1_100, 500)]), [(0, 4_000, 4_500), (1, 8_000, 8_500)]);
}

/// The second packet is asked for at 2 ms, although the first has not been granted.
#[test]
fn many_requests_may_be_outstanding() {
    let mut line = granted(asking(Requests { outstanding: Outstanding::Many, ..requests() }));
    assert_eq!(run(&mut line, &[(300, 500), (1_100, 500)]), [(0, 4_000, 4_500), (1, 5_000, 5_500)]);
}

/// A request asks for at most 600 bytes: 500 of the first packet and 100 of the second, whose other 400 bytes are
/// asked for at 5 ms.
#[test]
fn a_request_has_a_largest_size() {
    let most = Asks::Backlog { most: Some(WireBytes::new(600)), first: None };
    let mut line = granted(asking(Requests { asks: most, ..requests() }));
    // At 0.3 ms two packets wait; both ask at 1 ms.
    assert_eq!(run(&mut line, &[(300, 500), (300, 500)]), [(0, 4_000, 4_500), (1, 4_500, 5_000)]);
    assert_eq!(arrivals(&mut line), [9_500, 13_400]);
}

/// A scheduling request obtains 100 bytes at 4 ms; the report with them asks for the other 400, from 7 ms on.
#[test]
fn a_scheduling_request_obtains_a_small_grant() {
    let first = Asks::Backlog { most: None, first: Some(WireBytes::new(100)) };
    let mut line = granted(asking(Requests { asks: first, piggyback: true, ..requests() }));
    assert_eq!(run(&mut line, &[(300, 500)]), [(0, 4_000, 4_500)]);
    assert_eq!(arrivals(&mut line), [12_400]);
}

/// Ten packets of 1500 bytes in slots of 2500: the grant of the whole burst extends over slots, and nothing is unused.
#[test]
fn without_fragmentation_a_grant_holds_the_whole_burst() {
    let whole = Grants { fragmentation: false, ..asking(requests()) };
    let mut line = granted(Grants { slots: slots(&[(0, 2_500)], 2_500), ..whole });
    let sent = run(&mut line, &[(300, 1_500); 10]);
    // Asked at 1 ms, and granted with the first slot from 4 ms on.
    let expected: Vec<_> = (0..10).map(|packet| (packet, 5_000 + 1_500 * u64::from(packet))).collect();
    assert_eq!(sent.iter().map(|(packet, start, _)| (*packet, *start)).collect::<Vec<_>>(), expected);
    let counts = *line.grants().unwrap();
    assert_eq!((counts.requests, counts.granted, counts.unused), (1, 15_000, 0));
}

/// Starts in us of packets of 1500, 1500, 1000 and 1000 bytes, requests, and unused bytes.
fn whole_packets(grants: Grants) -> (Vec<u64>, u64, u64) {
    let mut line = granted(Grants { fragmentation: false, ..grants });
    let sent = run(&mut line, &[(300, 1_500), (300, 1_500), (300, 1_000), (300, 1_000)]);
    let counts = *line.grants().unwrap();
    (sent.iter().map(|(_, start, _)| *start).collect(), counts.requests, counts.unused)
}

/// At most 3200 bytes: two of four packets of 1250 bytes in the mean, so 2500 bytes. Of 5 to 7.5 ms the first packet
/// uses 1500, and the second does not fit. Asked for at 7 ms, it goes from 10 ms on with one of the others, whose mean
/// is 1000, and the last one, asked for after these, from 17.5 ms on.
#[test]
fn without_fragmentation_a_request_is_for_whole_packets() {
    let most = Asks::Backlog { most: Some(WireBytes::new(3_200)), first: None };
    let grants = Grants { slots: slots(&[(0, 2_500)], 2_500), ..asking(Requests { asks: most, ..requests() }) };
    assert_eq!(whole_packets(grants), (vec![5_000, 10_000, 11_500, 17_500], 3, 1_000));
}

/// The first 2 of each 2.5 ms are usable: one packet a request. The rest of a slot is not granted.
#[test]
fn without_fragmentation_a_grant_ends_at_a_gap() {
    let grants = Grants { slots: slots(&[(0, 2_000)], 2_500), ..asking(requests()) };
    let mut line = granted(Grants { fragmentation: false, ..grants.clone() });
    let sent = run(&mut line, &[(300, 1_500); 3]);
    // Asked at 1, 6 and 11 ms.
    assert_eq!(sent.iter().map(|(_, start, _)| *start).collect::<Vec<_>>(), [5_000, 10_000, 15_000]);
    assert_eq!(line.grants().unwrap().unused, 0);
    // 1750 bytes of three halves of a slot, the last of one pattern and the first two of the next.
    let joined = Grants { slots: slots(&[(0, 500), (0, 500), (250, 500)], 500), ..grants };
    assert_eq!(Grants { fragmentation: false, ..joined }.whole_burst(), Some(1_250));
}

#[test]
fn without_fragmentation_a_packet_above_every_grant_is_cut() {
    let mut line = granted(Grants { fragmentation: false, ..asking(requests()) });
    assert_eq!(run(&mut line, &[(300, 1_500)]), [(0, 4_000, 5_500)]);
    assert_eq!(arrivals(&mut line), [10_500]);
}

/// Of each slot of 1 ms this station may use the first 250 us: 1000 bytes take four slots.
#[test]
fn a_share_of_the_cycle_bounds_each_grant() {
    let slots = slots(&[(0, 250)], 1_000);
    let mut line = granted(Grants { slots, ..asking(requests()) });
    assert_eq!(run(&mut line, &[(300, 1_000)]), [(0, 4_000, 5_000)]);
    assert_eq!(arrivals(&mut line), [12_250]);
}

/// 100 bytes are 2 minislots of 64; the other 28 bytes pass, or carry what has come meanwhile.
#[test]
fn grants_are_whole_minislots() {
    let unit = NonZeroU64::new(64).unwrap();
    let mut line = granted(Grants { unit, ..asking(requests()) });
    assert_eq!(run(&mut line, &[(300, 100), (2_000, 28)]), [(0, 4_000, 4_100), (1, 4_100, 4_128)]);
}

/// DDDSU with slots of 0.5 ms: the uplink has the end of S from 1.92 ms on, and U from 2 to 2.5 ms.
#[test]
fn an_uplink_waits_for_its_slots() {
    let slots = slots(&[(0, 0), (0, 0), (0, 0), (420, 500), (0, 500)], 500);
    let mut line = granted(Grants::new(byte_rate(), slots));
    let sent = run(&mut line, &[(100, 60), (100, 500), (2_600, 100)]);
    assert_eq!(sent, [(0, 1_920, 1_980), (1, 1_980, 2_480), (2, 4_420, 4_520)]);
    assert_eq!(arrivals(&mut line), [6_980, 7_480, 9_520]);
}

/// 200 bytes every 2 ms: a packet of 500 bytes ends 100 us into the third grant. One at 6.15 ms finds 50 us left.
#[test]
fn proactive_grants_need_no_request() {
    let proactive = Some(Proactive { every: us(2_000), bytes: WireBytes::new(200) });
    let free = Grants::new(byte_rate(), slots(&[(0, 1_000)], 1_000));
    let mut line = granted(Grants { proactive, ..free });
    assert_eq!(run(&mut line, &[(0, 500), (6_150, 60)]), [(0, 0, 500), (1, 6_150, 6_210)]);
    assert_eq!(arrivals(&mut line), [9_100, 13_010]);
}

/// The packet leaves with a proactive grant at 2 ms, before its own grant at 4 ms. That grant passes: a packet at
/// 4.6 ms cannot use it.
#[test]
fn a_grant_that_is_not_used_passes() {
    let proactive = Some(Proactive { every: us(2_000), bytes: WireBytes::new(500) });
    let mut line = granted(Grants { proactive, ..asking(requests()) });
    assert_eq!(run(&mut line, &[(600, 500), (4_600, 500)]), [(0, 2_000, 2_500), (1, 6_000, 6_500)]);
    assert_eq!(line.grants().unwrap().unused, 500);
}

/// A bucket of 2000 bytes that earns 100 bytes in a millisecond, and slots of 1000 bytes. A request asks for at most
/// 1900 bytes, so for one packet, a slot after the grant before. After the second packet 400 bytes are left at 8 ms.
/// There are 1000 for the third after 14 ms, and for the last one after 24 ms. Each begins in the slot after that.
#[test]
fn grants_conform_to_the_sustained_rate() {
    let limits = vec![Bucket { rate: BitRate::from_kbit_per_s(800), burst: WireBytes::new(2_000) }];
    let mut line = granted(Grants { limits, fragmentation: false, ..asking(requests()) });
    let sent = run(&mut line, &[(300, 1_000), (300, 1_000), (300, 1_000), (300, 1_000)]);
    let starts: Vec<u64> = sent.iter().map(|(_, start, _)| *start).collect();
    assert_eq!(starts, [4_000, 8_000, 15_000, 25_000]);
}

/// A request for one packet, and slots of 5 ms: of 3000 bytes, the bucket lets 2000 go at 5 ms. There are tokens for a
/// packet of 1600 bytes at 21 ms, and the rest goes in the slot at 25 ms.
#[test]
fn a_packet_larger_than_the_bucket_goes_on_with_the_next_tokens() {
    let limits = vec![Bucket { rate: BitRate::from_kbit_per_s(800), burst: WireBytes::new(2_000) }];
    let one = asking(Requests { asks: Asks::Packet, ..requests() });
    let mut line = granted(Grants { limits, slots: slots(&[(0, 5_000)], 5_000), ..one });
    run(&mut line, &[(300, 3_000)]);
    assert_eq!(arrivals(&mut line), [31_000]);
}

/// 100 bytes every 2 ms, and a bucket of 1600 bytes that earns 100 bytes in a millisecond. Both packets ask for 3000
/// bytes at 1 ms. The grant at 2 ms carries 100 of them before the head end has the request, and it grants a slot of
/// 1000 at 4 ms. The grants from 6 to 18 ms carry 700, so that 1300 are owed when there are tokens for them, in the
/// slot at 19 ms: 1000 there, and 300 after it, of which 200 are left to send.
#[test]
fn what_proactive_grants_carry_is_not_granted_again() {
    let proactive = Some(Proactive { every: us(2_000), bytes: WireBytes::new(100) });
    let limits = vec![Bucket { rate: BitRate::from_kbit_per_s(800), burst: WireBytes::new(1_600) }];
    let mut line = granted(Grants { proactive, limits, ..asking(requests()) });
    let sent = run(&mut line, &[(300, 1_500), (300, 1_500)]);
    assert_eq!(sent.iter().map(|(_, start, _)| *start).collect::<Vec<_>>(), [2_000, 14_000]);
    assert_eq!(arrivals(&mut line), [17_100, 25_200]);
    let counts = *line.grants().unwrap();
    assert_eq!((counts.requests, counts.granted, counts.unasked), (1, 2_300, 800));
}

/// 100 bytes in each slot carry a packet of 100 bytes. Of 150 bytes, 50 are asked for at 1 ms, and leave at 2 ms.
#[test]
fn what_a_proactive_grant_in_use_carries_is_not_asked_for() {
    let proactive = Some(Proactive { every: us(1_000), bytes: WireBytes::new(100) });
    let sent = |bytes: u16| {
        let mut line = granted(Grants { proactive, ..asking(requests()) });
        run(&mut line, &[(300, bytes)]);
        let counts = *line.grants().unwrap();
        (arrivals(&mut line), counts.requests, counts.unasked)
    };
    assert_eq!(sent(100), (vec![6_100], 0, 100));
    assert_eq!(sent(150), (vec![7_050], 1, 150));
}

/// 200 bytes in each slot, and from 4 ms on 300 that were asked for at 1 ms and each ms after. Apart they are 500 in a
/// slot: of 3000 bytes 600 leave before 4 ms, 2000 until 8 ms, and 200 of each kind after it. In one grant they are
/// 300.
#[test]
fn requested_grants_are_beside_proactive_ones_or_take_their_time() {
    let proactive = Some(Proactive { every: us(1_000), bytes: WireBytes::new(200) });
    let asks = Asks::Backlog { most: Some(WireBytes::new(300)), first: None };
    let many = Requests { outstanding: Outstanding::Many, asks, ..requests() };
    let sent = |apart, slots: Slots| {
        let mut line = granted(Grants { proactive, apart, slots, ..asking(many.clone()) });
        run(&mut line, &[(300, 3_000)]);
        (arrivals(&mut line)[0], line.grants().unwrap().unasked)
    };
    let whole = || slots(&[(0, 1_000)], 1_000);
    assert_eq!((sent(true, whole()), sent(false, whole())), ((13_400, 1_600), (16_300, 600)));
    // A request for 2800 bytes has 800 in each slot from 4 ms on, whatever proactive grants carry, and the last 400 at
    // 7.2 ms: of a packet at 6.99 ms, 10 bytes leave in the slot at 6 ms, 200 at 7 ms, and 390 then.
    let backlog = Requests { outstanding: Outstanding::Many, ..requests() };
    let mut line = granted(Grants { proactive, apart: true, ..asking(backlog) });
    run(&mut line, &[(300, 3_000), (6_990, 600)]);
    assert_eq!(arrivals(&mut line), [11_400, 12_590]);
    // Proactive grants that fill the slots leave no room beside them.
    let full = || slots(&[(0, 200)], 1_000);
    assert_eq!(sent(true, full()), sent(false, full()));
}

/// 2 Mbit/s of a service flow and 50 bytes in each slot: 250 bytes a millisecond in all, which a full line reaches. The
/// last packet ends when the bucket, of a packet and what comes in a slot, has earned the rest.
#[test]
fn a_full_line_reaches_the_sustained_rate_with_proactive_grants() {
    let proactive = Some(Proactive { every: us(1_000), bytes: WireBytes::new(50) });
    let limits = vec![Bucket { rate: BitRate::from_mbit_per_s(2), burst: WireBytes::new(1_850) }];
    let many = Requests { outstanding: Outstanding::Many, piggyback: true, ..requests() };
    let grants = Grants { proactive, limits, ..asking(many) };
    assert_eq!(grants.mean_rate(), Some(BitRate::from_mbit_per_s(2)));
    let mut line = granted(grants);
    let packets = [(0, 1_000); 500];
    run(&mut line, &packets);
    let end = *arrivals(&mut line).last().unwrap() - 5_000;
    let bytes = 1_000 * packets.len() as u64;
    // The last requested grant waits for the tokens of a packet.
    let least = (bytes - 1_850 - 50) * 4;
    assert!((least..least + 8_000).contains(&end), "{end} us, at least {least}");
}

/// 200 bytes every 2 ms are 800 kbit/s, next to requests of 2 Mbit/s, of 500 kbit/s or without any, on a wire of 8
/// Mbit/s.
#[test]
fn the_mean_rate_is_that_of_buckets_or_of_proactive_grants() {
    let proactive = Some(Proactive { every: us(2_000), bytes: WireBytes::new(200) });
    let bucket = |kbit| vec![Bucket { rate: BitRate::from_kbit_per_s(kbit), burst: WireBytes::new(2_000) }];
    let both = Grants { proactive, limits: bucket(2_000), ..asking(requests()) };
    let kbit = |grants: &Grants| grants.mean_rate().map(|rate| rate.as_bps() / 1_000);
    assert_eq!(kbit(&both), Some(2_000));
    // A slot of 1 ms, the bucket and a grant.
    assert_eq!(both.at_most().map(|(_, beyond)| beyond), Some(WireBytes::new(1_000 + 2_000 + 200)));
    assert_eq!(kbit(&Grants { limits: bucket(500), ..both.clone() }), Some(800));
    assert_eq!(kbit(&Grants { proactive: None, limits: bucket(500), ..both.clone() }), Some(500));
    assert_eq!(kbit(&Grants { requests: None, ..both.clone() }), Some(800));
    assert_eq!(kbit(&Grants { requests: None, proactive: None, ..both.clone() }), Some(8_000));
    assert_eq!(kbit(&Grants { limits: Vec::new(), ..both }), Some(8_000));
}

/// Lines of one configuration collide at other times, as their streams have it.
#[test]
fn collisions_are_those_of_the_stream_of_the_line() {
    let starts = |stream: Stream| {
        let contention = Some(Contention { first: 1, last: 4, collisions: Ratio::from_percent(50).unwrap() });
        let grants = asking(Requests { contention, ..requests() });
        let config = Config { grants: Some(Box::new(grants)), ..config(1, "ip") };
        let fifo = Fifo::in_packets(PacketCount::new(100), Overflow::Tail);
        let packets: Vec<(u64, u16)> = (0..20).map(|number| (number * 50_000, 100)).collect();
        let sent = run(&mut Line::new(&config, Box::new(fifo), stream), &packets);
        sent.into_iter().map(|(_, start, _)| start).collect::<Vec<_>>()
    };
    let first = starts(Stream::new(1, "loss on link up"));
    assert_eq!(first, starts(Stream::new(1, "loss on link up")));
    assert_ne!(first, starts(Stream::new(2, "loss on link up")));
    assert_ne!(first, starts(Stream::new(1, "loss on link up-2")));
}

/// All requests collide half of the time, and are repeated; everything is sent in the end, in order.
#[test]
fn collided_requests_are_repeated_after_a_back_off() {
    let contention = Some(Contention { first: 1, last: 4, collisions: Ratio::from_percent(50).unwrap() });
    let grants = asking(Requests { contention, asks: Asks::Packet, ..requests() });
    let mut line = granted(Grants { seed: 2, ..grants });
    let packets: Vec<(u64, u16)> = (0..200).map(|number| (number * 100, 100)).collect();
    let sent = run(&mut line, &packets);
    assert!(sent.iter().map(|(number, ..)| *number).eq(0..200));
    let counts = line.grants().unwrap();
    assert_eq!(counts.requests - counts.collisions, 200);
    // Mean 200, standard deviation 20.
    assert!((140..=260).contains(&counts.collisions), "{counts:?}");
    let gaps = sent.windows(2).map(|pair| (pair[1].1 - pair[0].1) / 1_000).collect::<Vec<_>>();
    assert!(gaps.iter().any(|gap| *gap > 8) && gaps.contains(&4), "{gaps:?}");
}

/// An ACK filter works until a grant begins: packets that wait for grants are still in the queue.
#[test]
fn packets_wait_in_the_queue() {
    let mut line = granted(asking(requests()));
    let mut log = Log::default();
    for number in 0..5 {
        line.enqueue(at_us(300), packet(number, 100), &mut log);
    }
    assert_eq!(line.queue().backlog().packets, PacketCount::new(5));
    line.transmit(at_us(4_000), &mut log);
    assert_eq!(line.queue().backlog().packets, PacketCount::new(4));
}

/// A packet of 1000 bytes passes the token bucket every 2 ms. Requests ask for what has passed it, and a slot holds one
/// packet. Without a buffer they ask for all, and a slot that finds no tokens passes.
#[test]
fn behind_a_shaper_packets_wait_for_grants_in_a_buffer() {
    let sent = |buffer: Option<u64>| {
        let grants = Grants { buffer: buffer.map(WireBytes::new), ..asking(requests()) };
        let link = LinkLayer::from_name("ip").unwrap();
        let (rate, burst) = (BitRate::from_mbit_per_s(4), WireBytes::new(1_000));
        let bucket = tbf::Config { rate, burst, peak: None, largest: ByteCount::new(1_000), catch_up: Duration::ZERO };
        let fifo = Fifo::in_packets(PacketCount::new(100), Overflow::Tail);
        let shaper = Tbf::new(&bucket, &link, fifo).unwrap();
        let config = Config { grants: Some(Box::new(grants)), ..config(1, "ip") };
        let mut line = Line::new(&config, Box::new(shaper), Stream::new(1, "loss"));
        let starts: Vec<u64> =
            run(&mut line, &[(0, 1_000); 9]).into_iter().map(|(_, start, _)| start / 1_000).collect();
        (starts, line.grants().unwrap().unused)
    };
    // Packet 0 is asked for at 0 ms, those of 2 and 4 ms at 4 ms, and those of 6 and 8 ms at 8 ms, as the last grant
    // begins.
    assert_eq!(sent(Some(5_000)), (vec![3, 7, 8, 11, 12, 15, 16, 19, 20], 0));
    assert_eq!(sent(None), (vec![3, 8, 10, 12, 14, 19, 21, 26, 31], 7_000));
    // Full with one packet, the buffer takes the next as soon as a transmission begins.
    assert_eq!(sent(Some(1)), (vec![3, 7, 11, 15, 19, 23, 27, 31, 35], 0));
}

mod unnumbered;

use super::*;
use crate::Sighting;
use lastmile_packet::{FlowId, IpAddresses, Meta, Options, Parsed, Protocol, SeqNumber, TcpFlags};

/// The interface of a capture of one.
const HERE: Sighting = Sighting { interface: 0, sent: false };

fn packet(back: bool, number: u32) -> Parsed {
    let key = FlowKey { addresses: FlowAddresses::of_simulated(FlowId::new(u32::from(back))), protocol: 6 };
    let payload = if back { 0 } else { 1_000 };
    let seq = SeqNumber::new(number * 1_000);
    let meta = Meta { seq, flags: TcpFlags::ACK, ack: seq, header_len: 40, ip_len: 40 + payload, ..Meta::default() };
    Parsed { meta, key, transport_offset: 20 }
}

/// 20 000 packets each way in 100 s; there 10 ms and a queue of up to 50 ms that empties every second,
/// back 10 ms. The second clock is 3 s ahead and gains 50 ppm. Each 40th packet there is lost, the
/// last after all others.
fn captures(back: bool) -> (Fingerprints, Fingerprints) {
    captures_of(back, 50, 20_000, |sent| sent % 1_000_000_000 / 20)
}

/// So many packets, and a drift in ppm; `queue` has nanoseconds of a time of sending in nanoseconds.
fn captures_of(back: bool, ppm: i64, packets: u32, queue: impl Fn(u64) -> u64) -> (Fingerprints, Fingerprints) {
    let (mut first, mut second) = (Fingerprints::default(), Fingerprints::default());
    let clock = |ns: u64| (3_000_000_000 + ns).strict_add_signed(ns as i64 / 1_000 * ppm / 1_000);
    let epoch = 1_000_000_000_000;
    for number in 0..packets {
        let sent = u64::from(number) * 5_000_000;
        let queue = queue(sent);
        first.packet(epoch + sent, HERE, &packet(false, number), &[]);
        if number % 40 != 39 {
            second.packet(epoch + clock(sent + 10_000_000 + queue), HERE, &packet(false, number), &[]);
        }
        if back {
            second.packet(epoch + clock(sent), HERE, &packet(true, number), &[]);
            first.packet(epoch + sent + 10_000_000, HERE, &packet(true, number), &[]);
        }
    }
    (first, second)
}

#[test]
fn delays_losses_and_clocks_come_out() {
    let (first, second) = captures(true);
    let joined = join(first, second).unwrap();
    let clock = joined.clock.unwrap();
    assert!((clock.ahead_s - 3.0).abs() < 0.001 && (clock.drift - 50e-6).abs() < 2e-6, "{clock:?}");
    assert!((clock.error_s - 0.010).abs() < 0.001, "{clock:?}");
    let ms = |delay: Duration| delay.as_secs_f64() * 1e3;
    let [least, median, .., most] = joined.there.delays.unwrap().map(ms);
    assert!((least - 10.0).abs() < 1.0 && (median - 35.0).abs() < 1.0 && (most - 60.0).abs() < 1.0);
    assert_eq!((joined.there.both, joined.there.lost_between, joined.there.lost_data), (19_500, 499, 499));
    assert_eq!((joined.back.both, joined.back.lost_between, joined.back.missed), (20_000, 0, 0));
    assert_eq!(joined.is_there(FlowAddresses::of_simulated(FlowId::new(0))), Some(true));
    assert_eq!(joined.is_there(FlowAddresses::of_simulated(FlowId::new(1))), Some(false));
    assert_eq!(joined.is_there(FlowAddresses::of_simulated(FlowId::new(2))), None);
    let [least, .., most] = joined.back.delays.unwrap().map(ms);
    assert!((least - 10.0).abs() < 1.0 && (most - 10.0).abs() < 1.0, "{least} {most}");
}

/// The drift in ppm, and the least and the median delay in ms of each direction, in whole tenths.
fn seen((first, second): (Fingerprints, Fingerprints)) -> (f64, [f64; 4]) {
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    let joined = join(first, second).unwrap();
    let delays = [joined.there, joined.back].map(|way| way.delays.unwrap());
    let [there, back] = delays.map(|delays| [delays[0], delays[1]].map(|delay| tenth(delay.as_secs_f64() * 1e3)));
    (tenth(joined.clock.unwrap().drift * 1e6), [there[0], there[1], back[0], back[1]])
}

/// A download fills the queue there in two seconds, which then has 30 to 50 ms as long as it lasts.
fn standing(sent: u64) -> u64 {
    (sent / 50).min(30_000_000 + sent % 7_000_000_000 / 350)
}

#[test]
fn a_standing_queue_is_no_drift_and_hides_none() {
    for ppm in [0, 50, -50, 5] {
        assert_eq!(seen(captures_of(true, ppm, 20_000, standing)), (ppm as f64, [10.0, 49.8, 10.0, 10.0]), "{ppm}");
    }
}

/// A queue that grows by 500 ppm throughout looks like a clock in one direction; the other has none.
#[test]
fn a_growing_queue_is_no_drift() {
    let (first, second) = captures_of(true, 0, 20_000, |sent| sent / 2_000);
    assert_eq!(seen((first.clone(), second.clone())), (0.0, [10.0, 35.0, 10.0, 10.0]));
    assert_eq!(seen((second, first)), (0.0, [10.0, 10.0, 10.0, 35.0]));
    // A second of packets tells no drift of 50 ppm.
    assert!(seen(captures_of(true, 50, 5, |_| 0)).0.abs() < 0.1);
}

/// 900 ppm are 90 ms in 100 s, more than the 20 ms of a round trip, whatever the queue does.
#[test]
fn a_drift_of_more_than_a_round_trip_is_told_beside_any_queue() {
    let (drift, delays) = seen(captures_of(true, 900, 20_000, |sent| sent / 2_000));
    assert!((900.0..=1_000.0).contains(&drift) && delays.iter().all(|delay| *delay < 85.0), "{drift} {delays:?}");
}

/// No clock drifts by 2000 ppm.
#[test]
fn a_drift_that_no_clock_has_is_not_compared() {
    let (first, second) = captures_of(true, 2_000, 20_000, |_| 0);
    let joined = join(first, second).unwrap();
    let Err(NoClock::Drift(drift)) = joined.clock else { panic!("{:?}", joined.clock) };
    assert!((drift - 2e-3).abs() < 2e-5, "{drift}");
    assert_eq!((joined.there.delays, joined.back.delays), (None, None));
    assert_eq!((joined.there.both, joined.back.both), (19_500, 20_000));
}

/// The captures of [`captures_of`] with a clock that is set by so many ms after 40 s.
fn set(by_ms: i64, is_second: bool) -> (Fingerprints, Fingerprints) {
    let (mut first, mut second) = captures_of(true, 50, 20_000, |sent| sent % 1_000_000_000 / 20);
    for capture in [&mut first, &mut second] {
        capture.all.sort_by_key(|one| one.at_ns);
        for (number, one) in capture.all.iter_mut().enumerate() {
            one.number = number as u32;
        }
    }
    let (one, at) = if is_second { (&mut second, 1_043_000_000_000) } else { (&mut first, 1_040_000_000_000) };
    for one in one.all.iter_mut().filter(|one| one.at_ns >= at) {
        one.at_ns += by_ms * 1_000_000;
    }
    (first, second)
}

/// Steps of more than the round trip of 20 ms, of either clock and way, change nothing else: the delays are those of
/// clocks that nobody set.
#[test]
fn a_clock_that_is_set_is_found_and_delays_follow_it() {
    let (first, second) = captures(true);
    let unset = join(first, second).unwrap();
    assert_eq!(unset.steps, []);
    for (by_ms, is_second) in [(300, true), (-300, true), (90, false), (-90, false), (30, true), (-30, false)] {
        let (first, second) = set(by_ms, is_second);
        let joined = join(first, second).unwrap();
        let clock = joined.clock.unwrap();
        assert!((clock.drift - 50e-6).abs() < 2e-6 && (clock.error_s - 0.010).abs() < 0.001, "{clock:?}");
        let [step] = joined.steps[..] else { panic!("{by_ms} {:?}", joined.steps) };
        let by_s = by_ms as f64 / 1e3 * if is_second { 1.0 } else { -1.0 };
        assert!((step.by_s - by_s).abs() < 0.001 && (step.at_s - 40.0).abs() < 0.1, "{by_ms} {step:?}");
        for (own, other) in [(joined.there, unset.there), (joined.back, unset.back)] {
            let close = own.delays.unwrap().into_iter().zip(other.delays.unwrap());
            assert!(
                close.clone().all(|(one, other)| (one.as_secs_f64() - other.as_secs_f64()).abs() < 0.001),
                "{own:?} {other:?}"
            );
        }
    }
}

/// Two packets that were taken for one would have arrived before they were sent. They move no clock.
#[test]
fn a_wrong_pair_is_no_step() {
    let (mut first, second) = captures(true);
    for forward in [true, false] {
        first.all.iter_mut().filter(|one| one.forward == forward).nth(7_000).unwrap().at_ns -= 5_000_000_000;
    }
    let joined = join(first, second).unwrap();
    assert!(joined.steps.is_empty() && joined.clock.unwrap().error_s > 0.009, "{:?}", joined.clock);
}

#[test]
fn captures_in_the_other_order_are_the_same_path() {
    let (first, second) = captures(true);
    let joined = join(second, first).unwrap();
    assert!((joined.clock.unwrap().ahead_s + 3.0).abs() < 0.01);
    assert_eq!((joined.back.both, joined.back.lost_between), (19_500, 499));
}

#[test]
fn with_one_direction_delays_are_relative() {
    let (first, second) = captures(false);
    let joined = join(first, second).unwrap();
    assert_eq!(joined.clock, Err(NoClock::OneDirection));
    let [least, median, ..] = joined.there.delays.unwrap();
    assert!(least.is_zero() && (median.as_secs_f64() - 0.0275).abs() < 0.003, "{median:?}");
}

#[test]
fn captures_without_a_common_packet_are_not_joined() {
    let (mut one, mut other) = (Fingerprints::default(), Fingerprints::default());
    one.packet(0, HERE, &packet(false, 1), &[]);
    other.packet(0, HERE, &packet(false, 2), &[]);
    assert!(join(one, other).is_none());
}

/// A segment from `from` to `to` of a download, with a timestamp.
fn segment(from: u32, to: u32, stamp: u32) -> Parsed {
    let mut packet = packet(false, 0);
    packet.meta.seq = SeqNumber::new(from);
    packet.meta.ip_len = u16::try_from(40 + to.wrapping_sub(from)).unwrap();
    packet.meta.tcp_options = Options::NONE.with_timestamps(stamp, 7);
    packet
}

/// Two captures: packets `at` a time in ms, each a segment from, to, stamp; and an ACK each way of 10 ms at the ends.
fn divided(first: &[(u64, u32, u32, u32)], second: &[(u64, u32, u32, u32)]) -> Joined {
    let mut both = [Fingerprints::default(), Fingerprints::default()];
    for (glimpses, packets) in both.iter_mut().zip([first, second]) {
        for (at_ms, from, to, stamp) in packets {
            glimpses.packet(at_ms * 1_000_000, HERE, &segment(*from, *to, *stamp), &[]);
        }
    }
    for number in [1, 1_000_000] {
        both[1].packet(u64::from(number) * 1_000, HERE, &packet(true, number), &[]);
        both[0].packet(u64::from(number) * 1_000 + 10_000_000, HERE, &packet(true, number), &[]);
    }
    let [first, second] = both;
    join(first, second).unwrap()
}

fn delays_ms(way: &OneWay) -> [u64; 2] {
    let [least, .., most] = way.delays.unwrap().map(|delay| (delay.as_ns() + 500_000) / 1_000_000);
    [least, most]
}

/// 40 kB in two packets at the sender, in segments of 1 kB at the receiver, a millisecond apart, the first after 10 ms.
/// The sequence numbers wrap. The 11th segment is lost, and retransmitted in a packet of its own.
#[test]
fn a_segment_that_a_device_divides_is_at_both_captures() {
    let at = |number: u32| (number * 1_000).wrapping_sub(15_000);
    let sent = [(0, at(0), at(20), 1), (20, at(20), at(40), 2), (90, at(10), at(11), 9)];
    let received = (0..40).filter(|number| *number != 10);
    let mut received: Vec<_> = received
        .map(|number| (10 + u64::from(number), at(number), at(number + 1), if number < 20 { 1 } else { 2 }))
        .collect();
    received.push((100, at(10), at(11), 9));
    let joined = divided(&sent, &received);
    let there = joined.there;
    assert_eq!((there.both, there.both_data, there.split, there.merged), (40, 40, 2, 0));
    assert_eq!((there.lost_between, there.lost_data, there.lost_octets, there.missed), (1, 1, 1_000, 0));
    // The 20th segment follows the first by 19 ms, and the 40th left at 20 ms.
    assert_eq!(delays_ms(&there), [10, 29]);
    assert_eq!((joined.back.both, joined.back.lost_between), (2, 0));
}

/// Two segments that the receiver merges are captured there once the second has arrived.
#[test]
fn a_packet_that_a_receiver_merged_has_the_delay_of_its_last_segment() {
    let sent = [(0, 0, 1_000, 1), (5, 1_000, 2_000, 1), (6, 2_000, 3_000, 1), (50, 3_000, 4_000, 4)];
    let there = divided(&sent, &[(15, 0, 2_000, 1), (16, 2_000, 3_000, 1), (60, 3_000, 4_000, 4)]).there;
    assert_eq!((there.both, there.split, there.merged, there.lost_between), (4, 0, 1, 0));
    assert_eq!(delays_ms(&there), [10, 10]);
}

/// Of 10 kB in one packet 4 kB arrive, in packets of 1 kB; the next 10 kB are lost whole, and the last 1 kB arrives.
#[test]
fn losses_of_a_divided_segment_are_counted_in_packets_of_the_finer_capture() {
    let sent = [(0, 0, 10_000, 1), (1, 10_000, 20_000, 1), (30, 20_000, 21_000, 3)];
    let received = [
        (10, 0, 1_000, 1),
        (11, 1_000, 2_000, 1),
        (12, 5_000, 6_000, 1),
        (13, 9_000, 10_000, 1),
        (40, 20_000, 21_000, 3),
    ];
    let there = divided(&sent, &received).there;
    assert_eq!((there.both, there.lost_between, there.lost_octets, there.split), (5, 16, 16_000, 1));
}

/// Segments that are divided differently at both ends: of 20 and 10 kB, and of 15 and 15 kB.
#[test]
fn packets_that_both_ends_show_differently_are_counted_by_their_common_parts() {
    let sent = [(0, 0, 20_000, 1), (5, 20_000, 30_000, 1), (30, 30_000, 31_000, 3)];
    let there = divided(&sent, &[(10, 0, 15_000, 1), (16, 15_000, 30_000, 1), (40, 30_000, 31_000, 3)]).there;
    assert_eq!((there.both, there.lost_between, there.split, there.merged), (4, 0, 1, 1));
    assert_eq!(delays_ms(&there), [10, 11]);
}

/// Without timestamps the second copy of an octet is the second one at the other capture.
#[test]
fn copies_of_octets_are_paired_in_their_order() {
    let sent = [(0, 0, 2_000, 0), (20, 0, 2_000, 0)];
    let received = [(10, 0, 1_000, 0), (11, 1_000, 2_000, 0), (30, 0, 1_000, 0), (31, 1_000, 2_000, 0)];
    let there = divided(&sent, &received).there;
    assert_eq!((there.both, there.lost_between, there.missed, there.split), (4, 0, 0, 2));
    assert_eq!(delays_ms(&there), [10, 11]);
}

/// Ten seconds in which the fastest packets scatter by nothing tell a drift; two packets do not.
#[test]
fn the_error_of_the_drift_is_known_where_the_packets_tell_it() {
    let error = |(first, second)| join(first, second).unwrap().clock.unwrap().drift_error;
    assert!(error(captures_of(true, 50, 20_000, |_| 0)).is_some_and(|error| error < 1e-6));
    assert_eq!(error(captures_of(true, 50, 2, |_| 0)), None);
}

/// A regulator on the path halves the window of each packet; the second ACK is lost.
#[test]
fn packets_whose_window_the_path_changed_are_at_both_captures() {
    let mut both = [Fingerprints::default(), Fingerprints::default()];
    for (which, glimpses) in both.iter_mut().enumerate() {
        for number in 0..20 {
            let sent = u64::from(number) * 1_000_000;
            let mut data = segment(number * 1_000, number * 1_000 + 1_000, 1);
            let mut ack = packet(true, number);
            (data.meta.window, ack.meta.window) = if which == 0 { (60, 30) } else { (30, 60) };
            glimpses.packet(sent + [0, 10_000_000][which], HERE, &data, &[]);
            if which == 1 || number != 1 {
                glimpses.packet(sent + [10_000_000, 0][which], HERE, &ack, &[]);
            }
        }
    }
    let [first, second] = both;
    let joined = join(first, second).unwrap();
    let counts = |way: &OneWay| (way.both, way.lost_between, way.missed, way.split + way.merged);
    assert_eq!((counts(&joined.there), counts(&joined.back)), ((20, 0, 0, 0), (19, 1, 0, 0)));
}

/// The second capture ends after 3 of the 10 parts of the last packet, and begins with the last 2 of the first.
#[test]
fn a_capture_that_ends_amid_the_parts_of_a_packet_has_lost_none() {
    let sent = [(0, 0, 10_000, 1), (20, 10_000, 20_000, 2), (40, 20_000, 30_000, 3)];
    let received = (8..23).filter(|number| *number != 15);
    let received: Vec<_> = received
        .map(|number| (10 + u64::from(number) * 2, number * 1_000, number * 1_000 + 1_000, number / 10 + 1))
        .collect();
    let there = divided(&sent, &received).there;
    assert_eq!((there.both, there.lost_between, there.lost_octets, there.split), (14, 1, 1_000, 3));
}

/// Packets that a router does not forward pass one of the captures only, amid those of a download. They are no losses.
/// A lost packet of another address, and one of a link-local connection that both captures have, are losses.
#[test]
fn packets_that_stay_on_their_link_are_not_lost_between_the_captures() {
    let between = |source: &str, destination: &str| {
        let ip = IpAddresses::new(source.parse().unwrap(), destination.parse().unwrap()).unwrap();
        let key =
            FlowKey { addresses: FlowAddresses { ip, source_port: 5_353, destination_port: 5_353 }, protocol: 17 };
        let meta = Meta { protocol: Protocol::Udp, header_len: 28, ip_len: 128, ..Meta::default() };
        Parsed { meta, key, transport_offset: 20 }
    };
    let local = [
        ("192.168.0.5", "224.0.0.251"),
        ("192.168.0.5", "255.255.255.255"),
        ("0.0.0.0", "10.0.0.1"),
        ("169.254.1.2", "10.0.0.1"),
        ("10.0.0.1", "169.254.1.2"),
        ("2001:db8::1", "ff02::fb"),
        ("2001:db8::1", "ff01::1"),
        ("fe80::1", "2001:db8::1"),
        ("::", "ff05::2"),
    ];
    let routed = [("192.168.0.5", "224.0.1.1"), ("2001:db8::1", "ff05::2"), ("2001:db8::1", "2001:db8::2")];
    let (mut first, mut second) = captures_of(true, 0, 20, |_| 0);
    for (place, (source, destination)) in local.into_iter().chain(routed).enumerate() {
        first.packet(1_000_000_000_000 + 10_000_000 + place as u64, HERE, &between(source, destination), &[]);
    }
    let lost = |first: &Fingerprints, second: &Fingerprints| {
        let joined = join(first.clone(), second.clone()).unwrap();
        joined.there.lost_data + joined.back.lost_data + joined.there.missed + joined.back.missed
    };
    assert_eq!(lost(&first, &second), 3);
    // The second clock is 3 s ahead.
    let at_ms = |ms: u64| 1_000_000_000_000 + ms * 1_000_000;
    let mut connection = |protocol: Protocol, number: u8| {
        for (number_of_it, ms) in [20, 25, 30].into_iter().enumerate() {
            let mut one = between("fe80::1", "fe80::2");
            (one.meta.protocol, one.key.protocol) = (protocol, number);
            one.meta.seq = SeqNumber::new(number_of_it as u32);
            first.packet(at_ms(ms), HERE, &one, &[]);
            if number_of_it != 1 {
                second.packet(at_ms(ms + 3_010), HERE, &one, &[]);
            }
        }
        lost(&first, &second)
    };
    assert_eq!(connection(Protocol::Udp, 17), 3, "datagrams of two links may be equal");
    assert_eq!(connection(Protocol::Tcp, 6), 4, "both captures have this connection");
}

/// Equal reports of MLD on two links, 5 s apart, are not one packet. They told an offset and a direction.
#[test]
fn equal_packets_of_two_links_are_no_pair() {
    let report = || {
        let ip = IpAddresses::new("::".parse().unwrap(), "ff02::16".parse().unwrap()).unwrap();
        let key = FlowKey { addresses: FlowAddresses { ip, source_port: 0, destination_port: 0 }, protocol: 58 };
        let meta = Meta { protocol: Protocol::Other, header_len: 48, ip_len: 76, ..Meta::default() };
        Parsed { meta, key, transport_offset: 48 }
    };
    let (mut first, mut second) = captures_of(true, 0, 20, |_| 0);
    let of_connection = join(first.clone(), second.clone()).unwrap();
    first.packet(1_000_000_000_000, HERE, &report(), &[]);
    second.packet(1_000_000_000_000 - 2_000_000_000, HERE, &report(), &[]);
    let with_reports = join(first, second).unwrap();
    assert_eq!(with_reports.clock, of_connection.clock);
    assert_eq!((with_reports.there, with_reports.back), (of_connection.there, of_connection.back));
}

/// IGMP of version 2 reports to the group itself with a TTL of 1; routers forward the group's data.
#[test]
fn hop_limits_and_neighbour_discovery_keep_packets_on_their_link() {
    let igmp = |ttl: u8, to: [u8; 4]| {
        let head = [0x45, 0, 0, 28, 0, 1, 0, 0, ttl, 2, 0, 0, 192, 0, 2, 1];
        [&head[..], &to, &[0x16, 0, 0, 0, 239, 1, 1, 1]].concat()
    };
    let icmp = |kind: u8| {
        let head = [0x60, 0, 0, 0, 0, 24, 58, 255];
        let addresses = [[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]; 2].concat();
        [&head[..], &addresses, &[kind, 0, 0, 0], &[0; 20]].concat()
    };
    let group = [239, 1, 1, 1];
    for (ip, ends) in [
        (igmp(1, group), true),
        (igmp(2, group), false),
        (igmp(1, [192, 0, 2, 2]), false),
        (icmp(135), true),
        (icmp(136), true),
        (icmp(128), false),
        (icmp(1), false),
    ] {
        let parsed = lastmile_packet::parse(&ip).unwrap();
        assert_eq!(ends_on_its_link(&parsed, &ip), ends, "{ip:?}");
    }
}

/// A router shows each packet where it arrives, and 5 ms later where it leaves, but each tenth, which its queue drops.
#[test]
fn each_direction_counts_at_the_interface_that_shows_it_first() {
    let [mut host, mut router] = [Fingerprints::default(), Fingerprints::default()];
    for number in 0..1_000 {
        for back in [false, true] {
            let (data, sent) = (packet(back, number), u64::from(number) * 10_000_000);
            host.packet(sent + if back { 16_000_000 } else { 0 }, HERE, &data, &[]);
            let arrival = sent + 10_000_000;
            router.packet(arrival, Sighting { interface: u32::from(back), sent: false }, &data, &[]);
            if number % 10 != 9 {
                router.packet(arrival + 5_000_000, Sighting { interface: u32::from(!back), sent: true }, &data, &[]);
            }
        }
    }
    let joined = join(host, router).unwrap();
    let [there, back] = [joined.there, joined.back].map(|way| (way.both, way.lost_between, way.missed));
    assert_eq!((there, back), ((1_000, 0, 0), (1_000, 0, 0)));
    // 10 ms there and 6 ms back, which the one clock cannot tell from 8 ms and an offset of 2 ms.
    assert!((joined.clock.unwrap().ahead_s - 0.002).abs() < 1e-6);
}

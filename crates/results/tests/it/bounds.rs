//! The fair share of each flow is the closed form on any line, and the bound is no lower.

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_model::{Echo, Network, Node, OpenedBy, Source, Steady, Traffic};
use lastmile_queueing::ack::clamp;
use lastmile_queueing::classify::Match;
use lastmile_queueing::line::grants::{Asks, Config as Grants, Outstanding, Requests, Slots, Span};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_quic::{AckFrequency, Config as QuicConfig, CongestionControl};
use lastmile_results::schema::Flow;
use lastmile_tcp::{AckConfig, Config, WindowScale};
use lastmile_theory::Fraction;
use lastmile_theory::asymmetry::{Download, asymmetry};
use lastmile_theory::grants;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

use crate::network::{bulk, line, sad, tcp, traffic};
use crate::summary;

/// One download of large windows for two seconds.
fn one_download(down_kbit: u64, up_kbit: u64, preset: &str, up_queue: Spec, config: &Config) -> Network {
    let mut network = line(down_kbit, up_kbit, preset, up_queue);
    network.duration = Duration::from_s(2);
    network.record.interval = None;
    network.traffic.push(traffic("download", 1, 0, bulk(config, None, OpenedBy::Receiver)));
    network
}

fn only_flow(network: &Network) -> Flow {
    let flow = summary(network).flows.remove(0);
    // A single flow has the whole line: its bound is its share plus the data in flight at the end.
    let (bound, share) = (flow.limits.bound_bps.expect("a transfer"), flow.limits.fair_share_bps.expect("a transfer"));
    assert!(share <= bound, "{flow:?}");
    flow
}

fn large_windows() -> Config {
    Config { receive_window: ByteCount::new(8 << 20), ..tcp() }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

fn theory(down_kbit: u64, up_kbit: u64, preset: &str, segments_per_ack: u64) -> f64 {
    let link = LinkLayer::from_name(preset).expect("a preset");
    let download = Download {
        down: BitRate::from_kbit_per_s(down_kbit),
        up: BitRate::from_kbit_per_s(up_kbit),
        down_link: link,
        up_link: link,
        data: ByteCount::new(1_500),
        payload: ByteCount::new(1_460),
        ack: ByteCount::new(40),
        segments_per_ack: Fraction::whole(segments_per_ack),
    };
    asymmetry(&download).expect("sizes of a real packet").goodput_bps
}

#[test]
fn a_download_alone_is_bounded_by_one_over_k() {
    for (preset, up_kbit) in [("ip", 64), ("pppoa-llc", 64), ("bridged-vcmux-fcs", 96)] {
        for every in [1, 2] {
            let config = Config { acks: AckConfig { ack_every: every, ..AckConfig::default() }, ..large_windows() };
            let flow = only_flow(&one_download(8_000, up_kbit, preset, Spec::fifo(100), &config));
            let expected = theory(8_000, up_kbit, preset, u64::from(every));
            assert!(close(flow.limits.fair_share_bps.unwrap(), expected), "{preset}: {flow:?}, theory {expected}");
            assert_eq!(flow.limits.fair_share_by.as_deref(), Some("ACKs on link up"));
        }
    }
}

/// An ACK of QUIC has 34 bytes and 28 of UDP and IPv4, a full packet 1418 bytes of payload in 1480. No regulator lifts
/// the bound.
#[test]
fn acks_of_quic_bound_a_download_whatever_the_queue() {
    let link = LinkLayer::from_name("ip").expect("a preset");
    for queue in [Spec::fifo(1000), sad(Spec::fifo(1000))] {
        for every in [2_u32, 10] {
            let mut network = line(20_000, 64, "ip", queue.clone());
            network.duration = Duration::from_s(2);
            network.record.interval = None;
            let ack_frequency = (every != 2).then_some(AckFrequency { every, max_delay: None, reordering: 1 });
            let quic = Arc::new(QuicConfig { ack_frequency, ..QuicConfig::default() });
            let source = Source::Quic { quic, bytes: None, request: 0, opened_by: OpenedBy::Receiver };
            network.traffic.push(traffic("download", 1, 0, source));
            let download = Download {
                down: BitRate::from_kbit_per_s(20_000),
                up: BitRate::from_kbit_per_s(64),
                down_link: link,
                up_link: link,
                data: ByteCount::new(1_480),
                payload: ByteCount::new(1_418),
                ack: ByteCount::new(62),
                segments_per_ack: Fraction::whole(every.into()),
            };
            let expected = asymmetry(&download).expect("sizes of a real packet").goodput_bps;
            let flow = only_flow(&network);
            assert!(close(flow.limits.fair_share_bps.unwrap(), expected), "{every}: {flow:?}, theory {expected}");
            assert_eq!(flow.limits.fair_share_by.as_deref(), Some("ACKs on link up"));
            assert_eq!(flow.setup.tcp.as_deref(), Some("quic-cubic"));
        }
    }
}

/// Half of 32 KiB is 11.6 packets of 1418 bytes: after 12 the limit rises, the 11 that are left do not raise it, but
/// the first of the next round trip does. 44 ms of propagation, 0.592 ms for a packet and 0.248 ms for an ACK.
#[test]
fn a_small_window_of_quic_holds_little_more_than_half() {
    let mut network = line(20_000, 2_000, "ip", Spec::fifo(1_000));
    network.duration = Duration::from_s(10);
    let quic = Arc::new(QuicConfig { receive_window: ByteCount::new(32_768), ..QuicConfig::default() });
    let source = Source::Quic { quic, bytes: None, request: 0, opened_by: OpenedBy::Receiver };
    network.traffic.push(traffic("download", 1, 0, source));
    let flow = only_flow(&network);
    let words = "receive window 32 KiB, raised by halves / round trip ";
    assert!(flow.limits.explanation.starts_with(words), "{}", flow.limits.explanation);
    let expected = 12.0 * 1_418.0 * 8.0 / 0.04484;
    assert!((flow.goodput_bps / expected - 1.0).abs() < 0.01, "{} of {expected}", flow.goodput_bps);
}

/// A queue of 5 packets drops ACKs, so that the others are for more; QUIC has no other ACKs than those.
#[test]
fn dropped_acks_of_quic_leave_more_to_the_others() {
    let mut network = line(20_000, 250, "ip", Spec::fifo(5));
    network.duration = Duration::from_s(20);
    let source =
        Source::Quic { quic: Arc::new(QuicConfig::default()), bytes: None, request: 0, opened_by: OpenedBy::Receiver };
    network.traffic.push(traffic("download", 1, 0, source));
    let flow = only_flow(&network);
    let every = 250_000.0 / 8.0 / 62.0 * 2.0 * 1_418.0 * 8.0;
    let share = flow.limits.fair_share_bps.unwrap();
    assert!(flow.goodput_bps > every && share > every && flow.goodput_bps < share * 1.02, "{share}: {flow:?}");
}

/// 64 kbit/s carry 129 ACKs a second: 5.85 and 14.6 Mbit/s with one for 4 and 10 packets. One for 2 is requested
/// already.
#[test]
fn the_explanation_names_what_fewer_acks_of_quic_allow() {
    let mut network = line(20_000, 64, "ip", sad(Spec::fifo(1000)));
    network.duration = Duration::from_s(10);
    network.record.interval = None;
    let quic = Arc::new(QuicConfig { congestion: CongestionControl::Bbr, ..QuicConfig::default() });
    let source = Source::Quic { quic, bytes: None, request: 0, opened_by: OpenedBy::Receiver };
    network.traffic.push(traffic("download", 1, 0, source));
    let said = only_flow(&network).limits.explanation;
    let remedy = "no middlebox can thin the ACKs of QUIC; one for 4 or 10 packets, which only its sender can request, \
                  allows 5.85 Mbit/s or 14.6 Mbit/s while none is lost";
    assert!(said.starts_with("ACKs fill link up (") && said.contains(remedy), "{said}");
}

/// 10 kbit/s carry 20.2 ACKs a second. A packet each 25 ms or more, the delay of an ACK by default, has an ACK of its
/// own, whatever is requested: 229 kbit/s, and little more with what arrives in bursts. Ten packets of 1418 bytes at
/// 958 kbit/s, which 1 Mbit/s carries, take 118 ms.
#[test]
fn fewer_acks_of_quic_need_a_delay_in_which_their_packets_arrive() {
    let run = |ack_frequency| {
        let mut network = line(1_000, 10, "ip", Spec::fifo(100));
        network.duration = Duration::from_s(60);
        network.record.interval = None;
        let quic = QuicConfig { congestion: CongestionControl::Bbr, ack_frequency, ..QuicConfig::default() };
        let source = Source::Quic { quic: Arc::new(quic), bytes: None, request: 0, opened_by: OpenedBy::Receiver };
        network.traffic.push(traffic("download", 1, 0, source));
        only_flow(&network)
    };
    let ten = |max_delay| run(Some(AckFrequency { every: 10, max_delay, reordering: 1 }));
    let remedy = "one for 2, 4 or 10 packets with `max_delay` of at least 118 ms, which only its sender can request, \
                  allows 457 kbit/s, 915 kbit/s or 958 kbit/s while none is lost";
    for flow in [run(None), ten(None)] {
        assert!(flow.goodput_bps < 300e3 && flow.limits.explanation.contains(remedy), "{flow:?}");
    }
    let flow = ten(Some(Duration::from_ms(119)));
    assert!(flow.goodput_bps > 600e3 && !flow.limits.explanation.contains("max_delay"), "{flow:?}");
}

/// An ACK without delay is of one packet: 129 a second of 1418 bytes, and a request has no effect without a delay.
#[test]
fn acks_of_quic_without_delay_are_of_one_packet() {
    let mut network = line(20_000, 64, "ip", Spec::fifo(1000));
    network.duration = Duration::from_s(10);
    network.record.interval = None;
    let quic = Arc::new(QuicConfig { max_ack_delay: Duration::ZERO, ..QuicConfig::default() });
    let source = Source::Quic { quic, bytes: None, request: 0, opened_by: OpenedBy::Receiver };
    network.traffic.push(traffic("download", 1, 0, source));
    let flow = only_flow(&network);
    let expected = 64_000.0 / (62.0 * 8.0) * 1_418.0 * 8.0;
    assert!(close(flow.limits.fair_share_bps.unwrap(), expected), "{flow:?}");
    let bound = flow.limits.bound_bps.unwrap();
    assert!(flow.goodput_bps <= bound && flow.goodput_bps > 0.9 * expected && bound < 1.2 * expected, "{flow:?}");
    let remedy = "one for 2, 4 or 10 packets with `max_delay` of at least 7.75 ms, which";
    assert!(flow.limits.explanation.contains(remedy), "{flow:?}");
}

/// 200 kbit/s carry 403 ACKs a second: 9.15 Mbit/s with one for 2 packets while none is lost, 18.3 with one for 4.
/// Where more arrives already, with ACKs that are lost, only what is more is offered.
#[test]
fn fewer_acks_of_quic_are_offered_only_where_they_allow_more() {
    let mut network = line(20_000, 200, "ip", Spec::fifo(100));
    network.duration = Duration::from_s(10);
    network.record.interval = None;
    let congestion = CongestionControl::Cubic;
    let quic = Arc::new(QuicConfig { congestion, ..QuicConfig::default() });
    let source = Source::Quic { quic, bytes: None, request: 0, opened_by: OpenedBy::Receiver };
    network.traffic.push(traffic("download", 1, 0, source));
    let flow = only_flow(&network);
    let said = &flow.limits.explanation;
    assert!(flow.goodput_bps > 9.3e6 && flow.goodput_bps < 18e6, "{flow:?}");
    let (_, offered) = said.split_once("one for ").unwrap_or_else(|| panic!("{said}"));
    assert!(
        offered.starts_with("4 or 10 packets, which only its sender can request, allows 18.3 Mbit/s or "),
        "{said}"
    );
}

/// PPPoE over bridged LLC puts 44 bytes around a packet, with the trailer of AAL5: 1460 bytes of payload take 33 cells,
/// 1452 bytes take 32. A transfer without an end sends full segments only. The last segment of one with an end is
/// shorter, and so are those into a window of less than two segments, or of one that is lowered on its way.
#[test]
fn full_segments_bound_a_transfer_without_an_end() {
    let (full, best) = (6e6 * 1_460.0 / (33.0 * 53.0), 6e6 * 1_452.0 / (32.0 * 53.0));
    let download = |bytes, config: &Config, queue: Spec| {
        let mut network = one_download(6_000, 800, "pppoe-llcsnap-fcs", queue, config);
        network.duration = Duration::from_s(60);
        network.traffic[0].source = bulk(config, bytes, OpenedBy::Receiver);
        let run = summary(&network);
        let flow = run.flows.into_iter().next().expect("a flow");
        let span_s = flow.end_s.unwrap_or(60.0);
        let bound = flow.limits.bound_bps.expect("a transfer");
        assert!(flow.goodput_bps <= bound, "{flow:?}");
        (flow.goodput_bps / full, bound - 1_460.0 * 8.0 / span_s)
    };
    let (share, bound) = download(None, &large_windows(), Spec::fifo(100));
    assert!(close(bound, full) && share > 0.95, "{bound} of {full}, {share}");
    let (_, bound) = download(Some(30_000_000), &large_windows(), Spec::fifo(100));
    assert!((bound / best - 1.0).abs() < 1e-3, "{bound} of {best}");
    let (target, mss) = (clamp::Target::Window(ByteCount::new(60_000)), ByteCount::new(1_460));
    let config = clamp::Config { target, mss, exempt: Match::Never };
    let clamped = Spec::WindowClamp(Over { config, queue: Box::new(Spec::fifo(100)) });
    assert!(close(download(None, &large_windows(), clamped).1, best));
}

#[test]
fn where_the_acks_fit_the_line_is_the_bound() {
    let flow = only_flow(&one_download(2_000, 512, "bridged-vcmux-fcs", Spec::fifo(100), &large_windows()));
    assert!(close(flow.limits.fair_share_bps.unwrap(), theory(2_000, 512, "bridged-vcmux-fcs", 2)), "{flow:?}");
    assert_eq!(flow.limits.fair_share_by.as_deref(), Some("rate of link down"));
}

#[test]
fn a_regulator_of_acks_lifts_their_bound() {
    let flow = only_flow(&one_download(8_000, 64, "ip", sad(Spec::fifo(100)), &large_windows()));
    assert_eq!(flow.limits.fair_share_by.as_deref(), Some("rate of link down"));
}

/// The regulator is in a middlebox before the line, whose own queue does not thin.
#[test]
fn a_regulator_before_the_line_lifts_the_bound_of_its_acks() {
    let mut network = one_download(8_000, 64, "ip", Spec::fifo(100), &large_windows());
    network.nodes.push(Node { name: "middlebox".to_owned(), processing: Duration::ZERO });
    let [client, middlebox] = [0, 2];
    let mut behind = network.links[0].clone();
    behind.hop.name = "middlebox-up".to_owned();
    behind.hop.queue = sad(Spec::fifo(100));
    (behind.from, behind.to) = (client, middlebox);
    network.links[0].from = middlebox;
    network.links.push(behind);
    assert_eq!(only_flow(&network).limits.fair_share_by.as_deref(), Some("rate of link down"));
}

/// 50 Mbit/s carry 4166 packets of 1500 bytes a second, 4 within 1 ms: an ACK is for at most 2 and 4 of them where they
/// are gathered for 1 ms, and for 2 and 4 where they are read within 1 ms. 50 kbit/s carry 156 ACKs of 40 bytes a
/// second.
#[test]
fn acks_for_gathered_segments_and_late_readers_bound_less() {
    let plain = AckConfig { delayed_ack: Duration::from_ms(40), quick_acks: true, ..AckConfig::default() };
    let late = AckConfig { read_delay: Duration::from_us(500), ..plain };
    let gathered = AckConfig { gro: Duration::from_ms(1), ..plain };
    let share = |acks: AckConfig| {
        let config = Config { acks, ..large_windows() };
        let mut network = one_download(50_000, 50, "ip", Spec::fifo(10_000), &config);
        network.duration = Duration::from_s(10);
        let flow = only_flow(&network);
        assert!(flow.goodput_bps <= flow.limits.bound_bps.unwrap(), "{flow:?}");
        flow.limits.fair_share_bps.unwrap()
    };
    let acks = |packets: f64| 50_000.0 / 320.0 * packets * 1_460.0 * 8.0;
    assert!(close(share(plain), acks(2.0)) && close(share(late), acks(6.0)) && close(share(gathered), acks(6.0)));
}

/// 64 kbit/s carry 200 ACKs of 40 bytes a second, for 2 · 1460 bytes each: 4.672 Mbit/s. The queue drops ACKs beyond
/// that, so that those left are for more.
#[test]
fn dropped_acks_leave_more_to_the_others() {
    let every = 200.0 * 2.0 * 1_460.0 * 8.0;
    let kept = only_flow(&one_download(8_000, 64, "ip", Spec::fifo(1_000), &large_windows()));
    assert!(close(kept.limits.fair_share_bps.unwrap(), every), "{kept:?}");
    let network = one_download(8_000, 64, "ip", Spec::fifo(5), &large_windows());
    let run = summary(&network);
    let (flow, up) = (&run.flows[0], &run.links[0]);
    let [sent, lost] = [flow.transport.acks_sent.unwrap() as f64, up.queue.drops["tail"] as f64];
    let share = flow.limits.fair_share_bps.unwrap();
    assert!(lost > 10.0 && (share / (every * sent / (sent - lost)) - 1.0).abs() < 0.01, "{share}: {lost} of {sent}");
    assert!(flow.goodput_bps > every && flow.goodput_bps < share * 1.01, "{flow:?}");
}

/// 22 ms each way, 1500 bytes at 8 Mbit/s in 1.5 ms, 40 bytes at 512 kbit/s in 0.625 ms: 46.125 ms.
#[test]
fn a_small_window_over_the_empty_round_trip_holds_a_flow() {
    let config = Config { receive_window: ByteCount::new(16_384), ..tcp() };
    let flow = only_flow(&one_download(8_000, 512, "ip", Spec::fifo(100), &config));
    assert!(close(flow.limits.fair_share_bps.unwrap(), 16_384.0 * 8.0 / 0.046_125), "{flow:?}");
    assert_eq!(flow.limits.fair_share_by.as_deref(), Some("receive window 16 KiB / empty round trip 46.1 ms"));
    assert!(flow.goodput_bps < flow.limits.fair_share_bps.unwrap(), "{flow:?}");
}

/// A window or a send buffer of 1000 bytes is sent in segments of that size. 1040 bytes take 32.5 ms at 256 kbit/s and
/// 40 bytes 1.25 ms, after 44 ms of propagation; a full segment would take 46.875 ms. Writes of 500 bytes are sent in
/// halves of the window, each in 16.875 ms; one byte would take 1.28125 ms.
#[test]
fn segments_below_the_mss_shorten_the_round_trip_of_the_bound() {
    let acks = AckConfig { delayed_ack: Duration::ZERO, ..AckConfig::default() };
    let config = Config { acks, ..large_windows() };
    let [window, buffer] = [
        Config { receive_window: ByteCount::new(1_000), ..config.clone() },
        Config { send_buffer: Some(ByteCount::new(1_000)), ..config },
    ];
    let writes = Source::Writes {
        tcp: Arc::new(window.clone()),
        rate: BitRate::from_mbit_per_s(1),
        size: ByteCount::new(500),
        // After the handshake, during which writes would gather.
        first: Some(Duration::from_ms(100)),
        opened_by: OpenedBy::Sender,
    };
    let per_s = |ms: f64| 8_000.0 / ms * 1e3;
    let [whole, halves, least] = [44.0 + 32.5 + 1.25, 44.0 + 16.875 + 1.25, 44.0 + 1.28125 + 1.25].map(per_s);
    let upload = |config: &Config| bulk(config, None, OpenedBy::Sender);
    for (source, rate, most) in
        [(upload(&window), whole, whole), (upload(&buffer), whole, whole), (writes, halves, least)]
    {
        let mut network = line(256, 256, "ip", Spec::fifo(100));
        network.duration = Duration::from_s(20);
        network.record.interval = None;
        network.traffic.push(traffic("upload", 0, 1, source));
        let flow = only_flow(&network);
        let bound = flow.limits.bound_bps.unwrap();
        assert!(close(bound, most + per_s(20_000.0)), "{bound} of {most}: {flow:?}");
        assert!((0.99 * rate..=bound).contains(&flow.goodput_bps), "{} of {rate}", flow.goodput_bps);
    }
}

/// 12 kB with a shift of 14 is less than a unit, and is advertised as one: 16 KiB.
#[test]
fn a_window_below_a_unit_of_its_scale_is_a_unit() {
    let config = Config {
        window_scale: WindowScale::Shift(14),
        receive_window: ByteCount::new(12_000),
        timestamps: true,
        ..tcp()
    };
    let flow = only_flow(&one_download(20_000, 20_000, "ip", Spec::fifo(100), &config));
    assert_eq!(flow.setup.receive_window_bytes, Some(16_384));
    // A round trip of 44 ms and 0.6 ms for a packet. Eleven segments fit, and the ACK of the last may be delayed.
    let most = 16_384.0 * 8.0 / 0.0446;
    assert!((0.8 * most..most).contains(&flow.goodput_bps), "{} of {most}", flow.goodput_bps);
}

/// RFC 1122, section 4.2.3.2: an ACK for every second full segment, or after the delay, here 40 ms. A smaller window
/// never holds two. A receiver that acknowledges one by one does not wait.
#[test]
fn a_window_under_two_segments_is_told_to_wait_for_the_delayed_ack() {
    let words = |window: u64, ack_every: u8| {
        let acks = AckConfig { ack_every, ..AckConfig::default() };
        let config = Config { acks, receive_window: ByteCount::new(window), ..tcp() };
        let mut network = one_download(8_000, 512, "ip", Spec::fifo(100), &config);
        network.duration = Duration::from_s(20);
        only_flow(&network).limits.explanation
    };
    let one = "receive window 2000 bytes, room for one segment of 1460 bytes / round trip";
    let timer = "; it is under 2 full segments, so that ACKs also wait for the delayed-ACK timer";
    let (delayed, at_once) = (words(2_000, 2), words(2_000, 1));
    assert_eq!(delayed, format!("{one} 86.1 ms, next to none of it in queues{timer}"));
    assert_eq!(at_once, format!("{one} 46.1 ms, next to none of it in queues"));
    assert!(words(2_920, 2).starts_with("receive window 2920 bytes / "), "{}", words(2_920, 2));
    assert!(!words(2_920, 2).contains("timer"), "{}", words(2_920, 2));
}

/// 10 Mbit/s of IP in packets of 1500 bytes carry 9.7333 Mbit/s of payload. A CBR source first
/// takes 1 Mbit/s of IP.
#[test]
fn datagrams_take_their_rate_and_transfers_share_the_rest() {
    let mut network = one_download(10_000, 1_000, "ip", Spec::fifo(100), &large_windows());
    network.traffic[0].count = 3;
    let voice = Source::Constant { interval: Duration::from_ms(4), size: ByteCount::new(500), kind: Steady::Voice };
    network.traffic.push(traffic("voice", 1, 0, voice));
    let flows = summary(&network).flows;
    assert_eq!(
        flows.iter().map(|flow| flow.name.as_str()).collect::<Vec<_>>(),
        ["download-1", "download-2", "download-3", "voice"]
    );
    for flow in &flows[..3] {
        assert!(close(flow.limits.fair_share_bps.unwrap(), 9e6 * 1_460.0 / 1_500.0 / 3.0), "{flow:?}");
        assert_eq!(flow.limits.fair_share_by.as_deref(), Some("rate of link down, shared by 3"));
    }
    assert!(close(flows[3].limits.fair_share_bps.unwrap(), 1e6 * 472.0 / 500.0), "{:?}", flows[3]);
    assert_eq!(flows[3].limits.fair_share_by.as_deref(), Some("its source, which offers 944 kbit/s"));
}

/// The rate that a flow with a small window leaves goes to the other: max-min fairness.
#[test]
fn what_one_flow_cannot_use_the_other_gets() {
    let small = Config { receive_window: ByteCount::new(4_096), ..tcp() };
    let mut network = one_download(8_000, 1_000, "ip", Spec::fifo(100), &large_windows());
    network.traffic.push(traffic("small", 1, 0, bulk(&small, None, OpenedBy::Receiver)));
    let flows = summary(&network).flows;
    let [large, small] = [&flows[0], &flows[1]].map(|flow| flow.limits.fair_share_bps.unwrap());
    assert!(small < 1e6 && close(large + small, 8e6 * 1_460.0 / 1_500.0), "{large} and {small}");
}

#[test]
fn the_fair_share_over_a_life_is_the_mean_of_its_phases() {
    let mut network = one_download(8_000, 1_000, "ip", Spec::fifo(100), &large_windows());
    let second = traffic("second", 1, 0, bulk(&large_windows(), None, OpenedBy::Receiver));
    network.traffic.push(Traffic { start: Instant::ZERO + Duration::from_ms(1_500), ..second });
    let flows = summary(&network).flows;
    let line = 8e6 * 1_460.0 / 1_500.0;
    assert!(close(flows[0].limits.fair_share_bps.unwrap(), line * (0.75 + 0.25 / 2.0)), "{:?}", flows[0]);
    assert!(close(flows[1].limits.fair_share_bps.unwrap(), line / 2.0), "{:?}", flows[1]);
}

/// "DOCSIS sub-throughput optimization" (CED, December 2006): with request-grant times of 5 and 3 ms, MAP interval plus
/// MAP-ahead, and one ACK in a burst, downloads have 2.4 and 4 Mbit/s of packets, and twice as much with delayed ACKs.
#[test]
fn grants_limit_a_download_through_its_acks() {
    let goodput = |ahead_ms: u64, every: u8| {
        let acks = AckConfig { ack_every: every, ..AckConfig::default() };
        let config = Config { acks, receive_window: ByteCount::new(64 << 10), ..tcp() };
        let mut network = one_download(100_000, 10_000, "ip", Spec::fifo(1_000), &config);
        network.duration = Duration::from_s(30);
        let slot = Duration::from_ms(1);
        let slots = Slots::new(slot, vec![Span { start: Duration::ZERO, end: slot }]).expect("a slot");
        let requests = Requests {
            every: slot,
            contention: None,
            piggyback: false,
            response: Duration::from_ms(ahead_ms),
            asks: Asks::Packet,
            outstanding: Outstanding::One,
        };
        let rate = BitRate::from_mbit_per_s(10);
        let grants = Grants { requests: Some(requests), ..Grants::new(rate, slots) };
        network.links[0].hop.line.grants = Some(Box::new(grants));
        let flow = summary(&network).flows.remove(0);
        let bound = grants::download_bps(
            slot + Duration::from_ms(ahead_ms),
            1,
            Fraction::whole(u64::from(every)),
            ByteCount::new(1_460),
        );
        assert!(flow.limits.explanation.contains("where its ACKs wait for grants"), "{}", flow.limits.explanation);
        (flow.goodput_bps, bound.expect("a time").as_f64())
    };
    for (ahead_ms, every) in [(4, 1), (2, 1), (4, 2), (2, 2)] {
        let (goodput, bound) = goodput(ahead_ms, every);
        assert!((0.97 * bound..=1.005 * bound).contains(&goodput), "{ahead_ms} ms, {every}: {goodput}, bound {bound}");
    }
}

/// A window of 8 MiB, most of it in the queue before the link: what waits there has yet to take the link, so a phase
/// carries its rate, and in addition only what was behind the link when it began.
#[test]
fn the_bound_of_a_phase_is_what_the_link_carries_in_it_and_what_was_behind_it() {
    let mut network = one_download(2_000, 512, "ethernet", sad(Spec::fifo(1_000)), &large_windows());
    network.links[1].hop.queue = Spec::fifo(1_000);
    network.duration = Duration::from_s(20);
    let ping = Source::Ping { interval: Duration::from_ms(100), size: ByteCount::new(64), echo: Echo::Icmp };
    network.traffic.push(Traffic { start: Instant::ZERO + Duration::from_s(10), ..traffic("ping", 0, 1, ping) });
    let all = summary(&network);
    let share = all.flows[0].limits.fair_share_bps.expect("a transfer");
    for (phase, behind_s) in all.phases.iter().zip([0.0, 0.022]) {
        let bound = phase.flows[0].bound_bps.expect("a transfer");
        let span_s = phase.to_s - phase.from_s;
        assert!(close(span_s, 10.0), "{phase:?}");
        // Cells need no padding here, so the best size is the full one; and one packet that the span cuts.
        let expected = share * (span_s + behind_s) / span_s + 1_460.0 * 8.0 / span_s;
        assert!((bound - expected).abs() < 1e-6 * expected, "{bound} {expected}: {phase:?}");
        assert!(phase.flows[0].goodput_bps <= bound, "{phase:?}");
    }
}

//! Calls and other datagrams at their receivers.

use lastmile_model::{Codec, IpFields, Listener, Network, OpenedBy, Source, Steady, Traffic};
use lastmile_queueing::Match;
use lastmile_queueing::classify::rules;
use lastmile_queueing::meter::tbf;
use lastmile_queueing::sched::tree::{self, Tree};
use lastmile_queueing::sched::{htb, priority};
use lastmile_queueing::spec::{ClassSpec, Over, Spec};
use lastmile_results::schema::{Flow, Voice};
use lastmile_results::{Run, report, table};
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Ratio, WireBytes};

use crate::network::{bulk, line, modem, tcp, traffic};
use crate::run;

/// G.711 in packets of 20 ms.
fn call(dscp: u8) -> Traffic {
    let source = Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(200), kind: Steady::Voice };
    let listener = Listener { codec: Some(Codec::G711), ..Listener::default() };
    Traffic { ip: IpFields { dscp, ipv6: false }, listener, ..traffic("call", 0, 1, source) }
}

/// A call together with an unlimited upload.
fn beside_upload(up_queue: Spec) -> Network {
    let mut network = line(2_000, 512, "ethernet", up_queue);
    network.duration = Duration::from_s(30);
    network.traffic.push(call(46));
    let large = Config { receive_window: ByteCount::new(4 << 20), ..tcp() };
    network.traffic.push(traffic("upload", 0, 1, bulk(&large, None, OpenedBy::Sender)));
    network
}

fn priority_to_calls() -> Spec {
    let class = |matches, queue| ClassSpec { matches, queue };
    Spec::Priority(priority::Config {
        classes: vec![class(Match::Dscp(46), Spec::fifo(50)), class(Match::Any, modem())],
    })
}

fn flow<'a>(run: &'a Run, name: &str) -> &'a Flow {
    run.summary.flows.iter().find(|flow| flow.name == name).expect("it runs")
}

fn voice(run: &Run) -> &Voice {
    flow(run, "call").datagrams.as_deref().and_then(|datagrams| datagrams.voice.as_ref()).expect("it is voice")
}

/// Nearly all of the 68.8 kbit/s of both are delivered. One of them has a delay of 3 s in the
/// modem.
#[test]
fn a_call_that_nobody_can_follow_is_told_from_one_that_all_can() {
    let (fifo, first) = (run(&beside_upload(modem())), run(&beside_upload(priority_to_calls())));
    for run in [&fifo, &first] {
        assert!(flow(run, "call").goodput_bps > 55e3, "{}", flow(run, "call").goodput_bps);
    }
    let (bad, good) = (voice(&fifo), voice(&first));
    assert!(good.r_factor > 85.0 && good.mos > 4.2, "{good:?}");
    assert!(bad.r_factor < 40.0 && bad.mos < 2.0, "{bad:?}");
    assert_eq!(bad.satisfaction, "not recommended");
    // The play-out follows the queue: packets are late while it grows, and all are seconds old.
    let late = fifo.summary.datagram_classes[0].late_packets;
    assert!((500..800).contains(&late) && bad.mouth_to_ear_s.unwrap() > 2.0, "{late} {bad:?}");
    assert_eq!((good.codec.as_str(), good.ie, good.bpl), ("g711", 0.0, 25.1));
    let verdict = |run: &Run| flow(run, "call").y1541.as_ref().expect("a verdict").classes.clone();
    assert_eq!((verdict(&fifo), verdict(&first)), (vec![5], vec![0, 1, 2, 3, 4, 5, 6, 7]));
}

/// 200 + 18 bytes of Ethernet at 512 kbit/s are 3.40625 ms, and 22 ms of propagation: the exact
/// delay of every packet. From mouth to ear, 20 ms of sound in a packet and a buffer of 60 ms are
/// added.
#[test]
fn a_call_alone_takes_transmission_and_propagation() {
    let mut network = line(2_000, 512, "ethernet", modem());
    network.duration = Duration::from_s(10);
    network.traffic.push(call(0));
    let run = run(&network);
    let alone = flow(&run, "call");
    let (delay, datagrams) = (alone.delay_s.as_deref().unwrap(), alone.datagrams.as_deref().unwrap());
    let wire_s = run.summary.links[0].wire_bits as f64 / run.summary.links[0].packets as f64 / 512e3;
    let expected = wire_s + 0.022;
    for value in [delay.min, delay.mean, delay.p50, delay.p99, delay.max] {
        assert!((value.unwrap() - expected).abs() < 1e-4, "{value:?} for {expected}");
    }
    assert_eq!((datagrams.jitter_mean_s, datagrams.late_packets, datagrams.lost_packets), (Some(0.0), 0, 0));
    let voice = datagrams.voice.as_ref().unwrap();
    assert!((voice.mouth_to_ear_s.unwrap() - expected - 0.08).abs() < 1e-4, "{voice:?}");
    // 0.024 per millisecond (Cole and Rosenbluth 2001), from 93.2.
    assert!((voice.r_factor - (93.2 - 24.0 * voice.mouth_to_ear_s.unwrap())).abs() < 0.5, "{voice:?}");
}

/// A queue of 4 packets at twice its rate drops every second packet, never two in sequence.
#[test]
fn losses_are_counted_by_flow_and_come_in_runs() {
    let mut network = line(2_000, 512, "ethernet", Spec::fifo(4));
    network.duration = Duration::from_s(20);
    let source = Source::Constant { interval: Duration::from_ms(10), size: ByteCount::new(1_262), kind: Steady::Blast };
    let listener = Listener { buffer: Duration::from_s(1), codec: None };
    network.traffic.push(Traffic { listener, ..traffic("blast", 0, 1, source) });
    let run = run(&network);
    let blast = flow(&run, "blast");
    let datagrams = blast.datagrams.as_deref().unwrap();
    assert!(datagrams.voice.is_none());
    let dropped: u64 = run.summary.links[0].queue.drops.values().sum();
    assert_eq!(datagrams.lost_packets, dropped);
    let share = datagrams.unplayed_share.unwrap();
    assert!((share - 0.5).abs() < 0.01, "{share}");
    // Runs of one, where random loss of a half has runs of two.
    assert!((datagrams.burst_ratio.unwrap() - 0.5).abs() < 0.05, "{datagrams:?}");
}

/// A policer of the class drops every packet of the call.
#[test]
fn a_call_that_never_arrives_scores_one() {
    let mut network = line(2_000, 512, "ethernet", modem());
    network.links[0].hop.line.loss = Ratio::ONE;
    network.duration = Duration::from_s(10);
    network.traffic.push(call(0));
    let run = run(&network);
    let voice = voice(&run);
    assert_eq!((voice.mouth_to_ear_s, voice.r_factor, voice.mos), (None, 0.0, 1.0));
    assert_eq!(flow(&run, "call").delay_s.as_deref().and_then(|delay| delay.mean), None, "absent, not zero");
}

/// The window of 64 KiB is in flight for one round trip: the sum of the mean delays of data and
/// ACKs.
#[test]
fn data_and_acks_share_the_round_trip() {
    let mut network = line(2_000, 512, "ethernet", modem());
    network.duration = Duration::from_s(60);
    network.traffic.push(traffic("download", 1, 0, bulk(&tcp(), None, OpenedBy::Receiver)));
    let run = run(&network);
    let download = flow(&run, "download");
    let (data, acks) = (download.delay_s.as_deref().unwrap(), download.ack_delay_s.as_deref().unwrap());
    assert_eq!(data.count, download.transport.data_packets_received);
    assert_eq!(acks.count, download.transport.acks_received.unwrap());
    let round_trip_s = data.mean.unwrap() + acks.mean.unwrap();
    let of_window = 65_536.0 * 8.0 / download.goodput_bps;
    assert!((round_trip_s / of_window - 1.0).abs() < 0.05, "{round_trip_s} for {of_window}");
}

#[test]
fn calls_are_in_the_table_on_the_page_and_in_the_series() {
    let run = run(&beside_upload(modem()));
    let text = table::run(&run.summary, 160);
    assert!(text.contains("Datagrams: one-way delay") && text.contains("g711, not recommended"), "{text}");
    assert!(text.contains("60 ms"), "{text}");
    let page = report::page(std::slice::from_ref(&run));
    assert!(page.contains("One-way delay of packets") && page.contains("Jitter of datagrams") && page.contains("MOS"));
    let series = |name: &str| {
        run.series.iter().filter(|series| series.name == name).map(|s| s.entity.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((series("one_way_delay_s"), series("jitter_s")), (vec!["call", "upload"], vec!["call"]));
}

/// One probe, 60 s: about a hundred bins hold every reply.
#[test]
fn round_trips_of_a_probe_come_as_a_histogram() {
    let mut network = line(2_000, 512, "ethernet", modem());
    network.duration = Duration::from_s(60);
    let ping =
        Source::Ping { interval: Duration::from_ms(100), size: ByteCount::new(64), echo: lastmile_model::Echo::Icmp };
    network.traffic.push(traffic("ping", 0, 1, ping));
    network.traffic.push(traffic("upload", 0, 1, bulk(&tcp(), None, OpenedBy::Sender)));
    let run = run(&network);
    let summary = run.summary.clone();
    let probe = &summary.probes[0];
    let bins = &probe.rtt_distribution;
    assert_eq!(bins.counts.iter().sum::<u64>(), probe.received);
    assert!((20..=101).contains(&bins.counts.len()), "{}", bins.counts.len());
    let width = bins.bin_width_s.unwrap();
    let lowest = bins.first_bin as f64 * width;
    assert!(lowest <= probe.rtt_s.min.unwrap() && probe.rtt_s.min.unwrap() < lowest + width);
    let verdict = probe.y1541.as_ref().unwrap();
    assert_eq!(
        (verdict.delay_from.as_str(), verdict.enough_packets, verdict.iplr),
        ("half_round_trip", false, Some(0.0))
    );
}

/// Delays by class: each packet of the link has one class, and a call waits for at most one packet
/// of the upload.
fn check_waits(run: &Run, names: [&str; 2]) {
    let up = &run.summary.links[0];
    let waits = &up.queue.class_queue_delays;
    assert_eq!(waits.iter().map(|wait| wait.class.as_str()).collect::<Vec<_>>(), names);
    let [calls, rest] = [0, 1].map(|index| waits[index].queue_delay_s);
    assert_eq!(calls.count + rest.count, up.packets);
    let sent = flow(run, "call").transport.data_packets_received;
    // Up to three packets are on the wire at the end: 22 ms of propagation, one packet per 20 ms.
    assert!(calls.count.abs_diff(sent) <= 3, "{} for {sent}", calls.count);
    // A committed packet of 1518 bytes waits 25 ms in the shaper for its tokens at 480 kbit/s, and
    // takes 24 ms on the line.
    assert!(calls.max.expect("a wait") < 0.05 && rest.max.expect("a wait") > 1.0, "{calls:?} {rest:?}");
    let text = table::run(&run.summary, 160);
    assert!(text.contains("Waits by class") && text.contains(names[0]), "{text}");
}

#[test]
fn waits_are_told_by_class_of_the_scheduler() {
    check_waits(&run(&beside_upload(priority_to_calls())), ["classes.0", "classes.1"]);
}

/// A policy in the form of files: a shaper, rules with the names of the classes, a scheduler. The
/// shaper holds a packet outside of the scheduler.
#[test]
fn waits_are_told_by_the_names_of_a_policy_below_its_shaper() {
    let rule = |matches, class| rules::Rule { matches, class, last: true };
    let class = |number, queue| ClassSpec { matches: Match::Class(number), queue };
    let scheduler = Spec::Priority(priority::Config { classes: vec![class(0, Spec::fifo(50)), class(1, modem())] });
    let policy = Spec::Rules(rules::Config {
        rules: vec![rule(Match::Dscp(46), 0)],
        otherwise: 1,
        names: vec!["calls".into(), "rest".into()],
        queue: Box::new(scheduler),
    });
    let shaper = Spec::Tbf(Over {
        config: tbf::Config {
            rate: BitRate::from_kbit_per_s(480),
            burst: WireBytes::new(1_600),
            peak: None,
            largest: ByteCount::new(1500),
            catch_up: Duration::ZERO,
        },
        queue: Box::new(policy),
    });
    check_waits(&run(&beside_upload(shaper)), ["calls", "rest"]);
}

/// A policy with a tree, whose classes have their own names.
#[test]
fn waits_are_told_by_the_leaves_of_a_tree() {
    let share = |kbit, priority| htb::Share {
        priority,
        ceil: Some(BitRate::from_kbit_per_s(500)),
        ..htb::Share::of(BitRate::from_kbit_per_s(kbit))
    };
    let leaf = |name: &str, share, queue| tree::Class {
        name: name.into(),
        parent: Some("line".into()),
        share,
        queue: Some(queue),
    };
    let root = tree::Class { name: "line".into(), parent: None, share: share(500, 0), queue: None };
    let classes = vec![root, leaf("calls", share(100, 0), Spec::fifo(50)), leaf("rest", share(400, 1), modem())];
    let rules = vec![tree::Rule { matches: Match::Dscp(46), class: "calls".into() }];
    let tree = Tree { classes, rules, default: Some("rest".into()) };
    check_waits(&run(&beside_upload(Spec::Htb(htb::Config::new(tree)))), ["calls", "rest"]);
}

/// A queue without classes has no rows.
#[test]
fn a_plain_queue_has_no_waits_by_class() {
    let run = run(&beside_upload(modem()));
    assert!(run.summary.links.iter().all(|link| link.queue.class_queue_delays.is_empty()));
    assert!(!table::run(&run.summary, 160).contains("Waits by class"));
}

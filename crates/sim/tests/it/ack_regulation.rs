//! Transfers with regulated ACKs: they complete, fast retransmit and SACK work, and regulation causes no timeout.

use lastmile_model::outcome::{FlowOutcome, Outcome};
use lastmile_queueing::ack::{cake, clamp, collapsing, filter, pacing};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow};
use lastmile_sim::run;
use lastmile_tcp::{AckConfig, Config, Ecn, Variant, WindowScale};
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, Ratio};

use crate::build;

const LIMIT: Limit = Limit::Packets(PacketCount::new(100));
const DROP: Overflow = Overflow::Tail;

fn window_clamp(target: clamp::Target) -> Spec {
    let config = clamp::Config { target, mss: ByteCount::new(1460), exempt: Match::Never };
    Spec::WindowClamp(Over { config, queue: Box::new(Spec::fifo(100)) })
}

fn mechanisms() -> Vec<(&'static str, Spec)> {
    let cake = |mode| {
        Spec::CakeAckFilter(cake::Config {
            limit: LIMIT,
            drop: DROP,
            rules: cake::Rules { mode, exempt: Match::Never },
        })
    };
    let config = pacing::Config {
        rate: BitRate::from_kbit_per_s(1_800),
        max_hold: Duration::from_ms(100),
        exempt: Match::Never,
    };
    vec![
        ("ack-filter", Spec::AckFilter(filter::Config { limit: LIMIT, drop: DROP, rules: filter::Rules::default() })),
        ("ack-collapsing", Spec::AckCollapsing(collapsing::Config { limit: LIMIT, drop: DROP, exempt: Match::Never })),
        ("cake, normal", cake(cake::Mode::Normal)),
        ("cake, aggressive", cake(cake::Mode::Aggressive)),
        ("ack-pacing", Spec::AckPacing(Over { config, queue: Box::new(Spec::fifo(100)) })),
        ("window-clamp", window_clamp(clamp::Target::Window(ByteCount::new(20_000)))),
    ]
}

/// A window of 30 000 bytes does not overflow the queue. 16 kbit/s carry 50 ACKs a second, so ACKs wait and
/// are regulated.
fn transfer(tcp: &Config, up_kbit: u64, loss_ppb: u32, queue: &Spec) -> FlowOutcome {
    let mut network = build::line(2_000, up_kbit, "ip", Duration::from_ms(10));
    network.links[0].hop.queue = queue.clone();
    network.links[1].hop.line.loss = Ratio::from_parts_per_billion(loss_ppb).unwrap();
    network.traffic.push(build::download(tcp, Some(1_000_000)));
    network.duration = Duration::from_s(300);
    let mut outcome = run(&network).unwrap();
    assert!(outcome.conservation.holds());
    outcome.flows.remove(0)
}

/// Fast retransmit by duplicates alone, and by SACK blocks with timestamps.
fn loss_recoveries() -> [Config; 2] {
    let tcp = Config {
        receive_window: ByteCount::new(30_000),
        acks: AckConfig { ack_every: 1, ..AckConfig::default() },
        ..Config::default()
    };
    [
        Config { variant: Variant::NewReno, sack: false, ..tcp.clone() },
        Config { variant: Variant::Sack, timestamps: true, ecn: Ecn::Classic, ..tcp },
    ]
}

#[test]
fn without_loss_nothing_is_retransmitted() {
    for tcp in loss_recoveries() {
        for (name, queue) in mechanisms() {
            for up_kbit in [16, 512] {
                let flow = transfer(&tcp, up_kbit, 0, &queue);
                let counts = flow.tcp.expect("it is TCP");
                assert_eq!(flow.bytes_delivered, 1_000_000, "{name} at {up_kbit} kbit/s");
                let repairs = (counts.retransmissions, counts.timeouts, counts.fast_retransmits);
                assert_eq!(repairs, (0, 0, 0), "{name} at {up_kbit} kbit/s");
            }
        }
    }
}

/// One in a hundred segments is lost: seven of about 685. Fast retransmit repairs most of them with and without
/// regulation. A timeout repairs the loss of the last segments or of a retransmission.
#[test]
fn regulated_acks_still_cause_fast_retransmits() {
    for tcp in loss_recoveries() {
        for up_kbit in [64, 512] {
            let timeouts = transfer(&tcp, up_kbit, 10_000_000, &Spec::fifo(100)).tcp.expect("it is TCP").timeouts;
            for (name, queue) in mechanisms() {
                let flow = transfer(&tcp, up_kbit, 10_000_000, &queue);
                assert_eq!(flow.bytes_delivered, 1_000_000, "{name} at {up_kbit} kbit/s");
                let counts = flow.tcp.expect("it is TCP");
                assert!(counts.fast_retransmits >= 3, "{name} at {up_kbit} kbit/s: {counts:?}");
                assert!(counts.timeouts <= timeouts + 2, "{name} at {up_kbit} kbit/s: {counts:?} against {timeouts}");
            }
        }
    }
}

/// 1.8 Mbit/s in 40 ms are 9000 bytes, twice the capacity of the empty path. The rest of a window of 64 KiB
/// waits in the provider's queue, unless the window is clamped, with and without window scaling. A share is
/// rounded down to whole segments, and one is added: 7 of 1460 bytes, in packets of 10 500 bytes.
#[test]
fn a_clamped_download_keeps_the_queue_short_and_the_line_busy() {
    let download = |queue: Spec, window: u64, window_scale: WindowScale| -> Outcome {
        let mut network = build::line(2_000, 512, "ip", Duration::from_ms(10));
        network.links[0].hop.queue = queue;
        let tcp = Config { receive_window: ByteCount::new(window), window_scale, ..Config::default() };
        network.traffic.push(build::download(&tcp, None));
        network.duration = Duration::from_s(60);
        run(&network).unwrap()
    };
    let target =
        clamp::Target::Shared { rate: BitRate::from_kbit_per_s(1_800), rtt: Duration::from_ms(40), growth: None };
    let plain = download(Spec::fifo(100), 65_535, WindowScale::Auto);
    let clamped = download(window_clamp(target), 65_535, WindowScale::Auto);
    assert!(plain.links[1].max_backlog_bytes > 50_000, "{}", plain.links[1].max_backlog_bytes);
    assert!(clamped.links[1].max_backlog_bytes <= 10_500, "{}", clamped.links[1].max_backlog_bytes);
    let (unclamped_bytes, clamped_bytes) = (plain.flows[0].bytes_delivered, clamped.flows[0].bytes_delivered);
    assert!(clamped_bytes * 100 > unclamped_bytes * 97, "{clamped_bytes} of {unclamped_bytes}");

    // Units of 128 bytes, as Linux has them: an ACK of two segments, 2920 bytes, steps over 1172 and one segment.
    let scale = WindowScale::Shift(7);
    let (plain, clamped) = (download(Spec::fifo(100), 150_000, scale), download(window_clamp(target), 150_000, scale));
    let mean = |outcome: &Outcome| outcome.links[1].queue_delay_ns.mean();
    assert!(mean(&clamped) * 4.0 < mean(&plain), "{} of {}", mean(&clamped), mean(&plain));
}

//! Over every channel all bytes arrive once and in order, the connection closes, and no rule is broken.

use lastmile_tcp::{
    AckConfig, ByteCounting, Config, CongestionConfig, Ecn, InitialWindow, LimitedTime, LossDetection, RepairConfig,
    Rto, TimerConfig, Variant, WindowScale,
};
use lastmile_units::{ByteCount, Duration};
use proptest::prelude::*;

use crate::pair::{App, Channel, Pair};

fn variant() -> impl Strategy<Value = Variant> {
    prop_oneof![
        Just(Variant::Tahoe),
        Just(Variant::Reno),
        Just(Variant::NewReno),
        Just(Variant::Sack),
        Just(Variant::Cubic),
        Just(Variant::Bbr),
        Just(Variant::Bbr3),
        Just(Variant::Ledbat),
        Just(Variant::Dctcp),
        Just(Variant::Prague),
    ]
}

fn window_scale() -> impl Strategy<Value = WindowScale> {
    prop_oneof![Just(WindowScale::Off), Just(WindowScale::Auto), (0_u8..=6).prop_map(WindowScale::Shift),]
}

fn byte_counting() -> impl Strategy<Value = ByteCounting> {
    prop_oneof![Just(ByteCounting::PerAck), (1_u8..=4).prop_map(|limit| ByteCounting::Abc { limit })]
}

fn initial_window() -> impl Strategy<Value = InitialWindow> {
    prop_oneof![Just(InitialWindow::Rfc3390), (1_u16..=12).prop_map(InitialWindow::Segments)]
}

prop_compose! {
    fn config()(
        variant in variant(),
        mss in prop_oneof![50_u16..1500, Just(1460)],
        window in prop_oneof![500_u64..5_000, 5_000_u64..70_000, 70_000_u64..1_000_000],
        initial_window in initial_window(),
        ssthresh in proptest::option::of(1_000_u64..20_000),
        delayed_ack in prop_oneof![Just(0_u64), Just(40), Just(200)],
        ack_every in 1_u8..=4,
        window_scale in window_scale(),
        tick in prop_oneof![4 => Just(0_u64), 1 => Just(100), 1 => Just(500)],
        byte_counting in byte_counting(),
        rto in prop_oneof![Just(Rto::Rfc6298), Just(Rto::Linux)],
        (undo, frto, rack, tail_loss_probe) in any::<(bool, bool, bool, bool)>(),
        (sack, dsack, timestamps) in any::<(bool, bool, bool)>(),
        (limited_transmit, idle_restart, pacing) in any::<(bool, bool, bool)>(),
        (gro, send_buffer) in
            (prop_oneof![3 => Just(0_u64), 1 => 1_u64..20_000], proptest::option::weighted(0.2, 1_000_u64..100_000)),
        ecn in prop_oneof![Just(Ecn::Off), Just(Ecn::Classic), Just(Ecn::Accurate)],
    ) -> Config {
        Config {
            variant,
            mss,
            send_buffer: send_buffer.map(ByteCount::new),
            receive_window: ByteCount::new(window),
            sack,
            timestamps,
            window_scale,
            ecn,
            acks: AckConfig {
                delayed_ack: Duration::from_ms(delayed_ack),
                ack_every,
                dsack,
                gro: Duration::from_us(gro),
                ..AckConfig::default()
            },
            congestion: CongestionConfig {
                initial_window,
                initial_ssthresh: ssthresh.map(ByteCount::new),
                byte_counting,
                limited_transmit,
                idle_restart,
                pacing,
                ..CongestionConfig::default()
            },
            repair: RepairConfig {
                undo,
                frto,
                loss_detection: if rack { LossDetection::Rack } else { LossDetection::Rfc6675 },
                tail_loss_probe,
                ..RepairConfig::default()
            },
            timers: TimerConfig {
                rto,
                max_rto: Duration::from_s(60),
                clock_granularity: Duration::from_ms(tick),
                // On lossy channels connections must neither fail here nor outlive TIME-WAIT.
                max_syn_retries: 60,
                max_retries: 100,
                time_wait: Duration::from_s(1000),
                ..TimerConfig::default()
            },
            ..Config::default()
        }
    }
}

fn app() -> impl Strategy<Value = App> {
    (
        config(),
        prop_oneof![any::<u32>(), (0_u32..100_000).prop_map(|below| 0_u32.wrapping_sub(below))],
        proptest::collection::vec((0_u64..3_000, 0_u64..40_000), 0..5),
        proptest::collection::vec((0_u64..4_000, 0_u64..8_000), 0..3),
    )
        .prop_map(|(config, iss, writes, pauses)| App { config, iss, writes, pauses })
}

fn channel() -> impl Strategy<Value = Channel> {
    (
        prop_oneof![Just(0_u64), 0_u64..30, 30_u64..300],
        prop_oneof![Just(0_u64), 0_u64..200],
        0_u64..100,
        100_u64..200_000,
        prop_oneof![Just(0_u64), 0_u64..300_000],
    )
        .prop_map(|(loss, duplicate, mark, delay_us, jitter_us)| Channel {
            loss,
            duplicate,
            mark,
            delay_us,
            jitter_us,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_in_order_and_the_connection_closes(
        client in app(),
        server in app(),
        channel in channel(),
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new([client, server], channel, seed);
        prop_assert!(pair.run(2_000_000), "still running at {}", pair.now);
        pair.check_end();
    }
}

const CLEAN: Channel = Channel { loss: 0, duplicate: 0, mark: 0, delay_us: 10_000, jitter_us: 0 };

fn quiet(config: &Config, bytes: u64) -> App {
    App { config: config.clone(), iss: 7, writes: vec![(0, bytes)], pauses: Vec::new() }
}

/// Twice around the number space in segments of 64 KiB.
#[test]
fn a_stream_of_more_than_eight_gibibytes_arrives() {
    let config = Config { mss: 65_000, receive_window: ByteCount::new(8 << 20), ..Config::default() };
    let bytes = (8 << 30) + 12_345;
    let mut client = lastmile_tcp::Endpoint::new(
        config.clone().into(),
        lastmile_packet::FlowId::new(0),
        lastmile_tcp::Open::Active,
        lastmile_packet::SeqNumber::new(u32::MAX - 100_000),
    );
    let mut server = lastmile_tcp::Endpoint::new(
        config.into(),
        lastmile_packet::FlowId::new(1),
        lastmile_tcp::Open::Passive,
        lastmile_packet::SeqNumber::new(1),
    );
    let mut now = lastmile_units::Instant::ZERO;
    client.connect(now);
    client.write(bytes);
    client.close();
    let mut packets = 0_u64;
    while server.delivered() < bytes {
        // Every 1000th packet is lost.
        let mut flying = Vec::new();
        while let Some(segment) = client.poll_transmit(now) {
            packets += 1;
            if !packets.is_multiple_of(1000) {
                flying.push(segment);
            }
        }
        now += Duration::from_ms(5);
        for segment in flying {
            server.on_segment(now, &segment);
            while let Some(answer) = server.poll_transmit(now) {
                client.on_segment(now, &answer);
            }
        }
        for end in [&mut client, &mut server] {
            end.on_timer(now);
        }
        while let Some(answer) = server.poll_transmit(now) {
            client.on_segment(now, &answer);
        }
    }
    assert_eq!((server.delivered(), server.received()), (bytes, bytes));
    assert_eq!(client.stats().timeouts, 0);
    assert!(client.stats().retransmissions > 100);
}

/// The limits of a sender of 2 MB over a clean path, each segment of which is acknowledged at once.
fn limits_of_2_mb(config: Config) -> LimitedTime {
    let config = Config { acks: AckConfig { delayed_ack: Duration::ZERO, ..AckConfig::default() }, ..config };
    let mut pair = Pair::new([quiet(&config, 2_000_000), quiet(&config, 0)], CLEAN, 1);
    assert!(pair.run(1_000_000));
    pair.check_end();
    pair.ends[0].limited_by(pair.now)
}

/// The receiver's window limits a sender that fills it nearly all the time, and the account has a reason
/// for every moment.
#[test]
fn what_limits_the_sender_is_accounted_for() {
    let limited = limits_of_2_mb(Config { receive_window: ByteCount::new(14_600), ..Config::default() });
    // 20 ms for the SYN, and for the FIN with the last data; 2 000 000 / 14 600 round trips of 20 ms between.
    assert!(limited.receive_window >= Duration::from_ms(2_600), "{limited:?}");
    assert_eq!(limited.awaiting_ack, Duration::from_ms(40), "{limited:?}");
    assert_eq!(limited.congestion_window, Duration::ZERO, "{limited:?}");
    assert_eq!(limited.application, Duration::ZERO, "{limited:?}");
}

/// 20 ms for the SYN and for the FIN with the last data. The buffer of ten segments is as large as the initial window,
/// and leaves nothing unsent.
#[test]
fn a_full_send_buffer_limits_the_sender() {
    let limited = limits_of_2_mb(Config { send_buffer: Some(ByteCount::new(14_600)), ..Config::default() });
    // 2 000 000 / 14 600 round trips of 20 ms.
    assert!(limited.send_buffer >= Duration::from_ms(2_600), "{limited:?}");
    assert_eq!(limited.awaiting_ack, Duration::from_ms(40), "{limited:?}");
    assert_eq!(limited.total(), limited.send_buffer + limited.awaiting_ack, "{limited:?}");
}

#[test]
fn a_sender_with_little_to_say_is_limited_by_its_application() {
    let mut app = quiet(&Config::default(), 1_000);
    app.writes.push((5_000, 1_000));
    let mut pair = Pair::new([app, quiet(&Config::default(), 0)], CLEAN, 1);
    assert!(pair.run(1_000_000));
    pair.check_end();
    let limited = pair.ends[0].limited_by(pair.now);
    // From the end of the handshake at 20 ms to the second write; then the sender only awaits the answer to the FIN.
    assert_eq!(limited.application, Duration::from_ms(4_980));
    assert_eq!(limited.awaiting_ack, Duration::from_ms(40));
}

/// Every variant repairs one loss in a large window without a timeout.
#[test]
fn one_lost_segment_is_repaired_without_a_timeout() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack, Variant::Cubic] {
        let config = Config { variant, ..Config::default() };
        let channel = Channel { loss: 2, ..CLEAN };
        let mut pair = Pair::new([quiet(&config, 1_000_000), quiet(&config, 0)], channel, 3);
        assert!(pair.run(1_000_000));
        pair.check_end();
        let stats = pair.ends[0].stats();
        assert!(stats.fast_retransmits >= 1, "{variant:?}: {stats:?}");
        assert_eq!(stats.timeouts, 0, "{variant:?}: {stats:?}");
    }
}

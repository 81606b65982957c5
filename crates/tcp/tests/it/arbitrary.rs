//! No segment makes an endpoint panic, send without end, or report an impossible state.

use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, Options, Protocol, SackBlock, SeqNumber, SynOptions, TcpFlags};
use lastmile_tcp::{AckConfig, Config, Ecn, Endpoint, LossDetection, Open, RepairConfig, Rto, TimerConfig, Variant};
use lastmile_units::{ByteCount, Duration, Instant};
use proptest::prelude::*;

/// Numbers near those in use, so that many segments are accepted.
fn near(base: u32) -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => (-3_000_i32..20_000).prop_map(move |ahead| base.wrapping_add_signed(ahead)),
        2 => (0_u32..4).prop_map(move |ahead| base.wrapping_add(ahead)),
        1 => any::<u32>(),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let block = (near(OWN), near(OWN))
        .prop_map(|(left, right)| SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(right) });
    let syn = any::<(Option<u16>, Option<u8>, bool)>()
        .prop_map(|(mss, window_scale, sack_permitted)| Options::syn(SynOptions { mss, window_scale, sack_permitted }));
    let sack = proptest::collection::vec(block, 0..=Options::MAX_SACK_BLOCKS)
        .prop_map(|blocks| Options::NONE.with_sack(&blocks));
    (prop_oneof![1 => syn, 4 => sack], proptest::option::of(any::<(u32, u32)>()), any::<bool>()).prop_map(
        |(options, timestamps, unknown)| {
            let options = match timestamps {
                Some((value, echo)) => options.with_timestamps(value % 5_000, echo % 5_000),
                None => options,
            };
            if unknown { options.with_unknown() } else { options }
        },
    )
}

const OWN: u32 = u32::MAX - 2_000;
const PEER: u32 = u32::MAX - 9_000;

prop_compose! {
    fn segment()(
        seq in near(PEER),
        ack in near(OWN),
        flags in prop_oneof![6 => Just(0x10_u8), 2 => Just(0x11), 1 => Just(0x02), 1 => Just(0x12), 2 => any::<u8>()],
        options in options(),
        (ip_len, header_len) in prop_oneof![
            4 => Just((40_u16, 40_u8)),
            4 => (0_u16..2_000).prop_map(|len| (40 + len, 40)),
            1 => any::<(u16, u8)>(),
        ],
        window in any::<u16>(),
        traffic_class in any::<u8>(),
        other in 0_u8..20,
    ) -> Meta {
        let mut meta = Meta {
            seq: SeqNumber::new(seq),
            ack: SeqNumber::new(ack),
            flags: TcpFlags::from_bits(flags),
            ip_len,
            header_len,
            window,
            traffic_class,
            protocol: if other == 0 { Protocol::Udp } else { Protocol::Tcp },
            ..Meta::default()
        };
        meta.set_options(options);
        meta
    }
}

#[derive(Clone, Debug)]
enum Step {
    Segment(Box<Meta>),
    Wait(u64),
    Write(u64),
    Close,
    Abort,
    Reading(bool),
    Handshake,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => segment().prop_map(|meta| Step::Segment(Box::new(meta))),
        4 => (0_u64..3_000).prop_map(Step::Wait),
        3 => prop_oneof![0_u64..20_000, Just(u64::MAX)].prop_map(Step::Write),
        1 => Just(Step::Close),
        1 => Just(Step::Abort),
        1 => any::<bool>().prop_map(Step::Reading),
        2 => Just(Step::Handshake),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let variant = prop_oneof![
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
    ];
    (variant, any::<u16>(), any::<u64>(), any::<[bool; 9]>(), any::<u8>()).prop_map(
        |(variant, mss, window, [sack, timestamps, ecn, sane, linux, undo, frto, rack, tail_loss_probe], ack_every)| {
            Config {
                variant,
                // The endpoint limits values out of range.
                mss: if sane { 1_000 } else { mss },
                receive_window: ByteCount::new(if sane { 30_000 } else { window }),
                sack,
                timestamps,
                ecn: [Ecn::Off, Ecn::Classic, Ecn::Accurate][usize::from(ecn) + usize::from(ecn && undo)],
                acks: AckConfig { ack_every, ..AckConfig::default() },
                repair: RepairConfig {
                    undo,
                    frto,
                    loss_detection: if rack { LossDetection::Rack } else { LossDetection::Rfc6675 },
                    tail_loss_probe,
                    ..RepairConfig::default()
                },
                timers: TimerConfig { rto: if linux { Rto::Linux } else { Rto::Rfc6298 }, ..TimerConfig::default() },
                ..Config::default()
            }
        },
    )
}

/// The segment that answers an open end's SYN, or opens a listening one.
fn handshake(open: Open) -> Vec<Meta> {
    let base = Meta { ip_len: 40, header_len: 40, window: 30_000, seq: SeqNumber::new(PEER), ..Meta::default() };
    let mut syn = base;
    syn.set_options(
        Options::syn(SynOptions { mss: Some(1_000), window_scale: Some(2), sack_permitted: true })
            .with_timestamps(1, 0),
    );
    let ack = SeqNumber::new(OWN).add(1);
    match open {
        Open::Active => {
            vec![Meta { flags: TcpFlags::SYN.with(TcpFlags::ACK).with(TcpFlags::ECE), ack, ..syn }]
        }
        Open::Passive => vec![
            Meta { flags: TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR), ..syn },
            Meta { flags: TcpFlags::ACK, ack, seq: base.seq.add(1), ..base },
        ],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_arrives_makes_an_endpoint_panic(
        config in config(),
        active in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let open = if active { Open::Active } else { Open::Passive };
        let mut endpoint = Endpoint::new(Arc::new(config), FlowId::new(4), open, SeqNumber::new(OWN));
        let mut now = Instant::ZERO;
        endpoint.connect(now);
        for step in std::iter::once(Step::Handshake).chain(steps) {
            match step {
                Step::Segment(meta) => endpoint.on_segment(now, &meta),
                Step::Wait(ms) => {
                    now += Duration::from_ms(ms);
                    while let Some(due) = endpoint.next_timer().filter(|due| *due <= now) {
                        endpoint.on_timer(due);
                        drain(&mut endpoint, due)?;
                    }
                }
                Step::Write(bytes) => endpoint.write(bytes),
                Step::Close => endpoint.close(),
                Step::Abort => endpoint.abort(),
                Step::Reading(reading) => endpoint.set_reading(reading),
                Step::Handshake => {
                    for meta in handshake(open) {
                        drain(&mut endpoint, now)?;
                        endpoint.on_segment(now, &meta);
                    }
                }
            }
            drain(&mut endpoint, now)?;
            prop_assert!(endpoint.delivered() <= endpoint.received());
            prop_assert!(endpoint.acked() <= endpoint.sent());
            prop_assert!(endpoint.cwnd_bytes() > 0);
        }
    }
}

fn drain(endpoint: &mut Endpoint, now: Instant) -> Result<(), TestCaseError> {
    let mut count = 0;
    while let Some(segment) = endpoint.poll_transmit(now) {
        count += 1;
        prop_assert!(count < 1_000_000, "an endpoint that never stops sending");
        prop_assert_eq!(segment.flow, FlowId::new(4));
        prop_assert!(segment.ip_len >= u16::from(segment.header_len));
        prop_assert_eq!(segment.header_len, 40 + segment.options().header_bytes());
    }
    Ok(())
}

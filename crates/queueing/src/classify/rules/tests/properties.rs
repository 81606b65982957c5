//! Rules against the naive definition of each condition.

use super::*;

fn condition() -> impl Strategy<Value = Match> {
    let end = || prop_oneof![Just(End::Source), Just(End::Destination), Just(End::Either)];
    let bound = || prop_oneof![Just(Bound::Below), Just(Bound::Above)];
    // Ports and bytes of few values, so that conditions often hold.
    let plain = prop_oneof![
        Just(Match::Any),
        Just(Match::Never),
        Just(Match::PureAck),
        Just(Match::SackAck),
        Just(Match::FtpData),
        prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::EchoRequest)].prop_map(Match::Protocol),
        prop::sample::select(vec![1_u8, 6, 17, 58, 253]).prop_map(Match::ProtocolNumber),
        (0..3_u8).prop_map(Match::Dscp),
        (0..8_u8, 0..8_u8).prop_map(|(value, mask)| Match::TrafficClass { value, mask }),
        (0..32_u8).prop_map(|bits| Match::TcpFlags(TcpFlags::from_bits(bits))),
        (0..32_u8, 0..32_u8).prop_map(|(set, of)| Match::TcpFlagsOf {
            set: TcpFlags::from_bits(set & of),
            of: TcpFlags::from_bits(of)
        }),
        (end(), 20..24_u16, 0..3_u16).prop_map(|(end, first, more)| Match::Port(end, first..=first + more)),
        (1000..1100_u16).prop_map(Match::AtMostBytes),
        (40..44_u16).prop_map(Match::AtLeastBytes),
        (bound(), 0..5000_u64).prop_map(|(bound, bytes)| Match::ConnectionBytes(bound, ByteCount::new(bytes))),
        (bound(), 1..20_000_u64).prop_map(|(bound, bps)| Match::ConnectionRate(bound, BitRate::from_bps(bps).unwrap())),
        (end(), prop::sample::select(vec!["10.0.1.1", "10.0.1.2", "192.0.2.80"]))
            .prop_map(|(end, host)| Match::Address(end, Prefix::new(host.parse().unwrap(), 32).unwrap())),
        (0..10_u32).prop_map(|flow| Match::Flow(FlowId::new(flow))),
        Just(Match::FirstPayload(Pattern { bytes: b"SSH".to_vec(), at: None })),
    ];
    plain.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Match::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Match::All),
            prop::collection::vec(inner, 0..4).prop_map(Match::OneOf),
        ]
    })
}

fn any_packet() -> impl Strategy<Value = Meta> {
    let protocol =
        prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::EchoRequest), Just(Protocol::Other)];
    (0..10_u32, 0..32_u8, prop_oneof![Just(0_u16), Just(1000)], protocol, 0..12_u8, any::<bool>()).prop_map(
        |(flow, flags, payload, protocol, traffic_class, sack)| {
            let mut meta = Meta { protocol, traffic_class, ..packet(flow, TcpFlags::from_bits(flags), payload) };
            if sack {
                let block = SackBlock { left: SeqNumber::new(1), right: SeqNumber::new(2) };
                meta.set_options(Options::NONE.with_sack(&[block]));
            }
            meta
        },
    )
}

proptest! {
    /// Class and counters are those of the conditions, evaluated one by one.
    #[test]
    fn a_long_list_decides_as_its_rules_one_by_one(
        conditions in prop::collection::vec(condition(), 1..100),
        packets in prop::collection::vec(any_packet(), 1..20),
    ) {
        let mut alone: Vec<Condition> =
            conditions.iter().map(|condition| Condition::new(condition, &environment())).collect();
        let mut bench = Bench::new(&conditions.iter().cloned().zip((0..3).cycle()).collect::<Vec<_>>());
        let mut matched = vec![0; conditions.len()];
        for packet in packets {
            let mut expected = 3;
            for (index, condition) in alone.iter_mut().enumerate() {
                if condition.matches(Instant::ZERO, &packet) {
                    matched[index] += 1;
                    expected = index % 3;
                }
            }
            prop_assert_eq!(bench.class_of(packet), expected);
        }
        for (index, matched) in matched.into_iter().enumerate() {
            prop_assert_eq!(bench.counter(&format!("rules.{index}"), "matched"), matched);
        }
    }
}

proptest! {
    /// Few kinds of packets that come again and again, so that most verdicts are kept ones. Each
    /// verdict and each counter is compared with the conditions, evaluated one by one.
    #[test]
    fn a_kept_verdict_is_that_of_the_rules(
        rules in prop::collection::vec((condition(), prop::bool::weighted(0.2)), 1..10),
        packets in prop::collection::vec(any_packet(), 1..4),
        comes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..10_u32, prop_oneof![4 => Just(0), 1 => 0..700_u64]),
            1..200,
        ),
    ) {
        let mut alone: Vec<Condition> =
            rules.iter().map(|(condition, _)| Condition::new(condition, &environment())).collect();
        let rule = |(matches, last): &(Match, bool), class| Rule { matches: matches.clone(), class, last: *last };
        let mut bench = Bench::with(rules.iter().zip((0..3).cycle()).map(|(given, class)| rule(given, class)));
        let (mut matched, mut decided, mut unmatched) = (vec![0; rules.len()], vec![0; rules.len()], 0);
        for (packet, flow, gap_ms) in comes {
            let packet = Meta { flow: FlowId::new(flow), ..*packet.get(&packets) };
            bench.now += Duration::from_ms(gap_ms);
            // Each hears of every packet.
            let holds: Vec<bool> = alone.iter_mut().map(|condition| condition.matches(bench.now, &packet)).collect();
            let last = (0..rules.len()).find(|index| holds[*index] && rules[*index].1).unwrap_or(rules.len() - 1);
            let mut asked = (0..=last).filter(|index| holds[*index]);
            asked.clone().for_each(|index| matched[index] += 1);
            match asked.next_back() {
                Some(index) => decided[index] += 1,
                None => unmatched += 1,
            }
            prop_assert_eq!(bench.class_of(packet), asked_class(&holds, last));
        }
        for index in 0..rules.len() {
            let path = format!("rules.{index}");
            prop_assert_eq!(bench.counter(&path, "matched"), matched[index]);
            prop_assert_eq!(bench.counter(&path, "decided"), decided[index]);
        }
        prop_assert_eq!(bench.counter("", "unmatched"), unmatched);
    }
}

/// The class of the last that holds among the rules up to `last`, of which the first three give the
/// classes 0 to 2, and so on; 3 for none.
fn asked_class(holds: &[bool], last: usize) -> usize {
    (0..=last).rev().find(|index| holds[*index]).map_or(3, |index| index % 3)
}

//! No input panics; what a file says comes back out of the network.

use lastmile_model::Source;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};
use proptest::prelude::*;

use crate::{parse, parse_with};

/// Words of the format, so that random files get past the first line.
fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "duration",
        "access",
        "up",
        "down",
        "rate",
        "queue",
        "kind",
        "limit",
        "traffic",
        "link",
        "node",
        "from",
        "to",
        "name",
        "back",
        "tcp",
        "count",
        "start",
        "stop",
        "encapsulation",
        "overhead",
        "framing",
        "record",
        "interval",
        "policy",
        "oam",
        "classes",
        "match",
        "not",
        "one_of",
        "exempt",
        "processing",
        "burst",
        "one_way",
        "lan",
        "mss",
        "vj_slots",
    ])
    .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "\"10 s\"",
            "\"1 Mbit/s\"",
            "\"5 packets\"",
            "\"9 cells\"",
            "\"sad\"",
            "\"tbf\"",
            "\"priority\"",
            "\"bulk\"",
            "\"ping\"",
            "\"atm\"",
            "\"ip\"",
            "\"client\"",
            "\"server\"",
            "\"a\"",
            "\"b\"",
            "\"up\"",
            "\"0 B\"",
            "\"18446744073709551615 B\"",
            "\"213 h\"",
            "\"100 %\"",
            "\"1 wire bytes\"",
            "true",
            "0",
            "-1",
            "99999999999999999999",
            "1.5",
            "1979-05-27",
            "\"\"",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|n| n.to_string()),
        "\"[ -~]{0,12}\"",
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(", "))),
            prop::collection::vec((word(), inner), 0..5).prop_map(|entries| {
                let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("{{ {} }}", entries.join(", "))
            }),
        ]
    })
}

fn file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => (word(), value()).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => prop::collection::vec(word(), 1..4).prop_map(|keys| format!("[{}]", keys.join("."))),
        1 => prop::sample::select(vec!["[[traffic]]", "[[link]]", "[[node]]"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

/// A file that is right, with a value or a line in it replaced.
fn nearly() -> impl Strategy<Value = String> {
    let good = include_str!("../../../../scenarios/first-steps/7-loss-and-cells.toml");
    (0..60_usize, prop_oneof![value(), word(), "[ -~]{0,20}"]).prop_map(move |(at, replacement)| {
        let mut lines: Vec<String> = good.lines().map(str::to_owned).collect();
        let at = at % lines.len();
        lines[at] = match lines[at].split_once('=') {
            Some((key, _)) => format!("{key}= {replacement}"),
            None => replacement,
        };
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every refusal points somewhere and fits the terminal.
    #[test]
    fn no_file_panics(
        text in prop_oneof![any::<String>(), file(), nearly()],
        argument in prop_oneof![
            any::<String>(),
            (word(), word(), value()).prop_map(|(a, b, v)| format!("{a}.{b}={v}"))
        ],
    ) {
        for overrides in [&[][..], &[argument.as_str()][..]] {
            if let Err(report) = parse_with(&text, overrides) {
                prop_assert!(report.has_errors());
                for finding in report.findings() {
                    prop_assert!(!finding.headline().contains('\n'), "{finding}");
                    prop_assert!(!finding.message.is_empty());
                }
            }
        }
    }

    /// Written values are read back: quantities in any unit, names, counts, times.
    #[test]
    fn a_printed_scenario_reads_back(
        duration_ms in 1_u64..100_000_000,
        down in 1_u64..1_000_000_000_000,
        up in 1_u64..1_000_000_000_000,
        delay_ps in 0_u64..60_000_000_000_000,
        limit in 1_u64..1_000_000_000,
        count in 1_u32..1000,
        start_ns in 0_u64..1_000_000,
        length_ns in 1_u64..1_000_000_000,
        bytes in 1_u64..1_000_000_000_000,
        seed in any::<u64>(),
        name in "[a-zA-Z0-9 .:+()-]{0,20}[a-z]",
    ) {
        let duration = Duration::from_ms(duration_ms);
        let (down, up) = (BitRate::from_bps(down).expect("in range"), BitRate::from_bps(up).expect("in range"));
        let delay = Duration::from_ps(delay_ps);
        let start = Instant::ZERO + Duration::from_ns(start_ns);
        let stop = start + Duration::from_ns(length_ns);
        let bytes = ByteCount::new(bytes);
        let text = format!(
            "duration = \"{duration}\"\nseed = {seed}\n[access]\ndown = {{ rate = \"{down}\", delay = \"{delay}\" }}\n\
             up = {{ rate = \"{up}\", queue = {{ limit = \"{limit} packets\" }} }}\n\
             [[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\ndirection = \"up\"\ncount = {count}\n\
             start = \"{start}\"\nstop = \"{stop}\"\nbytes = \"{bytes}\"\n"
        );
        // TOML has integers of 64 bits with a sign; larger seeds are taken all the same.
        let scenario = parse(&text).map_err(|report| TestCaseError::fail(report.to_string()))?;
        let network = scenario.network();
        let access = scenario.access().expect("it has one");
        prop_assert_eq!((network.duration, network.seed), (duration, seed));
        prop_assert_eq!((access.down.line.rate, access.up.line.rate), (Some(down), Some(up)));
        prop_assert_eq!(access.down.line.delay, delay);
        prop_assert_eq!(&access.up.queue, &lastmile_queueing::spec::Spec::fifo(limit));
        let traffic = &network.traffic[0];
        prop_assert_eq!(&traffic.name, &name);
        prop_assert_eq!((traffic.count, traffic.start, traffic.stop), (count, start, Some(stop)));
        let read = match &traffic.source {
            Source::Bulk { bytes, .. } => *bytes,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        prop_assert_eq!(read, Some(bytes.as_u64()));
    }
}

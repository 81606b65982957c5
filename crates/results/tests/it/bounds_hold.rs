//! No flow of any run exceeds its bound, over its life or in a phase.

use lastmile_results::schema::FlowKind;
use lastmile_results::{Origin, summarise};
use lastmile_scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::select;

fn encapsulation() -> impl Strategy<Value = &'static str> {
    select(vec![
        "ip",
        "ethernet",
        "bridged-ptm",
        "pppoe-ptm",
        "docsis",
        "ipoa-vcmux",
        "pppoa-vcmux",
        "pppoe-llcsnap",
        "bridged-vcmux-fcs",
    ])
}

fn queue() -> impl Strategy<Value = String> {
    prop_oneof![2 => of_all_packets(), 1 => tree(), 1 => policed()]
}

/// A queue that treats all packets with data alike.
fn of_all_packets() -> impl Strategy<Value = String> {
    prop_oneof![
        (2_u32..300).prop_map(|n| format!("{{ limit = \"{n} packets\" }}")),
        (2_u32..400).prop_map(|ms| format!("{{ limit = \"{ms} ms\" }}")),
        (2_u32..300).prop_map(|n| format!("{{ limit = \"{n} packets\", drop = \"head\" }}")),
        Just("{ kind = \"sad\" }".to_owned()),
        Just("{ kind = \"priority\", classes = [{ match = { pure_ack = true } }, {}] }".to_owned()),
        Just("{ kind = \"fq-codel\" }".to_owned()),
        Just("{ kind = \"ack-filter\" }".to_owned()),
        Just("{ kind = \"ack-regenerator\" }".to_owned()),
        Just("{ kind = \"red\" }".to_owned()),
        shaped(),
    ]
}

/// Conditions of which the packets of a flow may meet all, none, or some.
fn condition() -> impl Strategy<Value = &'static str> {
    select(vec![
        "{ dscp = \"EF\" }",
        "{ dscp = \"CS0\" }",
        "{ tos = \"0x00/0x03\" }",
        "{ protocol = \"udp\" }",
        "{ protocol = \"tcp\", pure_ack = false }",
        "{ not = { pure_ack = true } }",
        "{ source = \"10.0.0.0/8\" }",
        "{ port = 50000 }",
        "{ at_least = \"600 B\" }",
        "{ at_most = \"1000 B\" }",
        "{ connection_bytes = \"> 100 kB\" }",
        "{ connection_rate = \"> 200 kbit/s\" }",
        "{ one_of = [{ dscp = \"EF\" }, { connection_bytes = \"< 50 kB\" }] }",
        "{}",
    ])
}

/// Schedulers of two or three classes, with limits `own` and `inner` where the kind has limits.
fn few(kind: &str, [first, second, leaf]: [&str; 3], [own, inner]: [u32; 2]) -> String {
    match kind {
        "hfsc-rt" => {
            // Upper limits above the guarantees, and below them.
            let [own, inner] = [own, inner].map(|kbit| if kbit % 2 == 0 { kbit } else { 1 + kbit % 40 });
            format!(
                "{{ kind = \"hfsc\", default = \"rest\", classes = [\
                 {{ name = \"line\", ls = \"1 Mbit/s\", ul = \"{own} kbit/s\" }}, \
                 {{ name = \"first\", parent = \"line\", \
                 rt = {{ m1 = \"8 kbit/s\", d = \"20 ms\", m2 = \"{} kbit/s\" }}, \
                 ls = \"1 Mbit/s\", ul = \"{inner} kbit/s\", match = {first} }}, \
                 {{ name = \"rest\", parent = \"line\", sc = \"5 kbit/s\", match = {second} }}] }}",
                3 + inner % 20
            )
        }
        "priority" => {
            let last = leaf.trim_start_matches(", ");
            format!(
                "{{ kind = \"priority\", \
                 classes = [{{ match = {first}{leaf} }}, {{ match = {second} }}, {{ {last} }}] }}"
            )
        }
        "custom" => format!(
            "{{ kind = \"custom\", classes = [{{ packets = 3, match = {first}{leaf} }}, \
             {{ bytes = \"3000 wire bytes\"{leaf} }}] }}"
        ),
        _ => format!(
            "{{ kind = \"drr\", classes = [{{ quantum = \"1500 wire bytes\", match = {first}{leaf} }}, \
             {{ quantum = \"3000 wire bytes\"{leaf} }}] }}"
        ),
    }
}

/// Classes with ceilings of their own, one below another, over a queue that may shape or police too.
fn tree() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => Just(String::new()),
        1 => Just(", queue = { kind = \"fq-codel\" }".to_owned()),
        1 => (50_u32..3_000).prop_map(|kbit| format!(
            ", queue = {{ kind = \"tbf\", rate = \"{kbit} kbit/s\", burst = \"3000 wire bytes\" }}"
        )),
        1 => policed().prop_map(|queue| format!(", queue = {queue}")),
    ];
    let ceilings = (200_u32..8_000, 100_u32..4_000, 50_u32..2_000);
    let kind = select(vec!["htb", "htb", "hysteresis", "timer", "cbq", "hfsc", "hfsc-rt", "priority", "custom", "drr"]);
    (kind, ceilings, condition(), condition(), leaf, select(vec!["rest", "first"])).prop_map(
        |(kind, (root, inner, own), first, second, leaf, default)| {
            let classes = |share: &dyn Fn(u32) -> String| {
                format!(
                    "classes = [{{ name = \"line\", {} }}, {{ name = \"home\", parent = \"line\", {} }}, \
                     {{ name = \"first\", parent = \"home\", {}, match = {first}{leaf} }}, \
                     {{ name = \"second\", parent = \"home\", {}, match = {second} }}, \
                     {{ name = \"rest\", parent = \"line\", {}{leaf} }}]",
                    share(root),
                    share(inner),
                    share(own),
                    share(inner),
                    share(inner)
                )
            };
            match kind {
                "cbq" => {
                    let bounded = std::cell::Cell::new(0);
                    let share = |kbit: u32| {
                        bounded.set(bounded.get() + 1);
                        // Of the line, the home, and the leaves.
                        let share = [60, 30, 10, 15, 20][bounded.get() - 1];
                        format!(
                            "share = \"{share} %\", burst = \"2000 wire bytes\", borrow = {}",
                            kbit.is_multiple_of(2)
                        )
                    };
                    format!("{{ kind = \"cbq\", rate = \"30 kbit/s\", default = \"{default}\", {} }}", classes(&share))
                }
                "hfsc" => {
                    let share = |kbit: u32| match kbit % 3 {
                        0 => "ls = \"100 kbit/s\"".to_owned(),
                        1 => format!("ls = \"100 kbit/s\", ul = \"{kbit} kbit/s\""),
                        _ => format!(
                            "ls = \"9 kbit/s\", ul = {{ m1 = \"5 Mbit/s\", d = \"30 ms\", \
                             m2 = \"{kbit} kbit/s\" }}"
                        ),
                    };
                    format!("{{ kind = \"hfsc\", default = \"{default}\", {} }}", classes(&share))
                }
                "hfsc-rt" | "priority" | "custom" | "drr" => few(kind, [first, second, &leaf], [own, inner]),
                // Guarantees within the slowest line, and ceilings above and below that of the class above.
                _ => {
                    let number = std::cell::Cell::new(0);
                    let share = |kbit: u32| {
                        number.set(number.get() + 1);
                        let rate = [28, 4, 2, 2, 4][number.get() - 1];
                        format!("rate = \"{rate} kbit/s\", ceil = \"{} kbit/s\"", rate + kbit % 40)
                    };
                    let more = match kind {
                        "hysteresis" => ", hysteresis = true",
                        "timer" => ", timer = \"10 ms\"",
                        _ => "",
                    };
                    format!("{{ kind = \"htb\", default = \"{default}\"{more}, {} }}", classes(&share))
                }
            }
        },
    )
}

/// A policer of all packets or some, over a queue of its own.
fn policed() -> impl Strategy<Value = String> {
    let rate = 50_u32..5_000;
    let meter = prop_oneof![
        (rate.clone(), 2_000_u32..60_000).prop_map(|(kbit, burst)| format!(
            "{{ kind = \"token-bucket\", rate = \"{kbit} kbit/s\", burst = \"{burst} wire bytes\" }}"
        )),
        (rate.clone(), 2_000_u32..60_000).prop_map(|(kbit, burst)| format!(
            "{{ kind = \"police\", rate = \"{kbit} kbit/s\", burst = \"{burst} wire bytes\" }}"
        )),
        (rate.clone(), 2_000_u32..30_000, 0_u32..30_000).prop_map(|(kbit, burst, more)| format!(
            "{{ kind = \"car\", rate = \"{kbit} kbit/s\", burst = \"{burst} wire bytes\", \
             extended_burst = \"{} wire bytes\" }}",
            burst + more
        )),
        (rate.clone(), 2_000_u32..30_000, 2_000_u32..30_000).prop_map(|(kbit, cbs, ebs)| format!(
            "{{ kind = \"srtcm\", rate = \"{kbit} kbit/s\", burst = \"{cbs} wire bytes\", \
             excess_burst = \"{ebs} wire bytes\" }}"
        )),
        (rate, 0_u32..3_000, 2_000_u32..30_000).prop_map(|(kbit, more, burst)| format!(
            "{{ kind = \"trtcm\", rate = \"{kbit} kbit/s\", burst = \"{burst} wire bytes\", peak = \"{} kbit/s\", \
             peak_burst = \"{burst} wire bytes\" }}",
            kbit + more
        )),
    ];
    let exceed = select(vec!["", "", ", exceed = \"transmit\"", ", exceed = \"continue\"", ", conform = \"continue\""]);
    let second = (meter.clone(), prop::option::of(condition())).prop_map(|(meter, matches)| match matches {
        Some(matches) => format!("meter = {meter}, match = {matches}"),
        None => format!("meter = {meter}"),
    });
    let marks = select(vec!["", "", "", ", exceed = \"set-dscp-continue\", exceed_dscp = 46"]);
    (meter, condition(), exceed, second, 2_u32..300, marks).prop_map(|(meter, first, exceed, second, limit, marks)| {
        let exceed = if marks.is_empty() { exceed } else { marks };
        format!(
            "{{ kind = \"policer\", rules = [{{ meter = {meter}, match = {first}{exceed} }}, {{ {second} }}], \
             limit = \"{limit} packets\" }}"
        )
    })
}

/// A shaper with a rate of its own, which may be above the line's.
fn shaped() -> impl Strategy<Value = String> {
    let rate = 100_u32..10_000;
    let tbf = (rate.clone(), 2_000_u32..60_000).prop_map(|(kbit, burst)| {
        format!("{{ kind = \"tbf\", rate = \"{kbit} kbit/s\", burst = \"{burst} wire bytes\" }}")
    });
    let cake = (rate.clone(), prop::option::of(encapsulation())).prop_map(|(kbit, layer)| {
        let layer = layer.map_or_else(String::new, |layer| format!(", encapsulation = \"{layer}\""));
        format!("{{ kind = \"cake\", bandwidth = \"{kbit} kbit/s\"{layer} }}")
    });
    let htb = (rate, select(vec!["", ", default = \"a\""])).prop_map(|(kbit, default)| {
        // Guarantees within the slowest line.
        let root = 4 + kbit % 27;
        format!(
            "{{ kind = \"htb\"{default}, classes = [\
             {{ name = \"root\", rate = \"{root} kbit/s\", ceil = \"{kbit} kbit/s\" }}, \
             {{ name = \"a\", parent = \"root\", rate = \"2 kbit/s\", ceil = \"{kbit} kbit/s\" }}, \
             {{ name = \"b\", parent = \"root\", rate = \"2 kbit/s\", ceil = \"{kbit} kbit/s\", \
             match = {{ pure_ack = true }} }}] }}"
        )
    });
    prop_oneof![tbf, cake, htb]
}

/// A rate, or steps of rates and delays, played once or again and again.
fn rate(kbit: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    let step = (kbit.clone(), 100_u32..1500, prop::option::of(0_u32..60));
    let steps = (prop::collection::vec(step, 1..5), any::<bool>()).prop_map(|(steps, again)| {
        let (mut at, mut listed) = (0, String::new());
        for (kbit, length, delay) in steps {
            let delay = delay.map_or_else(String::new, |ms| format!(", delay = \"{ms} ms\""));
            listed += &format!("{{ at = \"{at} ms\", rate = \"{kbit} kbit/s\"{delay} }}, ");
            at += length;
        }
        let again = if again { format!(", repeat = \"{at} ms\"") } else { String::new() };
        format!("trace = {{ steps = [{listed}]{again} }}")
    });
    prop_oneof![3 => kbit.prop_map(|kbit| format!("rate = \"{kbit} kbit/s\"")), 1 => steps]
}

/// A direction, possibly with OAM cells, copies of packets, and a rate that changes.
fn direction(kbit: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    let loss = select(vec!["0 %", "0 %", "0.5 %", "3 %"]);
    let duplicate = select(vec!["0 %", "0 %", "0 %", "100 %"]);
    let compression = select(vec!["none", "none", "vj", "10 %"]);
    let varies = select(vec![
        "",
        "",
        ", reorder = \"50 %\"",
        ", jitter = { time = \"20 ms\", correlation = \"99.9 %\" }",
        ", jitter = { time = \"5 ms\", distribution = \"pareto\" }, reorder = true",
    ]);
    let kinds = ["", "", "", "docsis-1.0", "docsis-2.0", "docsis-3.1", "lte", "5g-tdd"].map(|kind| format!("{kind:?}"));
    // A slot of 125 us holds no byte of the slowest lines.
    let pon = "{ kind = \"pon\", interval = \"1 ms\" }".to_owned();
    let whole =
        ["", ", share = \"70 %\", sustained = \"2 Mbit/s\"", ", largest = \"4000 wire bytes\", share = \"90 %\""]
            .map(|keys| format!("{{ kind = \"docsis-2.0\", fragmentation = false{keys} }}"));
    // A packet of 1500 bytes is sent past several opportunities, so that its transmission counts.
    let single =
        ["", ", interval = \"2 ms\", request_every = \"1 ms\", ahead = \"3 ms\"", ", request_every = \"500 us\""]
            .map(|keys| format!("{{ kind = \"docsis-1.0\", piggyback = false{keys} }}"));
    let grants = select(kinds.into_iter().chain([pon]).chain(whole).chain(single).collect::<Vec<_>>());
    (rate(kbit), 0_u32..40, encapsulation(), queue(), loss, duplicate, (compression, varies, grants)).prop_map(
        |(rate, delay, encapsulation, queue, loss, duplicate, (compression, varies, grants))| {
            let varies = if compression == "vj" { "" } else { varies };
            let duplicate = if compression == "vj" { "0 %" } else { duplicate };
            let cells = encapsulation.contains("vcmux") || encapsulation.contains("llc");
            // With a trace packets are cut.
            let whole = grants.contains("fragmentation") || grants.contains("docsis-1.0");
            let none = cells || (rate.contains("trace") && whole) || grants == "\"\"";
            let grants = if none { String::new() } else { format!(", grants = {grants}") };
            let oam = if encapsulation.contains("vcmux") || encapsulation.contains("llc") { ", oam = 27" } else { "" };
            format!(
                "{{ {rate}, delay = \"{delay} ms\", encapsulation = \"{encapsulation}\", queue = {queue}, \
                 loss = \"{loss}\", duplicate = \"{duplicate}\", \
                 header_compression = \"{compression}\"{oam}{varies}{grants} }}"
            )
        },
    )
}

/// Receive window, send buffer and largest segment, each of which may be the least.
fn sizes() -> impl Strategy<Value = String> {
    let window = prop_oneof![
        3 => (2_u32..2000).prop_map(|kb| format!("{kb} kB")),
        1 => (100_u32..4000).prop_map(|bytes| format!("{bytes} B")),
    ];
    let buffer = prop_oneof![
        3 => Just(String::new()),
        1 => (100_u32..20_000).prop_map(|bytes| format!(", send_buffer = \"{bytes} B\"")),
    ];
    let mss = select(vec!["", "", ", mss = \"216 B\"", ", mss = \"536 B\"", ", mss = \"1400 B\""]);
    (window, buffer, mss).prop_map(|(window, buffer, mss)| format!("receive_window = \"{window}\"{buffer}{mss}"))
}

fn tcp() -> impl Strategy<Value = String> {
    let era = select(vec!["today", "1999"]);
    let variant = select(vec!["tahoe", "reno", "newreno", "sack", "cubic"]);
    let ack = select(vec!["0 ms", "40 ms", "200 ms"]);
    let gro = select(vec!["0 us", "0 us", "100 us", "5 ms"]);
    let read = select(vec!["0 us", "40 us", "1 ms", "10 ms"]);
    (era, variant, ack, sizes(), 1_u32..4, any::<bool>(), gro, read).prop_map(
        |(era, variant, ack, sizes, every, timestamps, gro, read)| {
            format!(
                "{{ era = \"{era}\", variant = \"{variant}\", delayed_ack = \"{ack}\", {sizes}, \
                 ack_every = {every}, timestamps = {timestamps}, window_scale = true, gro = \"{gro}\", \
                 read_delay = \"{read}\" }}"
            )
        },
    )
}

fn quic() -> impl Strategy<Value = String> {
    let congestion = select(vec!["newreno", "cubic", "bbr", "bbr3"]);
    let request = (1_u32..20, select(vec!["1 us", "5 ms", "25 ms", "200 ms"]))
        .prop_map(|(every, delay)| format!(", ack_frequency = {{ every = {every}, max_delay = \"{delay}\" }}"));
    let acks = (select(vec!["0 ms", "25 ms", "25 ms"]), prop_oneof![Just(String::new()), request]);
    let sizes = (5_u32..2000, 0_u32..21, 1200_u32..1465);
    (congestion, acks, sizes).prop_map(|(congestion, (delay, request), (window, id, datagram))| {
        format!(
            "{{ congestion = \"{congestion}\", receive_window = \"{window} kB\", connection_id = \"{id} B\", \
             datagram = \"{datagram} B\", max_ack_delay = \"{delay}\"{request} }}"
        )
    })
}

fn source() -> impl Strategy<Value = String> {
    let sized = prop_oneof![Just(String::new()), (1_u32..3000).prop_map(|kb| format!("bytes = \"{kb} kB\"\n"))];
    let way = || select(vec!["up", "down"]);
    let transfer = prop_oneof![
        2 => tcp().prop_map(|tcp| format!("tcp = {tcp}")),
        1 => quic().prop_map(|quic| format!("transport = \"quic\"\nquic = {quic}")),
    ];
    prop_oneof![
        4 => (transfer, sized, 1_u32..4, way())
            .prop_map(|(transfer, sized, count, way)| format!("kind = \"bulk\"\ncount = {count}\n{sized}{transfer}\n\
             direction = \"{way}\"\n")),
        1 => (tcp(), 10_u32..2000, way(), prop::option::of(50_u32..4000))
            .prop_map(|(tcp, kbit, way, size)| {
                let size = size.map_or_else(String::new, |bytes| format!("size = \"{bytes} B\"\n"));
                format!("kind = \"writes\"\nrate = \"{kbit} kbit/s\"\ntcp = {tcp}\n{size}direction = \"{way}\"\n")
            }),
        1 => way().prop_map(|way| format!("kind = \"voice\"\ndirection = \"{way}\"\n")),
        1 => (10_u32..3000, way()).prop_map(|(kbit, way)| format!("kind = \"blast\"\nrate = \"{kbit} kbit/s\"\n\
         direction = \"{way}\"\n")),
        1 => (10_u32..3000, way()).prop_map(|(kbit, way)| format!("kind = \"poisson\"\nrate = \"{kbit} kbit/s\"\n\
         direction = \"{way}\"\n")),
        1 => (10_u32..3000, way()).prop_map(|(kbit, way)| format!("kind = \"onoff\"\nrate = \"{kbit} kbit/s\"\n\
         direction = \"{way}\"\n")),
        1 => tcp().prop_map(|tcp| format!("kind = \"swarm\"\ntcp = {tcp}\n")),
        1 => tcp().prop_map(|tcp| format!("kind = \"video\"\nsegment = \"500 ms\"\ntcp = {tcp}\n")),
        1 => Just("kind = \"video\"\nsegment = \"500 ms\"\ntransport = \"quic\"\n".to_owned()),
        1 => tcp().prop_map(|tcp| format!("kind = \"web\"\nreading = \"500 ms\"\ntcp = {tcp}\n")),
    ]
}

fn traffic() -> impl Strategy<Value = String> {
    let stop = proptest::option::of(3000_u32..6000);
    let start = prop_oneof![1 => Just(0), 3 => 0_u32..2500];
    (source(), start, stop, any::<bool>()).prop_map(|(source, start, stop, urgent)| {
        let stop = stop.map_or_else(String::new, |ms| format!("stop = \"{ms} ms\"\n"));
        let dscp = if urgent { "dscp = \"EF\"\n" } else { "" };
        format!("[[traffic]]\nstart = \"{start} ms\"\n{dscp}{stop}{source}")
    })
}

fn scenario() -> impl Strategy<Value = String> {
    (
        direction(300..60_000),
        direction(30..20_000),
        prop::collection::vec(traffic(), 1..5),
        1_u32..3,
        any::<u32>(),
        0_u32..80,
    )
        .prop_map(|(down, up, traffic, lines, seed, cpe)| {
            format!(
                "duration = \"5 s\"\nseed = {seed}\n[access]\nlines = {lines}\n\
                 processing = {{ cpe = \"{cpe} ms\" }}\ndown = {down}\nup = {up}\n{}",
                traffic.concat()
            )
        })
}

/// The round trip in an explanation, and the part of a queue in it.
fn round_trip(explanation: &str) -> Option<(f64, f64)> {
    let (_, trip) = explanation.split_once("round trip ")?;
    let (whole, part) = trip.split_once(", of which ")?;
    let seconds = |text: &str| {
        let mut words = text.split_whitespace();
        let value: f64 = words.next()?.parse().ok()?;
        let scale =
            [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)].into_iter().find(|(unit, _)| words.clone().next() == Some(unit));
        Some(value * scale?.1)
    };
    Some((seconds(whole)?, seconds(part)?))
}

/// Runs a file, and checks that no flow exceeds a bound.
pub(crate) fn check(text: &str) -> Result<(), TestCaseError> {
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}\n{text}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    let summary = summarise(&Origin::default(), &network, &outcome);
    let within = |goodput: f64, bound: Option<f64>| bound.is_none_or(|bound| goodput <= bound * (1.0 + 1e-9));
    for flow in &summary.flows {
        prop_assert!(within(flow.goodput_bps, flow.limits.bound_bps), "{flow:#?}");
        let needs_no_bound = flow.setup.kind == FlowKind::Web || flow.bytes_delivered == 0;
        prop_assert!(flow.limits.bound_bps.is_some() || needs_no_bound, "{flow:#?}");
    }
    for terms in lastmile_results::amp::measure(&summary) {
        prop_assert!(within(terms.goodput_bps, Some(terms.bound_bps)), "{terms:#?}");
    }
    let whole = summary.links.iter().map(|link| (&link.name, link.utilisation));
    let in_phases = summary.phases.iter().flat_map(|phase| &phase.links);
    for (name, busy) in whole.chain(in_phases.map(|link| (&link.name, link.utilisation))) {
        prop_assert!(busy.is_none_or(|busy| (0.0..=1.0).contains(&busy)), "{name}: {busy:?}");
    }
    for phase in &summary.phases {
        for flow in &phase.flows {
            if let Some((whole_s, queued_s)) = round_trip(&flow.explanation) {
                prop_assert!(queued_s <= whole_s * 1.01, "{flow:#?}");
            }
            for bound in [flow.bound_bps, flow.two_way_bound_bps] {
                prop_assert!(within(flow.goodput_bps, bound), "{} to {}: {flow:#?}", phase.from_s, phase.to_s);
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_run_exceeds_its_bounds(text in scenario()) {
        check(&text)?;
    }
}

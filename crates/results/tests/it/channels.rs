//! Virtual channels limit what a flow can have: shapers of sources, peak rates of available bit rate, policers of
//! contracts and of paths. No run exceeds these bounds.

use lastmile_results::schema::Flow;
use lastmile_scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{bounds_hold, summary};

/// A source, a switch, and a sink behind 10 Mbit/s, for 5 s.
const LINKS: &str = r#"duration = "5 s"
start_jitter = "0 s"
[[switch]]
name = "s"
queue = { kind = "tail-drop", limit = "2000 cells" }
[[link]]
from = "a"
to = "s"
rate = "155 Mbit/s"
delay = "1 ms"
[[link]]
from = "s"
to = "b"
rate = "10 Mbit/s"
delay = "1 ms"
"#;
/// 1448 bytes of payload, 52 of headers, 16 of LLC, SNAP and trailer are 32 cells.
const SHARE: f64 = 1448.0 / (32.0 * 53.0);

/// The flows of a file with this contract `g`, and a transfer with these keys.
fn flows(contract: &str, keys: &str) -> Vec<Flow> {
    let text = format!(
        "{LINKS}[[contract]]\nname = \"g\"\n{contract}\n\
         [[traffic]]\nname = \"u\"\nkind = \"persistent\"\nfrom = \"a\"\nto = \"b\"\ncontract = \"g\"\n{keys}"
    );
    let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}\n{text}"));
    summary(&scenario.network()).flows
}

/// The bound is that of these bits a second of cells, and in 5 s these cells beyond and a packet. The fair share is
/// that of the rate alone.
#[track_caller]
fn is_bounded(flow: &Flow, by: &str, cell_bps: f64, cells_beyond: f64) {
    let limits = &flow.limits;
    let beyond = (cells_beyond * 48.0 + 1448.0) * 8.0 / 5.0;
    let expected = cell_bps * SHARE + beyond;
    let bound = limits.bound_bps.expect("a transfer");
    assert!((bound - expected).abs() < 1e-6 * expected, "{bound}, not {expected}: {limits:#?}");
    assert_eq!(limits.bound_by.as_deref(), Some(by));
    let fair = limits.fair_share_bps.expect("a transfer");
    assert!((fair - cell_bps * SHARE).abs() < 1e-6 * fair, "{limits:#?}");
    assert_eq!(limits.fair_share_by.as_deref(), Some(by));
}

/// The flow has 95 % of its bound, and the explanation begins with the limit.
#[track_caller]
fn is_full(flow: &Flow, by: &str) {
    let bound = flow.limits.bound_bps.expect("a transfer");
    assert!((0.95..=1.0).contains(&(flow.goodput_bps / bound)), "{} of {bound}", flow.goodput_bps);
    assert!(flow.limits.explanation.starts_with(&format!("{by} (")), "{}", flow.limits.explanation);
    assert!(!flow.limits.explanation.contains("shared"), "{}", flow.limits.explanation);
}

#[test]
fn the_shaper_of_a_source_bounds_and_explains() {
    for kind in ["cbr", "ubr"] {
        let contract = format!("kind = \"{kind}\"\npcr = \"1 Mbit/s\"\nshape = \"1 Mbit/s\"");
        for count in [1, 3] {
            for flow in flows(&contract, &format!("count = {count}")) {
                is_bounded(&flow, "shape of contract g", 1e6, 1.0);
                is_full(&flow, "shape of contract g");
                let words = &flow.limits.explanation;
                assert!(words.contains(" of it at the source and in queues of cells"), "{words}");
            }
        }
    }
}

/// One cell of 32 is an RM cell.
#[test]
fn the_peak_rate_of_available_bit_rate_bounds_without_its_rm_cells() {
    let flow = flows("kind = \"abr\"\npcr = \"1 Mbit/s\"", "").remove(0);
    is_bounded(&flow, "peak cell rate of contract g", 1e6 * 31.0 / 32.0, 2.0);
    is_full(&flow, "peak cell rate of contract g");
}

/// MBS 100 at 10 Mbit/s: tau is 99 (1/2 - 1/10) 424 us, 79.2 times 1/SCR. A CDVT of 10 ms adds 10 ms of 2 Mbit/s.
#[test]
fn a_sustainable_rate_bounds_cells_that_it_counts_with_their_burst() {
    let policed = "pcr = \"10 Mbit/s\"\nshape = \"9 Mbit/s\"\nscr = \"2 Mbit/s\"\nmbs = \"100 cells\"";
    let of = |kind: &str, more: &str| flows(&format!("kind = \"{kind}\"\n{policed}\n{more}"), "").remove(0);
    for kind in ["sbr1", "sbr2"] {
        is_bounded(&of(kind, ""), "sustainable cell rate of contract g", 2e6, 1.0 + 79.2);
        let cdvt = "scr_cdvt = \"10 ms\"";
        is_bounded(&of(kind, cdvt), "sustainable cell rate of contract g", 2e6, 1.0 + 79.2 + 0.02e6 / 424.0);
    }
    let low = "low_priority = true";
    is_bounded(&of("sbr1", low), "sustainable cell rate of contract g", 2e6, 1.0 + 79.2);
    // It counts cells of CLP = 0 alone, or tags those above it.
    is_bounded(&of("sbr2", low), "shape of contract g", 9e6, 1.0);
    is_bounded(&of("sbr3", ""), "shape of contract g", 9e6, 1.0);
}

/// A policer without a shaper passes bursts within its CDVT: 50 ms of 1 Mbit/s are 118 cells.
#[test]
fn a_policed_peak_rate_bounds_with_its_tolerance() {
    let flow = flows("kind = \"cbr\"\npcr = \"1 Mbit/s\"\ncdvt = \"50 ms\"", "").remove(0);
    is_bounded(&flow, "peak cell rate of contract g", 1e6, 1.0 + 0.05e6 / 424.0);
}

#[test]
fn flows_on_one_channel_or_path_share_its_rate() {
    let shaped = "kind = \"ubr\"\nshape = \"1 Mbit/s\"";
    for flow in flows(shaped, "count = 4\nvc = \"shared\"") {
        assert_eq!(flow.limits.bound_by.as_deref(), Some("shape of contract g"));
        assert_eq!(flow.limits.fair_share_by.as_deref(), Some("shape of contract g, shared by 4"));
        assert!((flow.limits.fair_share_bps.expect("a transfer") - 0.25e6 * SHARE).abs() < 1.0, "{flow:#?}");
        let words = &flow.limits.explanation;
        assert!(words.starts_with("shape of contract g (") && words.contains("shared by 4 flows"), "{words}");
    }
    let path = "kind = \"ubr\"\nshape = \"9 Mbit/s\"\n[[contract]]\nname = \"h\"\nkind = \"cbr\"\npcr = \"2 Mbit/s\"\n\
                cdvt = \"20 ms\"\n[[vp]]\nname = \"p\"\ncontract = \"h\"";
    for flow in flows(path, "vp = \"p\"\ncount = 2") {
        assert_eq!(flow.limits.bound_by.as_deref(), Some("peak cell rate of virtual path p"));
        assert_eq!(flow.limits.fair_share_by.as_deref(), Some("peak cell rate of virtual path p, shared by 2"));
    }
}

/// Contracts of all kinds, with shapers or without.
fn contract() -> impl Strategy<Value = String> {
    let kind = select(vec!["ubr", "cbr", "sbr1", "sbr2", "sbr3", "gfr", "abr"]);
    let rates = (100_u32..8_000, 1_u32..101, prop::option::of(100_u32..8_000));
    let (cells, times) = (32_u32..400, (0_u32..60, 0_u32..60));
    let flags = (any::<bool>(), any::<bool>(), select(vec![2_u32, 4, 32]));
    (kind, rates, cells, times, flags).prop_map(
        |(kind, (pcr, percent, shape), cells, (cdvt, scr_cdvt), (low, tagging, nrm))| {
            let rate = (pcr * percent / 100).max(5);
            let peak = format!("pcr = \"{pcr} kbit/s\"\ncdvt = \"{cdvt} ms\"\n");
            let burst = format!("mbs = \"{cells} cells\"\nscr_cdvt = \"{scr_cdvt} ms\"\n");
            let own = match kind {
                "abr" => {
                    return format!(
                        "kind = \"abr\"\npcr = \"{pcr} kbit/s\"\nmcr = \"5 kbit/s\"\nicr = \"{rate} kbit/s\"\n\
                         nrm = {nrm}\nlow_priority = {low}\n"
                    );
                }
                "ubr" => format!("{peak}tagging = {tagging}\n"),
                "cbr" => peak,
                "gfr" => {
                    let frames = format!("mfs = \"{cells} cells\"\ntagging = {tagging}\n");
                    format!("{peak}{burst}mcr = \"{rate} kbit/s\"\n{frames}")
                }
                _ => format!("{peak}{burst}scr = \"{rate} kbit/s\"\n"),
            };
            let shape = shape.map_or_else(String::new, |kbit| format!("shape = \"{kbit} kbit/s\"\n"));
            format!("kind = \"{kind}\"\n{own}{shape}low_priority = {low}\n")
        },
    )
}

fn traffic() -> impl Strategy<Value = String> {
    let source = prop_oneof![
        3 => prop::option::of(10_u32..2_000).prop_map(|kb| {
            let bytes = kb.map_or_else(String::new, |kb| format!("bytes = \"{kb} kB\"\n"));
            format!("kind = \"bulk\"\n{bytes}")
        }),
        1 => Just("kind = \"bulk\"\ntransport = \"quic\"\n".to_owned()),
        1 => (50_u32..4_000).prop_map(|kbit| format!("kind = \"blast\"\nrate = \"{kbit} kbit/s\"\n")),
        1 => (50_u32..4_000).prop_map(|kbit| format!("kind = \"onoff\"\nrate = \"{kbit} kbit/s\"\n")),
        1 => (50_u32..4_000).prop_map(|kbit| format!("kind = \"writes\"\nrate = \"{kbit} kbit/s\"\n")),
        1 => Just("kind = \"swarm\"\n".to_owned()),
    ];
    let times = (0_u32..1_500, prop::option::of(1_600_u32..3_000));
    let place = (1_u32..4, select(vec!["own", "shared"]), any::<bool>(), any::<bool>());
    (source, times, place).prop_map(|(source, (start, stop), (count, vc, path, first))| {
        let stop = stop.map_or_else(String::new, |ms| format!("stop = \"{ms} ms\"\n"));
        let count = if source.contains("swarm") { String::new() } else { format!("count = {count}\n") };
        // A swarm has uploads, which enter the cells at another switch.
        let path = if path && !source.contains("swarm") { "vp = \"p\"\n" } else { "" };
        let contract = if first { "g" } else { "h" };
        format!(
            "[[traffic]]\nfrom = \"a\"\nto = \"b\"\nstart = \"{start} ms\"\nvc = \"{vc}\"\ncontract = \"{contract}\"\n\
             {count}{stop}{path}{source}"
        )
    })
}

fn scenario() -> impl Strategy<Value = String> {
    let port = select(vec![
        "queue = { kind = \"tail-drop\", limit = \"300 cells\" }",
        "queue = { kind = \"epd\", limit = \"300 cells\", threshold = \"150 cells\" }",
        "queue = { kind = \"epd\", limit = \"2000 cells\", threshold = \"900 cells\" }\nabr = { kind = \"erica\" }",
        "queue = { kind = \"tail-drop\", limit = \"500 cells\" }\nabr = { kind = \"efci\", threshold = \"50 cells\" }",
    ]);
    let links = (8_000_u32..40_000, 500_u32..12_000, 0_u32..20);
    // A path names a contract that polices.
    let path = (100_u32..6_000, 0_u32..60).prop_map(|(kbit, cdvt)| {
        format!(
            "[[contract]]\nname = \"together\"\nkind = \"cbr\"\npcr = \"{kbit} kbit/s\"\ncdvt = \"{cdvt} ms\"\n\
             [[vp]]\nname = \"p\"\ncontract = \"together\"\n"
        )
    });
    let flows = prop::collection::vec(traffic(), 1..4);
    (port, links, contract(), contract(), path, flows, any::<u32>()).prop_map(
        |(port, (first, second, delay), own, other, path, flows, seed)| {
            format!(
                "duration = \"3 s\"\nseed = {seed}\n[[switch]]\nname = \"s\"\n{port}\n\
                 [[link]]\nfrom = \"a\"\nto = \"s\"\nrate = \"{first} kbit/s\"\ndelay = \"1 ms\"\n\
                 [[link]]\nfrom = \"s\"\nto = \"b\"\nrate = \"{second} kbit/s\"\ndelay = \"{delay} ms\"\n\
                 back = {{ rate = \"40 Mbit/s\" }}\n\
                 [[contract]]\nname = \"g\"\n{own}[[contract]]\nname = \"h\"\n{other}{path}{}",
                flows.concat()
            )
        },
    )
}

proptest! {
    #[test]
    fn no_run_over_cells_exceeds_its_bounds(text in scenario()) {
        bounds_hold::check(&text)?;
    }
}

//! Lines whose capacity changes: `trace = { ... }`.

use std::fs;

use lastmile_model::Hop;
use lastmile_queueing::line::trace::{Step, Trace};
use lastmile_scenario::trace::file::{self, Content, Format, TimeUnit};
use lastmile_scenario::trace::generate::{Base, Has};
use lastmile_scenario::trace::write;
use lastmile_scenario::{Override, Scenario, trace};
use lastmile_sim::Simulation;
use lastmile_units::{BitRate, ByteCount, Duration, Ratio};

mod files;
mod written;

fn file(down: &str) -> String {
    format!(
        "duration = \"60 s\"\n[access]\ndown = {{ {down} }}\nup = {{ rate = \"1 Mbit/s\" }}\n\
         [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n"
    )
}

fn down(down: &str) -> Hop {
    let scenario = Scenario::parse("line.toml", &file(down), &[]).unwrap_or_else(|report| panic!("{report}"));
    scenario.access().expect("an access line").down.clone()
}

/// The one error of the scenario whose downstream this is.
fn error(down: &str) -> String {
    Scenario::parse("line.toml", &file(down), &[]).expect_err("wrong").to_string()
}

const STEPS: &str = r#"delay = "20 ms", trace = { repeat = "15 s", steps = [
    { at = "0 s", rate = "200 Mbit/s" },
    { at = "10 s", rate = "50 Mbit/s", delay = "40 ms", loss = "1 %" },
    { at = "14.9 s", outage = true },
] }"#;

/// 200 Mbit/s for 10 s, 50 Mbit/s for 4.9 s, nothing for 0.1 s: 149.666 Mbit/s in the mean.
#[test]
fn steps_of_a_file() {
    let hop = down(STEPS);
    assert_eq!(hop.line.rate, BitRate::from_bps(149_666_666));
    assert_eq!(hop.line.delay, Duration::from_ms(20));
    let Some(Trace::Steps(steps)) = &hop.line.trace else { panic!("{:?}", hop.line.trace) };
    let seen: Vec<_> = steps.steps().iter().map(|step| (step.at.as_secs_f64(), step.rate, step.delay)).collect();
    let rate = |mbit| Some(BitRate::from_mbit_per_s(mbit));
    let ms = Duration::from_ms;
    assert_eq!(seen, [(0.0, rate(200), ms(20)), (10.0, rate(50), ms(40)), (14.9, None, ms(20))]);
    assert_eq!(steps.steps()[1].loss.as_parts_per_billion(), 10_000_000);
}

/// 64 kbit/s for 6 s of 60, then 50 Mbit/s: 45.0064 Mbit/s in the mean of the run.
#[test]
fn a_trace_that_is_played_once_stands_for_its_mean_over_the_run() {
    let steps = "[{ at = \"0 s\", rate = \"64 kbit/s\" }, { at = \"6 s\", rate = \"50 Mbit/s\" }]";
    assert_eq!(down(&format!("trace = {{ steps = {steps} }}")).line.rate, BitRate::from_bps(45_006_400));
}

/// Of several lines the first has the trace of one line, in both directions; others have their own.
#[test]
fn each_access_line_has_a_generated_trace_of_its_own() {
    let of = |lines: u32| {
        let cell = "{ rate = \"10 Mbit/s\", trace = { generate = \"cell\" } }";
        let text = format!(
            "duration = \"60 s\"\n[access]\nlines = {lines}\ndown = {cell}\nup = {cell}\n\
             [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n"
        );
        let scenario = Scenario::parse("line.toml", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        let network = scenario.network();
        let trace = |link: usize| network.links[link].hop.line.trace.clone().expect("a trace");
        network.lines.iter().map(|line| (trace(line.down), trace(line.up))).collect::<Vec<_>>()
    };
    let (one, three) = (of(1), of(3));
    assert_eq!(one[0], three[0]);
    assert!(three.iter().all(|(down, up)| down == up), "both directions fade together");
    assert!(three[0] != three[1] && three[1] != three[2] && three[0] != three[2]);
}

/// The first of several links has the trace that `lastmile trace --generate` makes, others have their own, and both
/// directions of a link have one. A seed of a link is its own.
#[test]
fn each_link_has_a_generated_trace_of_its_own() {
    let base = Base { rate: BitRate::from_bps(10_000_000), delay: Duration::ZERO, loss: Ratio::ZERO };
    let made = |seed: u64| trace::generate("cell", base, &[Override::set(&format!("seed={seed}"))]).expect("a rule");
    let of = |before: &str, seed: &str, back: &str| {
        let link = |name: &str, seed: &str, back: &str| {
            let (from, to) = name.split_at(1);
            format!(
                "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10 Mbit/s\"\n\
                 trace = {{ generate = \"cell\"{seed} }}\n{back}"
            )
        };
        let links = link("ab", "", "") + &link("bc", seed, back) + &link("cd", "", "");
        let traffic = "[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"d\"\n";
        let text = format!("duration = \"60 s\"\n{before}{links}{traffic}");
        let scenario = Scenario::parse("links.toml", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        let network = scenario.network();
        let trace_of = |name: &&str| {
            let link = network.links.iter().find(|link| link.hop.name == **name).expect("a link");
            link.hop.line.trace.clone().expect("a trace")
        };
        ["ab", "ab-back", "bc", "bc-back", "cd", "cd-back"].iter().map(trace_of).collect::<Vec<_>>()
    };
    let own = of("", "", "back = { trace = { generate = \"cell\" }, rate = \"10 Mbit/s\" }\n");
    assert!(own.chunks(2).all(|ways| ways[0] == ways[1]), "both directions fade together");
    assert_eq!(own, of("", "", "back = { delay = \"0 ms\" }\n"), "the way back takes the trace of the way there");
    assert!(own[0] == made(1) && own[2] != own[0] && own[4] != own[0] && own[4] != own[2]);
    let seeded = of("", ", seed = 1", "");
    assert!(seeded[..2] == own[..2] && seeded[2..4] == own[..2] && seeded[4..] == own[4..], "as the first link");
    assert_eq!(of("", ", seed = 99", "")[2..4], [made(99), made(99)]);

    let access = |lines: u32| {
        let cell = "{ rate = \"10 Mbit/s\", trace = { generate = \"cell\" } }";
        let access = format!("[access]\nlines = {lines}\ndown = {cell}\nup = {cell}\n");
        of(&(access + "[[link]]\nfrom = \"server\"\nto = \"a\"\nrate = \"1 Gbit/s\"\n"), "", "")
    };
    let beside = access(1);
    assert!(beside == access(3) && !beside.contains(&own[0]), "none is that of an access line");
}

#[test]
fn traces_that_say_too_much_or_too_little() {
    let both = error(r#"trace = { file = "x", steps = [{ at = "0 s", rate = "1 Mbit/s" }] }"#);
    assert!(both.contains("access.down.trace.steps: a file and steps"), "{both}");
    assert!(error("trace = {}").contains("neither a file nor steps"));
    let late = error(r#"trace = { steps = [{ at = "1 s", rate = "1 Mbit/s" }] }"#);
    assert!(late.contains("the first step is at 1 s"), "{late}");
    assert!(error(r#"trace = { steps = [{ at = "0 s" }] }"#).contains("rate"));
    assert!(error(r#"trace = { file = "absent.csv" }"#).contains("absent.csv"));
}

const BASE: Base = Base { rate: None, delay: Duration::from_ms(5), loss: Ratio::ZERO };

fn steps_of(trace: &Trace) -> (Vec<Step>, Option<Duration>) {
    let Trace::Steps(steps) = trace else { panic!("{trace:?}") };
    (steps.steps().to_vec(), steps.period())
}

fn read(text: &str) -> Result<(Format, Trace), String> {
    file::read(text, BASE, None, None).map(|read| (read.format, read.trace))
}

/// The start moves all of a trace: 50 Mbit/s at 10 s of [`STEPS`], and the mean of a period as before. It can be
/// varied.
#[test]
fn a_run_begins_at_the_start_of_its_trace() {
    let moved = STEPS.replace("repeat", "start = \"12 s\", repeat");
    let hop = down(&moved);
    assert_eq!(hop.line.rate, BitRate::from_bps(149_666_666));
    let (steps, period) = steps_of(hop.line.trace.as_ref().unwrap());
    let rates: Vec<_> = steps.iter().map(|step| (step.at.as_secs_f64(), step.rate.map(BitRate::as_bps))).collect();
    let mbit = |rate: u64| Some(rate * 1_000_000);
    assert_eq!(rates, [(0.0, mbit(50)), (2.9, None), (3.0, mbit(200)), (13.0, mbit(50))]);
    assert_eq!(period, Some(Duration::from_s(15)));

    let once =
        r#"trace = { start = "5 s", steps = [{ at = "0 s", rate = "1 Mbit/s" }, { at = "5 s", rate = "2 Mbit/s" }] }"#;
    let told = error(once);
    assert!(
        told.contains("access.down.trace.start: nothing changes from 5 s on: the last step begins at 5 s"),
        "{told}"
    );
    assert!(error(r#"trace = { unit = "ms", steps = [{ at = "0 s", rate = "1 Mbit/s" }] }"#).contains("have units"));
}

/// A start in one direction moves both, so that they still change together; one of its own moves a direction alone. Of
/// several lines each has its own trace, from that start on.
#[test]
fn a_start_holds_in_both_directions_and_on_all_lines() {
    let lines = |down: &str, up: &str, lines: usize| {
        let direction = |start: &str| format!("{{ rate = \"10 Mbit/s\", trace = {{ generate = \"cell\"{start} }} }}");
        let text = format!(
            "duration = \"60 s\"\n[access]\nlines = {lines}\ndown = {}\nup = {}\n[[traffic]]\nkind = \"bulk\"\n\
             direction = \"down\"\n",
            direction(down),
            direction(up)
        );
        let scenario = Scenario::parse("line.toml", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        let network = scenario.network();
        let trace = |link: usize| network.links[link].hop.line.trace.clone().expect("a trace");
        network.lines.iter().map(|line| [trace(line.down), trace(line.up)]).collect::<Vec<_>>()
    };
    let (at_20, at_30) = (", start = \"20 s\"", ", start = \"30 s\"");
    let whole = &lines("", "", 3);
    let from = |line: usize, s| whole[line][0].starting_at(Duration::from_s(s)).unwrap();
    let moved: Vec<_> = (0..3).map(|line| [from(line, 20), from(line, 20)]).collect();
    assert!(moved[0] != whole[0] && lines(at_20, "", 3) == moved && lines("", at_20, 3) == moved);
    assert_eq!(lines(at_20, at_30, 1), [[from(0, 20), from(0, 30)]]);
    let wrong = error("rate = \"1 Mbit/s\", trace = { generate = \"cell\", start = \"soon\" }");
    assert_eq!(wrong.matches("start").count(), 2, "one error, with the line of the file: {wrong}");
}

/// The way back of a link starts its own trace, and the one that it inherits, where the way there does.
#[test]
fn a_start_holds_in_both_directions_of_a_link() {
    let starts = |there: &str, back: &str| {
        let text = format!(
            "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ntrace = {{ {there} }}\n\
             back = {{ {back} }}\n[[traffic]]\nkind = \"ping\"\nfrom = \"a\"\nto = \"b\"\n"
        );
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        let links = &scenario.network_ref().links;
        links.iter().map(|link| steps_of(link.hop.line.trace.as_ref().unwrap()).0[1].at).collect::<Vec<_>>()
    };
    let steps = "steps = [{ at = \"0 s\" }, { at = \"5 s\", rate = \"2 Mbit/s\" }]";
    let started = format!("start = \"2 s\", {steps}");
    let (two, three) = (Duration::from_s(2), Duration::from_s(3));
    assert_eq!(starts(&started, "delay = \"1 ms\""), [three, three]);
    assert_eq!(starts(&started, &format!("trace = {{ {steps} }}")), [three, three]);
    assert_eq!(starts(steps, &format!("trace = {{ {started} }}")), [three, three]);
    assert_eq!(starts(&started, &format!("trace = {{ start = \"3 s\", {steps} }}")), [three, two]);
}

/// The command line makes the trace that a scenario makes, by the keys of the scenario.
#[test]
fn a_rule_makes_the_trace_of_a_scenario() {
    let hop =
        down(r#"rate = "8 Mbit/s", delay = "5 ms", trace = { generate = "cell", levels = 3, hold = "2 s", seed = 9 }"#);
    let base = Base { rate: BitRate::from_bps(8_000_000), delay: Duration::from_ms(5), loss: Ratio::ZERO };
    let set = ["levels=3", "hold=2s", "seed=9"].map(Override::set);
    assert_eq!(trace::generate("cell", base, &set).unwrap(), hop.line.trace.unwrap());
    let wrong =
        |rule: &str, set: &str| trace::generate(rule, base, &[Override::set(set)]).expect_err("wrong").to_string();
    assert!(wrong("cell", "levels=0").contains("--set levels=0"), "{}", wrong("cell", "levels=0"));
    assert!(wrong("cell", "every=3s").contains("every"), "{}", wrong("cell", "every=3s"));
    assert!(wrong("wave", "levels=1").contains("known: dsl-retrain, starlink, cell"));
}

/// The steps of a generated downstream, and its period.
fn generated(rule: &str) -> Vec<Step> {
    let hop = down(&format!("rate = \"100 Mbit/s\", delay = \"20 ms\", trace = {{ {rule} }}"));
    let (steps, period) = steps_of(hop.line.trace.as_ref().expect("a trace"));
    assert!(period.is_some());
    steps
}

#[test]
fn starlink_changes_every_15_s() {
    let steps = generated("generate = \"starlink\"");
    assert_eq!(steps.len(), 80, "40 intervals of 15 s in 10 min, each with an interruption");
    for (number, pair) in steps.chunks(2).enumerate() {
        assert_eq!(pair[0].at, Duration::from_s(15) * number as u64);
        assert_eq!((pair[1].at, pair[1].rate), (pair[0].at + Duration::from_ms(14_900), None));
        let rate = pair[0].rate.unwrap().as_bps();
        assert!((25_000_000..=100_000_000).contains(&rate), "{rate}");
        assert!(pair[0].delay >= Duration::from_ms(20) && pair[0].delay <= Duration::from_ms(35));
    }
    let mean = steps.iter().filter_map(|step| step.rate).map(|rate| rate.as_bps() as f64 / 1e6).sum::<f64>() / 40.0;
    assert!((mean - 62.5).abs() < 12.0, "uniform from 25 to 100: {mean}");
    assert_eq!(steps, generated("generate = \"starlink\", seed = 1"), "the scenario's seed is 1");
    assert_ne!(steps, generated("generate = \"starlink\", seed = 2"));
}

/// Outages of 30 to 60 s, 45 s in the mean, after times with a mean of 5 min.
#[test]
fn dsl_retrains_for_half_a_minute_to_a_minute() {
    let steps = generated("generate = \"dsl-retrain\", length = \"24 h\"");
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for pair in steps.windows(2) {
        let span = (pair[1].at - pair[0].at).as_secs_f64();
        if pair[0].rate.is_some() { up.push(span) } else { down.push(span) }
    }
    assert!(down.iter().all(|span| (30.0..=60.0).contains(span)), "{down:?}");
    let mean = |spans: &[f64]| spans.iter().sum::<f64>() / spans.len() as f64;
    assert!((mean(&down) - 45.0).abs() < 3.0 && (mean(&up) - 300.0).abs() < 60.0, "{} {}", mean(&down), mean(&up));
    let least = steps.iter().filter_map(|step| step.rate).min().unwrap();
    assert!(least >= BitRate::from_mbit_per_s(70), "{least}");
}

/// Eight levels in equal ratios from 5 to 100 %, a step at a time; both ends are left at once for their neighbour.
#[test]
fn a_cell_goes_from_level_to_level() {
    let steps = generated("generate = \"cell\"");
    let level = |step: &Step| {
        let share = step.rate.unwrap().as_bps() as f64 / 1e8;
        7.0 * (1.0 - share.ln() / 0.05_f64.ln())
    };
    for pair in steps.windows(2) {
        let (one, two) = (level(&pair[0]), level(&pair[1]));
        assert!((one - one.round()).abs() < 1e-3 && ((one - two).abs() - 1.0).abs() < 1e-3, "{one} {two}");
    }
    assert!((1_000..1_400).contains(&steps.len()), "a change each 500 ms in 10 min: {}", steps.len());
}

/// With equal seeds both directions change together, whatever their rates.
#[test]
fn both_directions_are_coupled() {
    let text = file("rate = \"100 Mbit/s\", trace = { generate = \"starlink\" }")
        .replace("rate = \"1 Mbit/s\"", "rate = \"10 Mbit/s\", trace = { generate = \"starlink\" }");
    let scenario = Scenario::parse("line.toml", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let access = scenario.access().unwrap();
    let [down, up] = [&access.down, &access.up].map(|hop| steps_of(hop.line.trace.as_ref().unwrap()).0);
    for (down, up) in down.iter().zip(&up) {
        assert_eq!((down.at, down.delay), (up.at, up.delay));
        let tenth = down.rate.map(|rate| rate.as_bps() / 10);
        assert_eq!(tenth.map(|bps| bps / 10), up.rate.map(|rate| rate.as_bps() / 10));
    }
}

#[test]
fn generators_that_cannot_be_are_refused() {
    assert!(error("trace = { generate = \"cell\" }").contains("needs the rate of the direction"));
    assert!(error("rate = \"1 Mbit/s\", trace = { generate = \"lte\" }").contains("dsl-retrain, starlink, cell"));
    let long = "rate = \"1 Mbit/s\", trace = { generate = \"starlink\", outage = \"15 s\" }";
    let allowed = "`every` (15 s by default) is longer than `outage` (100 ms by default)";
    assert!(
        error(long)
            .contains(&format!("trace.outage: an outage of 15 s in each 15 s leaves no time to send; {allowed}"))
    );
    let short = error("rate = \"1 Mbit/s\", trace = { generate = \"starlink\", every = \"50 ms\" }");
    assert!(short.contains("trace.every: an outage of 100 ms in each 50 ms") && short.contains(allowed), "{short}");
    let zero = error("trace = { steps = [{ at = \"0 s\", rate = \"0 Mbit/s\" }] }");
    assert!(zero.contains("steps.0.rate: \"0 Mbit/s\" is zero") && zero.contains("hint: outage = true"), "{zero}");
    let dsl = "rate = \"1 Mbit/s\", trace = { generate = \"dsl-retrain\", outage_from = \"2 min\" }";
    assert!(error(dsl).contains("longer than outage_to"));
    let many = "rate = \"1 Mbit/s\", trace = { generate = \"cell\", hold = \"1 ms\", length = \"24 h\" }";
    assert!(error(many).contains("too many steps"));
}

/// A way back that inherits a trace has its own delay where a step says nothing, and the step's where it does.
#[test]
fn an_inherited_trace_keeps_the_delay_of_the_way_back() {
    let text = r#"
duration = "1 s"
[[link]]
from = "a"
to = "b"
delay = "10 ms"
rate = "1 Mbit/s"
trace = { steps = [{ at = "0 s" }, { at = "5 s", delay = "40 ms", rate = "2 Mbit/s" }] }
back = { delay = "3 ms" }
[[traffic]]
kind = "ping"
from = "a"
to = "b"
"#;
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let delays = scenario.network_ref().links.iter().map(|link| {
        let steps = steps_of(link.hop.line.trace.as_ref().unwrap()).0;
        (link.hop.line.delay, steps.iter().map(|step| (step.delay, step.rate)).collect::<Vec<_>>())
    });
    let (ms, rate) = (Duration::from_ms, |mbit| Some(BitRate::from_mbit_per_s(mbit)));
    let expected = [10, 3].map(|own| (ms(own), vec![(ms(own), rate(1)), (ms(40), rate(2))]));
    assert_eq!(delays.collect::<Vec<_>>(), expected);
}

/// A line without a rate for hours: packets wait, the run ends in time, and every packet is accounted for.
#[test]
fn a_flow_waits_through_an_outage_of_hours() {
    let outage = r#"trace = { steps = [
        { at = "0 s", rate = "1 Mbit/s" }, { at = "1 s", outage = true }, { at = "9 h", rate = "1 Mbit/s" }
    ] }"#;
    let scenario = Scenario::parse("line.toml", &file(outage), &[]).unwrap_or_else(|report| panic!("{report}"));
    let outcome = Simulation::new(scenario.network_ref(), None).unwrap().finish();
    assert!(outcome.conservation.holds());
    let down =
        outcome.links.iter().zip(&scenario.network_ref().links).find(|(_, link)| link.hop.name == "down").unwrap();
    assert!(down.0.stats.wire_bytes.bits() <= 1_020_000, "a second of 1 Mbit/s: {:?}", down.0.stats);
    assert!(outcome.conservation.queued.packets > 0);
}

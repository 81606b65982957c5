//! Lines whose capacity changes: `trace = { ... }`.

use std::fs;

use lastmile_model::Hop;
use lastmile_queueing::line::trace::{Step, Trace};
use lastmile_scenario::trace::file::{self, Content, Format, TimeUnit};
use lastmile_scenario::trace::generate::{Base, Has};
use lastmile_scenario::{Override, Scenario, trace};
use lastmile_sim::Simulation;
use lastmile_units::{BitRate, ByteCount, Duration, Ratio};

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

#[test]
fn a_table_and_a_trace_of_mahimahi_beside_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("cell.csv"), "# measured\nat,rate,delay\n0 s,8 Mbit/s,30 ms\n2 s,0,30 ms\n").unwrap();
    fs::write(folder.path().join("cell.trace"), "1\n1\n4\n").unwrap();
    let read = |name: &str, more: &str| {
        let path = folder.path().join("line.toml");
        fs::write(&path, file(&format!("trace = {{ file = \"{name}\"{more} }}"))).unwrap();
        Scenario::load(&path, &[]).map(|scenario| scenario.access().expect("an access line").down.line.clone())
    };
    let line = read("cell.csv", ", repeat = \"4 s\"").unwrap();
    assert_eq!((line.rate, line.delay), (Some(BitRate::from_mbit_per_s(4)), Duration::from_ms(30)));
    let Some(Trace::Opportunities(opportunities)) = read("cell.trace", "").unwrap().trace else { panic!("no trace") };
    assert_eq!((opportunities.period(), opportunities.bytes()), (Duration::from_ms(4), ByteCount::new(1_504)));
    // A packet of 1500 bytes counts as from mahimahi's TUN device, and takes an opportunity. Other framings count
    // alone.
    let on_wire = |more: &str| read("cell.trace", more).unwrap().link_layer.on_wire(ByteCount::new(1_500)).as_u64();
    assert_eq!((on_wire(""), on_wire(" }, encapsulation = \"docsis\", queue = { kind = \"fifo\"")), (1_504, 1_518));
    let report = read("cell.csv", "").expect_err("an outage for ever").to_string();
    assert!(report.contains("cell.csv: the line never sends again after 2 s: the last step has rate 0"), "{report}");
    fs::write(folder.path().join("cell.csv"), "at,rate\n0 s,8 Mbit/s\n1 s,fast\n").unwrap();
    let report = read("cell.csv", "").expect_err("a word").to_string();
    assert!(report.contains("cell.csv: line 3: ") && report.contains("line.toml:3:"), "{report}");
    fs::write(folder.path().join("cell.trace"), "5\n3\n").unwrap();
    let report = read("cell.trace", "").expect_err("out of order").to_string();
    assert!(report.contains("cell.trace: line 2: 3 ms, earlier than the 5 ms before"), "{report}");
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

/// The two patterns of the documentation of netem-trace, in both of its notations: 12 and 24 Mbit/s for 1 s each,
/// twice; 10 and 20 ms for 1 s each. The list has both, and a loss.
#[test]
fn rattans_json_in_both_notations() {
    let human = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s"}},
        {"StaticBwConfig":{"bw":"24Mbps","duration":"1s"}}],"count":2}}"#;
    let objects = r#"{"RepeatedBwPatternConfig":{"pattern":[
        {"StaticBwConfig":{"bw":{"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":0}}},
        {"StaticBwConfig":{"bw":{"gbps":0,"bps":24000000},"duration":{"secs":1,"nanos":0}}}],"count":2}}"#;
    let (format, trace) = read(human).unwrap();
    assert_eq!((format, &trace), (Format::Rattan, &read(objects).unwrap().1));
    let (steps, period) = steps_of(&trace);
    let seen: Vec<_> =
        steps.iter().map(|step| (step.at.as_secs_f64(), step.rate.unwrap().as_bps() / 1_000_000)).collect();
    assert_eq!(seen, [(0.0, 12), (1.0, 24), (2.0, 12), (3.0, 24)]);
    assert_eq!((period, steps[0].delay), (None, Duration::from_ms(5)), "what the file leaves out");
    let list = format!(
        r#"[{}, {{"RepeatedDelayPatternConfig":{{"pattern":[{{"StaticDelayConfig":{{"delay":"10ms","duration":"1s"}}}},
        {{"StaticDelayConfig":{{"delay":"20ms","duration":"1s"}}}}],"count":0}}}},
        {{"RepeatedLossPatternConfig":{{"pattern":[{{"StaticLossConfig":{{"loss":[0.1],"duration":"2s"}}}}],
        "count":0}}}}]"#,
        human.replace("\"count\":2", "\"count\":0")
    );
    let (steps, period) = steps_of(&read(&list).unwrap().1);
    let seen: Vec<_> = steps.iter().map(|step| (step.at, step.delay)).collect();
    assert_eq!(seen, [(0, 10), (1, 20)].map(|(s, ms)| (Duration::from_s(s), Duration::from_ms(ms))));
    assert_eq!((period, steps[1].loss), (Some(Duration::from_s(2)), Ratio::from_percent(10).unwrap()));
}

#[test]
fn json_that_is_no_trace_is_refused_with_its_place() {
    let error = |text: &str| read(text).unwrap_err();
    assert!(error("{").contains("line 1"), "{}", error("{"));
    assert!(error("{}").contains("an object with one key"));
    assert!(error(r#"{"NormalizedBwConfig": {}}"#).contains("NormalizedBwConfig: lastmile reads Static"));
    assert!(error(r#"{"StaticDuplicateConfig": {}}"#).contains("traces of Bw, Delay and Loss"));
    assert!(error(r#"{"StaticBwConfig": {"bw": "12 kB"}}"#).contains("StaticBwConfig: bw: \"12 kB\" is no rate"));
    assert!(error(r#"{"StaticBwConfig": {"duration": "1s"}}"#).contains("missing key \"bw\""));
    let inner =
        r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"1Mbps","duration":"1"}}],"count":0}}"#;
    assert!(error(inner).contains("pattern, entry 1: StaticBwConfig: duration: \"1\" is no time"), "{}", error(inner));
    let slow = r#"{"StaticDelayConfig": {"delay": "10ms", "duration": "1s"}}"#;
    assert_eq!(error(slow), "no trace of Bw, and no rate beside the file");
    let lossy = r#"{"StaticLossConfig": {"loss": [0.1, 0.2], "duration": "1s"}}"#;
    assert!(error(lossy).contains("a list of one share"));
}

#[test]
fn times_that_decrease_and_wrong_units_are_told() {
    let error = |text: &str| read(text).unwrap_err();
    assert_eq!(
        error("# a\nat,rate\n0 s,1 Mbit/s\n2 s,2 Mbit/s\n1 s,1 Mbit/s\n"),
        "line 5: at 1 s, not later than the 2 s before"
    );
    assert!(error("at,rate\n0,1 Mbit/s\n").starts_with("line 2: "), "a number without a unit");
    assert_eq!(error("at,delay\n0 s,5 ms\n"), "no column rate, and no rate beside the file");
    assert!(error("at,speed\n").contains("line 1: column \"speed\""));
    // 12 Mbit/s for two minutes: 1000 lines a second. In seconds that would be 12 Gbit/s, in microseconds 12 kbit/s.
    let lines =
        |unit: u64| (0..120_000_u64).map(|number| format!("{}\n", (number + 1) * unit / 1_000)).collect::<String>();
    assert!(read(&lines(1_000)).is_ok());
    assert!(error(&lines(1)).contains("are these seconds?"), "{}", error(&lines(1)));
    assert!(error(&lines(1_000_000)).contains("are these microseconds?"), "{}", error(&lines(1_000_000)));
}

/// An empty cell leaves a value to the direction; a byte-order mark is none of the file's words.
#[test]
fn a_table_may_leave_values_out() {
    let base = Base { rate: BitRate::from_bps(3_000_000), delay: Duration::from_ms(7), loss: Ratio::ZERO };
    let text = "\u{feff}at,rate,delay,loss\n0 s,,,\n5 s,5 Mbit/s,,1 %\n6 s,0,1 ms,\n7 s,,,\n";
    let (steps, _) = steps_of(&file::read(text, base, None, None).unwrap().trace);
    let seen: Vec<_> = steps.iter().map(|step| (step.rate.map(BitRate::as_bps), step.delay.as_us())).collect();
    let of_base = (Some(3_000_000), 7_000);
    assert_eq!(seen, [of_base, (Some(5_000_000), 7_000), (None, 1_000), of_base]);
    assert!(file::read("\u{feff}1\n2\n", BASE, None, None).is_ok());
    let none = Base { rate: None, ..base };
    let told = file::read("at,rate\n0 s,\n", none, None, None).expect_err("no rate");
    assert_eq!(told, "line 2: no rate, and no rate beside the file");
}

/// The unit of a packet-delivery trace decides what its numbers are, however slow the line is then: 1504 bytes every
/// 100 s are 120.32 bit/s.
#[test]
fn a_unit_decides_how_slow_a_trace_is() {
    let slow = "100000\n3700000\n";
    assert!(read(slow).expect_err("slow").contains("are these microseconds? A unit of s, ms or us decides"));
    let rate = |text: &str, unit| {
        let content = file::read(text, BASE, None, Some(unit)).unwrap();
        content.trace.mean_rate(content.trace.period().unwrap()).map(BitRate::as_bps)
    };
    assert_eq!(rate("100\n200\n", TimeUnit::Seconds), Some(120));
    assert_eq!(rate("100000\n200000\n", TimeUnit::Milliseconds), Some(120));
    assert_eq!(rate("100\n", TimeUnit::Microseconds), Some(120_320_000));
    assert!(file::read(slow, BASE, None, Some(TimeUnit::Milliseconds)).is_ok());
    let table = file::read("at,rate\n0 s,1 Mbit/s\n", BASE, None, Some(TimeUnit::Seconds));
    assert!(table.expect_err("a table").contains("its times have units"));
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

/// CSV to Rattan and back is the same trace; steps to mahimahi keep the bytes: 8 and 4 Mbit/s for 3 s each are 4.5 MB.
#[test]
fn formats_convert_into_each_other() {
    let text = "at,rate,delay,loss\n0 s,8 Mbit/s,10 ms,0 %\n3 s,4 Mbit/s,20 ms,1 %\n";
    let Content { trace, has, .. } = file::read(text, BASE, Some(Duration::from_s(6)), None).unwrap();
    let (second, length) = (Duration::from_s(1), Duration::from_s(60));
    let json = file::write(&trace, has, Format::Rattan, second, length).unwrap();
    assert_eq!(read(&json).unwrap(), (Format::Rattan, trace.clone()));
    let csv = file::write(&trace, has, Format::Csv, second, length).unwrap();
    assert_eq!(csv, format!("# repeat = \"6 s\"\n{text}"));
    let mahimahi = file::write(&trace, has, Format::Mahimahi, second, length).unwrap();
    let (format, opportunities) = read(&mahimahi).unwrap();
    assert_eq!((format, mahimahi.lines().count()), (Format::Mahimahi, 4_500_000 / 1504));
    // 1504 bytes at 8 Mbit/s are 1.504 ms; at 4 Mbit/s twice that.
    assert!(mahimahi.starts_with("2\n4\n5\n7\n8\n"), "{}", &mahimahi[..20]);
    let back = file::write(&opportunities, Has::default(), Format::Csv, Duration::from_s(3), length).unwrap();
    let (steps, _) = steps_of(&read(&back).unwrap().1);
    let rates: Vec<f64> = steps.iter().map(|step| step.rate.unwrap().as_bps() as f64 / 1e6).collect();
    assert!(rates.len() == 2 && (rates[0] - 8.0).abs() < 0.02 && (rates[1] - 4.0).abs() < 0.02, "{rates:?}");
}

/// The table itself says when it starts again; the key of the scenario counts if both are there.
#[test]
fn a_table_says_when_it_starts_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let period = |first: &str, more: &str| {
        fs::write(folder.path().join("t.csv"), format!("{first}\nat,rate\n0 s,8 Mbit/s\n2 s,0\n")).unwrap();
        let path = folder.path().join("line.toml");
        fs::write(&path, file(&format!("trace = {{ file = \"t.csv\"{more} }}"))).unwrap();
        let line = Scenario::load(&path, &[]).map(|scenario| scenario.access().unwrap().down.line.clone());
        line.map(|line| (line.rate, line.trace.unwrap().period())).map_err(|report| report.to_string())
    };
    let expected = |mbit, s| Ok((Some(BitRate::from_mbit_per_s(mbit)), Some(Duration::from_s(s))));
    assert_eq!(period("# repeat = \"4 s\"", ""), expected(4, 4));
    assert_eq!(period("# measured\n# repeat = \"4 s\"", ", repeat = \"8 s\""), expected(2, 8));
    let wrong = period("# repeat = 4", "").unwrap_err();
    assert!(wrong.contains("t.csv: line 1: repeat = 4, where a time in quotes is expected"), "{wrong}");
}

/// What the source leaves out is left out, so that the direction's own delay and loss hold.
#[test]
fn a_conversion_adds_no_delay_and_no_loss() {
    let (second, length) = (Duration::from_s(1), Duration::from_s(60));
    let convert = |text: &str, format| {
        let Content { trace, has, .. } = file::read(text, BASE, None, None).unwrap();
        file::write(&trace, has, format, second, length).unwrap()
    };
    let plain = "# repeat = \"2 s\"\nat,rate\n0 s,8 Mbit/s\n1 s,0\n";
    let lossy = "# repeat = \"2 s\"\nat,rate,loss\n0 s,8 Mbit/s,1 %\n1 s,0,0 %\n";
    for text in [plain, lossy] {
        let rattan = convert(text, Format::Rattan);
        assert_eq!(convert(text, Format::Csv), text);
        assert_eq!(convert(&rattan, Format::Csv), text, "{rattan}");
        assert!(!rattan.contains("Delay"), "{rattan}");
    }
    assert_eq!(convert("500\n1000\n", Format::Csv), "# repeat = \"1 s\"\nat,rate\n0 s,24.064 kbit/s\n");
}

/// 12.032 Mbit/s are a block in each millisecond. The outage from 3 to 10 ms is of the period, which the last line is.
#[test]
fn an_outage_at_the_end_is_of_the_period_of_mahimahi() {
    let convert = |text: &str| {
        let Content { trace, has, .. } = file::read(text, BASE, None, None).unwrap();
        let text = file::write(&trace, has, Format::Mahimahi, Duration::from_s(1), Duration::from_ms(8)).unwrap();
        (text, file::differences(&trace, has, Format::Mahimahi))
    };
    let (text, notes) = convert("# repeat = \"10 ms\"\nat,rate\n0 s,12.032 Mbit/s\n3 ms,0\n");
    assert_eq!(text, "1\n2\n3\n10\n");
    assert!(matches!(notes[..], [note] if note.contains("as the outage at the end ends")), "{notes:?}");
    assert_eq!(read(&text).unwrap().1.period(), Some(Duration::from_ms(10)));
    // Nothing is added where the last block is complete as the period ends; a part of a block becomes one.
    assert_eq!(convert("# repeat = \"3 ms\"\nat,rate\n0 s,12.032 Mbit/s\n"), ("1\n2\n3\n".to_owned(), vec![]));
    assert_eq!(convert("# repeat = \"5.5 ms\"\nat,rate\n0 s,6.016 Mbit/s\n").0, "2\n4\n6\n");
    let (text, notes) = convert("at,rate,delay\n0 s,3.008 Mbit/s,5 ms\n");
    assert_eq!(text, "4\n8\n", "played once, for the length that is asked for");
    assert_eq!(notes, ["mahimahi has rates alone: delays and losses are left out"]);
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

//! Files of traces: CSV, mahimahi and Rattan.

use super::*;

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

/// The units of human-bandwidth and of humantime, in their case of letters; words are summed, and what is below 1 bit/s
/// is left out of each.
#[test]
fn texts_of_rattan_are_those_of_human_bandwidth_and_humantime() {
    let read = |bw: &str, duration: &str| {
        let entry = format!(r#"{{"StaticBwConfig":{{"bw":"{bw}","duration":"{duration}"}}}}"#);
        let last = r#"{"StaticBwConfig":{"bw":"1bps","duration":"1s"}}"#;
        read(&format!(r#"{{"RepeatedBwPatternConfig":{{"pattern":[{entry},{last}],"count":1}}}}"#))
    };
    let bps = |bw: &str| steps_of(&read(bw, "1s").unwrap_or_else(|error| panic!("{error}")).1).0[0].rate;
    for (bw, expected) in [
        ("12Mbps 500kbps", 12_500_000),
        ("12Mbps500kbps 7 b/s", 12_500_007),
        ("12Mbit/s", 12_000_000),
        ("1tb/s", 1_000_000_000_000),
        ("3Kb/s", 3_000),
        ("2gbit/s", 2_000_000_000),
        ("150.02456kbps", 150_024),
        ("1.9bps 1.9bps", 2),
    ] {
        assert_eq!(bps(bw), BitRate::from_bps(expected), "{bw}");
    }
    assert_eq!(bps("0bps"), None);
    for bw in ["12MBps", "12MB/s", "12Mbits", "1MBPS", "12", "Mbps", "12 M bps", "1.2.3bps", "", "-1bps", "12Mbps 5"] {
        assert!(read(bw, "1s").unwrap_err().contains("is no rate, such as"), "{bw}");
    }
    assert!(read("1000000Tbps", "1s").unwrap_err().contains("is above"));
    let us = |duration: &str| steps_of(&read("2bps", duration).unwrap_or_else(|error| panic!("{error}")).1).0[1].at;
    for (duration, expected) in
        [("1m", 60_000_000), ("1s 500ms", 1_500_000), ("1min 2.5secs", 62_500_000), ("3µs", 3), ("1w", 604_800_000_000)]
    {
        assert_eq!(us(duration), Duration::from_us(expected), "{duration}");
    }
    // A month of 30.44 days.
    assert!(read("2bps", "1M").unwrap_err().contains("\"1M\" is not below 1000000 s"));
    for duration in ["1S", "1MS", "1 minute 3", "1Min"] {
        assert!(read("2bps", duration).unwrap_err().contains("is no time, such as"), "{duration}");
    }
}

/// Keys that netem-trace does not have, and values that are left out, of which it has defaults of its own.
#[test]
fn each_key_of_rattans_json_is_known() {
    let error = |text: &str| read(text).unwrap_err();
    let rate = |bw: &str| error(&format!(r#"{{"StaticBwConfig":{{"bw":{bw}}}}}"#));
    let three = r#"{"bps":1,"gbps":0,"kbps":1}"#;
    for bw in [r#"{"mbps":50}"#, r#"{"gbps":1}"#, three, r#"{"gbps":"1","bps":0}"#, "5", "null"] {
        assert!(rate(bw).starts_with("StaticBwConfig: bw: ") && rate(bw).contains("is no rate"), "{}", rate(bw));
    }
    let duration = error(r#"{"StaticBwConfig":{"bw":"1Mbps","duration":{"secs":1}}}"#);
    assert!(duration.contains(r#"duration: {"secs":1} is no time"#), "{duration}");
    assert_eq!(
        error(r#"{"StaticBwConfig":{"bw":"1Mbps","length":"1s"}}"#),
        "StaticBwConfig: unknown key \"length\"; known: bw, duration"
    );
    let pattern = |more: &str| {
        let pattern = r#""pattern":[{"StaticBwConfig":{"bw":"1Mbps"}}]"#;
        error(&format!(r#"{{"RepeatedBwPatternConfig":{{{pattern},{more}}}}}"#))
    };
    assert_eq!(pattern(r#""counts":2"#), "RepeatedBwPatternConfig: unknown key \"counts\"; known: pattern, count");
    assert_eq!(pattern(r#""count":"2""#), "RepeatedBwPatternConfig: count: \"2\", where a number is expected");
    let other = error(r#"{"StaticBwRandomConfig":{"bw":"1Mbps"}}"#);
    assert_eq!(other, "StaticBwRandomConfig: lastmile reads StaticBwConfig and RepeatedBwPatternConfig");
    assert_eq!(error(r#"{"StaticBwConfig":[]}"#), "StaticBwConfig: an object is expected");
}

/// A pattern with a count of 0 never ends, so that nothing follows it; alone in another one, it is all there is.
#[test]
fn an_endless_pattern_within_another_one_stands_alone() {
    let pattern = |entries: &str, count: u32| {
        format!(r#"{{"RepeatedBwPatternConfig":{{"pattern":[{entries}],"count":{count}}}}}"#)
    };
    let one = |mbps: u32| format!(r#"{{"StaticBwConfig":{{"bw":"{mbps}Mbps","duration":"1s"}}}}"#);
    let endless = pattern(&format!("{},{}", one(1), one(2)), 0);
    assert_eq!(read(&pattern(&endless, 3)).unwrap(), read(&endless).unwrap());
    assert_eq!(steps_of(&read(&endless).unwrap().1).1, Some(Duration::from_s(2)));
    for (entries, number) in [(format!("{endless},{}", one(3)), 1), (format!("{},{endless}", one(3)), 2)] {
        assert_eq!(
            read(&pattern(&entries, 0)).unwrap_err(),
            format!(
                "RepeatedBwPatternConfig: pattern, entry {number}: its count of 0 never ends, next to other entries"
            )
        );
    }
}

/// Values that a step takes from the base.
#[test]
fn a_trace_says_whether_it_took_the_rate() {
    let base = Base { rate: BitRate::from_bps(3_000_000), ..BASE };
    let took = |text: &str| file::read(text, base, None, None).unwrap().took_rate;
    assert!(took("at,delay\n0 s,5 ms\n") && took("at,rate\n0 s,1 Mbit/s\n1 s,\n"));
    assert!(took(r#"{"StaticDelayConfig":{"delay":"10ms"}}"#));
    assert!(!took("at,rate\n0 s,1 Mbit/s\n1 s,2 Mbit/s\n") && !took("1\n2\n"));
    assert!(!took(r#"{"StaticBwConfig":{"bw":"1Mbps"}}"#));
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
    // 416 lines a second are 5 Mbit/s; as many a millisecond for 60 ms are 5 Gbit/s. A constant rate needs one line.
    let in_seconds =
        |seconds: u64| (0..416 * seconds).map(|number| format!("{}\n", 1 + number / 416)).collect::<String>();
    assert!(error(&in_seconds(60)).contains("are these seconds?"));
    assert!(read(&in_seconds(1)).is_ok(), "5 Gbit/s");
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

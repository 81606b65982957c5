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

/// Opportunities each 0.3 ms until 0.9 ms come at the end of their millisecond, and so does the period. One that ends
/// before its period has a line more.
#[test]
fn a_packet_delivery_trace_becomes_whole_milliseconds() {
    let convert = |text: &str, repeat| {
        let Content { trace, has, .. } = file::read(text, BASE, repeat, Some(TimeUnit::Microseconds)).unwrap();
        let text = file::write(&trace, has, Format::Mahimahi, Duration::from_s(1), Duration::from_s(1)).unwrap();
        (text, file::differences(&trace, has, Format::Mahimahi))
    };
    let rounded = "mahimahi has whole milliseconds: other times of sending and of the period are rounded up";
    let (text, notes) = convert("300\n600\n900\n", None);
    assert_eq!((&*text, &*notes), ("1\n1\n1\n", &[rounded][..]));
    assert_eq!(read(&text).unwrap().1.period(), Some(Duration::from_ms(1)));
    assert_eq!(convert("1000\n2000\n", None), ("1\n2\n".to_owned(), vec![]));
    assert_eq!(convert("1000\n2001\n", None), ("1\n3\n".to_owned(), vec![rounded]));
    let (text, notes) = convert("1000\n", Some(Duration::from_us(2_500)));
    assert_eq!((&*text, notes.len(), notes[1]), ("1\n3\n", 2, rounded));
}

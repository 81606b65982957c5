//! `lastmile trace`, and the traces that it writes in scenarios.

use crate::transcript::Scratch;

/// 8 Mbit/s for a second and nothing for another, again and again.
const TABLE: &str = "# repeat = \"2 s\"\nat,rate\n0 s,8 Mbit/s\n1 s,0\n";
const SCENARIO: &str = r#"
duration = "20 s"
[access]
down = { delay = "20 ms", loss = "1 %", trace = { file = "line.csv" } }
up = { rate = "1 Mbit/s", delay = "20 ms" }
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
"#;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("line.csv"), TABLE).unwrap();
    std::fs::write(scratch.path.join("line.toml"), SCENARIO).unwrap();
    scratch
}

fn printed(scratch: &Scratch, command: &str) -> String {
    let output = scratch.run(command);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{command}");
    output.stdout
}

#[test]
fn a_table_converts_to_rattan_and_back_as_it_is() {
    let scratch = scratch();
    printed(&scratch, "lastmile trace line.csv --to rattan --out line.json");
    assert_eq!(printed(&scratch, "lastmile trace line.json --to csv"), TABLE);
    let delayed = printed(&scratch, "lastmile trace line.json --delay '5 ms' --to csv");
    assert_eq!(delayed, "# repeat = \"2 s\"\nat,rate,delay\n0 s,8 Mbit/s,5 ms\n1 s,0,5 ms\n");
}

/// A second of each two is an outage: a run of the converted trace is that of the table, in every figure.
#[test]
fn a_converted_trace_is_the_same_line() {
    let scratch = scratch();
    let run = |file: &str| {
        let text = printed(&scratch, &format!("lastmile run line.toml --json --set access.down.trace.file={file}"));
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        (summary["flows"].clone(), summary["links"].clone())
    };
    printed(&scratch, "lastmile trace line.csv --to rattan --out line.json");
    let table = run("line.csv");
    assert!(run("line.json") == table);
    let down = table.1.as_array().unwrap().iter().find(|link| link["name"] == "down").unwrap();
    assert_eq!((down["rate_bps"].as_f64(), down["delay_s"].as_f64()), (Some(4e6), Some(0.020)));
    assert!(down["drops"]["wire_loss"].as_u64() > Some(0), "{down}");
}

/// A cell of Rattan loads a file with one kind of trace. lastmile reads the three in a list.
#[test]
fn delays_and_losses_for_rattan_are_files_of_their_own() {
    let scratch = scratch();
    let table = "# repeat = \"2 s\"\nat,rate,delay,loss\n0 s,8 Mbit/s,10 ms,1 %\n1 s,0,20 ms,0 %\n";
    std::fs::write(scratch.path.join("line.csv"), table).unwrap();
    let refused = scratch.run("lastmile trace line.csv --to rattan");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert_eq!(
        refused.stderr,
        "error: a cell of Rattan loads rates, delays or losses: each is a file of its own\n\
         hint: --out NAME.json, which writes NAME.delay.json and NAME.loss.json too\n"
    );
    let output = scratch.run("lastmile trace line.csv --to rattan --out new/line.json");
    let notes = "note: the delay of each step is in new/line.delay.json\n\
                 note: the loss of each step is in new/line.loss.json\n";
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", notes));
    let texts = ["line", "line.delay", "line.loss"]
        .map(|name| std::fs::read_to_string(scratch.path.join(format!("new/{name}.json"))).unwrap());
    let names = ["RepeatedBwPatternConfig", "RepeatedDelayPatternConfig", "RepeatedLossPatternConfig"];
    for (text, name) in texts.iter().zip(names) {
        assert!(text.starts_with(&format!("{{\n  \"{name}\": {{\n    \"count\": 0,\n")), "{text}");
    }
    std::fs::write(scratch.path.join("all.json"), format!("[{}]", texts.join(","))).unwrap();
    assert_eq!(printed(&scratch, "lastmile trace all.json --to csv"), table);
    printed(&scratch, "lastmile trace new/line.json");
}

/// A block each 100 ms until the last step, at 900 s; a second of it has a block each millisecond.
#[test]
fn what_mahimahi_makes_of_a_table_that_is_played_once_is_told() {
    let scratch = scratch();
    std::fs::write(scratch.path.join("once.csv"), "at,rate\n0 s,120.32 kbit/s\n900 s,12.032 Mbit/s\n").unwrap();
    let to_mahimahi = |length: &str| {
        let output = scratch.run(&format!("lastmile trace once.csv --to mahimahi{length}"));
        let last = output.stdout.lines().last().unwrap().to_owned();
        (output.code, output.stdout.lines().count(), last, output.stderr)
    };
    let whole = "note: mahimahi starts again after 901 s, where the table holds its last step\n";
    assert_eq!(to_mahimahi(""), (0, 10_000, "901000".to_owned(), whole.to_owned()));
    let cut = "note: mahimahi starts again after 90 s; later steps that are left out: 1\n";
    assert_eq!(to_mahimahi(" --length 90s"), (0, 900, "90000".to_owned(), cut.to_owned()));
}

/// Slots of 5g-tdd send upstream in a part of the time. A table of the granted rates, with the same grants, is the same
/// line; mahimahi, which has no grants, gets their mean.
#[test]
fn a_trace_with_grants_can_be_used_again_with_them() {
    let scratch = scratch();
    let up = |trace: &str, name: &str| {
        let up = "up = { rate = \"1 Mbit/s\", delay = \"20 ms\" }";
        let granted = format!("up = {{ delay = \"20 ms\", trace = {{ {trace} }}, grants = {{ kind = \"5g-tdd\" }} }}");
        std::fs::write(scratch.path.join(name), SCENARIO.replace(up, &granted)).unwrap();
    };
    up(
        "steps = [{ at = \"0 s\", rate = \"40 Mbit/s\" }, { at = \"5 s\", outage = true }, \
         { at = \"7 s\", rate = \"20 Mbit/s\" }], repeat = \"15 s\"",
        "granted.toml",
    );
    let csv = printed(&scratch, "lastmile trace granted.toml --link up --to csv");
    assert_eq!(csv, "# repeat = \"15 s\"\nat,rate,delay\n0 s,40 Mbit/s,20 ms\n5 s,0,20 ms\n7 s,20 Mbit/s,20 ms\n");
    std::fs::write(scratch.path.join("up.csv"), csv).unwrap();
    up("file = \"up.csv\"", "again.toml");
    let told = "link up: what its grants let pass in the mean; --to csv writes the rates of the granted slots\n";
    let summary = |name: &str| {
        let output = scratch.run(&format!("lastmile trace {name} --link up --json"));
        assert_eq!((output.code, output.stderr.as_str()), (0, told));
        output.stdout
    };
    assert_eq!(summary("again.toml"), summary("granted.toml"));
    let output = scratch.run("lastmile trace granted.toml --link up --to mahimahi");
    assert!(output.stderr.starts_with(told), "{}", output.stderr);
    // 360 Mbit in the usable part of the slots: less than a quarter.
    let bits = output.stdout.lines().count() * 1504 * 8;
    assert!((70_000_000..90_000_000).contains(&bits), "{bits}");
}

#[test]
fn out_makes_the_folder_of_its_file() {
    let scratch = scratch();
    printed(&scratch, "lastmile trace line.csv --to csv --out new/folder/line.csv");
    assert_eq!(std::fs::read_to_string(scratch.path.join("new/folder/line.csv")).unwrap(), TABLE);
}

#[test]
fn a_delay_of_opportunities_is_refused() {
    let scratch = scratch();
    std::fs::write(scratch.path.join("line.up"), "1\n2\n3\n").unwrap();
    let output = scratch.run("lastmile trace line.up --delay '5 ms' --to csv");
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("line.up: --delay: packet-delivery traces have no delay"), "{}", output.stderr);
}

#[test]
fn what_mahimahi_cannot_have_is_told() {
    let scratch = scratch();
    let output = scratch.run("lastmile trace line.csv --delay '5 ms' --to mahimahi");
    assert_eq!((output.code, output.stdout.lines().last()), (0, Some("2000")));
    assert_eq!(
        output.stderr,
        "note: mahimahi has rates alone: delays and losses are left out\n\
         note: mahimahi starts again after its last line: 1504 bytes may be sent as the outage at the end ends\n"
    );
}

#[test]
fn a_trace_without_outages_has_none_for_zero_seconds() {
    let scratch = scratch();
    std::fs::write(scratch.path.join("line.csv"), "at,rate\n0 s,8 Mbit/s\n").unwrap();
    let json = printed(&scratch, "lastmile trace line.csv --json");
    assert!(json.contains("\"outages\": 0,\n  \"outage_s\": 0.0,\n  \"longest_outage_s\": 0.0,"), "{json}");
}

/// A generated trace is that of a scenario with the keys of its rule, and a scenario's trace can be taken out of it.
#[test]
fn a_generated_trace_has_the_keys_of_a_scenario() {
    let scratch = scratch();
    let generated = "trace = { generate = \"cell\", levels = 3, hold = \"2 s\", length = \"30 s\", seed = 9 }";
    let scenario =
        SCENARIO.replace("delay = \"20 ms\", loss = \"1 %\", trace = { file = \"line.csv\" }", "rate = \"8 Mbit/s\"");
    let scenario =
        scenario.replace("rate = \"8 Mbit/s\"", &format!("rate = \"8 Mbit/s\", delay = \"5 ms\", {generated}"));
    std::fs::write(scratch.path.join("cell.toml"), scenario).unwrap();
    let made = "lastmile trace --generate cell --rate 8Mbit/s --delay 5ms --length 30s --seed 9 --to csv";
    let csv = printed(&scratch, &format!("{made} --set levels=3 --set hold=2s"));
    assert!(csv.lines().count() > 4, "{csv}");
    assert_eq!(printed(&scratch, "lastmile trace cell.toml --to csv"), csv);
    let wrong = scratch.run(&format!("{made} --set levels=0"));
    assert_eq!((wrong.code, wrong.stderr.contains("--set levels=0")), (2, true), "{}", wrong.stderr);
    let up = scratch.run("lastmile trace cell.toml --link up --to csv");
    assert_eq!((up.code, up.stderr.as_str()), (2, "error: cell.toml: link up has no trace\nhint: --link down\n"));
    let none = scratch.run("lastmile trace cell.toml --link side");
    assert!(none.stderr.starts_with("error: cell.toml: no link \"side\"; its links: "), "{}", none.stderr);
}

/// A direction without any trace, or with one whose steps lose nothing where the direction does.
#[test]
fn a_trace_taken_out_of_a_scenario_has_its_losses() {
    let scratch = scratch();
    let line = SCENARIO.replace("loss = \"1 %\", trace = { file = \"line.csv\" }", "TRACE");
    let write = |trace: &str| std::fs::write(scratch.path.join("own.toml"), line.replace("TRACE", trace)).unwrap();
    write("loss = \"20 %\", trace = { steps = [{ at = \"0 s\", rate = \"8 Mbit/s\", loss = \"0 %\" }] }");
    let csv = printed(&scratch, "lastmile trace own.toml --to csv");
    assert_eq!(csv, "at,rate,delay,loss\n0 s,8 Mbit/s,20 ms,0 %\n");
    write("trace = { steps = [{ at = \"0 s\", rate = \"8 Mbit/s\" }] }");
    assert_eq!(printed(&scratch, "lastmile trace own.toml --to csv"), "at,rate,delay\n0 s,8 Mbit/s,20 ms\n");
    write("rate = \"8 Mbit/s\"");
    let none = scratch.run("lastmile trace own.toml --to csv").stderr;
    assert!(none.ends_with("hint: `trace` of a direction: no link of this scenario has one\n"), "{none}");
}

/// The direction's own delay or loss holds in such a step, and neither format can leave out one step.
#[test]
fn a_step_without_a_value_that_others_have_is_not_written() {
    let scratch = scratch();
    let table = "at,rate,delay,loss\n0 s,5 Mbit/s,10 ms,2 %\n5 s,6 Mbit/s,,2 %\n6 s,6 Mbit/s,1 ms,\n";
    std::fs::write(scratch.path.join("line.csv"), table).unwrap();
    let refused = |options: &str| {
        let output = scratch.run(&format!("lastmile trace line.csv {options}"));
        assert_eq!(output.code, 2, "{options}");
        output.stderr
    };
    for to in ["csv", "rattan"] {
        let told = refused(&format!("--to {to}"));
        assert!(told.starts_with("error: line.csv: line 3: no delay, where the table has a column delay\n"), "{told}");
        assert!(refused(&format!("--to {to} --delay '3 ms'")).contains("line 4: no loss, where"));
    }
    assert_eq!(scratch.run("lastmile trace line.csv").code, 0);
    std::fs::write(scratch.path.join("line.csv"), table.replace("1 ms,\n", "1 ms,0 %\n")).unwrap();
    let written = printed(&scratch, "lastmile trace line.csv --to csv --delay '3 ms'");
    assert!(written.ends_with("5 s,6 Mbit/s,3 ms,2 %\n6 s,6 Mbit/s,1 ms,0 %\n"), "{written}");
}

/// Options of other sources change nothing.
#[test]
fn options_without_effect_are_refused() {
    let scratch = scratch();
    let generated = "trace = { generate = \"cell\", length = \"30 s\" }";
    let scenario = SCENARIO
        .replace("delay = \"20 ms\", loss = \"1 %\", trace = { file = \"line.csv\" }", "rate = \"8 Mbit/s\"")
        .replace("rate = \"8 Mbit/s\"", &format!("rate = \"8 Mbit/s\", delay = \"5 ms\", {generated}"));
    std::fs::write(scratch.path.join("cell.toml"), scenario).unwrap();
    let refused = |options: &str, expected: &str| {
        let output = scratch.run(&format!("lastmile trace {options}"));
        assert_eq!((output.code, output.stderr.as_str()), (2, format!("error: {expected}\n").as_str()));
    };
    refused("cell.toml --unit ms", "cell.toml: --unit changes nothing; it is for a trace in a file");
    refused("cell.toml --seed 1", "cell.toml: --seed changes nothing; it is for a generated trace");
    refused(
        "cell.toml --rate 1Mbit/s",
        "cell.toml: --rate changes nothing; it is for a generated trace, a trace in a file",
    );
    refused("line.csv --link up", "line.csv: --link changes nothing; it is for a scenario");
    refused(
        "cell.toml --length 5s",
        "cell.toml: --length changes nothing; this trace starts again after 30 s\nhint: `length` or `repeat` of the \
         trace in the scenario",
    );
    std::fs::write(scratch.path.join("line.up"), "1\n2\n3\n").unwrap();
    std::fs::write(scratch.path.join("once.csv"), "at,rate,delay\n0 s,8 Mbit/s,5 ms\n").unwrap();
    std::fs::write(scratch.path.join("line.pcap"), capture(&BOTH_WAYS)).unwrap();
    for (options, period) in [("line.up", "3 ms"), ("line.csv", "2 s"), ("line.pcap --towards 192.0.2.1", "3.2 s")] {
        let file = options.split(' ').next().unwrap();
        let expected = format!("{file}: --length changes nothing; this trace starts again after {period}");
        refused(&format!("{options} --length 5s"), &expected);
    }
    for to in ["csv", "rattan"] {
        let held = "once.csv: --length changes nothing; the last step holds for ever, also where it is written";
        refused(&format!("once.csv --length 5s --to {to}"), held);
    }
    let steps = "--interval changes nothing; it is for captures, and for packet-delivery traces with --to csv and \
                 --to rattan";
    for options in ["line.up", "line.up --to mahimahi", "line.csv --to csv", "cell.toml --to csv"] {
        let file = options.split(' ').next().unwrap();
        refused(&format!("{options} --interval 1s"), &format!("{file}: {steps}"));
    }
    refused("line.up --rate 1Mbit/s", "line.up: --rate changes nothing; the trace says when packets are sent");
    refused("line.csv --rate 1Mbit/s", "line.csv: --rate changes nothing; each step has a rate");
    refused("once.csv --delay 1ms", "once.csv: --delay changes nothing; each step has a delay");
    refused(
        "--generate cell --rate 1Mbit/s --interval 1s",
        "--generate: --interval changes nothing; it is for a capture, a trace in a file, a scenario",
    );
    refused(
        "--generate cell --rate 1Mbit/s --direction up",
        "--generate: --direction changes nothing; it is for a measurement",
    );
}

/// A trace of mahimahi from a start on is the trace rotated by hand, in every figure: opportunities at 2, 5, 5 and 9 ms
/// of 9 come 0, 0, 4 and 6 ms after 5 ms, and each 9 ms later. `--vary` moves both directions.
#[test]
fn a_start_is_a_rotated_trace() {
    let scratch = scratch();
    std::fs::write(scratch.path.join("cell.up"), "2\n5\n5\n9\n").unwrap();
    std::fs::write(scratch.path.join("rotated.up"), "0\n0\n4\n6\n").unwrap();
    let direction = |name: &str| format!("{name} = {{ delay = \"20 ms\", trace = {{ file = \"cell.up\" }} }}\n");
    let up = "up = { rate = \"1 Mbit/s\", delay = \"20 ms\" }\n";
    let scenario = SCENARIO.replace(up, &direction("up")).replace("line.csv", "cell.up");
    std::fs::write(scratch.path.join("cell.toml"), scenario).unwrap();
    let figures = |text: &str| {
        let summary: serde_json::Value = serde_json::from_str(text).unwrap();
        (summary["flows"].clone(), summary["links"].clone())
    };
    let both = |key: &str, value: &str| {
        ["down", "up"].map(|name| format!(" --set access.{name}.trace.{key}={value}")).concat()
    };
    let by_hand = format!("{}{}", both("file", "rotated.up"), both("repeat", "9ms"));
    let run = |set: &str| figures(&printed(&scratch, &format!("lastmile run cell.toml --json{set}")));
    let moved = run(" --set access.down.trace.start=5ms");
    assert!(moved == run(&by_hand) && moved != run(""));
    let varied = printed(&scratch, "lastmile compare cell.toml --vary access.down.trace.start=0s,5ms --json");
    let varied: serde_json::Value = serde_json::from_str(&varied).unwrap();
    let goodputs = [0, 1].map(|row| varied["runs"][row]["download_bps"].clone());
    assert!(goodputs[0].is_number() && goodputs[0] != goodputs[1], "{goodputs:?}");
}

/// A line of 8 Mbit/s for one of two seconds has 4 Mbit/s in the mean, of which CAKE's shaper has 90 % downstream;
/// upstream it has 95 % of 1 Mbit/s. The table, the document and the page name both.
#[test]
fn a_comparison_names_the_rates_of_shapers() {
    let scratch = scratch();
    let compare = "lastmile compare line.toml --policy none,cake --duration 5s";
    let table = printed(&scratch, &format!("{compare} --out out"));
    assert!(table.contains("down shaper") && table.contains("up shaper"), "{table}");
    assert!(table.contains("3.6 Mbit/s") && table.contains("950 kbit/s"), "{table}");
    let page = std::fs::read_to_string(scratch.path.join("out/report.html")).unwrap();
    assert!(page.contains("down shaper") && page.contains("3.6 Mbit/s"));
    let document: serde_json::Value = serde_json::from_str(&printed(&scratch, &format!("{compare} --json"))).unwrap();
    let rates =
        |row: usize| ["down_shaper_rate_bps", "up_shaper_rate_bps"].map(|key| document["runs"][row][key].as_f64());
    assert_eq!([rates(0), rates(1)], [[None, None], [Some(3.6e6), Some(9.5e5)]]);
}

/// A trace of a line that is slower than any usual one needs its unit.
#[test]
fn the_unit_of_a_slow_trace_is_stated() {
    let scratch = scratch();
    std::fs::write(scratch.path.join("slow.up"), "100000\n3700000\n").unwrap();
    let refused = scratch.run("lastmile trace slow.up");
    assert!(refused.stderr.contains("are these microseconds? A unit of s, ms or us decides"), "{}", refused.stderr);
    let told = printed(&scratch, "lastmile trace slow.up --unit ms --json");
    assert!(told.contains("\"length_s\": 3700.0"), "{told}");
}

/// A capture (pcap, nanoseconds, raw IP) of packets between 192.0.2.1 and 192.0.2.2: their milliseconds, the last
/// octets of source and destination, and their bytes.
fn capture(packets: &[(u64, u8, u8, u32)]) -> Vec<u8> {
    capture_of(packets, 17, |length| length as u16)
}

/// Packets of this IP protocol whose headers have the length that `stated` makes of theirs.
fn capture_of(packets: &[(u64, u8, u8, u32)], protocol: u8, stated: fn(u32) -> u16) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut bytes = words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 101]);
    for (ms, source, destination, length) in packets {
        let ns = ms % 1000 * 1_000_000;
        bytes.extend(words(&[1_000 + (ms / 1000) as u32, ns as u32, 20, *length]));
        let [high, low] = stated(*length).to_be_bytes();
        bytes.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0]);
        bytes.extend([192, 0, 2, *source, 192, 0, 2, *destination]);
    }
    bytes
}

/// Large send offload of Windows leaves the length of the header empty, and BIG TCP of Linux has none for more than 64
/// kB: the frame says it. 30 kB and 185 kB in a second are 240 and 1480 kbit/s.
#[test]
fn a_packet_of_tcp_without_a_length_has_that_of_its_frame() {
    let scratch = Scratch::new();
    let csv = |packets: &[(u64, u8, u8, u32)], stated| {
        std::fs::write(scratch.path.join("tso.pcap"), capture_of(packets, 6, stated)).unwrap();
        printed(&scratch, "lastmile trace tso.pcap --interval 1s --to csv")
    };
    let mut packets = [(0, 1, 2, 30_000), (1_000, 1, 2, 30_000), (2_000, 1, 2, 1_500)];
    let without = csv(&packets, |_| 0);
    assert_eq!(without, "# repeat = \"2 s\"\nat,rate\n0 s,240 kbit/s\n");
    assert_eq!(csv(&packets, |length| length as u16), without);
    packets[1].3 = 185_000;
    let big = csv(&packets, |length| u16::try_from(length).unwrap_or(0));
    assert_eq!(big, "# repeat = \"2 s\"\nat,rate\n0 s,240 kbit/s\n1 s,1.48 Mbit/s\n");
}

/// Host 1 sends 1000 bytes in the first second, 500 in the next and none in the third; host 2 sends none, 250 and 125.
const BOTH_WAYS: [(u64, u8, u8, u32); 6] =
    [(0, 1, 2, 1000), (1000, 1, 2, 500), (1500, 2, 1, 250), (2999, 2, 1, 125), (3000, 1, 2, 60), (3200, 2, 1, 60)];

/// The second of each trace is the second of the capture, whichever direction began it and ended it.
#[test]
fn the_directions_of_a_capture_have_one_beginning_and_one_period() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("line.pcap"), capture(&BOTH_WAYS)).unwrap();
    let towards = |octet: u8| {
        printed(&scratch, &format!("lastmile trace line.pcap --towards 192.0.2.{octet} --interval 1s --to csv"))
    };
    assert_eq!(towards(2), "# repeat = \"3 s\"\nat,rate\n0 s,8 kbit/s\n1 s,4 kbit/s\n2 s,0\n");
    assert_eq!(towards(1), "# repeat = \"3 s\"\nat,rate\n0 s,0\n1 s,2 kbit/s\n2 s,1 kbit/s\n");
}

/// The capture ends 0.2 s into its fourth second. 1560 bytes in 3.2 s are 3.9 kbit/s.
#[test]
fn an_interval_in_which_a_capture_ends_has_no_rate() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("line.pcap"), capture(&BOTH_WAYS)).unwrap();
    let trace = "lastmile trace line.pcap --towards 192.0.2.2 --to csv";
    assert_eq!(
        printed(&scratch, &format!("{trace} --interval 3.2s")),
        "# repeat = \"3.2 s\"\nat,rate\n0 s,3.9 kbit/s\n"
    );
    let output = scratch.run(&format!("{trace} --interval 4s"));
    let expected = "error: line.pcap: its IP packets came within 3.2 s, less than the --interval of 4 s\n";
    assert_eq!((output.code, output.stderr.as_str()), (2, expected));
}

/// Host 1 sends 1560 bytes and host 2 435. Their sum is a rate of no line, and has to be asked for.
#[test]
fn both_directions_of_a_capture_are_not_summed_unasked() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("line.pcap"), capture(&BOTH_WAYS)).unwrap();
    let output = scratch.run("lastmile trace line.pcap --interval 1s --to csv");
    let expected = "error: line.pcap: 1560 bytes to 192.0.2.2 and 435 from it; a trace is of one direction\n\
                    hint: --towards 192.0.2.2, or --towards 0.0.0.0/0 for the sum of both directions\n";
    assert_eq!((output.code, output.stderr.as_str()), (2, expected));
    let sum = printed(&scratch, "lastmile trace line.pcap --towards 0.0.0.0/0 --interval 1s --to csv");
    assert_eq!(sum, "# repeat = \"3 s\"\nat,rate\n0 s,8 kbit/s\n1 s,6 kbit/s\n2 s,1 kbit/s\n");
    let down: Vec<_> = BOTH_WAYS.into_iter().filter(|(_, source, ..)| *source == 1).collect();
    std::fs::write(scratch.path.join("down.pcap"), capture(&down)).unwrap();
    let one = printed(&scratch, "lastmile trace down.pcap --interval 1s --to csv");
    assert_eq!(one, "# repeat = \"3 s\"\nat,rate\n0 s,8 kbit/s\n1 s,4 kbit/s\n2 s,0\n");
}

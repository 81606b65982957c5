//! `lastmile measure --detect` over emulated lines, with real packets and the scheduler's noise. The
//! tests need root, network namespaces and TUN devices, so they run only on request
//! (`scripts/live-tests.sh detect`).

use std::process::Output;

use lastmile_linklayer::LinkLayer;
use serde_json::Value;

use crate::live::{json, lastmile};
use crate::measure::{Bench, number, phase, series};

/// One way of a line: rate in bit/s and buffer in IP bytes.
type Way = (f64, f64);

fn line(preset: &str, down: Way, up: Way) -> String {
    jittered(preset, "", down, up)
}

/// The line with another key in both directions.
fn jittered(preset: &str, key: &str, down: Way, up: Way) -> String {
    let way = |(rate, buffer): Way| {
        let queue = format!("queue = {{ kind = \"fifo\", limit = \"{buffer} B\" }}");
        format!("{{ rate = \"{rate} bit/s\", delay = \"8 ms\", {key}{queue} }}")
    };
    format!(
        "[access]\nencapsulation = \"{preset}\"\ndown = {}\nup = {}\nbackbone = {{ delay = \"0 ms\" }}\n",
        way(down),
        way(up)
    )
}

fn succeeded(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// One way of a line as it was detected.
struct Judged {
    /// The names, or the reason for none.
    named: String,
    sure: bool,
    /// Relative errors of the gross rate and the buffer, where they are claimed.
    rate: Option<f64>,
    buffer: Option<f64>,
    /// Differences from the truth.
    faults: Vec<String>,
}

/// A way as it was detected, next to the truth: no wrong name or limiter, the rate within 1 %, the
/// buffer within 10 %.
fn judged(side: &Value, truth: LinkLayer, (rate, buffer): Way) -> Judged {
    let encapsulation = &side["encapsulation"];
    let (verdict, first) = (encapsulation["verdict"].as_str().unwrap(), &encapsulation["candidates"][0]);
    let sure = verdict == "sure";
    let error = |found: &Value, truth: f64| found.as_f64().map(|found| found / truth - 1.0);
    let rate = error(&side["gross_bps"]["value"], rate).filter(|_| sure);
    let buffer = error(&side["buffer"]["bytes"]["value"], buffer);
    let mut faults = Vec::new();
    if side["limiter"]["kind"] != "line" {
        faults.push(format!("limited by {}", side["limiter"]));
    }
    let right = first["overhead_bytes"] == truth.overhead() && first["framing"] == truth.framing().to_string().as_str();
    if sure && !right {
        faults.push(format!("named {first}"));
    }
    if sure && rate.is_none() {
        faults.push("a name without a rate".to_owned());
    }
    faults.extend(rate.filter(|error| error.abs() >= 0.01).map(|error| format!("rate {:+.2} %", error * 100.0)));
    faults.extend(buffer.filter(|error| error.abs() >= 0.10).map(|error| format!("buffer {:+.1} %", error * 100.0)));
    let names: Vec<&str> = first["presets"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let named = if sure { names.join("=") } else { format!("{verdict}: {}", names.join("=")) };
    Judged { named, sure, rate, buffer, faults }
}

/// Detects the line, and holds what was found against it. Returns the ways that have a name.
fn detected(bench: &Bench, preset: &str, down: Way, up: Way) -> usize {
    let output = bench.output(&["--detect", "--scenario", "detected.toml"]);
    succeeded(&output);
    let found = json(&output.stdout);
    assert!(number(&found["took_s"]) < 180.0, "{found:#}");
    let truth = LinkLayer::from_name(preset).unwrap();
    let ways = [("down", down), ("up", up)].map(|(way, of)| judged(&found[way], truth, of));
    assert!(ways.iter().all(|way| way.faults.is_empty()), "{found:#}");
    ways.iter().filter(|way| way.sure).count()
}

/// The traffic of a measurement with one upload: the load, both series of probes, and the server's reports of
/// received bytes, ten a second, which the loaded direction acknowledges. At 768 kbit/s the small packets are
/// 4 % of the line and a packet of the queue of 32 kB.
const MEASUREMENT: &str = r#"
[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"

[[traffic]]
name = "icmp"
kind = "ping"
interval = "100 ms"
start = "3 s"

[[traffic]]
name = "udp"
kind = "ping"
protocol = "udp"
size = "88 B"
interval = "100 ms"

[[traffic]]
name = "reports"
kind = "writes"
direction = "down"
size = "46 B"
rate = "3680 bit/s"
"#;

/// Latency under an upload of 30 s, measured over the line three times and simulated in the scenario that detection
/// wrote: medians after the first 3 s, within 10 %. Of three measurements the median counts, since CUBIC on a queue of
/// twenty packets has two regimes: a loss comes alone, or with a second one.
fn latency_agrees(bench: &Bench) {
    let mut measured = [(); 3].map(|()| {
        let measured = bench.measure(&["--phases", "upload", "--streams", "1", "--duration", "30 s"]);
        number(&series(phase(&measured, "upload"), "icmp")["round_trip"]["p50_s"]["value"])
    });
    measured.sort_by(f64::total_cmp);
    let live = measured[1];
    let scenario = std::fs::read_to_string(bench.scratch.path.join("detected.toml")).unwrap();
    let line = scenario.split("[[traffic]]").next().unwrap().replace("duration = \"60 s\"", "duration = \"30 s\"");
    std::fs::write(bench.scratch.path.join("upload.toml"), line + MEASUREMENT).unwrap();
    let output = lastmile(&bench.scratch.path, &["run", "upload.toml", "--json"]).output().unwrap();
    succeeded(&output);
    let simulated = number(&json(&output.stdout)["probes"][0]["rtt_s"]["p50"]);
    assert!((simulated / live - 1.0).abs() < 0.10, "simulated {simulated} s, measured {live} s\n{scenario}");
}

/// Detections take up to three minutes each: all but one run with `LASTMILE_LONG` alone.
fn takes_its_time() -> bool {
    std::env::var_os("LASTMILE_LONG").is_some()
}

#[test]
#[ignore = "real packets: run scripts/live-tests.sh"]
fn an_adsl_line_is_detected_and_its_scenario_delays_as_it_does() {
    if !takes_its_time() {
        return;
    }
    let (down, up) = ((6e6, 64_000.0), (768e3, 32_000.0));
    let Some(bench) = Bench::new(&line("pppoe-llcsnap", down, up), &[]) else { return };
    assert_eq!(detected(&bench, "pppoe-llcsnap", down, up), 2, "cells are large: both ways have a name");
    latency_agrees(&bench);
}

#[test]
#[ignore = "real packets: run scripts/live-tests.sh"]
fn a_cable_line_is_detected_and_its_scenario_delays_as_it_does() {
    if !takes_its_time() {
        return;
    }
    let (down, up) = ((20e6, 206_000.0), (2e6, 64_000.0));
    let Some(bench) = Bench::new(&line("docsis", down, up), &[]) else { return };
    assert!(detected(&bench, "docsis", down, up) > 0);
    latency_agrees(&bench);
}

#[test]
#[ignore = "real packets: run scripts/live-tests.sh"]
fn a_vdsl_line_gets_no_wrong_name() {
    let (down, up) = ((30e6, 206_000.0), (6e6, 64_000.0));
    let Some(bench) = Bench::new(&line("bridged-ptm", down, up), &[]) else { return };
    detected(&bench, "bridged-ptm", down, up);
    if takes_its_time() {
        latency_agrees(&bench);
    }
}

/// FQ-CoDel holds the upload below its buffer, and pings wait for a packet at most. On a busy machine the time may be
/// up before a queue has been examined: its kind then stays open, and is never a wrong one.
#[test]
#[ignore = "real packets: run scripts/live-tests.sh"]
fn a_line_with_fq_codel_is_detected_and_its_scenario_delays_as_it_does() {
    let way = |rate| format!("{{ rate = \"{rate} Mbit/s\", delay = \"8 ms\", queue = {{ kind = \"fq-codel\" }} }}");
    let line = format!(
        "[access]\nencapsulation = \"docsis\"\ndown = {}\nup = {}\nbackbone = {{ delay = \"0 ms\" }}\n",
        way(20),
        way(4)
    );
    let Some(bench) = Bench::new(&line, &[]) else { return };
    let output = bench.output(&["--detect", "--scenario", "detected.toml"]);
    succeeded(&output);
    let found = json(&output.stdout);
    let known = ["down", "up"].map(|way| {
        let discipline = &found[way]["discipline"];
        let is_right = discipline["kinds"] == serde_json::json!(["fq-codel"]);
        assert!(discipline.is_null() || is_right, "{found:#}");
        assert!(found[way]["buffer"].is_null(), "{found:#}");
        is_right
    });
    assert!(known.contains(&true), "{found:#}");
    if known == [true; 2] && takes_its_time() {
        latency_agrees(&bench);
    }
}

/// 206 kB in front of 1 Mbit/s delay by 1.8 s.
#[test]
#[ignore = "real packets: run scripts/live-tests.sh"]
fn a_line_with_a_large_buffer_is_detected_and_its_scenario_delays_as_it_does() {
    if !takes_its_time() {
        return;
    }
    let (down, up) = ((8e6, 206_000.0), (1e6, 206_000.0));
    let Some(bench) = Bench::new(&line("pppoa-vcmux", down, up), &[]) else { return };
    assert_eq!(detected(&bench, "pppoa-vcmux", down, up), 2, "cells are large: both ways have a name");
    latency_agrees(&bench);
}

/// Preset, rate and buffer down, rate and buffer up: each ATM encapsulation that differs on the wire
/// between 512 kbit/s and 16 Mbit/s, and lines without cells to 300 Mbit/s, with buffers of 32, 64
/// and 206 kB.
#[rustfmt::skip]
const LINES: [(&str, Way, Way); 20] = [
    ("ipoa-vcmux", (1e6, 32e3), (512e3, 206e3)),
    ("ipoa-llcsnap", (16e6, 206e3), (1e6, 64e3)),
    ("bridged-vcmux", (16e6, 206e3), (1e6, 32e3)),
    ("bridged-llcsnap", (2e6, 64e3), (512e3, 64e3)),
    ("bridged-vcmux-fcs", (4e6, 64e3), (768e3, 64e3)),
    ("bridged-llcsnap-fcs", (8e6, 64e3), (1e6, 206e3)),
    ("pppoa-vcmux", (8e6, 206e3), (768e3, 32e3)),
    ("pppoa-llc", (6e6, 206e3), (640e3, 32e3)),
    ("pppoe-llcsnap", (512e3, 32e3), (512e3, 206e3)),
    ("pppoe-llcsnap-fcs", (12e6, 206e3), (1e6, 64e3)),
    ("conservative", (2e6, 32e3), (512e3, 206e3)),
    ("docsis", (20e6, 206e3), (2e6, 32e3)),
    ("docsis", (100e6, 206e3), (10e6, 64e3)),
    ("docsis", (300e6, 206e3), (25e6, 206e3)),
    ("bridged-ptm", (50e6, 206e3), (10e6, 64e3)),
    ("bridged-ptm", (300e6, 206e3), (50e6, 206e3)),
    ("pppoe-ptm", (17e6, 64e3), (2e6, 32e3)),
    ("pppoe-ptm", (100e6, 206e3), (40e6, 206e3)),
    ("ethernet", (10e6, 64e3), (10e6, 32e3)),
    ("ethernet", (100e6, 206e3), (100e6, 206e3)),
];

/// Real packets over each line of the table, with 5 ms of jitter, an hour in all: `make
/// detect-emulated`. It prints a row for each way. A way may stay without a name, and may not get a
/// wrong one. `LASTMILE_PRESETS` names presets, with commas.
#[test]
#[ignore = "real packets: run scripts/live-tests.sh"]
fn each_line_of_the_table_gets_its_name_or_none() {
    if !takes_its_time() {
        return;
    }
    let mut faults = Vec::new();
    println!("| line | way | named | rate's error | buffer's error | time |");
    println!("| --- | --- | --- | ---: | ---: | ---: |");
    let chosen = std::env::var("LASTMILE_PRESETS").ok();
    let is_chosen = |preset: &str| chosen.as_ref().is_none_or(|names| names.split(',').any(|name| name == preset));
    for (preset, down, up) in LINES.into_iter().filter(|(preset, ..)| is_chosen(preset)) {
        let name = format!("{preset} {}/{} kbit/s, {}/{} kB", down.0 / 1e3, up.0 / 1e3, down.1 / 1e3, up.1 / 1e3);
        let Some(bench) = Bench::new(&jittered(preset, "jitter = \"5 ms\", ", down, up), &[]) else { return };
        let output = bench.output(&["--detect"]);
        succeeded(&output);
        let found = json(&output.stdout);
        let took_s = number(&found["took_s"]);
        for (way, truth) in [("down", down), ("up", up)] {
            let percent = |error: Option<f64>| error.map_or("-".to_owned(), |error| format!("{:+.2} %", error * 100.0));
            let Judged { named, rate, buffer, faults: of_way, .. } =
                judged(&found[way], LinkLayer::from_name(preset).unwrap(), truth);
            println!("| {name} | {way} | {named} | {} | {} | {took_s:.0} s |", percent(rate), percent(buffer));
            faults.extend(of_way.into_iter().map(|fault| format!("{name} {way}: {fault}")));
        }
        if took_s >= 180.0 {
            faults.push(format!("{name}: {took_s} s"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Without a server of lastmile: cells of a slow line by echo requests alone.
#[test]
#[ignore = "real packets: run scripts/live-tests.sh"]
fn echoes_alone_detect_the_cells_of_a_slow_line() {
    if !takes_its_time() {
        return;
    }
    let Some(bench) = Bench::new(&line("pppoa-vcmux", (2e6, 64_000.0), (512e3, 32_000.0)), &[]) else { return };
    let output = bench.output(&["--detect-idle"]);
    succeeded(&output);
    let found = json(&output.stdout);
    assert_eq!(found["verdict"], "sure", "{found:#}");
    assert_eq!(found["candidates"][0]["offset_bytes"], 10, "{found:#}");
}

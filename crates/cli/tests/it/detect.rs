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
    let way = |(rate, buffer): Way| {
        format!(
            "{{ rate = \"{rate} bit/s\", delay = \"8 ms\", queue = {{ kind = \"fifo\", limit = \"{buffer} B\" }} }}"
        )
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

/// Detects the line, and holds what was found against it. Returns the ways that have a name.
fn detected(bench: &Bench, preset: &str, down: Way, up: Way) -> usize {
    let output = bench.output(&["--detect", "--scenario", "detected.toml"]);
    succeeded(&output);
    let found = json(&output.stdout);
    assert!(number(&found["took_s"]) < 180.0, "{found:#}");
    let truth = LinkLayer::from_name(preset).unwrap();
    let mut named = 0;
    for (way, (rate, buffer)) in [("down", down), ("up", up)] {
        let side = &found[way];
        assert_eq!(side["limiter"]["kind"], "line", "{found:#}");
        if side["encapsulation"]["verdict"] == "sure" {
            named += 1;
            let first = &side["encapsulation"]["candidates"][0];
            let overhead = first["overhead_bytes"].as_i64().unwrap();
            assert_eq!(overhead, i64::from(truth.overhead()), "{found:#}");
            assert_eq!(first["framing"], truth.framing().to_string().as_str(), "{found:#}");
            assert!((number(&side["gross_bps"]["value"]) / rate - 1.0).abs() < 0.01, "{found:#}");
        }
        if let bytes @ Value::Number(_) = &side["buffer"]["bytes"]["value"] {
            assert!((number(bytes) / buffer - 1.0).abs() < 0.10, "{found:#}");
        }
    }
    named
}

/// Latency under an upload, measured over the line and simulated in the scenario that detection
/// wrote: medians within 10 %.
fn latency_agrees(bench: &Bench) {
    let measured =
        bench.measure(&["--phases", "upload", "--streams", "1", "--duration", "15 s", "--congestion", "cubic"]);
    let live = number(&series(phase(&measured, "upload"), "icmp")["round_trip"]["p50_s"]["value"]);
    let scenario = std::fs::read_to_string(bench.scratch.path.join("detected.toml")).unwrap();
    let line = scenario.split("[[traffic]]").next().unwrap().replace("duration = \"60 s\"", "duration = \"15 s\"");
    let traffic = "[[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\n\n\
                   [[traffic]]\nname = \"ping\"\nkind = \"ping\"\ninterval = \"100 ms\"\nstart = \"3 s\"\n";
    std::fs::write(bench.scratch.path.join("upload.toml"), line + traffic).unwrap();
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

//! `lastmile lab` with the kernel's TCP: needs root, network namespaces and TUN devices, so this test runs only when asked for
//! (`scripts/live-tests.sh`).

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::transcript::{Scratch, is_root};

/// A download with a window of 32 KiB, which the queue holds: nothing is lost, and both clocks come to the same.
const SCENARIO: &str = r#"
name = "A download and a ping"
duration = "6 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "4 ms" }
up = { rate = "512 kbit/s", delay = "4 ms" }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
tcp = { variant = "cubic", receive_window = "32 KiB" }

[[traffic]]
name = "voice"
kind = "voice"
direction = "up"
dscp = 46
start = "2 s"

[[traffic]]
name = "ping"
kind = "ping"
interval = "50 ms"
"#;

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn folder() -> Option<Scratch> {
    if !is_root() || !Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: needs root and /dev/net/tun");
        return None;
    }
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("lab.toml"), SCENARIO).unwrap();
    Some(scratch)
}

fn row<'a>(rows: &'a Value, phase: &str, of: &str, measure: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| {
        (row["phase"].as_str(), row["of"].as_str(), row["measure"].as_str()) == (Some(phase), Some(of), Some(measure))
    });
    found.unwrap_or_else(|| panic!("no {measure} of {of} {phase} in {rows}"))
}

/// One file under two clocks: the simulator's TCP, and the kernel's.
#[test]
#[ignore = "needs root: real packets"]
fn kernel_tcp_gets_what_the_simulated_one_gets() {
    let Some(scratch) = folder() else { return };
    let output = Command::new(env!("CARGO_BIN_EXE_lastmile"))
        .args(["lab", "lab.toml", "--both", "--json", "--out", "results"])
        .current_dir(&scratch.path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = &document["rows"];
    let goodput = row(rows, "during voice", "download", "goodput_bps");
    assert!(goodput["deviation"].as_f64().unwrap().abs() < 0.05, "{goodput}");
    let ping = row(rows, "during voice", "ping", "rtt_p50_s");
    let apart = (ping["median"].as_f64().unwrap() - ping["simulated"].as_f64().unwrap()).abs();
    assert!(apart < 0.002 || ping["deviation"].as_f64().unwrap().abs() < 0.1, "{ping}");

    let live = &document["live"][0];
    assert_eq!(live["clock"], "monotonic");
    assert_eq!(live["conservation"]["holds"], true);
    let transfer = &live["live"]["transfers"][0];
    assert_eq!(transfer["congestion"], "cubic");
    assert_eq!(transfer["payload_bytes"], 1460);
    // One packet of voice every 20 ms for 4 s, all of which arrive.
    let voice = &live["flows"][1];
    assert_eq!((voice["data_packets"].as_u64(), voice["name"].as_str()), (Some(200), Some("voice")));
    for file in ["report.html", "live/summary.json", "live/live.json", "live/series.parquet", "simulated/summary.json"]
    {
        assert!(scratch.path.join("results").join(file).exists(), "{file}");
    }
}

/// The sum of the counters of this name of a link.
fn counted(summary: &Value, link: &str, name: &str) -> u64 {
    let link = summary["links"].as_array().unwrap().iter().find(|found| found["name"] == link).unwrap();
    let counters = link["counters"].as_array().unwrap().iter().filter(|counter| counter["name"] == name);
    counters.map(|counter| counter["value"].as_u64().unwrap()).sum()
}

/// A middlebox before the modem and behind the DSLAM: its clamp hears in one direction what the kernel's handshake says in the other.
#[test]
#[ignore = "needs root: real packets"]
fn a_policy_stands_behind_the_downstream_too() {
    let Some(scratch) = folder() else { return };
    let text = SCENARIO.replace("[access]\n", "[access]\npolicy = \"full-both-ways\"\n").replace("32 KiB", "256 KiB");
    std::fs::write(scratch.path.join("lab.toml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_lastmile"))
        .args(["lab", "lab.toml", "--both", "--json"])
        .current_dir(&scratch.path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let goodput = row(&document["rows"], "during voice", "download", "goodput_bps");
    assert!(goodput["deviation"].as_f64().unwrap().abs() < 0.1, "{goodput}");
    for summary in [&document["simulated"], &document["live"][0]] {
        assert_eq!(summary["conservation"]["holds"], true);
        // Of the download alone: the upstream has no other TCP.
        assert_eq!(counted(summary, "middlebox-down", "answers"), 1);
        assert_eq!(counted(summary, "middlebox-up", "answered"), 1);
        assert_eq!(counted(summary, "middlebox-up", "passed_unconfirmed_scale"), 0);
        assert!(counted(summary, "middlebox-up", "clamped") > 100);
    }
}

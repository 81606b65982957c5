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

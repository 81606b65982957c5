//! `lastmile analyse`, compared with the counters of the simulator whose captures it reads, and
//! with tshark.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The captures at the senders of a download and of an upload, and their directions.
const SENDERS: [(&str, &str); 2] = [("server-gateway", "down"), ("client-cpe", "up")];
const VARIANTS: [&str; 5] = ["tahoe", "reno", "newreno", "sack", "cubic"];
const LOSSES: [&[&str]; 3] = [
    &["access.down.loss=2 %", "access.up.loss=2 %"],
    &["access.down.loss=10 %", "access.up.loss=5 %"],
    &["access.down.loss=5 %", "tcp.timestamps=true", "tcp.min_rto=1 s"],
];

const SCENARIO: &str = r#"
name = "Losses in both directions"
duration = "60 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "4 Mbit/s", delay = "10 ms", queue = { kind = "fifo", limit = "40 packets" } }
up = { rate = "1 Mbit/s", delay = "10 ms", queue = { kind = "fifo", limit = "40 packets" } }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
count = 2

[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"
start = "5 s"
"#;

fn lastmile(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lastmile")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = lastmile(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// TCP settings whose repairs are unambiguous in a capture: no delayed ACKs, and no waiting for a
/// millisecond's worth of window.
const PLAIN_TCP: [&str; 9] = [
    "tcp.variant=sack",
    "tcp.timestamps=false",
    "tcp.quick_acks=false",
    "tcp.delayed_ack=40 ms",
    "tcp.tso_deferral=false",
    "tcp.receive_window=65535 B",
    "tcp.byte_counting=2",
    "start_jitter=0 s",
    "access.lan.rate=100 Mbit/s",
];

/// Runs the scenario with captures at both senders, and returns the folder of its results.
fn simulate(name: &str, overrides: &[&str]) -> String {
    let dir = folder(name);
    let file = dir.join("losses.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let (file, out) = (file.to_str().unwrap().to_owned(), dir.join("out").to_str().unwrap().to_owned());
    let mut arguments = vec!["run", &file, "--out", &out, "--json"];
    for (link, _) in SENDERS {
        arguments.extend(["--capture", link]);
    }
    for change in PLAIN_TCP.iter().chain(overrides) {
        arguments.extend(["--set", change]);
    }
    json(&arguments);
    out
}

fn sum(rows: &Value, direction: &str, name: &str) -> u64 {
    let rows = rows.as_array().unwrap().iter().filter(|row| row["direction"] == direction);
    rows.filter_map(|row| row[name].as_u64()).sum()
}

/// One in `parts`, and one more.
fn run_share(count: u64, parts: u64) -> u64 {
    1 + count / parts
}

/// A capture at the sender shows every expiry of a timer and every fast retransmit, and the
/// simulator counts them.
#[test]
fn timeouts_and_fast_retransmits_are_those_that_the_simulator_counted() {
    let mut failures = Vec::new();
    let mut seen = [0; 2];
    for variant in &VARIANTS {
        let mut totals = [[0; 2]; 2];
        for (number, losses) in LOSSES.iter().enumerate() {
            let tcp = format!("tcp.variant={variant}");
            let by_number =
                ["tcp.loss_detection=rfc6675", "tcp.recovery=rfc6675", "tcp.tail_loss_probe=false", tcp.as_str()];
            let overrides: Vec<&str> = losses.iter().copied().chain(by_number).collect();
            let out = simulate(&format!("analyse-{variant}-{number}"), &overrides);
            let summary: Value =
                serde_json::from_slice(&std::fs::read(Path::new(&out).join("summary.json")).unwrap()).unwrap();
            for (link, direction) in SENDERS {
                let capture = format!("{out}/{link}.pcapng");
                let analysis = json(&["analyse", &capture, "--json"]);
                for (kind, name) in ["timeouts", "fast_retransmits", "retransmissions"].iter().enumerate() {
                    let own = sum(&analysis["files"][0]["connections"], direction, name);
                    let run = sum(&summary["flows"], direction, name);
                    if let Some(seen) = seen.get_mut(kind) {
                        *seen += run;
                        totals[kind][0] += own;
                        totals[kind][1] += run;
                    }
                    // Until a sender passes over SACKed octets it is not known to use SACK.
                    let selective = ["sack", "cubic"].contains(variant);
                    let allowed = match *name {
                        "fast_retransmits" if selective => run - run / 20..=run,
                        "timeouts" if selective => run - run / 40..=run + 1 + run / 50,
                        _ => run..=run,
                    };
                    if !allowed.contains(&own) {
                        failures.push(format!("{overrides:?} {direction}: {name} {own}, simulator {run}"));
                    }
                }
            }
        }
        // All runs of a variant together are closer: 2 % of the timeouts, 3 % of the fast retransmits.
        for ([own, run], most) in totals.into_iter().zip([run_share(totals[0][1], 50), run_share(totals[1][1], 33)]) {
            if own.abs_diff(run) > most {
                failures.push(format!("{variant}: {own} in all, simulator {run}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(seen.iter().all(|count| *count > 500), "{seen:?}");
}

/// With RACK and probes (RFC 8985) a capture cannot distinguish the probe of a single segment from
/// a timeout, nor a timeout from a reordering timer that ends a round trip after the last new
/// acknowledgement. All other counts agree.
#[test]
fn senders_with_rack_and_probes_are_told_nearly_as_well() {
    let mut seen = [0; 3];
    for (number, losses) in LOSSES.iter().enumerate() {
        let out = simulate(&format!("analyse-rack-{number}"), losses);
        let summary: Value =
            serde_json::from_slice(&std::fs::read(Path::new(&out).join("summary.json")).unwrap()).unwrap();
        for (link, direction) in SENDERS {
            let analysis = json(&["analyse", &format!("{out}/{link}.pcapng"), "--json"]);
            let both = |name: &str| {
                (sum(&analysis["files"][0]["connections"], direction, name), sum(&summary["flows"], direction, name))
            };
            let told = format!("{losses:?} {direction}");
            let (own, run) = both("retransmissions");
            assert_eq!(own, run, "{told}: retransmissions");
            seen[0] += run;
            let (own, run) = both("fast_retransmits");
            assert!(own.abs_diff(run) <= 1 + run / 50, "{told}: fast retransmits {own}, simulator {run}");
            seen[1] += run;
            let (own, run) = both("timeouts");
            assert!((run..=run + 3 + run / 2).contains(&own), "{told}: timeouts {own}, simulator {run}");
            seen[2] += run;
        }
    }
    assert!(seen[0] > 900 && seen[1] > 600 && seen[2] > 10, "{seen:?}");
}

/// At the receiver the timestamps tell when a packet was sent and what its sender knew. Retransmissions that
/// were lost are missing there, and some repairs of these seem to be timeouts.
#[test]
fn at_the_receiver_causes_are_those_of_the_sender() {
    let mut seen = [0; 2];
    for (number, losses) in LOSSES.iter().enumerate() {
        let overrides: Vec<&str> = losses.iter().copied().chain(["tcp.timestamps=true"]).collect();
        let out = simulate(&format!("analyse-receiver-{number}"), &overrides);
        let summary: Value =
            serde_json::from_slice(&std::fs::read(Path::new(&out).join("summary.json")).unwrap()).unwrap();
        for (link, direction) in [("client-cpe", "down"), ("server-gateway", "up")] {
            let analysis = json(&["analyse", &format!("{out}/{link}.pcapng"), "--json"]);
            let rows = &analysis["files"][0]["connections"];
            for (kind, name) in ["fast_retransmits", "timeouts"].iter().enumerate() {
                let (own, run) = (sum(rows, direction, name), sum(&summary["flows"], direction, name));
                seen[kind] += run;
                assert!(own.abs_diff(run) <= 3 + run / 5, "{losses:?} {direction}: {name} {own}, simulator {run}");
            }
            let rows = rows.as_array().unwrap().iter().filter(|row| row["direction"] == direction);
            let mut idle_shares = Vec::new();
            for row in rows {
                assert_eq!((&row["vantage"], &row["limits_from"]), (&"receiver".into(), &"timestamps".into()));
                let idle = row["limited_by"]["application"].as_f64().unwrap();
                assert!(idle < 0.03, "{losses:?} {direction}: {idle}");
                idle_shares.push(idle);
            }
            // Shares of single connections swing more than their mean.
            let mean = idle_shares.iter().sum::<f64>() / idle_shares.len() as f64;
            assert!(mean < 0.03, "{losses:?} {direction}: {idle_shares:?}");
        }
    }
    assert!(seen[0] > 600 && seen[1] > 10, "{seen:?}");
}

/// At 160 Mbit/s a unit of timestamps, 1 ms, is 20 kB: several ACKs have the same timestamp.
#[test]
fn a_full_receive_window_shows_at_the_receiver_of_a_fast_line() {
    const FAST: &str = r#"
name = "A window of 2 MB over 200 Mbit/s"
duration = "4 s"

[access]
encapsulation = "docsis"
down = { rate = "200 Mbit/s", delay = "20 ms", queue = { limit = "100 ms" } }
up = { rate = "25 Mbit/s", delay = "20 ms", queue = { limit = "100 ms" } }
backbone = { delay = "30 ms", rate = "10 Gbit/s" }
lan = { rate = "10 Gbit/s" }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
tcp = { receive_window = "2 MB" }
"#;
    let dir = folder("analyse-fast");
    let (file, out) = (dir.join("fast.toml"), dir.join("out"));
    std::fs::write(&file, FAST).unwrap();
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let links = ["--capture", "server-gateway", "--capture", "client-cpe"];
    assert!(lastmile(&[&["run", file, "--out", out][..], &links].concat()).status.success());
    let shares = ["server-gateway", "client-cpe"].map(|link| {
        let analysis = json(&["analyse", &format!("{out}/{link}.pcapng"), "--json"]);
        analysis["files"][0]["connections"][0]["limited_by"]["receive_window"].as_f64().unwrap()
    });
    assert!(shares[0] > 0.7 && (shares[0] - shares[1]).abs() < 0.03, "{shares:?}");
}

#[test]
fn the_folder_of_a_run_has_its_counters_beside_those_of_its_captures() {
    let out = simulate(
        "analyse-folder",
        &["access.down.loss=2 %", "tcp.loss_detection=rfc6675", "tcp.recovery=rfc6675", "tcp.tail_loss_probe=false"],
    );
    let document = json(&["analyse", &out, "--json"]);
    let files = document["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    for (file, (_, direction)) in files.iter().zip([("", "up"), ("", "down")]) {
        let counters = file["run"]["counters"].as_array().unwrap();
        for counter in counters.iter().filter(|counter| counter["direction"] == direction) {
            assert_eq!(counter["run"], counter["capture"], "{counter}");
        }
    }
    let csv = lastmile(&["analyse", &out, "--csv"]);
    let text = String::from_utf8(csv.stdout).unwrap();
    let mut lines = text.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert!(columns > 50 && lines.clone().count() >= 6);
    assert!(lines.all(|line| line.split(',').count() == columns), "{text}");
    let text = String::from_utf8(lastmile(&["analyse", &out]).stdout).unwrap();
    assert!(text.contains("Jain's index") && text.contains("The run itself"), "{text}");
    // A kernel does not count fast retransmits.
    let path = Path::new(&out).join("summary.json");
    let mut summary: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for flow in summary["flows"].as_array_mut().unwrap() {
        flow["fast_retransmits"] = Value::Null;
    }
    std::fs::write(&path, summary.to_string()).unwrap();
    let document = json(&["analyse", &out, "--json"]);
    let counters = document["files"][0]["run"]["counters"].as_array().unwrap();
    let fast = counters.iter().find(|counter| counter["name"] == "fast retransmits").unwrap();
    assert!(fast["run"].is_null() && fast["capture"].is_u64(), "{fast}");
}

#[test]
fn a_damaged_capture_is_analysed_up_to_the_damage_and_what_is_none_is_refused() {
    let out = simulate("analyse-damaged", &[]);
    let whole = std::fs::read(format!("{out}/server-gateway.pcapng")).unwrap();
    let cut = format!("{out}/cut.pcapng");
    std::fs::write(&cut, &whole[..whole.len() / 2 + 1]).unwrap();
    let output = lastmile(&["analyse", &cut, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.contains("cut.pcapng was NOT READ TO ITS END: only its first"), "{talk}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["files"][0]["packets"].as_u64().unwrap() > 1_000);
    for (file, text) in [
        ("no-such-file.pcap", "no such file"),
        (concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "neither pcap nor pcapng"),
    ] {
        let output = lastmile(&["analyse", file]);
        assert_eq!(output.status.code(), Some(2));
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains(text) && talk.contains("hint:"), "{talk}");
    }
    let output = lastmile(&["analyse", &cut, "--connection", "99"]);
    assert_eq!(output.status.code(), Some(2));
}

/// tshark counts bytes and retransmissions of the same packets. Skipped where it is not installed.
#[test]
fn tshark_counts_the_same_bytes_and_repeats() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let out = simulate("analyse-tshark", &["access.down.loss=2 %", "tcp.variant=cubic"]);
    let capture = format!("{out}/server-gateway.pcapng");
    let fields =
        ["ip.src", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.duplicate_ack"];
    let mut command = Command::new("tshark");
    command.args(["-r", &capture, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let sent = || rows.iter().filter(|row| row[0] == "10.0.0.5");
    let bytes: u64 = sent().filter_map(|row| row[1].parse::<u64>().ok()).sum();
    let again = sent().filter(|row| !row[2].is_empty() || !row[3].is_empty()).count() as u64;
    let document = json(&["analyse", &capture, "--json"]);
    let connections = &document["files"][0]["connections"];
    let own = |name| sum(connections, "down", name);
    assert_eq!(own("bytes_new") + own("bytes_repeated"), bytes);
    assert_eq!(own("retransmissions"), again);
}

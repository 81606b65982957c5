//! `lastmile analyse`: pages, tables of segments, two captures joined, flows of datagrams, and captures
//! with faults.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const SCENARIO: &str = r#"
name = "Both ends"
duration = "20 s"

[access]
encapsulation = "ip"
down = { rate = "8 Mbit/s", delay = "20 ms", loss = "0.5 %", queue = { kind = "fifo", limit = "60 packets" } }
up = { rate = "1 Mbit/s", delay = "20 ms" }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"

[[traffic]]
name = "call"
kind = "voice"
direction = "both"
"#;

fn lastmile(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lastmile")).args(arguments).output().unwrap()
}

fn document(arguments: &[&str]) -> Value {
    let output = lastmile(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["files"][0].clone()
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Runs the scenario, captured at both hosts, and returns its folder.
fn simulate(name: &str) -> PathBuf {
    let dir = folder(name);
    let (file, out) = (dir.join("both.toml"), dir.join("out"));
    std::fs::write(&file, SCENARIO).unwrap();
    let (file, path) = (file.to_str().unwrap(), out.to_str().unwrap());
    let output = lastmile(&["run", file, "--out", path, "--capture", "server-gateway,client-cpe"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}

fn captured(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name)
}

#[test]
fn a_page_and_a_table_of_segments_are_written() {
    let out = simulate("analyse-page");
    let file = |name: &str| out.join(name).to_str().unwrap().to_owned();
    let capture = file("server-gateway.pcapng");
    let (page, segments) = (file("page.html"), file("segments.parquet"));
    let read = || (std::fs::read_to_string(&page).unwrap(), std::fs::read(&segments).unwrap());
    let plain = document(&["analyse", &capture, "--json"]);
    assert_eq!(document(&["analyse", &capture, "--json", "--page", &page, "--segments", &segments]), plain);
    let first = read();
    document(&["analyse", &capture, "--json", "--page", &page, "--segments", &segments]);
    assert_eq!(read(), first, "the same bytes for the same capture");
    let (text, bytes) = first;
    for word in
        ["Sequence", "congestion window (estimated)", "fast retransmit", "Round-trip time", "ACK spacing", "udp"]
    {
        assert!(text.contains(word), "{word}");
    }
    let addresses = text.matches("http:").count() + text.matches("https:").count();
    assert_eq!(addresses, text.matches("http://www.w3.org/2000/svg").count());
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1") && bytes.len() > 20_000);
    let two = lastmile(&["analyse", &capture, &file("client-cpe.pcapng"), "--page", &page]);
    assert_eq!(two.status.code(), Some(2));
    let folder = lastmile(&["analyse", out.to_str().unwrap(), "--segments", &segments]);
    assert_eq!(folder.status.code(), Some(2), "two captures in the folder");
}

/// The simulator's hosts share a clock, and it knows what arrived. 20 ms each way and 10 behind the line,
/// and in the queue of 60 packets at most 90 ms.
#[test]
fn two_captures_show_delays_and_losses_between_them() {
    let out = simulate("analyse-with");
    let file = |name: &str| out.join(name).to_str().unwrap().to_owned();
    let joined = document(&["analyse", &file("server-gateway.pcapng"), "--with", &file("client-cpe.pcapng"), "--json"]);
    let joined = &joined["joined"];
    let summary: Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    let flow = summary["flows"].as_array().unwrap().iter().find(|flow| flow["kind"] == "bulk").unwrap();
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    let error = number(&joined["clock_error_s"]);
    assert!(number(&joined["clock_ahead_s"]).abs() <= error && (0.029..0.032).contains(&error), "{joined}");
    assert!(number(&joined["clock_drift_ppm"]).abs() < 50.0, "{joined}");
    let (there, back) = (&joined["directions"][0], &joined["directions"][1]);
    let lost = number(&flow["data_packets"]) - number(&flow["data_packets_received"]);
    let found = number(&there["data_lost_between"]);
    // Packets under way at the end count as neither; lost packets of the call as well.
    assert!(lost > 20.0 && found >= lost - 65.0 && found <= lost + 20.0, "{found}, simulator {lost}");
    assert_eq!((&there["data_lost_after"], &back["lost_between"]), (&Value::from(0), &Value::from(0)));
    let median = number(&there["delay_median_s"]);
    assert!((number(&flow["delay_s"]["p50"]) - median).abs() < 0.003, "{median}");
    assert!(number(&there["delay_max_s"]) < 0.125 && number(&back["delay_median_s"]) < 0.032, "{joined}");
    let other = captured("tsoapp-sender.pcap");
    let output = lastmile(&["analyse", &file("server-gateway.pcapng"), "--with", other.to_str().unwrap()]);
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && talk.contains("no packet of"), "{talk}");
}

/// A call of G.711: 160 bytes every 20 ms, 200 with headers, 80 kbit/s.
#[test]
fn flows_of_datagrams_have_rates_and_sizes() {
    let out = simulate("analyse-datagrams");
    let document = document(&["analyse", out.join("client-cpe.pcapng").to_str().unwrap(), "--json"]);
    let flows = document["datagram_flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2, "{flows:?}");
    for flow in flows {
        let rate = flow["rate_bps"].as_f64().unwrap();
        assert!((rate / 80e3 - 1.0).abs() < 0.02, "{flow}");
        assert_eq!((&flow["protocol"], &flow["spin_bit"]), (&Value::from("udp"), &Value::from("absent")));
        assert_eq!(flow["smallest_payload_bytes"], flow["largest_payload_bytes"]);
    }
    let text =
        String::from_utf8(lastmile(&["analyse", out.join("client-cpe.pcapng").to_str().unwrap()]).stdout).unwrap();
    assert!(text.contains("spin bit"), "{text}");
}

/// The clock is set after 180 packets: back by 100 s, back by 300 days, which are no time of the program,
/// and forward by 300 days, as that of a router that begins in 1970. A record has 16 bytes of header: seconds,
/// fraction and two lengths.
#[test]
fn a_clock_that_is_set_is_told_and_the_rest_analysed() {
    const DAYS: i64 = 300 * 86_400;
    let whole = std::fs::read(captured("tsoapp-sender.pcap")).unwrap();
    let plain = document(&["analyse", captured("tsoapp-sender.pcap").to_str().unwrap(), "--json"]);
    for (step, steps, told) in
        [(-100, (1, 0), "set back 1"), (-DAYS, (1, 0), "set back 1"), (DAYS, (0, 1), "set forward 1")]
    {
        let mut bytes = whole.clone();
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut number) = (24, 0);
        while at < bytes.len() {
            if number >= 180 {
                let seconds = u32::try_from(i64::from(word(&bytes, at)) + step).unwrap();
                bytes[at..at + 4].copy_from_slice(&seconds.to_le_bytes());
            }
            (at, number) = (at + 16 + word(&bytes, at + 8) as usize, number + 1);
        }
        let path = folder("analyse-clock").join("clock.pcap");
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        let stepped = document(&["analyse", path, "--json"]);
        let counts = |document: &Value| {
            let count = |name: &str| document[name].as_u64().unwrap();
            (count("clock_steps_back"), count("clock_steps_forward"))
        };
        assert_eq!((counts(&stepped), counts(&plain)), (steps, (0, 0)), "{step} s");
        assert_eq!(stepped["packets_unreadable"], 0, "{step} s");
        let duration = |document: &Value| document["duration_s"].as_f64().unwrap();
        assert!((duration(&stepped) - duration(&plain)).abs() < 0.2, "{} {}", duration(&stepped), duration(&plain));
        let rows = |document: &Value, name: &str| document["connections"][0][name].clone();
        for name in ["bytes_new", "retransmissions"] {
            assert_eq!(rows(&stepped, name), rows(&plain, name), "{step} s: {name}");
        }
        let talk = String::from_utf8(lastmile(&["analyse", path]).stderr).unwrap();
        assert!(talk.contains(&format!("{told} times")), "{talk}");
    }
}

/// An interface of an unknown link layer is left out of a capture of several, and refused alone.
#[test]
fn an_interface_of_an_unknown_link_layer_is_left_out() {
    let out = simulate("analyse-link");
    let whole = std::fs::read(out.join("server-gateway.pcapng")).unwrap();
    // An interface of link type 147 (USER0), and a packet of 4 bytes: little-endian blocks.
    let block = |kind: u32, body: &[u32]| -> Vec<u8> {
        let len = 12 + 4 * body.len() as u32;
        [kind, len].iter().chain(body).chain([&len]).flat_map(|word| word.to_le_bytes()).collect()
    };
    let foreign = |interface: u32| [block(1, &[147, 0]), block(6, &[interface, 0, 0, 4, 4, 7])].concat();
    let mixed = out.join("mixed.pcapng");
    std::fs::write(&mixed, [&whole[..], &foreign(1)].concat()).unwrap();
    let mixed = mixed.to_str().unwrap();
    let (own, plain) = (
        document(&["analyse", mixed, "--json"]),
        document(&["analyse", out.join("server-gateway.pcapng").to_str().unwrap(), "--json"]),
    );
    assert_eq!(own["connections"], plain["connections"]);
    assert!(own["interfaces_left_out"].as_str().unwrap().contains("USER0"), "{}", own["interfaces_left_out"]);
    assert_eq!(own["packets_without_ip"], plain["packets_without_ip"].as_u64().unwrap() + 1);
    let alone = out.join("alone.pcapng");
    let header = u32::from_le_bytes(whole[4..8].try_into().unwrap()) as usize;
    std::fs::write(&alone, [&whole[..header], &foreign(0)].concat()).unwrap();
    let output = lastmile(&["analyse", alone.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("is not known"));
}

/// Brouer 2005, section 7.2: 1500 bytes in 32 cells at 512 kbit/s, 26.5 ms, and 8.5 ms of an idle line are
/// 35 ms; section 9.3.1: two packets at 768 kbit/s and 8 ms are 43 ms.
#[test]
fn delay_bounds_are_those_of_brouer() {
    for (up, baseline, ahead, expected) in [("512 kbit/s", "8.5 ms", "1", 0.035), ("768 kbit/s", "8 ms", "2", 0.0433)] {
        let output = lastmile(&[
            "model",
            "delay-bound",
            "--up",
            up,
            "--baseline",
            baseline,
            "--ahead",
            ahead,
            "--link",
            "bridged-vcmux-fcs",
            "--json",
        ]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = document["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["ip_bytes"] == 1500).unwrap();
        assert_eq!(row["wire_bytes"], 1696);
        assert!((row["bound_s"].as_f64().unwrap() - expected).abs() < 1e-4, "{row}");
    }
}

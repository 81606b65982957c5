//! `lastmile analyse`: pages, tables of segments, two captures joined, flows of datagrams, and captures
//! with faults.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

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

/// The output on a terminal of 80 columns that does not know its rows.
fn on_terminal(arguments: &[&str]) -> String {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    tcsetwinsize(&near, Winsize { ws_row: 0, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let far = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let far = File::options().read(true).write(true).open(far).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    let mut child = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).stdout(far).spawn().unwrap();
    drop(command);
    let mut text = Vec::new();
    // The end of a terminal without a writer is an error.
    let _ = File::from(near).read_to_end(&mut text);
    child.wait().unwrap();
    String::from_utf8(text).unwrap()
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

    let text = on_terminal(&["analyse", &file("server-gateway.pcapng"), "--with", &file("client-cpe.pcapng")]);
    let lines = text.lines().map(|line| line.trim_end_matches('\r')).filter(|line| !line.contains(".pcapng"));
    let long: Vec<&str> = lines.filter(|line| line.chars().count() > 80).collect();
    let parts = text.matches(" 1   down ").count();
    assert!(long.is_empty() && parts > 1, "{parts}: {long:#?}");

    // The clocks are equal, but the second capture ends early: a line says so, and lines fit 120 columns in a pipe.
    let cut = file("cut.pcapng");
    let whole = std::fs::read(file("client-cpe.pcapng")).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2 + 1]).unwrap();
    let output = lastmile(&["analyse", &file("server-gateway.pcapng"), "--with", &cut]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("cut.pcapng was NOT READ TO ITS END: only its packets up to there are compared"), "{text}");
    let tables = text.lines().skip_while(|line| !line.starts_with(" #"));
    let long: Vec<&str> = tables.filter(|line| line.chars().count() > 120 && !line.contains(".pcapng")).collect();
    assert!(long.is_empty() && text.contains("\nClocks: that of "), "{long:#?}");
}

/// A capture of a download as its sender has it, before segmentation, and as its receiver has it, after: 20 packets of
/// 10 segments of 1 kB each, one segment of which is lost.
#[test]
fn segments_of_a_device_are_at_both_captures() {
    let dir = folder("analyse-offload");
    let packet = |at_us: u32, back: bool, from: u32, octets: u16| {
        let (ports, numbers) = if back { ([2, 1], [1, from]) } else { ([1, 2], [from, 1]) };
        let addresses = if back { [[10, 0, 0, 2], [10, 0, 0, 1]] } else { [[10, 0, 0, 1], [10, 0, 0, 2]] };
        let length = 40 + octets;
        let mut ip = vec![0x45, 0];
        ip.extend(length.to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        ip.extend(addresses.concat());
        ip.extend([0, ports[0], 0, ports[1]]);
        ip.extend(numbers.map(u32::to_be_bytes).concat());
        ip.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        let mut record = Vec::new();
        for value in [at_us / 1_000_000, at_us % 1_000_000, 40, u32::from(length)] {
            record.extend(value.to_le_bytes());
        }
        record.extend(ip);
        record
    };
    // Magic number, version 2.4, snap length, raw IP (LINKTYPE_RAW).
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    let (mut sender, mut receiver) = (head.clone(), head);
    for number in 0..20_u32 {
        let at_us = 1_000_000 + number * 100_000;
        sender.extend(packet(at_us, false, number * 10_000, 10_000));
        for segment in (0..10).filter(|segment| (number, *segment) != (5, 3)) {
            let late = 20_000 + segment * 1_000;
            receiver.extend(packet(at_us + late, false, number * 10_000 + segment * 1_000, 1_000));
        }
        receiver.extend(packet(at_us + 40_000, true, number * 10_000 + 10_000, 0));
        sender.extend(packet(at_us + 60_000, true, number * 10_000 + 10_000, 0));
    }
    let [first, second] = [("sender.pcap", sender), ("receiver.pcap", receiver)].map(|(name, bytes)| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let joined = &document(&["analyse", &first, "--with", &second, "--json"])["joined"];
    let there = &joined["directions"][0];
    let counts = ["packets_at_both", "data_lost_between", "data_bytes_lost_between", "segments_split"];
    assert_eq!(counts.map(|name| there[name].as_u64().unwrap()), [199, 1, 1_000, 20], "{joined}");
    let text = String::from_utf8(lastmile(&["analyse", &first, "--with", &second]).stdout).unwrap();
    assert!(text.contains("there: 20 segments were split on the way: segmentation offload (TSO, GSO)."), "{text}");
}

#[test]
fn a_page_of_a_capture_without_packets_is_not_written() {
    let dir = folder("analyse-empty");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    std::fs::write(path("empty.pcap"), head).unwrap();
    for page in ["page.svg", "page.html"].map(path) {
        let output = lastmile(&["analyse", &path("empty.pcap"), "--page", &page]);
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{talk}");
        assert!(talk.contains("empty.pcap has nothing to draw: ") && talk.contains("is not written"), "{talk}");
        assert!(!Path::new(&page).exists(), "{page}");
    }
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

/// A download over QUIC fills 8 Mbit/s behind 30 ms each way and a queue of 30 packets: round trips of 60 to 108 ms,
/// which the spin bit shows.
#[test]
fn a_simulated_connection_of_quic_has_its_headers() {
    const LINE: &str = r#"
duration = "20 s"
[access]
down = { rate = "8 Mbit/s", delay = "20 ms", queue = { kind = "fifo", limit = "30 packets" } }
up = { rate = "1 Mbit/s", delay = "20 ms" }
[[traffic]]
kind = "bulk"
direction = "down"
transport = "quic"
"#;
    let dir = folder("analyse-quic");
    let file = dir.join("line.toml");
    std::fs::write(&file, LINE).unwrap();
    let [file, out] = [file, dir.join("out")].map(|path| path.to_str().unwrap().to_owned());
    let ran = lastmile(&["run", &file, "--json", "--out", &out, "--capture", "down"]);
    let run: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let analysed = document(&["analyse", &format!("{out}/down.pcapng"), "--json"]);
    let flows = analysed["datagram_flows"].as_array().unwrap();
    let down = flows.iter().find(|flow| flow["direction"] == "down").expect("the server's direction");
    assert_eq!((&down["protocol"], &down["spin_bit"]), (&Value::from("quic"), &Value::from("used")));
    // The way back is empty: 20 ms, and 10 ms of the backbone.
    let known = run["flows"][0]["delay_s"]["p50"].as_f64().unwrap() + 0.030;
    let shown = down["spin_round_trip_median_s"].as_f64().unwrap();
    assert!((shown / known - 1.0).abs() < 0.05, "{shown} s by the spin bit, {known} s by the delays");
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
        [(-100, (1, 0), "set back once"), (-DAYS, (1, 0), "set back once"), (DAYS, (0, 1), "set forward once")]
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
        assert!(talk.contains(told), "{talk}");
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

/// CED, December 2006: 1 and 4 ms allow 200 bursts a second, and downloads of 2.4 Mbit/s, or 4.8 with delayed ACKs. In
/// 5 ms of 12 Mbit/s five packets arrive, which one ACK acknowledges.
#[test]
fn grants_limit_downloads_as_in_ced_2006() {
    let output =
        lastmile(&["model", "grants", "--interval", "1 ms", "--ahead", "4 ms", "--down", "12 Mbit/s", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["request_grant_s"], &document["bursts_per_s"]), (&json!(0.005), &json!(200.0)));
    let of = |row: &Value| ["packets_per_ack", "download_bps", "limited_by"].map(|key| row[key].clone());
    let rows: Vec<_> = document["rows"].as_array().unwrap().iter().map(of).collect();
    let expected = [
        [json!(1.0), json!(2.4e6), json!("grants")],
        [json!(2.0), json!(4.8e6), json!("grants")],
        [json!(5.0), json!(12e6), json!("line")],
    ];
    assert_eq!(rows, expected);
    let output = lastmile(&["model", "grants", "--interval", "0 ms", "--ahead", "0 ms", "--down", "12 Mbit/s"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("--interval and --ahead: their sum"), "{said}");
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

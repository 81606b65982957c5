//! Captures by tcpdump 4.99 (`-s 128`, on hosts `-i any`), at both ends of a path and between.
//!
//! Two hosts with Linux 6.18 and 15 ms each way between them. `bulk` is a download with CUBIC over
//! 10 Mbit/s with a queue of 60 kB, `six` one over IPv6, `tso` one over 20 Mbit/s between hosts
//! whose devices segment and merge packets, `window` one to a receive buffer of 20 kB without a
//! limit on the path. `app` sends 20 kB every 100 ms, also in Linux cooked captures of version 1
//! (`tsoapp`).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name)
}

fn analyse(arguments: &[&str], stdin: Stdio) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lastmile")).arg("analyse").args(arguments).stdin(stdin).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["files"][0].clone()
}

fn of(name: &str) -> Value {
    json(&analyse(&[file(name).to_str().unwrap(), "--json"], Stdio::null()))
}

/// The direction that carries the data.
fn down(document: &Value) -> &Value {
    document["connections"].as_array().unwrap().iter().find(|row| row["direction"] == "down").unwrap()
}

fn seconds(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", row[name]))
}

fn share(row: &Value, limit: &str) -> f64 {
    seconds(&row["limited_by"], limit)
}

/// Packets by capinfos; payload of the server and its retransmissions (including out of order) by
/// tshark 4.0.
#[test]
fn captures_with_a_snap_length_are_read_to_their_end() {
    for (name, packets, payload, repeats) in [
        ("bulk-sender.pcap.zst", 3152, 2_783_056, 28),
        ("window-sender.pcap.zst", 1564, 1_500_000, 0),
        ("app-sender.pcap.zst", 647, 600_000, 0),
        ("six-receiver.pcap.gz", 1820, 1_500_000, 7),
        ("tsoapp-sender.pcap", 362, 499_980, 0),
    ] {
        let document = of(name);
        let row = down(&document);
        assert_eq!(document["complete"], true, "{name}");
        assert_eq!(document["packets"], packets, "{name}");
        let bytes = row["bytes_new"].as_u64().unwrap() + row["bytes_repeated"].as_u64().unwrap();
        assert_eq!(bytes, payload, "{name}");
        let own = row["retransmissions"].as_u64().unwrap() + row["out_of_order"].as_u64().unwrap();
        assert_eq!(own, repeats, "{name}");
    }
}

#[test]
fn where_a_capture_stands_is_found_and_said() {
    for (name, vantage, near, far) in [
        ("bulk-sender.pcap.zst", "sender", "to_sender_s", "to_receiver_s"),
        ("bulk-receiver.pcap.zst", "receiver", "to_receiver_s", "to_sender_s"),
        ("window-sender.pcap.zst", "sender", "to_sender_s", "to_receiver_s"),
        ("window-receiver.pcap.zst", "receiver", "to_receiver_s", "to_sender_s"),
        ("app-sender.pcap.zst", "sender", "to_sender_s", "to_receiver_s"),
        ("app-receiver.pcap.zst", "receiver", "to_receiver_s", "to_sender_s"),
        ("tso-sender.pcap.zst", "sender", "to_sender_s", "to_receiver_s"),
        ("tso-receiver.pcap.zst", "receiver", "to_receiver_s", "to_sender_s"),
        ("six-receiver.pcap.gz", "receiver", "to_receiver_s", "to_sender_s"),
    ] {
        let document = of(name);
        let row = down(&document);
        assert_eq!(row["vantage"], vantage, "{name}");
        let (near, far) = (seconds(row, near), seconds(row, far));
        assert!(near < 0.002 && (0.030..0.036).contains(&far), "{name}: {near} {far}");
        let here = if vantage == "sender" { &row["from"] } else { &row["to"] };
        let next_to = document["stands"]["next_to"].as_str().unwrap();
        assert!(here.as_str().unwrap().contains(next_to), "{name}: {next_to}");
        let text = analyse(&[file(name).to_str().unwrap()], Stdio::null()).stdout;
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&format!("The capture is at {next_to} or next to it")), "{text}");
    }
}

/// The limits of the sender are those that a capture at its own end shows, at every position of the
/// capture. At the receiver a recovery begins with the first repair that arrives, so that its start
/// counts as the congestion window.
#[test]
fn limits_are_those_of_the_sender_at_every_vantage() {
    const CONGESTION: [&str; 2] = ["congestion_window", "loss_recovery"];
    for (limits, least, names) in [
        (
            &["receive_window"][..],
            0.8,
            &["window-sender.pcap.zst", "window-between-receiver.pcap.zst", "window-receiver.pcap.zst"][..],
        ),
        (&["application"], 0.8, &["app-sender.pcap.zst", "app-between-any.pcap.zst", "app-receiver.pcap.zst"]),
        (&CONGESTION, 0.9, &["bulk-sender.pcap.zst", "bulk-receiver.pcap.zst"]),
        (&CONGESTION, 0.9, &["tso-sender.pcap.zst", "tso-receiver.pcap.zst"]),
        (&CONGESTION, 0.9, &["six-receiver.pcap.gz"]),
        (&["application"], 0.8, &["tsoapp-sender.pcap"]),
    ] {
        let shares = names.iter().map(|name| {
            let document = of(name);
            limits.iter().map(|limit| share(down(&document), limit)).sum::<f64>()
        });
        let shares: Vec<f64> = shares.collect();
        assert!(shares.iter().all(|own| *own >= least), "{names:?}: {limits:?} {shares:?}");
        assert!(shares.iter().all(|own| (own - shares[0]).abs() < 0.1), "{names:?}: {limits:?} {shares:?}");
    }
    let document = of("bulk-receiver.pcap.zst");
    assert_eq!(down(&document)["limits_from"], "timestamps");
    assert!(share(down(&document), "application") < 0.05);
}

/// A bridge shows each packet as received and as sent. tshark takes 425 of these for
/// retransmissions.
#[test]
fn packets_of_several_interfaces_count_once() {
    let document = of("app-between-any.pcap.zst");
    let row = down(&document);
    assert_eq!(
        (&document["packets"], &document["packets_seen_at_other_interfaces"]),
        (&Value::from(1294), &Value::from(647))
    );
    assert_eq!((&row["retransmissions"], &row["bytes_new"]), (&Value::from(0), &Value::from(600_000)));
}

#[test]
fn standard_input_is_read_compressed_or_not() {
    for name in ["tsoapp-sender.pcap", "app-sender.pcap.zst", "six-receiver.pcap.gz"] {
        let piped = json(&analyse(&["-", "--json"], File::open(file(name)).unwrap().into()));
        assert_eq!(piped["file"], "-");
        assert_eq!(piped["connections"], of(name)["connections"], "{name}");
    }
    assert_eq!(analyse(&["-", "-"], Stdio::null()).status.code(), Some(2));
}

/// The records of a pcap file: their position and length with the header of 16 bytes, whose third field is the length
/// of the packet.
fn records(whole: &[u8]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut at = 24;
    while let Some(length) = whole.get(at + 8..at + 12) {
        let length = 16 + u32::from_le_bytes(length.try_into().unwrap()) as usize;
        all.push((at, length));
        at += length;
    }
    all
}

/// The connections of a capture with these bytes, and its warnings.
fn changed(name: &str, bytes: &[u8]) -> (Value, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("changed-captures");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    let output = analyse(&[path.to_str().unwrap(), "--json"], Stdio::null());
    (json(&output), String::from_utf8(output.stderr).unwrap())
}

/// Each packet comes once more, behind a switch or behind a router, which takes one off its time to live: 16 bytes of
/// the Linux cooked header, and 8 of the IP header, precede it.
#[test]
fn copies_of_a_mirror_port_change_nothing() {
    let whole = std::fs::read(file("tsoapp-sender.pcap")).unwrap();
    let original = of("tsoapp-sender.pcap");
    for (name, hops) in [("switched.pcap", 0), ("routed.pcap", 1)] {
        let mut mirrored = whole[..24].to_vec();
        for (at, length) in records(&whole) {
            let mut copy = whole[at..at + length].to_vec();
            mirrored.extend(&copy);
            copy[16 + 16 + 8] -= hops;
            mirrored.extend(copy);
        }
        let (document, warnings) = changed(name, &mirrored);
        assert_eq!(document["connections"], original["connections"], "{name}");
        let counts = [&document["packets"], &document["packets_copied_by_mirror"]];
        assert_eq!(counts, [724, 362], "{name}");
        assert!(warnings.contains("362 of 724 packets (50 %) are second copies"), "{warnings}");
    }
}

/// The clock gains an hour after two thirds of the packets.
#[test]
fn a_clock_that_gains_an_hour_is_reported() {
    let mut whole = std::fs::read(file("tsoapp-sender.pcap")).unwrap();
    for (at, _) in records(&whole).into_iter().skip(240) {
        let seconds = u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
        whole[at..at + 4].copy_from_slice(&(seconds + 3_600).to_le_bytes());
    }
    let (document, warnings) = changed("clock.pcap", &whole);
    assert_eq!(document["clock_steps_by_timestamps"], 1);
    let step = document["largest_clock_step_by_timestamps_s"].as_f64().unwrap();
    assert!((step - 3_600.0).abs() < 0.1, "{step}");
    assert!(warnings.contains("was set forward once, by up to 3600 s, by the timestamps"), "{warnings}");
    assert_eq!(of("tsoapp-sender.pcap")["clock_steps_by_timestamps"], 0);
}

#[test]
fn a_capture_that_breaks_off_is_said_first_and_the_exit_code_is_1() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-captures");
    std::fs::create_dir_all(&folder).unwrap();
    let whole = std::fs::read(file("tsoapp-sender.pcap")).unwrap();
    // The 101st record gets an impossible length.
    let mut damaged = whole.clone();
    damaged[records(&whole)[100].0 + 11] = 0xff;
    for (name, bytes, packets) in [
        ("cut.pcap", &whole[..whole.len() - 3], 361),
        ("damaged.pcap", &damaged[..], 100),
        ("cut.pcap.gz", &std::fs::read(file("six-receiver.pcap.gz")).unwrap()[..20_000], 200),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        let output = analyse(&[path.to_str().unwrap()], Stdio::null());
        assert_eq!(output.status.code(), Some(1), "{name}");
        let text = String::from_utf8(output.stdout).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.contains("was NOT READ TO ITS END: only its first") && first.contains("bytes"), "{text}");
        let output = analyse(&[path.to_str().unwrap(), "--json"], Stdio::null());
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: "), "{name}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let document = &document["files"][0];
        assert_eq!(document["complete"], false, "{name}");
        let read = document["packets"].as_u64().unwrap();
        assert!(if name == "cut.pcap.gz" { read > packets } else { read == packets }, "{name}: {read}");
        assert!(document["bytes_read"].as_u64().unwrap() > 40 * read, "{name}");
    }
}

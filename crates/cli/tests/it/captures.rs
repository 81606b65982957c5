//! Captures in an independent reader: tshark reports no errors in them, and counts as many
//! retransmissions as the simulator. Skipped, with a message, where tshark is not installed;
//! `make test` installs it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Scenarios with overrides.
const RUNS: [(&str, &[&str]); 8] = [
    ("upload-starves-download.toml", &[]),
    ("upload-starves-download.toml", &["ipv6=true"]),
    ("upload-starves-download.toml", &["access.up.queue.kind=sad"]),
    (
        "upload-starves-download.toml",
        &["tcp.timestamps=true", "tcp.variant=sack", "traffic.download.server=203.0.113.5"],
    ),
    ("upload-starves-download.toml", &["access.down.loss=1 %", "tcp.variant=newreno"]),
    ("upload-starves-download.toml", &["access.up.loss=2 %", "tcp.variant=reno"]),
    ("first-steps/4-several-flows.toml", &["tcp.ecn=true"]),
    ("first-steps/7-loss-and-cells.toml", &["tcp.variant=tahoe"]),
];

/// The links with the senders of the TCP flows at their sending ends: the server of a download, the
/// client of an upload.
const LINKS: [&str; 2] = ["server-gateway", "client-cpe"];

/// Findings of tshark that are errors: a field, the text in it (empty for any), and its meaning.
const FAULTS: [(&str, &str, &str); 7] = [
    ("_ws.malformed", "", "a malformed packet"),
    ("ip.checksum.status", "0", "a bad IP checksum"),
    ("tcp.checksum.status", "0", "a bad TCP checksum"),
    ("udp.checksum.status", "0", "a bad UDP checksum"),
    ("icmp.checksum.status", "0", "a bad ICMP checksum"),
    ("icmpv6.checksum.status", "0", "a bad ICMPv6 checksum"),
    ("tcp.analysis.ack_lost_segment", "", "an ACK for a segment that was never seen"),
];

#[test]
fn tshark_finds_no_fault_and_counts_the_same_retransmissions() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let mut total = 0;
    for (number, (scenario, overrides)) in RUNS.iter().enumerate() {
        let what = format!("{scenario} {overrides:?}");
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("captures-{number}"));
        let retransmissions = simulate(scenario, overrides, &dir);
        let mut counted = 0;
        for link in LINKS {
            let packets = Dissected::read(&dir.join(format!("{link}.pcapng")));
            assert!(packets.rows.len() > 1_000, "{what}: the capture at {link} holds a conversation");
            for (field, text, fault) in FAULTS {
                let found = packets.column(field).filter(|value| !value.is_empty() && value.contains(text)).count();
                assert_eq!(found, 0, "{what}: tshark finds {fault} at {link}");
            }
            // The client opens every connection.
            let is_syn = |row: &&Vec<String>| ["1", "True"].contains(&row[4].as_str());
            let first_syn = packets.rows.iter().find(is_syn).unwrap();
            let own = &first_syn[if link == "client-cpe" { 0 } else { 1 }];
            let repeats = packets.rows.iter().filter(|row| row[0] == *own && REPEATS.any(row));
            counted += repeats.filter(|row| !is_syn(row)).count() as u64;
        }
        // tshark also counts a retransmitted SYN or FIN without data; for data both counts agree.
        let fins = counted.saturating_sub(retransmissions);
        assert!(
            counted >= retransmissions && fins <= 1,
            "{what}: tshark counts {counted}, the simulator {retransmissions}"
        );
        total += retransmissions;
    }
    assert!(total > 100, "the runs lose something");
}

/// Runs the scenario with captures, and returns the retransmissions in its summary.
fn simulate(scenario: &str, overrides: &[&str], dir: &Path) -> u64 {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(scenario);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.arg("run").arg(file).arg("--out").arg(dir).arg("--json");
    for change in overrides {
        command.args(["--set", change]);
    }
    for link in LINKS {
        command.args(["--capture", link]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let flows = summary["flows"].as_array().unwrap();
    flows.iter().filter_map(|flow| flow["retransmissions"].as_u64()).sum()
}

/// tshark's names for retransmitted bytes. Nothing is reordered at the sender: a segment that
/// tshark considers out of order, because it follows within a round trip and without duplicate
/// ACKs, is a retransmission after a partial ACK.
const REPEATS: Repeats = Repeats(["tcp.analysis.retransmission", "tcp.analysis.out_of_order"]);

struct Repeats([&'static str; 2]);

impl Repeats {
    /// Fields 2 and 3 of a row.
    fn any(&self, row: &[String]) -> bool {
        (2..2 + self.0.len()).any(|field| !row[field].is_empty())
    }
}

/// The addresses of IPv6, which replace those of IPv4 in a row without them.
const V6: [&str; 2] = ["ipv6.src", "ipv6.dst"];

/// The packets of a capture, as tshark dissects them.
struct Dissected {
    fields: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Dissected {
    fn read(capture: &Path) -> Self {
        let fields: Vec<&str> = ["ip.src", "ip.dst"]
            .into_iter()
            .chain(REPEATS.0)
            .chain(["tcp.flags.syn"])
            .chain(FAULTS.iter().map(|(field, _, _)| *field))
            .chain(V6)
            .collect();
        let mut command = Command::new("tshark");
        command.arg("-r").arg(capture).args(["-T", "fields"]);
        for protocol in ["ip", "tcp", "udp"] {
            command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
        }
        for field in &fields {
            command.args(["-e", field]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let mut rows: Vec<Vec<String>> =
            text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
        for row in rows.iter_mut().filter(|row| row[0].is_empty()) {
            let v6 = row.split_off(row.len() - V6.len());
            row.splice(..V6.len(), v6);
        }
        Self { fields, rows }
    }

    fn column(&self, field: &str) -> impl Iterator<Item = &String> {
        let index = self.fields.iter().position(|known| *known == field).unwrap();
        self.rows.iter().map(move |row| &row[index])
    }
}

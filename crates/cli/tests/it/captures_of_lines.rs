//! Captures of simulated lines with duplicates, reordering and queues before the capture, next to what the run counts.

use std::process::{Command, Output};

use serde_json::Value;

use crate::transcript::Scratch;

fn lastmile(scratch: &Scratch, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lastmile")).current_dir(&scratch.path).args(arguments).output().unwrap()
}

/// Simulates `line`, with the links of the list captured, and returns its summary.
fn simulate(scratch: &Scratch, line: &str, captures: &str) -> Value {
    std::fs::write(scratch.path.join("line.toml"), line).unwrap();
    let arguments = ["run", "line.toml", "--json", "--out", "results", "--capture", captures];
    let output = lastmile(scratch, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The direction with the data in the capture of a link.
fn seen(scratch: &Scratch, link: &str, direction: &str) -> Value {
    let output = lastmile(scratch, &["analyse", &format!("results/{link}.pcapng"), "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["files"][0]["connections"].as_array().unwrap().clone();
    rows.into_iter().find(|row| row["direction"] == direction).unwrap()
}

const DOWNLOAD: &str = "[[traffic]]\nname = \"download\"\nkind = \"bulk\"\ndirection = \"down\"\n";

fn download_over(down: &str) -> String {
    format!(
        "duration = \"10 s\"\n[access]\nencapsulation = \"ethernet\"\ndown = {{ delay = \"15 ms\", {down} }}\n\
         up = {{ rate = \"2 Mbit/s\", delay = \"15 ms\" }}\n{DOWNLOAD}"
    )
}

/// DSACKs report the copies that the network made, and no repair was needless.
#[test]
fn copies_of_the_network_make_no_repair_needless() {
    let scratch = Scratch::new();
    let line = download_over("rate = \"10 Mbit/s\", loss = \"1 %\", duplicate = \"10 %\"");
    let run = simulate(&scratch, &line, "server-gateway,client-cpe");
    let sent = run["flows"][0]["retransmissions"].as_u64().unwrap();
    assert!(sent > 10, "{sent}");
    for link in ["server-gateway", "client-cpe"] {
        let row = seen(&scratch, link, "down");
        assert!(row["retransmissions"].as_u64().unwrap().abs_diff(sent) <= 2, "{link}: {row}");
        assert_eq!(row["spurious"], 0, "{link}: {row}");
    }
}

/// Packets that others overtook are out of order at the receiver, where no more retransmissions arrive than were sent:
/// by timestamps, and without by the identifications of IPv4.
#[test]
fn what_was_overtaken_is_no_retransmission() {
    for timestamps in [true, false] {
        let scratch = Scratch::new();
        let line = download_over(
            "rate = \"20 Mbit/s\", jitter = \"3 ms\", reorder = true, queue = { limit = \"100 packets\" }",
        );
        let line = format!("{line}[tcp]\ntimestamps = {timestamps}\n");
        let run = simulate(&scratch, &line, "client-cpe");
        let sent = run["flows"][0]["retransmissions"].as_u64().unwrap();
        let row = seen(&scratch, "client-cpe", "down");
        let of = |name: &str| row[name].as_u64().unwrap();
        assert!(of("retransmissions") <= sent && of("out_of_order") > 100, "{sent}: {row}");
    }
}

/// Behind the queue of the line the answers of the sender take its delay, though the first took none.
#[test]
fn a_capture_behind_a_queue_is_not_at_the_sender() {
    let scratch = Scratch::new();
    let line = "duration = \"20 s\"\n[access]\nencapsulation = \"ethernet\"\n\
                down = { rate = \"20 Mbit/s\", delay = \"15 ms\" }\n\
                up = { rate = \"2 Mbit/s\", delay = \"15 ms\", queue = { limit = \"250 kB\" } }\n\
                [[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\n";
    simulate(&scratch, line, "client-cpe,up");
    let [own, behind] = ["client-cpe", "up"].map(|link| seen(&scratch, link, "up"));
    assert_eq!([&own["vantage"], &behind["vantage"]], ["sender", "between"]);
    let [whole, there] = [&own, &behind].map(|row| row["round_trip_median_s"].as_f64().unwrap());
    assert!(whole > 0.5 && (there / whole - 1.0).abs() < 0.1, "{whole} {there}");
}

/// Three SYNs without an answer: nothing to draw, and the connection has no data.
#[test]
fn a_connection_that_never_opened_is_told() {
    let scratch = Scratch::new();
    simulate(&scratch, &download_over("rate = \"10 Mbit/s\", loss = \"100 %\""), "client-cpe");
    let page = lastmile(&scratch, &["analyse", "results/client-cpe.pcapng", "--page", "page.html"]);
    assert_eq!(page.status.code(), Some(1));
    assert!(!scratch.path.join("page.html").exists());
    let one = lastmile(&scratch, &["analyse", "results/client-cpe.pcapng", "--connection", "1"]);
    let text = String::from_utf8(one.stdout).unwrap();
    assert!(text.contains("no data: ") && text.contains("packets up and 0 down"), "{text}");
}

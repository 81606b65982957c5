//! Memory: a run with too large a need is refused before it starts, and one that exceeds the limit
//! later ends with the reason.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use crate::transcript::Scratch;

fn run(text: &str, arguments: &[&str]) -> Output {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("s.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(&scratch.path).stdin(Stdio::null()).env("NO_COLOR", "1");
    command.output().unwrap()
}

/// The error, on two lines: the error itself and the expected form.
fn refused(text: &str, arguments: &[&str]) -> String {
    let output = run(text, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
    error
}

/// Ten lines: 28 bytes every 100 ns on a wire of a minute are 600 million packets.
const WIRE: &str = r#"
duration = "1 h"
[[link]]
from = "a"
to = "b"
delay = "60 s"
[[traffic]]
kind = "blast"
rate = "10000000 packets/s"
size = "28 B"
from = "a"
to = "b"
"#;

/// Packets on a wire at random times.
const RANDOM: &str = r#"
duration = "1 h"
[[link]]
from = "a"
to = "b"
delay = "60 s"
[[traffic]]
kind = "poisson"
rate = "2 Gbit/s"
size = "28 B"
from = "a"
to = "b"
"#;

/// A practically unlimited queue whose arrivals exceed its rate.
const QUEUE: &str = r#"
duration = "1 h"
[access]
down = { rate = "1 Gbit/s" }
up = { rate = "1 kbit/s", queue = { kind = "fifo", limit = "1000000000 packets" } }
[[traffic]]
kind = "poisson"
rate = "50 Mbit/s"
size = "28 B"
direction = "up"
"#;

#[test]
fn a_source_that_fills_a_wire_is_refused_with_its_place() {
    let error = refused(WIRE, &["run", "s.toml"]);
    let first = error.lines().next().unwrap();
    assert_eq!(
        first,
        "error: s.toml:9:8: traffic.0.rate: 600000000 packets in queues and on wires need 20.117 GiB; \
         all together 20.119 GiB, and \
         simulations may take 4.000 GiB"
    );
    assert!(error.contains("or grant more with --memory"), "{error}");
}

#[test]
fn a_wire_that_fills_ends_the_run_with_the_reason() {
    for (text, what) in
        [(RANDOM, "packets are on the wire of link \"a-b\""), (QUEUE, "packets wait in the queue of link \"up\"")]
    {
        let error = refused(text, &["run", "s.toml", "--memory", "60 MB"]);
        assert!(error.starts_with("error: out of memory after ") && error.contains(what), "{error}");
        assert!(error.contains("and may take 57.220 MiB; most of it, "), "{error}");
    }
}

#[test]
fn runs_side_by_side_share_what_is_granted() {
    let error = refused(RANDOM, &["run", "s.toml", "--memory", "60 MB", "--seeds", "4", "--threads", "4"]);
    assert!(error.starts_with("error: out of memory after "), "{error}");
    let samples = "duration = \"1 h\"\n[record]\ninterval = \"36 ms\"\n[access]\ndown = { rate = \"1 Mbit/s\" }\n\
                   up = { rate = \"1 Mbit/s\" }\n[[traffic]]\nkind = \"ping\"\n";
    // 100000 samples of 8 links, 4 series each, and of a flow: 61 MB for each run.
    let error = refused(samples, &["run", "s.toml", "--memory", "200 MB", "--seeds", "4"]);
    assert!(
        error.starts_with("error: s.toml:3:12: record.interval: 100000 samples of up to 38 series need "),
        "{error}"
    );
    assert!(error.contains("all together in 4 runs "), "{error}");
}

/// A large need within the limit is reported before the run begins. A short run needs little, and
/// prints nothing.
#[test]
fn a_large_need_is_told() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("s.toml"), WIRE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(["run", "s.toml", "--memory", "100 GiB"]).current_dir(&scratch.path).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut told).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told, "memory: at least 20.119 GiB\n");
    let output = run(WIRE, &["run", "s.toml", "--duration", "1 ms"]);
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    let mut samples = "duration = \"100 ms\"\n[record]\ninterval = \"1 us\"\n".to_owned();
    for node in 0..100 {
        let (from, to) = (node, node + 1);
        samples += &format!("[[link]]\nfrom = \"n{from}\"\nto = \"n{to}\"\nrate = \"1 Mbit/s\"\n");
    }
    samples += "[[traffic]]\nkind = \"ping\"\nfrom = \"n0\"\nto = \"n1\"\n";
    let over = refused(&samples, &["run", "s.toml", "--memory", "1 GiB"]);
    assert!(
        over.starts_with("error: s.toml:3:12: record.interval: 100000 samples of up to 806 series need 1.201 GiB; "),
        "{over}"
    );
    let flows = "duration = \"1 us\"\n[record]\nseries = false\n[[link]]\nfrom = \"a\"\nto = \"b\"\n[[traffic]]\n\
                 kind = \"poisson\"\nrate = \"1 kbit/s\"\ncount = 1000000\nfrom = \"a\"\nto = \"b\"\n";
    let error = refused(flows, &["run", "s.toml", "--memory", "100 MB"]);
    assert!(error.starts_with("error: s.toml:10:9: traffic.0.count: 1000000 flows need "), "{error}");
}

//! `lastmile emulate` with real packets: needs root, network namespaces and TUN devices, so these tests run only when asked
//! for (`scripts/live-tests.sh`).

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use lastmile_live::lab::Namespace;
use serde_json::Value;

use crate::transcript::{Scratch, is_root};

/// The line of the demonstration, a delay of its own for each part of the path, and a ping that the simulator sends.
const LINE: &str = r#"
duration = "20 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "4 ms" }
up = { rate = "512 kbit/s", delay = "6 ms", queue = { kind = "fifo", limit = "206 kB" } }
backbone = { delay = "9 ms" }
processing = { dslam = "1 ms" }

[[traffic]]
name = "ping"
kind = "ping"
direction = "up"
interval = "20 ms"
size = "84 B"
"#;

fn lastmile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// A folder with the line in it; `None`, and a word about it, where these tests cannot run.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn folder() -> Option<Scratch> {
    if !is_root() || !Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: needs root and /dev/net/tun");
        return None;
    }
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("line.toml"), LINE).unwrap();
    Some(scratch)
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

/// One file under two clocks: the simulator's ping, and ping(8) through the emulator.
#[test]
#[ignore = "needs root: real packets"]
fn a_real_ping_takes_as_long_as_the_simulated_one() {
    let Some(scratch) = folder() else { return };
    let simulated = json(&lastmile(&scratch.path, &["run", "line.toml", "--json"]).output().unwrap().stdout);
    let simulated_ms = simulated["probes"][0]["rtt_s"]["p50"].as_f64().unwrap() * 1e3;

    let ping = ["ping", "-n", "-c", "100", "-i", "0.02", "-s", "56", "198.18.0.1"];
    let arguments: Vec<&str> = ["emulate", "line.toml", "--json", "--"].into_iter().chain(ping).collect();
    let output = lastmile(&scratch.path, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let time = |line: &str| -> Option<f64> { line.split_once("time=")?.1.split_once(' ')?.0.parse().ok() };
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    times.sort_by(f64::total_cmp);
    assert_eq!(times.len(), 100, "{text}");
    let median_ms = f64::midpoint(times[49], times[50]);
    eprintln!("simulated {simulated_ms:.3} ms, ping(8) through the emulator {median_ms:.3} ms");
    assert!((median_ms - simulated_ms).abs() < 1.0, "simulated {simulated_ms} ms, real {median_ms} ms");

    let emulated = json(&output.stderr);
    assert_eq!(emulated["clock"], "monotonic");
    assert_eq!(emulated["conservation"]["holds"], true);
    assert_eq!(emulated["conservation"]["packets"]["sent"], 200);
    let link = |name: &str| -> Value {
        let links = emulated["links"].as_array().unwrap();
        links.iter().find(|link| link["name"] == name).unwrap().clone()
    };
    // 84 + 28 bytes are 3 cells.
    for name in ["up", "down"] {
        assert_eq!((link(name)["packets"].as_u64(), link(name)["cells"].as_u64()), (Some(100), Some(300)), "{name}");
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn the_exit_code_is_that_of_the_command() {
    let Some(scratch) = folder() else { return };
    let output = lastmile(&scratch.path, &["emulate", "line.toml", "--", "sh", "-c", "echo out; exit 7"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n", "the command has standard output for itself");
    let missing =
        lastmile(&scratch.path, &["emulate", "line.toml", "--", "lastmile-no-such-program"]).output().unwrap();
    let error = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot run \"lastmile-no-such-program\""), "{error}");
}

/// Names of the namespaces that `emulator` has made and not yet removed.
fn namespaces(emulator: &Child) -> Vec<String> {
    let own = format!("lastmile-{}-", emulator.id());
    let Ok(entries) = std::fs::read_dir("/var/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&own)).collect()
}

#[test]
#[ignore = "needs root: real packets"]
fn interrupted_it_says_what_it_did_and_leaves_nothing_behind() {
    let Some(scratch) = folder() else { return };
    for signal in ["INT", "TERM"] {
        let mut child = lastmile(&scratch.path, &["emulate", "line.toml", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("for example") {
            line.clear();
            assert_ne!(talk.read_line(&mut line).unwrap(), 0, "it ended early");
        }
        assert_eq!(namespaces(&child).len(), 2);
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap().success()
        );
        let mut data = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut data).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        assert_eq!(namespaces(&child), [""; 0], "{signal}");
        let summary = json(&data);
        assert_eq!(summary["conservation"]["holds"], true);
        assert!(summary["live"]["ended_by"].as_str().unwrap().starts_with("signal"));
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two hosts, and in a namespace between them the line, by each packet path.
#[test]
#[ignore = "needs root: real packets"]
fn between_two_interfaces_it_says_how_packets_go_and_carries_them() {
    let Some(scratch) = folder() else { return };
    let named = |role| Namespace::create(&format!("lastmile-{}-cli-{role}", std::process::id())).unwrap();
    let (left, middle, right) = (named("left"), named("middle"), named("right"));
    for (end, address, port) in [(&left, "10.9.0.1/24", "west"), (&right, "10.9.0.2/24", "east")] {
        ip(&format!("-n {} link add {port} type veth peer name eth netns {}", middle.name(), end.name()));
        ip(&format!("-n {} addr add {address} dev eth", end.name()));
        ip(&format!("-n {} link set eth up", end.name()));
        ip(&format!("-n {} link set {port} up", middle.name()));
    }
    for (path, said) in [
        ("auto", "packet path: packet sockets, because"),
        ("packet-sockets", "packet path: packet sockets, as asked for"),
        ("xdp", "packet path: AF_XDP native copy, as asked for"),
    ] {
        let mut emulate = lastmile(
            &scratch.path,
            &["emulate", "line.toml", "--bridge", "west,east", "--path", path, "--duration", "2 s", "--json"],
        );
        emulate.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = middle.run(|| emulate.spawn()).unwrap().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        for interface in ["client behind interface west", "server behind interface east"] {
            let mut line = String::new();
            talk.read_line(&mut line).unwrap();
            assert!(line.starts_with(interface) && line.contains(said), "{line}");
        }
        let mut ping = Command::new("ping");
        ping.args(["-n", "-q", "-c", "20", "-i", "0.03", "10.9.0.2"]);
        let pinged = left.run(|| ping.output()).unwrap().unwrap();
        assert!(pinged.status.success(), "{}", String::from_utf8_lossy(&pinged.stdout));
        let output = child.wait_with_output().unwrap();
        let summary = json(&output.stdout);
        assert_eq!(summary["conservation"]["holds"], true);
        // The requests, and ARP before the first of them.
        assert!(summary["live"]["up"]["received"].as_u64().unwrap() >= 20, "{summary}");
        assert!(summary["live"]["up"]["not_ip"].as_u64().unwrap() > 0 || path != "auto", "{summary}");
    }
}

#[test]
#[ignore = "needs root, to give it up"]
fn without_rights_it_says_which_it_needs() {
    let Some(scratch) = folder() else { return };
    let nobody = 65_534;
    match lastmile(&scratch.path, &["emulate", "line.toml"]).uid(nobody).gid(nobody).output() {
        Ok(output) => {
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{error}");
            assert!(error.starts_with("error: ") && error.contains("needs root"), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        // The program stands in a folder that only root may enter.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}"),
    }
}

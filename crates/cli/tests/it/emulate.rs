//! `lastmile emulate` with real packets. The tests need root, network namespaces and TUN devices,
//! so they run only on request (`scripts/live-tests.sh`).

mod interleaved;
mod rights;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lastmile_live::netns::Namespace;
use serde_json::Value;

use crate::hosts::{Hosts, ip, ping_times};
use crate::live::{self, json, kill, lastmile, namespaces, until_it_says};
use crate::transcript::Scratch;
use rights::{as_nobody, folder_for_all};

/// The line of the demonstration, with a delay for each part of the path, and a ping in the
/// simulation.
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

/// A folder with the line in it; `None`, with a message, where these tests cannot run.
fn folder() -> Option<Scratch> {
    live::folder("line.toml", LINE)
}

/// One file under two clocks: the simulator's ping, and ping(8) through the emulator.
#[test]
#[ignore = "needs root: real packets"]
fn a_real_ping_takes_as_long_as_the_simulated_one() {
    let Some(scratch) = folder() else { return };
    let simulated = json(&lastmile(&scratch.path, &["run", "line.toml", "--json"]).output().unwrap().stdout);
    let simulated_ms = simulated["probes"][0]["rtt_s"]["p50"].as_f64().unwrap() * 1e3;

    let ping = ["ping", "-n", "-c", "100", "-i", "0.02", "-s", "56", "198.18.0.1"];
    // With priority over other processes, because ping(8) uses the times of the kernel.
    let arguments = [&["emulate", "line.toml", "--json", "--realtime", "--"][..], &ping].concat();
    let output = lastmile(&scratch.path, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let times = ping_times(&text);
    assert_eq!(times.len(), 100, "{text}");
    let median_ms = f64::midpoint(times[49], times[50]);
    eprintln!("simulated {simulated_ms:.3} ms, ping(8) through the emulator {median_ms:.3} ms");
    assert!((median_ms - simulated_ms).abs() < 1.0, "simulated {simulated_ms} ms, real {median_ms} ms");

    // Messages, such as the one about namespaces of killed runs, come before the summary.
    let begin = output.stderr.iter().position(|&byte| byte == b'{').unwrap();
    let emulated = json(&output.stderr[begin..]);
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

/// PPPoE leaves 1492 bytes of an Ethernet frame (RFC 2516), so that 1464 octets of an echo request fit behind 28 of
/// headers, and 1465 do not. An MTU of the file and `--mtu` replace it.
#[test]
#[ignore = "needs root: real packets"]
fn the_devices_have_the_mtu_of_the_line() {
    let Some(scratch) = folder() else { return };
    let pppoe = LINE.replace("bridged-vcmux-fcs", "pppoe-llcsnap-fcs");
    std::fs::write(scratch.path.join("pppoe.toml"), pppoe).unwrap();
    let narrow = ["--set", "access.mtu=\"1400 B\""];
    for (file, options, mtu) in [
        ("line.toml", &[][..], 1500_u32),
        ("pppoe.toml", &[], 1492),
        ("pppoe.toml", &narrow, 1400),
        ("pppoe.toml", &["--mtu", "1500"], 1500),
    ] {
        let fits = mtu - 28;
        let script = format!(
            "ip link show lastmile0 | grep -o 'mtu [0-9]*'; \
             ping -n -c 1 -W 5 -M do -s {fits} 198.18.0.1 >/dev/null; echo fits $?; \
             ping -n -c 1 -W 5 -M do -s {} 198.18.0.1 2>&1 | grep -io 'message too long.*'",
            fits + 1
        );
        let arguments = [&["emulate", file][..], options, &["--", "sh", "-c", &script]].concat();
        let output = lastmile(&scratch.path, &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).to_lowercase();
        assert!(said.contains(&format!("mtu {mtu}\nfits 0\nmessage too long")), "{options:?}: {said}");
        assert!(said.contains(&format!("mtu={mtu}")) || said.contains(&format!("mtu: {mtu}")), "{said}");
    }
}

/// The line of one client among several: its links alone, and no goodput of lines, which nobody knows.
#[test]
#[ignore = "needs root: real packets"]
fn a_scenario_of_several_access_lines_is_the_line_of_one_client() {
    let text = r#"
        duration = "1 s"
        [access]
        lines = 8
        down = { rate = "8 Mbit/s", delay = "4 ms" }
        up = { rate = "1 Mbit/s", delay = "4 ms" }
        aggregation = { rate = "8 Mbit/s", delay = "1 ms" }
        [[traffic]]
        kind = "bulk"
        direction = "down"
    "#;
    let Some(scratch) = live::folder("line.toml", text) else { return };
    for (ends, access) in [(&[][..], "up-1"), (&["--between", "client-8,server"], "up-8")] {
        let ping = ["--", "ping", "-n", "-c", "3", "-i", "0.05", "198.18.0.1"];
        let arguments = [&["emulate", "line.toml", "--json"], ends, &ping].concat();
        let output = lastmile(&scratch.path, &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let summary = json(&output.stderr[said.find('{').unwrap()..]);
        let up = summary["links"].as_array().unwrap().iter().find(|link| link["name"] == access).unwrap().clone();
        assert_eq!(up["packets"], 3, "{summary}");
        assert_eq!(summary["lines"].as_array().map(Vec::len), Some(0), "{summary}");
        assert_eq!(summary["conservation"]["holds"], true, "{summary}");
    }
}

/// Ping and TCP over IPv6. In the second before and after, no packet appears that nobody sent: no
/// discovery, no solicitation.
#[test]
#[ignore = "needs root: real packets"]
fn ipv6_crosses_the_line_and_sends_nothing_of_its_own() {
    let Some(scratch) = folder() else { return };
    let end = |role: &str| Namespace::create(&format!("lastmile-{}-v6-{role}", std::process::id())).unwrap();
    let (client, server) = (end("client"), end("server"));
    let ends = ["--client-ns", client.name(), "--server-ns", server.name()];
    let arguments = [&["emulate", "line.toml", "--json"][..], &ends].concat();
    let mut child = lastmile(&scratch.path, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = until_it_says("for example", &mut BufReader::new(child.stderr.take().unwrap()));
    assert!(said.contains("client 198.18.0.2 and 2001:2::2 in network namespace"), "{said}");
    std::thread::sleep(Duration::from_secs(1));
    let mut ping = Command::new("ping");
    ping.args(["-6", "-n", "-q", "-c", "10", "-i", "0.05", "2001:2::1"]);
    let pinged = client.run(|| ping.output()).unwrap().unwrap();
    assert!(pinged.status.success(), "{}", String::from_utf8_lossy(&pinged.stdout));
    let listener = server.run(|| std::net::TcpListener::bind("[2001:2::1]:80")).unwrap().unwrap();
    let mut up = client.run(|| std::net::TcpStream::connect("[2001:2::1]:80")).unwrap().unwrap();
    let (mut at_server, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip().to_string(), "2001:2::2");
    let payload = vec![0; 14_280];
    std::io::Write::write_all(&mut up, &payload).unwrap();
    drop(up);
    let mut received = Vec::new();
    at_server.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), payload.len());
    drop(at_server);
    std::thread::sleep(Duration::from_secs(1));
    kill("INT", child.id());
    let summary = json(&child.wait_with_output().unwrap().stdout);
    let received = |direction: &str| summary["live"][direction]["received"].as_u64().unwrap();
    // Ten requests; SYN, ACK, at least ten segments, FIN and the ACK of the far FIN.
    assert!((24..=40).contains(&received("up")), "{summary}");
    assert!((14..=40).contains(&received("down")), "{summary}");
    assert_eq!(summary["live"]["up"]["unreadable"], 0);
}

/// A second device there would have the address of the first, and its packets would take the first line.
#[test]
#[ignore = "needs root: real packets"]
fn a_namespace_has_an_end_of_one_line_until_its_process_is_gone() {
    let Some(scratch) = folder() else { return };
    let end = |role: &str| Namespace::create(&format!("lastmile-{}-one-{role}", std::process::id())).unwrap();
    let (client, server) = (end("client"), end("server"));
    let ends = ["emulate", "line.toml", "--client-ns", client.name(), "--server-ns", server.name()];
    let mut first = lastmile(&scratch.path, &ends).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_says("for example", &mut BufReader::new(first.stderr.take().unwrap()));
    let second = |arguments: &[&str]| {
        let output = lastmile(&scratch.path, arguments).args(["--", "true"]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let taken = |name: &str, pid: u32| {
        format!(
            "error: the network namespace {name:?} has an end of another emulated line, that of process {pid}\n\
             hint: Ctrl-C ends it; two at once would have one address, and one of them all packets\n"
        )
    };
    assert_eq!(second(&ends), (Some(2), taken(client.name(), first.id())));
    let server_alone = ["emulate", "line.toml", "--server-ns", server.name()];
    let (code, said) = second(&server_alone);
    assert!(code == Some(2) && said.ends_with(&taken(server.name(), first.id())), "{said}");

    // A namespace that a run has made is its own, too, and free devices are no sign of a free namespace.
    let mut own = lastmile(&scratch.path, &["emulate", "line.toml"]).stderr(Stdio::piped()).spawn().unwrap();
    until_it_says("for example", &mut BufReader::new(own.stderr.take().unwrap()));
    let theirs = format!("lastmile-{}-client", own.id());
    let (code, said) = second(&["emulate", "line.toml", "--client-ns", &theirs]);
    kill("INT", own.id());
    own.wait().unwrap();
    assert_eq!((code, said), (Some(2), taken(&theirs, own.id())));

    kill("KILL", first.id());
    first.wait().unwrap();
    let (code, said) = second(&ends);
    assert_eq!(code, Some(0), "{said}");
}

/// A line without traffic for two seconds has seen no packet.
#[test]
#[ignore = "needs root: real packets"]
fn an_unused_line_carries_nothing() {
    let Some(scratch) = folder() else { return };
    let output = lastmile(&scratch.path, &["emulate", "line.toml", "--json", "--duration", "2 s"]).output().unwrap();
    let summary = json(&output.stdout);
    for direction in ["up", "down"] {
        assert_eq!(summary["live"][direction]["received"], 0, "{direction}");
    }
}

/// The policy of the command replaces the file's, and is among the inputs of the results.
#[test]
#[ignore = "needs root: real packets"]
fn a_policy_takes_the_place_of_the_files() {
    let Some(scratch) = folder() else { return };
    let emulated = |policy: &str| {
        let arguments = ["emulate", "line.toml", "--policy", policy, "--json", "--", "true"];
        lastmile(&scratch.path, &arguments).output().unwrap()
    };
    let output = emulated("cake");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stderr);
    let document = json(text[text.find('{').unwrap()..].as_bytes());
    let links = document["links"].as_array().unwrap();
    assert!(links.iter().any(|link| link["name"] == "middlebox-up"), "cake stands in a middlebox: {document}");
    assert_eq!(document["inputs"]["set"], serde_json::json!(["access.policy=cake"]));
    let text = String::from_utf8_lossy(&emulated("caek").stderr).into_owned();
    assert!(text.contains("--policy caek") && text.contains("did you mean \"cake\"?"), "{text}");
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

/// A running line whose program treats SIGHUP by this option of env(1). Its further output is not
/// read.
fn emulating(scratch: &Scratch, hang_up: &str) -> Child {
    let mut child = Command::new("env")
        .args([hang_up, env!("CARGO_BIN_EXE_lastmile"), "emulate", "line.toml", "--json"])
        .current_dir(&scratch.path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_it_says("for example", &mut BufReader::new(child.stderr.as_mut().unwrap()));
    child
}

#[test]
#[ignore = "needs root: real packets"]
fn interrupted_it_says_what_it_did_and_leaves_nothing_behind() {
    let Some(scratch) = folder() else { return };
    for signal in ["INT", "TERM", "HUP"] {
        // The parent of the tests may ignore SIGHUP.
        let mut child = emulating(&scratch, "--default-signal=HUP");
        assert_eq!(namespaces(child.id()).len(), 2);
        kill(signal, child.id());
        let mut data = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut data).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        assert_eq!(namespaces(child.id()), [""; 0], "{signal}");
        let summary = json(&data);
        assert_eq!(summary["conservation"]["holds"], true);
        assert!(summary["live"]["ended_by"].as_str().unwrap().starts_with("signal"));
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn under_nohup_it_outlives_its_terminal() {
    let Some(scratch) = folder() else { return };
    let mut child = emulating(&scratch, "--ignore-signal=HUP");
    kill("HUP", child.id());
    kill("TERM", child.id());
    let mut data = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut data).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(json(&data)["live"]["ended_by"], "signal 15");
}

/// Two hosts, and in a namespace between them the line, by each packet path.
#[test]
#[ignore = "needs root: real packets"]
fn between_two_interfaces_it_says_how_packets_go_and_carries_them() {
    let Some(scratch) = folder() else { return };
    let hosts = Hosts::new(false);
    for (path, said) in [
        ("auto", "packet path: packet sockets, because"),
        ("packet-sockets", "packet path: packet sockets, as asked for; bypass by tcx"),
        ("packet-sockets-nft", "packet path: packet sockets, as asked for; bypass by nft"),
        ("xdp", "packet path: AF_XDP native copy, as asked for"),
    ] {
        let mut emulate =
            lastmile(&scratch.path, &["emulate", "line.toml", "--bridge", "west,east", "--path", path, "--json"]);
        emulate.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = hosts.middle.run(|| emulate.spawn()).unwrap().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        for interface in ["client behind interface west", "server behind interface east"] {
            let mut line = String::new();
            talk.read_line(&mut line).unwrap();
            assert!(line.starts_with(interface) && line.contains(said), "{line}");
        }
        let mut ping = Command::new("ping");
        ping.args(["-n", "-q", "-c", "20", "-i", "0.03", "10.9.0.2"]);
        let pinged = hosts.left.run(|| ping.output()).unwrap().unwrap();
        assert!(pinged.status.success(), "{}", String::from_utf8_lossy(&pinged.stdout));
        kill("INT", child.id());
        let output = child.wait_with_output().unwrap();
        let summary = json(&output.stdout);
        assert_eq!(summary["conservation"]["holds"], true);
        // The requests, and ARP before the first of them.
        assert!(summary["live"]["up"]["received"].as_u64().unwrap() >= 20, "{summary}");
        assert!(summary["live"]["up"]["not_ip"].as_u64().unwrap() > 0 || path != "auto", "{summary}");
    }
}

/// The variable that activates one of the next two functions.
const ROLE: &str = "LASTMILE_TEST_ROLE";

/// No test: a server with a slow start.
#[test]
#[ignore = "part of another test"]
fn the_server_behind_the_line() {
    if std::env::var(ROLE).is_ok_and(|role| role == "server") {
        std::thread::sleep(Duration::from_millis(300));
        let listener = std::net::TcpListener::bind("198.18.0.1:80").unwrap();
        while let Ok((mut stream, _)) = listener.accept() {
            std::io::Write::write_all(&mut stream, b"from the far end").unwrap();
        }
    }
}

/// No test: its client, which sends one request.
#[test]
#[ignore = "part of another test"]
fn the_client_behind_the_line() {
    if std::env::var(ROLE).is_ok_and(|role| role == "client") {
        let mut stream = std::net::TcpStream::connect("198.18.0.1:80").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "from the far end");
    }
}

#[test]
#[ignore = "needs root, to give it up"]
fn the_server_is_there_before_the_command_and_gone_after_it() {
    let Some(scratch) = folder_for_all() else { return };
    let role = |role: &str| format!("{ROLE}={role} exec ./tests --ignored --exact emulate::the_{role}_behind_the_line");
    let (server, client) = (format!("echo $$ > server.pid; {}", role("server")), role("client"));
    // The server writes its number there.
    assert!(Command::new("chmod").args(["777", scratch.path.to_str().unwrap()]).status().unwrap().success());
    let arguments = ["./lastmile", "emulate", "line.toml", "--server", &server, "--", "sh", "-c", &client];
    let output = as_nobody(&scratch, true, &arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{}{said}", String::from_utf8_lossy(&output.stdout));
    let pid = std::fs::read_to_string(scratch.path.join("server.pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the server goes with the line");

    let failed = ["./lastmile", "emulate", "line.toml", "--server", "exit 3", "--", "true"];
    let output = as_nobody(&scratch, true, &failed);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the command at the server's end ended before the line did (exit status: 3)"), "{said}");
    // The failure of the command itself is reported first.
    let failed = ["./lastmile", "emulate", "line.toml", "--server", "exit 3", "--", "sh", "-c", "exit 7"];
    assert_eq!(as_nobody(&scratch, true, &failed).status.code(), Some(7));
    let ended = ["./lastmile", "emulate", "line.toml", "--server", "true", "--", "true"];
    let output = as_nobody(&scratch, true, &ended);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the command at the server's end ended before the line did (exit status: 0)"), "{said}");
}

#[test]
#[ignore = "needs root: real packets"]
fn while_it_runs_it_tells_what_its_links_have_done() {
    let Some(scratch) = folder() else { return };
    let mut child = lastmile(&scratch.path, &["emulate", "line.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    until_it_says("for example", &mut talk);
    let client = format!("lastmile-{}-client", child.id());
    ip(&format!("netns exec {client} ping -n -q -c 4 -i 0.1 198.18.0.1"));
    let pid = child.id().to_string();
    let ask = |more: &[&str]| {
        let output = lastmile(&scratch.path, &["emulate", "status", "--pid", &pid]).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let status: Value = serde_json::from_str(&ask(&["--json"])).unwrap();
    let links = status["up"]["links"].as_array().unwrap();
    let up = links.iter().find(|link| link["name"] == "up").unwrap();
    // 84 + 28 bytes are 3 cells of 53.
    assert_eq!((&up["transmitted"]["packets"], &up["transmitted"]["bytes"]), (&4.into(), &336.into()));
    assert_eq!((&up["cells"], &up["wire_bytes"], &up["rate_bps"]), (&12.into(), &636.into(), &512_000.into()));
    assert_eq!(status["down"]["sent"]["packets"], 4);
    let text = ask(&[]);
    for told in [
        "up, link up: 512 kbit/s, ",
        "  Sent 336 bytes 4 pkt (dropped 0, overlimits 0)",
        "  backlog 0b 0p, at most 0b 0p",
        "  wire 636 bytes in 12 cells, 1.893 for each of IP",
    ] {
        assert!(text.lines().any(|line| line.starts_with(told)), "no line begins with {told:?}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");

    // dd(1) also reports at this signal.
    kill("USR1", child.id());
    until_it_says("  wire 636 bytes", &mut talk);
    kill("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let output = lastmile(&scratch.path, &["emulate", "status", "--pid", &pid]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

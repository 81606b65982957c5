//! `lastmile measure` over emulated lines. The tests need root, network namespaces and TUN devices,
//! so they run only on request (`scripts/live-tests.sh measure`).

use std::io::{BufReader, Read};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lastmile_linklayer::LinkLayer;
use lastmile_live::netns::Namespace;
use lastmile_units::ByteCount;
use serde_json::Value;

use crate::hosts::Running;
use crate::live::{self, json, kill, lastmile, until_it_says};
use crate::shape::until;
use crate::transcript::Scratch;

mod refused;

/// VDSL2 with 50 and 10 Mbit/s. Queues are 100 ms long: 1524 bytes on the wire for 1500.
pub(crate) const VDSL2: &str = r#"
[access]
encapsulation = "bridged-ptm"
down = { rate = "50 Mbit/s", delay = "4 ms", queue = { kind = "fifo", limit = "615 kB" } }
up = { rate = "10 Mbit/s", delay = "9 ms", queue = { kind = "fifo", limit = "123 kB" } }
backbone = { delay = "0 ms" }
"#;

/// This line with FQ-CoDel both ways.
const FAIR: &str = r#"
[access]
encapsulation = "bridged-ptm"
down = { rate = "50 Mbit/s", delay = "4 ms", queue = { kind = "fq-codel" } }
up = { rate = "10 Mbit/s", delay = "9 ms", queue = { kind = "fq-codel" } }
backbone = { delay = "0 ms" }
"#;

pub(crate) const KEY: &str = "correct horse battery";

/// An emulated line with a server at its far end.
pub(crate) struct Bench {
    // They end before their namespaces.
    serving: Running,
    _line: Running,
    pub(crate) scratch: Scratch,
    pub(crate) client: Namespace,
    server: Namespace,
}

impl Bench {
    /// `None`, with a message, where these tests cannot run.
    pub(crate) fn new(line: &str, options: &[&str]) -> Option<Self> {
        Self::with_server_under(&[], line, options)
    }

    /// The server is started by this program with arguments.
    fn with_server_under(program: &[&str], line: &str, options: &[&str]) -> Option<Self> {
        let scratch = live::folder("line.toml", line)?;
        let end = |role: &str| Namespace::create(&format!("lastmile-{}-m-{role}", std::process::id())).unwrap();
        let (client, server) = (end("client"), end("server"));
        let arguments = ["emulate", "line.toml", "--client-ns", client.name(), "--server-ns", server.name()];
        let mut line = lastmile(&scratch.path, &arguments);
        let mut line = Running(line.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        until_it_says("for example", &mut BufReader::new(line.stderr.as_mut().unwrap()));
        let words = [program, &[env!("CARGO_BIN_EXE_lastmile"), "measure", "--serve"], options].concat();
        let mut serve = Command::new(words[0]);
        serve.args(&words[1..]).stdin(Stdio::null());
        serve.env("LASTMILE_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut serving = Running(server.run(|| serve.spawn()).unwrap().unwrap());
        until_it_says("serving at", &mut BufReader::new(serving.stderr.as_mut().unwrap()));
        Some(Self { serving, _line: line, scratch, client, server })
    }

    /// A measurement from the client's end, or a detection.
    fn command(&self, arguments: &[&str]) -> Command {
        let detects = arguments.iter().any(|argument| argument.starts_with("--detect"));
        let congestion: &[&str] = if detects { &[] } else { &["--congestion", "cubic"] };
        let arguments = [&["measure", "198.18.0.1", "--json", "-"], congestion, arguments].concat();
        let mut command = lastmile(&self.scratch.path, &arguments);
        command.env("LASTMILE_KEY", KEY);
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        self.client.run(|| command.output()).unwrap().unwrap()
    }

    pub(crate) fn measure(&self, arguments: &[&str]) -> Value {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        json(&output.stdout)
    }

    /// The output of the server when it ended, and the duration of its end.
    fn end(&mut self) -> (String, Duration) {
        let begin = Instant::now();
        kill("TERM", self.serving.id());
        let mut counters = String::new();
        self.serving.stdout.take().unwrap().read_to_string(&mut counters).unwrap();
        assert_eq!(self.serving.wait().unwrap().code(), Some(0));
        (counters, begin.elapsed())
    }
}

/// The phase with this load.
pub(crate) fn phase<'a>(measured: &'a Value, load: &str) -> &'a Value {
    let phases = measured["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["load"] == load || (load == "idle" && phase["load"].is_null())).unwrap()
}

/// The series of this kind of probe.
pub(crate) fn series<'a>(phase: &'a Value, kind: &str) -> &'a Value {
    phase["probes"].as_array().unwrap().iter().find(|series| series["subject"]["kind"] == kind).unwrap()
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Bits on the wire of an IP packet.
fn wire_bits(ip_len: u64) -> f64 {
    let layer = LinkLayer::from_name("bridged-ptm").unwrap();
    (layer.on_wire(ByteCount::new(ip_len)).as_u64() * 8) as f64
}

/// TCP payload with time stamps in packets of 1500 bytes, on a line that also carries ten ICMP and
/// ten UDP probes a second.
fn goodput_bps(rate_bps: f64) -> f64 {
    (rate_bps - 10.0 * (wire_bits(84) + wire_bits(88))) * 1448.0 * 8.0 / wire_bits(1500)
}

#[test]
#[ignore = "needs root: real packets"]
fn measured_rates_and_delays_are_those_of_the_line() {
    let Some(bench) = Bench::new(VDSL2, &[]) else { return };
    let measured = bench.measure(&["--phases", "idle,download,upload"]);
    let idle = phase(&measured, "idle");
    // 84 bytes take 0.02 ms and 0.09 ms at these rates.
    let base_ms = number(&series(idle, "icmp")["round_trip"]["p50_s"]["value"]) * 1e3;
    assert!((base_ms - 13.1).abs() < 1.0, "{base_ms}");
    let one_way = |way: &str| number(&series(idle, "udp")[way]["p50_s"]["value"]) * 1e3;
    assert!((one_way("up") - 9.1).abs() < 0.7 && (one_way("down") - 4.0).abs() < 0.7, "{}", one_way("up"));
    assert_eq!(measured["clocks"], "one-way delays are differences of one clock");
    for (load, rate_bps, packets) in [("download", 50e6, 410.0), ("upload", 10e6, 82.0)] {
        let loaded = phase(&measured, load);
        let goodput = number(&loaded[load]["goodput_bps"]["value"]);
        let right = goodput_bps(rate_bps);
        assert_eq!(loaded[load]["congestion"], "cubic", "the sender's socket tells it");
        assert!((goodput / right - 1.0).abs() < 0.01, "{load}: {goodput} bit/s, {right} by the closed form");
        // A full queue is this many packets long.
        let full_ms = packets * wire_bits(1500) / rate_bps * 1e3;
        let queue_ms = number(&series(loaded, "icmp")["round_trip"]["p99_s"]) * 1e3 - base_ms;
        assert!((queue_ms / full_ms - 1.0).abs() < 0.1, "{load}: {queue_ms} ms of a queue of {full_ms} ms");
        // The queue delays one direction alone.
        let grown = |way: &str| number(&series(loaded, "udp")[way]["p95_s"]) * 1e3 - one_way(way);
        let (up, down) = (grown("up"), grown("down"));
        let (full, empty) = if load == "upload" { (up, down) } else { (down, up) };
        assert!(full > 0.6 * full_ms && empty < 0.1 * full_ms, "{load}: up {up} ms, down {down} ms");
    }
    assert_eq!(measured["conditions"]["grade"], "C", "{}", measured["conditions"]);
}

/// The server is in a time namespace whose monotonic clock is 1000 s ahead. The delays of both
/// directions differ by 5 ms, which no measurement of two clocks can see; their growth shows.
#[test]
#[ignore = "needs root: real packets"]
fn two_clocks_show_the_growth_of_one_way_delays() {
    let other_time = ["unshare", "--time", "--monotonic", "1000", "--fork", "--kill-child"];
    let Some(bench) = Bench::with_server_under(&other_time, VDSL2, &[]) else { return };
    let measured = bench.measure(&["--phases", "idle,upload", "--duration", "6 s"]);
    let clocks = measured["clocks"].as_str().unwrap();
    assert!(clocks.starts_with("one-way delays assume"), "{clocks}");
    let [idle, upload] = ["idle", "upload"].map(|load| series(phase(&measured, load), "udp").clone());
    let median_ms = |series: &Value, way: &str| number(&series[way]["p50_s"]["value"]) * 1e3;
    for way in ["up", "down"] {
        assert!((median_ms(&idle, way) - 6.6).abs() < 1.0, "{way}: {}", median_ms(&idle, way));
    }
    let grown = ["up", "down"].map(|way| median_ms(&upload, way) - median_ms(&idle, way));
    assert!(grown[0] > 50.0 && grown[1] < 5.0, "{grown:?}");
}

#[test]
#[ignore = "needs root: real packets"]
fn fair_queueing_keeps_latency_low_at_the_same_rate() {
    let Some(bench) = Bench::new(FAIR, &[]) else { return };
    let measured = bench.measure(&["--phases", "idle,both", "--ping", "198.18.0.1:5209@46"]);
    let (idle, both) = (phase(&measured, "idle"), phase(&measured, "both"));
    // ACKs of the other direction share the line: one for two segments at most.
    let acks_bps = |goodput_bps: f64| goodput_bps / (2.0 * 1448.0 * 8.0) * wire_bits(52);
    let [down, up] = [goodput_bps(50e6), goodput_bps(10e6)];
    for (way, alone, other) in [("download", down, up), ("upload", up, down)] {
        let goodput = number(&both[way]["goodput_bps"]["value"]);
        let least = alone - 1.1 * acks_bps(other);
        assert!(goodput > 0.95 * least && goodput < alone, "{way}: {goodput}, at least {least} are possible");
    }
    let median = |phase: &Value, kind: &str| number(&series(phase, kind)["round_trip"]["p50_s"]["value"]);
    for kind in ["icmp", "udp", "tcp_connect"] {
        let added_ms = (median(both, kind) - median(idle, kind)) * 1e3;
        assert!(added_ms < 10.0, "{kind}: {added_ms} ms");
    }
    assert_eq!(series(idle, "tcp_connect")["subject"]["code_point"], 46);
    assert!(["A+", "A"].contains(&measured["conditions"]["grade"].as_str().unwrap()), "{}", measured["conditions"]);
}

/// A true value lies in an interval of 95 %, and the estimates of two measurements differ by less
/// than the sum of both half widths.
#[test]
#[ignore = "needs root: real packets"]
fn two_measurements_of_one_line_agree() {
    let Some(bench) = Bench::new(VDSL2, &[]) else { return };
    let runs = [(); 2].map(|()| bench.measure(&["--phases", "download"]));
    let [one, two] = runs.each_ref().map(|run| phase(run, "download"));
    let estimates = |of: &dyn Fn(&Value) -> Value, resolution: f64| {
        let [one, two] = [of(one), of(two)];
        let half = |e: &Value| (number(&e["high"]) - number(&e["low"])) / 2.0;
        let apart = (number(&one["value"]) - number(&two["value"])).abs();
        assert!(apart <= half(&one) + half(&two) + resolution, "{one} and {two}");
    };
    // The rate of the line is constant, and a segment more or less is none of the estimate's.
    estimates(&|phase| phase["download"]["goodput_bps"].clone(), 50e6 * 0.001);
    estimates(&|phase| series(phase, "icmp")["round_trip"]["p50_s"].clone(), 0.0);
}

#[test]
#[ignore = "needs root: real packets"]
fn without_icmp_the_rest_is_measured_and_the_lack_reported() {
    let Some(bench) = Bench::new(VDSL2, &[]) else { return };
    let ignore = || std::fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
    bench.server.run(ignore).unwrap().unwrap();
    let measured = bench.measure(&["--phases", "idle,upload", "--duration", "4 s"]);
    assert!(series(phase(&measured, "idle"), "icmp")["round_trip"].is_null());
    assert!(number(&series(phase(&measured, "upload"), "udp")["round_trip"]["p99_s"]) > 0.05);
    let warnings = measured["warnings"].to_string();
    assert!(warnings.contains("ICMP echo requests to 198.18.0.1 was answered"), "{warnings}");
    assert!(measured["conditions"]["grade"].is_string(), "by UDP probes");
}

#[test]
#[ignore = "needs root: real packets"]
fn a_server_that_vanishes_is_reported_and_what_was_measured_printed() {
    let Some(mut bench) = Bench::new(VDSL2, &[]) else { return };
    let mut command = bench.command(&["--phases", "idle,download,idle", "--duration", "6 s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = bench.client.run(|| command.spawn()).unwrap().unwrap();
    std::thread::sleep(Duration::from_secs(9));
    kill("KILL", bench.serving.id());
    let _ = bench.serving.wait();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let measured = json(&output.stdout);
    assert_eq!((measured["phases"].as_array().unwrap().len(), &measured["complete"]), (3, &false.into()));
    assert!(number(&phase(&measured, "download")["duration_s"]) < 5.0);
    let warnings = measured["warnings"].to_string();
    assert!(warnings.contains("load of the phase download"), "{warnings}");
    // The host itself still answers.
    let last = &measured["phases"][2];
    assert!(number(&series(last, "icmp")["round_trip"]["p50_s"]["value"]) < 0.05);
}

/// The line carries 10 Mbit/s, and the server 3: no burst passes, and the measurement says what held it back.
#[test]
#[ignore = "needs root: real packets"]
fn the_limit_of_a_server_is_the_rate_and_is_reported() {
    let Some(bench) = Bench::new(VDSL2, &["--limit-rate", "3 Mbit/s"]) else { return };
    let measured = bench.measure(&["--phases", "idle,download,upload", "--duration", "6 s"]);
    for load in ["download", "upload"] {
        let throughput = &phase(&measured, load)[load];
        let goodput = number(&throughput["goodput_bps"]["value"]);
        assert!((2.85e6..=3.1e6).contains(&goodput), "{load}: {}", throughput["goodput_bps"]);
        // 6 s at 3 Mbit/s are 2.25 MB.
        assert!(number(&throughput["bytes"]) < 2.35e6, "{load}: {}", throughput["bytes"]);
        let warning = format!("phase {load}: the {load} reached the limit of the server, 3 Mbit/s");
        assert!(measured["warnings"].to_string().contains(&warning), "{}", measured["warnings"]);
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn the_server_refuses_counts_and_ends_at_once() {
    let Some(mut bench) = Bench::new(VDSL2, &["--limit-time", "3 s", "--limit-clients", "1"]) else { return };
    let mut other = bench.command(&["--phases", "idle"]);
    other.env("LASTMILE_KEY", "another key of 24 chars.");
    let refused = bench.client.run(|| other.output()).unwrap().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("refuses: the key is another one"), "{said}");
    let long = bench.output(&["--phases", "download", "--duration", "10 s"]);
    assert!(String::from_utf8_lossy(&long.stderr).contains("the server ends each load after 3 s"));
    // Clients that connect and say nothing, and datagrams of nobody.
    let silent: Vec<TcpStream> =
        bench.client.run(|| (0..100).map(|_| TcpStream::connect("198.18.0.1:5209").unwrap()).collect()).unwrap();
    let flood = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        (0..1000).for_each(|_| drop(socket.send_to(&[b'L'; 200], "198.18.0.1:5209")));
    };
    bench.client.run(flood).unwrap();
    let measured = bench.measure(&["--phases", "upload", "--duration", "2 s"]);
    assert!(number(&phase(&measured, "upload")["upload"]["goodput_bps"]["value"]) > 8e6);
    let (counters, took) = bench.end();
    drop(silent);
    // The silent ones have five seconds.
    assert!(took < Duration::from_secs(4), "{took:?}");
    let counter = |name: &str| -> u64 {
        let line = counters.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    assert_eq!(counter("connections without the key"), 1, "{counters}");
    assert_eq!(counter("sessions opened"), 2, "{counters}");
    assert!(counter("connections closed without a whole first line") > 0, "{counters}");
    assert!(counter("datagrams of no session") > 500, "{counters}");
}

/// Datagrams beyond the rate of the line: what the line takes arrives, and the rest is lost.
#[test]
#[ignore = "needs root: real packets"]
fn datagrams_of_iperf3_show_the_rate_and_the_loss_of_the_line() {
    let Some(bench) = Bench::new(VDSL2, &[]) else { return };
    let mut command = Command::new("iperf3");
    command.args(["-s"]).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut iperf3) = bench.server.run(|| command.spawn()).unwrap() else {
        return eprintln!("skipped: iperf3 is not installed");
    };
    let mut listening = Command::new("ss");
    listening.args(["-Htln", "sport = :5201"]);
    until("iperf3 listens", || !bench.server.run(|| listening.output().unwrap()).unwrap().stdout.is_empty());
    let arguments = ["measure", "198.18.0.1", "--udp", "12 Mbit/s", "--json", "-", "--duration", "5 s"];
    let mut command = lastmile(&bench.scratch.path, &arguments);
    let output = bench.client.run(|| command.output()).unwrap().unwrap();
    let _ = iperf3.kill();
    let _ = iperf3.wait();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let measured = json(&output.stdout);
    // 1448 bytes of payload have 28 of headers. Upstream 12 Mbit/s of payload meet 10 Mbit/s of the wire.
    let most_up = 10e6 * 1448.0 * 8.0 / wire_bits(1476);
    for (load, way, rate_bps) in [("download", "down", 12e6), ("upload", "up", most_up), ("both", "up", most_up)] {
        let loaded = phase(&measured, load);
        let datagrams = loaded["datagrams"].as_array().unwrap().iter().find(|of| of["way"] == way).unwrap();
        let lost = number(&datagrams["lost"]) / (number(&datagrams["lost"]) + number(&datagrams["received"]));
        assert!((lost - (1.0 - rate_bps / 12e6)).abs() < 0.03, "{load} {way}: {lost} lost, {datagrams}");
        let goodput = number(&loaded[if way == "up" { "upload" } else { "download" }]["goodput_bps"]["value"]);
        assert!((goodput / rate_bps - 1.0).abs() < 0.03, "{load} {way}: {goodput} bit/s of {rate_bps}");
        assert_eq!(datagrams["reordered"].is_null(), way == "up", "{datagrams}");
    }
}

/// The key of `irtt server --hmac` comes from a file or the environment, in irtt's own form.
#[test]
#[ignore = "needs root: real packets"]
fn an_irtt_server_with_a_key_answers_who_has_it() {
    let Some(bench) = Bench::new(VDSL2, &[]) else { return };
    let mut command = Command::new("irtt");
    command.args(["server", "-b", "198.18.0.1", "--hmac=0x6b6579206f6620746573740a"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut irtt) = bench.server.run(|| command.spawn()).unwrap() else {
        return eprintln!("skipped: irtt is not installed");
    };
    std::fs::write(bench.scratch.path.join("irtt.key"), "0x6b6579206f6620746573740a\n").unwrap();
    let idle = ["--phases", "idle", "--duration", "3 s", "--ping", "irtt/198.18.0.1@46"];
    let by_file = bench.measure(&[&idle[..], &["--irtt-key-file", "irtt.key"]].concat());
    let answered = |measured: &Value| {
        let series = series(phase(measured, "idle"), "irtt");
        number(&series["round_trip"]["p50_s"]["value"])
    };
    // 13 ms of the line, and what a busy machine adds.
    let is_of_the_line = |seconds: f64| (0.0125..0.1).contains(&seconds);
    assert!(is_of_the_line(answered(&by_file)), "{}", answered(&by_file));
    // The binary key ends in a line feed, so text cannot be the same one.
    let mut command = bench.command(&["--protocol", "irtt", "--phases", "idle", "--duration", "3 s"]);
    command.env("LASTMILE_IRTT_KEY", "0x6B6579206F6620746573740A");
    let by_environment = json(&bench.client.run(|| command.output()).unwrap().unwrap().stdout);
    assert!(is_of_the_line(answered(&by_environment)), "{}", answered(&by_environment));
    let _ = irtt.kill();
    let _ = irtt.wait();
}

/// flent's file of its test `ping`, and the JSON that a measurement would have written of it.
#[test]
fn a_file_of_flent_becomes_json_and_a_page_and_is_shown_beside_others() {
    const FLENT: &str = "crates/measure/tests/data/ping.flent.gz";
    let scratch = Scratch::new();
    let show = |arguments: &[&str]| {
        let output = lastmile(&scratch.path, &[&["measure", "show"], arguments].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), said)
    };
    let (code, text, said) = show(&[FLENT, "--json", "line.json", "--page", "line.html", "--flent", "again.flent.gz"]);
    assert_eq!(code, Some(0), "{said}");
    let read = |name: &str| std::fs::read(scratch.path.join(name)).unwrap();
    let median_s = number(&json(&read("line.json"))["phases"][0]["probes"][0]["round_trip"]["p50_s"]["value"]);
    assert!(String::from_utf8(read("line.html")).unwrap().contains("Round-trip time"));
    for written in ["line.json", "again.flent.gz"] {
        assert_eq!(show(&[written]).1, text, "{written}");
    }
    let (code, rows, said) = show(&[FLENT, "line.json"]);
    assert_eq!(code, Some(0), "{said}");
    let median = format!("{:.1}", median_s * 1e3);
    let of =
        |file: &str| rows.lines().find(|row| row.trim_start().starts_with(file)).unwrap_or_else(|| panic!("{rows}"));
    assert!(of(FLENT).contains("idle") && of("line.json").contains(&median[..3]), "{rows}");
    // A phase twice, as if the second were a download, of a measurement whose server ended.
    let mut cut = json(&read("line.json"));
    let mut loaded = cut["phases"][0].clone();
    loaded["load"] = "download".into();
    cut["phases"].as_array_mut().unwrap().push(loaded);
    cut["complete"] = false.into();
    std::fs::write(scratch.path.join("cut.json"), cut.to_string()).unwrap();
    let rows = show(&["line.json", "cut.json"]).1;
    let ends: Vec<bool> = rows.lines().map(|row| row.ends_with("  A+ of a download alone, incomplete")).collect();
    assert_eq!(ends.iter().filter(|marked| **marked).count(), 1, "{rows}");
    assert!(ends[ends.len() - 2], "the first row of the second file: {rows}");
    // One page of two measurements, a detection, and what is neither.
    assert_eq!(show(&[FLENT, "line.json", "--page", "two.html"]).0, Some(2));
    std::fs::write(scratch.path.join("detected.json"), r#"{"mtu_bytes":1500,"down":{},"up":{}}"#).unwrap();
    let (code, _, said) = show(&["detected.json"]);
    assert!(code == Some(2) && said.contains("detected.json: a detection"), "{said}");
    let (code, _, said) = show(&["crates/README.md"]);
    assert!(code == Some(2) && said.contains("crates/README.md: not JSON"), "{said}");
}

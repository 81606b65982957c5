//! `lastmile lab` with the kernel's TCP. The tests need root, network namespaces and TUN devices,
//! so they run only on request (`scripts/live-tests.sh`).

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::live::{folder, json, lastmile};
use crate::transcript::Scratch;

/// A download with a window of 32 KiB, which the queue can hold: nothing is lost, and both clocks
/// agree.
const SCENARIO: &str = r#"
name = "A download and a ping"
duration = "6 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "4 ms" }
up = { rate = "512 kbit/s", delay = "4 ms" }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
tcp = { variant = "cubic", receive_window = "32 KiB", quick_acks = false, delayed_ack = "40 ms" }

[[traffic]]
name = "voice"
kind = "voice"
direction = "up"
dscp = 46
start = "2 s"

[[traffic]]
name = "ping"
kind = "ping"
interval = "50 ms"
"#;

/// Runs `lastmile lab` on a scenario with both clocks, in its own folder with its results; `None`,
/// with a message, where these tests cannot run.
fn both(scenario: &str, more: &[&str]) -> Option<(Scratch, Value)> {
    let scratch = folder("lab.toml", scenario)?;
    let document = both_in(&scratch, more);
    Some((scratch, document))
}

fn both_in(scratch: &Scratch, more: &[&str]) -> Value {
    let output = lastmile(&scratch.path, &["lab", "lab.toml", "--both", "--json"]).args(more).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    json(&output.stdout)
}

fn row<'a>(rows: &'a Value, phase: &str, of: &str, measure: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| {
        (row["phase"].as_str(), row["of"].as_str(), row["measure"].as_str()) == (Some(phase), Some(of), Some(measure))
    });
    found.unwrap_or_else(|| panic!("no {measure} of {of} {phase} in {rows}"))
}

/// One file under two clocks: the simulator's TCP, and the kernel's.
#[test]
#[ignore = "needs root: real packets"]
fn kernel_tcp_gets_what_the_simulated_one_gets() {
    let Some((scratch, document)) = both(SCENARIO, &["--out", "results"]) else { return };
    let rows = &document["rows"];
    let goodput = row(rows, "during voice", "download", "goodput_bps");
    assert!(goodput["deviation"].as_f64().unwrap().abs() < 0.05, "{goodput}");
    let ping = row(rows, "during voice", "ping", "rtt_p50_s");
    let apart = (ping["median"].as_f64().unwrap() - ping["simulated"].as_f64().unwrap()).abs();
    assert!(apart < 0.002 || ping["deviation"].as_f64().unwrap().abs() < 0.1, "{ping}");

    let live = &document["live"][0];
    assert_eq!(live["clock"], "monotonic");
    assert_eq!(live["conservation"]["holds"], true);
    let transfer = &live["live"]["transfers"][0];
    assert_eq!(transfer["congestion"], "cubic");
    assert_eq!(transfer["payload_bytes"], 1448);
    // An ACK for every second segment, as in the scenario; with its defaults a kernel sends a tenth
    // more.
    let (data, acks) = (&live["flows"][0]["data_packets_received"], &live["flows"][0]["acks_sent"]);
    assert!(2 * acks.as_u64().unwrap() <= data.as_u64().unwrap() + 16, "{acks} ACKs of {data} segments");
    // One packet of voice every 20 ms for 4 s less the 100 ms within which a flow starts, as the simulated one does.
    let [voice, simulated] = [live, &document["simulated"]].map(|run| &run["flows"][1]);
    assert!(voice["name"] == "voice" && voice["data_packets"].as_u64() > Some(194), "{voice}");
    assert_eq!(voice["data_packets"], simulated["data_packets"]);
    for file in ["report.html", "live/summary.json", "live/live.json", "live/series.parquet", "simulated/summary.json"]
    {
        assert!(scratch.path.join("results").join(file).exists(), "{file}");
    }
}

/// The receiver's results of a call and its quality agree with the simulation: fields, delay and R.
#[test]
#[ignore = "needs root: real packets"]
fn a_call_is_judged_as_the_simulated_one() {
    let upload = "\n[[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\n\
     tcp = { receive_window = \"12 KiB\" }\n";
    // With a buffer of 60 ms a call would have no quality to compare.
    let text = SCENARIO.replace("dscp = 46\n", "dscp = 46\nplayout = \"250 ms\"\n") + upload;
    let Some((_, document)) = both(&text, &[]) else { return };
    let voice = |summary: &Value| {
        let flow = summary["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == "voice").unwrap().clone();
        let class = &summary["datagram_classes"][0];
        assert_eq!((class["flows"].as_u64(), class["class"].as_str()), (Some(1), Some("EF")), "{class}");
        flow
    };
    let (simulated, live) = (voice(&document["simulated"]), voice(&document["live"][0]));
    let keys = |flow: &Value| flow["datagrams"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&simulated), keys(&live));
    let number = |flow: &Value, pointer: &str| flow.pointer(pointer).unwrap().as_f64().unwrap();
    for (pointer, within) in [
        ("/delay_s/p50", 0.015),
        ("/datagrams/jitter_mean_s", 0.004),
        ("/datagrams/voice/r_factor", 8.0),
        ("/datagrams/voice/mos", 0.4),
    ] {
        let (simulated, live) = (number(&simulated, pointer), number(&live, pointer));
        assert!((simulated - live).abs() < within, "{pointer}: simulated {simulated}, live {live}");
    }
    // The upload fills the call's queue.
    assert!(number(&live, "/delay_s/p50") > 0.1, "{live}");
    assert!(number(&live, "/datagrams/voice/r_factor") > 10.0, "{live}");
    let [sent, received, lost] =
        ["/data_packets", "/data_packets_received", "/datagrams/lost_packets"].map(|at| number(&live, at));
    assert!(received + lost <= sent && received > 100.0, "{live}");
}

/// A growing window stays small on a slow line; a window from the file has its size from the
/// beginning.
#[test]
#[ignore = "needs root: real packets"]
fn windows_grow_as_the_kernel_lets_them_unless_the_file_sets_one() {
    let largest = |window: &str| {
        let text = SCENARIO.replace("receive_window = \"32 KiB\"", window);
        let (_, document) = both(&text, &[])?;
        document["live"][0]["live"]["transfers"][0]["window_bytes"].as_u64()
    };
    let (Some(grows), Some(set)) = (largest("autotune = true"), largest("receive_window = \"3 MiB\"")) else { return };
    assert!((65_000..1_500_000).contains(&grows), "{grows}");
    assert!((2_900_000..3_300_000).contains(&set), "{set}");
}

/// The sum of a link's counters of this name.
fn counted(summary: &Value, link: &str, name: &str) -> u64 {
    let link = summary["links"].as_array().unwrap().iter().find(|found| found["name"] == link).unwrap();
    let counters = link["counters"].as_array().unwrap().iter().filter(|counter| counter["name"] == name);
    counters.map(|counter| counter["value"].as_u64().unwrap()).sum()
}

/// A middlebox before the modem and behind the DSLAM: its clamp reads the two directions of the
/// kernel's handshake at different places.
#[test]
#[ignore = "needs root: real packets"]
fn a_policy_stands_behind_the_downstream_too() {
    let text = SCENARIO.replace("[access]\n", "[access]\npolicy = \"full-both-ways\"\n").replace("32 KiB", "256 KiB");
    let Some((_, document)) = both(&text, &[]) else { return };
    let goodput = row(&document["rows"], "during voice", "download", "goodput_bps");
    assert!(goodput["deviation"].as_f64().unwrap().abs() < 0.1, "{goodput}");
    for summary in [&document["simulated"], &document["live"][0]] {
        assert_eq!(summary["conservation"]["holds"], true);
        // Of the download only: the upstream has no other TCP.
        assert_eq!(counted(summary, "middlebox-down", "answers"), 1);
        assert_eq!(counted(summary, "middlebox-up", "answered"), 1);
        assert_eq!(counted(summary, "middlebox-up", "passed_unconfirmed_scale"), 0);
        assert!(counted(summary, "middlebox-up", "clamped") > 100);
    }
}

/// Transfers, a call and a ping over IPv6 through regulation in both directions: the size of a segment, the
/// clamp's counters, and the results.
#[test]
#[ignore = "needs root: real packets"]
fn a_line_of_ipv6_is_regulated_as_one_of_ipv4() {
    let text = SCENARIO
        .replace("[access]\n", "ipv6 = true\n[access]\npolicy = \"full-both-ways\"\n")
        .replace("receive_window = \"32 KiB\"", "receive_window = \"256 KiB\"");
    let named = "\n[[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\nstart = \"2 s\"\n\
                 client = \"2001:db8::7\"\nserver = \"2001:db8::8\"\n";
    let Some((_, document)) = both(&format!("{text}{named}"), &[]) else { return };
    let rows = &document["rows"];
    for flow in ["download", "upload"] {
        let goodput = row(rows, "during voice, upload", flow, "goodput_bps");
        assert!(goodput["deviation"].as_f64().unwrap().abs() < 0.1, "{goodput}");
    }
    let live = &document["live"][0];
    // 40 bytes of IPv6, 20 of TCP, 12 of timestamps.
    assert_eq!(live["live"]["transfers"][0]["payload_bytes"], 1428);
    assert_eq!(live["live"]["warnings"].as_array().unwrap().len(), 0, "{}", live["live"]["warnings"]);
    for summary in [&document["simulated"], live] {
        assert_eq!(summary["conservation"]["holds"], true);
        assert!(counted(summary, "middlebox-up", "clamped") > 100);
        assert_eq!(counted(summary, "middlebox-up", "passed_unconfirmed_scale"), 0);
    }
}

/// An upload that fills the last of six classes, and a ping in the first and in the last: the
/// addresses match the policy's rules.
const CLASSES: &str = r#"
name = "A ping for each of two classes"
duration = "8 s"

[access]
encapsulation = "pppoa-vcmux"
policy = "fifos.toml"
down = { rate = "8 Mbit/s", delay = "4 ms" }
up = { rate = "768 kbit/s", delay = "4 ms" }

[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"
dscp = 8
tcp = { variant = "cubic", receive_window = "32 KiB" }

[[traffic]]
name = "interactive"
kind = "ping"
interval = "50 ms"
server = "203.0.113.10"

[[traffic]]
name = "bad"
kind = "ping"
interval = "50 ms"
server = "203.0.113.66"
"#;

/// Hosts have the addresses of the traffic, so that a ping is queued in its class with both clocks.
#[test]
#[ignore = "needs root: real packets"]
fn pings_tell_the_latency_of_their_class() {
    let Some(scratch) = folder("lab.toml", CLASSES) else { return };
    // With FIFOs in the classes: SFQ would give the ping a turn next to the upload in the worst
    // class, too.
    let policy = lastmile_scenario::policy::ready::text("adsl-optimizer").unwrap();
    let fifos = policy.replace("kind = \"sfq\", perturb = \"10 s\"", "kind = \"fifo\"");
    assert_ne!(policy, fifos);
    std::fs::write(scratch.path.join("fifos.toml"), fifos).unwrap();
    let document = both_in(&scratch, &[]);
    for run in [&document["simulated"], &document["live"][0]] {
        let p50 = |name: &str| {
            let probes = run["probes"].as_array().unwrap();
            probes.iter().find(|probe| probe["name"] == name).unwrap()["rtt_s"]["p50"].as_f64().unwrap()
        };
        // One packet of 1500 bytes takes 17 ms upstream; the queue behind it is a window of 32 KiB.
        assert!(p50("interactive") < 0.06, "{} s", p50("interactive"));
        assert!(p50("bad") > 0.2, "{} s", p50("bad"));
    }
}

/// Every source that opens connections during the run, a replay, and captures at both ends.
const BUSY: &str = r#"
name = "Web, a swarm, a replay"
duration = "11 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "8 Mbit/s", delay = "4 ms" }
up = { rate = "1 Mbit/s", delay = "4 ms" }

[tcp]
variant = "cubic"

[[traffic]]
name = "users"
kind = "web"
count = 5
reading = "500 ms"
stop = "10 s"

[[traffic]]
name = "swarm"
kind = "swarm"
slots = 3
rechoke = "3 s"

[[traffic]]
name = "recorded"
kind = "replay"
file = "recorded.pcapng"
client_prefix = "10.0.0.1/32"
direction = "both"
start = "1 s"
"#;

/// The pages, peers and packets of the simulation, by the kernel's TCP; and tshark's results for
/// the captures.
#[test]
#[ignore = "needs root: real packets"]
fn web_users_swarms_and_replays_run_and_captures_tell_of_them() {
    let Some(scratch) = folder("lab.toml", BUSY) else { return };
    let recorded = crate::workspace::root().join("scenarios/captures/download-and-call.pcapng");
    std::fs::copy(recorded, scratch.path.join("recorded.pcapng")).unwrap();
    let ends = ["--capture", "client-cpe,server-gateway", "--whole-packets"];
    let document = both_in(&scratch, &[&["--out", "results", "--congestion", "reno"][..], &ends].concat());
    let (live, simulated) = (&document["live"][0], &document["simulated"]);
    assert_eq!(live["conservation"]["holds"], true);
    assert_eq!(live["live"]["capture_missed_packets"], 0);
    assert_eq!(["up", "down"].map(|way| live["live"][way]["unstamped"].as_u64()), [Some(0); 2]);
    let flow = |run: &Value, name: &str| -> Value {
        let flows = run["flows"].as_array().unwrap();
        flows.iter().find(|flow| flow["name"] == name).unwrap_or_else(|| panic!("no flow {name}")).clone()
    };
    for user in ["users-1", "users-5"] {
        let (live, simulated) = (flow(live, user), flow(simulated, user));
        assert_eq!(live["tcp"], "reno", "that of the kernel, not of the scenario");
        assert!(live["connections"].as_u64() > Some(0) && live["connections_failed"] == 0, "{live}");
        assert!(live["bytes_delivered"].as_u64() > Some(0) && simulated["bytes_delivered"].as_u64() > Some(0));
    }
    let whole = |run: &Value| run["pages"][0]["complete"].as_u64().unwrap();
    assert!(whole(live) * 2 > whole(simulated) && whole(live) > 5, "{} and {} pages", whole(live), whole(simulated));
    for way in ["swarm-down", "swarm-up"] {
        // Three concurrent connections, and a replacement of one at 3, 6 and 9 s.
        assert_eq!(flow(live, way)["connections"], 6, "{way}");
        assert_eq!(flow(simulated, way)["connections"], 6, "{way}");
    }
    for way in ["recorded-down", "recorded-up"] {
        let (live, simulated) = (flow(live, way), flow(simulated, way));
        assert_eq!(live["data_packets"], simulated["data_packets"], "{way}");
        assert!(live["data_packets_received"].as_u64() > Some(0), "{live}");
    }
    for end in ["client-cpe", "server-gateway"] {
        read_by_tshark(&scratch.path.join("results/live").join(format!("{end}.pcapng")));
        assert!(scratch.path.join("results/simulated").join(format!("{end}.pcapng")).exists());
    }
}

/// Connections in both directions, complete, in order of time and with right checksums.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn read_by_tshark(capture: &Path) {
    let fields = [
        "frame.time_epoch",
        "ip.src",
        "tcp.flags.syn",
        "_ws.malformed",
        "tcp.checksum.status",
        "udp.checksum.status",
        "tcp.checksum",
    ];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args([
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
        "-T",
        "fields",
    ]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        eprintln!("not looked at: tshark is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert!(rows.len() > 500, "{} packets", rows.len());
    let times: Vec<f64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "in order of time");
    for host in ["198.18.0.1", "198.18.0.2"] {
        assert!(rows.iter().any(|row| row[1] == host && ["1", "True"].contains(&row[2])), "{host} opens or accepts");
    }
    // Where no device sums, Linux transmits a sum of zero as 0xFFFF in TCP too, which tshark calls bad (RFC 1624).
    let bad_tcp = |row: &[&str]| row[4] == "0" && row[6] != "0xffff";
    let bad: Vec<_> = rows.iter().filter(|row| !row[3].is_empty() || bad_tcp(row) || row[5] == "0").collect();
    assert!(bad.is_empty(), "malformed, or a bad checksum, of {} packets: {bad:?}", rows.len());
}

/// The kernel counts its timeouts. They do not include retransmissions of its reordering timer
/// (RACK) after a silence.
#[test]
#[ignore = "needs root: real packets"]
fn an_analysis_of_the_capture_counts_the_timeouts_of_the_kernel() {
    let lossy = r#"
duration = "10 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "4 Mbit/s", delay = "20 ms", loss = "2 %" }
up = { rate = "1 Mbit/s", delay = "20 ms" }

[[traffic]]
name = "downloads"
kind = "bulk"
direction = "down"
count = 3
"#;
    let Some(scratch) = folder("lab.toml", lossy) else { return };
    let lab = ["lab", "lab.toml", "--out", "out", "--capture", "server-gateway"];
    let output = lastmile(&scratch.path, &lab).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let analysis = json(&lastmile(&scratch.path, &["analyse", "out", "--json"]).output().unwrap().stdout);
    let counters = analysis["files"][0]["run"]["counters"].as_array().unwrap();
    let of = |name: &str| -> (Option<u64>, u64) {
        let counter = counters.iter().find(|counter| counter["name"] == name).unwrap();
        (counter["run"].as_u64(), counter["capture"].as_u64().unwrap())
    };
    let (Some(again), seen) = of("retransmissions") else { panic!("{counters:?}") };
    assert!(again > 20 && seen.abs_diff(again) <= 1, "{again} segments retransmitted, {seen} seen");
    let (Some(timeouts), seen) = of("timeouts") else { panic!("{counters:?}") };
    // A probe of a single segment is indistinguishable from a timeout.
    assert!((timeouts..=timeouts + 3).contains(&seen), "{timeouts} timeouts, {seen} seen");
    let (fast, seen) = of("fast retransmits");
    assert!(fast.is_none() && seen > 10, "{seen} fast retransmits seen");
}

/// The congestion windows in the last packets up to each time, from the rows of `analyse --segments`:
/// time in seconds since the first packet, and bytes.
fn estimated_windows(path: &Path) -> Vec<(f64, f64)> {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;
    let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut windows = Vec::new();
    for row in file.get_row_iter(None).unwrap().map(Result::unwrap) {
        let (from_opener, payload) = (row.get_bool(2).unwrap(), row.get_int(4).unwrap());
        // Data of the server, and ACKs of them.
        if from_opener == (payload == 0)
            && let Ok(window) = row.get_long(12)
        {
            windows.push((row.get_long(0).unwrap() as f64 / 1e9, window as f64));
        }
    }
    windows
}

/// `TCP_INFO` of the sender, sampled during the run, and the estimate from its capture. The kernel
/// counts its window in segments, and may use a segment less of it (deferred segmentation). Without SACK,
/// as its Reno is here, it repairs by a law of its own, which the estimate does not follow.
#[test]
#[ignore = "needs root: real packets"]
fn windows_estimated_from_a_capture_are_those_of_the_kernel() {
    let text = "duration = \"20 s\"\nrecord = { interval = \"50 ms\" }\n[access]\nencapsulation = \"ip\"\n\
         down = { rate = \"8 Mbit/s\", delay = \"20 ms\", queue = { limit = \"40 packets\" } }\n\
         up = { rate = \"2 Mbit/s\", delay = \"20 ms\" }\n[[traffic]]\nname = \"download\"\nkind = \"bulk\"\n\
         direction = \"down\"\ntcp = { variant = \"cubic\", receive_window = \"1 MB\" }\n";
    let Some(scratch) = folder("lab.toml", text) else { return };
    let lab = ["lab", "lab.toml", "--out", "out", "--capture", "server-gateway"];
    let output = lastmile(&scratch.path, &lab).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let capture = scratch.path.join("out/server-gateway.pcapng");
    let analyse = ["analyse", "out/server-gateway.pcapng", "--segments", "segments.parquet"];
    let output = lastmile(&scratch.path, &analyse).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut first_ns = None;
    let mut first = |frame: lastmile_scenario::capture::Frame<'_>| {
        first_ns = first_ns.or(frame.at_ns);
        Ok(())
    };
    lastmile_scenario::capture::read(std::fs::File::open(capture).unwrap(), &mut first).unwrap();
    let epoch_ns = lastmile_results::capture::EPOCH_UNIX_S * 1_000_000_000;
    let began_s = (first_ns.unwrap() - epoch_ns) as f64 / 1e9;
    let estimates = estimated_windows(&scratch.path.join("segments.parquet"));
    let series = std::fs::File::open(scratch.path.join("out/series.parquet")).unwrap();
    let series = lastmile_results::parquet::read(series).unwrap();
    let kernel = series.iter().find(|series| series.name == "cwnd_bytes").unwrap();
    let within = |segments: f64| {
        let near = |(at, window): &&(f64, f64)| {
            let latest = estimates.partition_point(|(time, _)| time + began_s <= *at).checked_sub(1);
            latest.is_some_and(|latest| (estimates[latest].1 - window).abs() <= segments * 1448.0 + 1.0)
        };
        kernel.points.iter().filter(near).count() as f64 / kernel.points.len() as f64
    };
    println!("{} samples, {:.3} within one segment, {:.3} within two", kernel.points.len(), within(1.0), within(2.0));
    assert!(kernel.points.len() > 300 && within(1.0) >= 0.95, "{:.3}", within(1.0));
}

const CALLS: &str = r#"
name = "Two calls both ways"
duration = "2 s"
start_jitter = "0 ms"

[access]
down = { rate = "10 Mbit/s", delay = "5 ms" }
up = { rate = "2 Mbit/s", delay = "5 ms" }

[[traffic]]
name = "call"
kind = "voice"
direction = "both"
count = 2
"#;

/// All four flows have the server's port 49152: each receiver gets the packets of its own sender.
#[test]
#[ignore = "needs root: real packets"]
fn datagrams_both_ways_share_the_port_of_the_server() {
    let Some(scratch) = folder("lab.toml", CALLS) else { return };
    let document = both_in(&scratch, &[]);
    let flows = document["live"][0]["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 4);
    for flow in flows {
        // A packet each 20 ms for 2 s; the last ones may be on the way.
        assert!(flow["data_packets_received"].as_u64() >= Some(95), "{flow}");
    }
}

//! Our client against `networkqualityd`, and beside `networkQuality`: the server and the client of
//! github.com/network-quality (goserver, goresponsiveness).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use lastmile_live::netns::Namespace;
use lastmile_measure::foreign::responsiveness::{Responsiveness, Settings, Trust};
use lastmile_measure::load::{Direction, Load, Stop, Transferred};
use lastmile_measure::probe::{Kind, Sample};
use lastmile_measure::report::Confidence;
use lastmile_measure::session::{self, Plan};
use lastmile_measure::statistics::trimmed_mean;

use crate::hosts::{Hosts, ip};
use crate::servers::{Running, SERVER, programs, start, tc, wait_for_port};

const PORT: u16 = 4043;

/// Goodput in bit/s of each direction, and the samples of each kind.
struct Seen {
    down_bps: f64,
    up_bps: f64,
    samples: Vec<(Kind, Sample)>,
    connections: u32,
}

impl Seen {
    fn times(&self, kind: Kind, from_s: f64) -> Vec<f64> {
        let of = self.samples.iter().filter(|(of, sample)| *of == kind && sample.sent_s >= from_s);
        of.filter_map(|(_, sample)| sample.rtt_s).collect()
    }

    /// Round trips per minute by the draft's formula.
    fn rpm(&self, from_s: f64) -> f64 {
        let mean_s = |kind| trimmed_mean(&self.times(kind, from_s)).unwrap();
        let foreign_s = (mean_s(Kind::TcpConnect) + mean_s(Kind::TlsHandshake) + mean_s(Kind::HttpForeign)) / 3.0;
        f64::midpoint(60.0 / foreign_s, 60.0 / mean_s(Kind::HttpSelf))
    }
}

fn serve(host: &Namespace, program: &PathBuf) -> Running {
    let arguments =
        format!("-listen-addr {SERVER} -public-port {PORT} -config-name {SERVER} -public-name {SERVER} -create-cert");
    let running = start(host, program, &arguments);
    wait_for_port(host, PORT);
    running
}

fn settings(trust: Trust) -> Settings {
    Settings { host: SERVER.to_owned(), port: PORT, trust }
}

/// A load of this length with all its probes, in a host.
fn measure(host: &Namespace, direction: Direction, length: Duration) -> Result<Seen, String> {
    host.run(|| {
        let client = Responsiveness::open(&settings(Trust::Anyone)).map_err(|error| error.to_string())?;
        let (mut load, mut probers) = (client.load(), client.probers());
        let (transferred, stop, samples) = (Transferred::default(), Stop::default(), Mutex::new(Vec::new()));
        let began = Instant::now();
        let now_s = || began.elapsed().as_secs_f64();
        let mut totals = (0, 0);
        std::thread::scope(|scope| {
            for prober in &mut probers {
                let (samples, stop, now_s) = (&samples, &stop, &now_s);
                scope.spawn(move || {
                    let kind = prober.subject().kind;
                    let mut tell = |sample| samples.lock().unwrap().push((kind, sample));
                    prober.run(now_s, stop, &mut tell).unwrap();
                });
            }
            let filling = scope.spawn(|| load.run(direction, &transferred, &stop));
            std::thread::sleep(length);
            totals = transferred.totals();
            stop.request();
            filling.join().unwrap()
        })
        .map_err(|error| error.to_string())?;
        #[expect(clippy::cast_precision_loss, reason = "bytes of seconds")]
        let bps = |bytes: u64| bytes as f64 * 8.0 / length.as_secs_f64();
        let samples = samples.into_inner().unwrap();
        Ok(Seen { down_bps: bps(totals.0), up_bps: bps(totals.1), samples, connections: load.streams() })
    })
    .unwrap()
}

/// A token bucket of the kernel at each port of the middle: 20 Mbit/s down, 5 Mbit/s up, with queues of this length.
fn shape(hosts: &Hosts, queue_bytes: u32) {
    for (device, rate) in [("west", "20mbit"), ("east", "5mbit")] {
        tc(hosts, &format!("qdisc add dev {device} root tbf rate {rate} burst 3k limit {queue_bytes}"));
    }
    // The shaper counts packets of the wire.
    for host in [&hosts.left, &hosts.right] {
        let off = ["-K", "eth", "tso", "off", "gso", "off", "gro", "off"];
        let run = || Command::new("ethtool").args(off).stderr(Stdio::null()).status().unwrap();
        assert!(host.run(run).unwrap().success());
        ip(&format!("-n {} link set eth gso_max_segs 1", host.name()));
    }
}

/// CUBIC at both ends, whatever the default of the machine.
fn cubic(hosts: &Hosts) {
    for host in [&hosts.left, &hosts.right] {
        ip(&format!("-n {} route replace 10.9.0.0/24 dev eth congctl cubic", host.name()));
    }
}

#[test]
#[ignore = "live: needs root and networkqualityd"]
fn load_and_probes_work_with_the_go_server() {
    for program in programs("networkqualityd", "LASTMILE_NETWORKQUALITYD") {
        let hosts = Hosts::new(true);
        let _server = serve(&hosts.right, &program);
        let untrusted = hosts.left.run(|| Responsiveness::open(&settings(Trust::Web)).unwrap_err()).unwrap();
        assert!(untrusted.to_string().contains("certificate"), "{untrusted}");
        shape(&hosts, 64_000);
        for (direction, down, up) in
            [(Direction::Download, 20e6, 0.0), (Direction::Upload, 0.0, 5e6), (Direction::Both, 20e6, 5e6)]
        {
            let seen = measure(&hosts.left, direction, Duration::from_secs(6)).unwrap();
            let kinds = [Kind::TcpConnect, Kind::TlsHandshake, Kind::HttpForeign, Kind::HttpSelf];
            let counts = kinds.map(|kind| seen.times(kind, 0.0).len());
            eprintln!(
                "{direction:?}: {:.2} down, {:.2} up Mbit/s, {} connections, probes {counts:?}, {:.0} RPM",
                seen.down_bps / 1e6,
                seen.up_bps / 1e6,
                seen.connections,
                seen.rpm(2.0)
            );
            assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
            // TCP and IP take 4.3 % of a frame of 1514 bytes. Six seconds from the first connection have the ramp in
            // them, and in both directions ACKs and probes of the other one.
            let least = if direction == Direction::Both { 0.5 } else { 0.75 };
            for (rate, line) in [(seen.down_bps, down), (seen.up_bps, up)] {
                assert!(rate <= line * 0.957 && rate >= line * least, "{direction:?}: {rate} of {line}");
            }
        }
    }
}

#[test]
#[ignore = "live: needs root and networkqualityd"]
fn a_server_that_vanishes_is_told() {
    for program in programs("networkqualityd", "LASTMILE_NETWORKQUALITYD") {
        let hosts = Hosts::new(true);
        let server = serve(&hosts.right, &program);
        let error = std::thread::scope(|scope| {
            let seen = scope.spawn(|| measure(&hosts.left, Direction::Download, Duration::from_secs(4)));
            std::thread::sleep(Duration::from_secs(2));
            drop(server);
            seen.join().unwrap().map(|_| ()).unwrap_err()
        });
        assert!(error.contains("responsiveness 10.9.0.2:4043"), "{error}");
    }
}

/// Responsiveness of a direction in round trips per minute.
#[derive(Clone, Copy, Debug)]
struct Rpm {
    foreign: f64,
    loaded: f64,
}

impl Rpm {
    /// By the draft since -04.
    fn mean(self) -> f64 {
        f64::midpoint(self.foreign, self.loaded)
    }
}

/// The Go client's directions: the trimmed means of its last intervals, which it prints in its debug mode. It has the
/// formula of the draft to -03, so its own result is another.
fn reference(host: &Namespace, program: &Path) -> [Rpm; 2] {
    let run = || {
        let url = format!("https://{SERVER}:{PORT}/.well-known/nq");
        let mut command = Command::new(program);
        command.args(["-url", &url, "-insecure-skip-verify", "-debug", "-rpm.timeout", "20", "-rpm.mps", "20"]);
        command.output().unwrap()
    };
    let output = host.run(run).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let results = text.split("\nResults:").nth(1).unwrap_or_else(|| panic!("{text}"));
    let of = |name: &str| {
        let block = results.split(&format!("{name}:\n")).nth(1).unwrap_or_else(|| panic!("{results}"));
        let seconds = |part: &str, label: &str| -> f64 {
            let line = part.lines().find(|line| line.contains(label)).unwrap_or_else(|| panic!("{part}"));
            line.split_whitespace().last().unwrap().parse().unwrap()
        };
        let rpm = |part: &str| Rpm {
            foreign: 60.0 / seconds(part, "Trimmed Mean Foreign RTT"),
            loaded: 60.0 / seconds(part, "Trimmed Mean Self RTT"),
        };
        // Of all probes, then of its last intervals; these are empty where it did not become stable.
        let parts: Vec<Rpm> = block.split("RPM Calculation Statistics:").skip(1).take(2).map(rpm).collect();
        parts.into_iter().rev().find(|rpm| rpm.mean().is_finite()).unwrap_or_else(|| panic!("{block}"))
    };
    ["Download", "Upload"].map(of)
}

/// Our directions, each a phase of 20 s at most, as the Go client's.
fn ours(host: &Namespace) -> [(Rpm, Confidence); 2] {
    let measured = host.run(|| {
        let client = Responsiveness::open(&settings(Trust::Anyone)).unwrap();
        let (mut load, mut probers) = (client.load(), client.probers());
        let phases = vec![Some(Direction::Download), Some(Direction::Upload)];
        let duration = Duration::from_secs(20);
        let plan = Plan { host: SERVER.to_owned(), phases, duration, ramp: Plan::usual_ramp(duration), enough: None };
        session::run(&plan, Some(&mut load), &mut probers, &Stop::default(), &mut |_| {})
    });
    let measured = measured.unwrap();
    [0, 1].map(|index| {
        let seen = measured.phases[index].responsiveness.unwrap().draft.unwrap();
        (Rpm { foreign: seen.foreign_rpm.value, loaded: seen.loaded_rpm.value }, seen.confidence)
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `LASTMILE_NETWORKQUALITY` is the Go client. The medians of both clients' alternate measurements agree within 5 %.
#[test]
#[ignore = "live: needs root, networkqualityd and networkQuality"]
fn round_trips_per_minute_beside_the_go_client() {
    for server in programs("networkqualityd", "LASTMILE_NETWORKQUALITYD") {
        for client in programs("networkQuality", "LASTMILE_NETWORKQUALITY") {
            let hosts = Hosts::new(true);
            cubic(&hosts);
            let _server = serve(&hosts.right, &server);
            // A queue in which SYNs are rarely lost: their retransmission after 1 s outweighs all other times.
            shape(&hosts, 600_000);
            let mut seen = [(); 2].map(|()| (Vec::new(), Vec::new()));
            for repeat in 0..5 {
                let (ours, theirs) = (ours(&hosts.left), reference(&hosts.left, &client));
                for (index, way) in ["download", "upload"].into_iter().enumerate() {
                    let ((our, confidence), their) = (ours[index], theirs[index]);
                    eprintln!("{repeat} {way}: ours {our:.0?} {confidence:?}, the Go client's {their:.0?}");
                    seen[index].0.push(our.mean());
                    seen[index].1.push(their.mean());
                }
            }
            for ((ours, theirs), way) in seen.into_iter().zip(["download", "upload"]) {
                let (ours, theirs) = (median(ours), median(theirs));
                eprintln!("{way}: ours {ours:.0}, the Go client's {theirs:.0} round trips per minute");
                assert!((ours / theirs - 1.0).abs() < 0.05, "{way}: ours {ours}, the Go client's {theirs}");
            }
        }
    }
}

//! Our client against `networkqualityd`, and beside `networkQuality`: the server and the client of
//! github.com/network-quality (goserver, goresponsiveness).

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use chrono::NaiveDateTime;
use lastmile_live::netns::Namespace;
use lastmile_measure::foreign::responsiveness::{Responsiveness, Settings, Trust};
use lastmile_measure::load::{Direction, Load, Stop, Transferred};
use lastmile_measure::probe::{Kind, Sample};
use lastmile_measure::report::ByDraft;
use lastmile_measure::session::{self, Plan};
use lastmile_measure::statistics::trimmed_mean;

use crate::hosts::Running;
use crate::hosts::{Hosts, ip};
use crate::servers::{SERVER, programs, start, tc, wait_for_port};

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

/// The probes of a direction: when each ended after the load had started, and its round trip, in seconds.
struct Probed {
    /// A series of each kind of foreign probe, or one of their means.
    foreign: Vec<Vec<(f64, f64)>>,
    own: Vec<(f64, f64)>,
}

impl Probed {
    /// The draft's statistic of the probes that ended in a span.
    fn rpm(&self, span_s: &Range<f64>) -> Rpm {
        let trimmed = |series: &Vec<(f64, f64)>| {
            let ended: Vec<f64> = series.iter().filter(|(end_s, _)| span_s.contains(end_s)).map(|(_, s)| *s).collect();
            trimmed_mean(&ended).unwrap_or_else(|| panic!("no probe of a kind ended in {span_s:?} s"))
        };
        let kinds = i32::try_from(self.foreign.len()).unwrap();
        let foreign_s = self.foreign.iter().map(trimmed).sum::<f64>() / f64::from(kinds);
        Rpm { foreign: 60.0 / foreign_s, loaded: 60.0 / trimmed(&self.own) }
    }

    fn end_s(&self) -> f64 {
        self.own.iter().map(|(end_s, _)| *end_s).fold(0.0, f64::max)
    }
}

/// Four intervals of 1 s, to which the draft's final calculation is limited.
fn intervals_before(end_s: f64) -> Range<f64> {
    end_s - 4.0..end_s
}

/// The rows of a log of the Go client: its time in seconds, and the third column.
fn logged(folder: &Path, part: &str) -> Vec<(f64, String, String)> {
    let is_wanted =
        |name: &str| name.starts_with(&format!("log-{part}-1")) || name.starts_with(&format!("log-{part}-0"));
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let file = files.into_iter().find(|file| is_wanted(&file.file_name().to_string_lossy()));
    let text = std::fs::read_to_string(file.unwrap_or_else(|| panic!("no log of {part}")).path()).unwrap();
    let row = |line: &str| {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let time = NaiveDateTime::parse_from_str(columns[0], "%m-%d-%Y-%H-%M-%S%.f").unwrap().and_utc();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
        let time_s = time.timestamp_millis() as f64 / 1e3;
        (time_s, columns[2].to_owned(), columns.get(5).copied().unwrap_or_default().to_owned())
    };
    text.lines().skip(1).map(row).collect()
}

/// The Go client's directions, from its logs: its own result has the formula of the draft to -03, and by default the
/// mean of the fastest 5 % (`-rpm.tmp`) in place of that of all but the slowest 5 %.
fn reference(host: &Namespace, program: &Path) -> [Probed; 2] {
    // The client puts its words before the first dot of the whole path.
    let folder = tempfile::Builder::new().prefix("responsiveness").tempdir().unwrap();
    let run = || {
        let url = format!("https://{SERVER}:{PORT}/.well-known/nq");
        let mut command = Command::new(program);
        command.args(["-url", &url, "-insecure-skip-verify", "-rpm.timeout", "20", "-rpm.mps", "20", "-rpm.tmp", "95"]);
        command.arg("-logger-filename").arg(folder.path().join("log.csv"));
        command.output().unwrap()
    };
    let output = host.run(run).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (own, foreign) = (logged(folder.path(), "self"), logged(folder.path(), "foreign"));
    [("download", "SelfDown"), ("upload", "SelfUp")].map(|(way, kind)| {
        // The first rate is that of the load's first second.
        let rates = logged(folder.path(), &format!("throughput-{way}"));
        let (start_s, end_s) = (rates[0].0 - 1.0, rates[rates.len() - 1].0 + 10.0);
        let ends = |rows: &[(f64, String, String)], trips: f64, is_one: &dyn Fn(&str) -> bool| {
            let within = rows.iter().filter(|row| (start_s..end_s).contains(&row.0) && is_one(&row.2));
            let probe = |row: &(f64, String, String)| {
                let took_s: f64 = row.1.parse().unwrap();
                (row.0 + took_s - start_s, took_s / trips)
            };
            within.map(probe).collect::<Vec<_>>()
        };
        Probed { foreign: vec![ends(&foreign, 3.0, &|_| true)], own: ends(&own, 1.0, &|of| of == kind) }
    })
}

/// Our directions, each a phase of 20 s, as long as the Go client's at most; and our results.
fn ours(host: &Namespace) -> [(Probed, ByDraft); 2] {
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
        let phase = &measured.phases[index];
        let of = |kind: Kind| {
            let series = phase.probes.iter().find(|series| series.subject.kind == kind).unwrap();
            let ended = |sample: &Sample| sample.rtt_s.map(|rtt_s| (sample.sent_s + rtt_s - phase.start_s, rtt_s));
            series.samples.iter().filter_map(ended).collect::<Vec<_>>()
        };
        let foreign = [Kind::TcpConnect, Kind::TlsHandshake, Kind::HttpForeign].map(of).into();
        (Probed { foreign, own: of(Kind::HttpSelf) }, phase.responsiveness.unwrap().draft.unwrap())
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Medians of both parts.
fn middle(all: &[Rpm]) -> Rpm {
    let of = |part: fn(&Rpm) -> f64| median(all.iter().map(part).collect());
    Rpm { foreign: of(|rpm| rpm.foreign), loaded: of(|rpm| rpm.loaded) }
}

/// `LASTMILE_NETWORKQUALITY` is the Go client. The medians of both clients' alternate measurements agree within 5 %
/// over seconds with as many connections: each second adds one, and own probes take longer with each. In an upload
/// that holds for foreign probes. The Go client leaves unsent bytes to the kernel, and its own probes wait behind them.
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
                    let ((our, result), their) = (&ours[index], &theirs[index]);
                    // Where the goodput is not stable in 20 s, the Go client takes 15 s more, with as many connections.
                    let span_s = intervals_before(their.end_s().min(our.end_s()));
                    let (our, their) = (our.rpm(&span_s), their.rpm(&intervals_before(their.end_s())));
                    eprintln!(
                        "{repeat} {way}, {span_s:.1?} s: ours {our:.0?}, the Go client's {their:.0?}; {result:.0?}"
                    );
                    seen[index].0.push(our);
                    seen[index].1.push(their);
                }
            }
            let [download, upload] = seen.map(|(ours, theirs)| (middle(&ours), middle(&theirs)));
            eprintln!("download: {download:.0?}, upload: {upload:.0?}, ours first");
            let agree = |what: &str, ours: f64, theirs: f64| {
                assert!((ours / theirs - 1.0).abs() < 0.05, "{what}: ours {ours}, the Go client's {theirs}");
            };
            agree("download", download.0.mean(), download.1.mean());
            agree("foreign probes beside an upload", upload.0.foreign, upload.1.foreign);
            assert!(upload.0.loaded > upload.1.loaded, "{upload:?}");
        }
    }
}

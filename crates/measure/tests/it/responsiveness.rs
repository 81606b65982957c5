//! Our client against `networkqualityd`, and beside `networkQuality`: the server and the client of
//! github.com/network-quality (goserver, goresponsiveness).

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use chrono::NaiveDateTime;
use lastmile_live::netns::Namespace;
use lastmile_measure::foreign::responsiveness::{Responsiveness, Settings, Trust, Unsent};
use lastmile_measure::load::{Direction, Load, Stop, Transferred};
use lastmile_measure::probe::{Kind, Sample};
use lastmile_measure::report::{ByDraft, Phase};
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
    Settings { host: SERVER.to_owned(), port: PORT, trust, unsent: Unsent::FiveMilliseconds }
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

/// A token bucket of the kernel at each port of the middle: rates down and up in Mbit/s, with queues of these bytes.
struct Line {
    down: (u32, u32),
    up: (u32, u32),
}

fn shape(hosts: &Hosts, line: &Line) {
    for (device, (rate, queue_bytes)) in [("west", line.down), ("east", line.up)] {
        tc(hosts, &format!("qdisc add dev {device} root tbf rate {rate}mbit burst 3k limit {queue_bytes}"));
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
        shape(&hosts, &Line { down: (20, 64_000), up: (5, 64_000) });
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
fn ours(host: &Namespace, unsent: Unsent, directions: &[Direction]) -> Vec<(Probed, ByDraft)> {
    let measured = host.run(|| {
        let client = Responsiveness::open(&Settings { unsent, ..settings(Trust::Anyone) }).unwrap();
        let (mut load, mut probers) = (client.load(), client.probers());
        let phases = directions.iter().copied().map(Some).collect();
        let duration = Duration::from_secs(20);
        let plan = Plan { host: SERVER.to_owned(), phases, duration, ramp: Plan::usual_ramp(duration), enough: None };
        session::run(&plan, Some(&mut load), &mut probers, &Stop::default(), &mut |_| {})
    });
    let measured = measured.unwrap();
    let probed = |phase: &Phase| {
        let of = |kind: Kind| {
            let series = phase.probes.iter().find(|series| series.subject.kind == kind).unwrap();
            let ended = |sample: &Sample| sample.rtt_s.map(|rtt_s| (sample.sent_s + rtt_s - phase.start_s, rtt_s));
            series.samples.iter().filter_map(ended).collect::<Vec<_>>()
        };
        let foreign = [Kind::TcpConnect, Kind::TlsHandshake, Kind::HttpForeign].map(of).into();
        (Probed { foreign, own: of(Kind::HttpSelf) }, phase.responsiveness.unwrap().draft.unwrap())
    };
    measured.phases.iter().map(probed).collect()
}

/// One direction of one client, and a client of ours next to the Go client.
struct Compared {
    what: &'static str,
    pairs: Vec<[Rpm; 2]>,
}

impl Compared {
    fn new(what: &'static str) -> Self {
        Self { what, pairs: Vec::new() }
    }

    fn add(&mut self, (ours, result): &(Probed, ByDraft), theirs: &Probed) -> String {
        // Where the goodput is not stable in 20 s, the Go client takes 15 s more, with as many connections.
        let span_s = intervals_before(theirs.end_s().min(ours.end_s()));
        let (ours, theirs) = (ours.rpm(&span_s), theirs.rpm(&intervals_before(theirs.end_s())));
        self.pairs.push([ours, theirs]);
        format!("{}, {span_s:.1?} s: ours {ours:.0?}, the Go client's {theirs:.0?}; {result:.0?}", self.what)
    }

    /// A row for a kind of probe: medians with extremes, and the median difference with the second least and second
    /// largest.
    fn row(&self, kind: &str, part: fn(Rpm) -> f64) -> String {
        let of = |index: usize| self.pairs.iter().map(|pair| part(pair[index])).collect::<Vec<_>>();
        let shown = |values: Vec<f64>| {
            let (low, high) = values.iter().fold((f64::MAX, 0.0_f64), |(low, high), rpm| (rpm.min(low), rpm.max(high)));
            format!("{:.0} ({low:.0} to {high:.0})", median(values))
        };
        let mut differences: Vec<f64> =
            self.pairs.iter().map(|pair| (part(pair[0]) / part(pair[1]) - 1.0) * 100.0).collect();
        differences.sort_by(f64::total_cmp);
        let [second, last] = [1, differences.len() - 2].map(|index| differences[index]);
        let middle = median(differences);
        let [ours, theirs] = [of(0), of(1)].map(shown);
        format!("| {}, {kind} | {ours} | {theirs} | {middle:+.1} % | {second:+.1} to {last:+.1} % |", self.what)
    }

    /// The medians of both clients agree within 5 %.
    fn agrees(&self, part: fn(Rpm) -> f64) {
        let [ours, theirs] = [0, 1].map(|index| median(self.pairs.iter().map(|pair| part(pair[index])).collect()));
        assert!((ours / theirs - 1.0).abs() < 0.05, "{}: ours {ours}, the Go client's {theirs}", self.what);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[half - 1], values[half]) } else { values[half] }
}

/// Rounds in which the clients take turns; `LASTMILE_LONG` asks for ten.
fn rounds() -> usize {
    if std::env::var_os("LASTMILE_LONG").is_some() { 10 } else { 5 }
}

/// Both clients on a line, in turns. They agree within 5 % over seconds with as many connections: each second adds
/// one, and own probes take longer with each. An upload of the Go client fills the socket's buffer, behind which its
/// own probes wait, so ours does too; as the draft asks, with few unsent bytes, own probes take less time.
fn compare_on(line: &Line, server: &PathBuf, client: &Path, say: &mut dyn FnMut(String)) {
    let hosts = Hosts::new(true);
    cubic(&hosts);
    let _server = serve(&hosts.right, server);
    shape(&hosts, line);
    let [mut download, mut filled, mut draft] =
        ["download", "upload that fills the socket", "upload with 5 ms unsent"].map(Compared::new);
    // The Go client has no answers now and then.
    for _ in 0..rounds() + 2 {
        if download.pairs.len() == rounds() {
            break;
        }
        let ours_by_draft = ours(&hosts.left, Unsent::FiveMilliseconds, &[Direction::Download, Direction::Upload]);
        let theirs = reference(&hosts.left, client);
        if theirs.iter().any(|probed| probed.own.is_empty()) {
            say("a round without answers of the Go client".to_owned());
            continue;
        }
        let ours_filled = ours(&hosts.left, Unsent::SocketBuffer, &[Direction::Upload]);
        say(download.add(&ours_by_draft[0], &theirs[0]));
        say(draft.add(&ours_by_draft[1], &theirs[1]));
        say(filled.add(&ours_filled[0], &theirs[1]));
    }
    for compared in [&download, &filled, &draft] {
        say(compared.row("new connections", |rpm| rpm.foreign));
        say(compared.row("the load's own", |rpm| rpm.loaded));
        say(compared.row("responsiveness", Rpm::mean));
    }
    download.agrees(Rpm::mean);
    filled.agrees(Rpm::mean);
    draft.agrees(|rpm| rpm.foreign);
    assert!(draft.pairs.iter().all(|[ours, theirs]| ours.loaded > theirs.loaded), "{:?}", draft.pairs);
}

/// The line with each pair of programs. `LASTMILE_NETWORKQUALITY` is the Go client.
fn compare_with_all(line: &Line, say: &mut dyn FnMut(String)) {
    for server in programs("networkqualityd", "LASTMILE_NETWORKQUALITYD") {
        for client in programs("networkQuality", "LASTMILE_NETWORKQUALITY") {
            compare_on(line, &server, &client, say);
        }
    }
}

/// Queues in which SYNs are rarely lost: their retransmission after 1 s outweighs all other times.
#[test]
#[ignore = "live: needs root, networkqualityd and networkQuality"]
fn round_trips_per_minute_beside_the_go_client() {
    compare_with_all(&Line { down: (20, 600_000), up: (5, 600_000) }, &mut |words| eprintln!("{words}"));
}

#[test]
#[ignore = "live: needs root, networkqualityd and networkQuality"]
fn round_trips_per_minute_on_a_faster_line() {
    compare_with_all(&Line { down: (50, 1_000_000), up: (10, 600_000) }, &mut |words| eprintln!("{words}"));
}

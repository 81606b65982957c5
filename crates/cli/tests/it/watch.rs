//! `lastmile watch` and `lastmile history`: the unit, the words of errors, and a watcher with real packets. Tests with
//! real packets need root, so they run only on request (`scripts/live-tests.sh`).

use std::io::BufReader;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lastmile_live::netns::Namespace;
use serde_json::Value;

use crate::hosts::{Running, ip};
use crate::live::{can_run, json, kill, lastmile, until_it_says};
use crate::openmetrics::Page;
use crate::shape::at;
use crate::transcript::Scratch;

/// Code point EF first, and the rest of the line for the others.
const POLICY: &str = r#"
name = "mine"

[line]
encapsulation = "bridged-vcmux-fcs"
up = "486 kbit/s"
down = "1.9 Mbit/s"

[[class]]
name = "quick"
rate = "20 %"
priority = 0
limit = "20 packets"

[[class]]
name = "default"
rate = "80 %"
priority = 1
limit = "20 kB"

[[rule]]
class = "quick"
match = { dscp = "EF" }
"#;

/// The line that is shaped, with 10 ms each way.
const LINE: &str = r#"
duration = "1 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "10 ms" }
up = { rate = "512 kbit/s", delay = "10 ms", queue = { kind = "fifo", limit = "206 kB" } }
"#;

/// `left` - west [ shaper ] east - dsl0 [ line ] dsl1 - `right`.
struct Site {
    scratch: Scratch,
    left: Namespace,
    shaper: Namespace,
    line: Namespace,
    right: Namespace,
}

impl Site {
    /// `None`, with a message, where these tests cannot run.
    fn new() -> Option<Self> {
        if !can_run() {
            return None;
        }
        let scratch = Scratch::new();
        std::fs::write(scratch.path.join("mine.toml"), POLICY).unwrap();
        std::fs::write(scratch.path.join("line.toml"), LINE).unwrap();
        let named = |role| Namespace::create(&format!("lastmile-{}-{role}", std::process::id())).unwrap();
        let site =
            Self { scratch, left: named("left"), shaper: named("shaper"), line: named("line"), right: named("right") };
        for ((from, device), (to, other)) in [
            ((&site.shaper, "west"), (&site.left, "eth")),
            ((&site.shaper, "east"), (&site.line, "dsl0")),
            ((&site.line, "dsl1"), (&site.right, "eth")),
        ] {
            ip(&format!("-n {} link add {device} type veth peer name {other} netns {}", from.name(), to.name()));
            for (namespace, device) in [(from, device), (to, other)] {
                // No neighbour discovery of IPv6 among the packets.
                ip(&format!("-n {} link set {device} addrgenmode none", namespace.name()));
                ip(&format!("-n {} link set {device} up", namespace.name()));
            }
        }
        ip(&format!("-n {} addr add 10.9.0.1/24 dev eth", site.left.name()));
        ip(&format!("-n {} addr add 10.9.0.2/24 dev eth", site.right.name()));
        ip(&format!("-n {} link set lo up", site.left.name()));
        ip(&format!("-n {} route add default via 10.9.0.2", site.left.name()));
        Some(site)
    }

    /// A program that has said so on standard error.
    fn start(&self, place: &Namespace, arguments: &[&str], ready: &str) -> Watcher {
        let mut command = lastmile(&self.scratch.path, arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = Running(place.run(|| command.spawn()).unwrap().unwrap());
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let said = until_it_says(ready, &mut talk);
        // Later output must not fill the pipe.
        thread::spawn(move || std::io::copy(&mut talk, &mut std::io::sink()));
        Watcher { child, said }
    }

    fn watch(&self, more: &[&str]) -> Watcher {
        let base = ["watch", "--store", "line.watch", "--interval", "100 ms", "--shaper", "home.sock"];
        self.start(&self.left, &[&base[..], more].concat(), "system calls: ")
    }

    fn history(&self, more: &[&str]) -> (String, String, Option<i32>) {
        let output =
            lastmile(&self.scratch.path, &["history", "--store", "line.watch", "--utc"]).args(more).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code())
    }

    fn document(&self) -> Value {
        let (stdout, stderr, code) = self.history(&["--from", "1 h", "--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        json(stdout.as_bytes())
    }

    /// UDP from the left to the right for this long, at about 1 Mbit/s: twice the line.
    fn flood(&self, time: Duration) {
        let send = || {
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            let end = Instant::now() + time;
            while Instant::now() < end {
                // Nobody listens, and the port unreachable that comes back is no failure.
                let _ = socket.send_to(&[0; 1000], "10.9.0.2:9");
                thread::sleep(Duration::from_millis(8));
            }
        };
        self.left.run(send).unwrap();
    }
}

/// A program that ends with the test.
struct Watcher {
    child: Running,
    said: String,
}

impl Watcher {
    fn stopped(mut self) -> Option<i32> {
        kill("TERM", self.child.id());
        self.child.wait().unwrap().code()
    }
}

/// The member of a list whose members have these values.
fn of<'a>(list: &'a Value, wanted: &[(&str, &str)]) -> &'a Value {
    let is = |one: &&Value| {
        wanted.iter().all(|(key, value)| {
            let shown = &one[*key];
            let text = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
            text == *value
        })
    };
    list.as_array().unwrap().iter().find(is).unwrap_or_else(|| panic!("no {wanted:?} in {list:#}"))
}

fn number(value: &Value, path: &str) -> f64 {
    at(value, path).as_f64().unwrap_or_else(|| panic!("{path} of {value:#}"))
}

#[test]
#[ignore = "needs root: real packets"]
fn watch_keeps_the_classes_of_a_shaper_and_the_pings_over_its_line() {
    let Some(site) = Site::new() else { return };
    let _line = site.start(&site.line, &["emulate", "line.toml", "--bridge", "dsl0,dsl1"], "server behind");
    let shape = ["shape", "mine.toml", "--lan", "west", "--wan", "east", "--make-bridge", "--control", "home.sock"];
    let shaper = site.start(&site.shaper, &shape, "control: ");
    let mut watcher = site.watch(&["--code-points", "0,EF", "--metrics", "127.0.0.1:9101"]);
    assert!(watcher.said.contains("pings: gateway\n"), "{}", watcher.said);
    let mut second = lastmile(&site.scratch.path, &["watch", "--no-gateway", "--store", "line.watch"]);
    let second = site.left.run(|| second.output()).unwrap().unwrap();
    let refused = String::from_utf8(second.stderr).unwrap();
    assert!(refused.ends_with("line.watch: another watcher writes to it: a store has one\n"), "{refused}");
    assert_eq!(second.status.code(), Some(2));
    assert!(watcher.said.contains("capabilities: CAP_DAC_OVERRIDE CAP_NET_RAW; files: limited"), "{}", watcher.said);
    thread::sleep(Duration::from_secs(2));
    let idle = site.document();
    site.flood(Duration::from_secs(8));

    // Killed, it has lost nothing of what it had stored, and the next one goes on with the same store.
    watcher.child.kill().unwrap();
    watcher.child.wait().unwrap();
    let killed = site.document();
    let watcher = site.watch(&["--code-points", "0,EF", "--metrics", "127.0.0.1:9101"]);
    thread::sleep(Duration::from_secs(3));
    let address: SocketAddr = "127.0.0.1:9101".parse().unwrap();
    let page = site.left.run(|| crate::shape::get_here(address, "/metrics")).unwrap();
    let page = Page::read(&page.1);
    assert!(page.get("lastmile_watch_pings_total{target=\"gateway\",code_point=\"46\"}") >= 10.0);
    assert!((page.get("lastmile_watch_source_up{source=\"shaper home\"}") - 1.0).abs() < 1e-9);
    assert_eq!(watcher.stopped(), Some(0));
    drop(shaper);

    let whole = site.document();
    let pings = |document: &Value, code_point: &str| {
        of(at(document, "paths"), &[("target", "gateway"), ("code_point", code_point)]).clone()
    };
    // 10 ms each way and a line for 84 bytes, three cells: 2.5 ms up.
    let idle_s = number(&pings(&idle, "0"), "total.p50_s");
    assert!((0.02..0.2).contains(&idle_s), "{idle_s} s without load");
    // 20 kB at four fifths of 486 kbit/s in cells: 0.4 s and more.
    let (loaded_s, quick_s) =
        (number(&pings(&killed, "0"), "total.p95_s"), number(&pings(&killed, "46"), "total.p95_s"));
    assert!(loaded_s > 0.2 && quick_s < loaded_s / 2.0, "{loaded_s} s, and {quick_s} s first");
    assert!(number(&pings(&whole, "0"), "total.sent") > number(&pings(&killed, "0"), "total.sent") + 10.0);

    let class = |name: &str| of(at(&whole, "queues"), &[("place", "home up"), ("class", name)]).clone();
    let (quick, default) = (class("quick"), class("default"));
    assert!(number(&quick, "total.packets") >= 50.0, "{quick:#}");
    assert!(number(&default, "total.dropped_packets.tail") > 100.0, "{default:#}");
    assert!(number(&default, "total.most_backlog_bytes") > 10_000.0, "{default:#}");
    assert!(number(&default, "total.waits.p95_s") > 0.2, "{default:#}");
    assert!(number(&quick, "total.waits.p50_s") < 0.1, "{quick:#}");
    let line = class("");
    assert!(number(&line, "total.wire_bytes") > number(&line, "total.bytes"), "{line:#}");
    let sent = of(at(&whole, "queues"), &[("source", "interface"), ("place", "eth"), ("class", "sent")]);
    assert!(number(sent, "total.packets") > 500.0, "{sent:#}");
    let started = at(&whole, "events").as_array().unwrap().iter().filter(|event| event["kind"] == "started").count();
    assert_eq!(started, 2);

    let (text, stderr, code) = site.history(&["--from", "1 h", "--page", "page.html"]);
    assert_eq!((code, stderr.as_str()), (Some(0), "page: page.html\n"));
    for words in ["gateway dscp 46", "home up quick", "home up default", "by hour of the day", " tail", "█", "stopped"]
    {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let html = std::fs::read_to_string(site.scratch.path.join("page.html")).unwrap();
    assert!(html.contains("home up: wait, 99th percentile") && html.contains("default"));
    assert_eq!(html.matches("<script").count(), 3, "data and program");
    let (text, _, code) = site.history(&["--from", "1 h", "--class", "quick"]);
    assert!(code == Some(0) && text.contains("home up quick") && !text.contains("gateway"), "{text}");
    // A typing error next to a name that is there is not a class without traffic.
    let (text, stderr, code) = site.history(&["--from", "1 h", "--class", "quick", "--class", "qiuck"]);
    assert!(code == Some(2) && text.is_empty() && stderr.contains("has no class qiuck between"), "{text}{stderr}");
    assert!(stderr.contains("classes: default, ") && stderr.contains("quick"), "{stderr}");
    let (csv, _, _) = site.history(&["--from", "1 h", "--csv"]);
    assert!(csv.lines().skip(1).all(|line| line.split(',').count() == 17), "{csv}");
}

/// A drain lets the urgent class of its direction by before the classes: its packets are those of the row `urgent`, as
/// in `shape status`, and the class of the policy has none of them.
#[test]
#[ignore = "needs root: real packets"]
fn watch_keeps_what_a_drain_lets_by_before_the_classes() {
    let Some(site) = Site::new() else { return };
    let _line = site.start(&site.line, &["emulate", "line.toml", "--bridge", "dsl0,dsl1"], "server behind");
    let rates = ["--up", "486 kbit/s", "--down", "1.9 Mbit/s", "--link", "bridged-vcmux-fcs"];
    let place = ["--lan", "west", "--wan", "east", "--make-bridge", "--control", "home.sock"];
    let shape = [&["shape", "full-both-ways"], &rates[..], &place].concat();
    let _shaper = site.start(&site.shaper, &shape, "control: ");
    let watcher = site.watch(&[]);
    thread::sleep(Duration::from_secs(4));
    assert_eq!(watcher.stopped(), Some(0));
    let status = lastmile(&site.scratch.path, &["shape", "status", "--control", "home.sock"]).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    let row =
        status.lines().find(|line| line.trim_start().starts_with("urgent ")).unwrap_or_else(|| panic!("{status}"));
    let let_by: f64 = row.split_whitespace().nth(1).unwrap().parse().unwrap();
    let document = site.document();
    let of_down = |class: &str| of(at(&document, "queues"), &[("place", "home down"), ("class", class)]).clone();
    let (urgent, interactive) = (of_down("urgent"), of_down("interactive"));
    // Ten replies a second, of 84 bytes; those of the last interval may be missing.
    let packets = number(&urgent, "total.packets");
    assert!(packets >= 25.0 && packets <= let_by && packets >= let_by - 15.0, "{packets} of {let_by}: {urgent:#}");
    assert!((number(&urgent, "total.bytes") - 84.0 * packets).abs() < 1e-6, "{urgent:#}");
    assert!(number(&interactive, "total.packets") < 1.0, "{interactive:#}");
    let (text, stderr, code) = site.history(&["--from", "1 h", "--class", "urgent"]);
    assert!(code == Some(0) && text.contains("home down urgent"), "{text}{stderr}");
}

/// A host that is not there, a store that another process has locked, and a shaper that does not run: the watcher says
/// so and goes on.
#[test]
#[ignore = "needs root: real packets"]
fn watch_goes_on_without_a_route_a_shaper_and_a_store_that_can_be_written() {
    let Some(site) = Site::new() else { return };
    let store = site.scratch.path.join("line.watch");
    let watcher = site.watch(&["--no-gateway", "127.0.0.1", "2001:db8::1", "--device", "eth", "--device", "nowhere"]);
    thread::sleep(Duration::from_secs(1));
    let other = rusqlite::Connection::open(&store).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = site.document();
    thread::sleep(Duration::from_secs(1));
    let while_locked = site.document();
    other.execute_batch("COMMIT").unwrap();
    drop(other);
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(watcher.stopped(), Some(0));
    let document = site.document();
    let sent = |document: &Value| number(of(at(document, "paths"), &[("target", "127.0.0.1")]), "total.sent");
    assert!((sent(&while_locked) - sent(&locked)).abs() < 0.5, "nothing is written while it is locked");
    assert!(sent(&document) >= 25.0, "{} after {}", sent(&document), sent(&locked));
    let lost = of(at(&document, "paths"), &[("target", "2001:db8::1")]);
    assert!(number(lost, "total.lost") >= 20.0 && (number(lost, "total.loss") - 1.0).abs() < 1e-9, "{lost:#}");
    let events: Vec<&str> =
        at(&document, "events").as_array().unwrap().iter().filter_map(|event| event["detail"].as_str()).collect();
    for words in
        ["shaper home: no shaper runs", "interface nowhere: there is no such interface", "2001:db8::1: pinging"]
    {
        assert!(events.iter().any(|event| event.starts_with(words)), "no {words:?} in {events:#?}");
    }
    assert!(events.iter().any(|event| event.starts_with("the store takes rows again after ")), "{events:#?}");
}

/// A link that is down for two seconds costs the pings of two seconds: 20 at 10 a second, and what is under way.
#[test]
#[ignore = "needs root: real packets"]
fn watch_counts_an_outage_for_as_long_as_it_lasts() {
    let Some(site) = Site::new() else { return };
    ip(&format!("-n {} addr add 10.9.0.3/24 dev west", site.shaper.name()));
    let watcher = site.watch(&["--no-gateway", "10.9.0.3"]);
    thread::sleep(Duration::from_secs(1));
    let link = |state: &str| ip(&format!("-n {} link set eth {state}", site.left.name()));
    let begun = Instant::now();
    link("down");
    thread::sleep(Duration::from_secs(2));
    link("up");
    let most = begun.elapsed().as_secs_f64() * 10.0 + 6.0;
    thread::sleep(Duration::from_secs(3));
    assert_eq!(watcher.stopped(), Some(0));
    let document = site.document();
    let lost = number(of(at(&document, "paths"), &[("target", "10.9.0.3")]), "total.lost");
    assert!((15.0..=most).contains(&lost), "{lost} lost, {most} at most");
}

/// The unit gives no more capabilities, and the watcher's own limits leave it what it needs.
#[test]
#[ignore = "needs root: real packets"]
fn watch_needs_no_more_than_the_capabilities_of_its_unit() {
    let Some(site) = Site::new() else { return };
    let mut command = Command::new("setpriv");
    command.args(["--no-new-privs", "--bounding-set=-all,+net_raw,+dac_override", env!("CARGO_BIN_EXE_lastmile")]);
    command.args(["watch", "--no-gateway", "127.0.0.1", "--store", "line.watch", "--interval", "100 ms"]);
    command.current_dir(&site.scratch.path).stderr(Stdio::null()).stdout(Stdio::null());
    let child = Running(site.left.run(|| command.spawn()).unwrap().unwrap());
    let watcher = Watcher { child, said: String::new() };
    let pid = watcher.child.id();
    thread::sleep(Duration::from_secs(4));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
    assert_eq!((line("Seccomp:"), line("NoNewPrivs:")), ("2".to_owned(), "1".to_owned()));
    assert_eq!(u64::from_str_radix(&line("CapEff:"), 16).unwrap().count_ones(), 2, "{status}");
    assert_eq!(watcher.stopped(), Some(0));
    assert!(number(of(at(&site.document(), "paths"), &[("target", "127.0.0.1")]), "total.sent") >= 10.0);
}

/// An ordinary user in a namespace, where no group may ping (`net.ipv4.ping_group_range` is `1 0`).
#[test]
#[ignore = "needs root: real packets"]
fn watch_without_the_right_to_ping_names_the_setting_and_ends_where_nothing_is_left() {
    if !can_run() {
        return;
    }
    let scratch = Scratch::new();
    std::fs::set_permissions(&scratch.path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    // The user may not enter the folder of the build.
    std::fs::copy(env!("CARGO_BIN_EXE_lastmile"), scratch.path.join("lastmile")).unwrap();
    let place = Namespace::create(&format!("lastmile-{}-ping", std::process::id())).unwrap();
    let arguments = ["watch", "127.0.0.1", "--no-gateway", "--store", "line.watch", "--shaper", "home.sock"];
    let start = |more: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg("./lastmile").args(arguments).args(more).current_dir(&scratch.path);
        command.env("NO_COLOR", "1").stdout(Stdio::null()).stderr(Stdio::piped());
        place.run(|| command.spawn()).unwrap().unwrap()
    };
    let output = start(&[]).wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("error: pinging 127.0.0.1: this process may open no socket for it"), "{said}");
    assert!(said.contains("hint: ") && said.contains("net.ipv4.ping_group_range"), "{said}");
    // With an interface to count there is something to store.
    ip(&format!("-n {} link add up0 type veth peer name down0", place.name()));
    let mut child = start(&["--device", "up0"]);
    let said = until_it_says("may open no socket", &mut BufReader::new(child.stderr.take().unwrap()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("net.ipv4.ping_group_range"), "{said}");
}

#[test]
fn history_says_where_utc_takes_the_place_of_an_unknown_zone() {
    let scratch = Scratch::new();
    let file = scratch.path.join("line.watch");
    let limits = lastmile_watch::store::Limits::default();
    let mut store = lastmile_watch::store::Store::open(&file, limits).unwrap();
    // 2026-01-01 00:00 UTC.
    let interval = lastmile_watch::sample::Interval { end_ms: 1_767_225_600_000, span_ms: 1000, ..Default::default() };
    store.append(&interval).unwrap();
    let said = |zone: &str, more: &[&str]| {
        let mut history = lastmile(&scratch.path, &["history", "--store", "line.watch", "--from", "2026-01-02"]);
        let output = history.args(["--to", "2026-01-01"]).args(more).env("TZ", zone).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let unknown = "the time zone of this machine is not known: all times are UTC\n";
    assert!(said("Europe/Nowhere", &[]).starts_with(unknown));
    assert!(!said("Europe/Nowhere", &["--utc"]).contains(unknown) && !said("CET-1", &[]).contains(unknown));
}

#[test]
fn the_unit_of_a_watcher_is_one_that_systemd_takes() {
    let scratch = Scratch::new();
    let printed = lastmile(&scratch.path, &["watch", "unit", "--program", "/usr/bin/lastmile"]).output().unwrap();
    let unit = String::from_utf8(printed.stdout).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/lastmile watch --store /var/lib/lastmile/line.watch "), "{unit}");
    // The program must exist for systemd-analyze(1).
    let unit = unit.replace("/usr/bin/lastmile", env!("CARGO_BIN_EXE_lastmile"));
    let file = scratch.path.join("lastmile-watch.service");
    std::fs::write(&file, &unit).unwrap();
    let Ok(verified) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output() else { return };
    let said = String::from_utf8_lossy(&[verified.stdout, verified.stderr].concat()).into_owned();
    let ours = said.lines().filter(|line| line.contains("lastmile")).collect::<Vec<_>>().join("\n");
    assert_eq!(ours, "", "{unit}");
}

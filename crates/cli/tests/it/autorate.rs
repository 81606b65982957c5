//! cake-autorate with real packets: pings between namespaces, and shapers whose rates follow. The tests need root, so
//! they run only on request (`scripts/live-tests.sh`).

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use lastmile_live::netns::Namespace;
use serde_json::Value;

use crate::hosts::{AtEnd, Running, ip, ping_times};
use crate::live::{can_run, folder, json, lastmile};
use crate::shape::{Site, at, until};

/// `scenarios/rate-halves.toml` under both clocks: goodput and median ping in each third of a minute.
#[test]
#[ignore = "needs root: real packets"]
fn a_lab_follows_a_rate_that_halves_as_the_simulation_does() {
    let Some(scratch) = folder("unused", "") else { return };
    let arguments = ["lab", "scenarios/rate-halves.toml", "--policy", "cake-autorate", "--both", "--json"];
    let output = lastmile(&scratch.path, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output.stdout);
    let rows = document["rows"].as_array().unwrap();
    for phase in ["at-40", "at-20", "at-40-again"] {
        let row = |of: &str, measure: &str| {
            let during = format!("during {phase}");
            let is = |row: &&Value| {
                (&row["phase"], &row["of"], &row["measure"]) == (&during.as_str().into(), &of.into(), &measure.into())
            };
            rows.iter().find(is).unwrap_or_else(|| panic!("no {measure} of {of} {during} in {document}")).clone()
        };
        let (goodput, ping) = (row("download", "goodput_bps"), row(phase, "rtt_p50_s"));
        assert!(goodput["deviation"].as_f64().unwrap().abs() < 0.15, "{goodput}");
        assert!(ping["deviation"].as_f64().unwrap().abs() < 0.3, "{ping}");
    }
    let summary = &document["live"][0];
    assert_eq!(summary["conservation"]["holds"], true);
}

/// A line without traffic has the base rates, 90 and 95 % of the line, and a ping every 50 ms.
#[test]
#[ignore = "needs root: real packets"]
fn an_emulated_line_pings_from_the_client_to_the_server() {
    let line = "duration = \"1 s\"\n[access]\ndown = { rate = \"8 Mbit/s\" }\nup = { rate = \"2 Mbit/s\" }\n";
    let Some(scratch) = folder("line.toml", line) else { return };
    let mut command = lastmile(&scratch.path, &["emulate", "line.toml", "--policy", "cake-autorate"]);
    command.args(["--control", "socket", "--", "sleep", "60"]).stdout(Stdio::null()).stderr(Stdio::null());
    let _line = Running(command.spawn().unwrap());
    let status = || {
        let output = lastmile(&scratch.path, &["emulate", "status", "--json", "--control", "socket"]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).ok()
    };
    let shapers = |status: &Value| {
        ["up", "down"].map(|direction| {
            let links = status[direction]["links"].as_array().unwrap();
            let link = links.iter().find(|link| link["name"].as_str().unwrap().starts_with("middlebox")).unwrap();
            (link["shaper_rate_bps"].as_u64(), link["transmitted"]["packets"].as_u64().unwrap())
        })
    };
    until("20 pings have crossed both shapers", || {
        status().is_some_and(|status| shapers(&status).iter().all(|(_, packets)| *packets >= 20))
    });
    let [up, down] = shapers(&status().unwrap());
    assert_eq!((up.0, down.0), (Some(1_900_000), Some(7_200_000)));
}

/// The machine that shapes reaches the LAN by an interface of its own, and the reflector as hosts of the LAN do:
/// `middle` - own [ left ] eth - west [ middle ] east - eth [ `right` ].
fn own_way(site: &Site) {
    let [left, middle, right] = [&site.hosts.left, &site.hosts.middle, &site.hosts.right].map(Namespace::name);
    ip(&format!("-n {middle} link add own type veth peer name lan netns {left}"));
    for (host, address, device) in [(middle, "10.9.1.2/24", "own"), (left, "10.9.1.1/24", "lan")] {
        ip(&format!("-n {host} addr add {address} dev {device}"));
        ip(&format!("-n {host} link set {device} up"));
    }
    ip(&format!("-n {middle} route add 10.9.0.0/24 via 10.9.1.1"));
    ip(&format!("-n {right} route add 10.9.1.0/24 via 10.9.0.1"));
    site.hosts.left.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap().unwrap();
}

/// Eight downloads from the right to the left for as long as `work` takes: the kernel keeps the queue of each at its
/// own device short (TCP small queues).
fn downloading<T>(site: &Site, work: impl FnOnce() -> T) -> T {
    let listener = site.hosts.left.run(|| TcpListener::bind("10.9.0.1:9200")).unwrap().unwrap();
    let connect = || {
        let sender = site.hosts.right.run(|| TcpStream::connect("10.9.0.1:9200")).unwrap().unwrap();
        (sender, listener.accept().unwrap().0)
    };
    let mut connections: Vec<(TcpStream, TcpStream)> = (0..8).map(|_| connect()).collect();
    let endings: Vec<TcpStream> = connections.iter().map(|(_, receiver)| receiver.try_clone().unwrap()).collect();
    thread::scope(|scope| {
        let _end = AtEnd(|| endings.iter().for_each(|ending| drop(ending.shutdown(Shutdown::Both))));
        for (sender, receiver) in &mut connections {
            scope.spawn(move || while sender.write(&[0; 1 << 16]).is_ok() {});
            scope.spawn(move || while receiver.read(&mut [0; 1 << 16]).is_ok_and(|read| read > 0) {});
        }
        work()
    })
}

/// The median of `count` pings from the left to the right, a tenth of a second apart, in milliseconds.
fn median_ms(site: &Site, count: usize) -> f64 {
    let mut ping = Command::new("ping");
    ping.args(["-n", "-i", "0.1", "-c", &count.to_string(), "10.9.0.2"]);
    let output = site.hosts.left.run(|| ping.output()).unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let times = ping_times(&text);
    assert!(times.len() > count / 2, "{text}");
    times[times.len() / 2]
}

/// A line that was given with 20 Mbit/s and has 8, behind a buffer of 300 ms: the rate falls to that of the line, and
/// the buffer drains. A reload takes the controller away and brings a new one.
#[test]
#[ignore = "needs root: real packets"]
fn a_shaper_finds_the_rate_of_the_line() {
    const METRICS: &str = "127.0.0.1:9101";
    if !can_run() {
        return;
    }
    let site = Site::new().unwrap();
    own_way(&site);
    let right = site.hosts.right.name();
    let tbf = ["netns", "exec", right, "tc", "qdisc", "add", "dev", "eth", "root", "tbf"];
    let limits = ["rate", "8mbit", "burst", "3000", "limit", "300000"];
    assert!(Command::new("ip").args(tbf).args(limits).status().unwrap().success());
    ip(&format!("-n {} link set lo up", site.hosts.middle.name()));

    let line = ["--up", "20 Mbit/s", "--down", "20 Mbit/s", "--link", "ethernet", "--make-bridge"];
    let mut command = site.lastmile(&["shape", "cake-autorate", "--lan", "west", "--wan", "east"]);
    command.args(line).args(["--reflector", "10.9.0.2", "--metrics", METRICS]);
    let shaper = site.begin(command);
    let down = |status: &Value| status["down"]["shaper_rate_bps"].as_f64();
    until("pings are answered", || at(&site.status(), "reflectors.replies").as_u64() > Some(20));
    assert_eq!(down(&site.status()), Some(18e6), "without load");

    let ((), median) = downloading(&site, || {
        thread::sleep(Duration::from_secs(10));
        let median = median_ms(&site, 50);
        let status = site.status();
        let rate = down(&status).unwrap();
        assert!((4e6..9e6).contains(&rate), "{rate}, a median ping of {median} ms, {}", status["reflectors"]);
        ((), median)
    });
    assert!(median < 150.0, "{median} ms of the buffer's 300");
    let (text, ..) = site.ask(&["status"]);
    assert!(text.contains("\n  shaper ") && text.contains("reflectors: "), "{text}");
    let mut page = String::new();
    let mut stream = site.hosts.middle.run(|| TcpStream::connect(METRICS)).unwrap().unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("\nlastmile_shape_shaper_rate_bps{direction=\"down\"} "), "{page}");

    let (_, error, code) = site.ask(&["reload", "--policy", "cake"]);
    assert_eq!(code, Some(0), "{error}");
    let steady = site.status();
    assert_eq!((down(&steady), steady.get("reflectors")), (None, None));
    assert_eq!(site.ask(&["reload"]).2, Some(0));
    until("a new controller pings", || at(&site.status(), "reflectors.replies").as_u64() > Some(0));
    assert!(at(&site.status(), "reflectors.pings").as_u64() < Some(60), "it counts from the reload");
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

/// There is no route to the reflector of IPv6, the other has one only after the start, and then the address that its
/// pings leave with is replaced by another, as by that of another lease.
#[test]
#[ignore = "needs root: real packets"]
fn pings_begin_with_a_route_and_go_on_from_another_address() {
    let Some(site) = Site::new() else { return };
    own_way(&site);
    let middle = site.hosts.middle.name();
    ip(&format!("-n {middle} route del 10.9.0.0/24"));
    let line = ["--up", "20 Mbit/s", "--down", "20 Mbit/s", "--link", "ethernet", "--make-bridge"];
    let mut command = site.lastmile(&["shape", "cake-autorate", "--lan", "west", "--wan", "east"]);
    command.args(line).args(["--reflector", "10.9.0.2", "--reflector", "2001:db8::2"]);
    let _shaper = site.begin(command);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(at(&site.status(), "reflectors.pings"), 0);
    ip(&format!("-n {middle} route add 10.9.0.0/24 via 10.9.1.1"));
    let replies = || at(&site.status(), "reflectors.replies").as_u64().unwrap();
    until("pings are answered", || replies() > 20);
    // The route goes with the last address of its network.
    ip(&format!("-n {middle} addr add 10.9.1.3/24 dev own"));
    ip(&format!("-n {middle} addr del 10.9.1.2/24 dev own"));
    ip(&format!("-n {middle} addr replace 10.9.1.3/24 dev own"));
    ip(&format!("-n {middle} route replace 10.9.0.0/24 via 10.9.1.1"));
    let before = replies();
    until("pings are answered at the other address", || replies() > before + 20);
    let status = site.status();
    assert!(at(&status, "reflectors.pings").as_u64() < Some(replies() + 20), "{status}");
}

/// Reflectors beyond the third interface do not answer here: the rates stay, and the shaper reports it.
#[test]
#[ignore = "needs root: real packets"]
fn a_shaper_reports_that_no_reflector_answers_and_takes_no_controller_without_one() {
    let Some(site) = Site::new() else { return };
    own_way(&site);
    let line = ["--up", "20 Mbit/s", "--down", "20 Mbit/s", "--link", "ethernet", "--make-bridge"];
    let mut command = site.lastmile(&["shape", "cake-autorate", "--lan", "west", "--wan", "east"]);
    command.args(line).args(["--reflector", "10.9.0.77"]);
    let mut shaper = site.begin(command);
    shaper.says("no reply of a reflector for 10 s");
    assert_eq!(at(&site.status(), "down.shaper_rate_bps"), 18_000_000);
    assert_eq!(site.ask(&["stop"]).2, Some(0));
    drop(shaper);

    let _shaper = site.start(&[]);
    let (_, error, code) = site.ask(&["reload", "--policy", "cake-autorate"]);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("no reflector is named for its pings"), "{error}");
    assert_eq!(at(&site.status(), "policy"), "mine");
}

/// Two pingers and three reflectors, of which the first does not answer: checks after more than 1 s each find three
/// offences, and the third takes over. It answers, so that replies come every 150 ms.
#[test]
#[ignore = "needs root: real packets"]
fn a_spare_reflector_takes_over_from_a_silent_one() {
    let Some(site) = Site::new() else { return };
    own_way(&site);
    let policy = "scheduler = { kind = \"none\", place = \"middlebox\", share = \"95 %\" }\n\
                  down = { share = \"90 %\" }\nautorate = { no_pingers = 2 }\n";
    fs::write(site.scratch.path.join("one.toml"), policy).unwrap();
    let line = ["--up", "20 Mbit/s", "--down", "20 Mbit/s", "--link", "ethernet", "--make-bridge"];
    let mut command = site.lastmile(&["shape", "one.toml", "--lan", "west", "--wan", "east"]);
    command.args(line).args(["--reflector", "10.9.0.77", "--reflector", "10.9.0.2", "--reflector", "10.9.0.3"]);
    ip(&format!("-n {} addr add 10.9.0.3/24 dev eth", site.hosts.right.name()));
    let mut shaper = site.begin(command);
    shaper.says("reflector 10.9.0.77 is replaced by 10.9.0.3: its replies are late or missing");
    let replies = || at(&site.status(), "reflectors.replies").as_u64().unwrap();
    let before = replies();
    thread::sleep(Duration::from_secs(4));
    // Of two hosts 26, where one would have 13.
    assert!(replies() - before >= 18, "{before}, {}", replies());
    assert_eq!(at(&site.status(), "reflectors.replaced"), 1);
    assert!(site.ask(&["status"]).0.contains(" replies, 1 replaced\n"));
}

/// A download alone is shaped, to 90 % of 4 Mbit/s: pings pass the upstream as they are.
#[test]
#[ignore = "needs root: real packets"]
fn a_direction_without_a_rate_is_carried_as_it_is() {
    let Some(site) = Site::new() else { return };
    let mut command = site.lastmile(&["shape", "cake", "--lan", "west", "--wan", "east", "--make-bridge"]);
    command.args(["--up", "0", "--down", "4 Mbit/s", "--link", "ethernet"]);
    let _shaper = site.begin(command);
    assert_eq!(site.pinged(20), 20);
    let status = site.status();
    assert_eq!(at(&status, "up.wire.rate_bps"), &Value::Null);
    assert_eq!(at(&status, "down.wire.rate_bps"), 4_000_000);
    assert!(at(&status, "up.counters").as_array().unwrap().iter().all(|counter| counter["kind"] == "fifo"), "{status}");
    assert!(
        at(&status, "down.counters").as_array().unwrap().iter().any(|counter| counter["kind"] == "cake"),
        "{status}"
    );
    let text = site.ask(&["status"]).0;
    assert!(text.contains("up: not shaped, ") && text.contains("down: 4 Mbit/s, "), "{text}");
}

//! `lastmile shape` as a program between two hosts in namespaces, and its clients. The tests need
//! root, so they run only on request (`scripts/live-tests.sh`).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::hosts::{Hosts, Running, ip};
use crate::live::{can_run, kill, lastmile, until_it_says};
use crate::openmetrics::Page;
use crate::transcript::Scratch;

/// Pings first, 512 kbit/s over ATM.
pub(crate) const POLICY: &str = r#"
name = "mine"

[line]
encapsulation = "bridged-vcmux-fcs"
up = "512 kbit/s"
down = "2 Mbit/s"

[[class]]
name = "quick"
rate = "20 %"
priority = 0
limit = "20 packets"

[[class]]
name = "default"
rate = "80 %"
priority = 1
limit = "60 kB"

[[rule]]
class = "quick"
match = { protocol = "icmp" }
"#;

/// Two hosts, and between them the machine that shapes: `left` - west [ middle ] east - `right`.
pub(crate) struct Site {
    pub(crate) scratch: Scratch,
    pub(crate) hosts: Hosts,
}

impl Site {
    /// `None`, with a message, where these tests cannot run.
    pub(crate) fn new() -> Option<Self> {
        if !can_run() {
            return None;
        }
        let scratch = Scratch::new();
        std::fs::write(scratch.path.join("mine.toml"), POLICY).unwrap();
        Some(Self { scratch, hosts: Hosts::new(false) })
    }

    pub(crate) fn lastmile(&self, arguments: &[&str]) -> Command {
        lastmile(&self.scratch.path, arguments)
    }

    /// A shaper that has printed the path of its control socket.
    pub(crate) fn start(&self, more: &[&str]) -> Shaper {
        let mut command = self.lastmile(&["shape", "mine.toml", "--lan", "west", "--wan", "east", "--make-bridge"]);
        command.args(more);
        self.begin(command)
    }

    pub(crate) fn begin(&self, mut command: Command) -> Shaper {
        command.current_dir(&self.scratch.path).args(["--control", "socket"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running(self.hosts.middle.run(|| command.spawn()).unwrap().unwrap());
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let said = until_it_says("control: ", &mut talk);
        Shaper { child, talk, said }
    }

    /// `lastmile shape WORDS --control socket`: standard output, standard error, exit code.
    pub(crate) fn ask(&self, words: &[&str]) -> (String, String, Option<i32>) {
        let output = self.lastmile(&["shape"]).args(words).args(["--control", "socket"]).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code())
    }

    pub(crate) fn status(&self) -> Value {
        let (stdout, stderr, code) = self.ask(&["status", "--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// The number of answered pings, of `count` from the left to the right.
    pub(crate) fn pinged(&self, count: u32) -> u32 {
        self.pinged_every("0.02", count)
    }

    /// As [`Site::pinged`], with a ping every `seconds`.
    pub(crate) fn pinged_every(&self, seconds: &str, count: u32) -> u32 {
        let mut ping = Command::new("ping");
        ping.args(["-n", "-q", "-i", seconds, "-W", "1", "-c", &count.to_string(), "10.9.0.2"]);
        let output = self.hosts.left.run(|| ping.output()).unwrap().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains("duplicates"), "the bridge carries them too: {text}");
        let answered = text.split_once(" received").and_then(|(before, _)| before.rsplit(", ").next()?.parse().ok());
        answered.unwrap_or_else(|| panic!("{text}"))
    }
}

/// The program, which ends with the test.
pub(crate) struct Shaper {
    pub(crate) child: Running,
    talk: BufReader<std::process::ChildStderr>,
    pub(crate) said: String,
}

impl Shaper {
    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, self.child.id());
    }

    /// What it prints on standard error until it says `words`.
    pub(crate) fn says(&mut self, words: &str) -> String {
        until_it_says(words, &mut self.talk)
    }

    /// Its exit code, and its further output on both streams.
    pub(crate) fn ended(mut self) -> (Option<i32>, String, String) {
        let mut data = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut data).unwrap();
        let mut talk = std::mem::take(&mut self.said);
        self.talk.read_to_string(&mut talk).unwrap();
        (self.child.wait().unwrap().code(), data, talk)
    }
}

/// Repeats `so` until it is true, for at most twenty seconds.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < Duration::from_secs(20), "not within twenty seconds: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A field such as `up.classes.0.name`.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let pointer = format!("/{}", path.replace('.', "/"));
    value.pointer(&pointer).unwrap_or_else(|| panic!("no {path} in {value:#}"))
}

#[test]
#[ignore = "needs root: real packets"]
fn it_tells_what_it_has_done_in_words_in_json_and_while_it_is_watched() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&["--path", "packet-sockets"]);
    assert!(shaper.said.contains("mine: west (LAN) and east (line), ports of lastmile0"), "{}", shaper.said);
    assert_eq!(site.pinged(10), 10);

    let status = site.status();
    assert_eq!(at(&status, "policy"), "mine");
    assert_eq!(at(&status, "pid").as_u64(), Some(u64::from(shaper.child.id())));
    assert_eq!((at(&status, "up.wire.rate_bps"), at(&status, "down.wire.rate_bps")), (&512_000.into(), &Value::Null));
    let class = at(&status, "up.classes.0");
    assert_eq!(at(class, "name"), "quick");
    // 84 bytes with 28 bytes of headers and trailer are three cells of 53.
    assert_eq!((at(class, "sent.packets").as_u64(), at(class, "sent.bytes").as_u64()), (Some(10), Some(840)));
    assert_eq!(at(class, "waited_s.count"), 10);
    assert!(at(&status, "up.wire_bytes").as_u64().unwrap() >= 10 * 3 * 53);
    assert_eq!(at(&status, "up.received.packets"), at(&status, "up.sent.packets"), "none waits and none was dropped");

    let (text, _, code) = site.ask(&["status"]);
    assert_eq!(code, Some(0));
    for line in ["mine for ", "up: 512 kbit/s, ", "  Sent ", "  backlog 0b 0p, at most ", "  wire ", " quick"] {
        assert!(text.lines().any(|told| told.starts_with(line)), "no line begins with {line:?}:\n{text}");
    }
    assert!(text.contains(" pkt (dropped 0, overlimits ") && text.contains("\ndown: not shaped, "), "{text}");

    // At least two updates, then Ctrl-C.
    let mut watch =
        site.lastmile(&["shape", "status", "--watch", "--interval", "50 ms", "--json", "--control", "socket"]);
    let mut watching = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut uptimes = (0..2).map(|_| {
        let status: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        at(&status, "uptime_s").as_f64().unwrap()
    });
    assert!(uptimes.next() < uptimes.next());
    kill("INT", watching.id());
    assert_eq!(watching.wait().unwrap().code(), Some(0));

    let (_, told, code) = site.ask(&["stop"]);
    assert_eq!((told.as_str(), code), ("it has ended\n", Some(0)));
    let (code, data, _) = shaper.ended();
    assert_eq!(code, Some(0));
    assert!(data.contains("  Sent ") && data.contains("\n quick "), "{data}");
    let (_, told, code) = site.ask(&["status"]);
    assert_eq!(code, Some(2), "nobody is there any more");
    assert!(told.starts_with("error: nobody answers at socket"), "{told}");
}

#[test]
#[ignore = "needs root: real packets"]
fn a_policy_is_read_again_and_a_wrong_one_leaves_the_old_in_force() {
    let Some(site) = Site::new() else { return };
    let mut shaper = site.start(&[]);
    let write = |text: &str| std::fs::write(site.scratch.path.join("mine.toml"), text).unwrap();
    assert_eq!(site.pinged(3), 3);

    write(&POLICY.replace("512 kbit/s", "600 kbit/s"));
    let (_, told, code) = site.ask(&["reload"]);
    assert_eq!((told.as_str(), code), ("mine is in force\n", Some(0)));
    assert_eq!(at(&site.status(), "up.wire.rate_bps"), 600_000);
    assert_eq!(at(&site.status(), "up.classes.0.waited_s.count"), 0, "classes count anew");
    assert_eq!(site.pinged(3), 3);
    assert_eq!(at(&site.status(), "up.classes.0.waited_s.count"), 3);

    write(&POLICY.replace("rate = \"20 %\"", "rate = \"30 %\""));
    let (_, told, code) = site.ask(&["reload"]);
    assert_eq!(code, Some(1));
    assert!(told.starts_with("error: mine.toml:"), "{told}");
    let status = site.status();
    assert_eq!(at(&status, "up.wire.rate_bps"), 600_000);
    assert_eq!((at(&status, "reloads.done").as_u64(), at(&status, "reloads.failed").as_u64()), (Some(1), Some(1)));
    assert!(at(&status, "reloads.last_error").as_str().unwrap().contains("mine.toml:"), "{status}");
    // A signal has no answer: the log says it, once.
    shaper.signal("HUP");
    let told = shaper.says("stays in force");
    assert_eq!(told.matches("the reload is refused, and mine stays in force: mine.toml:").count(), 1, "{told}");

    write(&POLICY.replace("512 kbit/s", "700 kbit/s"));
    shaper.signal("HUP");
    until("the policy is read again", || at(&site.status(), "up.wire.rate_bps") == 700_000);
    assert!(shaper.says("is in force").ends_with("mine is in force\n"));
    assert_eq!(site.pinged(3), 3);

    // Another policy on this line: built in, or from a file that the command reads.
    let (_, told, code) = site.ask(&["reload", "--policy", "cake"]);
    assert!(told.ends_with("cake is in force\n") && code == Some(0), "{told}");
    std::fs::write(site.scratch.path.join("other.toml"), POLICY.replace("512 kbit/s", "1 Mbit/s")).unwrap();
    let other = site.scratch.path.join("other.toml");
    let (_, told, code) = site.ask(&["reload", "--policy", other.to_str().unwrap()]);
    assert_eq!((told.as_str(), code), ("mine is in force\n", Some(0)));
    assert_eq!(at(&site.status(), "up.wire.rate_bps"), 700_000, "the line stays");
    let (_, told, code) = site.ask(&["reload", "--policy", "none-of-this-name"]);
    assert!(told.contains("no such file") && told.contains("built-in policies: ") && code == Some(2), "{told}");
    assert_eq!(site.pinged(3), 3);

    shaper.signal("TERM");
    let (code, data, talk) = shaper.ended();
    assert_eq!(code, Some(0), "{talk}");
    assert!(data.contains("policy reloads: 4, refused: 2"), "{data}");
    assert!(!talk.contains("stays in force"), "{talk}");
}

/// One request by HTTP/1.0 from within the namespace.
pub(crate) fn get(site: &Site, address: SocketAddr, path: &str) -> (String, String) {
    site.hosts.middle.run(|| get_here(address, path)).unwrap()
}

/// One request by HTTP/1.0 from the namespace of this thread: head and body of the answer.
pub(crate) fn get_here(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
#[ignore = "needs root: real packets"]
fn metrics_are_what_a_scraper_can_read() {
    let Some(site) = Site::new() else { return };
    let address: SocketAddr = "127.0.0.1:9100".parse().unwrap();
    let shaper = site.start(&["--metrics", "127.0.0.1:9100"]);
    assert_eq!(site.pinged(5), 5);
    let (head, body) = get(&site, address, "/metrics");
    assert!(head.starts_with("HTTP/1.") && head.contains(" 200 "), "{head}");
    assert!(head.to_lowercase().contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    let page = Page::read(&body);
    let of = |name: &str| page.get(&format!("lastmile_shape_{name}"));
    assert!(of("sent_packets_total{direction=\"up\"}") >= 5.0);
    assert!((of("class_sent_packets_total{direction=\"up\",class=\"quick\"}") - 5.0).abs() < 0.5);
    assert!((of("class_wait_seconds_count{direction=\"up\",class=\"quick\"}") - 5.0).abs() < 0.5);
    let within = of("class_wait_seconds_bucket{le=\"1.0\",direction=\"up\",class=\"quick\"}");
    assert!((within - 5.0).abs() < 0.5, "no ping waits for a second");
    assert!(of("class_wait_seconds_sum{direction=\"up\",class=\"quick\"}") < 5.0);
    assert!(of("wait_seconds_count{direction=\"up\"}") >= 5.0);
    assert!(get(&site, address, "/").0.contains(" 404 "));
    shaper.signal("INT");
    assert_eq!(shaper.ended().0, Some(0));
}

#[test]
#[ignore = "needs root: real packets"]
fn killed_it_leaves_the_bridge_whatever_held_it_back() {
    let Some(site) = Site::new() else { return };
    for (path, said) in [
        ("packet-sockets", "packet sockets, as asked for; bypass by tcx"),
        ("packet-sockets-nft", "packet sockets, as asked for; bypass by nft"),
        ("xdp", "AF_XDP native copy, as asked for"),
    ] {
        let mut shaper = site.start(&["--path", path]);
        assert!(shaper.said.contains(&format!("west: {said}")), "{}", shaper.said);
        assert_eq!(site.pinged(5), 5, "{path}");
        shaper.child.kill().unwrap();
        shaper.child.wait().unwrap();
        assert_eq!(site.pinged(5), 5, "the bridge carries them after {path}");
        assert!(site.scratch.path.join("socket").exists(), "who is killed leaves the socket behind");
    }
}

/// Pings every 5 ms pass while the shaper ends; the bridge carries the later ones. Without tcx one may come in the
/// moment in which the kernel removes what keeps the bridge from them.
#[test]
#[ignore = "needs root: real packets"]
fn a_planned_end_loses_no_ping() {
    let Some(site) = Site::new() else { return };
    for (path, lost) in [("packet-sockets", 0), ("packet-sockets-nft", 1), ("xdp", 1)] {
        for by_signal in [true, false] {
            let shaper = site.start(&["--path", path]);
            let answered = thread::scope(|scope| {
                let pings = scope.spawn(|| site.pinged_every("0.005", 300));
                thread::sleep(Duration::from_millis(500));
                if by_signal {
                    shaper.signal("TERM");
                } else {
                    assert_eq!(site.ask(&["stop"]).2, Some(0));
                }
                let (code, _, talk) = shaper.ended();
                assert_eq!(code, Some(0), "{talk}");
                pings.join().unwrap()
            });
            assert!((300 - lost..=300).contains(&answered), "{path}, {by_signal}: {answered}");
        }
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn an_interface_that_leaves_the_bridge_or_goes_down_is_told_once_and_shown() {
    let Some(site) = Site::new() else { return };
    let mut shaper = site.start(&[]);
    let middle = site.hosts.middle.name();
    assert_eq!(site.pinged(3), 3);
    assert!(site.status().get("faults").is_none(), "{}", site.status());

    ip(&format!("-n {middle} link set east nomaster"));
    let left = "east is no port of lastmile0 any more, and no packet will pass when lastmile ends; \
                `ip link set east master lastmile0` makes it one";
    let told = shaper.says("any more");
    assert_eq!(told.trim_end().lines().last(), Some(left));
    assert_eq!(site.pinged(3), 3, "the shaper still carries");
    let (text, _, _) = site.ask(&["status"]);
    assert!(text.contains("on west (LAN) and east (line), without east in lastmile0\n"), "{text}");
    assert!(text.lines().any(|line| line == left), "{text}");
    let status = site.status();
    assert_eq!((at(&status, "faults.0"), at(&status, "left_bridge.0")), (&left.into(), &"east".into()));

    ip(&format!("-n {middle} link set east master lastmile0"));
    let told = shaper.says("again");
    assert_eq!(told, "east is a port of lastmile0 again\n", "once");
    ip(&format!("-n {middle} link set west down"));
    let down = "west is down, and no packet passes; `ip link set west up` brings it up";
    assert_eq!(shaper.says("down"), format!("{down}\n"));
    assert!(site.ask(&["status"]).0.lines().any(|line| line == down));
    ip(&format!("-n {middle} link set west up"));
    assert_eq!(shaper.says("again"), "west is up again\n");
    let (text, _, _) = site.ask(&["status"]);
    assert!(text.contains(", ports of lastmile0\n") && !text.contains("west is"), "{text}");
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

#[test]
#[ignore = "needs root: real packets"]
fn a_second_one_is_refused_and_the_next_takes_what_a_killed_one_left() {
    let Some(site) = Site::new() else { return };
    let mut shaper = site.start(&[]);
    let mut second = site.lastmile(&["shape", "mine.toml", "--lan", "west", "--wan", "east", "--control", "socket"]);
    let second = site.hosts.middle.run(|| second.output()).unwrap().unwrap();
    assert_eq!(second.status.code(), Some(2));
    let told = String::from_utf8(second.stderr).unwrap();
    assert!(told.contains("error: a program answers at socket already\nhint: "), "{told}");
    assert_eq!(site.pinged(3), 3);

    shaper.child.kill().unwrap();
    shaper.child.wait().unwrap();
    let again = site.start(&[]);
    assert_eq!(site.pinged(3), 3);
    assert!(at(&site.status(), "up.received.packets").as_u64().unwrap() >= 3);
    again.signal("TERM");
    assert_eq!(again.ended().0, Some(0));
    assert!(!site.scratch.path.join("socket").exists());
}

/// The unit grants no more capabilities, and they must suffice for every packet path.
#[test]
#[ignore = "needs root: real packets"]
fn the_capabilities_of_its_unit_are_enough() {
    let Some(site) = Site::new() else { return };
    let unit = site.lastmile(&["shape", "unit"]).output().unwrap();
    let unit = String::from_utf8(unit.stdout).unwrap();
    let set = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let set: Vec<String> =
        set.split(' ').map(|one| format!("+{}", one.replacen("CAP_", "", 1).to_lowercase())).collect();
    let set = format!("--bounding-set=-all,{}", set.join(","));
    for path in ["packet-sockets", "packet-sockets-nft", "xdp"] {
        // With the part of /proc that ProtectProc and ProcSubset leave.
        let mut command = Command::new("unshare");
        let proc = "mount -t proc -o subset=pid,hidepid=invisible none /proc && exec \"$@\"";
        command.args([
            "--mount",
            "sh",
            "-c",
            proc,
            "sh",
            "setpriv",
            "--no-new-privs",
            &set,
            env!("CARGO_BIN_EXE_lastmile"),
        ]);
        command.args(["shape", "mine.toml", "--lan", "west", "--wan", "east", "--make-bridge", "--realtime"]);
        command.args(["--path", path]);
        let shaper = site.begin(command);
        // None of them remains but that which reads the policy again, and the one that its priority needs.
        let status = std::fs::read_to_string(format!("/proc/{}/status", shaper.child.id())).unwrap();
        for (key, count) in [("CapBnd:\t", 6), ("CapEff:\t", 2)] {
            let bits = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            assert_eq!(u64::from_str_radix(bits, 16).unwrap().count_ones(), count, "{key}{status}");
        }
        assert_eq!(site.pinged(5), 5, "{path}");
        shaper.signal("TERM");
        assert_eq!(shaper.ended().0, Some(0), "{path}");
    }
}

/// 10.9.9.9 is no address of the machine, so the port of metrics cannot be opened.
#[test]
#[ignore = "needs root: real packets"]
fn a_start_that_fails_leaves_no_bridge() {
    let Some(site) = Site::new() else { return };
    for option in ["--metrics", "--web"] {
        let mut command = site.lastmile(&["shape", "mine.toml", "--lan", "west", "--wan", "east", "--make-bridge"]);
        command.args([option, "10.9.9.9:9100", "--control", "socket"]);
        let output = site.hosts.middle.run(|| command.output()).unwrap().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains("10.9.9.9:9100: "), "{told}");
        let show = || Command::new("ip").args(["link", "show", "dev", "lastmile0"]).output();
        assert!(!site.hosts.middle.run(show).unwrap().unwrap().status.success(), "{option}");
    }
}

/// A shaper whose interface is down cannot start, and the pauses before the next grow.
#[test]
#[ignore = "needs root: real packets"]
fn supervised_it_answers_between_two_starts_and_ends() {
    let Some(site) = Site::new() else { return };
    let mut supervisor = site.start(&["--supervise"]);
    // The child has reported by then.
    thread::sleep(Duration::from_secs(2));
    // No later start finds the interface.
    ip(&format!("-n {} link set east down", site.hosts.middle.name()));
    ip(&format!("-n {} link set east name elsewhere", site.hosts.middle.name()));
    kill("KILL", site.status()["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap());
    supervisor.says("another starts in 3200 ms");
    let between = "the shaper ended, and another starts soon; the bridge carries packets\n";
    let told = (String::new(), between.to_owned(), Some(1));
    until("it answers between two starts", || site.ask(&["status"]) == told);
    let (_, told, code) = site.ask(&["stop"]);
    assert_eq!((told.as_str(), code), ("it has ended\n", Some(0)));
    let (_, _, talk) = supervisor.ended();
    assert!(!talk.contains("another starts"), "{talk}");
    assert!(!site.scratch.path.join("socket").exists());
}

#[test]
#[ignore = "needs root: real packets"]
fn supervised_it_is_started_again_until_it_is_told_to_end() {
    let Some(site) = Site::new() else { return };
    let supervisor = site.start(&["--supervise"]);
    let pid = || site.status()["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let first = pid().unwrap();
    assert_ne!(first, supervisor.child.id());
    // A child that never reported is not restarted.
    thread::sleep(Duration::from_secs(2));
    kill("KILL", first);
    let answers = || site.ask(&["status", "--json"]).2 == Some(0);
    until("another has started", answers);
    assert_ne!(pid().unwrap(), first);
    assert_eq!(site.pinged(3), 3);
    // The reload reaches the child.
    supervisor.signal("HUP");
    until("the policy is read again", || at(&site.status(), "reloads.done") == 1);
    supervisor.signal("TERM");
    let (code, _, talk) = supervisor.ended();
    assert_eq!(code, Some(0), "{talk}");
    assert!(talk.contains("the shaper ended (signal: 9 (SIGKILL)); another starts in 100 ms"), "{talk}");
}

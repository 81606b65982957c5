//! Malicious or failing clients of a running shaper: packets are carried all the time, the process
//! grows by at most a stated amount, and other clients are served. The tests need root, so they run
//! only on request (`scripts/live-tests.sh`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as Name, UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::shape::{Shaper, Site, get, until};

const METRICS: &str = "127.0.0.1:9100";

/// A number in `/proc/PID/status`, in its own unit.
pub(crate) fn of_process(shaper: &Shaper, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", shaper.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key}: {status}"));
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

fn descriptors(shaper: &Shaper) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", shaper.child.id())).unwrap().count() as u64
}

/// The answer to a client that writes `pieces` until it is cut off, with everything received within
/// a while.
fn said<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let address: SocketAddr = METRICS.parse().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    for piece in pieces {
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let mut heard = Vec::new();
    // Unread bytes of a request turn the end into a reset.
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

/// Packets pass, the page is available, and the process has not grown beyond its limits.
fn unharmed(site: &Site, shaper: &Shaper, before_kib: u64, after: &str) {
    assert_eq!(site.pinged(3), 3, "after {after}");
    let (head, _) = get(site, METRICS.parse().unwrap(), "/metrics");
    assert!(head.contains(" 200 "), "after {after}: {head}");
    let grown = of_process(shaper, "VmRSS").saturating_sub(before_kib);
    assert!(grown < 16 << 10, "{grown} KiB more after {after}");
    let threads = of_process(shaper, "Threads");
    assert!(threads <= 4, "{threads} threads after {after}");
}

#[test]
#[ignore = "needs root: real packets"]
fn requests_for_metrics_that_mean_harm_cost_neither_packets_nor_memory() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&["--metrics", METRICS]);
    assert_eq!(site.pinged(3), 3);
    get(&site, METRICS.parse().unwrap(), "/metrics");
    let before = of_process(&shaper, "VmRSS");
    let within = |pieces: &[&[u8]], times: usize| {
        let pieces = pieces.iter().copied().cycle().take(pieces.len() * times);
        site.hosts.middle.run(|| said(pieces)).unwrap()
    };
    for length in ["9223372036854775807", "18446744073709551615", "30000000000", "-1", "1, 1"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\nx");
        within(&[request.as_bytes()], 1);
        unharmed(&site, &shaper, before, length);
        within(&[request.replace("GET", "POST").as_bytes()], 1);
        unharmed(&site, &shaper, before, length);
    }
    // 300 MB, as one line and as many.
    let piece = vec![b'a'; 1 << 20];
    let lines = b"A: bcdefgh\r\n".repeat((1 << 20) / 12);
    for endless in [&piece[..], &lines] {
        let begun: &[u8] = b"GET /metrics HTTP/1.1\r\nA: ";
        let pieces = std::iter::once(begun).chain(std::iter::repeat_n(endless, 300));
        let heard = site.hosts.middle.run(|| said(pieces)).unwrap();
        assert!(!heard.contains(" 200 "), "{heard}");
        unharmed(&site, &shaper, before, "an endless head");
    }
    within(&[b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", &piece], 1);
    unharmed(&site, &shaper, before, "a chunk without end");
    let pipelined = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
    within(&[&pipelined], 10);
    unharmed(&site, &shaper, before, "10 000 requests on one connection");
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

#[test]
#[ignore = "needs root: real packets"]
fn thousands_of_idle_connections_keep_no_scraper_waiting() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&["--metrics", METRICS]);
    get(&site, METRICS.parse().unwrap(), "/metrics");
    let before = of_process(&shaper, "VmRSS");
    let address: SocketAddr = METRICS.parse().unwrap();
    let idle = || {
        let connect = |index: u32| {
            let mut stream = TcpStream::connect(address).ok()?;
            // Every second one has begun a request. The server may have closed it for another.
            if index.is_multiple_of(2) {
                let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nA: ");
            }
            Some(stream)
        };
        (0..3000).map_while(connect).collect::<Vec<_>>()
    };
    let idle = site.hosts.middle.run(idle).unwrap();
    assert!(idle.len() > 500, "{} connections: how many descriptors may this process have?", idle.len());
    let began = Instant::now();
    unharmed(&site, &shaper, before, "thousands of idle connections");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(descriptors(&shaper) < 100, "{}", descriptors(&shaper));
    drop(idle);
    unharmed(&site, &shaper, before, "they went");
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

/// prlimit(1) removes the descriptors of a process, as if others had used them up.
#[test]
#[ignore = "needs root: real packets"]
fn out_of_descriptors_it_carries_packets_and_answers_when_there_are_some_again() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&["--metrics", METRICS]);
    get(&site, METRICS.parse().unwrap(), "/metrics");
    assert_eq!(site.ask(&["status"]).2, Some(0));
    let limit = |count: u64| {
        let pid = shaper.child.id().to_string();
        let limits = format!("--nofile={count}:20000");
        assert!(Command::new("prlimit").args(["--pid", &pid, &limits]).status().unwrap().success());
    };
    limit(descriptors(&shaper));
    // Accepted when there are descriptors again, or cut off.
    let address: SocketAddr = METRICS.parse().unwrap();
    let waiting = site.hosts.middle.run(|| (0..8).map(|_| TcpStream::connect(address).unwrap()).collect::<Vec<_>>());
    let asking: Vec<_> = (0..3).map(|_| UnixStream::connect(site.scratch.path.join("socket")).unwrap()).collect();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(site.pinged(5), 5);
    // SIGHUP needs a descriptor for the policy and fails, and the line continues.
    shaper.signal("HUP");
    let spent = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", shaper.child.id())).unwrap();
        // utime and stime of proc_pid_stat(5), the 14th and the 15th; the third is the first after
        // the name.
        let fields = stat.rsplit(") ").next().unwrap().split(' ').skip(14 - 3).take(2);
        fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
    };
    let before = spent();
    thread::sleep(Duration::from_secs(1));
    assert!(spent() - before < 50, "it waits, and does not ask again and again: {} ticks", spent() - before);
    limit(1024);
    drop((waiting, asking));
    let answers = || site.ask(&["status", "--json"]).2 == Some(0);
    until("the control socket answers again", answers);
    assert!(get(&site, address, "/metrics").0.contains(" 200 "));
    assert_eq!(site.status()["reloads"]["failed"], 1);
    let (_, told, code) = site.ask(&["reload"]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(site.pinged(3), 3);
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

/// The process that shapes: the supervisor's child, if there is a supervisor.
fn shaping(site: &Site) -> u64 {
    site.status()["pid"].as_u64().unwrap()
}

/// Connects repeatedly, sends nothing or a byte now and then, and never ends a line, until `done`,
/// for at most a minute.
fn pester(socket: &Path, done: &AtomicBool) {
    let (mut clients, began) = (Vec::new(), Instant::now());
    while !done.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(60) {
        // The shaper may have ended.
        clients.extend(UnixStream::connect(socket));
        for (index, client) in clients.iter_mut().enumerate().filter(|(index, _)| index % 2 == 0) {
            let _ = client.write(if index % 4 == 0 { b"{" } else { b"x" });
        }
        if clients.len() > 200 {
            clients.drain(..100);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn silent_and_dripping_clients_delay_neither_requests_nor_the_end_and_the_supervisor_kills_nobody() {
    let Some(site) = Site::new() else { return };
    let supervisor = site.start(&["--supervise"]);
    let (first, socket) = (shaping(&site), site.scratch.path.join("socket"));
    let done = AtomicBool::new(false);
    let (code, took, talk) = thread::scope(|scope| {
        scope.spawn(|| pester(&socket, &done));
        let began = Instant::now();
        // A supervisor that used this socket would have given up: twice five seconds without an
        // answer, and pauses.
        while began.elapsed() < Duration::from_secs(16) {
            let asked = Instant::now();
            assert_eq!(shaping(&site), first);
            assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
            assert_eq!(site.pinged(5), 5);
            thread::sleep(Duration::from_millis(500));
        }
        supervisor.signal("HUP");
        until("the policy is read again", || site.status()["reloads"]["done"] == 1);
        let told = Instant::now();
        supervisor.signal("TERM");
        let (code, _, talk) = supervisor.ended();
        done.store(true, Ordering::Relaxed);
        (code, told.elapsed(), talk)
    });
    assert_eq!(code, Some(0), "{talk}");
    assert!(!talk.contains("killed"), "{talk}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
#[ignore = "needs root: real packets"]
fn a_policy_that_became_a_pipe_a_device_or_endless_is_refused_at_once() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&[]);
    let policy = site.scratch.path.join("mine.toml");
    let replaced_by = |program: &str, arguments: &[&str]| {
        std::fs::remove_file(&policy).unwrap();
        assert!(Command::new(program).args(arguments).arg(&policy).status().unwrap().success());
        let began = Instant::now();
        let (_, told, code) = site.ask(&["reload"]);
        assert!(began.elapsed() < Duration::from_secs(2), "{program}: {:?}", began.elapsed());
        assert_eq!(code, Some(1), "{told}");
        assert_eq!(site.pinged(3), 3);
        told
    };
    let told = replaced_by("mkfifo", &[]);
    assert!(told.contains("mine.toml: a pipe (FIFO), where a regular file is needed"), "{told}");
    let told = replaced_by("ln", &["-s", "/dev/zero"]);
    assert!(told.contains("mine.toml: a device, where a regular file is needed"), "{told}");
    let told = replaced_by("truncate", &["-s", "20G"]);
    assert!(told.contains("larger than 8 MiB"), "{told}");
    replaced_by("mkfifo", &[]);
    shaper.signal("HUP");
    let began = Instant::now();
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// The name by which older versions claimed an interface, and the one used if root's folder is not
/// available.
#[test]
#[ignore = "needs root: real packets"]
fn no_name_that_any_user_can_take_keeps_it_from_starting() {
    let Some(site) = Site::new() else { return };
    let taken = site.hosts.middle.run(|| {
        let names = (0..1000).map(|index| index.to_string()).chain(["west".to_owned(), "east".to_owned()]);
        let bind = |name: String| {
            let address = Name::from_abstract_name(format!("lastmile/interface/{name}")).unwrap();
            UnixDatagram::bind_addr(&address).unwrap()
        };
        names.map(bind).collect::<Vec<_>>()
    });
    let shaper = site.start(&[]);
    assert_eq!(site.pinged(3), 3);
    // Two shapers at once are still refused.
    let mut second = site.lastmile(&["shape", "mine.toml", "--lan", "west", "--wan", "east", "--control", "other"]);
    let second = site.hosts.middle.run(|| second.output()).unwrap().unwrap();
    let told = String::from_utf8(second.stderr).unwrap();
    let holder = format!("`lastmile shape` (process {}) carries what comes in through west already", shaper.child.id());
    assert!(told.contains(&holder), "{told}");
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
    drop(taken);
}

#[test]
#[ignore = "needs root: real packets"]
fn a_request_with_a_key_that_is_not_known_does_nothing_and_is_told_which() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&[]);
    let asked = |line: &str| {
        let mut client = UnixStream::connect(site.scratch.path.join("socket")).unwrap();
        client.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = asked("{\"do\":\"stop\",\"when\":\"tomorrow\"}\n");
    assert!(answer.contains("unknown field `when`, expected one of `do`"), "{answer}");
    let answer = asked("{\"do\":\"restart\"}\n");
    assert!(answer.contains("`restart`, expected one of `status`, `alive`, `reload`, `stop`"), "{answer}");
    assert_eq!(site.pinged(3), 3);
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

/// A container may have a `/run` that cannot be written.
#[test]
#[ignore = "needs root: real packets"]
fn without_a_folder_for_locks_an_interface_is_claimed_by_a_name() {
    let Some(site) = Site::new() else { return };
    let begin = |control: Option<&str>| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", "mount -t tmpfs -o ro none /run && exec \"$@\"", "sh"]);
        command.arg(env!("CARGO_BIN_EXE_lastmile")).current_dir(&site.scratch.path);
        command.args(["shape", "mine.toml", "--lan", "west", "--wan", "east", "--make-bridge"]);
        command.args(control.map(|path| ["--control", path]).into_iter().flatten());
        command
    };
    let shaper = site.begin(begin(None));
    assert_eq!(site.pinged(3), 3);
    let mut second = begin(Some("other"));
    let second = site.hosts.middle.run(|| second.output()).unwrap().unwrap();
    let told = String::from_utf8(second.stderr).unwrap();
    assert!(told.contains("another lastmile carries what comes in through west already"), "{told}");
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

/// A field of `/proc/PID/task/TID/status` of each thread.
fn of_threads(pid: u64, key: &str) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status =
        |thread: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(thread.unwrap().path().join("status"));
    let of = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key}"));
        line.trim_start_matches(':').trim().to_owned()
    };
    threads.map(|thread| of(status(thread).unwrap())).collect()
}

#[test]
#[ignore = "needs root: real packets"]
fn once_it_runs_it_has_few_rights_left_and_they_suffice_by_every_path() {
    let Some(site) = Site::new() else { return };
    let policy = site.scratch.path.join("mine.toml");
    let text = std::fs::read_to_string(&policy).unwrap();
    for (path, more) in [
        ("packet-sockets", &["--realtime"][..]),
        ("packet-sockets-nft", &["--supervise"]),
        ("xdp", &["--supervise", "--realtime"]),
    ] {
        let arguments: Vec<&str> =
            ["--path", path, "--metrics", METRICS].into_iter().chain(more.iter().copied()).collect();
        let shaper = site.start(&arguments);
        assert_eq!(site.pinged(5), 5, "{path}");
        assert!(get(&site, METRICS.parse().unwrap(), "/metrics").0.contains(" 200 "), "{path}");
        let pid = shaping(&site);
        // CAP_DAC_READ_SEARCH is bit 2, CAP_SYS_NICE bit 23.
        let kept: u64 = 1 << 2 | if more.contains(&"--realtime") { 1 << 23 } else { 0 };
        let capabilities = of_threads(pid, "CapEff");
        assert!(capabilities.len() >= 3, "{capabilities:?}");
        assert!(capabilities.iter().all(|hex| u64::from_str_radix(hex, 16) == Ok(kept)), "{path}: {capabilities:?}");
        for (key, value) in [("CapInh", "0000000000000000"), ("NoNewPrivs", "1"), ("Seccomp", "2")] {
            assert!(of_threads(pid, key).iter().all(|found| found == value), "{path}: {key} of {pid}");
        }
        if more.contains(&"--supervise") {
            let parent = u64::from(shaper.child.id());
            assert_ne!(parent, pid);
            for (key, value) in [("CapEff", "0000000000000000"), ("NoNewPrivs", "1"), ("Seccomp", "2")] {
                assert_eq!(of_threads(parent, key), [value], "{path}: {key} of the parent");
            }
        }
        let rights = &site.status()["rights"];
        assert_eq!(rights["system_calls"], "limited", "{rights}");
        assert!(rights["files"].as_str().unwrap().contains("limited"), "{rights}");
        // The policy can be read again, also after another file has replaced it.
        std::fs::write(site.scratch.path.join("new"), text.replace("512 kbit/s", "600 kbit/s")).unwrap();
        std::fs::rename(site.scratch.path.join("new"), &policy).unwrap();
        assert_eq!(site.ask(&["reload"]).2, Some(0), "{path}");
        assert_eq!(site.status()["up"]["wire"]["rate_bps"], 600_000);
        std::fs::write(&policy, &text).unwrap();
        shaper.signal("HUP");
        until("the policy is read again", || site.status()["up"]["wire"]["rate_bps"] == 512_000);
        assert_eq!(site.pinged(5), 5, "{path}");
        assert_eq!(site.ask(&["stop"]).2, Some(0), "{path}");
        let (code, data, talk) = shaper.ended();
        assert_eq!(code, Some(0), "{path}: {talk}");
        assert!(data.contains("\n quick "), "{path}: {data}");
        assert!(!site.scratch.path.join("socket").exists(), "{path}");
    }
}

/// The loop's system calls after a cable is pulled, with the remaining rights.
#[test]
#[ignore = "needs root: real packets"]
fn with_few_rights_left_an_interface_may_still_go_down_and_come_up_again() {
    let Some(site) = Site::new() else { return };
    let ip = |words: &str| {
        let run = || Command::new("ip").args(words.split(' ')).status().unwrap().success();
        assert!(site.hosts.middle.run(run).unwrap(), "ip {words}");
    };
    for path in ["packet-sockets", "packet-sockets-nft", "xdp"] {
        let shaper = site.start(&["--path", path]);
        assert_eq!(site.pinged(3), 3, "{path}");
        for interface in ["west", "east"] {
            ip(&format!("link set {interface} down"));
            assert_eq!(site.pinged(2), 0, "{path}");
            ip(&format!("link set {interface} mtu 1400 up"));
            until("packets pass again", || site.pinged(1) == 1);
            ip(&format!("link set {interface} mtu 1500"));
        }
        assert_eq!(site.pinged(3), 3, "{path}");
        shaper.signal("TERM");
        assert_eq!(shaper.ended().0, Some(0), "{path}");
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn a_policy_that_leads_to_another_folder_is_not_read_any_more() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&[]);
    if !site.status()["rights"]["files"].as_str().unwrap().starts_with("limited") {
        return;
    }
    let policy = site.scratch.path.join("mine.toml");
    let outside = crate::transcript::Scratch::new();
    std::fs::copy(&policy, outside.path.join("mine.toml")).unwrap();
    std::fs::remove_file(&policy).unwrap();
    std::os::unix::fs::symlink(outside.path.join("mine.toml"), &policy).unwrap();
    let (_, told, code) = site.ask(&["reload"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("Permission denied"), "{told}");
    assert_eq!(site.pinged(3), 3);
    shaper.signal("TERM");
    assert_eq!(shaper.ended().0, Some(0));
}

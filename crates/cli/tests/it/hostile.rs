//! Clients of a running shaper that mean harm, or break down: packets are carried all the while, the process grows by a stated amount
//! at most, and whoever behaves is served. Needs root, so these tests run only when asked for (`scripts/live-tests.sh`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::shape::{Shaper, Site, get, until};

const METRICS: &str = "127.0.0.1:9100";

/// A number of `/proc/PID/status`, in its own unit.
fn of_process(shaper: &Shaper, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", shaper.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("no {key}: {status}"));
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

fn descriptors(shaper: &Shaper) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", shaper.child.id())).unwrap().count() as u64
}

/// What a client hears that writes `pieces` until it is cut off, with what comes within a while.
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
    // Bytes of a request that nobody has read make the end a reset.
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

/// Packets pass, the page is there, and the process has not grown beyond what its limits allow.
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
    // 300 MB, one line and many.
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
            // Every second one has begun a request. It may have been closed for another by now.
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

/// prlimit(1) takes the descriptors of a process away, as if others had used them up.
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
    let asking: Vec<_> =
        (0..3).map(|_| std::os::unix::net::UnixStream::connect(site.scratch.path.join("socket")).unwrap()).collect();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(site.pinged(5), 5);
    // SIGHUP needs a descriptor for the policy and is refused, and the line goes on.
    shaper.signal("HUP");
    let spent = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", shaper.child.id())).unwrap();
        // utime and stime of proc_pid_stat(5), the 14th and the 15th; the third is the first behind the name.
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

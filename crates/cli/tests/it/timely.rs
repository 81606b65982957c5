//! Round trips through `lastmile shape` where a delay is possible: with real-time priority, and
//! after a reload. The tests need root, so they run only on request (`scripts/live-tests.sh`).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::hosts::ping_times;
use crate::live::kill;
use crate::shape::{POLICY, Site};

/// Round trips in milliseconds of `count` pings from the left to the right, in ascending order.
fn pings(site: &Site, count: usize, interval_s: &str) -> Vec<f64> {
    let mut ping = Command::new("ping");
    ping.args(["-n", "-i", interval_s, "-W", "1", "-c", &count.to_string(), "10.9.0.2"]);
    let output = site.hosts.left.run(|| ping.output()).unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let times = ping_times(&text);
    assert!(times.len() * 100 >= count * 98, "{text}");
    times
}

/// [`POLICY`] on 100 Mbit/s down and 20 up, both shaped.
fn fast() -> String {
    let faster = [
        ("bridged-vcmux-fcs", "pppoe-ptm"),
        ("512 kbit/s", "20 Mbit/s"),
        ("\"2 Mbit/s", "\"100 Mbit/s"),
        ("20 packets", "50 packets"),
    ];
    let policy = faster.iter().fold(POLICY.to_owned(), |policy, (slow, fast)| policy.replace(slow, fast));
    policy + "[down]\nshare = \"95 %\"\nqueue = { kind = \"fq-codel\" }\n"
}

/// The kernel would stop a thread that never sleeps for 50 ms of each second: five or six of 100
/// pings a second would show it.
#[test]
#[ignore = "needs root: real packets"]
fn with_real_time_priority_no_second_has_a_stall_and_a_download_keeps_its_rate() {
    let Some(site) = Site::new() else { return };
    std::fs::write(site.scratch.path.join("mine.toml"), fast()).unwrap();
    let shaper = site.start(&["--realtime", "--spin", "10ms"]);
    let listener = site.hosts.right.run(|| TcpListener::bind("10.9.0.2:80")).unwrap().unwrap();
    let mut download = site.hosts.left.run(|| TcpStream::connect("10.9.0.2:80")).unwrap().unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let over = AtomicBool::new(false);
    let (times, received, took) = thread::scope(|scope| {
        scope.spawn(|| {
            let data = vec![0; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                if server.write_all(&data).is_err() {
                    break;
                }
            }
            drop(server);
        });
        let receiver = scope.spawn(|| {
            let (mut buffer, mut received, began) = (vec![0; 1 << 16], 0, Instant::now());
            while let Ok(len @ 1..) = download.read(&mut buffer) {
                received += len;
            }
            (received, began.elapsed())
        });
        let times = pings(&site, 1500, "0.01");
        over.store(true, Ordering::Relaxed);
        let (received, took) = receiver.join().unwrap();
        (times, received, took)
    });
    shaper.signal("TERM");
    let (code, _, talk) = shaper.ended();
    assert_eq!(code, Some(0), "{talk}");
    let (p99, stalls) = (times[times.len() * 99 / 100], times.iter().filter(|ms| **ms > 25.0).count());
    let rate = received as f64 * 8e-6 / took.as_secs_f64();
    eprintln!("p99 {p99} ms, {stalls} pings above 25 ms, download {rate:.1} Mbit/s");
    assert!(p99 < 15.0, "{p99} ms");
    // Fifteen seconds with a stall each would show more than thirty.
    assert!(stalls < 10, "{stalls}");
    assert!(rate > 82.0, "{rate} Mbit/s of 91 that 95 % carry");
}

/// The backlog of an upload is a second old when the policy is read again. Urgent packets must be
/// urgent under the new policy too.
#[test]
#[ignore = "needs root: real packets"]
fn after_a_reload_urgent_packets_do_not_wait_for_the_old_backlog() {
    let Some(site) = Site::new() else { return };
    let shaper = site.start(&[]);
    let sink = site.hosts.right.run(|| UdpSocket::bind("10.9.0.2:9")).unwrap().unwrap();
    let upload = site.hosts.left.run(|| UdpSocket::bind("10.9.0.1:0")).unwrap().unwrap();
    upload.connect("10.9.0.2:9").unwrap();
    let over = AtomicBool::new(false);
    let times = thread::scope(|scope| {
        scope.spawn(|| {
            // 500 bytes every 3 ms are twice the rate of the line, for at most ten seconds.
            let began = Instant::now();
            while !over.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(10) {
                let _ = upload.send(&[0; 472]);
                thread::sleep(Duration::from_millis(3));
            }
        });
        thread::sleep(Duration::from_secs(2));
        std::fs::write(site.scratch.path.join("mine.toml"), POLICY.replace("60 kB", "61 kB")).unwrap();
        kill("HUP", shaper.child.id());
        let times = pings(&site, 40, "0.02");
        over.store(true, Ordering::Relaxed);
        times
    });
    drop(sink);
    let backlog = site.status();
    assert_eq!(backlog.pointer("/reloads/done").and_then(serde_json::Value::as_u64), Some(1), "{backlog}");
    let p95 = times[times.len() * 95 / 100];
    eprintln!("after a reload: median {} ms, 95th percentile {p95} ms", times[times.len() / 2]);
    // A datagram of 500 bytes takes 10 ms of the line, and two of them may be in flight.
    assert!(p95 < 30.0, "{times:?}");
}

//! A shaper under combined stress: cables pulled and reconnected, policies reloaded, scrapes,
//! failing clients, and transfers in both directions that must be complete. The test needs root and
//! lasts `LASTMILE_HOSTILE_S` seconds, ten by default.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lastmile_live::netns::Namespace;

use crate::hostile::of_process;
use crate::hosts::{AtEnd, ip};
use crate::shape::{Shaper, Site};

const METRICS: &str = "127.0.0.1:9100";
const SERVER: &str = "10.9.0.2:5001";

/// Bytes of a transfer: half a second of the line.
const TRANSFER: usize = 600_000;

fn policy(up_kbit: u64) -> String {
    format!(
        r#"
name = "changing"

[line]
encapsulation = "bridged-vcmux-fcs"
up = "{up_kbit} kbit/s"
down = "20 Mbit/s"

[[class]]
name = "quick"
rate = "20 %"
priority = 0
queue = {{ kind = "sad", duplicates = "keep", limit = "200 packets" }}

[[class]]
name = "default"
rate = "80 %"
priority = 1
limit = "200 kB"

[[rule]]
class = "quick"
match = {{ pure_ack = true }}
"#
    )
}

fn lasting() -> Duration {
    let seconds = std::env::var("LASTMILE_HOSTILE_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

/// Counts of the actions so far.
#[derive(Default)]
struct Done {
    over: AtomicBool,
    flaps: AtomicU64,
    reloads: AtomicU64,
    refused_reloads: AtomicU64,
    scrapes: AtomicU64,
    slow: AtomicU64,
    uploads: AtomicU64,
    downloads: AtomicU64,
}

impl Done {
    /// Repeats `step`, and counts it, until the end.
    fn again(&self, counter: &AtomicU64, mut step: impl FnMut()) {
        while !self.over.load(Ordering::Relaxed) {
            step();
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn pause(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

/// The bytes of the transfer of this number.
fn content(number: u64) -> Vec<u8> {
    (0..TRANSFER as u64).map(|at| (at.wrapping_mul(31) ^ at >> 8 ^ number) as u8).collect()
}

/// Sends a transfer whose first byte gives its number, and waits for the confirmation that all of
/// it was received.
fn upload(host: &Namespace, number: u64) {
    let address: SocketAddr = SERVER.parse().unwrap();
    let send = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_write_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(&[b'u', number as u8])?;
        stream.write_all(&content(number % 256))?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        Ok::<_, std::io::Error>(answer[0])
    };
    assert_eq!(host.run(send).unwrap().unwrap(), b'y', "upload {number} did not come whole");
}

fn download(host: &Namespace, number: u64) {
    let address: SocketAddr = SERVER.parse().unwrap();
    let fetch = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(&[b'd', number as u8])?;
        let mut came = Vec::new();
        stream.read_to_end(&mut came)?;
        Ok::<_, std::io::Error>(came)
    };
    let came = host.run(fetch).unwrap().unwrap();
    assert!(came == content(number % 256), "download {number} did not come whole: {} bytes", came.len());
}

/// One transfer per connection: `u`, a number and the bytes; or `d` and a number.
fn serve(listener: &TcpListener, over: &AtomicBool) {
    thread::scope(|scope| {
        listener.set_nonblocking(true).unwrap();
        while !over.load(Ordering::Relaxed) {
            let Ok((mut stream, _)) = listener.accept() else {
                pause(5);
                continue;
            };
            scope.spawn(move || {
                stream.set_nonblocking(false).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
                let mut head = [0; 2];
                // The other end reports the error.
                if stream.read_exact(&mut head).is_err() {
                    return;
                }
                let whole = content(head[1].into());
                if head[0] == b'd' {
                    let _ = stream.write_all(&whole);
                    return;
                }
                let mut came = vec![0; TRANSFER];
                let answer = if stream.read_exact(&mut came).is_ok() && came == whole { b'y' } else { b'n' };
                let _ = stream.write_all(&[answer]);
            });
        }
    });
}

/// A client of the control socket or of the metrics that sends nothing, or a byte now and then.
fn slow_client(site: &Site, index: u64) {
    if index.is_multiple_of(2) {
        let Ok(mut stream) = UnixStream::connect(site.scratch.path.join("socket")) else { return };
        for byte in b"{\"do\":" {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            pause(20);
        }
    } else {
        let connect = || TcpStream::connect(METRICS.parse::<SocketAddr>().unwrap());
        let Ok(mut stream) = site.hosts.middle.run(connect).unwrap() else { return };
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nContent-Length: 30000000000\r\nA: ");
        pause(100);
    }
}

/// True if the page was received.
fn scraped(site: &Site) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(METRICS.parse::<SocketAddr>().unwrap())?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok::<_, std::io::Error>(page)
    };
    site.hosts.middle.run(ask).unwrap().is_ok_and(|page| page.contains(" 200 ") && page.contains("sent_packets_total"))
}

/// All actions at once, while `meanwhile` runs.
fn hardship(site: &Site, shaper: &Shaper, write: &(dyn Fn(String) + Sync), done: &Done, meanwhile: &mut dyn FnMut()) {
    let (middle, right) = (site.hosts.middle.name(), site.hosts.right.name());
    thread::scope(|scope| {
        let _ending = AtEnd(|| done.over.store(true, Ordering::Relaxed));
        scope.spawn(|| {
            done.again(&done.flaps, || {
                pause(1200);
                ip(&format!("-n {right} link set eth down"));
                pause(150);
                ip(&format!("-n {right} link set eth up"));
                pause(1200);
                ip(&format!("-n {middle} link set east down"));
                pause(50);
                ip(&format!("-n {middle} link set east up"));
            });
        });
        scope.spawn(|| {
            let mut number = 0;
            done.again(&done.reloads, || {
                pause(150);
                number += 1;
                if number % 7 == 0 {
                    write("name = \"broken\"".to_owned());
                    assert_eq!(site.ask(&["reload"]).2, Some(1), "a broken policy is refused");
                    done.refused_reloads.fetch_add(1, Ordering::Relaxed);
                }
                write(policy(8_000 + number % 5 * 1000));
                if number % 3 == 0 {
                    shaper.signal("HUP");
                } else {
                    let (_, told, code) = site.ask(&["reload"]);
                    assert_eq!(code, Some(0), "{told}");
                }
            });
        });
        scope.spawn(|| {
            done.again(&done.scrapes, || {
                pause(100);
                assert!(scraped(site), "a scrape failed");
            });
        });
        for worker in 0..6 {
            scope.spawn(move || done.again(&done.slow, || slow_client(site, worker)));
        }
        let left = &site.hosts.left;
        scope.spawn(move || {
            let mut number = 0;
            done.again(&done.uploads, || {
                number += 1;
                upload(left, number);
            });
        });
        scope.spawn(move || {
            let mut number = 0;
            done.again(&done.downloads, || {
                number += 1;
                download(left, number);
            });
        });
        meanwhile();
    });
}

#[expect(clippy::print_stderr, reason = "how much was done")]
fn outlives_all(path: &str) {
    let Some(site) = Site::new() else { return };
    let write = |text: String| {
        let (next, file) = (site.scratch.path.join("next.toml"), site.scratch.path.join("mine.toml"));
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, file).unwrap();
    };
    write(policy(10_000));
    let shaper = site.start(&["--path", path, "--metrics", METRICS]);
    let listener = site.hosts.right.run(|| TcpListener::bind(SERVER).unwrap()).unwrap();
    let (done, mut rss, end) = (Done::default(), Vec::new(), Instant::now() + lasting());
    let served = AtomicBool::new(false);
    thread::scope(|serving| {
        serving.spawn(|| serve(&listener, &served));
        // Ends after its clients, also if the test fails.
        let _last = AtEnd(|| served.store(true, Ordering::Relaxed));
        hardship(&site, &shaper, &write, &done, &mut || {
            while Instant::now() < end {
                rss.push(of_process(&shaper, "VmRSS"));
                assert!(of_process(&shaper, "Threads") < 16, "{} threads", of_process(&shaper, "Threads"));
                pause(500);
            }
        });
    });
    let counts = [&done.flaps, &done.reloads, &done.refused_reloads, &done.scrapes, &done.slow, &done.uploads]
        .map(|counter| counter.load(Ordering::Relaxed));
    let downloads = done.downloads.load(Ordering::Relaxed);
    let (begun, ended) = (rss[rss.len() / 5], rss[rss.len() - 1]);
    eprintln!(
        "{path}: flaps, reloads, refused reloads, scrapes, slow clients, uploads: {counts:?}; \
         {downloads} downloads; {begun} to {ended} KiB"
    );
    assert!(ended < begun + (16 << 10), "memory grew: {rss:?}");
    assert_eq!(site.pinged(10), 10);
    shaper.signal("TERM");
    let asked = Instant::now();
    let (code, _, told) = shaper.ended();
    assert_eq!(code, Some(0), "{told}");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(downloads > 0 && counts.iter().all(|count| *count > 0), "{counts:?}, {downloads}");
}

#[test]
#[ignore = "needs root: real packets"]
fn a_line_outlives_flaps_reloads_scrapes_and_slow_clients_by_packet_sockets() {
    outlives_all("packet-sockets");
}

#[test]
#[ignore = "needs root: real packets"]
fn a_line_outlives_flaps_reloads_scrapes_and_slow_clients_by_af_xdp() {
    outlives_all("xdp");
}

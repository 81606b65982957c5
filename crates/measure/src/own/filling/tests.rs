//! A client whose connections pass a relay, which holds them up or ends them.

use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use crate::own::wire::LONGEST_OPENING;
use crate::serve::{Limits, Server};

use super::*;

/// Longest opening of a stream, and more than any.
const LINE: u64 = LONGEST_OPENING as u64;

/// A connection of the client, and that to the server.
struct Relayed {
    ends: [TcpStream; 2],
    up: AtomicU64,
}

/// Connections in the order of their coming: the control connection, then the streams.
#[derive(Clone, Default)]
struct Relay {
    relayed: Arc<Mutex<Vec<Arc<Relayed>>>>,
    /// The connection that is held up, 0 for none; whether its first bytes are there, and whether they may go on.
    held: Arc<AtomicUsize>,
    holds: Arc<AtomicBool>,
    go: Arc<AtomicBool>,
    /// The bytes of all others when it was let go.
    before: Arc<AtomicU64>,
}

impl Relay {
    /// Relays in threads that end with their connections.
    fn begin(&self, server: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let relay = self.clone();
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let ends = [client.unwrap(), TcpStream::connect(server).unwrap()];
                let relayed = Arc::new(Relayed { ends, up: AtomicU64::new(0) });
                relay.relayed.lock().unwrap().push(Arc::clone(&relayed));
                for upward in [false, true] {
                    let (relay, relayed) = (relay.clone(), Arc::clone(&relayed));
                    thread::spawn(move || relay.copy(number, &relayed, upward));
                }
            }
        });
        address
    }

    fn copy(&self, number: usize, relayed: &Relayed, upward: bool) {
        let [mut from, mut to] = [&relayed.ends[usize::from(!upward)], &relayed.ends[usize::from(upward)]];
        let mut buffer = vec![0; 64 << 10];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            let first = upward && relayed.up.fetch_add(len as u64, Ordering::Relaxed) == 0;
            if first && number > 0 && number == self.held.load(Ordering::Relaxed) {
                self.holds.store(true, Ordering::Relaxed);
                until(|| self.go.load(Ordering::Relaxed));
                let all = self.relayed.lock().unwrap();
                let streams = all.iter().skip(1).map(|other| other.up.load(Ordering::Relaxed));
                self.before.store(streams.sum(), Ordering::Relaxed);
            }
            if to.write_all(&buffer[..len]).is_err() {
                break;
            }
        }
        close(relayed);
    }

    /// Ends the connections of these numbers, with a reset for data that nobody has read.
    fn end(&self, numbers: std::ops::RangeInclusive<usize>) {
        let ended: Vec<Arc<Relayed>> = self.relayed.lock().unwrap().drain(numbers).collect();
        ended.iter().for_each(|relayed| close(relayed));
    }
}

fn close(relayed: &Relayed) {
    for end in &relayed.ends {
        let _ = end.shutdown(Shutdown::Both);
    }
}

/// Runs `test` with a client whose connections pass a relay.
fn relayed(test: impl FnOnce(&mut Client, &Relay)) {
    let key = || Key::new("correct horse battery").unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), key(), Limits::default()).unwrap();
    let relay = Relay::default();
    let address = relay.begin(server.address().unwrap());
    let end = lastmile_live::stop::Stop::new().unwrap();
    let ending = end.handle().unwrap();
    let serving = thread::spawn(move || server.serve(&end));
    test(&mut Client::connect("127.0.0.1", address.port(), &key()).unwrap(), &relay);
    ending.stop();
    serving.join().unwrap().unwrap();
}

/// Waits until a condition holds; a busy machine may take its time.
fn until(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never holds");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a load of three streams beside `test`, and returns its result and its warnings.
fn load(
    client: &mut Client,
    direction: Direction,
    test: impl FnOnce(&Transferred),
) -> (Result<(), Error>, Vec<String>) {
    let (transferred, stop) = (Transferred::default(), Stop::default());
    let mut filling = client.filling(3, None);
    let done = thread::scope(|scope| {
        let running = scope.spawn(|| filling.run(direction, &transferred, &stop));
        test(&transferred);
        stop.request();
        running.join().unwrap()
    });
    (done, filling.warnings())
}

/// Bytes of the loaded direction.
fn moved(transferred: &Transferred) -> u64 {
    let (down, up) = transferred.totals();
    down + up
}

#[test]
fn no_stream_is_loaded_before_each_is_accepted() {
    for direction in [Direction::Upload, Direction::Download] {
        relayed(|client, relay| {
            relay.held.store(2, Ordering::Relaxed);
            let (done, warnings) = load(client, direction, |transferred| {
                until(|| relay.holds.load(Ordering::Relaxed));
                thread::sleep(Duration::from_millis(300));
                assert_eq!(moved(transferred), 0, "{direction:?} before the second stream");
                relay.go.store(true, Ordering::Relaxed);
                until(|| moved(transferred) > 1_000_000);
            });
            done.unwrap();
            assert!(warnings.is_empty(), "{warnings:?}");
            let before = relay.before.load(Ordering::Relaxed);
            assert!((1..3 * LINE).contains(&before), "{before} bytes, and not the lines of three streams");
        });
    }
}

#[test]
fn a_stream_that_ends_is_told_and_the_others_run_on() {
    for direction in [Direction::Upload, Direction::Download] {
        relayed(|client, relay| {
            let (done, warnings) = load(client, direction, |transferred| {
                until(|| moved(transferred) > 0);
                relay.end(1..=1);
                // The client looks every 50 ms, and a busy machine later.
                thread::sleep(Duration::from_millis(1500));
                let before = moved(transferred);
                until(|| moved(transferred) > before + 1_000_000);
            });
            done.unwrap();
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            assert!(warning.starts_with("1 of 3 streams ended early, the first after "), "{warning}");
        });
    }
}

#[test]
fn a_load_ends_with_its_last_stream_and_the_next_one_runs() {
    relayed(|client, relay| {
        let (transferred, stop) = (Transferred::default(), Stop::default());
        let mut filling = client.filling(3, None);
        let done = thread::scope(|scope| {
            scope.spawn(|| {
                until(|| moved(&transferred) > 0);
                relay.end(1..=3);
            });
            // Nobody asks it to stop.
            filling.run(Direction::Upload, &transferred, &stop)
        });
        assert!(done.is_err() && filling.warnings().is_empty(), "{done:?} {:?}", filling.warnings());
        let (done, warnings) = load(client, Direction::Download, |transferred| until(|| moved(transferred) > 0));
        assert!(done.is_ok() && warnings.is_empty(), "{done:?} {warnings:?}");
    });
}

/// A report a second late, of which the server's clock says that it was of the start.
#[test]
fn a_late_first_report_does_not_shift_the_others() {
    let transferred = Transferred::default();
    thread::sleep(Duration::from_millis(50));
    let mut reports = Reports { transferred: &transferred, begun: Duration::from_millis(10), zero: None, counted: 0 };
    for (bytes, at_us) in [(100, 0), (200, 20_000), (300, 30_000)] {
        reports.count(bytes, at_us);
    }
    let at = |bytes, ms| crate::load::Arrived { bytes, at: Duration::from_millis(ms) };
    assert_eq!(transferred.take_reports(), [at(100, 10), at(200, 30), at(300, 40)]);
}

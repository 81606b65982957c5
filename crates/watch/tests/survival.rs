//! A writer that is killed at any moment, and a month of a busy line.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use lastmile_watch::recorder::{Moment, Outcome, Reading, Readings, Recorder, Totals};
use lastmile_watch::sample::{Backlog, Path, QueueName, Source};
use lastmile_watch::store::{Limits, PingSpan, Question, Resolution, Store};
use tempfile::TempDir;

const START_S: i64 = 1_767_225_600;
/// A month.
const DAYS: i64 = 31;
/// Names the store of the writer that is killed.
const STORE: &str = "LASTMILE_TEST_STORE";

fn path(number: u8) -> Path {
    Path { target: format!("192.0.2.{number}"), code_point: number }
}

fn question(resolution: Resolution, days: i64) -> Question {
    Question { resolution, from_s: START_S - 86_400, to_s: START_S + days * 86_400, bin_s: 3600 }
}

fn sent(store: &Store, resolution: Resolution, days: i64) -> BTreeMap<Path, u64> {
    let spans = store.spans(question(resolution, days)).unwrap();
    let all = |spans: BTreeMap<i64, PingSpan>| spans.values().map(PingSpan::sent).sum();
    spans.paths.into_iter().map(|(path, spans)| (path, all(spans))).collect()
}

/// A folder in memory where there is one: a store there loses nothing by SIGKILL, and no test waits for a disk.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Writes intervals as fast as it can, and prints the number of each that is in the store.
#[test]
#[ignore = "it is the process that another test kills"]
fn writer() {
    let Some(file) = std::env::var_os(STORE) else { return };
    let store = Store::open(file.as_ref(), Limits::default()).unwrap();
    let mut written = store.intervals().unwrap();
    let moment = |number: u64| {
        let monotonic = Duration::from_secs(number);
        Moment { wall_ms: (START_S + i64::try_from(number).unwrap()) * 1000, monotonic, suspended: Duration::ZERO }
    };
    let mut recorder = Recorder::new(store, moment(written));
    let mut out = std::io::stdout().lock();
    loop {
        written += 1;
        let now = moment(written);
        let outcome = |number| Outcome { path: path(number), sent: now.monotonic, rtt_ns: Some(written * 1000) };
        recorder.tick(now, Readings { outcomes: vec![outcome(1), outcome(2)], ..Readings::default() });
        writeln!(out, "written {}", recorder.seen().written_intervals).unwrap();
        out.flush().unwrap();
    }
}

/// SIGKILL in the middle of transactions, of adding up minutes and of copying the log: every time the store is whole,
/// has every interval that the writer had finished, and each of its rows is in exactly one minute and one hour.
#[test]
fn a_killed_writer_loses_at_most_the_interval_that_it_was_writing() {
    let folder = folder();
    let file = folder.path().join("line.watch");
    let mut before = 0;
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--ignored", "--nocapture"])
            .env(STORE, &file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Some are killed as soon as they have begun, others after minutes of their own time.
        let mut said = 0;
        while said < 1 + round * round * 37 {
            let line = lines.next().unwrap().unwrap();
            said = line.strip_prefix("written ").map_or(said, |number| number.parse().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Lines that it wrote before the signal came.
        for line in lines.map_while(Result::ok) {
            said = line.strip_prefix("written ").and_then(|number| number.parse().ok()).unwrap_or(said);
        }
        let mut store = Store::open(&file, Limits::default()).unwrap();
        store.check_integrity().unwrap();
        let intervals = store.intervals().unwrap();
        assert!(
            (before + said..=before + said + 1).contains(&intervals),
            "round {round}: {intervals} in the store, {before} before, {said} written"
        );
        let raw = sent(&store, Resolution::Raw, 2);
        for resolution in [Resolution::Minute, Resolution::Hour] {
            assert_eq!(sent(&store, resolution, 2), raw, "round {round}, {resolution:?}");
        }
        store.roll_up().unwrap();
        assert_eq!(sent(&store, Resolution::Minute, 2), raw, "round {round}, added up");
        before = intervals;
    }
    assert!(before > 10_000, "{before} intervals were written");
}

/// A line for 31 days, until the limit takes rows away. `LASTMILE_LONG=1`: four paths and eight queues every second;
/// else half of them every minute.
#[test]
fn a_month_stays_under_the_limit_and_keeps_what_it_should() {
    let long = std::env::var_os("LASTMILE_LONG").is_some_and(|value| value == "1");
    let interval_s: i64 = if long { 1 } else { 60 };
    let (paths, queues) = if long { (4, 8) } else { (2, 4) };
    // Less than a month takes without a limit: raw rows must go before their time.
    let limit_bytes = if long { 200_000_000 } else { Limits::LEAST_LIMIT_BYTES };
    let folder = folder();
    let file = folder.path().join("line.watch");
    let at = |second: i64| Moment {
        wall_ms: (START_S + second) * 1000,
        monotonic: Duration::from_secs(second.unsigned_abs()),
        suspended: Duration::ZERO,
    };
    let mut recorder = Recorder::new(Store::open(&file, Limits { limit_bytes, ..Limits::default() }).unwrap(), at(0));
    let mut random = 1_u64;
    let mut next = move || {
        // Knuth, MMIX.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let (mut largest, mut trimmed, mut packets) = (0, 0, 0);
    for second in (interval_s..=DAYS * 86_400).step_by(usize::try_from(interval_s).unwrap()) {
        let now = at(second);
        let outcome = |number: u8, next: &mut dyn FnMut() -> u64| Outcome {
            path: path(number),
            sent: now.monotonic.saturating_sub(Duration::from_millis(next() % 1000)),
            rtt_ns: (!next().is_multiple_of(100)).then(|| 10_000_000 + next() % 90_000_000),
        };
        packets += next() % 1000;
        let reading = |class: u8| Reading {
            name: QueueName { source: Source::Shape, place: "shape up".to_owned(), class: format!("class {class}") },
            totals: Totals {
                packets,
                bytes: packets * 700,
                wire_bytes: Some(packets * 742),
                dropped: BTreeMap::from([("tail".to_owned(), packets / 500)]),
                overlimits: packets / 3,
                waits: BTreeMap::from([(1_000_000, packets / 2), (20_000_000, packets / 4)]),
            },
            backlog: Some(Backlog { packets: packets % 50, bytes: packets % 50 * 700 }),
        };
        let readings = Readings {
            outcomes: (0..paths).map(|number| outcome(number, &mut next)).collect(),
            queues: (0..queues).map(reading).collect(),
            sources: BTreeMap::new(),
            outages: BTreeMap::new(),
        };
        for message in recorder.tick(now, readings) {
            assert!(message.starts_with("the store is near its limit"), "{message}");
            trimmed += 1;
        }
        largest = largest.max(recorder.seen().store_bytes);
    }
    let seen = recorder.seen();
    assert_eq!((seen.lost_intervals, seen.failed_writes, seen.waiting_intervals), (0, 0, 0));
    assert!(largest <= limit_bytes, "{largest} of {limit_bytes} bytes");
    assert!(trimmed > 0, "the limit was not reached: {largest} bytes");
    let store = recorder.store();
    store.check_integrity().unwrap();
    let expected = DAYS.unsigned_abs() * 86_400 / interval_s.unsigned_abs();
    for (path, sent) in sent(store, Resolution::Hour, DAYS + 1) {
        assert_eq!(sent, expected, "{path}");
    }
    let newest_s = store.newest_ms().unwrap().unwrap() / 1000;
    assert!(newest_s - store.oldest_s(Resolution::Raw).unwrap().unwrap() >= 3600, "an hour of raw rows stays");
}

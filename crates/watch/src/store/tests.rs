use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::delays::Delays;
use crate::sample::{Backlog, Counts, Event, EventKind, Interval, Path, Ping, QueueName, Source};

struct Place {
    _folder: TempDir,
    file: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("line.watch");
        Self { _folder: folder, file }
    }

    fn open(&self) -> Store {
        Store::open(&self.file, Limits::default()).unwrap()
    }
}

fn path() -> Path {
    Path { target: "192.0.2.1".to_owned(), code_point: 46 }
}

fn queue() -> QueueName {
    QueueName { source: Source::Shape, place: "shape up".to_owned(), class: "quick".to_owned() }
}

fn ping(age_ms: u64, rtt_ns: Option<u64>) -> Ping {
    Ping { path: path(), age_ms, rtt_ns }
}

fn counts(packets: u64, backlog_bytes: u64) -> Counts {
    let mut waits = Delays::default();
    waits.record_n(2_000_000, packets);
    Counts {
        span_ms: 1000,
        packets,
        bytes: packets * 100,
        wire_bytes: Some(packets * 106),
        dropped: BTreeMap::from([("tail".to_owned(), packets / 10), ("head".to_owned(), 0)]),
        overlimits: 1,
        backlog: Some(Backlog { packets: backlog_bytes / 100, bytes: backlog_bytes }),
        waits,
    }
}

/// 2026-01-01 00:00 UTC.
const START_S: i64 = 1_767_225_600;

fn ask(store: &Store, resolution: Resolution, bin_s: i64) -> Spans {
    let question = Question { resolution, from_s: START_S - 86_400, to_s: START_S + 86_400, bin_s };
    store.spans(question).unwrap()
}

#[test]
fn minutes_and_hours_say_what_raw_rows_say_also_before_they_are_added_up() {
    let place = Place::new();
    let mut store = place.open();
    for second in 1..=150 {
        let interval = Interval {
            end_ms: (START_S + second) * 1000,
            span_ms: 1000,
            pings: vec![ping(400, (second % 10 != 0).then_some(20_000_000))],
            queues: vec![(queue(), counts(20, second.unsigned_abs() * 10))],
            events: Vec::new(),
        };
        store.append(&interval).unwrap();
        if second == 70 {
            assert!(!store.roll_up().unwrap());
        }
    }
    let check = |store: &Store| {
        for resolution in [Resolution::Raw, Resolution::Minute, Resolution::Hour] {
            let spans = ask(store, resolution, 3600);
            let pings = &spans.paths[&path()][&START_S];
            assert_eq!((pings.sent(), pings.lost), (150, 15), "{resolution:?}");
            let counts = &spans.queues[&queue()][&START_S];
            assert_eq!((counts.packets, counts.wire_bytes, counts.overlimits), (3000, Some(318_000), 150));
            assert_eq!(counts.dropped, BTreeMap::from([("tail".to_owned(), 300)]));
            assert_eq!(counts.rate_bps(), Some(16_000.0));
            assert_eq!(counts.most_backlog, Some(Backlog { packets: 15, bytes: 1500 }));
            assert_eq!(counts.mean_backlog_bytes(), Some(755.0));
            assert_eq!(counts.waits.count(), 3000);
        }
        let minutes = ask(store, Resolution::Minute, 60);
        let sent: Vec<u64> = minutes.paths[&path()].values().map(PingSpan::sent).collect();
        assert_eq!(sent, [60, 60, 30]);
        let packets: Vec<u64> = minutes.queues[&queue()].values().map(|span| span.packets).collect();
        assert_eq!(packets, [1200, 1200, 600], "an interval that ends with a minute belongs to it");
    };
    check(&store);
    store.roll_up().unwrap();
    check(&store);
    // Nothing is added twice.
    store.roll_up().unwrap();
    drop(store);
    check(&Store::read(&place.file).unwrap());
}

#[test]
fn a_clock_that_is_set_back_adds_to_minutes_that_are_there() {
    let place = Place::new();
    let mut store = place.open();
    let append = |store: &mut Store, second: i64| {
        let interval = Interval {
            end_ms: (START_S + second) * 1000,
            span_ms: 1000,
            pings: vec![ping(0, Some(1_000_000))],
            queues: vec![(queue(), counts(10, 0))],
            events: Vec::new(),
        };
        store.append(&interval).unwrap();
    };
    (1..=100).for_each(|second| append(&mut store, second));
    store.roll_up().unwrap();
    // Back by 90 seconds, as NTP would: the same seconds again.
    (11..=30).for_each(|second| append(&mut store, second));
    store.roll_up().unwrap();
    for resolution in [Resolution::Raw, Resolution::Minute] {
        let spans = ask(&store, resolution, 60);
        assert_eq!(spans.paths[&path()][&START_S].sent(), 59 + 20, "{resolution:?}");
        assert_eq!(spans.queues[&queue()][&START_S].packets, 600 + 200, "{resolution:?}");
    }
}

/// Two minutes of a watcher whose clock is set back by an hour after the first: every second ping of that one is lost.
/// The last ten seconds are too young for a loss, and no other.
#[test]
fn a_clock_that_is_set_back_hides_no_loss() {
    let place = Place::new();
    let mut store = place.open();
    let start = Event { at_ms: START_S * 1000, kind: EventKind::Started, detail: String::new() };
    store.append(&Interval { end_ms: START_S * 1000, events: vec![start], ..Interval::default() }).unwrap();
    for second in 1..=120 {
        let (end_s, rtt_ns) = match second {
            ..=60 => (START_S + second, (second % 2 == 0).then_some(20_000_000)),
            _ => (START_S + second - 3600, Some(20_000_000)),
        };
        let pings = vec![ping(0, rtt_ns)];
        store.append(&Interval { end_ms: end_s * 1000, span_ms: 1000, pings, ..Interval::default() }).unwrap();
    }
    for resolution in [Resolution::Raw, Resolution::Minute, Resolution::Hour] {
        let spans = ask(&store, resolution, 3600);
        let judged = spans.paths[&path()].iter().map(|(at_s, span)| (at_s - START_S, span.judged(), span.loss()));
        assert_eq!(judged.collect::<Vec<_>>(), [(-3600, 49, Some(0.0)), (0, 60, Some(0.5))], "{resolution:?}");
    }
}

#[test]
fn a_file_of_another_program_or_version_is_refused() {
    let place = Place::new();
    std::fs::write(
        &place.file,
        "this is text and no database at all, and longer than a header of one hundred bytes is, \
                                 which is what SQLite looks at",
    )
    .unwrap();
    let folder = place.file.parent().unwrap();
    for (file, told) in
        [(&*place.file, "it is no store of `lastmile watch`"), (folder, "it is a folder; a store is a file")]
    {
        for opened in [Store::open(file, Limits::default()), Store::read(file)] {
            let refused = opened.unwrap_err().to_string();
            assert!(refused.ends_with(told), "{refused}");
        }
    }
    std::fs::remove_file(&place.file).unwrap();
    Connection::open(&place.file).unwrap().execute_batch("CREATE TABLE other (x)").unwrap();
    for opened in [Store::open(&place.file, Limits::default()), Store::read(&place.file)] {
        let refused = opened.unwrap_err().to_string();
        assert!(refused.ends_with("line.watch: it is no store of `lastmile watch`"), "{refused}");
    }
    std::fs::remove_file(&place.file).unwrap();
    drop(place.open());
    Connection::open(&place.file).unwrap().pragma_update(None, "user_version", 2).unwrap();
    let refused = Store::open(&place.file, Limits::default()).unwrap_err().to_string();
    assert!(refused.ends_with("its tables have version 2, and this program reads version 1"), "{refused}");
    assert!(Store::read(&place.file.with_file_name("none")).is_err());
}

#[test]
fn a_store_has_one_watcher_and_any_number_of_readers() {
    let place = Place::new();
    let mut store = place.open();
    let refused = Store::open(&place.file, Limits::default()).unwrap_err().to_string();
    assert!(refused.ends_with("line.watch: another watcher writes to it: a store has one"), "{refused}");
    let link = place.file.with_file_name("link.watch");
    std::os::unix::fs::symlink(&place.file, &link).unwrap();
    assert!(Store::open(&link, Limits::default()).is_err(), "another name of it");
    let interval = Interval { end_ms: START_S * 1000, pings: vec![ping(0, None)], ..Interval::default() };
    store.append(&interval).unwrap();
    let readers = [(); 2].map(|()| Store::read(&place.file).unwrap());
    assert!(readers.iter().all(|reader| reader.intervals().unwrap() == 1));
    drop(readers);
    drop(store);
    assert_eq!(place.open().intervals().unwrap(), 1);
}

#[test]
fn a_lock_of_another_process_delays_rows_and_loses_none() {
    let place = Place::new();
    let mut store = place.open();
    let interval = Interval { end_ms: START_S * 1000, pings: vec![ping(0, None)], ..Interval::default() };
    let other = Connection::open(&place.file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.append(&interval).unwrap_err().is_locked());
    assert!(store.roll_up().unwrap_err().is_locked());
    other.execute_batch("COMMIT").unwrap();
    store.append(&interval).unwrap();
    assert_eq!(ask(&store, Resolution::Minute, 60).paths[&path()].len(), 1, "its name was not lost with the lock");
}

#[test]
fn rows_go_when_they_are_too_old_and_a_clock_that_was_just_set_makes_none_too_old() {
    let place = Place::new();
    let kept = Limits { raw_days: 1, minute_days: 2, hour_days: 3, ..Limits::default() };
    let mut store = Store::open(&place.file, kept).unwrap();
    for hour in 0..96 {
        let end_ms = (START_S + hour * 3600 + 1) * 1000;
        let interval = Interval { end_ms, span_ms: 1000, pings: vec![ping(0, None)], ..Interval::default() };
        store.append(&interval).unwrap();
    }
    let sent = |store: &Store| {
        let question = |resolution| Question { resolution, from_s: START_S, to_s: START_S + 96 * 3600, bin_s: 3600 };
        [Resolution::Raw, Resolution::Minute, Resolution::Hour]
            .map(|resolution| store.spans(question(resolution)).unwrap().paths.get(&path()).map_or(0, BTreeMap::len))
    };
    let now_ms = (START_S + 96 * 3600) * 1000;
    // Rows that no minute has are never taken away.
    store.retain(Retention::At(now_ms)).unwrap();
    assert_eq!(sent(&store), [96, 96, 96]);
    store.roll_up().unwrap();
    store.retain(Retention::Wait).unwrap();
    assert_eq!(sent(&store), [96, 96, 96]);
    assert_eq!(store.retain(Retention::At(now_ms)).unwrap(), Trimmed::default());
    assert_eq!(sent(&store), [24, 48, 72]);
    assert_eq!(store.oldest_s(Resolution::Minute).unwrap(), Some(START_S + 48 * 3600));
    // All raw rows are gone, and the next is no row that minutes have already.
    store.retain(Retention::At(now_ms + 86_400_000 * 40)).unwrap();
    assert_eq!(sent(&store), [0, 0, 0]);
    let interval = Interval { end_ms: now_ms - 1000, pings: vec![ping(0, None)], ..Interval::default() };
    store.append(&interval).unwrap();
    store.roll_up().unwrap();
    assert_eq!(sent(&store), [1, 1, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Percentiles of an answer are those of the raw samples within a bucket, whatever was added up when, and however
    /// late replies came.
    #[test]
    fn percentiles_after_downsampling_are_those_of_the_samples(
        samples in prop::collection::vec((0..7200_i64, 0..9000_u64, 0..2_000_000_000_u64, any::<bool>()), 1..200),
        share in 0.0..1.0_f64,
    ) {
        let place = Place::new();
        let mut store = place.open();
        for (second, age_ms, rtt_ns, roll) in &samples {
            let end_ms = (START_S + 10 + second) * 1000;
            let pings = vec![ping(*age_ms, Some(*rtt_ns))];
            store.append(&Interval { end_ms, pings, ..Interval::default() }).unwrap();
            if *roll {
                store.roll_up().unwrap();
            }
        }
        let mut sorted: Vec<u64> = samples.iter().map(|sample| sample.2).collect();
        sorted.sort_unstable();
        let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1);
        let exact = sorted[rank - 1];
        for resolution in [Resolution::Raw, Resolution::Minute, Resolution::Hour] {
            let spans = ask(&store, resolution, 3600);
            let mut all = PingSpan::default();
            spans.paths[&path()].values().for_each(|span| all.add(span));
            prop_assert_eq!(all.sent(), sorted.len() as u64);
            let read = all.rtts.quantile_ns(share).unwrap();
            prop_assert!(read == exact || resolution != Resolution::Raw, "each ping: {} for {}", read, exact);
            prop_assert!(exact <= read && read - exact <= exact / 32, "{:?}: {} for {}", resolution, read, exact);
        }
    }
}

use super::*;
use crate::sample::{Interval, Ping};
use crate::store::Limits;

/// 2026-01-01 00:00 UTC, a Thursday.
const START_S: i64 = 1_767_225_600;

fn path() -> Path {
    Path { target: "gateway".to_owned(), code_point: 0 }
}

/// Two days with a ping each ten minutes: 20 ms, and 200 ms from 18:00 to 20:00 UTC.
fn store(folder: &std::path::Path) -> Store {
    let mut store = Store::open(&folder.join("line.watch"), Limits::default()).unwrap();
    for second in (600..=2 * DAY_S).step_by(600) {
        let hour = (second - 1) % DAY_S / HOUR_S;
        let rtt_ns = if (18..20).contains(&hour) { 200_000_000 } else { 20_000_000 };
        let pings = vec![Ping { path: path(), age_ms: 1000, rtt_ns: (hour != 3).then_some(rtt_ns) }];
        store.append(&Interval { end_ms: (START_S + second) * 1000, pings, ..Interval::default() }).unwrap();
    }
    store.roll_up().unwrap();
    store
}

fn wish(from_s: i64, to_s: i64, points: u32) -> Wish {
    Wish { from_ms: from_s * 1000, to_ms: to_s * 1000, points, classes: Vec::new(), targets: Vec::new() }
}

#[test]
fn the_busy_hours_of_the_day_are_those_of_local_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    // Two hours east of UTC.
    let history = History::read(&store, &wish(START_S, START_S + 2 * DAY_S, 48), &|_| 7200).unwrap();
    assert_eq!((history.resolution, history.bin_s), (Resolution::Minute, HOUR_S));
    let path = &history.paths[0];
    assert_eq!((path.total.sent(), path.total.lost, path.spans.len()), (288, 12, 48));
    let busy: Vec<u8> = path
        .hours
        .iter()
        .filter(|(_, span)| span.rtts.quantile_ns(0.5).is_some_and(|ns| ns > 100_000_000))
        .map(|(hour, _)| *hour)
        .collect();
    assert_eq!(busy, [20, 21]);
    assert_eq!((path.hours.len(), path.hours[&5].lost, path.hours[&5].sent()), (24, 12, 12));
    assert_eq!(history.bins().count(), 48);
}

#[test]
fn a_short_span_is_read_from_fine_rows_and_a_long_one_from_coarse_ones() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let read = |from_s: i64, to_s: i64| {
        let history = History::read(&store, &wish(from_s, to_s, 120), &|_| 0).unwrap();
        (history.resolution, history.bin_s)
    };
    assert_eq!(read(START_S, START_S + 60), (Resolution::Raw, 1));
    assert_eq!(read(START_S, START_S + 7200), (Resolution::Raw, 60));
    assert_eq!(read(START_S, START_S + DAY_S), (Resolution::Minute, 900));
    assert_eq!(read(START_S - 365 * DAY_S, START_S + DAY_S), (Resolution::Hour, 4 * DAY_S));
}

/// An hour is 600 bins of 10 s, each sixth of which would have a ping.
#[test]
fn no_bin_is_shorter_than_the_interval_of_the_watcher() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("line.watch"), Limits::default()).unwrap();
    for minute in 1..=60 {
        let pings = vec![Ping { path: path(), age_ms: 1000, rtt_ns: Some(20_000_000) }];
        let (end_ms, span_ms) = ((START_S + minute * 60) * 1000, if minute == 1 { 0 } else { 60_004 });
        store.append(&Interval { end_ms, span_ms, pings, ..Interval::default() }).unwrap();
    }
    let history = History::read(&store, &wish(START_S, START_S + HOUR_S, 600), &|_| 0).unwrap();
    assert_eq!((history.resolution, history.bin_s, history.paths[0].spans.len()), (Resolution::Raw, 60, 60));
}

/// Two weeks until a time that is no whole second, and those of local dates with the end of summer time, have minutes.
#[test]
fn two_weeks_are_read_from_minutes_and_a_longer_span_from_hours() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let read = |span_ms: i64| {
        let whole = wish(START_S, START_S, 120);
        let wish = Wish { to_ms: whole.from_ms + span_ms + 500, from_ms: whole.from_ms + 500, ..whole };
        History::read(&store, &wish, &|_| 0).unwrap().resolution
    };
    assert_eq!(read(14 * DAY_S * 1000), Resolution::Minute);
    assert_eq!(read((14 * DAY_S + HOUR_S) * 1000), Resolution::Minute);
    assert_eq!(read((14 * DAY_S + 2 * HOUR_S) * 1000), Resolution::Hour);
}

/// A terminal draws 48 bins of an hour, a page 600: both read the pings, and have equal totals.
#[test]
fn totals_do_not_depend_on_the_number_of_bins() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let total = |points: u32| {
        let from = START_S + 18 * HOUR_S;
        let history = History::read(&store, &wish(from, from + 2 * HOUR_S, points), &|_| 0).unwrap();
        (history.resolution, history.paths[0].total.rtts.quantile_ns(0.99))
    };
    assert_eq!(total(48), total(600));
    assert_eq!(total(48), (Resolution::Raw, Some(200_000_000)));
}

/// Ten minutes from 12:50 on: the hour that contains them began 50 minutes earlier.
#[test]
fn a_store_that_is_younger_than_an_hour_is_read_from_its_fine_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("line.watch"), Limits::default()).unwrap();
    for second in 3000..3600 {
        let pings = vec![Ping { path: path(), age_ms: 0, rtt_ns: Some(1_000_000) }];
        store.append(&Interval { end_ms: (START_S + second) * 1000, pings, ..Interval::default() }).unwrap();
    }
    // Before the first minute is added up there are raw rows alone; afterwards they still say the most.
    for _ in 0..2 {
        let read = |from_s: i64| {
            let history = History::read(&store, &wish(from_s, START_S + 3600, 60), &|_| 0).unwrap();
            assert_eq!(history.paths[0].total.sent(), 600);
            (history.resolution, history.bin_s)
        };
        assert_eq!(read(START_S + 3000), (Resolution::Raw, 10));
        assert_eq!(read(START_S), (Resolution::Raw, 60));
        store.roll_up().unwrap();
    }
}

#[test]
fn what_is_not_wished_for_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let all = wish(START_S, START_S + DAY_S, 24);
    let paths = |wish: &Wish| History::read(&store, wish, &|_| 0).unwrap().paths.len();
    assert_eq!(paths(&all), 1);
    assert_eq!(paths(&Wish { classes: vec!["quick".to_owned()], ..all.clone() }), 0);
    assert_eq!(paths(&Wish { targets: vec!["192.0.2.1".to_owned()], ..all.clone() }), 0);
    assert_eq!(paths(&Wish { targets: vec!["gateway".to_owned()], ..all }), 1);
}

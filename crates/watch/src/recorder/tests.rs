use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::sample::EventKind;
use crate::store::{Limits, Question, Resolution};

const START_MS: i64 = 1_767_225_600_000;

/// A machine whose clocks the test drives.
struct Machine {
    folder: TempDir,
    now: Moment,
}

impl Machine {
    fn new() -> Self {
        let now = Moment { wall_ms: START_MS, monotonic: Duration::ZERO, suspended: Duration::ZERO };
        Self { folder: tempfile::tempdir().unwrap(), now }
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("line.watch")
    }

    fn recorder(&self, kept: Limits) -> Recorder {
        Recorder::new(Store::open(&self.file(), kept).unwrap(), self.now)
    }

    fn pass(&mut self, ms: i64) -> Moment {
        self.now.wall_ms += ms;
        self.now.monotonic += Duration::from_millis(ms.unsigned_abs());
        self.now
    }

    /// A second with a reply after 20 ms.
    fn second(&mut self, recorder: &mut Recorder) -> Vec<String> {
        let sent = self.now.monotonic;
        let now = self.pass(1000);
        let outcome = Outcome { path: path(), sent, rtt_ns: Some(20_000_000) };
        recorder.tick(now, Readings { outcomes: vec![outcome], ..Readings::default() })
    }
}

fn path() -> Path {
    Path { target: "gateway".to_owned(), code_point: 0 }
}

fn sent(store: &Store) -> u64 {
    let question = Question {
        resolution: Resolution::Minute,
        from_s: START_MS / 1000 - 86_400 * 400,
        to_s: START_MS / 1000 + 86_400 * 400,
        bin_s: 60,
    };
    let spans = store.spans(question).unwrap();
    spans.paths.get(&path()).map_or(0, |spans| spans.values().map(crate::store::PingSpan::sent).sum())
}

fn kinds(store: &Store) -> Vec<EventKind> {
    store.events(0, i64::MAX).unwrap().into_iter().map(|event| event.kind).collect()
}

#[test]
fn an_outage_is_an_event_of_its_host_and_no_trouble_of_a_source() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits::default());
    let outages = BTreeMap::from([("gateway".to_owned(), Duration::from_millis(14_020))]);
    let now = machine.pass(1000);
    let detail = "gateway: no reply for 14 s, and it answers again";
    assert_eq!(recorder.tick(now, Readings { outages, ..Readings::default() }), [detail]);
    assert!(recorder.seen().sources.is_empty());
    let event = recorder.store().events(0, i64::MAX).unwrap().pop().unwrap();
    let expected = (START_MS + 1000, EventKind::Source, detail);
    assert_eq!((event.at_ms, event.kind, event.detail.as_str()), expected);
}

#[test]
fn clocks_that_jump_are_counted_and_told_and_every_row_is_kept() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits::default());
    for _ in 0..100 {
        assert_eq!(machine.second(&mut recorder), Vec::<String>::new());
    }
    machine.now.wall_ms += 5_000_000;
    assert_eq!(machine.second(&mut recorder), ["the wall clock was set forward by 5000000 ms"]);
    machine.now.wall_ms -= 9_000_000;
    assert_eq!(machine.second(&mut recorder), ["the wall clock was set back by 9000000 ms"]);
    // CLOCK_BOOTTIME and the wall clock go on in a suspended machine.
    machine.now.wall_ms += 7_200_000;
    machine.now.suspended += Duration::from_secs(7200);
    assert_eq!(machine.second(&mut recorder), ["the machine was suspended for 7200.0 s"]);
    // A slew of NTP is no step.
    machine.now.wall_ms += 1;
    assert_eq!(machine.second(&mut recorder), Vec::<String>::new());
    assert_eq!((recorder.seen().clock_steps, recorder.seen().suspensions), (2, 1));
    let moment = machine.pass(1000);
    assert_eq!(recorder.finish(moment, Readings::default()), Vec::<String>::new());
    let store = Store::read(&machine.file()).unwrap();
    assert_eq!(sent(&store), 104);
    use EventKind::{Clock, Started, Stopped, Suspended};
    assert_eq!(kinds(&store), [Started, Clock, Clock, Suspended, Stopped]);
}

#[test]
fn nothing_is_too_old_until_the_clock_was_steady_for_an_hour() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits { raw_days: 1, minute_days: 1, hour_days: 1, ..Limits::default() });
    (0..60).for_each(|_| drop(machine.second(&mut recorder)));
    let hour = |machine: &mut Machine, recorder: &mut Recorder, minutes: u32| {
        for _ in 0..minutes {
            let now = machine.pass(60_000);
            recorder.tick(now, Readings::default());
        }
    };
    hour(&mut machine, &mut recorder, 70);
    // A year ahead, for half an hour, and back.
    machine.now.wall_ms += 365 * 86_400_000;
    hour(&mut machine, &mut recorder, 30);
    assert_eq!(sent(recorder.store()), 60);
    machine.now.wall_ms -= 365 * 86_400_000;
    hour(&mut machine, &mut recorder, 90);
    assert_eq!(sent(recorder.store()), 60);
    hour(&mut machine, &mut recorder, 60 * 24);
    assert_eq!(sent(recorder.store()), 0, "a day later they are too old");
}

/// A ping each second, of which every fifth is lost: a reply is told of at once, a loss after ten seconds. Of 45 s
/// those of the first 35 count, and of 15 s of a second watcher those of the first five.
#[test]
fn loss_is_of_the_pings_that_were_old_enough_when_their_watcher_ended() {
    let mut machine = Machine::new();
    let run = |machine: &mut Machine, seconds: u32| {
        let mut recorder = machine.recorder(Limits::default());
        let mut waiting = VecDeque::new();
        for second in 0..seconds {
            let sent = machine.now.monotonic;
            let outcome = |sent, rtt_ns| Outcome { path: path(), sent, rtt_ns };
            let now = machine.pass(1000);
            let mut outcomes = Vec::new();
            if second % 5 == 4 {
                waiting.push_back(sent);
            } else {
                outcomes.push(outcome(sent, Some(20_000_000)));
            }
            if waiting.front().is_some_and(|sent| *sent + crate::sample::PATIENCE <= now.monotonic) {
                outcomes.extend(waiting.pop_front().map(|sent| outcome(sent, None)));
            }
            recorder.tick(now, Readings { outcomes, ..Readings::default() });
        }
        recorder
    };
    let is = |store: &Store, counts: (u64, u64, u64)| {
        for resolution in [Resolution::Raw, Resolution::Minute, Resolution::Hour] {
            let (from_s, to_s) = (START_MS / 1000, START_MS / 1000 + 3600);
            let spans = store.spans(Question { resolution, from_s, to_s, bin_s: 3600 }).unwrap();
            let all = &spans.paths[&path()][&from_s];
            assert_eq!((all.sent(), all.lost, all.judged()), counts, "{resolution:?}");
            assert_eq!(all.loss(), Some(0.2), "{resolution:?}");
        }
    };
    let recorder = run(&mut machine, 45);
    // 36 replies and the losses of 4, 9, ... 34 s.
    is(recorder.store(), (43, 7, 35));
    recorder.finish(machine.now, Readings::default());
    is(&Store::read(&machine.file()).unwrap(), (43, 7, 35));
    let recorder = run(&mut machine, 15);
    is(recorder.store(), (43 + 13, 8, 35 + 5));
}

/// All are lost at once where no request can be sent: no reply is a sign of losses to come.
#[test]
fn requests_that_could_not_be_sent_are_lost_however_young_they_are() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits::default());
    let mut tick = |rtt_ns: Option<u64>| {
        let sent = machine.now.monotonic;
        let now = machine.pass(1000);
        let outcomes = vec![Outcome { path: path(), sent, rtt_ns }];
        recorder.tick(now, Readings { outcomes, ..Readings::default() });
        let question = Question {
            resolution: Resolution::Raw,
            from_s: START_MS / 1000,
            to_s: START_MS / 1000 + 3600,
            bin_s: 3600,
        };
        let spans = recorder.store().spans(question).unwrap();
        let all = &spans.paths[&path()][&(START_MS / 1000)];
        (all.judged(), all.loss())
    };
    assert_eq!([None, None].map(&mut tick), [(1, Some(1.0)), (2, Some(1.0))]);
    assert_eq!(tick(Some(20_000_000)), (0, None), "young ones are left out whole");
}

#[test]
fn a_store_that_is_locked_is_waited_for_and_told_of() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits::default());
    machine.second(&mut recorder);
    let other = Connection::open(machine.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let told = machine.second(&mut recorder);
    assert!(told.len() == 1 && told[0].ends_with("intervals wait for the store, at most 600"), "{told:?}");
    assert_eq!(machine.second(&mut recorder), Vec::<String>::new(), "it is told once");
    assert_eq!((recorder.seen().waiting_intervals, recorder.seen().failed_writes), (2, 2));
    other.execute_batch("COMMIT").unwrap();
    let told = machine.second(&mut recorder);
    assert_eq!(told, ["the store takes rows again after 2 failed writes; 0 intervals were lost since the start"]);
    machine.second(&mut recorder);
    assert_eq!(sent(recorder.store()), 5);
    assert_eq!(recorder.seen().waiting_intervals, 0);
    assert!(kinds(recorder.store()).contains(&EventKind::Store));
}

#[test]
fn a_source_is_told_of_when_it_changes() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits::default());
    let mut tick = |trouble: Option<&str>| {
        let sources = BTreeMap::from([("192.0.2.1".to_owned(), trouble.map(str::to_owned))]);
        let now = machine.pass(1000);
        recorder.tick(now, Readings { sources, ..Readings::default() })
    };
    assert_eq!(tick(None), Vec::<String>::new());
    assert_eq!(tick(Some("no route")), ["192.0.2.1: no route"]);
    assert_eq!(tick(Some("no route")), Vec::<String>::new());
    assert_eq!(tick(None), ["192.0.2.1 answers again"]);
}

#[test]
fn counters_of_a_queue_become_counts_from_the_second_reading_on() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits::default());
    let name = QueueName { source: Source::Kernel, place: "eth0".to_owned(), class: "htb 1:10".to_owned() };
    let mut tick = |packets: u64| {
        let totals = Totals { packets, bytes: packets * 1000, ..Totals::default() };
        let backlog = Some(Backlog { packets: 2, bytes: 2000 });
        let now = machine.pass(1000);
        recorder.tick(
            now,
            Readings { queues: vec![Reading { name: name.clone(), totals, backlog }], ..Readings::default() },
        );
    };
    [1000, 1010, 1030, 5].into_iter().for_each(&mut tick);
    let seen = recorder.seen();
    assert_eq!((seen.queues[&name].packets, seen.queues[&name].span_ms), (10 + 20 + 5, 3000));
    assert_eq!(seen.backlogs[&name].bytes, 2000);
    // A queue that is gone has no backlog.
    recorder.tick(machine.pass(1000), Readings::default());
    assert_eq!(recorder.seen().backlogs, BTreeMap::new());
}

/// A queue of the kernel that drops 2^32 packets, and a shaper that starts again with fewer.
#[test]
fn a_counter_of_the_kernel_that_wraps_does_not_count_all_since_the_boot() {
    let mut machine = Machine::new();
    let mut recorder = machine.recorder(Limits::default());
    let names = [Source::Kernel, Source::Shape].map(|source| QueueName {
        source,
        place: "eth0".to_owned(),
        class: String::new(),
    });
    for (packets, overlimits) in [(5_000_000_000, 4_294_967_290), (5_000_000_100, 20), (5_000_000_200, 40)] {
        let totals = Totals { packets, bytes: packets * 1000, overlimits, ..Totals::default() };
        let reading = |name: &QueueName| Reading { name: name.clone(), totals: totals.clone(), backlog: None };
        let now = machine.pass(1000);
        recorder.tick(now, Readings { queues: names.iter().map(reading).collect(), ..Readings::default() });
    }
    let counts = names.map(|name| {
        let counts = &recorder.seen().queues[&name];
        (counts.packets, counts.bytes, counts.overlimits)
    });
    assert_eq!(counts, [(200, 200_000, 46), (5_000_000_200, 5_000_000_200_000, 40)]);
}

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::load::Arrived;
use crate::probe::{Clocks, Kind};
use crate::report::Throughput;

use super::*;

/// A line in the mind: 8 Mbit/s, 10 ms idle, 60 ms under load.
#[derive(Default)]
struct Line {
    loaded: AtomicBool,
}

struct Filler {
    vanishes: bool,
    ends: bool,
    limit_bps: Option<u64>,
}

impl Load for Filler {
    fn peer(&self) -> String {
        "test 192.0.2.1:1".to_owned()
    }

    fn can(&self, direction: Direction) -> bool {
        direction != Direction::Both
    }

    fn limit_bps(&self) -> Option<u64> {
        self.limit_bps
    }

    fn congestion(&self) -> Used {
        Used { down: Some("bbr".to_owned()), up: None }
    }

    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        let mut sent = 0;
        loop {
            // A megabyte a second from the start of the load to its end, whenever this thread runs.
            let at = transferred.elapsed();
            let due = u64::try_from(at.as_micros()).unwrap();
            match direction {
                Direction::Download => transferred.add_down(due - sent),
                _ => transferred.add_up_at(due - sent, at),
            }
            sent = due;
            if stop.is_requested() || self.vanishes && at > Duration::from_millis(300) {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        match self.vanishes {
            true if self.ends => Err(Error::Ended { peer: self.peer(), what: "it closed the connection".to_owned() }),
            true => Err(Error::Protocol { peer: self.peer(), what: "it vanished".to_owned() }),
            false => Ok(()),
        }
    }
}

struct Echo {
    line: Arc<Line>,
    answers: bool,
}

impl Prober for Echo {
    fn subject(&self) -> Subject {
        Subject { target: "192.0.2.1".to_owned(), kind: Kind::Icmp, code_point: 46 }
    }

    fn clocks(&self) -> Clocks {
        Clocks::Apart
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        while !stop.is_requested() {
            let delay_s = if self.line.loaded.load(Ordering::Relaxed) { 0.060 } else { 0.010 };
            let sample = Sample { sent_s: now_s(), rtt_s: Some(delay_s).filter(|_| self.answers), ..Sample::default() };
            tell(Sample { up_s: sample.rtt_s.map(|rtt_s| rtt_s - 0.005 + 7.0), down_s: Some(0.005 - 7.0), ..sample });
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn plan(phases: &[Option<Direction>]) -> Plan {
    Plan {
        host: "example".to_owned(),
        phases: phases.to_vec(),
        duration: Duration::from_millis(900),
        ramp: Duration::from_millis(200),
        enough: None,
    }
}

fn measure(plan: &Plan, vanishes: bool, answers: bool) -> Measurement {
    let line = Arc::<Line>::default();
    let mut load = Filler { vanishes, ends: false, limit_bps: None };
    let mut probers: Vec<Box<dyn Prober>> = vec![Box::new(Echo { line: Arc::clone(&line), answers })];
    // The thread of a load may start later than its phase.
    let mut tell = |event: Event<'_>| match event {
        Event::Started { load, .. } => line.loaded.store(load.is_some(), Ordering::Relaxed),
        Event::Ended { .. } => line.loaded.store(false, Ordering::Relaxed),
        _ => {}
    };
    run(plan, Some(&mut load), &mut probers, &Stop::default(), &mut tell)
}

#[test]
fn each_phase_has_its_rate_and_its_delays() {
    let phases = [None, Some(Direction::Download), Some(Direction::Upload)];
    let measured = measure(&plan(&phases), false, true);
    assert_eq!(measured.phases.len(), 3, "{:?}", measured.warnings);
    assert!(measured.complete);
    let median_ms = |index: usize| measured.phases[index].probes[0].round_trip.unwrap().p50_s.value * 1e3;
    assert_eq!([0, 1, 2].map(|index| format!("{:.0}", median_ms(index))), ["10", "60", "60"]);
    let [idle, down, up] = &measured.phases[..] else { panic!("three phases") };
    assert!(idle.download.is_none() && idle.upload.is_none() && idle.responsiveness.is_none());
    assert!(down.upload.is_none() && up.download.is_none());
    for (phase, throughput) in [(down, &down.download), (up, &up.upload)] {
        let Throughput { bytes, goodput_bps: goodput, .. } = throughput.as_ref().unwrap();
        // Bytes carry their own times, so lateness of this process does not count. A download whose thread does not run
        // has no bytes at the end of its phase.
        let least = (*bytes as f64 / 1e6 - phase.ramp_s) / (phase.duration_s - phase.ramp_s);
        assert!((0.99 * least..1.01).contains(&(goodput.value / 8e6)), "{goodput:?}, {least} of the phase");
        assert!(goodput.low <= goodput.value && goodput.value <= goodput.high);
    }
    let rpm = down.responsiveness.unwrap();
    assert!(!rpm.by_draft && (rpm.rpm.value - 1000.0).abs() < 1.0, "{rpm:?}");
    // 5 ms each way, and the queue upstream.
    let [idle, down] = [idle, down].map(|phase| phase.probes[0].up.unwrap().p50_s.value);
    assert!((idle - 0.005).abs() < 1e-6 && (down - 0.055).abs() < 1e-6, "{idle} {down}");
    let text = serde_json::to_string(&measured).unwrap();
    assert_eq!(serde_json::from_str::<Measurement>(&text).unwrap().phases.len(), 3);
    // The server's of a download; null where nobody tells, and files of earlier versions do not have it.
    let json = serde_json::to_value(&measured).unwrap();
    let [of_download, of_upload] = [(1, "download"), (2, "upload")].map(|(at, load)| &json["phases"][at][load]);
    assert_eq!((&of_download["congestion"], &of_upload["congestion"]), (&"bbr".into(), &serde_json::Value::Null));
    assert!(of_upload.as_object().unwrap().contains_key("congestion"));
    let earlier = text.replace("\"congestion\":\"bbr\",", "").replace("\"congestion\":null,", "");
    assert!(!earlier.contains("congestion"));
    let read: Measurement = serde_json::from_str(&earlier).unwrap();
    assert_eq!(read.phases[1].download.as_ref().unwrap().congestion, None);
}

/// A series with a probe each 100 ms of the first minute, all of them answered in 100 ms; or one without any.
struct Scripted(Kind, bool);

impl Prober for Scripted {
    fn subject(&self) -> Subject {
        Subject { target: "192.0.2.1".to_owned(), kind: self.0, code_point: 0 }
    }

    fn run(&mut self, _: &(dyn Fn() -> f64 + Sync), _: &Stop, tell: &mut dyn FnMut(Sample)) -> Result<(), Error> {
        let samples = (0..600).filter(|_| self.1).map(|number| f64::from(number) * 0.1);
        samples.for_each(|sent_s| tell(Sample { sent_s, rtt_s: Some(0.1), ..Sample::default() }));
        Ok(())
    }
}

#[test]
fn a_formula_in_place_of_the_drafts_is_told() {
    let measured = |without: &[Kind]| {
        let kinds = [Kind::TcpConnect, Kind::TlsHandshake, Kind::HttpForeign, Kind::HttpSelf];
        let prober = |kind| -> Box<dyn Prober> { Box::new(Scripted(kind, !without.contains(&kind))) };
        let mut load = Filler { vanishes: false, ends: false, limit_bps: None };
        let plan = plan(&[Some(Direction::Download)]);
        let measured = run(&plan, Some(&mut load), &mut kinds.map(prober), &Stop::default(), &mut |_| {});
        let rpm = measured.phases[0].responsiveness.unwrap();
        assert!((rpm.rpm.value - 600.0).abs() < 1e-6, "{rpm:?}");
        (rpm.by_draft, measured.warnings)
    };
    assert_eq!(measured(&[]), (true, vec![]));
    let (by_draft, warnings) = measured(&[Kind::TlsHandshake, Kind::HttpForeign]);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    // A phase of 0.9 s that ends late has more of the draft's intervals.
    let (lacking, rest) = warning.split_once(" in the last ").unwrap();
    let (seconds, rest) = rest.split_once(" s, ").unwrap();
    assert!(!by_draft && (1..=4).contains(&seconds.parse::<u32>().unwrap()), "{warning}");
    assert_eq!(lacking, "phase download: no probe of TLS, HTTP was answered");
    let other = "round trips per minute are 60 s over the mean round-trip time of TCP 192.0.2.1";
    assert_eq!(rest, format!("so that the draft has no result; {other}"));
}

/// A download of 14 s without noise, whose round trips are all 100 ms, is stable.
#[test]
fn a_load_that_lost_connections_has_a_responsiveness_of_low_confidence() {
    let confidence = |doubted: bool| {
        let kinds = [Kind::TcpConnect, Kind::TlsHandshake, Kind::HttpForeign, Kind::HttpSelf];
        let subject = |kind| Subject { target: "192.0.2.1".to_owned(), kind, code_point: 0 };
        let mut recorded = Recorded::new(kinds.map(|kind| (subject(kind), Clocks::Comparable)).into());
        for number in 0..140 {
            let sample = Sample { sent_s: f64::from(number) * 0.1, rtt_s: Some(0.1), ..Sample::default() };
            (0..kinds.len()).for_each(|index| recorded.sample(index, sample));
        }
        let mut counts = Counts::default();
        let arrived = |tenth: u64| Arrived { bytes: tenth * 100_000, at: Duration::from_millis(100 * tenth) };
        counts.down.extend((1..=140).map(arrived));
        let phase = Phase { load: Some(Direction::Download), duration_s: 14.0, ramp_s: 3.0, ..Phase::default() };
        recorded.phase(phase, &counts, 15, &Used::default());
        if doubted {
            recorded.doubt();
        }
        let Figures { mut phases, doubted, .. } = recorded.finish();
        judge(&mut phases, &doubted, "192.0.2.1");
        phases[0].responsiveness.unwrap().draft.unwrap().confidence
    };
    assert_eq!([false, true].map(confidence), [Confidence::High, Confidence::Low]);
}

/// A series that ends after so many probes.
struct Ending(usize);

impl Prober for Ending {
    fn subject(&self) -> Subject {
        Subject { target: "192.0.2.1".to_owned(), kind: Kind::Icmp, code_point: 0 }
    }

    fn run(&mut self, now_s: &(dyn Fn() -> f64 + Sync), _: &Stop, tell: &mut dyn FnMut(Sample)) -> Result<(), Error> {
        (0..self.0).for_each(|_| tell(Sample { sent_s: now_s(), rtt_s: Some(0.01), ..Sample::default() }));
        Err(Error::Unsupported("the socket is gone".to_owned()))
    }
}

#[test]
fn a_series_that_ends_early_leaves_the_measurement_incomplete() {
    let measured = |probes| {
        let mut probers: Vec<Box<dyn Prober>> = vec![Box::new(Ending(probes))];
        run(&plan(&[None]), None, &mut probers, &Stop::default(), &mut |_| {})
    };
    let (cut, missing) = (measured(3), measured(0));
    assert_eq!((cut.complete, missing.complete), (false, true));
    for measured in [cut, missing] {
        assert_eq!(measured.warnings, ["probes of 192.0.2.1: the socket is gone"]);
    }
}

/// A series at an interval.
struct Timed(Option<Duration>);

impl Prober for Timed {
    fn subject(&self) -> Subject {
        Subject { target: "192.0.2.1".to_owned(), kind: Kind::Icmp, code_point: 0 }
    }

    fn interval(&self) -> Option<Duration> {
        self.0
    }

    fn run(&mut self, _: &(dyn Fn() -> f64 + Sync), _: &Stop, _: &mut dyn FnMut(Sample)) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn probes_of_several_series_do_not_leave_at_one_instant() {
    let ms = Duration::from_millis;
    let series = [Some(ms(90)), None, Some(ms(90)), Some(ms(300))];
    let probers: Vec<Box<dyn Prober>> =
        series.into_iter().map(|interval| Box::new(Timed(interval)) as Box<dyn Prober>).collect();
    assert_eq!(starts(&probers), [ms(0), ms(0), ms(30), ms(200)]);
}

#[test]
fn what_a_load_cannot_do_is_reported_and_the_rest_done() {
    let measured = measure(&plan(&[Some(Direction::Both), None]), false, true);
    assert_eq!(measured.phases.len(), 1);
    assert_eq!(measured.warnings, ["test 192.0.2.1:1 cannot load both: no such phase"]);
    assert!(!measured.complete);
}

/// The load has 8 Mbit/s, of which each report says its time.
#[test]
fn a_load_at_the_limit_of_the_server_says_nothing_about_a_full_line() {
    let warnings = |limit_bps| {
        let mut load = Filler { vanishes: false, ends: false, limit_bps: Some(limit_bps) };
        let phases = [None, Some(Direction::Upload)];
        let measured = run(&plan(&phases), Some(&mut load), &mut [], &Stop::default(), &mut |_| {});
        let [idle, loaded] = &measured.phases[..] else { panic!("two phases") };
        assert_eq!((idle.limited, idle.fills_the_line()), (None, true));
        let held = (limit_bps == 8_000_000).then_some(Direction::Upload);
        assert_eq!((loaded.limited, loaded.fills_the_line()), (held, held.is_none()));
        measured.warnings
    };
    assert_eq!(warnings(9_000_000), [""; 0]);
    let words = "phase upload: the upload reached the limit of the server, 8 Mbit/s: the line may carry more, and \
                 delays are not those of a full line";
    assert_eq!(warnings(8_000_000), [words]);
}

/// A load of 8 Mbit/s whose server reports its bytes until 100 ms, and the rest perhaps at the end.
struct Reporting {
    rest: bool,
}

impl Load for Reporting {
    fn peer(&self) -> String {
        "test 192.0.2.1:1".to_owned()
    }

    fn can(&self, _: Direction) -> bool {
        true
    }

    fn warnings(&self) -> Vec<String> {
        vec!["a stream ended".to_owned()]
    }

    fn run(&mut self, _: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        transferred.add_up_at(100_000, Duration::from_millis(100));
        while !stop.is_requested() {
            thread::sleep(Duration::from_millis(5));
        }
        // Of half a minute: the end of the phase may come late.
        for report in (2..=300).filter(|_| self.rest) {
            transferred.add_up_at(100_000, Duration::from_millis(100 * report));
        }
        Ok(())
    }
}

#[test]
fn reports_that_come_after_the_end_count_and_missing_ones_are_told() {
    let measured = |rest| {
        let plan = plan(&[Some(Direction::Upload)]);
        run(&plan, Some(&mut Reporting { rest }), &mut [], &Stop::default(), &mut |_| {})
    };
    let upload = |measured: &Measurement| measured.phases[0].upload.clone().unwrap();
    let stream = "load of the phase upload: a stream ended";
    let whole = measured(true);
    assert_eq!(whole.warnings, [stream]);
    let found = upload(&whole);
    assert!((found.goodput_bps.value / 8e6 - 1.0).abs() < 1e-3 && !found.ramp_included, "{found:?}");
    // Those of the phase, a byte each microsecond, and no bytes that came after its end.
    let us = whole.phases[0].duration_s * 1e6;
    assert!(us > 899_999.0 && (found.bytes as f64 - us).abs() < 2.0, "{} bytes in {us} us", found.bytes);
    assert!(!serde_json::to_string(&whole).unwrap().contains("ramp_included"));
    let cut = measured(false);
    let found = upload(&cut);
    assert!((found.goodput_bps.value / 8e6 - 1.0).abs() < 1e-9 && found.ramp_included, "{found:?}");
    let words = format!(
        "phase upload: the counts of the upload end after 0.1 s of {:.1} s, of which the ramp is 0.2 s: its goodput is \
         that of all 100000 bytes until then, ramp included",
        cut.phases[0].duration_s
    );
    assert_eq!(cut.warnings, [stream, &words]);
    assert!(whole.complete && cut.complete && serde_json::to_string(&cut).unwrap().contains("\"ramp_included\":true"));
}

#[test]
fn a_server_that_vanishes_ends_its_phase_and_no_other() {
    let begin = Instant::now();
    let plan = Plan { duration: Duration::from_secs(3), ..plan(&[Some(Direction::Download), None]) };
    let measured = measure(&plan, true, true);
    assert!(begin.elapsed() < plan.duration + SETTLING, "it waits in vain: {:?}", begin.elapsed());
    let [cut, idle] = &measured.phases[..] else { panic!("{measured:?}") };
    assert!(cut.duration_s < 2.5 && cut.download.is_some() && idle.probes[0].round_trip.is_some());
    assert!(measured.warnings[0].contains("it vanished"), "{:?}", measured.warnings);
    assert!(!measured.complete);
}

/// Of 3 phases of a load, the first shows that the server is gone; its probes are answered no more, and no phase waits
/// for them.
#[test]
fn no_load_is_tried_after_the_end_of_the_server() {
    let begin = Instant::now();
    let mut load = Filler { vanishes: true, ends: true, limit_bps: None };
    let mut probers: Vec<Box<dyn Prober>> = vec![Box::new(Echo { line: Arc::default(), answers: false })];
    let phases = [Some(Direction::Download), Some(Direction::Upload), None, Some(Direction::Download)];
    let measured = run(&plan(&phases), Some(&mut load), &mut probers, &Stop::default(), &mut |_| {});
    assert!(begin.elapsed() < SETTLING, "{:?}", begin.elapsed());
    let loads: Vec<_> = measured.phases.iter().map(|phase| phase.load).collect();
    assert_eq!((loads, measured.complete), (vec![Some(Direction::Download), None], false));
    let ended = "load of the phase download: test 192.0.2.1:1: the server ended: it closed the connection";
    let missing = ["no phase upload: the server ended", "no phase download: the server ended"];
    // On a busy machine the phase's own end may come later than the load's: then it also says where the counts ended.
    let said = measured.warnings.iter().filter(|words| !words.starts_with("phase download: the counts"));
    assert_eq!(said.take(3).collect::<Vec<_>>(), [ended, missing[0], missing[1]]);
}

#[test]
fn probes_without_answers_are_reported() {
    let measured = measure(&plan(&[None]), false, false);
    assert!(measured.phases[0].probes[0].round_trip.is_none());
    let warning = &measured.warnings[0];
    assert!(warning.contains("ICMP echo requests to 192.0.2.1 with code point 46 was answered"), "{warning}");
}

/// ICMP and UDP, with answers on the idle line.
#[test]
fn a_phase_without_answers_is_told() {
    let series = |kind, code_point, is_answered| {
        let round_trip = crate::statistics::delays(&[0.02]).filter(|_| is_answered);
        let subject = Subject { target: "host".to_owned(), kind, code_point };
        Series { round_trip, lost: 7, ..Series::new(subject, Vec::new()) }
    };
    let phase = |load, [icmp, udp]: [bool; 2]| Phase {
        load,
        probes: vec![series(Kind::Icmp, 0, icmp), series(Kind::Udp, 0, udp), series(Kind::Icmp, 46, true)],
        ..Phase::default()
    };
    let told = |upload| judge(&mut [phase(None, [true; 2]), phase(Some(Direction::Upload), upload)], &[], "host");
    assert_eq!(told([false; 2]), ["phase upload: no probe of ICMP host and UDP host was answered within 5 s"]);
    assert_eq!(told([false, true]), [""; 0]);
}

#[test]
fn a_phase_ends_early_only_if_asked() {
    let plan = Plan { duration: Duration::from_secs(20), enough: Some(0.05), ..plan(&[Some(Direction::Download)]) };
    let measured = measure(&plan, false, true);
    assert!((4.9..15.0).contains(&measured.phases[0].duration_s), "{}", measured.phases[0].duration_s);
}

use crate::foreign::iperf3::Datagrams;
use crate::probe::{Kind, Subject};
use crate::report::Throughput;
use crate::train::Way;

use super::*;

/// Thresholds of the page that the module names.
#[test]
fn grades_are_those_of_dslreports() {
    let letters = [0.0, 0.0049, 0.005, 0.030, 0.060, 0.199, 0.200, 0.400, 3.0].map(|s| Grade::of(s).letter());
    assert_eq!(letters, ["A+", "A+", "A", "B", "C", "C", "D", "F", "F"]);
}

fn phase(load: Option<Direction>, median_s: f64) -> Phase {
    let p50_s = Estimate { value: median_s, low: median_s - 0.001, high: median_s + 0.001 };
    let round_trip = Some(Delays {
        count: 99,
        min_s: median_s,
        p50_s,
        p95_s: median_s * 1.2,
        p99_s: median_s * 1.5,
        max_s: median_s * 2.0,
        mean_s: median_s,
        jitter_s: 0.0,
    });
    let subject = || Subject { target: "server".to_owned(), kind: Kind::Icmp, code_point: 0 };
    let series = |round_trip| Series { round_trip, lost: 1, ..Series::new(subject(), Vec::new()) };
    // The first series was never answered.
    let probes = vec![series(None), series(round_trip)];
    Phase { load, duration_s: 10.0, probes, ..Phase::default() }
}

fn measured_in(phases: Vec<Phase>) -> Measurement {
    Measurement {
        schema: 1,
        version: String::new(),
        started_unix_s: 0.0,
        host: String::new(),
        load: None,
        phases,
        clocks: None,
        warnings: Vec::new(),
        complete: true,
    }
}

/// 9 Mbit/s of UDP on a line of 50 lose nothing and wait for nothing; the line under load is another matter.
#[test]
fn datagrams_that_all_arrive_at_their_rate_have_no_grade() {
    let of = |lost: u64, goodput: f64| {
        let datagrams = vec![Datagrams {
            way: Way::Down,
            sent: 1_000,
            received: 1_000 - lost,
            lost,
            reordered: None,
            jitter_s: 0.0,
            offered_bps: 9_000_000,
        }];
        let goodput_bps = Estimate { value: goodput, low: goodput, high: goodput };
        let download = Some(Throughput { goodput_bps, ..Throughput::default() });
        let loaded = Phase { datagrams, download, ..phase(Some(Direction::Download), 0.021) };
        Conditions::of(&measured_in(vec![phase(None, 0.020), loaded]))
    };
    let sparse = of(0, 8_600_000.0);
    assert_eq!((sparse.grade, sparse.increases.len()), (None, 0));
    assert!(sparse.sentences.iter().any(|it| it.starts_with("All datagrams of the phase download arrived")));
    assert_eq!(of(1, 9_000_000.0).grade, Some(Grade::APlus));
    // A queue that takes all that the line does not carry loses none of it: 95 % of the rate are 8.55 Mbit/s.
    assert_eq!(of(0, 8_500_000.0).grade, Some(Grade::APlus));
}

/// A server that lets 5 Mbit/s of a line of 50 pass: its download waits for nothing.
#[test]
fn a_load_at_the_limit_of_the_server_has_no_grade() {
    let of = |limited| {
        let download = Phase { limited, ..phase(Some(Direction::Download), 0.021) };
        let upload = phase(Some(Direction::Upload), 0.220);
        Conditions::of(&measured_in(vec![phase(None, 0.020), download, upload]))
    };
    let held = of(Some(Direction::Download));
    assert_eq!((held.grade_in_short().as_deref(), held.increases.len()), (Some("D of an upload alone"), 1));
    let sentence = "The download of the phase download reached the limit of the server: it did not fill the line, \
                    so its delays are not those under load.";
    assert!(held.sentences.iter().any(|it| it == sentence), "{:?}", held.sentences);
    // The mean of 1 and 200 ms.
    assert_eq!(of(None).grade_in_short().as_deref(), Some("C"));
}

#[test]
fn the_grade_is_the_mean_of_both_directions() {
    let measured = measured_in(vec![
        phase(None, 0.020),
        phase(Some(Direction::Download), 0.030),
        phase(Some(Direction::Upload), 0.220),
        phase(Some(Direction::Both), 2.0),
    ]);
    let conditions = Conditions::of(&measured);
    // 10 and 200 ms.
    assert_eq!(conditions.grade, Some(Grade::C));
    let upload = &conditions.increases[1].increase_s;
    assert!((upload.value - 0.2).abs() < 1e-9 && (upload.low - 0.198).abs() < 1e-9, "{upload:?}");
    assert!(conditions.sentences[2].starts_with("An upload adds 200 ms (198 ms to 202 ms)"), "{conditions:?}");
    assert!(conditions.sentences[3].ends_with("not recommended, if half of the round trip is each way."));
    // 95th percentiles of 36 and of 264 ms (both 2400) where the idle line has 20: half of these, and the rest.
    let delays: Vec<(f64, CallDelay)> =
        conditions.increases.iter().map(|increase| (increase.call_delay_s, increase.call_delay_from)).collect();
    let expected = [(0.046, CallDelay::LoadedDirection), (0.274, CallDelay::LoadedDirection), (1.220, CallDelay::Half)];
    assert!(delays.iter().zip(expected).all(|(a, b)| (a.0 - b.0).abs() < 1e-9 && a.1 == b.1), "{delays:?}");
    assert_eq!(conditions.grade_loads, [Direction::Download, Direction::Upload]);
    let part = |phases: &[Phase]| {
        let conditions = Conditions::of(&Measurement { phases: phases.to_vec(), ..measured.clone() });
        (conditions.grade_in_short(), conditions.grade_loads, conditions.sentences.last().cloned())
    };
    let [idle, download, upload, both] = &measured.phases[..] else { panic!("four phases") };
    assert_eq!(part(std::slice::from_ref(idle)).0, None);
    // 10 ms, 200 ms and 1980 ms: the whole line has C.
    let (of_both, of_one) = (part(&[idle.clone(), both.clone()]), part(&[idle.clone(), download.clone()]));
    let both = Some("F of both directions at a time");
    assert_eq!((of_both.0.as_deref(), of_both.1), (both, vec![Direction::Both]));
    assert_eq!((of_one.0.as_deref(), of_one.1), (Some("A of a download alone"), vec![Direction::Download]));
    let sentence = "Bufferbloat grade A of a download alone by the thresholds of DSLReports.";
    assert_eq!(of_one.2.as_deref(), Some(sentence));
    assert_eq!(part(&[idle.clone(), upload.clone()]).0.as_deref(), Some("D of an upload alone"));
}

/// A modem with 220 kB in front of 256 kbit/s delays by 6.9 s; its line answered within 20 ms.
#[test]
fn a_queue_longer_than_the_wait_for_answers_has_a_lower_bound() {
    let silent = |lost: u64| {
        let mut phase = phase(Some(Direction::Upload), 0.0);
        phase.probes.iter_mut().for_each(|series| (series.round_trip, series.lost) = (None, lost));
        phase
    };
    let phases = vec![phase(None, 0.020), phase(Some(Direction::Download), 0.030), silent(70)];
    let conditions = Conditions::of(&measured_in(phases));
    let upload = &conditions.increases[1];
    assert!(upload.at_least && (upload.increase_s.value - 4.98).abs() < 1e-9, "{upload:?}");
    assert_eq!((upload.call_r, conditions.target.as_deref()), (0.0, Some("server")));
    // The mean of 10 and at least 4980 ms.
    assert_eq!(conditions.grade_in_short().as_deref(), Some("F"));
    let sentence = "An upload adds at least 4980 ms: no probe was answered within 5 s; a call next to it: not \
                    recommended.";
    assert_eq!(conditions.sentences[2], sentence);
    assert!(serde_json::to_string(upload).unwrap().contains("\"at_least\":true"));
    assert!(!serde_json::to_string(&conditions.increases[0]).unwrap().contains("at_least"));
    // Losses that nobody counted show no wait.
    let unknown = Conditions::of(&measured_in(vec![phase(None, 0.020), silent(0)]));
    assert_eq!((unknown.grade, unknown.increases.len(), unknown.sentences.len()), (None, 0, 1));
    // Another series to the server with answers gives the increase, by its own time on the idle line.
    let mut phases = vec![phase(None, 0.020), silent(70)];
    phases.iter_mut().for_each(|of| of.probes.insert(0, of.probes[1].clone()));
    phases[1].probes[2] = phase(Some(Direction::Upload), 0.220).probes[1].clone();
    let answered = Conditions::of(&measured_in(phases)).increases[0];
    assert!(!answered.at_least && (answered.increase_s.value - 0.2).abs() < 1e-9, "{answered:?}");
}

fn delays(median_s: f64, p95_s: f64) -> Delays {
    let p50_s = Estimate { value: median_s, low: median_s, high: median_s };
    let (min_s, p99_s, max_s, mean_s) = (median_s, p95_s, p95_s, median_s);
    Delays { count: 99, min_s, p50_s, p95_s, p99_s, max_s, mean_s, jitter_s: 0.0 }
}

/// An upload whose packets wait until they are 428 ms on the way up, and 10 ms on the way down: a call has 448 ms
/// with the 20 ms of its packet, R 58.4 by G.107. With half of the round trip it had 239 ms, R 81.
#[test]
fn a_queue_in_one_direction_delays_a_call_by_all_of_it() {
    let mut idle = phase(None, 0.020);
    idle.probes.remove(0);
    idle.probes[0].round_trip = Some(delays(0.020, 0.020));
    let mut loaded = phase(Some(Direction::Upload), 0.438);
    loaded.probes.remove(0);
    loaded.probes[0].lost = 0;
    loaded.probes[0].round_trip = Some(delays(0.438, 0.438));
    let call = |phase: &Phase| {
        let increase = increase(phase.load.unwrap(), &idle, phase, &[0]).unwrap();
        let sentence = in_words(&increase);
        ((increase.call_delay_s * 1e6).round() / 1e6, increase.call_delay_from, increase.call_r, sentence)
    };
    let (delay, from, rating, sentence) = call(&loaded);
    assert_eq!((delay, from), (0.448, CallDelay::LoadedDirection));
    assert!((rating - 58.36).abs() < 0.005, "{rating}");
    assert!(sentence.ends_with("a call next to it: nearly all users dissatisfied."), "{sentence}");
    // Measured delays of a second series of the same code point, and of both directions.
    loaded.load = Some(Direction::Both);
    assert_eq!(call(&loaded).1, CallDelay::Half);
    let mut second = loaded.probes[0].clone();
    (second.up, second.down) = (Some(delays(0.400, 0.428)), Some(delays(0.010, 0.010)));
    second.subject.code_point = 46;
    loaded.probes.push(second);
    assert_eq!(call(&loaded).1, CallDelay::Half, "its delays are those of another class");
    loaded.probes[1].subject.code_point = 0;
    let measured = call(&loaded);
    assert_eq!((measured.0, measured.1, measured.2), (0.448, CallDelay::OneWay, rating));
    // Every second packet is lost on the way down, where there is no delay: the worse direction decides.
    (loaded.probes[1].lost, loaded.probes[1].lost_up, loaded.probes[1].lost_down) = (99, Some(0), Some(99));
    let lossy = call(&loaded);
    assert_eq!((lossy.0, lossy.1), (0.030, CallDelay::OneWay));
}

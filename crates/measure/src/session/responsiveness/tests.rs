use crate::load::Direction;
use crate::probe::{Sample, Subject};
use crate::report::{self, Series};

use super::*;

/// A download of fourteen seconds, with these rates by second, and probes of each kind that take these times.
fn phase(rates_bps: [f64; 14], time_s: impl Fn(Kind, f64) -> f64) -> Phase {
    let series = |kind| {
        let sample = |index: u32| {
            // Probes depart every 50 ms from the phase's start, 100 s after that of the measurement.
            let sent_s = 100.0 + f64::from(index) * 0.05;
            Sample { sent_s, rtt_s: Some(time_s(kind, sent_s - 100.0)), ..Sample::default() }
        };
        let subject = Subject { target: "server".to_owned(), kind, code_point: 0 };
        Series::new(subject, (0..280).map(sample).collect())
    };
    let samples = (1..).map(f64::from).zip(rates_bps).collect();
    Phase {
        load: Some(Direction::Download),
        start_s: 100.0,
        duration_s: 14.0,
        ramp_s: 3.0,
        download: Some(Throughput { samples, ..Throughput::default() }),
        probes: KINDS.map(series).into(),
        ..Phase::default()
    }
}

fn draft(responsiveness: Responsiveness) -> ByDraft {
    assert!(responsiveness.by_draft);
    responsiveness.draft.unwrap()
}

/// Section 5.3.1: 60 s over 0.1 s are 600 round trips a minute, over 0.3 s they are 200, and their mean is 400. The
/// formula of the versions to -03, 60 s over the mean time, would give 300.
#[test]
fn the_result_is_the_mean_of_foreign_and_loaded_responsiveness() {
    let time_s = |kind, _| match kind {
        Kind::TcpConnect => 0.05,
        Kind::TlsHandshake => 0.1,
        Kind::HttpForeign => 0.15,
        _ => 0.3,
    };
    let seen = of(&phase([8e6; 14], time_s), &[]).unwrap();
    assert!((seen.rpm.value - 400.0).abs() < 1e-6, "{seen:?}");
    let parts = draft(seen);
    assert!((parts.foreign_rpm.value - 600.0).abs() < 1e-6 && (parts.loaded_rpm.value - 200.0).abs() < 1e-6);
    assert_eq!(parts.confidence, Confidence::High);
}

/// The goodput is stable after the seventh second, and the responsiveness of seconds 8 to 11 is the first one of four
/// stable intervals. A change after that is not in the result.
#[test]
fn the_first_stable_interval_gives_the_result() {
    let time_s = |_, at_s| {
        if at_s < 6.45 {
            0.5
        } else if at_s < 10.9 {
            0.1
        } else {
            0.4
        }
    };
    let seen = of(&phase([8e6; 14], time_s), &[]).unwrap();
    assert!((seen.rpm.value - 600.0).abs() < 1.0, "{seen:?}");
    assert_eq!(draft(seen).confidence, Confidence::High);
}

#[test]
fn without_stability_the_latest_intervals_give_the_result() {
    // Round trips grow from second to second, until the goodput has long been stable.
    let seen = of(&phase([8e6; 14], |_, at_s| 0.1 * 1.3_f64.powf(at_s.floor())), &[]).unwrap();
    assert_eq!(draft(seen).confidence, Confidence::Medium);
    // A goodput that grows to the end is never stable.
    let growing = std::array::from_fn(|second| 1e6 * 1.5_f64.powi(i32::try_from(second).unwrap()));
    let seen = of(&phase(growing, |_, at_s| if at_s < 9.95 { 1.0 } else { 0.1 }), &[]).unwrap();
    assert_eq!(draft(seen).confidence, Confidence::Low);
    // The probes that ended in the last four seconds; those that left before second 9.95 ended by 10.95.
    let parts = draft(seen);
    assert!(parts.loaded_rpm.value > 60.0 / 0.5 && parts.loaded_rpm.value < 600.0, "{parts:?}");
}

#[test]
fn without_all_four_kinds_there_is_no_responsiveness_by_the_draft() {
    let mut lacking = phase([8e6; 14], |_, _| 0.1);
    lacking.probes.pop();
    for series in &mut lacking.probes {
        series.round_trip = statistics::delays(&[0.1]);
    }
    let seen = of(&lacking, &[0]).unwrap();
    assert!(!seen.by_draft && (seen.rpm.value - 600.0).abs() < 1e-6, "{seen:?}");
}

/// A hundred answers of the server after 100 ms, and as many of a target of the user's after 50 us; in the second phase
/// the server has none.
#[test]
fn a_target_next_to_the_server_is_not_counted() {
    let series = |target: &str, rtt_s: Option<f64>| {
        let sample = |index: u32| Sample { sent_s: f64::from(index) * 0.1, rtt_s, ..Sample::default() };
        let subject = Subject { target: target.to_owned(), kind: Kind::Icmp, code_point: 0 };
        let round_trip = rtt_s.and_then(|rtt_s| statistics::delays(&[rtt_s; 100]));
        Series { round_trip, ..Series::new(subject, (0..100).map(sample).collect()) }
    };
    let loaded = |load, rtt_s: Option<f64>| Phase {
        load,
        duration_s: 10.0,
        probes: vec![series("server", rtt_s), series("near", Some(50e-6))],
        ..Phase::default()
    };
    let [download, upload] = [Direction::Download, Direction::Upload].map(Some);
    let phases = [loaded(None, Some(0.01)), loaded(download, Some(0.1)), loaded(upload, None)];
    let counted = report::counted(&phases, "server");
    assert_eq!(counted, [0]);
    assert!((of(&phases[1], &counted).unwrap().rpm.value - 600.0).abs() < 1e-6);
    assert_eq!(of(&phases[2], &counted), None);
    // Where the server answers none on the idle line, another target does.
    let phases = [loaded(None, None), loaded(download, Some(0.1))];
    assert_eq!(report::counted(&phases, "server"), [1]);
    // Without an idle phase, an answer in any phase counts. Another code point is that of another class.
    let mut phases = [loaded(download, Some(0.1)), loaded(upload, None)];
    assert_eq!(report::counted(&phases, "server"), [0]);
    phases.iter_mut().for_each(|phase| phase.probes[0].subject.code_point = 46);
    assert_eq!(report::counted(&phases, "near"), [1]);
    assert_eq!(report::counted(&phases, "server"), [0, 1]);
}

#[test]
fn bits_of_an_interval_are_those_of_its_part_of_each_sample() {
    let samples = vec![(0.5, 10.0), (1.5, 20.0), (4.0, 2.0)];
    let goodput_bps = Estimate { value: 1.0, low: 1.0, high: 1.0 };
    let throughput = Throughput { bytes: 1, streams: 1, congestion: None, goodput_bps, ramp_included: false, samples };
    let bits = [1, 2, 3, 4, 5].map(|interval| carried(&throughput, interval));
    let right = [15.0, 11.0, 2.0, 2.0, 0.0];
    assert!(bits.iter().zip(right).all(|(bits, right)| (bits - right).abs() < 1e-9), "{bits:?}");
}

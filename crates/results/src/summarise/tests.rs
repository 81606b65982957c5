use super::*;

/// Nearest rank: of 1000 values 1 to 1000 ms, the p-th percentile is the value of that rank.
#[test]
fn percentiles_of_round_trips_are_exact() {
    let times = (1..=1_000).rev().map(Duration::from_ms);
    let rtt = round_trip(times);
    assert_eq!([rtt.min, rtt.p50, rtt.p99, rtt.p999, rtt.max], [0.001, 0.5, 0.99, 0.999, 1.0].map(Some));
    assert_eq!(rtt.mean, Some(0.5005));
    let one = round_trip([Duration::from_ms(7)].into_iter());
    assert_eq!([one.min, one.p50, one.p99, one.p999, one.max], [Some(0.007); 5]);
    assert_eq!(one.jitter, Some(0.0));
    assert_eq!(round_trip([].into_iter()), RoundTrip::default());
}

/// RFC 2597, section 6: AF11 is 001010, AF43 is 100110. RFC 3246: EF is 101110. RFC 2474: CS1 is 001000.
#[test]
fn code_points_have_their_names() {
    let named = [
        (0, "default"),
        (0b00_1010, "AF11"),
        (0b10_0110, "AF43"),
        (0b10_1110, "EF"),
        (0b00_1000, "CS1"),
        (5, "dscp-5"),
    ];
    for (dscp, name) in named {
        assert_eq!(class(dscp), name);
    }
    assert_eq!(class(0b10_1000), "CS5", "not AF50");
}

/// Jain, Chiu, Hawe 1984: one of n has all gives 1/n, all equal gives 1.
#[test]
fn the_fairness_index_runs_from_one_nth_to_one() {
    let flows = |rates: &[f64]| {
        let flow = |bps: &f64| Flow {
            direction: "down".into(),
            tcp: Some("reno".into()),
            goodput_bps: *bps,
            ..Flow::default()
        };
        fairness(&rates.iter().map(flow).collect::<Vec<_>>())
    };
    assert!((flows(&[1.0, 0.0, 0.0, 0.0])[0].jain_index - 0.25).abs() < 1e-12);
    assert!((flows(&[3.0, 3.0])[0].jain_index - 1.0).abs() < 1e-12);
    assert_eq!(flows(&[3.0]), [], "one flow shares with nobody");
    assert_eq!(flows(&[0.0, 0.0]), [], "nothing was shared");
}

#[test]
fn a_histogram_is_told_in_seconds_and_nothing_measured_is_null() {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 1_000_000_000_000, 3).unwrap();
    assert_eq!(delay(&histogram), Delay::default());
    histogram.record_n(3_000_000_000, 10).unwrap();
    let told = delay(&histogram);
    assert_eq!(told.count, 10);
    // Three significant digits.
    assert!(
        [told.mean, told.p50, told.p99, told.p999, told.max].iter().all(|v| (v.unwrap() - 3.0).abs() < 0.003),
        "{told:?}"
    );
}

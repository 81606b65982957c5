use super::*;

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

/// Jain, Chiu, Hawe 1984: 1/n if one of n has all, 1 if all are equal.
#[test]
fn the_fairness_index_runs_from_one_nth_to_one() {
    let flows = |rates: &[f64]| {
        let flow = |bps: &f64| Flow {
            direction: "down".into(),
            setup: FlowSetup { tcp: Some("reno".into()), ..FlowSetup::default() },
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

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

fn download(goodput_bps: f64, start_s: f64) -> Flow {
    Flow {
        direction: "down".into(),
        setup: FlowSetup { tcp: Some("reno".into()), ..FlowSetup::default() },
        goodput_bps,
        start_s,
        ..Flow::default()
    }
}

/// Two downloads one after the other, of which the second is slow, share nothing; a third that lives with the second
/// does.
#[test]
fn flows_one_after_another_have_no_fairness() {
    let flows = [download(8.0, 0.0), download(1.0, 60.0), download(3.0, 60.0)];
    assert_eq!(fairness(&flows[..2], &[10.0, 90.0]), []);
    let shared = fairness(&flows, &[10.0, 90.0, 90.0]);
    assert_eq!((shared.len(), shared[0].flows), (1, 2));
    assert!((shared[0].jain_index - 0.8).abs() < 1e-12);
}

/// Jain, Chiu, Hawe 1984: 1/n if one of n has all, 1 if all are equal.
#[test]
fn the_fairness_index_runs_from_one_nth_to_one() {
    let flows = |rates: &[f64]| fairness(&rates.iter().map(|bps| download(*bps, 0.0)).collect::<Vec<_>>(), &[9.0; 4]);
    assert!((flows(&[1.0, 0.0, 0.0, 0.0])[0].jain_index - 0.25).abs() < 1e-12);
    assert!((flows(&[3.0, 3.0])[0].jain_index - 1.0).abs() < 1e-12);
    assert_eq!(flows(&[3.0]), [], "one flow shares with nobody");
    assert_eq!(flows(&[0.0, 0.0]), [], "nothing was shared");
}

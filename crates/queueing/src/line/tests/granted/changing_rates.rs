//! Grants on a line whose rate changes.

use super::*;
use crate::line::trace::Trace;

/// A trace of rates in kbit/s, 0 for an outage, each of `length`, which ends with that of the tests.
pub(super) fn steps(kbit_per_s: &[u64], length: Duration, period: bool) -> Arc<Steps> {
    let rates = kbit_per_s.iter().map(|kbit| BitRate::from_bps(kbit * 1_000)).chain([Some(byte_rate())]);
    let step = |(number, rate)| Step { at: length * number, rate, delay: Duration::ZERO, loss: Ratio::ZERO };
    let steps: Vec<Step> = (0..).zip(rates).map(step).collect();
    let period = period.then_some(length * steps.len() as u64);
    Arc::new(Steps::new(steps, period).expect("a trace"))
}

/// Packets of 1000 bytes in slots of 1 ms. A byte takes 1 us until 2 ms, and 2 us until 4 ms; nothing is sent until
/// 6 ms.
#[test]
fn a_grant_has_the_rate_of_the_trace_and_none_covers_an_outage() {
    let grants = |length| Grants {
        trace: Some(steps(&[8_000, 4_000, 0], length, false)),
        ..Grants::new(byte_rate(), slots(&[(0, 1_000)], 1_000))
    };
    let packets = [(0, 1_000); 5];
    let sent = run(&mut granted(grants(us(2_000))), &packets);
    assert_eq!(sent, [(0, 0, 1_000), (1, 1_000, 2_000), (2, 2_000, 4_000), (3, 6_000, 7_000), (4, 7_000, 8_000)]);
    // A change within a slot: its grant has the lesser rate. Half a slot without a rate is a slot without a grant: the
    // fourth packet ends at 8.5 ms.
    let sent = run(&mut granted(grants(us(2_500))), &packets);
    assert_eq!(sent[1..], [(1, 1_000, 2_000), (2, 2_000, 4_000), (3, 4_000, 6_000), (4, 8_500, 9_500)]);
}

/// Requests wait for the end of an outage, too. Slots at 25 % of the time pass a quarter. 5 ms of a pattern of 4 ms
/// have its 1 ms once or twice, and where they come again in each phase of the pattern 1.25 ms in the mean.
#[test]
fn in_an_outage_nobody_asks_and_the_trace_of_the_line_is_that_of_its_slots() {
    let outage = Grants { trace: Some(steps(&[0], us(10_500), false)), ..asking(requests()) };
    assert_eq!(run(&mut granted(outage), &[(0, 500)]), [(0, 14_000, 14_500)]);
    let quarter = |length, period| {
        let grants = Grants::new(byte_rate(), slots(&[(0, 0), (0, 1_000), (0, 0), (0, 0)], 1_000));
        let usable = Grants { trace: Some(steps(&[8_000, 0], us(length), period)), ..grants }.usable_trace();
        usable.expect("a trace").steps().iter().map(|step| step.rate.map(BitRate::as_bps)).collect::<Vec<_>>()
    };
    assert_eq!(quarter(8_000, true), [Some(2_000_000), None, Some(2_000_000)]);
    assert_eq!(quarter(5_000, true), [Some(2_000_000), None, Some(2_000_000)]);
    assert_eq!(quarter(5_000, false), [Some(1_600_000), None, Some(2_000_000)]);
    // Exactly: of 12 to 21.5 ms the millisecond at 17 ms and a half of that at 21 ms, behind the outage until 16 ms.
    let grants = Grants::new(byte_rate(), slots(&[(0, 0), (0, 1_000), (0, 0), (0, 0)], 1_000));
    let grants = Grants { trace: Some(steps(&[8_000, 0], us(8_000), true)), ..grants };
    let bits = |from, to| grants.work_between(at_us(from), at_us(to)).map(|work| work / 1_000_000_000_000);
    assert_eq!((bits(0, 8_000), bits(8_000, 16_000)), (Some(16_000), Some(0)));
    assert_eq!((bits(12_000, 21_500), bits(3_000, 51_000)), (Some(12_000), Some(8_000 * 8)));
    let trace = grants.usable_trace().map(Trace::Steps);
    let line = Config { trace, grants: Some(Box::new(grants)), ..config(1, "ip") };
    assert_eq!(line.rate_between(at_us(12_000), at_us(22_000)), Some(1_600_000.0));
    assert_eq!(line.mean_rate(us(8_000)), Some(BitRate::from_mbit_per_s(2)));
}

#[test]
fn a_trace_needs_steps_as_long_as_two_rounds_and_packets_that_are_cut() {
    let grants = |length, fragmentation| Grants {
        trace: Some(steps(&[4_000], length, true)),
        fragmentation,
        ..asking(requests())
    };
    assert_eq!(grants(us(2_000), true).check(), Ok(()));
    assert_eq!(grants(us(1_999), true).check(), Err(GrantsError::ShortSteps(us(2_000))));
    assert_eq!(grants(us(2_000), false).check(), Err(GrantsError::NeedsConstantRate));
}

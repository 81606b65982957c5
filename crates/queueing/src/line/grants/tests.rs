use lastmile_units::Instant;
use proptest::prelude::*;

use super::*;

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn whole(slot: Duration) -> Slots {
    Slots::new(slot, vec![Span { start: Duration::ZERO, end: slot }]).expect("a slot")
}

/// The uplink of DDDSU with slots of 500 us: the last 2 of 14 symbols of S, and U.
fn dddsu() -> Slots {
    let none = Span { start: Duration::ZERO, end: Duration::ZERO };
    let special = Span { start: us(420), end: us(500) };
    let up = Span { start: Duration::ZERO, end: us(500) };
    Slots::new(us(500), vec![none, none, none, special, up]).expect("slots")
}

#[test]
fn spans_follow_the_pattern() {
    let at = |ms: u64| Instant::ZERO + us(ms);
    let spans: Vec<_> = [0, 1_919, 1_920, 1_999, 2_000, 2_499, 2_500]
        .map(|time| dddsu().ending_after(at(time)))
        .map(|span| (span.start.as_ps() / 1_000_000, span.end.as_ps() / 1_000_000))
        .to_vec();
    let (special, up, next) = ((1_920, 2_000), (2_000, 2_500), (4_420, 4_500));
    assert_eq!(spans, [special, special, special, special, up, up, next]);
    assert_eq!(dddsu().starting_from(at(1_921)).start, at(2_000));
    assert_eq!(dddsu().starting_from(at(2_001)).start, at(4_420));
    // A request in D, or before the uplink of S, moves; one behind the part of a slot for this station does not.
    let moved = [0, 1_600, 1_950, 2_400, 2_500].map(|us| dddsu().of_direction_from(at(us)));
    assert_eq!(moved, [1_920, 1_920, 1_950, 2_400, 4_420].map(at));
    let half = Slots::new(us(500), vec![Span { start: Duration::ZERO, end: us(250) }]).expect("a slot");
    assert_eq!(half.of_direction_from(at(400)), at(400));
    // 580 of 2500 us.
    assert_eq!(dddsu().mean_rate(BitRate::from_mbit_per_s(100)), Some(BitRate::from_kbit_per_s(23_200)));
}

/// 80 and 500 us in a round of 2.5 ms. Steps of 6 ms that come again each 12 ms meet it in five phases, 0.5 ms apart:
/// 6 ms of 23.2 %. Each 12.5 ms the first 6.25 ms have it twice, and the last 6.25 ms three times.
#[test]
fn the_usable_time_of_a_step_is_its_mean_over_all_repetitions() {
    let usable = |from, to, period: Option<u64>| dddsu().usable(us(from), us(to), period.map(us));
    assert_eq!(usable(0, 6_000, Some(12_000)), us(1_392));
    assert_eq!(usable(6_000, 12_000, Some(12_000)), us(1_392));
    assert_eq!((usable(0, 6_250, Some(12_500)), usable(6_250, 12_500, Some(12_500))), (us(1_160), us(1_740)));
    assert_eq!((usable(0, 6_000, None), usable(6_000, 7_100, None)), (us(1_160), us(180)));
    assert_eq!(usable(2_100, 2_500, Some(2_500)), us(400));
}

#[test]
fn slots_that_cannot_be_used_are_refused() {
    assert_eq!(Slots::new(Duration::ZERO, vec![]).err(), Some(SlotsError::NoLength));
    assert_eq!(Slots::new(us(1), vec![]).err(), Some(SlotsError::NothingUsable));
    let outside = Span { start: us(1), end: us(3) };
    assert_eq!(Slots::new(us(2), vec![outside]).err(), Some(SlotsError::Outside(0)));
}

#[test]
fn parameters_with_which_a_packet_waits_for_ever_are_refused() {
    let fine = Config::new(BitRate::from_mbit_per_s(8), whole(us(1_000)));
    let requests = Requests {
        every: us(1_000),
        contention: None,
        piggyback: false,
        response: us(1_000),
        asks: Asks::Packet,
        outstanding: Outstanding::One,
    };
    let with = |requests: Requests| Config { requests: Some(requests), ..fine.clone() }.check();
    let contention = |first, last| Some(Contention { first, last, collisions: Ratio::ZERO });
    let bucket = |bytes| Bucket { rate: BitRate::from_mbit_per_s(1), burst: WireBytes::new(bytes) };
    assert_eq!(fine.check(), Ok(()));
    assert_eq!(with(requests.clone()), Ok(()));
    assert_eq!(with(Requests { every: Duration::ZERO, ..requests.clone() }), Err(GrantsError::NoOpportunity));
    assert_eq!(with(Requests { contention: contention(4, 3), ..requests.clone() }), Err(GrantsError::BackOff(4, 3)));
    assert_eq!(with(Requests { contention: contention(4, 17), ..requests.clone() }), Err(GrantsError::BackOff(4, 17)));
    let nothing = Asks::Backlog { most: Some(WireBytes::ZERO), first: None };
    assert_eq!(with(Requests { asks: nothing, ..requests.clone() }), Err(GrantsError::NoSize));
    let parts = Asks::Backlog { most: None, first: Some(WireBytes::new(100)) };
    let parts = Some(Requests { asks: parts, ..requests });
    let whole_packets = Config { requests: parts, fragmentation: false, ..fine.clone() };
    assert_eq!(whole_packets.check(), Err(GrantsError::NeedsFragmentation));
    let small = Config { limits: vec![bucket(1_600), bucket(1_599)], ..fine.clone() };
    assert_eq!(small.check(), Err(GrantsError::SmallBurst(WireBytes::new(1_599))));
    let slow = Config::new(BitRate::from_kbit_per_s(7), whole(us(1_000)));
    assert_eq!(slow.check(), Err(GrantsError::NoRoom(BitRate::from_kbit_per_s(7))));
}

proptest! {
    /// The spans after a time are in order, do not overlap, and are those of a search slot by slot.
    #[test]
    fn the_next_span_is_that_of_a_search(at in 0_u64..20_000) {
        let at = Instant::ZERO + us(at);
        let slow = (0..50).find_map(|slot| {
            let part = dddsu().usable[slot % 5];
            let begins = Instant::ZERO + us(500) * slot as u64;
            (part.end > part.start && begins + part.end > at)
                .then(|| Span { start: begins + part.start, end: begins + part.end })
        });
        prop_assert_eq!(Some(dddsu().ending_after(at)), slow);
    }

    /// The usable time of a step is that of its repetitions until the pattern meets the period anew, one by one.
    #[test]
    fn the_usable_time_is_that_of_every_repetition(from in 0_u64..9_000, length in 0_u64..9_000, period in 1_u64..400) {
        let period = period * 50;
        let before = |at: u64| at / 2_500 * 580 + (at % 2_500).saturating_sub(1_920);
        let usable = |from: u64| before(from + length) - before(from);
        let sum: u64 = (0..50).map(|number| usable(from + number * period)).sum();
        let mean = Duration::from_ps(us(sum).as_ps() / 50);
        prop_assert_eq!(dddsu().usable(us(from), us(from + length), Some(us(period))), mean);
    }
}

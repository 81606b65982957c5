use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Counts from nothing on: times in milliseconds, and bytes.
fn counts(of: &[(u64, u64)]) -> Vec<Arrived> {
    let later = of.iter().map(|(at, bytes)| Arrived { bytes: *bytes, at: ms(*at) });
    std::iter::once(Arrived::default()).chain(later).collect()
}

/// A count each 200 ms of a line that carries `ramp` bytes in each of them until 3 s, and 12,500 (500 kbit/s) later.
fn steady(ramp: u64, until_ms: u64) -> Vec<Arrived> {
    let bytes = |step: u64| step.min(15) * ramp + step.saturating_sub(15) * 12_500;
    counts(&(1..=until_ms / 200).map(|step| (step * 200, bytes(step))).collect::<Vec<_>>())
}

const SPAN: Span = Span { ramp: Duration::from_secs(3), end: Duration::from_secs(8) };

#[test]
fn the_ramp_is_left_out() {
    let found = throughput(&steady(2_500, 8_000), SPAN, 4).unwrap();
    let Estimate { value, low, high } = found.goodput_bps;
    assert!([value, low, high].iter().all(|bps| (bps - 500e3).abs() < 1e-3), "{found:?}");
    assert_eq!((found.bytes, found.samples.len(), found.ramp_included), (350_000, 40, false));
}

/// The reports of a run over an upstream of 500 kbit/s, whose ramp ends at 2.667 s: those of seven seconds were late.
/// 441,640 bytes came in 7.9 s. A share of 4,736 of 7,103 of the 405,200 bytes between 0.3 and 7.403 s is after the
/// ramp, and so are 21,268 bytes until 7.903 s: 291,440 bytes in 5.236 s, 445.3 kbit/s.
#[test]
fn a_sample_that_straddles_the_end_of_the_ramp_counts_with_its_part_after_it() {
    let span = Span { ramp: ms(2_667), end: ms(8_000) };
    let seen =
        counts(&[(104, 5_800), (300, 18_840), (7_403, 424_040), (7_603, 432_700), (7_803, 437_040), (7_903, 441_640)]);
    let found = throughput(&seen, span, 4).unwrap();
    let between = 405_200.0 * 4_736.0 / 7_103.0;
    let right = (between + 17_600.0) * 8.0 / 5.236;
    let Estimate { value, low, high } = found.goodput_bps;
    assert!((value - right).abs() < 2.0, "{value} and not {right}");
    // The rates of the parts are 456, 346, 174 and 368 kbit/s, and the first takes nine tenths of the time.
    assert!(low > 350e3 && high < 520e3 && low < value && value < high, "{low} to {high}");
    assert_eq!((found.bytes, found.samples.len(), found.ramp_included), (441_640, 6, false));
}

/// Reports until 0.3 s of 5.2 s, as of a connection that broke: there are only the bytes of the ramp.
#[test]
fn counts_that_end_before_half_of_the_time_after_the_ramp_include_it() {
    let only = counts(&[(200, 5_781), (300, 10_117)]);
    let span = Span { end: ms(5_222), ..SPAN };
    let found = throughput(&only, span, 8).unwrap();
    assert!(found.ramp_included && (found.goodput_bps.value - 10_117.0 * 8.0 / 0.3).abs() < 1e-6, "{found:?}");
    // Half of 5 s after the ramp end at 5.5 s.
    let included = |until_ms| throughput(&steady(2_500, until_ms), SPAN, 4).unwrap();
    assert!(!included(5_600).ramp_included && (included(5_600).goodput_bps.value - 500e3).abs() < 1e-3);
    // 15 * 2,500 and 12 * 12,500 bytes in 5.4 s.
    assert!(included(5_400).ramp_included);
    assert!((included(5_400).goodput_bps.value - 187_500.0 * 8.0 / 5.4).abs() < 1e-3);
    // A phase that ends in its ramp has nothing else.
    assert!(throughput(&steady(2_500, 1_000), Span { ramp: ms(1_000), end: ms(1_000) }, 4).unwrap().ramp_included);
}

/// A server that hears of the end half a second later has taken 100 kB more by 8.5 s.
#[test]
fn bytes_after_the_end_of_the_phase_do_not_count() {
    let mut seen = steady(12_500, 7_800);
    let last = *seen.last().unwrap();
    seen.push(Arrived { bytes: last.bytes + 70_000, at: ms(8_500) });
    let found = throughput(&seen, SPAN, 4).unwrap();
    // 200 of 700 ms.
    assert_eq!(found.bytes, 39 * 12_500 + 20_000);
    assert!((found.samples.last().unwrap().0 - 8.0).abs() < 1e-9, "{:?}", found.samples.last());
    // The only count of a load is that of all of it.
    let only = throughput(&counts(&[(8_500, 531_250)]), SPAN, 1).unwrap();
    assert!(only.bytes == 531_250 && !only.ramp_included && (only.goodput_bps.value - 500e3).abs() < 20.0, "{only:?}");
}

#[test]
fn a_line_that_stops_carries_less() {
    let transferred = Transferred::default();
    let mut seen = Counts { down: steady(12_500, 5_600), ..Counts::default() };
    seen.close(&transferred, Some(ms(8_000)));
    let found = throughput(&seen.down, SPAN, 4).unwrap();
    // 13 * 12,500 bytes in 5 s.
    assert!((found.goodput_bps.value - 260e3).abs() < 1e-3 && !found.ramp_included, "{:?}", found.goodput_bps);
    // A load that failed ends with its last byte.
    let mut failed = Counts { down: steady(12_500, 5_600), ..Counts::default() };
    failed.close(&transferred, None);
    assert!((throughput(&failed.down, SPAN, 4).unwrap().goodput_bps.value - 500e3).abs() < 1e-3);
}

/// Seventy reports that come at once, each with its time, give the samples of reports in time.
#[test]
fn late_reports_are_as_good_as_timely_ones() {
    let (late, timely) = (Transferred::default(), Transferred::default());
    let (mut of_late, mut of_timely) = (Counts::default(), Counts::default());
    for report in 1..=80 {
        for transferred in [&late, &timely] {
            transferred.add_up_at(6_250, ms(report * 100));
        }
        if report % 2 == 0 {
            of_timely.read(&timely);
        }
        if !(3..70).contains(&report) {
            of_late.read(&late);
        }
    }
    of_late.close(&late, Some(ms(8_000)));
    of_timely.close(&timely, Some(ms(8_000)));
    let found = throughput(&of_late.up, SPAN, 4).unwrap();
    assert_eq!(found, throughput(&of_timely.up, SPAN, 4).unwrap());
    assert_eq!((found.samples.len(), found.bytes), (40, 500_000));
    assert!((found.goodput_bps.value - 500e3).abs() < 1e-3, "{found:?}");
}

#[test]
fn few_samples_are_never_enough() {
    let enough = |of: Vec<Arrived>| Counts { up: of, ..Counts::default() }.are_enough(SPAN, 0.05);
    assert!(enough(steady(2_500, 8_000)));
    // One sample has no interval, and seven have that of independent ones.
    assert!(!enough(counts(&[(300, 18_750), (8_000, 500_000)])));
    assert!(!enough(steady(2_500, 4_400)));
}

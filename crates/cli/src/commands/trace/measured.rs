//! A trace from the goodput of a measurement: one phase, without its ramp.
//!
//! A receiver reads bytes in their order. While a lost segment is missing, it reads none, and then all that wait at
//! once: faster than the line. So bytes after a gap belong to the gap as well. A sample above the highest rate over
//! [`LONGER`] is joined with those before it until their common rate is not above.

use lastmile_queueing::line::trace::{Step, Trace};
use lastmile_scenario::trace::file;
use lastmile_scenario::trace::generate::Base;
use lastmile_units::{BitRate, Duration};
use serde_json::Value;

use super::arguments::{Direction, LoadedPhase};

/// The span over which no line carries more than its rate: several round trips, and a recovery or two.
const LONGER: f64 = 1.0;

/// Bits that arrived in a span of seconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_s: f64,
    to_s: f64,
    bits: f64,
}

impl Span {
    fn bps(self) -> f64 {
        self.bits / (self.to_s - self.from_s)
    }
}

/// The trace of one phase, and a sentence that names it.
///
/// # Errors
/// No such phase, or no samples of the direction behind its ramp.
pub(super) fn trace(
    document: &Value,
    direction: Direction,
    phase: Option<LoadedPhase>,
    base: Base,
) -> Result<(Trace, String), String> {
    let (name, phase) = chosen(document, direction, phase)?;
    let key = direction.key();
    let ramp_s = phase["ramp_s"].as_f64().unwrap_or(0.0);
    let read = spans(&phase[key]["samples"]).ok_or_else(|| format!("phases: {key}: samples are pairs of numbers"))?;
    let carried = smoothed(&read, ramp_s);
    let (Some(first), Some(last)) = (carried.first().copied(), carried.last().copied()) else {
        return Err(format!("no samples of {key} behind the ramp of the phase {name}"));
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times and rates of a measurement")]
    let whole = |value: f64| value.round() as u64;
    let time = |s: f64| Duration::from_ns(whole((s - first.from_s) * 1e9));
    let steps = carried.iter().map(|span| Step {
        at: time(span.from_s),
        rate: BitRate::from_bps(whole(span.bps())),
        delay: base.delay,
        loss: base.loss,
    });
    let trace = file::in_steps(steps.collect(), Some(time(last.to_s)))?;
    Ok((trace, format!("{key} of the phase {name}, without its ramp of {ramp_s} s")))
}

/// The phase of this name, or else that in which the direction was loaded alone, or else the first that loaded it.
fn chosen(document: &Value, direction: Direction, phase: Option<LoadedPhase>) -> Result<(String, &Value), String> {
    let all = document["phases"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |phase: &&Value| phase[direction.key()]["samples"].as_array().is_some_and(|samples| !samples.is_empty());
    let of = |name: &str| all.iter().filter(has).find(|phase| phase["load"].as_str() == Some(name));
    let found = match phase {
        Some(phase) => of(phase.name()),
        None => of(direction.key()).or_else(|| all.iter().find(has)),
    };
    let named = |phase: &'_ Value| phase["load"].as_str().unwrap_or("without a name").to_owned();
    match (found, phase) {
        (Some(found), _) => Ok((named(found), found)),
        (None, Some(phase)) => Err(format!("no samples of {} in a phase {}", direction.key(), phase.name())),
        (None, None) => Err(format!("no samples of {}", direction.key())),
    }
}

/// The samples as spans. The start of the first one is not known.
fn spans(samples: &Value) -> Option<Vec<Span>> {
    let (mut spans, mut before) = (Vec::new(), None);
    for sample in samples.as_array().into_iter().flatten() {
        let (to_s, bps) = (sample[0].as_f64()?, sample[1].as_f64()?);
        if let Some(from_s) = before.replace(to_s).filter(|from_s| to_s > *from_s) {
            spans.push(Span { from_s, to_s, bits: bps * (to_s - from_s) });
        }
    }
    Some(spans)
}

/// The spans behind the ramp, none of them faster than the highest rate over [`LONGER`] there.
fn smoothed(spans: &[Span], ramp_s: f64) -> Vec<Span> {
    let behind = |span: &&Span| span.to_s > ramp_s;
    let most = highest(&spans.iter().filter(behind).copied().collect::<Vec<_>>());
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        let mut span = *span;
        // A gap may begin within the ramp.
        while span.bps() > most * (1.0 + 1e-9)
            && let Some(before) = joined.pop()
        {
            span = Span { from_s: before.from_s, to_s: span.to_s, bits: before.bits + span.bits };
        }
        joined.push(span);
    }
    let cut = |span: Span| match span.from_s < ramp_s {
        true => Span { from_s: ramp_s, to_s: span.to_s, bits: span.bps() * (span.to_s - ramp_s) },
        false => span,
    };
    joined.into_iter().filter(|span| behind(&span)).map(cut).collect()
}

/// The highest rate over spans of [`LONGER`] together, or over all of them.
fn highest(spans: &[Span]) -> f64 {
    let of = |from: usize| {
        let end = spans[from..].iter().position(|span| span.to_s - spans[from].from_s >= LONGER - 1e-9)?;
        let bits: f64 = spans[from..=from + end].iter().map(|span| span.bits).sum();
        Some(bits / (spans[from + end].to_s - spans[from].from_s))
    };
    let longer = (0..spans.len()).filter_map(of).reduce(f64::max);
    let whole =
        || spans.iter().map(|span| span.bits).sum::<f64>() / spans.iter().map(|s| s.to_s - s.from_s).sum::<f64>();
    longer.unwrap_or_else(whole)
}

#[cfg(test)]
mod tests {
    use lastmile_units::Ratio;
    use serde_json::json;

    use super::*;

    fn base() -> Base {
        Base { rate: None, delay: Duration::from_ms(7), loss: Ratio::ZERO }
    }

    fn steps(document: &Value, direction: Direction, phase: Option<LoadedPhase>) -> (Vec<(Duration, u64)>, String) {
        let (trace, told) = trace(document, direction, phase, base()).unwrap();
        let Trace::Steps(steps) = trace else { panic!("steps") };
        assert!(steps.steps().iter().all(|step| step.delay == Duration::from_ms(7)));
        let mut seen: Vec<_> = steps.steps().iter().map(|step| (step.at, step.rate.unwrap().as_bps())).collect();
        seen.push((steps.period().unwrap(), 0));
        (seen, told)
    }

    /// Samples each second; a ramp of 1 s; 8 and 4 Mbit/s remain of the download alone.
    #[test]
    fn one_phase_of_a_measurement_becomes_steps_behind_its_ramp() {
        let both = json!({ "load": "both", "ramp_s": 1.0,
            "download": { "samples": [[1.0, 1e6], [2.0, 3e6], [3.0, 2e6]] },
            "upload": { "samples": [[1.0, 1e6], [2.0, 1e6]] } });
        let alone = json!({ "load": "download", "ramp_s": 1.0,
            "download": { "samples": [[1.0, 1e6], [2.0, 8e6], [3.0, 4e6]] } });
        let document = json!({ "phases": [{ "load": null, "ramp_s": 0.0, "download": null }, both, alone] });
        let s = Duration::from_s;
        let (seen, told) = steps(&document, Direction::Down, None);
        assert_eq!(seen, [(s(0), 8_000_000), (s(1), 4_000_000), (s(2), 0)]);
        assert_eq!(told, "download of the phase download, without its ramp of 1 s");
        let (seen, told) = steps(&document, Direction::Down, Some(LoadedPhase::Both));
        assert_eq!(seen, [(s(0), 3_000_000), (s(1), 2_000_000), (s(2), 0)]);
        assert_eq!(told, "download of the phase both, without its ramp of 1 s");
        // Nothing loaded the upload alone.
        let (seen, told) = steps(&document, Direction::Up, None);
        assert_eq!(
            (&seen[..], &told[..]),
            (&[(s(0), 1_000_000), (s(1), 0)][..], "upload of the phase both, without its ramp of 1 s")
        );
        let none = trace(&document, Direction::Up, Some(LoadedPhase::Upload), base()).unwrap_err();
        assert_eq!(none, "no samples of upload in a phase upload");
        let none = trace(&json!({ "phases": [] }), Direction::Up, None, base()).unwrap_err();
        assert_eq!(none, "no samples of upload");
    }

    /// A line of 35 Mbit/s, counted each 100 ms. From 5.03 s on a segment is missing for 230 ms: the receiver reads
    /// nothing, and then the bytes of that time at once.
    #[test]
    fn a_recovery_on_a_constant_line_leaves_its_rate() {
        const LINE: f64 = 35e6;
        let read_by = |at_s: f64| if (5.03..5.26).contains(&at_s) { 5.03 } else { at_s } * LINE;
        let ends: Vec<f64> = (0..=100).map(|count| f64::from(count) / 10.0).collect();
        let samples: Vec<(f64, f64)> =
            ends.windows(2).map(|pair| (pair[1], (read_by(pair[1]) - read_by(pair[0])) / 0.1)).collect();
        assert!(samples.iter().any(|(_, bps)| *bps > 1.5 * LINE) && samples.iter().any(|(_, bps)| *bps < 0.5 * LINE));
        let document = json!({ "phases": [{ "load": "download", "ramp_s": 3.0, "download": { "samples": samples } }] });
        let (seen, _) = steps(&document, Direction::Down, None);
        let ((period, _), steps) = seen.split_last().unwrap();
        assert_eq!(*period, Duration::from_s(7));
        for (at, bps) in steps {
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            let off = *bps as f64 / LINE - 1.0;
            assert!(off.abs() < 0.001, "{at}: {bps} bit/s");
        }
    }

    /// A rate that lasts is one of the line, however much the line changes.
    #[test]
    fn a_line_that_changes_keeps_its_rates() {
        let samples: Vec<(f64, f64)> =
            (1..=40).map(|count| (f64::from(count) / 10.0, if count <= 20 { 10e6 } else { 50e6 })).collect();
        let document = json!({ "phases": [{ "load": "download", "ramp_s": 0.0, "download": { "samples": samples } }] });
        let (seen, _) = steps(&document, Direction::Down, None);
        let rate = |tenth: usize| seen[tenth].1 / 1_000_000;
        assert_eq!((rate(0), rate(18), rate(19), rate(38)), (10, 10, 50, 50));
    }
}

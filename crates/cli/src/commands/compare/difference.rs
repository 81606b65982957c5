//! The largest difference between compared runs, and the flow's limit in each of them.

use lastmile_results::Run;
use lastmile_results::schema::PhaseFlow;
use lastmile_text::table::wrap;
use lastmile_units::BitRate;

/// Smaller factors between runs count as random.
const WORTH_TELLING: f64 = 1.2;

/// The limit, in each run, of the flow in the phase with the largest difference; empty if the runs
/// hardly differ.
pub(super) fn explained(runs: &[Run], width: u16) -> String {
    let mut text = String::new();
    let Some((phase, flow)) = largest(runs) else { return text };
    wrap(&mut text, &format!("What limited {flow} {phase}"), 0, width);
    for run in runs {
        if let Some(found) = find(run, phase, flow) {
            let rate = rate(found.goodput_bps);
            wrap(&mut text, &format!("{}, {rate}: {}", run.label, found.explanation), 1, width);
        }
    }
    text
}

/// Names of the phase and the flow with the largest factor between goodputs.
fn largest(runs: &[Run]) -> Option<(&str, &str)> {
    let first = runs.first()?;
    let named = first.summary.phases.iter().flat_map(|phase| phase.flows.iter().map(move |flow| (phase, flow)));
    // Phases explain transfers, and no application.
    let named = named.filter(|(_, flow)| !flow.explanation.is_empty());
    let spread = named.filter_map(|(phase, flow)| {
        let goodputs = runs.iter().filter_map(|run| find(run, &phase.name, &flow.name)).map(|flow| flow.goodput_bps);
        let (least, most) = goodputs.fold((f64::MAX, 0.0_f64), |(least, most), bps| (least.min(bps), most.max(bps)));
        // A flow that nearly ended in some run is no comparison.
        (least > 0.0).then(|| (most / least, most, phase.name.as_str(), flow.name.as_str()))
    });
    let typical = first.summary.flows.iter().map(|flow| flow.goodput_bps).fold(0.0, f64::max);
    spread
        .filter(|&(factor, most, ..)| factor >= WORTH_TELLING && most >= typical / 10.0)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, _, phase, flow)| (phase, flow))
}

fn find<'a>(run: &'a Run, phase: &str, flow: &str) -> Option<&'a PhaseFlow> {
    let phase = run.summary.phases.iter().find(|known| known.name == phase)?;
    phase.flows.iter().find(|known| known.name == flow)
}

/// A rate in three digits.
fn rate(bps: f64) -> String {
    if bps < 1.0 {
        return "0 bit/s".to_owned();
    }
    let scale = 10_f64.powf(bps.log10().floor() - 2.0).max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and far below 2^63")]
    let rounded = ((bps / scale).round() * scale).round() as u64;
    BitRate::from_bps(rounded).map_or_else(|| "0 bit/s".to_owned(), |rate| rate.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_results::Summary;
    use lastmile_results::schema::{Flow, Phase};

    fn run(label: &str, during: f64, after: f64) -> Run {
        let flow = |bps, why: &str| PhaseFlow {
            name: "download".into(),
            goodput_bps: bps,
            explanation: why.into(),
            ..PhaseFlow::default()
        };
        let phase = |name: &str, flow| Phase { name: name.into(), flows: vec![flow], ..Phase::default() };
        let phases = vec![
            phase("before", flow(1e6, "line")),
            phase("during", flow(during, "window")),
            phase("after", flow(after, "line")),
        ];
        let flows = vec![Flow { name: "download".into(), goodput_bps: 1e6, ..Flow::default() }];
        Run {
            label: label.into(),
            own: Vec::new(),
            summary: Summary { phases, flows, ..Summary::default() },
            series: Vec::new(),
        }
    }

    #[test]
    fn a_flow_without_a_reason_is_not_told() {
        let mut runs = [run("none", 1e5, 1e5), run("sad", 9e5, 1e5)];
        let phases = runs.iter_mut().flat_map(|run| &mut run.summary.phases);
        phases.for_each(|phase| phase.flows[0].explanation.clear());
        assert_eq!(explained(&runs, 120), "");
    }

    #[test]
    fn the_phase_that_differs_most_is_told_with_the_reason_in_each_run() {
        let text = explained(&[run("none", 4.189e5, 9e5), run("sad", 1.6996e6, 1e6)], 120);
        assert_eq!(text, "What limited download during\n none, 419 kbit/s: window\n sad, 1.7 Mbit/s: window\n");
    }

    #[test]
    fn runs_that_are_alike_and_flows_that_have_ended_are_not_told() {
        assert_eq!(explained(&[run("a", 1e6, 1e6), run("b", 1.1e6, 1e6)], 120), "");
        assert_eq!(explained(&[run("a", 1e6, 10.0), run("b", 1e6, 100.0)], 120), "");
    }
}

//! The largest differences between compared runs: of a flow, with its limit in each of them, and of what people notice
//! of an application.

use lastmile_results::experience::{Noticed, noticed};
use lastmile_results::schema::{FlowKind, Phase, PhaseFlow};
use lastmile_results::{Run, in_words};
use lastmile_text::table::wrap;
use lastmile_units::BitRate;

/// Smaller factors between runs count as random.
const WORTH_TELLING: f64 = 1.2;
/// Kinds of flows that people notice.
const APPLICATIONS: [FlowKind; 5] =
    [FlowKind::Web, FlowKind::Video, FlowKind::Backup, FlowKind::Conference, FlowKind::Game];
/// Smaller differences of a time bother nobody.
const NOTICEABLE_S: f64 = 0.02;

/// The limit, in each run, of the flow with the largest difference in the phases that the rows measure; empty if the
/// runs hardly differ there.
pub(super) fn explained(runs: &[&Run], measured: &[&str], width: u16) -> String {
    let mut text = String::new();
    let Some((phase, flow)) = largest(runs, measured) else { return text };
    wrap(&mut text, &format!("What limited {flow} {}", in_words(&phase.name)), 0, width);
    for run in runs {
        if let Some(found) = find(run, phase, flow) {
            let rate = rate(found.goodput_bps);
            wrap(&mut text, &format!("{}, {rate}: {}", run.label, found.explanation), 1, width);
        }
    }
    text
}

/// The effects that people notice, in each run, of the application with the largest difference in seconds; empty if the
/// runs hardly differ.
pub(super) fn noticed_by_people(runs: &[&Run], width: u16) -> String {
    let all: Vec<Vec<Noticed>> = runs.iter().map(|run| noticed(&run.summary)).collect();
    let in_each = |name: &str| -> Option<Vec<&Noticed>> {
        all.iter().map(|run| run.iter().find(|one| one.name == name)).collect()
    };
    let candidates = all.first().into_iter().flatten().filter_map(|one| {
        let runs = in_each(&one.name)?;
        let (least, most) = runs
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), one| (least.min(one.bother_s), most.max(one.bother_s)));
        let factor = most / least.max(NOTICEABLE_S);
        let is_told = most - least >= NOTICEABLE_S && factor >= WORTH_TELLING;
        is_told.then(|| (most - least, one.name.clone(), runs))
    });
    let largest = candidates.max_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = String::new();
    let Some((_, name, in_runs)) = largest else { return text };
    wrap(&mut text, &format!("What people notice of {name}"), 0, width);
    for (run, one) in runs.iter().zip(in_runs) {
        wrap(&mut text, &format!("{}: {}", run.label, one.words), 1, width);
    }
    text
}

/// The phase, one of the `measured` or any if they are none, and the flow with the largest factor between goodputs.
fn largest<'a>(runs: &[&'a Run], measured: &[&str]) -> Option<(&'a Phase, &'a str)> {
    let first = runs.first()?;
    let is_measured = |phase: &&Phase| measured.is_empty() || measured.contains(&&*phase.name);
    let phases = first.summary.phases.iter().filter(is_measured);
    let named = phases.flat_map(|phase| phase.flows.iter().map(move |flow| (phase, flow)));
    // Phases say what people notice of applications, which is compared apart.
    let of_people = |name: &str| {
        let flow = first.summary.flows.iter().find(|flow| flow.name == name);
        flow.is_some_and(|flow| APPLICATIONS.contains(&flow.setup.kind))
    };
    let named = named.filter(|(_, flow)| !flow.explanation.is_empty() && !of_people(&flow.name));
    let spread = named.filter_map(|(phase, flow)| {
        let goodputs = runs.iter().filter_map(|run| find(run, phase, &flow.name)).map(|flow| flow.goodput_bps);
        let (least, most) = goodputs.fold((f64::MAX, 0.0_f64), |(least, most), bps| (least.min(bps), most.max(bps)));
        // A flow that nearly ended in some run is no comparison.
        (least > 0.0).then(|| (most / least, most, phase, flow.name.as_str()))
    });
    let typical = first.summary.flows.iter().map(|flow| flow.goodput_bps).fold(0.0, f64::max);
    spread
        .filter(|&(factor, most, ..)| factor >= WORTH_TELLING && most >= typical / 10.0)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, _, phase, flow)| (phase, flow))
}

fn find<'a>(run: &'a Run, phase: &Phase, flow: &str) -> Option<&'a PhaseFlow> {
    let phase = run.summary.same_phase(phase)?;
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
    use lastmile_results::schema::{Flow, Game, RoundTrip, Video};

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
        assert_eq!(explained(&runs.each_ref(), &[], 120), "");
    }

    #[test]
    fn the_phase_that_differs_most_is_told_with_the_reason_in_each_run() {
        let text = explained(&[&run("none", 4.189e5, 9e5), &run("sad", 1.6996e6, 1e6)], &[], 120);
        assert_eq!(text, "What limited download during\n none, 419 kbit/s: window\n sad, 1.7 Mbit/s: window\n");
    }

    /// The download differs by a factor of 4 during the upload, and of 1.5 after it, where the rows are from.
    #[test]
    fn the_phase_that_the_rows_measure_is_told() {
        let runs = [run("none", 4e5, 6e5), run("sad", 1.6e6, 9e5)];
        let told = explained(&runs.each_ref(), &["after"], 120);
        assert_eq!(told, "What limited download after\n none, 600 kbit/s: line\n sad, 900 kbit/s: line\n");
        assert_eq!(explained(&runs.each_ref(), &["before"], 120), "", "equal there");
    }

    fn playing(label: &str, start_s: f64, stalled_s: f64, response_s: f64) -> Run {
        let mut run = run(label, 1e6, 1e6);
        let applications = &mut run.summary.applications;
        applications.videos.push(Video {
            name: "film".into(),
            start_s: Some(start_s),
            stalls: u64::from(stalled_s > 0.0),
            stalled_s,
            ..Video::default()
        });
        let response_s = RoundTrip { p50: Some(response_s), p99: Some(response_s), ..RoundTrip::default() };
        applications.games.push(Game { name: "game".into(), response_s, ..Game::default() });
        run
    }

    /// The film takes 12 s in place of 1.2 s, the game 90 ms in place of 60 ms.
    #[test]
    fn what_people_notice_most_is_told_in_the_words_of_its_application() {
        let text = noticed_by_people(&[&playing("none", 2.0, 10.0, 0.09), &playing("sad", 1.2, 0.0, 0.06)], 120);
        let expected = "What people notice of film\n none: first picture after 2 s, one stall of 10 s\n \
                        sad: first picture after 1.2 s, no stall\n";
        assert_eq!(text, expected);
    }

    /// 4 s of film are a third, 0.8 s of game a ninth.
    #[test]
    fn seconds_decide_which_application_is_told() {
        let text = noticed_by_people(&[&playing("none", 6.0, 0.0, 0.9), &playing("sad", 2.0, 0.0, 0.1)], 120);
        assert!(text.starts_with("What people notice of film\n"), "{text}");
    }

    #[test]
    fn differences_that_bother_nobody_are_not_told() {
        assert_eq!(noticed_by_people(&[&playing("none", 1.3, 0.0, 0.015), &playing("sad", 1.2, 0.0, 0.005)], 120), "");
        assert_eq!(noticed_by_people(&[&run("a", 1e6, 1e6), &run("b", 1e6, 1e6)], 120), "");
    }

    #[test]
    fn runs_that_are_alike_and_flows_that_have_ended_are_not_told() {
        assert_eq!(explained(&[&run("a", 1e6, 1e6), &run("b", 1.1e6, 1e6)], &[], 120), "");
        assert_eq!(explained(&[&run("a", 1e6, 10.0), &run("b", 1e6, 100.0)], &[], 120), "");
    }
}

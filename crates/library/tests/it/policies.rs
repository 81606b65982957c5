//! Every line under every ready policy: it reads, runs, conserves packets, and gives finite results.

use lastmile_library::{Home, Line, home, homes, line, lines};
use lastmile_model::outcome::Outcome;
use lastmile_results::{Origin, summarise};
use lastmile_scenario::Scenario;
use lastmile_scenario::policy::ready;

/// Roughly the bits that each run carries: a fast line is simulated for a shorter time.
const BITS: u64 = 150_000_000;

/// Runs a pair for a short time: the upload begins after a quarter of it.
fn short_run(line: &Line, home: &Home, policy: &str) -> (Scenario, Outcome) {
    let rates = line.down.as_bps() + line.up.as_bps();
    let ms = (BITS * home.lines.max(2) / 2 * 1000 / rates).clamp(250, 4000);
    let text = line.with(home).text;
    let name = format!("{} {} {policy}", line.name, home.name);
    let uploads = ["photos", "backup", "recording", "upload"];
    let upload = uploads.into_iter().find(|name| text.contains(&format!("name = \"{name}\"\nkind = \"bulk\"")));
    let mut set =
        vec![format!("duration={ms} ms"), format!("access.policy={policy}"), "record.series=false".to_owned()];
    set.extend(upload.map(|upload| format!("traffic.{upload}.start={} ms", ms / 4)));
    let scenario = Scenario::parse(&name, &text, &set).unwrap_or_else(|report| panic!("{report}"));
    let outcome = lastmile_sim::run(scenario.network_ref()).unwrap_or_else(|error| panic!("{name}: {error}"));
    (scenario, outcome)
}

fn check(name: &str, scenario: &Scenario, outcome: &Outcome) {
    let conservation = outcome.conservation;
    assert!(conservation.holds(), "{name}: {conservation:?}");
    assert!(conservation.delivered.packets > 0, "{name}: nothing was delivered");
    let summary = summarise(&Origin::default(), scenario.network_ref(), outcome);
    let goodput = |way: &str| -> f64 {
        summary.flows.iter().filter(|flow| *flow.direction == *way).map(|flow| flow.goodput_bps).sum()
    };
    for way in ["down", "up"] {
        assert!(goodput(way).is_finite() && goodput(way) > 0.0, "{name}: {} bit/s {way}", goodput(way));
    }
    for probe in &summary.probes {
        let rtt = probe.rtt_s.p50.unwrap_or_default();
        assert!(rtt.is_finite() && rtt >= 0.0, "{name}: {rtt}");
    }
}

/// The modem predicts the wait of its shallow queue without that for grants, so that Prague fills the line.
#[test]
fn prague_alone_fills_the_upstream_with_a_dual_queue() {
    let text = line("docsis-lld-1000-50").unwrap().with(&home("gamers").unwrap()).text;
    let (text, _) = text.split_once("[[traffic]]").unwrap();
    let upload = "[[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\n\
                  tcp = { variant = \"prague\", ecn = \"accecn\" }\n";
    let scenario = Scenario::parse("prague", &format!("{text}{upload}"), &[]).unwrap_or_else(|e| panic!("{e}"));
    let outcome = lastmile_sim::run(scenario.network_ref()).unwrap();
    let flow = summarise(&Origin::default(), scenario.network_ref(), &outcome).flows.remove(0);
    assert!(flow.goodput_bps > 0.9 * flow.limits.bound_bps.unwrap(), "{flow:?}");
    assert!(flow.limits.explanation.contains(" reductions for CE marks"), "{}", flow.limits.explanation);
}

#[test]
fn every_line_runs_under_every_policy() {
    let family = home("family").unwrap();
    for line in lines() {
        for policy in ["none"].into_iter().chain(ready::NAMES) {
            let (scenario, outcome) = short_run(&line, &family, policy);
            check(&format!("{} {policy}", line.name), &scenario, &outcome);
        }
    }
}

#[test]
fn every_home_runs_under_a_policy_of_each_kind() {
    for home in homes() {
        for name in ["adsl2plus-12-1", "lte-40-10"] {
            let line = line(name).unwrap();
            for policy in ["none", "sad-cbq", "cake", "full-both-ways"] {
                let (scenario, outcome) = short_run(&line, &home, policy);
                check(&format!("{name} {} {policy}", home.name), &scenario, &outcome);
            }
        }
    }
}

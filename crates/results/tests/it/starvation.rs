//! The demonstration: an upload from 60 to 120 s fills the modem, and the report explains its
//! effect on the download.

use std::sync::LazyLock;

use lastmile_model::OpenedBy;
use lastmile_results::comparison::{Comparison, Unloaded};
use lastmile_results::schema::{Phase, PhaseFlow};
use lastmile_results::{Run, report, table};

use crate::network::{bulk, modem, sad, tcp, upload_starves_download};
use crate::{run, summary};

static STARVED: LazyLock<Run> = LazyLock::new(|| run(&upload_starves_download(modem())));

fn phase(name: &str) -> &'static Phase {
    let phases = &STARVED.summary.phases;
    phases.iter().find(|phase| phase.name == name).unwrap_or_else(|| panic!("no phase {name} in {phases:?}"))
}

fn flow<'a>(phase: &'a Phase, name: &str) -> &'a PhaseFlow {
    phase.flows.iter().find(|flow| flow.name == name).expect("a flow of that phase")
}

#[test]
fn the_run_is_cut_where_the_upload_starts_and_stops() {
    let told: Vec<(&str, f64, f64)> =
        STARVED.summary.phases.iter().map(|phase| (phase.name.as_str(), phase.from_s, phase.to_s)).collect();
    assert_eq!(told, [("before upload", 0.0, 60.0), ("during upload", 60.0, 120.0), ("after upload", 120.0, 180.0)]);
}

#[test]
fn the_download_fills_the_line_until_the_upload_starts() {
    let download = flow(phase("before upload"), "download");
    let bound = download.bound_bps.unwrap();
    assert!(download.goodput_bps > 0.98 * bound && download.goodput_bps <= bound, "{download:?}");
    assert!(download.explanation.starts_with("rate of link down (9"), "{}", download.explanation);
}

#[test]
fn the_report_says_that_window_over_queue_delay_limits_the_download() {
    let during = phase("during upload");
    let download = flow(during, "download");
    let words = &download.explanation;
    assert!(words.starts_with("receive window 64 KiB / round trip "), "{words}");
    assert!(words.contains("is the queue of link up, where its ACKs wait"), "{words}");
    assert!(download.goodput_bps < 0.35 * download.bound_bps.unwrap(), "{download:?}");
    // Little's law: while the window is the limit, one window per round trip is delivered.
    let up = during.links.iter().find(|link| link.name == "up").unwrap();
    let share = download.limited_by.receive_window.unwrap();
    let round_trip_s = up.ack_queue_delay_mean_s.unwrap() + 0.05;
    let window_rate = 65_536.0 * 8.0 / round_trip_s;
    assert!(
        download.goodput_bps < window_rate && download.goodput_bps > 0.7 * share * window_rate,
        "{download:?} {up:?}"
    );
}

/// One ACK for many segments: the round trip in words is that of the octets, a window of which is delivered in each.
#[test]
fn the_round_trip_of_thinned_acks_is_that_of_the_data() {
    for queue in [modem(), sad(modem())] {
        let summary = summary(&upload_starves_download(queue));
        let download = flow(&summary.phases[1], "download");
        let (_, trip) = download.explanation.split_once("receive window 64 KiB / round trip ").expect("a window");
        let (value, unit) = trip.split(',').next().and_then(|trip| trip.split_once(' ')).expect("a time");
        let trip_s: f64 = value.parse::<f64>().expect("a number") * if unit == "s" { 1.0 } else { 1e-3 };
        let expected_s = 65_536.0 * 8.0 / download.goodput_bps;
        assert!((trip_s / expected_s - 1.0).abs() < 0.03, "{trip_s} for {expected_s}: {download:?}");
    }
}

/// The two-way form of the AMP bound: during the upload, the ACKs in the modem's FIFO release far
/// less than the line can carry.
#[test]
fn the_upload_leaves_less_to_the_acks_than_the_line_could_take() {
    let mut network = upload_starves_download(modem());
    // The modem can queue the whole window: nothing is lost, and every ACK acknowledges new data.
    network.traffic[2].source = bulk(&tcp(), None, OpenedBy::Sender);
    let summary = summary(&network);
    let (before, during) = (&summary.phases[0], &summary.phases[1]);
    let download = flow(during, "download");
    let (one_way, two_way) = (download.bound_bps.unwrap(), download.two_way_bound_bps.unwrap());
    assert!(download.goodput_bps <= two_way && two_way < 0.5 * one_way, "{download:?}");
    assert!(download.two_way_bound_by.as_deref().unwrap().starts_with("ACKs on link up, next to data that takes 9"));
    assert!(download.explanation.contains("; at most "), "{}", download.explanation);
    // The upload's own ACKs share the downstream with the download's data, which leave enough
    // capacity.
    assert_eq!(flow(during, "upload").two_way_bound_bps, None);
    assert_eq!(flow(before, "download").two_way_bound_bps, None);
}

#[test]
fn every_account_adds_up() {
    let summary = &STARVED.summary;
    assert!(summary.conservation.holds);
    assert_eq!(summary.conservation.bytes.dropped, summary.conservation.dropped_by_reason.values().sum::<u64>());
    for flow in &summary.flows {
        assert!(
            (flow.limits.limited_by.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9,
            "{:?}",
            flow.limits.limited_by
        );
        let in_phases: f64 = summary
            .phases
            .iter()
            .map(|phase| {
                let bits = |flow: &PhaseFlow| flow.goodput_bps * (phase.to_s - phase.from_s);
                phase.flows.iter().find(|other| other.name == flow.name).map_or(0.0, bits)
            })
            .sum();
        let total = flow.bytes_delivered as f64 * 8.0;
        assert!((in_phases - total).abs() < 1e-6 * total, "{}: {in_phases} of {total}", flow.name);
    }
    let replies: u64 = summary.phases.iter().map(|phase| phase.probes[0].received).sum();
    assert_eq!(replies, summary.probes[0].received);
}

/// Queueing delays come from a histogram with three significant digits, those of phases from exact
/// sums: both agree.
#[test]
fn the_histogram_of_waits_agrees_with_their_largest() {
    let summary = &STARVED.summary;
    for (index, link) in summary.links.iter().enumerate() {
        let largest =
            summary.phases.iter().filter_map(|phase| phase.links[index].queue_delay_max_s).fold(0.0, f64::max);
        let told = link.queue.queue_delay_s.max.unwrap();
        assert!(
            (told - largest).abs() <= 0.002 * largest,
            "{}: {told} in the histogram, {largest} in the phases",
            link.name
        );
    }
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let again = run(&upload_starves_download(modem()));
    assert_eq!(again.summary.to_json(), STARVED.summary.to_json());
    assert_eq!(report::page(&[again]), report::page(std::slice::from_ref(&*STARVED)));
}

/// A page without its scripts, which must be `scripts` in number.
fn static_part(page: &str, scripts: usize) -> String {
    assert_eq!(page.matches("<script").count(), scripts, "a name became markup");
    let mut parts = page.split("<script");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once("</script>").expect("a script ends").1)
}

/// Its script is permitted by its digest, and may request nothing. Without a script the drawings are complete.
#[test]
fn the_page_needs_no_network_and_no_script() {
    let page = report::page(std::slice::from_ref(&*STARVED));
    assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"));
    let page = static_part(&page, 3);
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("url("));
    for title in ["Goodput, ", "Queue, kB", "Round-trip time of probes, ", "Congestion window, ", "ACK number, "] {
        assert!(page.contains(title), "no panel {title:?}");
    }
    assert!(page.contains("is the queue of link up, where its ACKs wait"));
}

/// The caption has keys and values; runs with names of their own appear by name.
#[test]
fn a_comparison_says_what_is_compared() {
    let run = |policy: &str| {
        let mut run = STARVED.clone();
        run.label = policy.to_owned();
        run.own = vec![format!("access.policy={policy}")];
        run.summary.run.inputs.set = [vec!["seed=7".to_owned()], run.own.clone()].concat();
        run
    };
    let mut downloads = STARVED.summary.clone();
    downloads.flows.iter_mut().for_each(|flow| flow.goodput_bps = 1.72e6);
    let during = downloads.phases.iter_mut().flat_map(|phase| &mut phase.flows);
    during.for_each(|flow| flow.goodput_bps = 1.72e6);
    let alone = vec![vec![Unloaded::of(&downloads)]; 2];
    let page = report::comparison(&Comparison { alone, ..Comparison::of(vec![run("fifo"), run("cake")]) });
    assert!(page.contains("seed=7 · access.policy = fifo, cake · "), "{}", &page[..6_000]);
    assert!(page.contains("Baseline: the downloads alone have 1.72 Mbit/s."));
    let case = |name: &str, own: &[&str]| {
        let own: Vec<String> = own.iter().map(|set| (*set).to_owned()).collect();
        Run { label: name.to_owned(), own, ..STARVED.clone() }
    };
    let cases = [case("as it is", &[]), case("short queue", &["access.up.queue.limit=20 kB"])];
    assert!(
        report::comparison(&Comparison::of(cases.into())).contains(" · as it is, short queue · seed "),
        "cases are named, not valued"
    );
    let pairs = [("fifo", 1), ("fifo", 2), ("cake", 1), ("cake", 2)].map(|(policy, mbit)| {
        let rate = format!("{mbit} Mbit/s");
        case(&format!("{policy}, {rate}"), &[&format!("access.policy={policy}"), &format!("access.up.rate={rate}")])
    });
    assert!(
        report::comparison(&Comparison::of(pairs.into()))
            .contains(" · access.policy = fifo, cake · access.up.rate = 1 Mbit/s, 2 Mbit/s · "),
        "each key with its values"
    );
    let seeds = [1, 2].map(|seed| {
        let own = vec![format!("seed={seed}")];
        let mut run = Run { label: seed.to_string(), own, ..STARVED.clone() };
        run.summary.run.seed = seed;
        run
    });
    let page = report::comparison(&Comparison::of(seeds.into()));
    assert!(page.contains(" · seed = 1, 2 · 1"), "{}", &page[..6_000]);
    for title in
        ["Goodput of download, ", "Goodput of upload, ", "Round-trip time of ping, ", "Delay in the queue of up, "]
    {
        assert!(page.contains(title), "no panel {title:?}");
    }
}

#[test]
fn names_from_files_cannot_break_the_page() {
    let mut run = STARVED.clone();
    let evil = "<script>alert(1)</script>\"'&";
    run.summary.run.scenario = evil.into();
    run.label = evil.into();
    run.summary.flows[0].name = evil.into();
    run.summary.run.inputs.text = Some("</pre></details><script>".into());
    run.series[0].entity = evil.into();
    for (page, scripts) in [
        (report::page(&[run.clone()]), 3),
        (report::page(&[run.clone(), run.clone()]), 3),
        (report::figure(&[run.clone()], &["goodput_bps"]), 0),
        (
            report::figure_of_lines(
                &[report::Column { heading: evil.into(), runs: vec![run] }],
                &["Goodput of download"],
            ),
            0,
        ),
    ] {
        static_part(&page, scripts);
        assert!(!page.contains("alert(1)<"), "a name ends a script");
    }
}

#[test]
fn the_terminal_tells_it_too() {
    let text = table::run(&STARVED.summary, 100);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("What limited each flow"));
}

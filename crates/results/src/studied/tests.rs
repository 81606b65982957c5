use super::design::Design;
use super::words::{title, unit};
use super::*;
use crate::format;

/// Three rates, two delays, two policies, two seeds: the download is the rate, a tenth less at the longer delay. The
/// policy adds 1000, and the seed its number in tens.
fn study() -> Study {
    let value = |text: &str, number: Option<f64>| Value { text: text.to_owned(), number };
    let rates =
        vec![value("256 kbit/s", Some(256e3)), value("512 kbit/s", Some(512e3)), value("1.024 Mbit/s", Some(1_024e3))];
    let keys = vec![
        Key { name: "access.up.rate".to_owned(), values: rates, units: format::RATES },
        Key {
            name: "access.up.delay".to_owned(),
            values: vec![value("5 ms", Some(0.005)), value("100 ms", Some(0.1))],
            units: format::SECONDS,
        },
        Key {
            name: "access.policy".to_owned(),
            values: vec![value("none", None), value("<cake>", None)],
            units: format::NUMBERS,
        },
    ];
    let mut runs = Vec::new();
    for (rate, bps) in [256e3, 512e3, 1_024e3].into_iter().enumerate() {
        for (delay, share) in [1.0, 0.9].into_iter().enumerate() {
            for (policy, more) in [0.0, 1_000.0].into_iter().enumerate() {
                for seed in 1..=2_u32 {
                    let download = bps * share + more + f64::from(seed) * 10.0;
                    let values = vec![Some(download), (rate == 0).then_some(0.5)];
                    runs.push(Run { point: vec![rate, delay, policy], seed: seed.into(), values });
                }
            }
        }
    }
    let measures = vec!["download_bps".to_owned(), "ping.p50_s".to_owned()];
    Study { name: "a & b".to_owned(), keys, measures, known: 9, runs, version: "0", ..Study::default() }
}

/// The page without its script.
fn text(study: &Study) -> String {
    let page = page(study);
    page.split("<script").next().unwrap_or_default().to_owned()
}

#[test]
fn a_page_has_figures_maps_differences_and_runs() {
    let study = study();
    assert_eq!(page(&study), page(&study), "equal studies, equal pages");
    let text = text(&study);
    assert!(text.contains("a &amp; b") && text.contains("&lt;cake&gt;") && !text.contains("<cake>"));
    // A figure of each measure for each policy, with a line for each delay; a map likewise.
    assert!(text.contains("download: access.policy none, Mbit/s"), "{text}");
    assert_eq!(text.matches("data-panel=").count(), 4);
    assert_eq!(text.matches("figure class=\"heat\"").count(), 4);
    // 256 kbit/s and 5 ms without a policy: 256 015 bit/s. Seeds 10 apart: t(0.975, 1) = 12.706 times 5.
    let cell = "data-x=\"256 kbit/s\" data-y=\"5 ms\" data-mean=\"256015\" data-ci95=\"63.53";
    assert!(
        text.contains(cell) && text.contains("<title>access.up.rate 256 kbit/s, access.up.delay 5 ms: 256 kbit/s ±")
    );
    // The policy adds 1000 with each seed: the interval of the difference has no width.
    assert!(text.contains("Differences from access.policy none"));
    assert_eq!(text.matches("<td class=\"sure\">1 kbit/s ± 0 bit/s</td>").count(), 6, "{text}");
    // 24 runs; the ping is missing in two thirds of them.
    let runs = text.split("<h2>Runs</h2>").nth(1).unwrap();
    assert_eq!((runs.matches("<tr>").count(), runs.matches("<td>–</td>").count()), (1 + 24, 16));
    assert!(runs.contains("table.parquet has every run and 7 more measures."), "{runs}");
}

/// A mean of one run where its point has two says so: in the map, the figure and the differences.
#[test]
fn a_mean_of_fewer_runs_than_its_point_has_is_marked() {
    let whole = text(&study());
    assert!(!whole.contains(" of 2)") && !whole.contains("fewer seeds"), "{whole}");
    let mut study = study();
    study.runs[0].values[0] = None;
    let text = text(&study);
    assert!(text.contains("access.up.delay 5 ms: 256 kbit/s (1 of 2)</title>"), "{text}");
    assert_eq!(text.matches("means of fewer seeds: 1<").count(), 1, "{text}");
    assert_eq!(text.matches("<td>1 kbit/s (1 of 2)</td>").count(), 1, "{text}");
}

/// Two keys that vary together, as in a Latin hypercube: points are not joined, and there is no map.
#[test]
fn keys_that_vary_together_are_scattered() {
    let mut study = study();
    study.runs.retain(|run| run.point[1] == run.point[0] % 2 && run.point[2] == 0);
    study.keys[2].values.truncate(1);
    let points = study.points();
    let design = Design::of(&study, &points).unwrap();
    assert_eq!((design.across, design.lines, design.is_scattered), (0, None, true));
    let text = text(&study);
    assert!(text.contains("no line joins the points") && !text.contains("class=\"heat\""));
    assert!(!text.contains("class=\"line"), "{text}");
}

/// Words first, and two keys of a Latin hypercube: the first with numbers is the axis, and words have colours.
#[test]
fn numbers_are_the_axis_and_of_keys_that_vary_together_one_stands_for_all() {
    let mut study = study();
    let numbers =
        |scale: f64| (1..=4_u32).map(move |n| Value { text: n.to_string(), number: Some(f64::from(n) * scale) });
    let policy = study.keys.remove(2);
    let key =
        |name: &str, scale| Key { name: name.to_owned(), values: numbers(scale).collect(), units: format::NUMBERS };
    study.keys = vec![policy, key("up", 1.0), key("down", 10.0)];
    let run = |n: usize| Run { point: vec![n / 4, n % 4, (n + 2) % 4], seed: 1, values: vec![Some(1.0), None] };
    study.runs = (0..8).map(run).collect();
    let points = study.points();
    let design = Design::of(&study, &points).unwrap();
    assert_eq!((design.across, design.lines, design.is_scattered), (1, Some(0), true));
    assert!(design.figures.is_empty());
}

/// CUBIC, BBR and QUIC, whose transport and variant are paired: no two points of a figure have one place and one
/// colour. Paired numbers likewise; points of a Latin hypercube have places of their own.
#[test]
fn points_never_look_alike() {
    let value = |text: &str| Value { text: text.to_owned(), number: text.parse().ok() };
    let key = |name: &str, values: &[&str]| Key {
        name: name.to_owned(),
        values: values.iter().map(|text| value(text)).collect(),
        units: format::NUMBERS,
    };
    let design = |keys: Vec<Key>, points: &[&[usize]]| {
        let run = |point: &&[usize]| Run { point: point.to_vec(), seed: 1, values: vec![Some(1.0), None] };
        let study = Study { keys, runs: points.iter().map(run).collect(), ..study() };
        let design = Design::of(&study, &study.points()).unwrap();
        (design.across, design.lines, design.figures, design.is_scattered)
    };
    let (transport, variant) = (key("transport", &["tcp", "quic"]), key("variant", &["cubic", "bbr"]));
    let senders: [&[usize]; 3] = [&[0, 0], &[0, 1], &[1, 0]];
    assert_eq!(design(vec![transport.clone(), variant.clone()], &senders), (0, Some(1), vec![], false));
    let with_policies: Vec<Vec<usize>> =
        senders.iter().flat_map(|sender| (0..2).map(|policy| [*sender, &[policy]].concat())).collect();
    let with_policies: Vec<&[usize]> = with_policies.iter().map(Vec::as_slice).collect();
    let policies = key("policy", &["none", "cake"]);
    assert_eq!(design(vec![transport, variant, policies], &with_policies), (0, Some(1), vec![2], false));

    let (up, down) = (key("up", &["1", "2"]), key("down", &["10", "20"]));
    assert_eq!(design(vec![up, down], &senders), (0, Some(1), vec![], false));
    let (up, down) = (key("up", &["1", "2", "3"]), key("down", &["10", "20"]));
    assert_eq!(design(vec![up, down], &[&[0, 0], &[1, 1], &[2, 0]]), (0, None, vec![], true));
}

/// A hundred thousand runs: a row is a point, and the page stays small.
#[test]
fn a_large_study_is_told_by_points_and_says_what_is_left_out() {
    let mut study = study();
    let numbers = 5_000_usize;
    let value = |n: usize| Value { text: n.to_string(), number: Some(format::to_f64(n as u64)) };
    study.keys = vec![Key { name: "n".to_owned(), values: (0..numbers).map(value).collect(), units: format::NUMBERS }];
    let run = |n: usize| Run { point: vec![n / 20], seed: n as u64 % 20, values: vec![Some(n as f64), Some(0.1)] };
    study.runs = (0..20 * numbers).map(run).collect();
    let page = page(&study);
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert!(page.contains("100\u{202f}000 runs are too many for a page") && page.contains("further rows are left out"));
    assert!(page.contains("from 0 to 4999"));
}

#[test]
fn a_study_without_keys_has_its_runs_alone() {
    let mut study = study();
    study.keys.clear();
    study.runs.iter_mut().for_each(|run| run.point.clear());
    let text = text(&study);
    assert!(!text.contains("<svg") && text.contains("<h2>Runs</h2>"));
    study.runs.clear();
    assert!(page(&study).contains("<h2>Runs</h2>"));
}

#[test]
fn units_are_those_of_names() {
    let symbol = |measure: &str| units(measure)[0].1;
    assert_eq!(symbol("download_bps"), "Gbit/s");
    assert_eq!(symbol("ping.p50_s"), "s");
    assert_eq!(symbol("while upload: download: goodput_bps"), "Gbit/s");
    assert_eq!(symbol("idle: ping: RTT p50_s"), "s");
    assert_eq!((symbol("drops"), symbol("jain_index")), ("", ""));
    assert_eq!((symbol("flows.download.delay_s.p95"), symbol("links.up.queue_delay_s.count")), ("s", ""));
    assert_eq!((unit("flows.download.limited_by.receive_window"), unit("links.up.utilisation")), ("share", "share"));
    assert_eq!((unit("links.up.max_backlog_bytes"), unit("links.up.drops.tail")), ("bytes", "tail"));
    assert_eq!((title("ping.p50_s"), title("jain_index")), ("ping.p50".to_owned(), "jain_index".to_owned()));
}

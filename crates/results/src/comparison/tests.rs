use std::collections::BTreeSet;

use super::*;
use crate::schema::{
    Applications, Backup, Delay, FlowSetup, Line, Link, LinkQueue, PhaseFlow, PhaseProbe, Probe, QueueLimit, RoundTrip,
};

fn probe(protocol: &str, received: u64) -> Probe {
    let rtt_s = RoundTrip { p50: Some(0.03), p99: Some(0.08), max: Some(0.09), ..RoundTrip::default() };
    Probe {
        name: protocol.into(),
        class: "default".into(),
        protocol: protocol.into(),
        sent: received + 5,
        lost: 5,
        received,
        rtt_s,
        ..Probe::default()
    }
}

fn with_probes(received: u64) -> Summary {
    Summary { probes: vec![probe("icmp", received), probe("udp", received)], ..Summary::default() }
}

fn row(summary: &Summary) -> Row {
    Row::Line(Measured::of(summary))
}

fn names(summaries: &[Summary]) -> Vec<&'static str> {
    let rows: Vec<Vec<Row>> = summaries.iter().map(|summary| vec![row(summary)]).collect();
    table(&rows).0
}

/// By nearest rank the 99th percentile of 100 replies is the 99th of them, and of fewer the
/// maximum. One row with few replies decides for all rows.
#[test]
fn the_largest_of_few_replies_is_called_the_largest() {
    let (many, few) = (with_probes(400), with_probes(20));
    assert_eq!(Measured::of(&few).ping.p99_s, None);
    assert_eq!(Measured::of(&many).ping.p99_s, Some(0.08));
    assert!(names(std::slice::from_ref(&many)).contains(&"ping p99"));
    let columns = names(&[many, few]);
    assert!(columns.contains(&"ping max") && columns.contains(&"probe max"), "{columns:?}");
    assert!(!columns.iter().any(|name| name.ends_with("p99")), "{columns:?}");
}

/// 5 of 25 requests without a reply are 20 %; 5 of 1005 are too few for a column.
#[test]
fn a_probe_that_is_lost_does_not_look_fast() {
    let columns = names(&[with_probes(20), with_probes(1000)]);
    assert!(columns.contains(&"ping lost") && columns.contains(&"probe lost"), "{columns:?}");
    assert_eq!(Measured::of(&with_probes(20)).ping.lost_share, Some(0.2));
    assert!(!names(&[with_probes(1000)]).contains(&"ping lost"));
}

#[test]
fn ping_and_probe_are_told_apart_by_their_protocol_in_the_phase_too() {
    let part = |name: &str, p50| {
        let rtt_s = RoundTrip { p50: Some(p50), ..RoundTrip::default() };
        PhaseProbe { name: name.into(), received: 7, rtt_s, ..PhaseProbe::default() }
    };
    let phase = Phase { probes: vec![part("udp", 0.5), part("icmp", 0.1)], ..Phase::default() };
    let probes = with_probes(9);
    let times = [RoundTrips::of_ping(&probes, Some(&phase)), RoundTrips::of_probe(&probes, Some(&phase))];
    assert_eq!(times.map(|times| times.p50_s), [Some(0.1), Some(0.5)]);
    assert_eq!(RoundTrips::of_probe(&Summary::default(), Some(&phase)).p50_s, None);
}

/// A policy may put a marked ping over UDP first.
#[test]
fn the_probe_is_the_ping_without_a_code_point() {
    let marked = Probe { name: "urgent".into(), class: "EF".into(), ..probe("udp", 500) };
    let best_effort = Probe { rtt_s: RoundTrip { p50: Some(0.4), ..RoundTrip::default() }, ..probe("udp", 500) };
    let summary = Summary { probes: vec![marked.clone(), best_effort], ..Summary::default() };
    assert_eq!(Measured::of(&summary).probe.p50_s, Some(0.4));
    let alone = Summary { probes: vec![marked], ..Summary::default() };
    assert_eq!(Measured::of(&alone).probe, RoundTrips::default());
}

/// The slower of the shapers before and at the line holds packets back; one in the LAN is none of the line. Without a
/// shaper there is no column.
#[test]
fn the_slowest_shaper_of_each_direction_has_a_column() {
    let link = |name: &str, shaper_rate_bps| Link {
        name: name.into(),
        queue: LinkQueue { shaper_rate_bps, ..LinkQueue::default() },
        ..Link::default()
    };
    let with = |up: [Option<f64>; 2]| Summary {
        links: vec![link("middlebox-up", up[0]), link("up", up[1]), link("client-cpe", Some(1e3)), link("down", None)],
        ..Summary::default()
    };
    let rates = |up| {
        let queues = Measured::of(&with(up)).queues;
        (queues.down_shaper_rate_bps, queues.up_shaper_rate_bps)
    };
    assert_eq!(rates([Some(9.5e5), Some(8e5)]), (None, Some(8e5)));
    assert_eq!(rates([Some(9.5e5), None]), (None, Some(9.5e5)));
    let rows: Vec<Vec<Row>> = [None, Some(9.5e5)].map(|rate| vec![row(&with([rate, None]))]).into();
    let (columns, texts) = table(&rows);
    let place = columns.iter().position(|column| *column == "up shaper").expect("a column");
    assert_eq!([&texts[0][place], &texts[1][place]], ["–", "950 kbit/s"]);
    assert!(!columns.contains(&"down shaper") && !table(&rows[..1]).0.contains(&"up shaper"));
}

/// 3 packets lost and 90 ACKs merged at the line; drops in a LAN do not count for the line.
#[test]
fn merged_acks_are_no_drops() {
    let link = |name: &str, drops: &[(&str, u64)]| Link {
        name: name.into(),
        queue: LinkQueue {
            drops: drops.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            ..LinkQueue::default()
        },
        ..Link::default()
    };
    let links = vec![
        link("middlebox-up", &[("ack_merged", 80), ("tail", 1)]),
        link("up", &[("ack_filtered", 10)]),
        link("middlebox-down", &[("aqm", 2)]),
        link("client-cpe", &[("tail", 50)]),
    ];
    let measured = Measured::of(&Summary { links, ..Summary::default() });
    assert_eq!((measured.queues.drops, measured.queues.acks_merged), (Some(3), Some(90)));
}

#[test]
fn no_two_columns_have_one_name() {
    let both = [true, false];
    let distinct = |cells: &[Cell]| cells.iter().map(|cell| cell.column).collect::<BTreeSet<_>>().len();
    let layout = |ping_p99, probe_p99| Layout { ping_p99, probe_p99, has_baselines: true };
    for layout in both.iter().flat_map(|&ping_p99| both.map(|probe_p99| layout(ping_p99, probe_p99))) {
        let cells = Measured::of(&with_probes(9)).cells(layout);
        assert_eq!(distinct(&cells), cells.len());
    }
    let cells = MeasuredNetwork::default().cells();
    assert_eq!(distinct(&cells), cells.len());
}

/// Medians of 20, 30 and 40 ms: mean 30 ms, and t(0.975, 2) = 4.3027 times 10 ms over the root of 3
/// is 24.8 ms.
#[test]
fn a_row_of_several_seeds_is_a_mean_with_its_interval() {
    let with_median = |p50| {
        let rtt_s = RoundTrip { p50: Some(p50), ..RoundTrip::default() };
        Summary { probes: vec![Probe { rtt_s, ..probe("icmp", 9) }], ..Summary::default() }
    };
    let seeds: Vec<Row> = [0.02, 0.03, 0.04].map(|p50| row(&with_median(p50))).into();
    let (columns, texts) = table(&[seeds.clone(), vec![row(&with_median(0.05))]]);
    let column = columns.iter().position(|name| *name == "ping p50").unwrap();
    assert_eq!(texts.iter().map(|row| row[column].as_str()).collect::<Vec<_>>(), ["30.0 ms ± 24.8 ms", "50.0 ms"]);
    let measures = means(&[seeds]).remove(0);
    let median = measures.iter().find(|measure| measure.name == "ping p50").unwrap();
    assert!(
        (median.mean.unwrap() - 0.03).abs() < 1e-12 && (median.ci95.unwrap() - 0.024_841).abs() < 1e-6,
        "{median:?}"
    );
    assert_eq!((median.unit, median.runs), ("s", 3));
}

/// Of one in a hundred lost by two seeds and none by the third, the mean is two thirds of that: a seed without losses
/// counts. Of one seed in three without a backup's end, the mean is over two.
#[test]
fn a_mean_is_over_all_seeds_that_have_a_value() {
    let seed = |lost| {
        let probe = Probe { lost, received: 100 - lost, ..probe("icmp", 0) };
        let backup = Backup { end_s: (lost > 0).then_some(2.0), ..Backup::default() };
        let applications = Applications { backups: vec![backup], ..Applications::default() };
        let drops = [("ack_merged".to_owned(), 30 * lost)].into();
        let up = Link { name: "up".into(), queue: LinkQueue { drops, ..LinkQueue::default() }, ..Link::default() };
        Summary { probes: vec![probe], applications, links: vec![up], ..Summary::default() }
    };
    let seeds: Vec<Row> = [0, 1, 1].map(|lost| row(&seed(lost))).into();
    let measures = means(std::slice::from_ref(&seeds)).remove(0);
    let of = |name: &str| measures.iter().find(|measure| measure.name == name).map(|it| (it.mean, it.runs));
    assert_eq!(of("ping lost"), Some((Some(0.02 / 3.0), 3)));
    assert_eq!(of("ACKs merged"), Some((Some(20.0), 3)));
    assert_eq!(of("backup end"), Some((Some(2.0), 2)));
    let (columns, texts) = table(&[seeds, [0, 0, 0].map(|lost| row(&seed(lost))).into()]);
    let texts_of = |name: &str| {
        let column = columns.iter().position(|column| *column == name).unwrap();
        [texts[0][column].as_str(), texts[1][column].as_str()]
    };
    assert_eq!(texts_of("ping lost"), ["0.7 % ± 1.4 %", "0.0 % ± 0.0 %"]);
    assert_eq!(texts_of("backup end"), ["2000.0 ms ± 0.0 ms (2 of 3)", "–"]);
    assert_eq!(texts_of("ACKs merged"), ["20 ± 43", "0 ± 0"]);
}

/// Rows with other values have other downloads alone; the table then has a column of them.
#[test]
fn rows_are_compared_with_downloads_of_the_same_values() {
    let download = |goodput_bps| {
        let setup = FlowSetup { tcp: Some("cubic".into()), ..FlowSetup::default() };
        let bytes_delivered = 1_000_000;
        let flow =
            Flow { name: "d".into(), direction: "down".into(), setup, goodput_bps, bytes_delivered, ..Flow::default() };
        Summary { flows: vec![flow], ..Summary::default() }
    };
    let run =
        |label: &str, bps| Run { label: label.into(), own: Vec::new(), summary: download(bps), series: Vec::new() };
    let told = |alone: [f64; 2]| {
        let alone = alone.map(|bps| vec![Unloaded::of(&download(bps))]).into();
        let comparison = Comparison { alone, ..Comparison::of(vec![run("slow", 5e6), run("fast", 10e6)]) };
        let rows = comparison.measured();
        let (columns, texts) = table(&rows);
        let of = |name: &str| {
            let column = columns.iter().position(|column| *column == name);
            column.map(|column| [texts[0][column].clone(), texts[1][column].clone()])
        };
        (baseline(&rows), about_the_baseline(&rows).unwrap_or_default(), of("baseline"), of("of baseline"))
    };
    let texts = |texts: [&str; 2]| Some(texts.map(str::to_owned));
    let (bps, about, column, shares) = told([10e6, 20e6]);
    assert_eq!((bps, about.as_str()), (None, "Baseline: the downloads alone, with the other values of the row."));
    assert_eq!((column, shares), (texts(["10 Mbit/s", "20 Mbit/s"]), texts(["50.0 %", "50.0 %"])));
    let (bps, about, column, shares) = told([10e6, 10e6]);
    assert_eq!((bps, about.as_str()), (Some(10e6), "Baseline: the downloads alone have 10 Mbit/s."));
    assert_eq!((column, shares), (None, texts(["50.0 %", "100.0 %"])));
    assert_eq!(told([10e6, 10.001e6]).0, Some(10e6), "the queues of other rows change the last digits");
    let line = |capacity| {
        let down = Link { name: "down".into(), payload_capacity_bps: Some(capacity), ..Link::default() };
        let alone = Summary { links: vec![down.clone()], ..download(10e6) };
        let summary = Summary { links: vec![down], ..download(5e6) };
        Measured::in_phase(&summary, None, Some(&Unloaded::of(&alone)))
    };
    let about = |capacity| about_the_baseline(&[vec![Row::Line(line(capacity))]]).unwrap();
    assert_eq!(about(9.95e6), "Baseline: the downloads alone have 10 Mbit/s.");
    assert!(about(9.5e6).contains("That is more than the line carries"), "{}", about(9.5e6));
    assert_eq!(told([0.0, 0.0]), (None, String::new(), None, None), "nothing is no baseline");
    assert_eq!(told([10e6, 0.0]).3, texts(["50.0 %", "–"]));
}

/// One row has too few replies for a 99th percentile, and another one no ping: all have the largest reply. What is of
/// the whole run is of no phase.
#[test]
fn all_rows_have_the_same_measures_and_each_says_of_what_time() {
    let in_phase = |summary: Summary| {
        let phase = Phase { name: "during up".into(), probes: Vec::new(), ..Phase::default() };
        Row::Line(Measured::in_phase(&summary, Some(&phase), None))
    };
    let rows = [with_probes(400), with_probes(20), Summary::default()].map(|summary| vec![in_phase(summary)]);
    let means = means(&rows);
    let keys = |row: &[Measure]| row.iter().map(|one| (one.name.clone(), one.phase.clone())).collect::<Vec<_>>();
    assert!(means.iter().all(|row| keys(row) == keys(&means[0])), "{means:?}");
    let of = |row: usize, name: &str| means[row].iter().find(|measure| measure.name == name).cloned().unwrap();
    assert!(!means[0].iter().any(|measure| measure.name == "ping p99"));
    assert!(of(1, "ping max").mean.is_some());
    assert_eq!((of(2, "ping max").mean, of(2, "ping max").runs), (None, 0));
    for (name, phase) in [("ping p50", "during up"), ("download", "during up"), ("ping lost", WHOLE_RUN)] {
        assert_eq!(of(0, name).phase, phase, "{name}");
    }
    assert!(["probe lost", "drops", "ACKs merged"].iter().all(|name| of(0, name).phase == WHOLE_RUN));
}

/// Two lines: 3 and 5 packets lost, means of 10 + 2 and 30 ms upstream, the longest of 50 ms.
#[test]
fn the_links_of_several_lines_count_together() {
    let link = |name: &str, tail, mean, max| {
        let queue_delay_s = Delay { mean: Some(mean), max: Some(max), ..Delay::default() };
        let drops = [("tail".to_owned(), tail)].into();
        Link { name: name.into(), queue: LinkQueue { drops, queue_delay_s, ..LinkQueue::default() }, ..Link::default() }
    };
    let line = |name: &str| Line { name: name.into(), ..Line::default() };
    let links = vec![
        link("up-1", 3, 0.01, 0.02),
        link("middlebox-up-1", 0, 0.002, 0.03),
        link("up-2", 5, 0.03, 0.04),
        link("client-cpe-1", 9, 1.0, 1.0),
    ];
    let summary = Summary { links, lines: vec![line("line-1"), line("line-2")], ..Summary::default() };
    let measured = Measured::of(&summary);
    assert_eq!((measured.queues.drops, measured.queues.down_queue_delay_mean_s), (Some(8), None));
    assert!((measured.queues.up_queue_delay_mean_s.unwrap() - 0.021).abs() < 1e-12, "{measured:?}");
    assert!((measured.queues.up_queue_delay_max_s.unwrap() - 0.05).abs() < 1e-12, "{measured:?}");
}

/// Five files of 8 MB one after another on 12 Mbit/s are 12 Mbit/s, not 60.
#[test]
fn transfers_one_after_another_have_the_rate_of_the_line() {
    let flow = |number: u32| Flow {
        direction: "down".into(),
        setup: FlowSetup { tcp: Some("cubic".into()), ..FlowSetup::default() },
        start_s: f64::from(number) * 6.0,
        bytes_delivered: 9_000_000,
        goodput_bps: 12e6,
        ..Flow::default()
    };
    let summary = Summary { flows: (0..5).map(flow).collect(), ..Summary::default() };
    assert!((of_direction(&summary, None, "down") - 12e6).abs() < 1.0, "{}", of_direction(&summary, None, "down"));
}

/// One run is compared in a phase, one as a whole for want of phases.
#[test]
fn what_the_rows_measure_is_told() {
    let flow = |direction: &str| {
        let setup = FlowSetup { tcp: Some("cubic".into()), ..FlowSetup::default() };
        Flow { name: direction.into(), direction: direction.into(), setup, ..Flow::default() }
    };
    let part = |name: &str| PhaseFlow { name: name.into(), offered: true, goodput_bps: 1e6, ..PhaseFlow::default() };
    let during =
        Phase { name: "during upload".into(), to_s: 9.0, flows: vec![part("down"), part("up")], ..Phase::default() };
    let about = |phases: Vec<Phase>| {
        let summary = Summary { flows: vec![flow("down"), flow("up")], phases, ..Summary::default() };
        let comparison =
            Comparison::of(vec![Run { label: String::new(), own: Vec::new(), summary, series: Vec::new() }]);
        about_the_rows(&comparison, &comparison.measured())
    };
    assert_eq!(about(vec![during]), "Measured during upload; losses, drops and applications over the whole run.");
    let whole = "Measured over the whole run. There are no phases: the flows are more than record.flows.";
    assert_eq!(about(Vec::new()), whole);
}

/// A network without an access line next to a line has no goodput of downloads, and no drops of a line.
#[test]
fn a_network_beside_a_line_has_none_of_its_values() {
    let run = |direction: &str| {
        let setup = FlowSetup { tcp: Some("cubic".into()), ..FlowSetup::default() };
        let flow = Flow { name: "flow".into(), direction: direction.into(), setup, ..Flow::default() };
        let summary = Summary { flows: vec![flow], ..Summary::default() };
        Run { label: direction.into(), own: Vec::new(), summary, series: Vec::new() }
    };
    let rows = Comparison::of(vec![run("down"), run("one to another")]).measured();
    let values = |row: &[Row]| {
        let Row::Line(measured) = &row[0] else { panic!("a line") };
        (measured.download_bps, measured.upload_bps, measured.queues.drops, measured.queues.acks_merged)
    };
    assert_eq!(values(&rows[0]), (Some(0.0), Some(0.0), Some(0), Some(0)));
    assert_eq!(values(&rows[1]), (None, None, None, None));
}

/// An upload that one run starves is in no other phase there: all rows are of the phase of the upload. Runs without a
/// common phase say what each measures.
#[test]
fn all_rows_measure_one_phase() {
    let flow = |direction: &str| {
        let setup = FlowSetup { tcp: Some("cubic".into()), ..FlowSetup::default() };
        Flow { name: direction.into(), direction: direction.into(), setup, ..Flow::default() }
    };
    let phase = |name: &str, from_s: f64, up: f64| {
        let offered = !name.starts_with("after");
        let part = |name: &str, offered, goodput_bps| PhaseFlow {
            name: name.into(),
            offered,
            goodput_bps,
            ..PhaseFlow::default()
        };
        let flows = vec![part("down", true, 2e6), part("up", offered, up)];
        let traffic = flows.iter().filter(|flow| flow.offered).map(|flow| flow.name.clone()).collect();
        Phase { name: name.into(), from_s, to_s: from_s + 10.0, flows, traffic, ..Phase::default() }
    };
    let run = |label: &str, phases: Vec<Phase>| {
        let summary = Summary { flows: vec![flow("down"), flow("up")], phases, ..Summary::default() };
        Run { label: label.into(), own: Vec::new(), summary, series: Vec::new() }
    };
    let starved = run("none", vec![phase("during up", 10.0, 0.0), phase("after up", 20.0, 1e3)]);
    let served = run("cake", vec![phase("during up", 10.0, 1e6), phase("after up", 20.0, 0.0)]);
    let other = run("other", vec![phase("during it", 10.0, 1e6)]);
    let places = |runs: &[&Run]| {
        let comparison = Comparison::of(runs.iter().map(|run| (*run).clone()).collect());
        let rows = comparison.measured();
        (rows.iter().map(|row| measured_where(row)).collect::<Vec<_>>(), about_the_rows(&comparison, &rows))
    };
    let (rows, about) = places(&[&starved, &served]);
    assert_eq!(rows, ["during up", "during up"]);
    assert_eq!(about, "Measured during up; losses, drops and applications over the whole run.");
    // So does each alone, as a study has it, though nothing of the upload arrives in one of them.
    for run in [&starved, &served] {
        let comparison = Comparison::of(vec![run.clone()]);
        let Row::Line(measured) = &comparison.measured()[0][0] else { panic!("a line") };
        assert_eq!((&*measured.phase, measured.phase_from_s, measured.phase_to_s), ("during up", 10.0, 20.0));
    }
    let (_, about) = places(&[&starved, &run("late", vec![phase("during up", 12.0, 1e6)])]);
    assert!(about.ends_with(" It begins or ends at other times in some runs."), "{about}");
    let (rows, about) = places(&[&served, &other]);
    assert_eq!(rows, ["during up", "during it"]);
    assert!(about.starts_with("Measured different parts of the runs: cake during up; other during it; "), "{about}");
}

/// Limits are named for rows whose queue is the line's own, once where all have the same ones.
#[test]
fn the_limits_of_the_lines_own_queues_are_named() {
    let link = |name: &str, limit| Link { name: name.into(), limit, ..Link::default() };
    let packets = |count| QueueLimit { queue_limit_packets: Some(count), ..QueueLimit::default() };
    let bytes = |count| QueueLimit { queue_limit_bytes: Some(count), ..QueueLimit::default() };
    let on_wire = QueueLimit { queue_limit_wire_bytes: Some(1_250_000), ..QueueLimit::default() };
    let run = |label: &str, up| Run {
        label: label.into(),
        own: Vec::new(),
        summary: Summary { links: vec![link("down", on_wire), link("up", up)], ..Summary::default() },
        series: Vec::new(),
    };
    let about = |runs: &[Run]| about_the_limits(&Comparison::of(runs.to_vec()));
    let same = "Limits of the line's own queues: 1.25 MB on the wire down, 1\u{202f}000 packets up.";
    let rows = [run("fifo", packets(1_000)), run("sad", packets(1_000)), run("short", bytes(16_000))];
    assert_eq!(about(&rows[..2]).unwrap(), same);
    let mut boxed = run("cake", bytes(206_000));
    boxed.summary.links.push(link("middlebox-up", QueueLimit::default()));
    let of_none = same.replace("up.", "up (fifo).");
    assert_eq!(about(&[rows[0].clone(), boxed.clone()]).unwrap(), of_none);
    let differ = of_none.replace("(fifo)", "(fifo, sad); 1.25 MB on the wire down, 16 kB up (short)");
    assert_eq!(about(&rows).unwrap(), differ);
    let many: Vec<Run> = (0..4).map(|kind| run(&kind.to_string(), bytes(16_000 + kind * 1_000))).collect();
    assert_eq!(about(&many), None);
    assert_eq!(about(&[boxed]), None);
}

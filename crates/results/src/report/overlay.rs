//! The panels of a comparison: one for each quantity, with one line per run.
//!
//! The quantities are those that a user experiences: the goodput of each `[[traffic]]`, the round trip of
//! each ping, and every queue of the path, also in a middlebox. Flows of one `[[traffic]]` are combined,
//! and lines are means over a time, because superimposed sawteeth of several runs hide the
//! differences. The table above the panels has the maxima. Panels without information are omitted:
//! queues of at most one packet, and datagrams at one constant rate in all runs.

use std::collections::BTreeMap;

use lastmile_analysis::quantiles::upper_median;

use super::panel::{Line, Panel, Reference, mean};
use super::panels::{self, means, narrowest, source};
use super::scale::{Axis, round_step};
use crate::Run;
use crate::format::{self, Unit};
use crate::measures::{busy_links, distinct};
use crate::schema::Summary;

/// The most panels of one quantity; those that vary least are omitted.
const MOST: usize = 6;

/// Time and value.
type Points = Vec<(f64, f64)>;
/// A label with its value.
type Labelled = (String, f64);

/// A quantity that is compared.
struct Quantity {
    series: &'static str,
    /// The title, before the name of the subject.
    title: &'static str,
    units: &'static [Unit],
    /// The name of the panel to which a series belongs.
    subject: for<'a> fn(&[Run], &'a str) -> &'a str,
    /// Whether the panel of a subject is informative. The last argument is its maximum as a share
    /// of that of all panels.
    tells: fn(&[Run], &str, &Panel, f64) -> bool,
    /// A reference value with its label.
    reference: fn(&[Run], &Summary, &str) -> Option<Labelled>,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        series: "goodput_bps",
        title: "Goodput of",
        units: format::RATES,
        subject: traffic,
        tells: |runs, name, panel, _| !is_one_rate(runs, name, panel),
        reference: capacity,
    },
    Quantity {
        series: "rtt_s",
        title: "Round-trip time of",
        units: format::SECONDS,
        subject: |_, probe| probe,
        tells: |_, _, _, _| true,
        reference: |_, _, _| None,
    },
    Quantity {
        series: "queue_delay_s",
        title: "Delay in the queue of",
        units: format::SECONDS,
        subject: |_, link| link,
        tells: is_queue,
        reference: |_, _, _| None,
    },
    Quantity {
        series: "queue_bytes",
        title: "Queue of",
        units: format::BYTES,
        subject: |_, link| link,
        tells: is_queue,
        reference: |_, _, _| None,
    },
];

/// The least share of the largest delay for the panel of a queue that is neither on a busy link nor
/// in a middlebox.
const WORTH_A_PANEL: f64 = 0.05;
/// IP bytes of the largest packet of most lines.
const PACKET: u64 = 1500;
/// Rates that differ by less than this share count as equal.
const ONE_RATE: f64 = 0.1;
/// The share of means that may differ: those at both ends cover less than a bin.
const ELSEWHERE: f64 = 0.02;

/// The panels that compare `runs`, over the time of the first.
pub(crate) fn overlays(runs: &[Run]) -> Vec<Panel> {
    QUANTITIES.iter().flat_map(|quantity| of_quantity(quantity, runs)).collect()
}

fn of_quantity(quantity: &Quantity, runs: &[Run]) -> Vec<Panel> {
    let bin = bin(runs);
    let series = |run: &Run| {
        let of_quantity = run.series.iter().filter(|series| series.name == quantity.series);
        of_quantity
            .map(|series| ((quantity.subject)(runs, &series.entity).to_owned(), series.points.clone()))
            .collect::<Vec<_>>()
    };
    let runs_series: Vec<Vec<(String, Points)>> = runs.iter().map(series).collect();
    let subjects = distinct(runs_series.iter().flatten().map(|(name, _)| name.clone()));
    let mut panels: Vec<(f64, String, Panel)> = Vec::new();
    for subject in subjects {
        let samples: Vec<Points> = runs_series
            .iter()
            .map(|series| sum(series.iter().filter(|(name, _)| *name == subject).map(|(_, points)| points)))
            .collect();
        let lines: Vec<Points> = samples.iter().map(|samples| means(samples, bin)).collect();
        let peak =
            lines.iter().flatten().map(|(_, value)| *value).filter(|value| value.is_finite()).fold(0.0, f64::max);
        if peak > 0.0 {
            let panel = panel(quantity, runs, &subject, (lines, samples), peak);
            panels.push((peak, subject, panel));
        }
    }
    let largest = panels.iter().map(|(peak, ..)| *peak).fold(0.0, f64::max);
    panels.retain(|(peak, subject, panel)| (quantity.tells)(runs, subject, panel, peak / largest));
    let mut peaks: Vec<f64> = panels.iter().map(|(peak, ..)| *peak).collect();
    peaks.sort_by(|a, b| b.total_cmp(a));
    let least = peaks.get(MOST - 1).copied().unwrap_or(0.0);
    panels.into_iter().filter(|(peak, ..)| *peak >= least).take(MOST).map(|(.., panel)| panel).collect()
}

/// The time of a mean.
fn bin(runs: &[Run]) -> f64 {
    round_step(runs[0].summary.run.duration_s / panels::MEANS)
}

/// The `[[traffic]]` of a flow. Phases name it: one whose own name ends in a number is not a member of another, unless
/// the number is that of a line, as in `download-line-3`.
fn traffic<'a>(runs: &[Run], flow: &'a str) -> &'a str {
    let mut names = runs.iter().flat_map(|run| &run.summary.phases).flat_map(|phase| &phase.traffic);
    let source = source(flow);
    if !source.ends_with("-line") && names.any(|name| name == flow) { flow } else { source }
}

/// True for a queue with more than one packet on a link that is busy in some run or has no rate, as
/// in a middlebox; elsewhere only if its delay is not much shorter than theirs.
fn is_queue(runs: &[Run], link: &str, _: &Panel, share: f64) -> bool {
    let links = || runs.iter().flat_map(|run| &run.summary.links).filter(|other| other.name == link);
    let busy = || runs.iter().any(|run| busy_links(&run.summary).iter().any(|other| other == link));
    links().any(|link| link.queue.max_backlog_bytes > PACKET)
        && (share >= WORTH_A_PANEL || links().any(|link| link.rate_bps.is_none()) || busy())
}

/// True for datagrams that are received at one rate, all the time and in all runs.
fn is_one_rate(runs: &[Run], name: &str, panel: &Panel) -> bool {
    let flows = runs.iter().flat_map(|run| &run.summary.flows);
    let mut flows = flows.filter(|flow| traffic(runs, &flow.name) == name).peekable();
    if flows.peek().is_none() || flows.any(|flow| flow.setup.tcp.is_some()) {
        return false;
    }
    // From the first to the last mean above zero; gaps between them count.
    let lasting = |line: &Line| {
        let first = line.points.iter().position(|(_, bps)| *bps > 0.0)?;
        let last = line.points.iter().rposition(|(_, bps)| *bps > 0.0)?;
        Some(line.points[first..=last].iter().map(|(_, bps)| *bps).collect::<Vec<f64>>())
    };
    let all: Vec<f64> = panel.lines.iter().filter_map(lasting).flatten().collect();
    let Some(median) = upper_median(&all) else { return false };
    let elsewhere = all.iter().filter(|bps| (*bps - median).abs() > ONE_RATE * median).count();
    format::to_f64(elsewhere as u64) <= (ELSEWHERE * format::to_f64(all.len() as u64)).max(2.0)
}

/// The panel of `subject`: a line per run of means, with the samples under them.
fn panel(
    quantity: &Quantity,
    runs: &[Run],
    subject: &str,
    (lines, samples): (Vec<Points>, Vec<Points>),
    peak: f64,
) -> Panel {
    let bin = bin(runs);
    let references: Vec<Option<Labelled>> =
        runs.iter().map(|run| (quantity.reference)(runs, &run.summary, subject)).collect();
    // A capacity that differs between runs is no reference for all lines.
    let same = references.windows(2).all(|pair| pair[0] == pair[1]);
    let reference = references.into_iter().next().flatten().filter(|(_, value)| same && *value <= peak * 1.5);
    let top = reference.as_ref().map_or(peak, |(_, value)| peak.min(value * panels::HEADROOM).max(*value));
    let mut notes = vec![format!("means of {}", format::seconds(bin))];
    if let Some((name, _)) = &reference {
        notes.insert(0, format!("dashed: {name}"));
    }
    if peak > top {
        notes.insert(0, "peaks above the scale are cut".to_owned());
    }
    let line = |(number, (points, samples)): (usize, (Points, Points))| Line {
        label: runs[number].label.clone(),
        colour: number,
        points,
        samples,
        ..Line::default()
    };
    let title = format!("{} {subject}", quantity.title);
    let named_by = Some(apart(&runs[0].summary, &lines));
    Panel {
        title,
        axis: Axis::from_zero(top, quantity.units, 5),
        lines: lines
            .into_iter()
            .zip(samples)
            .enumerate()
            .filter(|(_, (points, _))| !points.is_empty())
            .map(line)
            .collect(),
        references: reference.into_iter().map(|(_, value)| Reference { label: String::new(), value }).collect(),
        notes,
        named_by,
        marks: false,
    }
}

/// The phase in which the means of `lines` differ most, or the whole run.
fn apart(summary: &Summary, lines: &[Points]) -> (f64, f64) {
    let spread = |span: (f64, f64)| {
        let means = || lines.iter().filter(|line| !line.is_empty()).map(|line| mean(line, span));
        means().fold(0.0, f64::max) - means().fold(f64::INFINITY, f64::min)
    };
    let spans = summary.phases.iter().map(|phase| (phase.from_s, phase.to_s));
    spans.max_by(|a, b| spread(*a).total_cmp(&spread(*b))).unwrap_or((0.0, summary.run.duration_s))
}

/// The sum of series at each time with a sample of any of them.
fn sum<'a>(series: impl Iterator<Item = &'a Points>) -> Points {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for (time, value) in series.flatten() {
        // Times are not negative, so the order of their bits is theirs.
        *sums.entry(time.to_bits()).or_default() += value;
    }
    sums.into_iter().map(|(time, value)| (f64::from_bits(time), value)).collect()
}

/// The payload capacity of the narrowest link that the data of a `[[traffic]]` crosses; `None` if its flows have
/// several.
fn capacity(runs: &[Run], summary: &Summary, name: &str) -> Option<Labelled> {
    let flows = summary.flows.iter().filter(|flow| traffic(runs, &flow.name) == name);
    let mut links = flows.map(|flow| narrowest(summary, flow));
    let (link, bps) = links.next()??;
    links.all(|other| other.is_some_and(|(name, _)| name == link)).then_some(())?;
    Some((format!("capacity of {link}, {}", format::rate(bps)), bps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Flow, FlowSetup, Link, LinkQueue, RunFacts};
    use crate::series::Series;

    fn run(label: &str, series: &[(&str, &str, f64)]) -> Run {
        let series = series.iter().map(|(name, entity, value)| Series {
            name: (*name).into(),
            entity: (*entity).into(),
            points: vec![(0.0, *value), (1.0, *value)],
        });
        let summary = Summary { run: RunFacts { duration_s: 10.0, ..RunFacts::default() }, ..Summary::default() };
        Run { label: label.to_owned(), own: Vec::new(), summary, series: series.collect() }
    }

    #[test]
    fn a_panel_has_a_line_for_each_run_and_flows_of_a_source_are_one() {
        let goodput = |entity, bps| ("goodput_bps", entity, bps);
        let one = run("one", &[goodput("download-1", 1e6), goodput("download-2", 2e6)]);
        let other = run("other", &[goodput("download-1", 5e5), goodput("download-2", 5e5), ("rtt_s", "ping", 0.1)]);
        let panels = overlays(&[one, other]);
        let titles: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["Goodput of download", "Round-trip time of ping"]);
        let lines: Vec<(&str, usize, f64)> =
            panels[0].lines.iter().map(|line| (line.label.as_str(), line.colour, line.points[0].1)).collect();
        assert_eq!(lines, [("one", 0, 3e6), ("other", 1, 1e6)]);
        // A run has one colour in all panels, also where another run has no line.
        assert_eq!(panels[1].lines.iter().map(|line| line.colour).collect::<Vec<_>>(), [1]);
    }

    /// Two flows of one `[[traffic]]` on two lines have no capacity in common; two `[[traffic]]`, each on a line of its
    /// own, have one each.
    #[test]
    fn traffic_whose_name_ends_in_a_number_is_not_added_up() {
        let names = ["upload-1", "upload-2", "download-1", "download-2", "web-line-1", "web-line-2"];
        let links = ["up-1", "up-2", "down-1", "down-2", "dslam", "dslam"];
        let mut one = run("one", &names.map(|name| ("goodput_bps", name, 8e4)));
        let traffic = ["upload-1", "upload-2", "download", "web-line-1", "web-line-2"].map(String::from).to_vec();
        one.summary.phases = vec![crate::schema::Phase { traffic, ..Default::default() }];
        one.summary.links =
            links.map(|name| Link { payload_capacity_bps: Some(9e4), ..link(name, 0, Some(1e5)) }).to_vec();
        let flow = |(name, link): (&str, &str)| {
            let setup = FlowSetup { data_path: [link.into()].into(), tcp: Some("reno".into()), ..FlowSetup::default() };
            Flow { name: name.into(), setup, ..Flow::default() }
        };
        one.summary.flows = names.into_iter().zip(links).map(flow).collect();
        let panels = overlays(&[one]);
        let told: Vec<(&str, f64, &str)> = panels
            .iter()
            .map(|panel| (panel.title.as_str(), panel.lines[0].points[0].1, panel.notes[0].as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("Goodput of upload-1", 8e4, "dashed: capacity of up-1, 90 kbit/s"),
                ("Goodput of upload-2", 8e4, "dashed: capacity of up-2, 90 kbit/s"),
                ("Goodput of download", 16e4, "means of 50 ms"),
                ("Goodput of web-line", 16e4, "peaks above the scale are cut"),
            ]
        );
    }

    #[test]
    fn names_stand_where_lines_differ_most() {
        let phase = |from_s, to_s| crate::schema::Phase { from_s, to_s, ..Default::default() };
        let summary =
            Summary { phases: vec![phase(0.0, 5.0), phase(5.0, 8.0), phase(8.0, 10.0)], ..Summary::default() };
        let lines = [vec![(1.0, 2.0), (6.0, 9.0), (9.0, 2.0)], vec![(1.0, 2.0), (6.0, 1.0), (9.0, 3.0)]];
        assert_eq!(apart(&summary, &lines), (5.0, 8.0));
    }

    fn titles(runs: &[Run]) -> Vec<String> {
        overlays(runs).into_iter().map(|panel| panel.title).collect()
    }

    fn link(name: &str, max_backlog_bytes: u64, rate_bps: Option<f64>) -> Link {
        Link {
            name: name.into(),
            queue: LinkQueue { max_backlog_bytes, ..LinkQueue::default() },
            rate_bps,
            ..Link::default()
        }
    }

    #[test]
    fn queues_of_idle_links_are_left_out() {
        assert!(overlays(&[run("one", &[("queue_bytes", "backbone", 1e3)])]).is_empty());
    }

    /// 1.2 s in the modem of one run, 83 and 5 ms in the middlebox of the other, and a packet on a
    /// LAN: the remedy's queue is shown, although it is short compared with the modem's.
    #[test]
    fn every_queue_of_the_path_is_drawn_and_none_of_one_packet() {
        let delay = |entity, s| ("queue_delay_s", entity, s);
        let mut bare = run("none", &[delay("up", 1.2), delay("client-cpe", 0.1e-3)]);
        bare.summary.links = vec![link("up", 60_000, Some(5e5)), link("client-cpe", 1500, Some(1e8))];
        let own = [delay("up", 0.0), delay("middlebox-up", 0.083), delay("middlebox-down", 0.005)];
        let mut ours = run("ours", &own);
        ours.summary.links = vec![link("middlebox-up", 9_000, None), link("middlebox-down", 4_500, None)];
        let drawn = ["up", "middlebox-up", "middlebox-down"].map(|name| format!("Delay in the queue of {name}"));
        assert_eq!(titles(&[bare, ours]), drawn);
    }

    /// 68 kbit/s in both runs are not informative; 68 and 40 are, and so is TCP at any rate.
    #[test]
    fn a_call_that_has_its_rate_in_every_run_is_not_drawn() {
        let with = |bps, tcp: Option<&str>| {
            let mut run = run("one", &[("goodput_bps", "call", bps)]);
            run.summary.flows = vec![Flow {
                name: "call".into(),
                setup: FlowSetup { tcp: tcp.map(Into::into), ..FlowSetup::default() },
                ..Flow::default()
            }];
            run.series[0].points = (0..100).map(|n| (f64::from(n), if n < 98 { bps } else { 0.0 })).collect();
            run
        };
        assert!(titles(&[with(68e3, None), with(68.4e3, None)]).is_empty());
        assert_eq!(titles(&[with(68e3, None), with(40e3, None)]), ["Goodput of call"]);
        assert_eq!(titles(&[with(68e3, Some("cubic")), with(68e3, Some("cubic"))]), ["Goodput of call"]);
    }
}

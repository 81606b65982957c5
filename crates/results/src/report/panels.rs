//! The panels of a run: its series, one panel per quantity, with capacities and limits for
//! comparison.
//!
//! Several runs have equal panels on equal scales for comparison side by side.

mod quantities;
mod references;

use std::collections::{BTreeMap, BTreeSet};

use self::quantities::{QUANTITIES, Quantity};
use self::references::capacities_of_lines;
pub(crate) use self::references::narrowest;
use super::panel::{Line, Panel, Reference};
use super::scale::{Axis, round_step};
use super::style::COLOURS;
use crate::Run;
use crate::format;
use crate::schema::{FlowKind, Summary};
use crate::series::Series;

/// Lines below this share of a panel's scale are mentioned in a note instead of drawn.
const TOO_SMALL: f64 = 0.01;
/// The highest end of a rate's scale, as a multiple of the capacity.
pub(crate) const HEADROOM: f64 = 1.2;
/// The approximate number of means in the line of a rate.
pub(crate) const MEANS: f64 = 250.0;
/// The most lines of a panel with separate colours and names; beyond, those of one source share
/// both.
const SEPARATE_LINES: usize = 6;
/// The most flows whose bounds are drawn.
const FLOWS_WITH_BOUNDS: usize = 3;

/// The panels of each run, one for each series that is `wanted`. All runs have equal panels on
/// equal scales. The lines of a single run have a colour each. With several runs each run has a
/// colour, and each measured subject its dashes.
pub(crate) fn panels(runs: &[Run], wanted: impl Fn(&str) -> bool) -> Vec<Vec<Panel>> {
    let mut palette = Palette::default();
    let several = runs.len() > 1;
    let mut all = vec![Vec::new(); runs.len()];
    for quantity in QUANTITIES.iter().filter(|quantity| wanted(quantity.series)) {
        let Some(common) = Common::new(quantity, runs) else { continue };
        for (number, (panels, run)) in all.iter_mut().zip(runs).enumerate() {
            let mut look = if several { Look::OfRun(number) } else { Look::OfNames(&mut palette) };
            panels.push(common.panel(quantity, run, &mut look));
        }
    }
    all
}

/// Series and title of each quantity of which a run has samples.
pub(crate) fn available(runs: &[Run]) -> Vec<(&'static str, &'static str)> {
    let has = |quantity: &&Quantity| runs.iter().any(|run| of(run, quantity).next().is_some());
    QUANTITIES.iter().filter(has).map(|quantity| (quantity.series, quantity.title)).collect()
}

/// Colours by name, in the order of first use.
#[derive(Default)]
struct Palette(BTreeMap<String, usize>);

impl Palette {
    fn colour(&mut self, name: &str) -> usize {
        let next = self.0.len() % COLOURS;
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

/// The meaning of colours and dashes.
enum Look<'a> {
    /// Each name has a colour.
    OfNames(&'a mut Palette),
    /// The colour is that of the run with this number; each name has its dashes.
    OfRun(usize),
}

/// The properties that the panels of one quantity share between runs.
struct Common {
    drawn: BTreeSet<String>,
    left_out: Vec<String>,
    grouped: bool,
    largest: f64,
    /// True if any peak is above the scale.
    cut: bool,
}

impl Common {
    /// `None` if no run has a sample of the quantity.
    fn new(quantity: &Quantity, runs: &[Run]) -> Option<Self> {
        let mut peaks: BTreeMap<&str, f64> = BTreeMap::new();
        let busy: BTreeSet<String> =
            runs.iter().flat_map(|run| capacities_of_lines(&run.summary).into_keys()).collect();
        // Lines of nearly idle links would hide those of the busy ones, which carry the same
        // traffic.
        let worth = |series: &Series| !quantity.busy_links || busy.is_empty() || busy.contains(&series.entity);
        let all = runs.iter().flat_map(|run| of(run, quantity).map(move |series| (run, series)));
        for (run, series) in all.filter(|(_, series)| worth(series)) {
            let peak = peaks.entry(&series.entity).or_default();
            let points = points(quantity, run, series);
            *peak = points.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).fold(*peak, f64::max);
        }
        let peak = peaks.values().copied().reduce(f64::max)?;
        let capacity = capacity(quantity, runs);
        let largest = capacity.map_or(peak, |capacity| peak.min(capacity * HEADROOM));
        let cut = peak > largest;
        let names = |big: bool| {
            let named = peaks.iter().filter(move |(_, peak)| (**peak >= largest * TOO_SMALL) == big);
            named.map(|(name, _)| (*name).to_owned())
        };
        let (drawn, left_out): (BTreeSet<String>, Vec<String>) = (names(true).collect(), names(false).collect());
        let references = runs.iter().flat_map(|run| (quantity.references)(&run.summary));
        let bounds = runs.iter().flat_map(|run| bounds(quantity, &run.summary)).flat_map(|(_, points)| points);
        // A limit far above the lines would flatten them: the scale includes it up to 1.5 times the
        // largest value.
        let compared = references.map(|r| r.value).chain(bounds.map(|(_, value)| value));
        let top = compared.filter(|value| *value <= largest * 1.5).fold(largest, f64::max);
        Some(Self { grouped: drawn.len() > SEPARATE_LINES, drawn, left_out, largest: top, cut })
    }

    fn panel(&self, quantity: &Quantity, run: &Run, look: &mut Look<'_>) -> Panel {
        let axis = Axis::from_zero(self.largest, quantity.units, 5);
        let top = axis.span().1;
        let mut lines = self.lines(quantity, run, look);
        let references: Vec<Reference> =
            (quantity.references)(&run.summary).into_iter().filter(|reference| reference.value <= top).collect();
        for (flow, points) in bounds(quantity, &run.summary) {
            // A bound that equals a capacity all the time is not drawn twice.
            let known = |value: f64| references.iter().any(|r| (r.value - value).abs() <= 0.01 * value);
            if points.iter().all(|(_, value)| *value <= top) && !points.iter().all(|(_, value)| known(*value)) {
                let (label, (colour, dash)) = (format!("bound of {flow}"), self.look(&flow, look));
                lines.push(Line { label, colour, dash, bound: true, points, ..Line::default() });
            }
        }
        Panel {
            title: quantity.title.to_owned(),
            axis,
            lines,
            references,
            notes: self.notes(quantity, run),
            named_by: None,
            marks: false,
        }
    }

    fn lines(&self, quantity: &Quantity, run: &Run, look: &mut Look<'_>) -> Vec<Line> {
        let drawn: Vec<&Series> = of(run, quantity).filter(|series| self.drawn.contains(&series.entity)).collect();
        let mut members: BTreeMap<&str, usize> = BTreeMap::new();
        for series in &drawn {
            *members.entry(source(&series.entity)).or_default() += 1;
        }
        let line = |series: &&Series| {
            let group = source(&series.entity);
            let count = members.get(group).copied().unwrap_or(1);
            let faint = self.grouped && count > 1;
            let name = if faint { group } else { &series.entity };
            let label = if faint { format!("{group} (each of {count})") } else { series.entity.clone() };
            let (colour, dash) = self.look(name, look);
            let samples = if mean_over_s(quantity, run).is_some() { series.points.clone() } else { Vec::new() };
            let member = if faint { series.entity.clone() } else { String::new() };
            let points = points(quantity, run, series);
            Line { label, colour, dash, faint, points, samples, member, ..Line::default() }
        };
        drawn.iter().map(line).collect()
    }

    /// Colour and dashes of the lines of this name.
    fn look(&self, name: &str, look: &mut Look<'_>) -> (usize, usize) {
        match look {
            Look::OfNames(palette) => (palette.colour(name), 0),
            Look::OfRun(number) => {
                let mut names: Vec<&str> = self.drawn.iter().map(|drawn| self.named(drawn)).collect();
                names.dedup();
                (*number, names.iter().position(|other| *other == name).unwrap_or(0))
            }
        }
    }

    /// The name of a series in a panel: with many lines, that of its source.
    fn named<'a>(&self, entity: &'a str) -> &'a str {
        if self.grouped { source(entity) } else { entity }
    }

    fn notes(&self, quantity: &Quantity, run: &Run) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(bin) = mean_over_s(quantity, run) {
            notes.push(format!("means of {}", format::seconds(bin)));
        }
        if self.cut {
            notes.push("peaks above the scale are cut".to_owned());
        }
        match self.left_out.as_slice() {
            [] => {}
            names @ ([_] | [_, _]) => notes.push(format!("below 1 % of the scale, not drawn: {}", names.join(", "))),
            names => notes.push(format!("{} below 1 % of the scale, not drawn", names.len())),
        }
        notes
    }
}

/// The largest capacity or line rate for comparison with a rate of the panel.
fn capacity(quantity: &Quantity, runs: &[Run]) -> Option<f64> {
    let references = runs.iter().filter(|_| quantity.rate).flat_map(|run| (quantity.references)(&run.summary));
    references.map(|reference| reference.value).reduce(f64::max)
}

/// The points to draw: means for a rate, otherwise samples.
fn points(quantity: &Quantity, run: &Run, series: &Series) -> Vec<(f64, f64)> {
    mean_over_s(quantity, run).map_or_else(|| series.points.clone(), |bin| means(&series.points, bin))
}

/// The length of the bins for means of rates; `None` for other quantities, and for samples at
/// longer intervals.
fn mean_over_s(quantity: &Quantity, run: &Run) -> Option<f64> {
    let bin = round_step(run.summary.run.duration_s / MEANS);
    let sampled = of(run, quantity).filter(|series| series.points.len() > 1);
    let apart = sampled.map(|series| series.points[1].0 - series.points[0].0).reduce(f64::min)?;
    (quantity.rate && apart * 1.5 < bin).then_some(bin)
}

/// Means over bins of `bin` seconds, each at the middle of its samples.
pub(crate) fn means(points: &[(f64, f64)], bin: f64) -> Vec<(f64, f64)> {
    // A sample describes the time before it, so one on a boundary belongs to the bin that ends
    // there.
    let bin_of = |time: f64| (time / bin - 1e-9).floor();
    let bins = points.chunk_by(|a, b| bin_of(a.0) <= bin_of(b.0) && bin_of(b.0) <= bin_of(a.0));
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64, points: &[(f64, f64)]| {
        points.iter().map(of).sum::<f64>() / points.len() as f64
    };
    bins.map(|points| (mean(&|point| point.0, points), mean(&|point| point.1, points))).collect()
}

fn of<'a>(run: &'a Run, quantity: &'a Quantity) -> impl Iterator<Item = &'a Series> {
    run.series.iter().filter(|series| series.name == quantity.series && !series.points.is_empty())
}

/// The source of a flow: `download` for `download-7`.
pub(crate) fn source(flow: &str) -> &str {
    match flow.rsplit_once('-') {
        Some((source, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => source,
        _ => flow,
    }
}

/// The bound of each of a few flows as steps over the phases.
fn bounds(quantity: &Quantity, summary: &Summary) -> Vec<(String, Vec<(f64, f64)>)> {
    if quantity.series != "goodput_bps" || summary.flows.len() > FLOWS_WITH_BOUNDS {
        return Vec::new();
    }
    let steps = |name: &str| {
        let phases = summary.phases.iter();
        let in_phase = phases.filter_map(|phase| {
            let bound = phase.flows.iter().find(|flow| flow.name == name)?.bound_bps?;
            Some([(phase.from_s, bound), (phase.to_s, bound)])
        });
        in_phase.flatten().collect::<Vec<_>>()
    };
    // The mean rate of a capture in a phase is no bound at any moment of it.
    let steady = summary.flows.iter().filter(|flow| flow.setup.kind != FlowKind::Replay);
    let flows = steady.map(|flow| (flow.name.clone(), steps(&flow.name)));
    flows.filter(|(_, points)| !points.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Flow, FlowSetup};

    #[test]
    fn flows_of_one_source_are_told_by_their_number() {
        assert_eq!(source("download-12"), "download");
        assert_eq!(source("dslam-gateway"), "dslam-gateway");
        assert_eq!(source("download-"), "download-");
    }

    fn run(series: Vec<Series>) -> Run {
        Run { label: String::new(), own: Vec::new(), summary: Summary::default(), series }
    }

    fn goodput(entity: &str, bps: f64) -> Series {
        Series { name: "goodput_bps".into(), entity: entity.into(), points: vec![(0.0, bps), (1.0, bps)] }
    }

    #[test]
    fn many_flows_of_a_source_share_one_name_and_colour() {
        let series = (1..=48).map(|n| goodput(&format!("download-{n}"), 1e6)).chain([goodput("upload", 5e5)]);
        let panels = panels(&[run(series.collect())], |_| true);
        let mut labels: Vec<&str> = panels[0][0].lines.iter().map(|line| line.label.as_str()).collect();
        labels.dedup();
        assert_eq!(labels, ["download (each of 48)", "upload"]);
        assert!(panels[0][0].lines[..48].iter().all(|line| line.colour == 0 && line.faint));
        assert!(!panels[0][0].lines[48].faint);
    }

    #[test]
    fn what_is_too_small_to_see_is_named_instead() {
        let panels = panels(&[run(vec![goodput("a", 1e6), goodput("b", 1e3)])], |_| true);
        assert_eq!(panels[0][0].lines.len(), 1);
        assert_eq!(panels[0][0].notes, ["below 1 % of the scale, not drawn: b"]);
    }

    #[test]
    fn means_keep_the_area_under_a_rate() {
        let points: Vec<(f64, f64)> = (1..=40).map(|n| (f64::from(n) * 0.1, f64::from(n % 7))).collect();
        let means = means(&points, 1.0);
        assert_eq!(means.len(), 4, "{means:?}");
        let area = |points: &[(f64, f64)]| points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64;
        assert!((area(&means) - area(&points)).abs() < 1e-12);
        assert!((means[0].0 - 0.55).abs() < 1e-12, "samples at 0.1 to 1.0 s");
    }

    #[test]
    fn a_burst_above_the_line_does_not_flatten_the_rest() {
        let mut burst = goodput("a", 1e6);
        burst.points[1].1 = 35e6;
        let mut run = run(vec![burst]);
        let (link, flow) = (crate::schema::Link::default(), Flow::default());
        run.summary.links = vec![crate::schema::Link { name: "down".into(), payload_capacity_bps: Some(2e6), ..link }];
        run.summary.flows =
            vec![Flow { setup: FlowSetup { data_path: ["down".into()].into(), ..FlowSetup::default() }, ..flow }];
        let panel = panels(&[run], |_| true).remove(0).remove(0);
        assert!(panel.axis.span().1 < 3e6, "{:?}", panel.axis.span());
        assert_eq!(panel.notes, ["peaks above the scale are cut"]);
    }

    /// Two flows in two runs: the colour is the run's, the dashes are the flow's.
    #[test]
    fn of_several_runs_a_colour_is_a_run_and_dashes_are_a_flow() {
        let both = || run(vec![goodput("download", 1e6), goodput("upload", 5e5)]);
        let looks = |panels: &[Panel]| -> Vec<(usize, usize)> {
            panels[0].lines.iter().map(|line| (line.colour, line.dash)).collect()
        };
        let panels_of_two = panels(&[both(), both()], |_| true);
        assert_eq!(looks(&panels_of_two[0]), [(0, 0), (0, 1)]);
        assert_eq!(looks(&panels_of_two[1]), [(1, 0), (1, 1)]);
        assert_eq!(looks(&panels(&[both()], |_| true)[0]), [(0, 0), (1, 0)], "of one run alone colours are flows");
    }

    #[test]
    fn runs_share_their_scales() {
        let panels = panels(&[run(vec![goodput("a", 1e6)]), run(vec![goodput("a", 9e6)])], |_| true);
        assert_eq!(panels[0][0].axis.span(), panels[1][0].axis.span());
    }
}

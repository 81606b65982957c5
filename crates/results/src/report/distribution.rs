//! Distributions of round trips: a cumulative distribution and a histogram of each probe (as
//! figures 7.1 to 7.8 of Brouer 2005).

use maud::{Markup, html};

use super::frame::frame;
use super::gallery::Gallery;
use super::panel::{Frame, Line, Panel};
use super::scale::Axis;
use crate::Run;
use crate::format::{self, to_f64};
use crate::schema::{Distribution, Probe};

/// The fewest replies for which a distribution is drawn.
const FEWEST: u64 = 20;

/// A pair of drawings for the probes of one run, or for each probe of several runs; empty without
/// enough replies.
pub(crate) fn figures(runs: &[Run], frame_like: Option<&Frame>, gallery: &Gallery) -> Markup {
    let [only] = runs else { return of_several(runs, frame_like, gallery) };
    let lines = only.summary.probes.iter().map(|probe| (probe.name.clone(), probe)).collect();
    pair("Round trips", lines, (only, frame_like), gallery)
}

/// A pair of drawings for each probe of any run, with one line per run.
fn of_several(runs: &[Run], frame_like: Option<&Frame>, gallery: &Gallery) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for probe in runs.iter().flat_map(|run| &run.summary.probes) {
        if !names.contains(&&*probe.name) {
            names.push(&probe.name);
        }
    }
    let lines = |name: &str| {
        let of_run = |run: &'_ Run| run.summary.probes.iter().find(|probe| probe.name == name).cloned();
        runs.iter().filter_map(|run| Some((run.label.clone(), of_run(run)?))).collect::<Vec<_>>()
    };
    html! {
        @for name in names {
            @let lines = lines(name);
            (pair(&format!("Round trips of {name}"),
                lines.iter().map(|(label, probe)| (label.clone(), probe)).collect(), (&runs[0], frame_like), gallery))
        }
    }
}

fn pair(
    title: &str,
    lines: Vec<(String, &Probe)>,
    (run, frame_like): (&Run, Option<&Frame>),
    gallery: &Gallery,
) -> Markup {
    let lines: Vec<(String, &Distribution)> = lines
        .into_iter()
        .filter(|(_, probe)| probe.received >= FEWEST)
        .map(|(label, probe)| (label, &probe.rtt_distribution))
        .collect();
    let width_s = common_width(&lines);
    let binned: Vec<(String, Distribution)> =
        lines.iter().map(|(label, distribution)| (label.clone(), widened(distribution, width_s))).collect();
    let ends = lines.iter().map(|(_, own)| *own).chain(binned.iter().map(|(_, wide)| wide)).filter_map(span);
    let Some((from, to)) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return html! {} };
    let (own, unit) = (frame(&run.summary), format::unit_for(to, format::SECONDS));
    let frame = Frame {
        time: Axis::between(from, to, unit, 8),
        across: "Round-trip time".into(),
        phases: Vec::new(),
        ..frame_like.cloned().unwrap_or(own)
    };
    let binned = binned.iter().map(|(label, wide)| (label.clone(), wide)).collect::<Vec<_>>();
    let panels = [
        panel(format!("{title} at or below a time"), &lines, cumulative),
        panel(format!("{title} by time, in bins of {}", format::seconds(width_s)), &binned, shares),
    ];
    html! { @for panel in &panels { (gallery.figure(panel, &frame, true)) } }
}

fn panel(title: String, lines: &[(String, &Distribution)], points: fn(&Distribution) -> Vec<(f64, f64)>) -> Panel {
    let line = |(number, (label, distribution)): (usize, &(String, &Distribution))| Line {
        label: label.clone(),
        colour: number,
        dash: 0,
        points: points(distribution),
        ..Line::default()
    };
    let lines: Vec<Line> = lines.iter().enumerate().map(line).collect();
    let largest = lines.iter().flat_map(|line| &line.points).map(|(_, share)| *share).fold(0.0, f64::max);
    Panel {
        title,
        axis: Axis::from_zero(largest, format::SHARES, 5),
        lines,
        references: Vec::new(),
        notes: Vec::new(),
        named_by: None,
        marks: false,
    }
}

/// The least width that is a whole number of bins of each distribution. Widths are 1, 2 or 5 times a power of ten, so
/// the widest bins are that wide, or half of it.
fn common_width(lines: &[(String, &Distribution)]) -> f64 {
    let widths = || lines.iter().filter_map(|(_, distribution)| distribution.bin_width_s);
    let widest = widths().fold(0.0, f64::max);
    let is_whole = |ratio: f64| (ratio - ratio.round()).abs() < 1e-6 * ratio;
    if widths().all(|own| is_whole(widest / own)) { widest } else { 2.0 * widest }
}

/// The distribution in bins of `width_s`, each of which holds whole bins of its own.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of a bin: whole and positive")]
fn widened(distribution: &Distribution, width_s: f64) -> Distribution {
    let Some(own_s) = distribution.bin_width_s else { return Distribution::default() };
    // The bin that holds the middle of an own one.
    let bin = |number: u64| ((to_f64(number) + 0.5) * own_s / width_s) as u64;
    let first_bin = bin(distribution.first_bin);
    let mut counts = Vec::new();
    for (number, count) in (distribution.first_bin..).zip(&distribution.counts) {
        let place = (bin(number) - first_bin) as usize;
        counts.resize(place + 1, 0);
        counts[place] += count;
    }
    Distribution { bin_width_s: Some(width_s), first_bin, counts }
}

/// From the lower end of the first bin to the upper end of the last.
fn span(distribution: &Distribution) -> Option<(f64, f64)> {
    let width = distribution.bin_width_s?;
    let first = to_f64(distribution.first_bin);
    Some((first * width, (first + to_f64(distribution.counts.len() as u64)) * width))
}

/// The upper end of each bin, and the share of values below it.
fn cumulative(distribution: &Distribution) -> Vec<(f64, f64)> {
    let Some((from, _)) = span(distribution) else { return Vec::new() };
    let (width, all) = (distribution.bin_width_s.unwrap_or_default(), distribution.counts.iter().sum::<u64>());
    let mut below = 0;
    let ends = (1..).zip(&distribution.counts).map(|(bin, count)| {
        below += count;
        (from + to_f64(bin) * width, to_f64(below) / to_f64(all))
    });
    std::iter::once((from, 0.0)).chain(ends).collect()
}

/// Both ends of each bin with the share of values in it, which draws steps.
fn shares(distribution: &Distribution) -> Vec<(f64, f64)> {
    let Some((from, to)) = span(distribution) else { return Vec::new() };
    let (width, all) = (distribution.bin_width_s.unwrap_or_default(), distribution.counts.iter().sum::<u64>());
    let steps = (0..).zip(&distribution.counts).flat_map(|(bin, count)| {
        let share = to_f64(*count) / to_f64(all);
        [(from + to_f64(bin) * width, share), (from + to_f64(bin + 1) * width, share)]
    });
    std::iter::once((from, 0.0)).chain(steps).chain([(to, 0.0)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution() -> Distribution {
        Distribution { bin_width_s: Some(0.5), first_bin: 2, counts: vec![1, 0, 3] }
    }

    #[test]
    fn a_cumulative_distribution_ends_at_one() {
        assert_eq!(cumulative(&distribution()), [(1.0, 0.0), (1.5, 0.25), (2.0, 0.25), (2.5, 1.0)]);
        assert_eq!(cumulative(&Distribution::default()), []);
    }

    /// Bins of 20 and of 2 ms: of 50 values from 6 to 10 ms all are in the first bin of 20 ms. Bins of 2 and 5 ms have
    /// 10 ms in common.
    #[test]
    fn histograms_of_one_axis_have_bins_of_one_width() {
        let of = |ms: f64, first_bin, counts: &[u64]| Distribution {
            bin_width_s: Some(ms / 1e3),
            first_bin,
            counts: counts.to_vec(),
        };
        let (wide, narrow) = (of(20.0, 2, &[1, 0, 3]), of(2.0, 3, &[20, 30, 0, 0, 0, 0, 0, 5]));
        let width_s = common_width(&[(String::new(), &wide), (String::new(), &narrow)]);
        assert_eq!((widened(&wide, width_s), widened(&narrow, width_s)), (wide, of(20.0, 0, &[50, 5])));
        let (two, five) = (of(2.0, 6, &[1, 2, 3]), of(5.0, 1, &[4, 5]));
        let width_s = common_width(&[(String::new(), &two), (String::new(), &five)]);
        assert_eq!((widened(&two, width_s), widened(&five, width_s)), (of(10.0, 1, &[6]), of(10.0, 0, &[4, 5])));
    }

    #[test]
    fn a_histogram_has_the_share_of_each_bin() {
        let steps =
            [(1.0, 0.0), (1.0, 0.25), (1.5, 0.25), (1.5, 0.0), (2.0, 0.0), (2.0, 0.75), (2.5, 0.75), (2.5, 0.0)];
        assert_eq!(shares(&distribution()), steps);
    }
}

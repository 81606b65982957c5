//! Comparisons with one row per run. Over an access line a row is about the phase in which both
//! directions are busy, or about the whole run without one. Over other networks a row has
//! connections, queues of cells and losses.

mod applications;
mod calls;
mod cell;
mod network;
mod queues;
mod unloaded;

use lastmile_theory::interval::Mean;
use serde::Serialize;

pub use self::applications::WorstApplications;
pub use self::calls::Calls;
pub(crate) use self::cell::WHOLE_RUN;
use self::cell::{Cell, Quantity};
pub use self::network::MeasuredNetwork;
pub use self::queues::{Queues, about_the_limits};
pub use self::unloaded::{Baseline, Unloaded};
use crate::Run;
use crate::format;
use crate::goodput::{is_counted, of_direction};
use crate::measures::{ENOUGH_FOR_P99, distinct};
use crate::phases;
use crate::schema::{Flow, Phase, Probe, Summary};
use crate::seeds::{Measure, Seeded};

/// A row of a comparison: the result of one run.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a comparison has few rows")]
pub enum Row {
    /// A run over an access line.
    Line(Measured),
    /// A run over a network without an access line.
    Network(MeasuredNetwork),
}

/// The rows of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One row per run, or per set of runs that differ by seed.
    pub rows: Vec<Seeded>,
    /// For each row the downloads without other traffic and with the row's other values, with each of the seeds; empty
    /// if unknown.
    pub alone: Vec<Vec<Unloaded>>,
}

impl Comparison {
    /// A comparison with one row per run.
    #[must_use]
    pub fn of(runs: Vec<Run>) -> Self {
        let row = |run: Run| Seeded { label: run.label.clone(), runs: vec![run] };
        Self { rows: runs.into_iter().map(row).collect(), alone: Vec::new() }
    }

    /// Each row, run by run; all runs are of one kind.
    #[must_use]
    pub fn measured(&self) -> Vec<Vec<Row>> {
        let all: Vec<&Run> = self.rows.iter().flat_map(|row| &row.runs).collect();
        let over_networks = network::all_over_networks(&all);
        let port = if over_networks { network::busiest(&all) } else { None };
        let common = common_phase(&all);
        let measured = |(seed, run): (usize, &Run), alone: Option<&Vec<Unloaded>>| {
            if over_networks {
                return Row::Network(MeasuredNetwork::of(run, port.as_deref()));
            }
            let own = common.and_then(|common| run.summary.same_phase(common));
            let phase = own.or_else(|| busiest(&run.summary));
            Row::Line(Measured::in_phase(&run.summary, phase, alone.and_then(|alone| alone.get(seed))))
        };
        let row = |(number, row): (usize, &Seeded)| {
            row.runs.iter().enumerate().map(|run| measured(run, self.alone.get(number))).collect()
        };
        self.rows.iter().enumerate().map(row).collect()
    }

    /// Number of runs per row.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.rows.first().map_or(0, |row| row.runs.len())
    }
}

/// Names of columns, which are unique, and the text of each row. A row has one run, or several that
/// differ by seed: means with 95 % intervals. Columns without any value are omitted.
#[must_use]
pub fn table(rows: &[Vec<Row>]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let layout = Layout::of(rows);
    let rows: Vec<Vec<Vec<Cell>>> = rows.iter().map(|row| row.iter().map(|run| run.cells(layout)).collect()).collect();
    let runs = || rows.iter().flatten();
    let told: Vec<usize> =
        (0..runs().next().map_or(0, Vec::len)).filter(|column| runs().any(|cells| cells[*column].is_told())).collect();
    let columns = runs().next().map_or_else(Vec::new, |cells| told.iter().map(|place| cells[*place].column).collect());
    let text = |runs: &Vec<Vec<Cell>>, place: usize| {
        cell::over_runs(&runs.iter().map(|cells| &cells[place]).collect::<Vec<_>>())
    };
    let texts = rows.iter().map(|runs| told.iter().map(|place| text(runs, *place)).collect()).collect();
    (columns, texts)
}

/// For each of the rows, the mean of each column over its runs, which differ by seed. All rows have the same columns:
/// those in which any run has a value.
#[must_use]
pub fn means(rows: &[Vec<Row>]) -> Vec<Vec<Measure>> {
    let layout = Layout::of(rows);
    let cells: Vec<Vec<Vec<Cell>>> =
        rows.iter().map(|runs| runs.iter().map(|run| run.cells(layout)).collect()).collect();
    let columns = cells.iter().flatten().next().map_or(0, Vec::len);
    let is_known = |column: &usize| cells.iter().flatten().any(|cells| cells[*column].is_known());
    let known: Vec<usize> = (0..columns).filter(is_known).collect();
    let of_row = |(runs, cells): (&Vec<Row>, &Vec<Vec<Cell>>)| {
        let place = measured_where(runs);
        let column = |column: &usize| cells.iter().map(|cells| &cells[*column]).collect::<Vec<_>>();
        known.iter().map(|number| cell::measure(&place, &column(number))).collect()
    };
    rows.iter().zip(&cells).map(of_row).collect()
}

impl Row {
    fn cells(&self, layout: Layout) -> Vec<Cell> {
        match self {
            Self::Line(measured) => measured.cells(layout),
            Self::Network(measured) => measured.cells(),
        }
    }
}

/// The part that the row measures, in words: a phase, or the whole run and a port; of several seeds each part that
/// differs.
#[must_use]
pub fn measured_where(runs: &[Row]) -> String {
    let place = |row: &Row| match row {
        Row::Line(measured) => measured.phase.clone(),
        Row::Network(MeasuredNetwork { port: Some(port), .. }) => {
            format!("over the whole run, the queue at port {port}")
        }
        Row::Network(_) => WHOLE_RUN.to_owned(),
    };
    let places = distinct(runs.iter().map(place));
    if places.is_empty() { WHOLE_RUN.to_owned() } else { places.join(" or ") }
}

/// Names of the phases that the rows measure; none if they measure whole runs.
#[must_use]
pub fn measured_phases(rows: &[Vec<Row>]) -> Vec<&str> {
    let lines = rows.iter().flatten().filter_map(|row| match row {
        Row::Line(measured) => Some(&*measured.phase),
        Row::Network(_) => None,
    });
    lines.filter(|phase| *phase != WHOLE_RUN).collect()
}

/// A sentence that names the phase, or the parts of the runs, that the rows measure. Where rows measure a phase, it
/// also names the quantities that are of the whole run.
#[must_use]
pub fn about_the_rows(comparison: &Comparison, rows: &[Vec<Row>]) -> String {
    let places: Vec<String> = rows.iter().map(|runs| measured_where(runs)).collect();
    let place = if distinct(places.iter()).len() > 1 {
        let each = comparison.rows.iter().zip(&places).map(|(row, place)| format!("{} {place}", row.label));
        format!("different parts of the runs: {}", each.collect::<Vec<_>>().join("; "))
    } else {
        places.into_iter().next().unwrap_or_else(|| WHOLE_RUN.to_owned())
    };
    let is_of_a_phase = |row: &Row| matches!(row, Row::Line(measured) if measured.phase != WHOLE_RUN);
    let of_a_phase = rows.iter().flatten().any(is_of_a_phase);
    let spans = distinct(rows.iter().flatten().filter_map(|row| match row {
        Row::Line(measured) => Some((&measured.phase, measured.phase_from_s, measured.phase_to_s)),
        Row::Network(_) => None,
    }));
    let differ = spans.iter().any(|(name, ..)| spans.iter().filter(|(other, ..)| other == name).count() > 1);
    let differ = if differ { " It begins or ends at other times in some runs." } else { "" };
    let rest = if of_a_phase { "; losses, drops and applications over the whole run" } else { "" };
    let mut runs = comparison.rows.iter().flat_map(|row| &row.runs);
    let unphased = runs.any(|run| run.summary.phases.is_empty() && !run.summary.flows.is_empty());
    let why = if unphased { " There are no phases: the flows are more than record.flows." } else { "" };
    format!("Measured {place}{rest}.{differ}{why}")
}

/// The mean baseline of the runs of each row, bit/s; `None` where it is unknown.
fn baselines(rows: &[Vec<Row>]) -> Vec<Option<f64>> {
    let of_run = |row: &Row| match row {
        Row::Line(measured) => measured.baseline.reference_bps,
        Row::Network(_) => None,
    };
    let mean = |runs: &Vec<Row>| Mean::of(&runs.iter().filter_map(of_run).collect::<Vec<_>>());
    rows.iter().map(|runs| mean(runs).map(|mean| mean.mean)).collect()
}

/// The baseline of the first of the measured `rows`, bit/s, if that of each prints alike; `None` if it is unknown, or
/// another one in some row.
#[must_use]
pub fn baseline(rows: &[Vec<Row>]) -> Option<f64> {
    let all = baselines(rows);
    let first = all.first().copied().flatten()?;
    let alike = |other: &Option<f64>| other.is_some_and(|other| format::rate(other) == format::rate(first));
    all.iter().all(alike).then_some(first)
}

/// True if some of the measured `rows` have baselines, and not all the same one.
fn baselines_differ(rows: &[Vec<Row>]) -> bool {
    baseline(rows).is_none() && baselines(rows).iter().any(Option::is_some)
}

/// The baseline of the measured `rows` in a sentence; `None` without one.
#[must_use]
pub fn about_the_baseline(rows: &[Vec<Row>]) -> Option<String> {
    if baselines_differ(rows) {
        return Some("Baseline: the downloads alone, with the other values of the row.".to_owned());
    }
    let above = |row: &Row| matches!(row, Row::Line(measured) if measured.baseline.above_capacity);
    let why = " That is more than the line carries: data behind a gap counts when the gap closes, which was then.";
    let why = if rows.iter().flatten().any(above) { why } else { "" };
    Some(format!("Baseline: the downloads alone have {}.{why}", format::rate(baseline(rows)?)))
}

/// The meaning of the column `probe`; `None` if no row has one.
#[must_use]
pub fn about_the_probe(rows: &[Vec<Row>]) -> Option<&'static str> {
    let has_probe = |row: &Row| matches!(row, Row::Line(measured) if measured.probe.p50_s.is_some());
    rows.iter()
        .flatten()
        .any(has_probe)
        .then_some("The probe is a ping over UDP without a code point, served as best effort.")
}

/// The class of packets without a code point.
const BEST_EFFORT: &str = "default";

/// A table has the share of a probe's lost requests if it is at least this in some run.
const TOLD_LOSS: f64 = 0.01;

/// The choice of the columns of all rows.
#[derive(Clone, Copy)]
struct Layout {
    /// The measure for the slowest replies to the ping: their 99th percentile, or their maximum if any row has too few.
    ping_p99: bool,
    /// The measure for the slowest replies to the probe: their 99th percentile, or their maximum if any row has too
    /// few.
    probe_p99: bool,
    /// True if rows have baselines of their own.
    has_baselines: bool,
}

impl Layout {
    fn of(rows: &[Vec<Row>]) -> Self {
        let all = |times: fn(&Measured) -> &RoundTrips| {
            rows.iter().flatten().all(|row| match row {
                Row::Line(measured) => times(measured).p50_s.is_none() || times(measured).p99_s.is_some(),
                Row::Network(_) => true,
            })
        };
        Self {
            ping_p99: all(|measured| &measured.ping),
            probe_p99: all(|measured| &measured.probe),
            has_baselines: baselines_differ(rows),
        }
    }
}

/// Round-trip times of a probe; all `None` without a reply.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct RoundTrips {
    /// The median.
    pub p50_s: Option<f64>,
    /// The 99th percentile; `None` for too few replies.
    pub p99_s: Option<f64>,
    /// The largest.
    pub max_s: Option<f64>,
    /// Share of the whole run's requests without a reply, except those too recent at its end.
    pub lost_share: Option<f64>,
}

impl RoundTrips {
    /// The round-trip times of the first ping over ICMP.
    fn of_ping(summary: &Summary, phase: Option<&Phase>) -> Self {
        Self::of(summary, phase, |probe| probe.protocol == "icmp")
    }

    /// The round-trip times of the first ping over UDP without a code point.
    fn of_probe(summary: &Summary, phase: Option<&Phase>) -> Self {
        Self::of(summary, phase, |probe| probe.protocol == "udp" && probe.class == BEST_EFFORT)
    }

    /// The round-trip times of the first probe of this kind, in `phase` or the whole run.
    fn of(summary: &Summary, phase: Option<&Phase>, kind: impl Fn(&Probe) -> bool) -> Self {
        let Some(probe) = summary.probes.iter().find(|probe| kind(probe)) else { return Self::default() };
        let in_phase = phase.and_then(|phase| phase.probes.iter().find(|other| other.name == probe.name));
        let (received, rtt) = in_phase.map_or((probe.received, probe.rtt_s), |part| (part.received, part.rtt_s));
        let judged = probe.received + probe.lost;
        Self {
            p50_s: rtt.p50,
            p99_s: rtt.p99.filter(|_| received >= ENOUGH_FOR_P99),
            max_s: rtt.max,
            lost_share: (judged > 0).then(|| format::to_f64(probe.lost) / format::to_f64(judged)),
        }
    }

    fn tail(&self, p99: bool) -> Option<f64> {
        if p99 { self.p99_s } else { self.max_s }
    }
}

/// The result of one run over an access line.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The part of the run.
    pub phase: String,
    /// The start of the measured phase.
    pub phase_from_s: f64,
    /// The end of the measured phase.
    pub phase_to_s: f64,
    /// Goodput of all downloads; `None` for a run over a network without an access line.
    pub download_bps: Option<f64>,
    /// Goodput of the bulk downloads without other traffic in that time, and their share of it.
    #[serde(flatten)]
    pub baseline: Baseline,
    /// Goodput of all uploads; `None` as well.
    pub upload_bps: Option<f64>,
    /// Round-trip time of the first ping over ICMP.
    pub ping: RoundTrips,
    /// Round-trip time of the first ping over UDP.
    pub probe: RoundTrips,
    /// Calls and other datagrams, over the whole run.
    #[serde(flatten)]
    pub calls: Calls,
    /// Videos, conferences and games, over the whole run.
    #[serde(flatten)]
    pub people: WorstApplications,
    /// The queues of the line.
    #[serde(flatten)]
    pub queues: Queues,
}

impl Measured {
    /// The result of a run that is compared with no other.
    #[cfg(test)]
    fn of(summary: &Summary) -> Self {
        Self::in_phase(summary, busiest(summary), None)
    }

    /// The result of `summary` in `phase`, or over the whole run, compared with the downloads `alone` in that time.
    fn in_phase(summary: &Summary, phase: Option<&Phase>, alone: Option<&Unloaded>) -> Self {
        let span = phase.map_or((0.0, summary.run.duration_s), |phase| (phase.from_s, phase.to_s));
        let has_line = !network::is_network(summary) && !queues::are_of_pings_alone(summary);
        let goodput = |direction| has_line.then(|| of_direction(summary, phase, direction));
        Self {
            phase: phase.map_or(WHOLE_RUN, |phase| phases::in_words(&phase.name)).to_owned(),
            phase_from_s: span.0,
            phase_to_s: span.1,
            download_bps: goodput("down"),
            baseline: alone.filter(|_| has_line).map_or_else(Baseline::default, |it| it.baseline(summary, phase, span)),
            upload_bps: goodput("up"),
            ping: RoundTrips::of_ping(summary, phase),
            probe: RoundTrips::of_probe(summary, phase),
            calls: Calls::of(summary),
            people: WorstApplications::of(summary),
            queues: Queues::of(summary, phase, has_line),
        }
    }

    /// The cells of the row.
    fn cells(&self, layout: Layout) -> Vec<Cell> {
        let rate = |column, bps| Cell::new(column, Quantity::Rate, bps);
        let time = |column, seconds| Cell::new(column, Quantity::Time, seconds);
        let share = |column, share| Cell::new(column, Quantity::Share, share);
        let tail = |p99, [one, other]: [&'static str; 2]| if p99 { one } else { other };
        let mut cells = vec![
            rate("download", self.download_bps),
            rate("baseline", self.baseline.reference_bps.filter(|_| layout.has_baselines)),
            share("of baseline", self.baseline.download_share),
            rate("upload", self.upload_bps),
            time("ping p50", self.ping.p50_s),
            time(tail(layout.ping_p99, ["ping p99", "ping max"]), self.ping.tail(layout.ping_p99)),
            time("probe p50", self.probe.p50_s),
            time(tail(layout.probe_p99, ["probe p99", "probe max"]), self.probe.tail(layout.probe_p99)),
            share("ping lost", self.ping.lost_share).told_from(TOLD_LOSS).of_the_run(),
            share("probe lost", self.probe.lost_share).told_from(TOLD_LOSS).of_the_run(),
        ];
        cells.extend(self.calls.cells().map(Cell::of_the_run));
        cells.extend(self.people.cells().map(Cell::of_the_run));
        cells.extend(self.queues.cells());
        cells
    }
}

/// The phase that all runs have and in which both directions are offered most; `None` without one. Arrivals do not
/// decide: a starved upload is measured in the phase of the others.
fn common_phase<'a>(runs: &[&'a Run]) -> Option<&'a Phase> {
    let (first, others) = runs.split_first()?;
    let load = |phase: &'a Phase| {
        let loads = others.iter().map(|run| both_ways(&run.summary, run.summary.same_phase(phase)?));
        loads.fold(both_ways(&first.summary, phase), |sum, load| Some(sum? + load?))
    };
    most(&first.summary.phases, load)
}

/// The phase in which both directions are offered most.
fn busiest(summary: &Summary) -> Option<&Phase> {
    most(&summary.phases, |phase| both_ways(summary, phase))
}

/// The first of the phases with the largest load.
fn most<'a>(phases: &'a [Phase], load: impl Fn(&'a Phase) -> Option<f64>) -> Option<&'a Phase> {
    let loaded = phases.iter().filter_map(|phase| Some((load(phase)?, phase)));
    loaded.reduce(|most, other| if other.0 > most.0 { other } else { most }).map(|(_, phase)| phase)
}

/// The seconds for which flows offer data in `phase`, summed over the flows; `None` unless some offer it in each
/// direction.
fn both_ways(summary: &Summary, phase: &Phase) -> Option<f64> {
    let offered = |direction: &str| {
        let offers = |flow: &Flow| phase.flows.iter().any(|other| other.offered && other.name == flow.name);
        summary.flows.iter().filter(|flow| is_counted(flow, direction) && offers(flow)).count() as u64
    };
    let (down, up) = (offered("down"), offered("up"));
    (down > 0 && up > 0).then(|| format::to_f64(down + up) * phase.length_s())
}

#[cfg(test)]
mod tests;

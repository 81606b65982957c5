//! The page of a measurement: rates and delays over time, and the distribution of delays per phase.

use lastmile_measure::conditions::Conditions;
use lastmile_measure::report::{Measurement, Phase, Throughput};
use lastmile_results::report::graphs::{self, Across, Curve, Graph, Graphs, Page, Part, Values};
use lastmile_text::table::Table;

use super::table::{self, words};

/// The page as HTML.
pub(super) fn of(measured: &Measurement, conditions: &Conditions) -> String {
    let mut parts = vec![
        Part::Sentences(conditions.sentences.clone()),
        Part::Table(titled(table::rates(measured), "Rates")),
        Part::Heading("Over time".to_owned()),
        Part::Graphs(over_time(measured)),
    ];
    if let Some(datagrams) = table::datagrams(measured) {
        parts.insert(2, Part::Table(titled(datagrams, "Datagrams")));
    }
    let distributions = distributions(measured);
    if !distributions.is_empty() {
        parts.push(Part::Heading("Distribution of round trips, by phase".to_owned()));
        parts.extend(distributions.into_iter().map(Part::Graphs));
    }
    parts.push(Part::Table(titled(table::delays(measured), "Delays")));
    let notes = table::senders(measured).into_iter();
    let notes = notes.chain(measured.clocks.iter().map(|clocks| format!("Clocks: {clocks}.")));
    let notes: Vec<String> =
        notes.chain(measured.warnings.iter().map(|warning| format!("Warning: {warning}."))).collect();
    if !notes.is_empty() {
        parts.push(Part::Heading("Notes".to_owned()));
        parts.push(Part::Sentences(notes));
    }
    let load = measured.load.as_deref().unwrap_or("no load");
    graphs::page(&Page {
        title: format!("The line to {}", measured.host),
        caption: format!("{load}, {}, lastmile {}", utc(measured.started_unix_s), measured.version),
        parts,
    })
}

fn titled(table: Table, title: &str) -> Table {
    Table { title: title.to_owned(), ..table }
}

fn over_time(measured: &Measurement) -> Graphs {
    let end_s = |phase: &Phase| phase.start_s + phase.duration_s;
    let phases = measured.phases.iter().map(|phase| (phase.start_s, end_s(phase), words(phase.load).to_owned()));
    let rate = |name: &str, of: fn(&Phase) -> Option<&Throughput>| Curve {
        name: name.to_owned(),
        // Between phases there is no load: zero at both ends of each.
        points: measured
            .phases
            .iter()
            .flat_map(|phase| {
                let start_s = phase.start_s;
                let samples = of(phase).map_or(&[][..], |throughput| &throughput.samples);
                let inside = samples.iter().map(move |(at_s, bps)| (start_s + at_s, *bps));
                [(start_s, 0.0)].into_iter().chain(inside).chain([(end_s(phase), 0.0)])
            })
            .collect(),
    };
    let rates = [rate("download", |phase| phase.download.as_ref()), rate("upload", |phase| phase.upload.as_ref())];
    let delays = series(measured, |_| true).into_iter().map(|(name, points)| Curve { name, points });
    let last_s = measured.phases.iter().map(end_s).fold(1.0, f64::max);
    Graphs {
        across: Across::Time(last_s),
        phases: phases.collect(),
        graphs: vec![
            Graph { title: "Goodput".to_owned(), values: Values::Rates, curves: rates.to_vec() },
            Graph { title: "Round-trip time".to_owned(), values: Values::Delays, curves: delays.collect() },
        ],
    }
}

/// Sending time and round-trip time of each series, over the phases that count.
fn series(measured: &Measurement, counts: impl Fn(&Phase) -> bool) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut named: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for phase in measured.phases.iter().filter(|phase| counts(phase)) {
        for series in &phase.probes {
            let answered = series.samples.iter().filter_map(|sample| Some((sample.sent_s, sample.rtt_s?)));
            let name = series.subject.to_string();
            match named.iter_mut().find(|(other, _)| *other == name) {
                Some((_, points)) => points.extend(answered),
                None => named.push((name, answered.collect())),
            }
        }
    }
    // Two series may have one name: a target that was given, and the server.
    for (_, points) in &mut named {
        points.sort_by(|(first, _), (second, _)| first.total_cmp(second));
    }
    named
}

/// The share of round trips at or below a time, for each series with a curve for each phase.
fn distributions(measured: &Measurement) -> Vec<Graphs> {
    let names: Vec<String> = series(measured, |_| true).into_iter().map(|(name, _)| name).collect();
    let of = |name: &String| {
        let curves: Vec<Curve> = measured
            .phases
            .iter()
            .filter_map(|phase| {
                let series = phase.probes.iter().find(|series| series.subject.to_string() == *name)?;
                let after_s = phase.start_s + phase.ramp_s;
                let counted = series.samples.iter().filter(|sample| sample.sent_s >= after_s);
                let points = cumulative(counted.filter_map(|sample| sample.rtt_s).collect());
                (points.len() > 1).then(|| Curve { name: words(phase.load).to_owned(), points })
            })
            .collect();
        let ends = curves.iter().flat_map(|curve| &curve.points).map(|(delay_s, _)| *delay_s);
        let (from_s, to_s) = ends.fold((f64::INFINITY, 0.0), |(from, to): (f64, f64), s| (from.min(s), to.max(s)));
        let title = format!("{name}, at or below a time");
        (!curves.is_empty()).then(|| Graphs {
            across: Across::Delay(from_s, to_s),
            phases: Vec::new(),
            graphs: vec![Graph { title, values: Values::Shares, curves }],
        })
    };
    names.iter().filter_map(of).collect()
}

/// The steps of a cumulative distribution.
#[expect(clippy::cast_precision_loss, reason = "numbers of probes")]
fn cumulative(mut delays: Vec<f64>) -> Vec<(f64, f64)> {
    delays.sort_by(f64::total_cmp);
    let count = delays.len() as f64;
    delays.iter().enumerate().map(|(index, delay_s)| (*delay_s, (index + 1) as f64 / count)).collect()
}

/// Date and time of day, by the civil calendar (Hinnant, *chrono-compatible date algorithms*).
#[expect(clippy::cast_possible_truncation, reason = "seconds of this era")]
fn utc(unix_s: f64) -> String {
    let seconds = unix_s as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + year_of_era + era * 400;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_date() {
        assert_eq!(utc(0.0), "1970-01-01 00:00 UTC");
        // date -u -d @1709210096: a leap day.
        assert_eq!(utc(1_709_210_096.0), "2024-02-29 12:34 UTC");
        assert_eq!(utc(1_798_761_599.0), "2026-12-31 23:59 UTC");
    }

    #[test]
    fn a_distribution_ends_at_one() {
        assert_eq!(cumulative(vec![0.3, 0.1]), [(0.1, 0.5), (0.3, 1.0)]);
    }
}

//! A measurement on a terminal.

use lastmile_measure::conditions::Conditions;
use lastmile_measure::foreign::iperf3::Datagrams;
use lastmile_measure::load::Direction;
use lastmile_measure::report::{Delays, Estimate, Measurement, Phase, Series, Throughput};
use lastmile_measure::session;
use lastmile_measure::train::Way;
use lastmile_results::format;
use lastmile_text::table::{Kind as Align, Table, wrap};

use crate::failure::Result;
use crate::printer::Printer;

/// Prints rates, delays and conditions.
pub(super) fn print(measured: &Measurement, conditions: &Conditions, printer: &mut Printer) -> Result<()> {
    let rates = rates(measured);
    if !rates.rows.is_empty() {
        printer.table(&rates)?;
        printer.data("\n")?;
    }
    if let Some(datagrams) = datagrams(measured) {
        printer.table(&datagrams)?;
        printer.data("\n")?;
    }
    printer.table(&delays(measured))?;
    let clocks = measured.clocks.iter().map(|clocks| format!("Clocks: {clocks}."));
    let warnings = measured.warnings.iter().map(|warning| format!("warning: {warning}"));
    let sentences = conditions.sentences.iter().cloned().chain(senders(measured)).chain(clocks).chain(warnings);
    let mut text = String::new();
    for sentence in sentences {
        wrap(&mut text, &sentence, 0, printer.width());
    }
    if !text.is_empty() {
        printer.data(&format!("\n{text}"))?;
    }
    Ok(())
}

/// Goodput and round trips per minute of each phase.
pub(super) fn rates(measured: &Measurement) -> Table {
    let names = [
        ("phase", Align::Name),
        ("download\ngoodput", Align::Number),
        ("95 %\ninterval", Align::Number),
        ("upload\ngoodput", Align::Number),
        ("95 %\ninterval", Align::Number),
        ("round trips\nper minute", Align::Number),
        ("95 %\ninterval", Align::Number),
    ];
    let mut table = Table::new(names);
    for phase in measured.phases.iter().filter(|phase| phase.load.is_some()) {
        let rate = |throughput: &Option<Throughput>| {
            let goodput = throughput.as_ref().map(|throughput| throughput.goodput_bps);
            [format::or_dash(goodput, |goodput| format::rate(goodput.value)), format::or_dash(goodput, of_rate)]
        };
        let responsiveness = phase.responsiveness;
        let rpm = [
            format::or_dash(responsiveness, |rpm| format!("{:.0}", rpm.rpm.value)),
            format::or_dash(responsiveness, |rpm| format!("{:.0} to {:.0}", rpm.rpm.low, rpm.rpm.high)),
        ];
        let cells = [rate(&phase.download), rate(&phase.upload), rpm].concat();
        table.row([words(phase.load).to_owned()].into_iter().chain(cells));
    }
    table
}

/// The congestion control of all senders in a sentence, by phases where they differ; `None` where none reports it.
pub(super) fn senders(measured: &Measurement) -> Option<String> {
    let loaded = measured.phases.iter().filter(|phase| phase.load.is_some());
    let each: Vec<(&str, String)> = loaded.map(|phase| (words(phase.load), congestion(phase))).collect();
    let first = &each.first()?.1;
    if each.iter().all(|(_, name)| name == first) {
        return (first != UNKNOWN).then(|| format!("Congestion control of the senders: {first}."));
    }
    let each: Vec<String> = each.iter().map(|(phase, name)| format!("{phase} {name}")).collect();
    Some(format!("Congestion control of the senders: {}.", each.join("; ")))
}

/// Stands for a congestion control that no sender reports.
const UNKNOWN: &str = "–";

/// The congestion control of the senders of a phase; with their directions where they differ.
pub(super) fn congestion(phase: &Phase) -> String {
    let of = |throughput: &Option<Throughput>| throughput.as_ref().map(|throughput| throughput.congestion.clone());
    match (of(&phase.download), of(&phase.upload)) {
        (Some(Some(down)), Some(Some(up))) if down != up => format!("{down} down, {up} up"),
        (Some(Some(down)), Some(None)) => format!("{down} down"),
        (Some(None), Some(Some(up))) => format!("{up} up"),
        (Some(Some(name)), _) | (_, Some(Some(name))) => name,
        _ => UNKNOWN.to_owned(),
    }
}

/// Datagrams of a UDP load; `None` without one.
pub(super) fn datagrams(measured: &Measurement) -> Option<Table> {
    let names = [
        ("phase", Align::Name),
        ("datagrams", Align::Name),
        ("offered", Align::Number),
        ("sent", Align::Number),
        ("received", Align::Number),
        ("lost", Align::Number),
        ("lost\n%", Align::Number),
        ("reordered", Align::Number),
        ("jitter\nms", Align::Number),
    ];
    let mut table = Table::new(names);
    let mut any = false;
    for phase in &measured.phases {
        for Datagrams { way, sent, received, lost, reordered, jitter_s, offered_bps } in &phase.datagrams {
            any = true;
            #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
            let [offered, share] = [*offered_bps as f64, *lost as f64 / (lost + received).max(1) as f64];
            table.row([
                words(phase.load).to_owned(),
                if *way == Way::Down { "down" } else { "up" }.to_owned(),
                format::rate(offered),
                sent.to_string(),
                received.to_string(),
                lost.to_string(),
                format::number(share * 100.0),
                format::or_dash(*reordered, |count| count.to_string()),
                number_ms(*jitter_s),
            ]);
        }
    }
    any.then_some(table)
}

/// The interval of a rate, in the unit that the rate itself is shown in.
pub(super) fn of_rate(goodput: Estimate) -> String {
    let units = [(1e9, " Gbit/s"), (1e6, " Mbit/s"), (1e3, " kbit/s")];
    let (scale, unit) = units.into_iter().find(|(least, _)| goodput.value >= *least).unwrap_or((1.0, " bit/s"));
    interval(goodput, |bps| bps / scale, unit)
}

pub(super) fn interval(estimate: Estimate, scale: impl Fn(f64) -> f64, unit: &str) -> String {
    // One count has no interval.
    if estimate.low >= estimate.high {
        return "–".to_owned();
    }
    format!("{} to {}{unit}", format::number(scale(estimate.low)), format::number(scale(estimate.high)))
}

/// Delays of each phase and series.
pub(super) fn delays(measured: &Measurement) -> Table {
    let names = [
        ("phase", Align::Name),
        ("probe", Align::Name),
        ("median\nms", Align::Number),
        ("95 %\ninterval", Align::Number),
        ("p95\nms", Align::Number),
        ("p99\nms", Align::Number),
        ("jitter\nms", Align::Number),
        ("up\nms", Align::Number),
        ("down\nms", Align::Number),
        ("lost", Align::Number),
        ("reordered", Align::Number),
    ];
    let mut table = Table::new(names);
    for phase in &measured.phases {
        for series in &phase.probes {
            table.row(row(phase, series));
        }
    }
    table
}

fn row(phase: &Phase, series: &Series) -> Vec<String> {
    let ms = |value: fn(&Delays) -> f64| format::or_dash(series.round_trip, |delays| number_ms(value(&delays)));
    let one_way = |delays: Option<Delays>| format::or_dash(delays, |delays| number_ms(delays.p50_s.value));
    let lost = match (series.lost, series.lost_up, series.lost_down) {
        (0, _, _) | (_, None, _) | (_, _, None) => series.lost.to_string(),
        (lost, Some(up), Some(down)) => format!("{lost} ({up} up, {down} down)"),
    };
    vec![
        words(phase.load).to_owned(),
        series.subject.to_string(),
        ms(|delays| delays.p50_s.value),
        format::or_dash(series.round_trip, |delays| interval(delays.p50_s, |s| s * 1e3, "")),
        ms(|delays| delays.p95_s),
        ms(|delays| delays.p99_s),
        ms(|delays| delays.jitter_s),
        one_way(series.up),
        one_way(series.down),
        lost,
        series.reordered.to_string(),
    ]
}

pub(super) fn number_ms(seconds: f64) -> String {
    format::number(seconds * 1e3)
}

/// A direction in words, for tables.
pub(super) fn words(load: Option<Direction>) -> &'static str {
    load.map_or("idle", session::words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_its_interval_have_one_unit() {
        let estimate = |value: f64| Estimate { value, low: value * 0.9, high: value * 1.1 };
        for (bps, interval) in
            [(426e3, "383 to 469 kbit/s"), (46.8e6, "42.1 to 51.5 Mbit/s"), (2e9, "1.8 to 2.2 Gbit/s")]
        {
            assert_eq!(of_rate(estimate(bps)), interval);
            assert!(format::rate(bps).ends_with(interval.rsplit(' ').next().unwrap()), "{}", format::rate(bps));
        }
    }

    #[test]
    fn a_phase_has_the_congestion_control_of_its_senders() {
        let throughput = |congestion: &str| Throughput {
            congestion: (!congestion.is_empty()).then(|| congestion.to_owned()),
            ..Throughput::default()
        };
        let phase = |load, [down, up]: [Option<&str>; 2]| Phase {
            load,
            download: down.map(throughput),
            upload: up.map(throughput),
            ..Phase::default()
        };
        let cases = [
            ([None, None], "–"),
            ([Some("bbr"), None], "bbr"),
            ([None, Some("cubic")], "cubic"),
            ([None, Some("")], "–"),
            ([Some("bbr"), Some("bbr")], "bbr"),
            ([Some("bbr"), Some("cubic")], "bbr down, cubic up"),
            // An older server does not report its own.
            ([Some(""), Some("cubic")], "cubic up"),
        ];
        for (of, words) in cases {
            assert_eq!(congestion(&phase(None, of)), words);
        }
        let sentence = |down: &str, up: &str| {
            let idle = phase(None, [None, None]);
            let down_alone = phase(Some(Direction::Download), [Some(down), None]);
            let up_alone = phase(Some(Direction::Upload), [None, Some(up)]);
            senders(&Measurement {
                schema: 1,
                version: String::new(),
                started_unix_s: 0.0,
                host: String::new(),
                load: None,
                phases: vec![idle, down_alone, up_alone],
                clocks: None,
                warnings: Vec::new(),
                complete: true,
            })
        };
        assert_eq!(sentence("bbr", "bbr").unwrap(), "Congestion control of the senders: bbr.");
        let differ = "Congestion control of the senders: download bbr; upload cubic.";
        assert_eq!(sentence("bbr", "cubic").unwrap(), differ);
        assert_eq!(sentence("", ""), None);
    }

    #[test]
    fn one_count_has_no_interval() {
        assert_eq!(of_rate(Estimate { value: 5e6, low: 5e6, high: 5e6 }), "–");
    }
}

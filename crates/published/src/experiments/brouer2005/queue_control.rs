//! Brouer 2005, figures 6.1 to 7.3: who holds the queue, and how long the urgent class waits.

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::trial::{Overrides, Trial};
use super::MIDDLEBOX;
use super::load::{Load, Ping, assume, htb, htb_of, latency_runs, load_runs};
use super::measured::{
    RoundTrips, figure, ip_kbps, judge, judge_inferred, row_of_runs, run, runs, sensitivity, set_pooled, simulated,
};

/// Above this the queue is in the modem: a fair way above the 117 ms of the stock HTB that holds it (figure 6.2).
const LOST_MS: f64 = 150.0;

/// Figure 6.1.
pub(super) fn naive(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let load = Load {
        upload: Some((60, Some("20 MB"))),
        udp: Some((100, &[(120, 240)])),
        ping: Ping::Seldom,
        duration_s: 600,
    };
    let shaped = |seed, overrides: &mut Overrides| {
        // The kernel counted IP bytes, at the rate that should be left of them.
        overrides.set("link.box.encapsulation", "ip");
        for (class, kbps) in [("1:1", 450), ("1:10", 90), ("1:30", 180), ("1:50", 180)] {
            overrides.set(&format!("link.box.queue.classes.{class}.rate"), format_args!("{kbps} kbit/s"));
            if class != "1:1" {
                overrides.set(&format!("link.box.queue.classes.{class}.ceil"), "450 kbit/s");
            }
        }
        load.traffic(seed, overrides)
    };
    let runs = runs(MIDDLEBOX, shaped)?;
    let mut told = Vec::new();
    let mut verdicts = Vec::new();
    for row in &table.rows {
        let phase = row.params.text("phase").unwrap_or_default();
        let (from, to) = if phase.starts_with("upload only") { (70.0, 120.0) } else { (130.0, 240.0) };
        let (begins, ends) = (from - 9.9, to + 0.1);
        let (urgent, bulk) = (RoundTrips::all(&runs, "ping-10", from, to), RoundTrips::all(&runs, "ping-30", from, to));
        let mut ours = if phase.starts_with("after") {
            row_of_runs(row, &runs, |trial| {
                let regained = regained_s(trial);
                [("queue_control_regained_at_s", regained), ("delay_after_stop_s", regained - 240.0)]
                    .into_iter()
                    .collect()
            })
        } else {
            row_of_runs(row, &runs, |trial| {
                let drops = trial.sent_again_by("upload", ends) - trial.sent_again_by("upload", begins);
                let mut values = Values::new();
                values.set("class_1_10_latency_mean_ms", RoundTrips::of(trial, "ping-10", from, to).mean());
                values.set("class_1_30_latency_mean_ms", RoundTrips::of(trial, "ping-30", from, to).mean());
                values.set("middlebox_drops", drops as f64);
                values
            })
        };
        if phase.starts_with("after") {
            let (regained, waited) =
                (figure(&ours, "queue_control_regained_at_s"), figure(&ours, "delay_after_stop_s"));
            told.push(format!("held again after {regained:.0} s, {waited:.0} s after the small packets stopped"));
            verdicts.push(waited > 30.0 && regained < 600.0);
        } else {
            let held = urgent.quantile(0.99) < LOST_MS;
            ours.simulated.set("queue_control", held);
            set_pooled(
                &mut ours,
                &[("class_1_10_latency_max_ms", urgent.max()), ("class_1_30_latency_ms_bound_about", bulk.max())],
            );
            told.push(format!("{phase}: class 1:10 {urgent}, 1:30 {bulk}"));
            verdicts.push(held == phase.starts_with("upload only"));
        }
        result.rows.push(ours);
    }
    assume(&mut result);
    naive_assumptions(&mut result, shaped)?;
    judge(table, &mut result, Finding::new(verdicts.iter().all(|verdict| *verdict), told.join("; ")));
    Ok(result)
}

fn naive_assumptions(
    result: &mut TableResult,
    shaped: impl Fn(u64, &mut Overrides) -> String,
) -> Result<(), ExperimentError> {
    let told_otherwise = sensitivity(
        "round trips of 1:10 with the small packets, and when they end",
        &[
            ("an upstream of 512 kbit/s", "link.line.rate", "512 kbit/s"),
            ("a modem that holds 124 packets", "link.line.queue.limit", "124 packets"),
            ("windows of 128 kB", "tcp.receive_window", "127424 B"),
        ],
        |key, value| {
            let trial = run(MIDDLEBOX, 1, |seed, overrides| {
                overrides.set(key, value);
                shaped(seed, overrides)
            })?;
            Ok(format!(
                "mean {:.0} ms, held again after {:.0} s",
                RoundTrips::of(&trial, "ping-10", 130.0, 240.0).mean(),
                regained_s(&trial)
            ))
        },
    )?;
    result.assumptions.push(told_otherwise);
    result
        .assumptions
        .push(format!("The queue counts as held while 99 % of the pings of class 1:10 come back within {LOST_MS} ms."));
    result.assumptions.push(
        "How long recovery takes is the modem's backlog over what the line is faster than the shaper: 450 kbit/s in \
         packets of 1500 bytes are 508.8 \
         of cells, so that 4.5 kbit/s are left over where the line has 513.3 and 3.2 where it has 512. A difference \
         of a few kbit/s decides it."
            .to_owned(),
    );
    Ok(())
}

/// When, after the small packets, class 1:10 was served in time for good; counted until the upload's end.
fn regained_s(trial: &Trial) -> f64 {
    let late = trial.round_trips("ping-10").filter(|(at, took)| *at > 240.0 && *took >= LOST_MS);
    late.map(|(at, _)| at).fold(240.0, f64::max)
}

/// An upload alone for a minute, then with `packets_per_s` small packets for another.
fn exact(packets_per_s: u64, set: impl Fn(&mut Overrides)) -> Result<Vec<Trial>, ExperimentError> {
    let load =
        Load { upload: Some((0, None)), udp: Some((packets_per_s, &[(60, 120)])), ping: Ping::Seldom, duration_s: 120 };
    runs(MIDDLEBOX, |seed, overrides| {
        set(overrides);
        load.traffic(seed, overrides)
    })
}

/// The lowest throughput of the upload over 5 s beside the small packets.
fn lowest_kbps(trial: &Trial) -> f64 {
    let spans = (0..11).map(|step| 62.0 + 5.0 * f64::from(step));
    spans.map(|from| ip_kbps(trial, "upload", from, from + 5.0)).fold(f64::INFINITY, f64::min)
}

/// Figure 6.2.
pub(super) fn accurate(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let (some, many) = (exact(100, |_| ())?, exact(1000, |_| ())?);
    for row in &table.rows {
        let ours = match row.params.integer("udp_packets_per_s") {
            Some(100) => phase(row, &some),
            Some(_) => phase(row, &many),
            None => urgent(row, [&some, &many]),
        };
        result.rows.push(ours);
    }
    let pooled =
        RoundTrips::all(&some, "ping-10", 62.0, 120.0).max().max(RoundTrips::all(&many, "ping-10", 62.0, 120.0).max());
    let mean = |of: &dyn Fn(&Trial) -> f64| many.iter().map(of).sum::<f64>() / many.len() as f64;
    let passed = mean(&|trial| trial.packets("udp").1 as f64 / 60.0);
    let lost = mean(&|trial| (trial.packets("udp").0 - trial.packets("udp").1) as f64);
    let alone = mean(&|trial| trial.sent_again_by("upload", 60.5) as f64);
    let beside = mean(&|trial| trial.sent_again("upload") as f64) - alone;
    let pings = mean(&|trial| trial.pings_lost("ping-10") as f64);
    let wire = passed * 0.848;
    let shown = pooled < 2.0 * LOST_MS && (wire / 204.8 - 1.0).abs() < 0.02 && pings == 0.0 && beside <= alone;
    let evidence = format!(
        "class 1:10 {pooled:.0} ms at most; of 1000 packets/s {passed:.0} pass, {wire:.1} of 204.8 kbit/s assured, \
         {lost:.0} are dropped; in class 1:10 \
         {pings} drops, and in 1:30, where TCP fills the queue by itself, {beside:.1} in the minute beside them and \
         {alone:.1} in the one before"
    );
    assume(&mut result);
    let told = sensitivity(
        "class 1:10 beside 1000 packets/s",
        &[
            ("an upstream of 512 kbit/s, as the shaper has it", "link.line.rate", "512 kbit/s"),
            ("of 520", "link.line.rate", "520 kbit/s"),
            ("without hysteresis", "link.box.queue.hysteresis", "false"),
            ("an exact timer", "link.box.queue.timer", "0 ms"),
        ],
        |key, value| {
            Ok(RoundTrips::all(&exact(1000, |overrides| overrides.set(key, value))?[..1], "ping-10", 62.0, 120.0))
        },
    )?;
    result.assumptions.push(told);
    result.assumptions.push(
        "At the line's very rate a shaper never empties what its bursts have put into the modem: there a line 0.3 % \
         faster than 512 kbit/s decides about \
         the mean. The lowest throughput is taken over 5 s. Drops in class 1:30 are those that TCP makes to find \
         its share of 28125 bytes; the thesis \
         shows none."
            .to_owned(),
    );
    judge(table, &mut result, Finding::new(shown, evidence));
    Ok(result)
}

fn phase(row: &Row, runs: &[Trial]) -> RowResult {
    let mut ours = row_of_runs(row, runs, |trial| {
        let passed = trial.packets("udp").1 as f64 / 60.0;
        let mut values = Values::new();
        values.set("lowest_upload_kbps", lowest_kbps(trial));
        values.set("upload_at_full_line_kbps", ip_kbps(trial, "upload", 62.0, 120.0));
        values.set("udp_passed_packets_per_s", passed);
        values.set("udp_passed_wire_kbps", passed * 0.848);
        values.set(
            "upload_segments_sent_again",
            (trial.sent_again("upload") - trial.sent_again_by("upload", 60.5)) as f64,
        );
        values
    });
    let bulk = RoundTrips::all(runs, "ping-30", 62.0, 120.0);
    set_pooled(&mut ours, &[("class_1_30_latency_max_ms", bulk.max())]);
    let dropped = |name: &str, any: bool| any.then(|| name.to_owned());
    let in_classes = [
        dropped("1:10", runs.iter().any(|trial| trial.pings_lost("ping-10") > 0)),
        dropped("1:30", figure(&ours, "upload_segments_sent_again") > 0.0),
        dropped("1:50", runs.iter().any(|trial| trial.packets("udp").0 > trial.packets("udp").1 + 100)),
    ];
    ours.simulated.set("drops_only_in", in_classes.into_iter().flatten().collect::<Vec<_>>().join(", ").as_str());
    ours
}

/// Latency of class 1:10 in both phases together.
fn urgent(row: &Row, phases: [&Vec<Trial>; 2]) -> RowResult {
    let [some, many] = phases;
    let mut ours = {
        // Seed by seed both phases, so that the interval is one over seeds.
        let pairs: Vec<Values> = some
            .iter()
            .zip(many)
            .map(|(some, many)| {
                let of = |trial| RoundTrips::of(trial, "ping-10", 62.0, 120.0);
                [("latency_mean_ms", f64::midpoint(of(some).mean(), of(many).mean()))].into_iter().collect()
            })
            .collect();
        RowResult::of_means(row, super::super::seeds::means(&pairs))
    };
    let pooled = [some, many].map(|runs| RoundTrips::all(runs, "ping-10", 62.0, 120.0));
    let least = pooled[0].min().min(pooled[1].min());
    let most = pooled[0].max().max(pooled[1].max());
    set_pooled(&mut ours, &[("latency_min_ms", least), ("latency_max_ms", most), ("latency_range_ms", most - least)]);
    ours
}

/// Figure 7.1.
pub(super) fn baseline(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let runs = latency_runs(None, Ping::FromBehind, |_| ())?;
    let trips = RoundTrips::all(&runs, "ping-10", 10.0, 60.0);
    for row in &table.rows {
        let mut ours = row_of_runs(row, &runs, |trial| {
            [("rtt_mean_ms", RoundTrips::of(trial, "ping-10", 10.0, 60.0).mean())].into_iter().collect()
        });
        set_pooled(
            &mut ours,
            &[("rtt_min_ms", trips.min()), ("rtt_max_ms", trips.max()), ("rtt_range_ms", trips.max() - trips.min())],
        );
        result.rows.push(ours);
    }
    assume(&mut result);
    let holds = trips.min() >= 5.9 && trips.max() <= 8.5;
    let finding = Finding::new(holds, format!("{:.2} to {:.2} ms", trips.min(), trips.max()));
    judge_inferred(table, &mut result, finding, &["the delays of the line, chosen for the mean of this figure"]);
    Ok(result)
}

/// Figure 7.2.
pub(super) fn stock(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let (some, many) = (exact(100, |_| ())?, exact(1000, |_| ())?);
    for row in &table.rows {
        result.rows.push(urgent(row, [&some, &many]));
    }
    let row = result.rows.first().ok_or(ExperimentError::MissingSetting("rows"))?;
    let (mean, most) = (row.sample("latency_mean_ms"), figure(row, "latency_max_ms"));
    // Slightly: by less than the bound itself; far: by twice of it.
    let mut finding = Finding::new(most > 3.0 * 35.0, format!("mean {mean}, at most {most:.1} ms, the bound is 35"));
    finding.between(&mean, 35.0, 70.0);
    let told = sensitivity(
        "both minutes, means",
        &[("an upstream of 512 kbit/s", "link.line.rate", "512 kbit/s"), ("of 520", "link.line.rate", "520 kbit/s")],
        |key, value| {
            let of = |rate| {
                Ok::<_, ExperimentError>(
                    RoundTrips::all(&exact(rate, |o| o.set(key, value))?[..1], "ping-10", 62.0, 120.0).mean(),
                )
            };
            Ok(format!("{:.1} ms", f64::midpoint(of(100)?, of(1000)?)))
        },
    )?;
    assume(&mut result);
    result.assumptions.push(told);
    judge(table, &mut result, finding);
    Ok(result)
}

/// Figure 7.3.
pub(super) fn hysteresis(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let load = Load { upload: Some((0, None)), udp: None, ping: Ping::FromBehind, duration_s: 60 };
    let mut trips = Vec::new();
    for row in &table.rows {
        let on = row.params.switch("htb_hysteresis") == Some(true);
        let settings = table.settings(row);
        let mut keys = Overrides::default();
        htb_of(&mut keys, &settings)?;
        let runs = load_runs(&load, |overrides| overrides.extend(&keys))?;
        let pooled = RoundTrips::all(&runs, "ping-10", 10.0, 60.0);
        let mut ours = row_of_runs(row, &runs, |trial| {
            let trips = RoundTrips::of(trial, "ping-10", 10.0, 60.0);
            [
                ("latency_mean_ms", trips.mean()),
                ("share_within_35ms_pct", trips.within_pct(35.0)),
                ("share_within_45ms_pct", trips.within_pct(45.0)),
            ]
            .into_iter()
            .collect()
        });
        set_pooled(&mut ours, &[("latency_min_ms", pooled.min()), ("latency_max_ms", pooled.max())]);
        result.rows.push(ours);
        trips.push((on, pooled));
    }
    let of =
        |on: bool| trips.iter().find(|(known, _)| *known == on).map(|(_, trips)| trips.clone()).unwrap_or_default();
    let (on, off) = (of(true), of(false));
    let row = |on| {
        let is_it = |row: &&RowResult| row.params.switch("htb_hysteresis") == Some(on);
        result.rows.iter().find(is_it).cloned().ok_or(ExperimentError::MissingSetting("htb_hysteresis"))
    };
    let (with, without) = (row(true)?, row(false)?);
    let mut finding = Finding::new(off.max() < 0.8 * on.max(), "");
    let published = |row: &RowResult| row.published.number("latency_mean_ms").unwrap_or_default();
    let mean = |row: &RowResult| row.sample("latency_mean_ms");
    finding.difference(&mean(&without).minus(&mean(&with)), published(&without) - published(&with));
    finding.above(&without.sample("share_within_35ms_pct"), 50.0);
    let evidence = format!(
        "with hysteresis {on}; without {off}, {:.1} % within 35 ms and {:.1} % within 45",
        off.within_pct(35.0),
        off.within_pct(45.0)
    );
    let told = sensitivity(
        "with and without hysteresis",
        &[
            ("an upstream of 512 kbit/s", "link.line.rate", "512 kbit/s"),
            ("of 520", "link.line.rate", "520 kbit/s"),
            ("an exact timer", "link.box.queue.timer", "0 ms"),
        ],
        |key, value| {
            let of = |on| {
                let trial = run(MIDDLEBOX, 1, |seed, overrides| {
                    htb(overrides, on, "10 ms");
                    overrides.set(key, value);
                    load.traffic(seed, overrides)
                })?;
                Ok::<_, ExperimentError>(RoundTrips::of(&trial, "ping-10", 10.0, 60.0))
            };
            Ok(format!("{} and {}", of(true)?, of(false)?))
        },
    )?;
    assume(&mut result);
    result.assumptions.push(told);
    finding.tell(evidence);
    judge(table, &mut result, finding);
    Ok(result)
}

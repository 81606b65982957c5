//! Brouer 2005, chapters 6 and 7: who holds the queue, and what the middlebox's own clock adds to the wait.

use lastmile_queueing::random::Stream;

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::{Value, Values};
use crate::verdict::Finding;

use super::super::seeds::SEEDS;
use super::super::trial::{Overrides, Trial};
use super::super::{ExperimentError, significant};
use super::measured::{
    RoundTrips, figure, ip_kbps, judge, judge_inferred, mean_trips, row_of_runs, run, runs, sensitivity, set_pooled,
    simulated,
};
use super::{MIDDLEBOX, OPEN_LINE, number};

/// Above this the queue is in the modem: a fair way above the 117 ms of the stock HTB that holds it (figure 6.2).
const LOST_MS: f64 = 150.0;

const STOCK: &str = "Listings B.17 and B.19 are taken to have a class of the whole rate above the three, with bursts of 2000 bytes everywhere.";

const PINGS: &str = "How often it pings is not stated: once a second in each class in chapter 6, as ping(8) does (the naive cut allows for 7 small packets a \
                     second), ten times in chapter 7. Pings of the middlebox itself leave 0.1 ms after a tick of its clock, which wakes them; those of the \
                     host behind it drift through the ticks.";

const JITTER: &str =
    "The measured idle line varies by 2.6 ms, ours only where two pings meet: the modem's own jitter is not simulated.";

/// The clock of Linux 2.4 as it comes.
const STOCK_HZ: i64 = 100;

/// A ping of the middlebox, woken by its clock; or of the host behind it, whose clock is another.
#[derive(Clone, Copy, PartialEq)]
enum Ping {
    /// As ping(8) does, once a second: chapter 6, where ten a second would be more than the naive cut allows for.
    Seldom,
    FromMiddlebox,
    FromBehind,
}

/// What runs over the middlebox.
struct Load {
    /// When the upload starts, in s, and how many bytes it has.
    upload: Option<(u64, Option<&'static str>)>,
    /// Packets of 40 bytes a second, and from when to when, in s: several times with pauses between.
    udp: Option<(u64, &'static [(u64, u64)])>,
    ping: Ping,
    duration_s: u64,
}

impl Load {
    fn traffic(&self, seed: u64, overrides: &mut Overrides) -> String {
        let mut chance = Stream::new(seed, "brouer2005 middlebox");
        overrides.set("duration", format_args!("{} s", self.duration_s));
        let mut traffic = String::new();
        if let Some((start, bytes)) = self.upload {
            let start = start * 1000 + chance.below(1_000);
            let kind = bytes.map_or_else(
                || "kind = \"persistent\"".to_owned(),
                |bytes| format!("kind = \"bulk\"\nbytes = \"{bytes}\""),
            );
            traffic += &format!(
                "[[traffic]]\nname = \"upload\"\n{kind}\nfrom = \"host\"\nto = \"server\"\ndscp = 30\nstart = \"{start} ms\"\n"
            );
        }
        if let Some((rate, spans)) = self.udp {
            // The generator's clock has nothing to do with the middlebox's.
            let phase = chance.below(10_000);
            for (number, (start, stop)) in spans.iter().enumerate() {
                traffic += &format!(
                    "[[traffic]]\nname = \"udp-{number}\"\nkind = \"blast\"\nfrom = \"host\"\nto = \"server\"\ndscp = 50\nsize = \"40 B\"\n\
                     rate = \"{rate} packets/s\"\nstart = \"{} us\"\nstop = \"{stop} s\"\n",
                    start * 1_000_000 + phase
                );
            }
        }
        let (from, start, interval) = match self.ping {
            Ping::Seldom => ("middlebox", 100 + 10_000 * chance.below(10), "1 s"),
            Ping::FromMiddlebox => ("middlebox", 100 + 10_000 * chance.below(10), "100 ms"),
            Ping::FromBehind => ("host", chance.below(100_000), "100.13 ms"),
        };
        let stop = self.duration_s - 5;
        for (name, dscp, interval, after) in [("ping-10", 10, interval, 0), ("ping-30", 30, "1 s", 450_000)] {
            let start = start + after;
            traffic += &format!(
                "[[traffic]]\nname = \"{name}\"\nkind = \"ping\"\nfrom = \"{from}\"\nto = \"bbras\"\ndscp = {dscp}\nstart = \"{start} us\"\n\
                 stop = \"{stop} s\"\ninterval = \"{interval}\"\n"
            );
        }
        traffic
    }
}

fn htb(overrides: &mut Overrides, hysteresis: bool, timer: &str) {
    overrides.set("link.box.queue.hysteresis", hysteresis);
    overrides.set("link.box.queue.timer", timer);
}

/// Hysteresis and clock of the middlebox, as a row has them.
fn htb_of(overrides: &mut Overrides, settings: &Values) -> Result<(), ExperimentError> {
    let on = settings.switch("htb_hysteresis").ok_or(ExperimentError::MissingSetting("htb_hysteresis"))?;
    htb(overrides, on, &tick(number(settings, "timer_hz")?));
    Ok(())
}

/// The tick of a clock of so many Hz.
fn tick(hz: f64) -> String {
    format!("{:.0} ns", 1e9 / hz)
}

/// Small packets a second, of a load such as `1000 packets/s in 1:50`.
fn small_packets(settings: &Values) -> Result<u64, ExperimentError> {
    let load = settings.text("load").and_then(|load| load.split(' ').next()?.parse().ok());
    load.ok_or(ExperimentError::MissingSetting("load"))
}

/// Runs of figures 7.5 to 7.8 with the settings of a row.
fn runs_of_row(table: &Table, row: &Row, ping: Ping) -> Result<Vec<Trial>, ExperimentError> {
    let settings = table.settings(row);
    let mut keys = Overrides::default();
    htb_of(&mut keys, &settings)?;
    latency_runs(Some(small_packets(&settings)?), ping, |overrides| overrides.extend(&keys))
}

fn assume(result: &mut TableResult) {
    result.assumptions.extend(OPEN_LINE.map(String::from));
    result.assumptions.extend([STOCK, PINGS, JITTER].map(String::from));
}

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
        // What the kernel counted: IP bytes, at the rate that should be left of them.
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
        "How long recovery takes is the modem's backlog over what the line is faster than the shaper: 450 kbit/s in packets of 1500 bytes are 508.8 \
         of cells, so that 4.5 kbit/s are left over where the line has 513.3 and 3.2 where it has 512. A difference of a few kbit/s decides it."
            .to_owned(),
    );
    Ok(())
}

/// When, after the small packets, class 1:10 was served in time for good; counted until the upload's end.
fn regained_s(trial: &Trial) -> f64 {
    let late = trial.round_trips("ping-10").filter(|(at, took)| *at > 240.0 && *took >= LOST_MS);
    late.map(|(at, _)| at).fold(240.0, f64::max)
}

/// An upload for a minute, then beside so many small packets a second for another.
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
        "class 1:10 {pooled:.0} ms at most; of 1000 packets/s {passed:.0} pass, {wire:.1} of 204.8 kbit/s assured, {lost:.0} are dropped; in class 1:10 \
         {pings} drops, and in 1:30, where TCP fills the queue by itself, {beside:.1} in the minute beside them and {alone:.1} in the one before"
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
        "At the line's very rate a shaper never empties what its bursts have put into the modem: there a line 0.3 % faster than 512 kbit/s decides about \
         the mean. The lowest throughput is taken over 5 s. Drops in class 1:30 are those that TCP makes to find its share of 28125 bytes; the thesis \
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

/// The five minutes between two pauses of the generator, which begin with full buckets: 3000 pings with each seed.
fn latency_runs(udp: Option<u64>, ping: Ping, set: impl Fn(&mut Overrides)) -> Result<Vec<Trial>, ExperimentError> {
    load_runs(&Load { upload: None, udp: udp.map(|rate| (rate, &[(0, 300)][..])), ping, duration_s: 305 }, set)
}

fn load_runs(load: &Load, set: impl Fn(&mut Overrides)) -> Result<Vec<Trial>, ExperimentError> {
    runs(MIDDLEBOX, |seed, overrides| {
        set(overrides);
        load.traffic(seed, overrides)
    })
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

/// The round trip of an idle line, in ms.
fn idle_ms() -> Result<f64, ExperimentError> {
    let load = Load { upload: None, udp: None, ping: Ping::FromMiddlebox, duration_s: 10 };
    let trial = run(MIDDLEBOX, SEEDS[0], |seed, overrides| load.traffic(seed, overrides))?;
    Ok(RoundTrips::of(&trial, "ping-10", 0.0, 10.0).quantile(0.5))
}

/// Figure 7.5.
pub(super) fn local_pings(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let mut trips = RoundTrips::default();
    for row in &table.rows {
        let runs = runs_of_row(table, row, Ping::FromMiddlebox)?;
        trips = RoundTrips::all(&runs, "ping-10", 0.0, 300.0);
        let mut ours = row_of_runs(row, &runs, |trial| {
            let trips = RoundTrips::of(trial, "ping-10", 0.0, 300.0);
            [("latency_mean_ms", trips.mean()), ("latency_mode_ms", trips.mode())].into_iter().collect()
        });
        set_pooled(
            &mut ours,
            &[("latency_mode_ms", trips.mode()), ("latency_min_ms", trips.min()), ("latency_max_ms", trips.max())],
        );
        result.rows.push(ours);
    }
    let added = trips.mode() - idle_ms()?;
    assume(&mut result);
    result.assumptions.push(
        "The generator pauses every 5 minutes; a run is the time between two pauses. It begins with full buckets, and what they hold goes into the modem at \
         once."
            .to_owned(),
    );
    let evidence = format!(
        "most often {:.1} ms, {added:.1} above the idle line; at most {:.1} ms, of {} pings",
        trips.mode(),
        trips.max(),
        trips.count()
    );
    judge(table, &mut result, Finding::new((8.0..=11.5).contains(&added), evidence));
    Ok(result)
}

/// Figure 7.7.
pub(super) fn pings_from_behind(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let row = table.rows.first().ok_or(ExperimentError::MissingSetting("timer_hz"))?;
    let runs = runs_of_row(table, row, Ping::FromBehind)?;
    let trips = RoundTrips::all(&runs, "ping-10", 60.0, 300.0);
    let idle = idle_ms()?;
    let added = [trips.quantile(0.005) - idle, trips.quantile(0.995) - idle]
        .map(|ms| significant((ms * 100.0).round() / 100.0));
    for row in &table.rows {
        let mut ours = row_of_runs(row, &runs, |trial| {
            [("latency_mean_ms", RoundTrips::of(trial, "ping-10", 60.0, 300.0).mean())].into_iter().collect()
        });
        ours.simulated.set("added_delay_ms", Value::List(added.map(Value::Float).to_vec()));
        result.rows.push(ours);
    }
    let quarter = |share: f64| trips.quantile(share) - idle;
    let even = [0.25, 0.5, 0.75].iter().all(|share| {
        let expected = added[0] + share * (added[1] - added[0]);
        (quarter(*share) - expected).abs() < 1.5
    });
    let evidence = format!(
        "{:.1} to {:.1} ms are added, a quarter of the pings has {:.1}, half {:.1}, three quarters {:.1} at most",
        added[0],
        added[1],
        quarter(0.25),
        quarter(0.5),
        quarter(0.75)
    );
    assume(&mut result);
    judge(table, &mut result, Finding::new(added[0] < 1.5 && (8.5..12.5).contains(&added[1]) && even, evidence));
    Ok(result)
}

/// Figure 7.8.
pub(super) fn fine_timer(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let row = table.rows.first().ok_or(ExperimentError::MissingSetting("timer_hz"))?;
    let mut stock = row.clone();
    stock.params.set("timer_hz", STOCK_HZ);
    let (coarse, fine) = (runs_of_row(table, &stock, Ping::FromBehind)?, runs_of_row(table, row, Ping::FromBehind)?);
    for row in &table.rows {
        result.rows.push(row_of_runs(row, &fine, |trial| {
            let trips = RoundTrips::of(trial, "ping-10", 0.0, 300.0);
            [("latency_mean_ms", trips.mean()), ("share_below_15ms_pct", trips.within_pct(15.0))].into_iter().collect()
        }));
    }
    let idle = idle_ms()?;
    let added = |runs: &[Trial]| mean_trips(runs, "ping-10", 0.0, 300.0).map(|mean| mean - idle);
    let mut finding = Finding::default();
    // Most of the delay: more than half.
    finding.below(&added(&fine).over(&added(&coarse)), 0.5);
    let [coarse, fine] = [coarse, fine].map(|runs| RoundTrips::all(&runs, "ping-10", 0.0, 300.0));
    assume(&mut result);
    let evidence = format!(
        "at 100 Hz {:.1} ms more than the idle line in the mean, at 1500 Hz {:.1}; then {:.1} % below 15 ms",
        coarse.mean() - idle,
        fine.mean() - idle,
        fine.within_pct(15.0)
    );
    result.assumptions.push(
        "A run is the time between two pauses of the generator, 5 minutes: the burst that follows a pause stands in the modem until the line, 0.3 % faster than \
         the shaper, has worked it off. That takes some 10 s and makes the few pings above 15 ms."
            .to_owned(),
    );
    finding.tell(evidence);
    judge(table, &mut result, finding);
    Ok(result)
}

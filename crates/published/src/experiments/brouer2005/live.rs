//! Brouer 2005 with real packets: the kernel's TCP on an emulated line, one run of at most 75 s for
//! each set of conditions.
//!
//! Lines, queues and shapers are those of the simulation. The assumptions list the differences:
//! there are two hosts, so that pings go from host to server and the backbone's 5 ms are left out
//! where the thesis pinged the BBRAS; runs are short; TCP is that of this kernel. A simulation of
//! the same runs, with TCP as the kernel's (`runs::KERNEL`), shows how much of a deviation follows.

mod both_full;
mod runs;

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::Values;

use super::super::round_trips::RoundTrips;
use super::super::trial::{Trial, ip_kbps, mean};
use super::super::{Lab, LiveExperiment};
use super::files::{LINE, MIDDLEBOX, PRODUCTION, UPLOADS};
use super::{KEY, overheads};
use crate::error::ExperimentError;
use crate::rounding::significant;

use runs::{AT_BBRAS, judge, ping, set, small_packets, trial, upload};

type Run = fn(&Table, &mut TableResult, &mut Lab<'_>) -> Result<(), ExperimentError>;

/// The tables that are measured live, with the seconds that each takes.
pub(in crate::experiments) const LIVE: &[LiveExperiment] = &[
    live("fig-3.2", 75, starvation),
    live("fig-3.6", 30, upload_alone),
    live("fig-3.7", 75, small_window),
    live("fig-3.8", 150, buffer_size),
    live("5.3", 32, encapsulations),
    live("fig-6.1", 50, naive),
    live("fig-6.2", 45, accurate),
    live("fig-7.1", 4, idle),
    live("fig-7.3", 80, hysteresis),
    live("fig-8.1", 50, both_full::ack_priority),
    live("fig-8.3", 100, both_full::policed),
    live("fig-8.4", 100, both_full::shaped),
    live("fig-10.3", 120, production),
];

const fn live(table: &'static str, seconds: u64, run: Run) -> LiveExperiment {
    LiveExperiment { publication: KEY, table, seconds, run }
}

/// The receive window of a transfer, in bytes: 44 segments.
const WINDOW: f64 = 63_712.0;

/// Above this the queue is in the modem, as in the simulation.
const LOST_MS: f64 = 150.0;

fn phase(name: &'static str) -> impl Fn(&Values) -> bool {
    move |params| params.text("phase").is_some_and(|phase| phase.starts_with(name))
}

fn starvation(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let run = trial(lab, LINE, 75, &[], &upload("upload", 15, "direction = \"up\""))?;
    let (before, with) = (RoundTrips::of(&run, "ping", 3.0, 15.0), RoundTrips::of(&run, "ping", 60.0, 75.0));
    let alone = ip_kbps(&run, "download", 5.0, 15.0);
    let beside = ip_kbps(&run, "download", 60.0, 75.0);
    let tcp_rtt = 1e3 * mean(run.samples("srtt_s", "download"), 60.0, 75.0);
    let in_flight = mean(run.samples("in_flight_bytes", "download"), 60.0, 75.0);
    let from_window = in_flight * (1500.0 / 1448.0) * 8.0 / tcp_rtt;
    set(
        result,
        phase("download only"),
        &[("downstream_throughput_kbps_about", alone), ("ping_rtt_max_ms", before.max())],
    );
    let figures =
        [("downstream_throughput_kbps_about", beside), ("ping_rtt_ms_about", with.mean()), ("tcp_rtt_ms", tcp_rtt)];
    set(result, phase("with one upload"), &figures);
    let shown = before.max() < 200.0
        && (1035.0..1265.0).contains(&with.mean())
        && (beside / from_window - 1.0).abs() < 0.1
        && in_flight <= 1.02 * WINDOW;
    let evidence = format!(
        "pings {:.0} ms at most before, {:.0} ms beside an upload 45 s old; then {beside:.0} kbit/s, and the \
         {in_flight:.0} bytes in flight over the round trip are \
         {from_window:.0} kbit/s",
        before.max(),
        with.mean()
    );
    judge(table, result, None, shown, evidence);
    Ok(())
}

/// A run of `count` uploads over the line without a middlebox, each with this window.
fn uploads(lab: &mut Lab<'_>, seconds: u64, count: u64, window: u64) -> Result<Trial, ExperimentError> {
    let one = |number| {
        let keys = format!("direction = \"up\"\ntcp = {{ receive_window = \"{window} B\" }}");
        upload(&format!("upload-{number}"), 0, &keys)
    };
    trial(lab, UPLOADS, seconds, &[("traffic.ping.interval", "200 ms")], &(1..=count).map(one).collect::<String>())
}

fn upload_alone(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let run = uploads(lab, 30, 1, 63_712)?;
    let (rate, trips) = (ip_kbps(&run, "upload-1", 10.0, 30.0), RoundTrips::of(&run, "ping", 10.0, 28.0));
    set(result, |_| true, &[("upstream_throughput_kbps_median", rate), ("rtt_mean_ms", trips.mean())]);
    let shown = (rate / 454.0 - 1.0).abs() < 0.03 && (trips.mean() / 1140.0 - 1.0).abs() < 0.1;
    judge(table, result, None, shown, format!("{rate:.0} kbit/s, {:.0} ms", trips.mean()));
    Ok(())
}

fn small_window(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let (whole, one, two) = (uploads(lab, 25, 1, 63_712)?, uploads(lab, 25, 1, 18_750)?, uploads(lab, 25, 2, 18_750)?);
    let trips = |run| RoundTrips::of(run, "ping", 10.0, 24.0);
    let outstanding = |run: &Trial| mean(run.samples("in_flight_bytes", "upload-1"), 10.0, 25.0);
    let line = |run: &Trial| mean(run.samples("wire_rate_bps", "up"), 10.0, 25.0) / 1e3;
    let of_one = trips(&one);
    let figures = [
        ("rtt_mean_ms", of_one.mean()),
        ("rtt_min_ms", of_one.min()),
        ("rtt_max_ms", of_one.max()),
        ("outstanding_mean_bytes", outstanding(&one)),
        ("upstream_throughput_kbps_about", ip_kbps(&one, "upload-1", 10.0, 25.0)),
    ];
    set(result, |_| true, &figures);
    let (shrunk, windows) = (of_one.mean() / trips(&whole).mean(), outstanding(&one) / outstanding(&whole));
    let doubled = trips(&two).mean() / of_one.mean();
    let shown =
        (shrunk / windows - 1.0).abs() < 0.1 && (doubled - 2.0).abs() < 0.15 && line(&one) > 0.99 * line(&whole);
    let evidence = format!(
        "{:.0} of {:.0} ms are left, {:.0} % where what is outstanding is {:.0} %; two uploads {:.0} ms; the line \
         carries {:.0} and {:.0} kbit/s",
        of_one.mean(),
        trips(&whole).mean(),
        100.0 * shrunk,
        100.0 * windows,
        trips(&two).mean(),
        line(&one),
        line(&whole)
    );
    judge(table, result, None, shown, evidence);
    Ok(())
}

fn buffer_size(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    // Those that overfill the buffer do so in slow start first, and take half a minute to grow back.
    let mut trips = |count, (seconds, from_s, to_s)| {
        Ok(RoundTrips::of(&uploads(lab, seconds, count, 18_750)?, "ping", from_s, to_s))
    };
    let long = (60, 30.0, 57.0);
    let (five, eleven, fifteen) = (trips(5, (30, 15.0, 27.0))?, trips(11, long)?, trips(15, long)?);
    let figures = [
        ("rtt_max_ms_about", eleven.max()),
        ("rtt_mean_ms", eleven.mean()),
        ("buffer_estimate_bytes", eleven.max() * 450.0 / 8.0),
    ];
    set(result, |params| params.integer("uploads") == Some(11), &figures);
    let figures = [("rtt_max_ms_about", fifteen.max()), ("rtt_mean_ms", fifteen.mean())];
    set(result, |params| params.integer("uploads") == Some(15), &figures);
    // Five windows, of which each waits for the others: as many times the wait of one, which is 12 packets of 32 cells.
    let wait = 5.0 * 12.0 * 32.0 * 424.0 / 513.3;
    let shown = (five.mean() / wait - 1.0).abs() < 0.1
        && eleven.max() > 1.9 * five.mean()
        && (3_000.0..3_600.0).contains(&eleven.max())
        && fifteen.max() < 1.05 * eleven.max();
    let evidence = format!(
        "5 uploads {:.0} ms, where their windows take {wait:.0}; 11 {:.0} ms, at most {:.0}; 15 at most {:.0} ms",
        five.mean(),
        eleven.mean(),
        eleven.max(),
        fifteen.max()
    );
    judge(table, result, None, shown, evidence);
    Ok(())
}

/// Table 5.3, measured: a flood of 40-byte packets over a line with each encapsulation.
fn encapsulations(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    const FLOOD: &str = "name = \"overheads\"\n[access]\nencapsulation = \"ip\"\ndown = { rate = \"2048 kbit/s\", \
                         delay = \"2 ms\" }\n\
                         up = { rate = \"512 kbit/s\", delay = \"2 ms\", queue = { limit = \"50 packets\" } \
                         }\n[[traffic]]\nname = \"acks\"\n\
                         kind = \"blast\"\ndirection = \"up\"\nsize = \"40 B\"\nrate = \"2000 packets/s\"\n";
    let mut told = Vec::new();
    let mut as_computed = true;
    for row in &mut result.rows {
        let name = overheads::name_of(&row.params)?;
        let run = trial(lab, ("overheads", FLOOD), 4, &[("access.encapsulation", &name)], "")?;
        let wire = 512_000.0 / 8.0 / run.arrivals_per_s("acks").unwrap_or(f64::INFINITY);
        let computed = row.theory.number("ack_wire_bytes").unwrap_or_default();
        as_computed &= (wire / computed - 1.0).abs() < 0.005;
        told.push(format!("{name} {wire:.2}"));
        row.set_live(
            [("ack_wire_bytes", significant(wire)), ("ack_cells", significant(wire / 53.0))].into_iter().collect(),
        );
    }
    let evidence = format!(
        "bytes of line for each 40-byte packet of a flood, from the rate at which they arrive: {}",
        told.join(", ")
    );
    judge(table, result, None, as_computed, evidence);
    Ok(())
}

/// Class 1:10 while an upload runs from the start, and small packets from 15 s on.
fn naive(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let mut set_to = vec![AT_BBRAS, ("link.box.encapsulation", "ip")];
    let keys = ["1:1", "1:10", "1:30", "1:50"]
        .map(|class| [format!("link.box.queue.classes.{class}.rate"), format!("link.box.queue.classes.{class}.ceil")]);
    for ([rate, ceil], kbps) in keys.iter().zip(["450 kbit/s", "90 kbit/s", "180 kbit/s", "180 kbit/s"]) {
        set_to.push((rate, kbps));
        if kbps != "450 kbit/s" {
            set_to.push((ceil, "450 kbit/s"));
        }
    }
    let run = trial(lab, MIDDLEBOX, 50, &set_to, &loaded(100, 15, "1 s"))?;
    let of = |name, from, to| RoundTrips::of(&run, name, from, to);
    let (alone, beside) = (of("ping-10", 3.0, 15.0), of("ping-10", 35.0, 48.0));
    let bulk = of("ping-30", 3.0, 15.0);
    let figures = [
        ("class_1_10_latency_mean_ms", alone.mean()),
        ("class_1_10_latency_max_ms", alone.max()),
        ("class_1_30_latency_ms_bound_about", bulk.max()),
    ];
    set(result, phase("upload only"), &figures);
    let figures = [("class_1_10_latency_mean_ms", beside.mean()), ("class_1_10_latency_max_ms", beside.max())];
    set(result, phase("upload +"), &figures);
    let claim = table.claim.split_once("; recovery").map_or(table.claim.clone(), |(first, _)| format!("{first}."));
    let shown = alone.max() < LOST_MS && beside.mean() > LOST_MS;
    let evidence = format!("class 1:10 before the small packets {alone}, from 20 s after their begin on {beside}");
    judge(table, result, Some(&claim), shown, evidence);
    Ok(())
}

/// An upload in class 1:30, small packets in class 1:50, and a ping in both other classes.
fn loaded(rate: u64, start_s: u64, interval: &str) -> String {
    let upload = upload("upload", 0, "from = \"host\"\nto = \"server\"\ndscp = 30");
    let small = if rate > 0 { small_packets(rate, start_s) } else { String::new() };
    upload + &small + &ping("ping-10", 10, interval) + &ping("ping-30", 30, "1 s")
}

fn accurate(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    const SECONDS: f64 = 45.0;
    const BEGIN: f64 = 10.0;
    let run = trial(lab, MIDDLEBOX, 45, &[AT_BBRAS], &loaded(1000, 10, "1 s"))?;
    let (urgent, bulk) = (RoundTrips::of(&run, "ping-10", 12.0, 44.0), RoundTrips::of(&run, "ping-30", 12.0, 44.0));
    let passed = run.arrivals_per_s("udp").unwrap_or_default();
    let wire = passed * 0.848;
    let spans = (0..6).map(|step| 12.0 + 5.0 * f64::from(step));
    let lowest = spans.map(|from| ip_kbps(&run, "upload", from, from + 5.0)).fold(f64::INFINITY, f64::min);
    let figures = [
        ("lowest_upload_kbps", lowest),
        ("upload_at_full_line_kbps", ip_kbps(&run, "upload", BEGIN + 2.0, SECONDS)),
        ("udp_passed_packets_per_s", passed),
        ("udp_passed_wire_kbps", wire),
        ("class_1_30_latency_max_ms", bulk.max()),
    ];
    set(result, |params| params.integer("udp_packets_per_s") == Some(1000), &figures);
    let figures = [
        ("latency_mean_ms", urgent.mean()),
        ("latency_min_ms", urgent.min()),
        ("latency_max_ms", urgent.max()),
        ("latency_range_ms", urgent.max() - urgent.min()),
    ];
    set(result, |params| params.text("class_id") == Some("1:10"), &figures);
    let lost = run.pings_lost("ping-10");
    let shown = urgent.max() < 2.0 * LOST_MS && (wire / 204.8 - 1.0).abs() < 0.02 && lost <= 1;
    let evidence = format!(
        "class 1:10 {urgent} beside 1000 packets/s, of which {passed:.0} pass, {wire:.1} of 204.8 kbit/s assured; \
         {lost} of the pings in class 1:10 are \
         unanswered at the end"
    );
    judge(table, result, None, shown, evidence);
    Ok(())
}

fn idle(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let run = trial(lab, MIDDLEBOX, 4, &[AT_BBRAS], &ping("ping-10", 10, "20.13 ms"))?;
    let trips = RoundTrips::of(&run, "ping-10", 0.5, 3.5);
    let figures = [
        ("rtt_mean_ms", trips.mean()),
        ("rtt_min_ms", trips.min()),
        ("rtt_max_ms", trips.max()),
        ("rtt_range_ms", trips.max() - trips.min()),
    ];
    set(result, |_| true, &figures);
    let shown = trips.min() >= 5.9 && trips.quantile(0.99) <= 8.5;
    judge(
        table,
        result,
        None,
        shown,
        format!("{:.2} to {:.2} ms, 99 % within {:.2}", trips.min(), trips.max(), trips.quantile(0.99)),
    );
    Ok(())
}

fn hysteresis(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let mut with = |on: &str| {
        let set = [AT_BBRAS, ("link.box.queue.hysteresis", on), ("link.box.queue.timer", "10 ms")];
        Ok(RoundTrips::of(&trial(lab, MIDDLEBOX, 40, &set, &loaded(0, 0, "100.13 ms"))?, "ping-10", 8.0, 39.0))
    };
    let (on, off) = (with("true")?, with("false")?);
    for (switch, trips) in [(true, &on), (false, &off)] {
        let figures = [
            ("latency_mean_ms", trips.mean()),
            ("latency_min_ms", trips.min()),
            ("latency_max_ms", trips.max()),
            ("share_within_35ms_pct", trips.within_pct(35.0)),
            ("share_within_45ms_pct", trips.within_pct(45.0)),
        ];
        set(result, |params| params.switch("htb_hysteresis") == Some(switch), &figures);
    }
    let shown = off.max() < 0.8 * on.max() && off.mean() < on.mean() && off.within_pct(35.0) > 50.0;
    let evidence = format!("with hysteresis {on}; without {off}, {:.1} % within 35 ms", off.within_pct(35.0));
    judge(table, result, None, shown, evidence);
    Ok(())
}

/// Figure 10.3: with the six classes and without any.
fn production(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let faster = ["10", "20", "50"].map(|class| format!("traffic.ping-{class}.interval"));
    let mut set_to: Vec<(&str, &str)> = faster.iter().map(|key| (key.as_str(), "200 ms")).collect();
    let scheduled = trial(lab, PRODUCTION, 60, &set_to, "")?;
    set_to.push(("access.up.queue", r#"{ limit = "185625 B" }"#));
    let plain = trial(lab, PRODUCTION, 60, &set_to, "")?;
    let of = |run, class: &str| RoundTrips::of(run, &format!("ping-{class}"), 15.0, 57.0);
    let [ten, twenty, fifty] = ["10", "20", "50"].map(|class| of(&scheduled, class));
    let without = of(&plain, "10");
    let is = |class: &'static str| move |params: &Values| params.text("class_id") == Some(class);
    let urgent =
        [("rtt_mean_ms_about", f64::midpoint(ten.mean(), twenty.mean())), ("rtt_max_ms", ten.max().max(twenty.max()))];
    set(result, is("1:10 and 1:20"), &urgent);
    set(result, is("1:50"), &[("rtt_mean_ms_about", fifty.mean()), ("rtt_max_ms", fifty.max())]);
    set(result, is("without scheduler"), &[("rtt_ms_above", without.mean()), ("rtt_max_ms", without.max())]);
    let met = ten.mean() <= 100.0 && twenty.mean() <= 100.0 && fifty.mean() <= 1000.0;
    let evidence = format!("1:10 {ten}, 1:20 {twenty}, 1:50 {fifty}; without the classes {without}");
    judge(table, result, None, met && without.mean() > 1000.0, evidence);
    Ok(())
}

#[cfg(test)]
mod tests {
    use lastmile_sim::run;

    use super::*;
    use crate::experiment;

    /// The live experiments with the simulator in place of the lab: every scenario is one that two
    /// hosts can run, every row that they fill is there, and the announced seconds are those that
    /// they take.
    #[test]
    fn every_live_experiment_runs_between_two_hosts_for_as_long_as_it_says() {
        let publications = crate::publications().unwrap();
        let publication = publications.iter().find(|publication| publication.key == KEY).unwrap();
        for known in LIVE {
            assert!(experiment(KEY, known.table).is_some(), "{}", known.table);
            let table = publication.table(known.table).unwrap();
            let mut result = TableResult::new(KEY, table);
            result.rows = table.rows.iter().map(|row| crate::RowResult::new(row, Values::new())).collect();
            let mut seconds = 0.0;
            (known.run)(table, &mut result, &mut |scenario| {
                let network = scenario.network();
                let mut ends: Vec<_> = network.traffic.iter().flat_map(|traffic| [traffic.from, traffic.to]).collect();
                ends.sort_unstable();
                ends.dedup();
                assert_eq!(ends.len(), 2, "{}", known.table);
                seconds += network.duration.as_secs_f64();
                let outcome = run(&network).map_err(|error| error.to_string())?;
                Ok((network, outcome))
            })
            .unwrap();
            assert!((seconds - known.seconds as f64).abs() < 1e-9, "{} takes {seconds} s", known.table);
            assert!(result.rows.iter().any(|row| !row.live.is_empty()), "{}", known.table);
            // A window that grows by segments keeps the DSLAM's queue full, which the shaper of
            // figure 8.4 drains slowly.
            let shown = known.table != "fig-8.4";
            assert!(
                result.live_claims.iter().all(|claim| claim.verdict.holds() == shown),
                "{}: {:?}",
                known.table,
                result.live_claims
            );
        }
    }
}

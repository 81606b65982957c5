//! Brouer 2005, chapter 3: a line without a middlebox, where an upload starves the download and everyone waits.

use lastmile_queueing::random::Stream;

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::trial::{Overrides, Trial};
use super::measured::{
    RoundTrips, figure, ip_kbps, judge, judge_inferred, mean, mean_trips, row_of_runs, run, runs, sample, sensitivity,
    simulated,
};
use super::modem::uploads;
use super::{LINE, OPEN_LINE, UPLOADS, number};

/// The receive window of every transfer, in bytes: 44 segments.
const WINDOW: f64 = 63_712.0;

/// Keys that are set otherwise to see their effect.
pub(super) const VARIANTS: [(&str, &str, &str); 5] = [
    ("a DSLAM queue of 400 cells", "access.down.queue.limit", "400 cells"),
    ("of 1600 cells", "access.down.queue.limit", "1600 cells"),
    ("a backbone of 20 ms each way", "access.backbone.delay", "20 ms"),
    ("a modem that holds 124 packets", "access.up.queue.limit", "124 packets"),
    ("an upstream of 512 kbit/s", "access.up.rate", "512 kbit/s"),
];

/// A download from the start and two uploads of 4 MB one after the other.
fn download_with_uploads(seed: u64, overrides: &mut Overrides) -> String {
    let mut starts = Stream::new(seed, "brouer2005 uploads");
    // The pings fall anywhere between the samples, the uploads anywhere in a second.
    overrides.set("traffic.ping.start", format_args!("{} us", starts.below(100_000)));
    let [first, second] = [60_000, 200_000].map(|ms| ms + starts.below(1_000));
    format!("{}{}", upload("upload", first, "4 MB"), upload("second", second, "4 MB"))
}

fn upload(name: &str, start_ms: u64, bytes: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\ndirection = \"up\"\nbytes = \"{bytes}\"\nstart = \"{start_ms} ms\"\n"
    )
}

/// The second half of the upload, when the window has opened.
fn with_upload(trial: &Trial) -> (f64, f64) {
    let (start, end) = trial.flow_span_s("upload").unwrap_or_default();
    (f64::midpoint(start, end), end)
}

/// The rest of the upload, from when the download's window is as large as it gets.
fn with_full_window(trial: &Trial) -> (f64, f64) {
    let (from, to) = with_upload(trial);
    let start = trial.flow_span_s("upload").unwrap_or_default().0;
    let cap = trial.samples("cwnd_bytes", "download").find(|(at, cwnd)| *at > start && *cwnd >= WINDOW);
    cap.map(|(at, _)| at).filter(|at| *at < to - 5.0).map_or((from, to), |at| (at, to))
}

/// Round trips and throughput with one upload, for comparisons.
fn outline(trial: &Trial) -> String {
    let (from, to) = with_full_window(trial);
    format!(
        "{:.0} kbit/s and pings of {:.0} ms at most before, {:.0} kbit/s and {:.0} ms with an upload",
        ip_kbps(trial, "download", 10.0, 60.0),
        RoundTrips::of(trial, "ping", 0.0, 60.0).max(),
        ip_kbps(trial, "download", from, to),
        RoundTrips::of(trial, "ping", from, to).mean()
    )
}

fn told_sensitivity(result: &mut TableResult) -> Result<(), ExperimentError> {
    result.assumptions.extend(OPEN_LINE.map(String::from));
    let told = sensitivity("a download before and with an upload", &VARIANTS, |key, value| {
        let trial = run(LINE, 1, |seed, overrides| {
            overrides.set(key, value);
            download_with_uploads(seed, overrides)
        })?;
        Ok(outline(&trial))
    })?;
    result.assumptions.push(told);
    Ok(())
}

/// Figures 3.2 to 3.5.
pub(super) fn download_and_upload(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let runs = runs(LINE, download_with_uploads)?;
    for row in &table.rows {
        let mut ours = match row.params.text("phase") {
            Some("download only") => row_of_runs(row, &runs, |trial| {
                let mut values = Values::new();
                values.set("downstream_throughput_kbps_about", ip_kbps(trial, "download", 10.0, 60.0));
                values.set("ping_rtt_max_ms", RoundTrips::of(trial, "ping", 0.0, 60.0).max());
                values
            }),
            Some("with one upload") => {
                let mut row = row_of_runs(row, &runs, beside_upload);
                let equal = (figure(&row, "tcp_rtt_ms") / figure(&row, "ping_rtt_ms_about") - 1.0).abs() < 0.05;
                row.simulated.set("tcp_rtt_equals_ping", equal);
                row
            }
            _ => row_of_runs(row, &[], |_| Values::new()),
        };
        if ours.simulated.is_empty() {
            // The bytes that the line carries in the round trip of an upload.
            ours.theory = [("window_bytes", (1.8e6 * 1.15 / 8.0_f64).round())].into_iter().collect();
        }
        result.rows.push(ours);
    }
    let row = |phase| result.rows.iter().find(|row| row.params.text("phase") == Some(phase)).cloned();
    let (Some(before), Some(with)) = (row("download only"), row("with one upload")) else {
        return Err(ExperimentError::MissingSetting("phase"));
    };
    let (rtt, throughput) = (figure(&with, "ping_rtt_ms_about"), figure(&with, "downstream_throughput_kbps_about"));
    // The window in packets over the round trip, in IP bytes.
    let from_window = WINDOW * (1500.0 / 1448.0) * 8.0 / figure(&with, "tcp_rtt_ms");
    let cap = figure(&with, "window_cap_reached_at_s");
    let mut finding = Finding::default();
    finding.below(&before.sample("ping_rtt_max_ms"), 200.0);
    finding.between(&with.sample("ping_rtt_ms_about"), 1035.0, 1265.0);
    let allowed = with.sample("tcp_rtt_ms").map(|rtt| WINDOW * (1500.0 / 1448.0) * 8.0 / rtt);
    finding.between(&with.sample("downstream_throughput_kbps_about").over(&allowed), 0.95, 1.05);
    finding.between(&with.sample("window_cap_reached_at_s"), 60.0, 135.0);
    let evidence = format!(
        "pings {:.0} ms at most before, {rtt:.0} ms with an upload; then {throughput:.0} kbit/s, and window over \
         round trip is \
         {from_window:.0} kbit/s; the window is full after {cap:.0} s",
        figure(&before, "ping_rtt_max_ms")
    );
    told_sensitivity(&mut result)?;
    result.assumptions.push(
        "The figures with an upload are those from the window's full opening on, as the thesis reads them. Its \
         windows were full at 92 s, ours some 20 s \
         later: a window of the last seconds before the upload, which losses have halved at one time or another, \
         grows by a segment in two round trips. Its 440 kbit/s \
         are 63712 bytes over 1.15 s; the packets that carry them are 3.6 % more."
            .to_owned(),
    );
    finding.tell(evidence);
    judge_inferred(table, &mut result, finding, &["the DSLAM's buffer, from the longest ping of this figure"]);
    Ok(result)
}

fn beside_upload(trial: &Trial) -> Values {
    let (from, to) = with_full_window(trial);
    let start = trial.flow_span_s("upload").unwrap_or_default().0;
    let cap = trial.samples("cwnd_bytes", "download").find(|(at, cwnd)| *at > start && *cwnd >= WINDOW);
    let mut values = Values::new();
    values.set("downstream_throughput_kbps_about", ip_kbps(trial, "download", from, to));
    values.set("ping_rtt_ms_about", RoundTrips::of(trial, "ping", from, to).mean());
    values.set("tcp_rtt_ms", 1e3 * mean(trial.samples("srtt_s", "download"), from, to));
    values.set("window_cap_reached_at_s", cap.map_or(0.0, |(at, _)| at));
    values
}

/// Figure 3.6.
pub(super) fn upload_alone(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let runs = runs(UPLOADS, |seed, overrides| uploads(seed, overrides, 1, 63_712))?;
    for row in &table.rows {
        result.rows.push(row_of_runs(row, &runs, |trial| {
            let mut values = Values::new();
            values.set("upstream_throughput_kbps_median", median(trial.samples("goodput_bps", "upload-1"), 10.0));
            values.set("rtt_mean_ms", RoundTrips::of(trial, "ping", 10.0, 120.0).mean());
            values
        }));
    }
    let row = result.rows.first().ok_or(ExperimentError::MissingSetting("rows"))?;
    let (throughput, rtt) = (figure(row, "upstream_throughput_kbps_median"), figure(row, "rtt_mean_ms"));
    let mut finding = Finding::new(true, format!("{throughput:.0} kbit/s, {rtt:.0} ms"));
    finding.between(&row.sample("upstream_throughput_kbps_median").map(|kbps| kbps / 454.0), 0.97, 1.03);
    finding.between(&row.sample("rtt_mean_ms").map(|ms| ms / 1140.0), 0.9, 1.1);
    result.assumptions.extend(OPEN_LINE.map(String::from));
    let told = sensitivity("mean round trip", &VARIANTS[2..], |key, value| {
        let trial = run(UPLOADS, 1, |seed, overrides| {
            overrides.set(key, value);
            uploads(seed, overrides, 1, 63_712)
        })?;
        Ok(format!("{:.0} ms", RoundTrips::of(&trial, "ping", 10.0, 120.0).mean()))
    })?;
    result.assumptions.push(told);
    result.assumptions.push(
        "The window of 44 segments takes 66 kB with its headers, which at 454 kbit/s is 1.16 s; the thesis divides \
         63.7 kB by it. A ping waits \
         behind all of them, and its own way comes on top."
            .to_owned(),
    );
    judge_inferred(table, &mut result, finding, &["the upstream of 513.3 kbit/s, from the median of this figure"]);
    Ok(result)
}

/// The median of a rate over spans of 10 s, in kbit/s of IP.
fn median(samples: impl Iterator<Item = (f64, f64)>, from_s: f64) -> f64 {
    let mut seconds: Vec<(f64, u32)> = Vec::new();
    for (at, rate) in samples.filter(|(at, _)| *at > from_s) {
        let second = ((at - from_s) / 10.0) as usize;
        if seconds.len() <= second {
            seconds.resize(second + 1, (0.0, 0));
        }
        seconds[second].0 += rate;
        seconds[second].1 += 1;
    }
    let mut rates: Vec<f64> = seconds.iter().filter(|(_, n)| *n > 0).map(|(sum, n)| sum / f64::from(*n)).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).map_or(0.0, |rate| rate * (1500.0 / 1448.0) / 1e3)
}

/// Three downloads with three uploads, then with one.
fn three_and_three(seed: u64, overrides: &mut Overrides, last: &str) -> String {
    let mut starts = Stream::new(seed, "brouer2005 three");
    overrides.set("duration", "560 s");
    overrides.set("traffic.ping.start", format_args!("{} us", starts.below(100_000)));
    let mut traffic = String::new();
    for number in 2..=3 {
        let start = starts.below(1_000);
        traffic += &format!(
            "[[traffic]]\nname = \"download-{number}\"\nkind = \"persistent\"\ndirection = \"down\"\nstart = \"{start} ms\"\n"
        );
    }
    for number in 1..=3 {
        traffic += &upload(&format!("three-{number}"), 60_000 + starts.below(1_000), "4 MB");
    }
    traffic + &upload("upload", 380_000 + starts.below(1_000), last)
}

/// Figure 3.9.
pub(super) fn several_each_way(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let both = runs(LINE, |seed, overrides| three_and_three(seed, overrides, "8 MB"))?;
    // While all three run, from 20 s after their start; and the second half of the one alone.
    let three = |_: &Trial| (80.0, 240.0);
    let downstream = |trial: &Trial, (from, to): (f64, f64)| -> f64 {
        ["download", "download-2", "download-3"].iter().map(|name| ip_kbps(trial, name, from, to)).sum()
    };
    let measure = |trial: &Trial, span: (f64, f64)| {
        let trips = RoundTrips::of(trial, "ping", span.0, span.1);
        let mut values = Values::new();
        values.set("downstream_throughput_kbps", downstream(trial, span));
        values.set("rtt_mean_ms", trips.mean());
        values.set("rtt_p5_ms", trips.quantile(0.05));
        values.set("rtt_p95_ms", trips.quantile(0.95));
        values
    };
    for row in &table.rows {
        let mut ours = row_of_runs(row, &both, |trial| {
            measure(trial, if row.params.integer("uploads") == Some(1) { with_upload(trial) } else { three(trial) })
        });
        let (low, mean, high) = (figure(&ours, "rtt_p5_ms"), figure(&ours, "rtt_mean_ms"), figure(&ours, "rtt_p95_ms"));
        let unstable = high - low > 0.1 * mean;
        let below = mean < 3398.0;
        let text = format!(
            "{}, {} theory",
            if unstable { "unstable" } else { "steady" },
            if below { "below" } else { "not below" }
        );
        ours.simulated.set("rtt", text.as_str());
        ours.simulated.set("downstream_reduced", figure(&ours, "downstream_throughput_kbps") < 1500.0);
        result.rows.push(ours);
    }
    let single = runs(LINE, download_with_uploads)?;
    let mean_of = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let one = mean_of(
        single
            .iter()
            .map(|trial| {
                let (from, to) = with_upload(trial);
                ip_kbps(trial, "download", from, to)
            })
            .collect(),
    );
    let thrice = mean_of(both.iter().map(|trial| downstream(trial, with_upload(trial))).collect());
    let crippled = mean_of(both.iter().map(|trial| downstream(trial, three(trial))).collect());
    let trips = RoundTrips::all(&both, "ping", 80.0, 240.0);
    let spread = trips.quantile(0.95) - trips.quantile(0.05);
    let mut finding = Finding::new(spread > 0.1 * trips.mean(), "");
    let alone = sample(&single, |trial| {
        let (from, to) = with_upload(trial);
        ip_kbps(trial, "download", from, to)
    });
    let ratio = sample(&both, |trial| downstream(trial, with_upload(trial))).over(&alone);
    finding.between(&ratio, 2.5, 3.5);
    finding.below(&mean_trips(&both, "ping", 80.0, 240.0), 3398.0);
    finding.below(&sample(&both, |trial| downstream(trial, three(trial))), 900.0);
    let evidence = format!(
        "beside one upload {one:.0} kbit/s for one download and {thrice:.0} for three; with three uploads \
         {crippled:.0} kbit/s, round trips mean {:.0}, \
         5 to 95 % from {:.0} to {:.0} ms",
        trips.mean(),
        trips.quantile(0.05),
        trips.quantile(0.95)
    );
    result.assumptions.extend(OPEN_LINE.map(String::from));
    let short = run(LINE, 1, |seed, overrides| three_and_three(seed, overrides, "4 MB"))?;
    result.assumptions.push(format!(
        "File sizes are not stated: three uploads of 4 MB as in chapter 8, one of 8 MB alone, so that the windows \
         of three downloads that shared the line \
         before have the time to open (after one of 4 MB {:.0} kbit/s), downloads without end.",
        downstream(&short, with_upload(&short))
    ));
    finding.tell(evidence);
    judge(table, &mut result, finding);
    Ok(result)
}

/// Figures 3.10 to 3.12.
pub(super) fn loss_and_bursts(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let fine = |seed: u64, overrides: &mut Overrides| {
        overrides.set("record.interval", "10 ms");
        download_with_uploads(seed, overrides)
    };
    let runs = runs(LINE, fine)?;
    for row in &table.rows {
        let before = row.params.text("phase") == Some("download only");
        let mut ours = row_of_runs(row, &runs, |trial| {
            let mut values = Values::new();
            let (start, end) = trial.flow_span_s("upload").unwrap_or_default();
            let (by_start, by_end) = (trial.sent_again_by("download", start), trial.sent_again_by("download", end));
            if before {
                values.set("throughput_kbps_about", ip_kbps(trial, "download", 10.0, 60.0));
                values.set("segments_sent_again", by_start as f64);
                values.set("timeouts_count", trial.timeouts("download") as f64);
            } else {
                values.set("segments_sent_again", (by_end - by_start) as f64);
                values.set("share_of_time_idle_pct", idle_pct(trial, with_upload(trial)));
            }
            values
        });
        let again = figure(&ours, "segments_sent_again");
        // A retransmission of what was lost before the upload may fall into its first second.
        ours.simulated.set("retransmissions", again >= 1.0);
        if before {
            ours.simulated.set("timeouts", figure(&ours, "timeouts_count") >= 0.5);
        } else {
            ours.simulated.set("bursty", figure(&ours, "share_of_time_idle_pct") > 50.0);
        }
        result.rows.push(ours);
    }
    let start = |trial: &Trial| trial.flow_span_s("upload").unwrap_or_default();
    let before = sample(&runs, |trial| trial.sent_again_by("download", start(trial).0) as f64);
    let with = sample(&runs, |trial| {
        (trial.sent_again_by("download", start(trial).1) - trial.sent_again_by("download", start(trial).0)) as f64
    });
    let timeouts = sample(&runs, |trial| trial.timeouts("download") as f64);
    let idle_before = sample(&runs, |trial| idle_pct(trial, (10.0, 60.0)));
    let idle = sample(&runs, |trial| idle_pct(trial, with_upload(trial)));
    let mut finding = Finding::default();
    finding.above(&before, 0.0);
    finding.below(&with, 1.0);
    finding.below(&timeouts, 0.5);
    finding.below(&idle_before, 5.0);
    finding.above(&idle, 50.0);
    finding.tell(format!(
        "segments sent again {before} before and {with} during the upload, {timeouts} timeouts; of all 10 ms the \
         downstream is idle in \
         {idle_before} % before, and with the upload, when data come in bursts, in {idle} %"
    ));
    result.assumptions.push(
        "What is sent again stands for what is lost. In a run or two of ten a timer ends when the round trip jumps \
         from 0.15 to 1.2 s, although nothing is lost; that is \
         taken back, as in Linux."
            .to_owned(),
    );
    told_sensitivity(&mut result)?;
    judge(table, &mut result, finding);
    Ok(result)
}

/// Percent of all samples in which the downstream carried nothing.
fn idle_pct(trial: &Trial, (from, to): (f64, f64)) -> f64 {
    100.0
        * mean(
            trial.samples("wire_rate_bps", "down").map(|(at, rate)| (at, f64::from(u8::from(rate == 0.0)))),
            from,
            to,
        )
}

/// Section 3.8: this line, and the faster one.
pub(super) fn summary(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let lines = [unmodified(false)?, unmodified(true)?];
    for row in &table.rows {
        let fast = row.params.text("line").is_some_and(|line| line.starts_with('8'));
        result.rows.push(crate::reproduction::RowResult::new(row, lines[usize::from(fast)].clone()));
    }
    let mut shown = true;
    let mut evidence = Vec::new();
    for (name, values) in ["2 Mbit/s", "8 Mbit/s"].iter().zip(&lines) {
        let [before, with, rtt] = ["downstream_before_kbps", "downstream_with_upload_kbps", "rtt_one_upload_ms"]
            .map(|name| values.number(name).unwrap_or_default());
        shown &= with < 0.3 * before && rtt > 1000.0;
        evidence.push(format!(
            "{name}: {before:.0} kbit/s alone, {with:.0} beside an upload, which makes round trips of {rtt:.0} ms"
        ));
    }
    result.assumptions.extend(OPEN_LINE.map(String::from));
    result.assumptions.push(
        "The line of 8 Mbit/s and 512 kbit/s is PPPoA (10 bytes a packet); its modem and DSLAM are taken to hold as \
         much as those of the other."
            .to_owned(),
    );
    judge(table, &mut result, Finding::new(shown, evidence.join("; ")));
    Ok(result)
}

/// A download before and with an upload, and the longest round trip of 15 uploads; on the line of 8
/// Mbit/s if it is `fast`.
pub(super) fn unmodified(fast: bool) -> Result<Values, ExperimentError> {
    let set = |overrides: &mut Overrides| {
        if fast {
            overrides.set("access.down.rate", "8 Mbit/s");
            overrides.set("access.up.rate", "512 kbit/s");
            overrides.set("access.encapsulation", "pppoa-vcmux");
        }
    };
    let both = runs(LINE, |seed, overrides| {
        set(overrides);
        download_with_uploads(seed, overrides)
    })?;
    let full = runs(UPLOADS, |seed, overrides| {
        set(overrides);
        uploads(seed, overrides, 15, 18_750)
    })?;
    let of_runs = |value: &dyn Fn(&Trial) -> f64| both.iter().map(value).sum::<f64>() / both.len() as f64;
    let figures = [
        ("downstream_before_kbps", of_runs(&|trial| ip_kbps(trial, "download", 10.0, 60.0))),
        (
            "downstream_with_upload_kbps",
            of_runs(&|trial| beside_upload(trial).number("downstream_throughput_kbps_about").unwrap_or_default()),
        ),
        ("rtt_one_upload_ms", of_runs(&|trial| beside_upload(trial).number("ping_rtt_ms_about").unwrap_or_default())),
        ("rtt_max_ms", RoundTrips::all(&full, "ping", 10.0, 120.0).max()),
    ];
    Ok(figures.into_iter().map(|(name, value)| (name, super::super::significant(value))).collect())
}

/// Table A.1: pings of an idle line.
pub(super) fn idle_line(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(super::KEY, table);
    let baseline = number(&table.scenario, "baseline_ms")?;
    let ping = |bytes: u64| -> Result<f64, ExperimentError> {
        let trial = run(UPLOADS, 1, |_, overrides| {
            overrides.set("duration", "10 s");
            overrides.set("access.down.rate", "2 Mbit/s");
            overrides.set("access.up.rate", "512 kbit/s");
            overrides.set("access.encapsulation", "{ overhead = 0, framing = \"atm\" }");
            for key in ["access.down.delay", "access.up.delay"] {
                overrides.set(key, format_args!("{} us", (baseline * 500.0).round()));
            }
            overrides.set("access.backbone.delay", "0 ms");
            overrides.set("traffic.ping.size", format_args!("{bytes} B"));
            String::new()
        })?;
        Ok(super::super::significant(RoundTrips::of(&trial, "ping", 0.0, 10.0).mean()))
    };
    let mut worst = 0.0_f64;
    for row in &table.rows {
        let mut values = Values::new();
        if let Some(bytes) = row.params.integer("ip_bytes") {
            let rtt = ping(bytes)?;
            values.set("with_baseline_ms", rtt);
            worst = worst.max((rtt - row.theory.number("with_baseline_ms").unwrap_or_default()).abs());
        } else if row.params.text("measurement") == Some("RTT to modem, 36 bytes") {
            values.set("rtt_mean_ms", ping(36)?);
        }
        let mut ours = crate::reproduction::RowResult::new(row, values);
        ours.published = row.theory_printed.overlaid(&row.published);
        result.rows.push(ours);
    }
    result.assumptions.push(
        "The baseline of 9 ms is put half and half on both directions of the line; as in the table, packets are cut \
         into cells without any overhead. \
         The 5.61 ms to the DSLAM with 1500 bytes cannot have crossed the line, which takes 33 ms for them: not \
         simulated."
            .to_owned(),
    );
    judge(
        table,
        &mut result,
        Finding::new(
            worst < 1.0,
            format!("simulated pings are {worst:.2} ms from baseline plus serialisation at most: the LAN and the core"),
        ),
    );
    Ok(result)
}

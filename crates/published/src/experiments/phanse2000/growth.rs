//! Phanse 2000, section 5.4.1: what suppressed ACKs take from the growth of a window that counts ACKs.
//!
//! The formulas are checked where they hold exactly: each ACK that arrives adds a segment in slow
//! start, and 1/W of one in congestion avoidance; W - m of them arrive in a round.

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;
use crate::verdict::Finding;

use super::super::trial::{Overrides, Trial};
use super::KEY;
use crate::error::ExperimentError;
use crate::rounding::rounded;

const DOWNLOAD: (&str, &str) =
    ("phanse2000/download.toml", include_str!("../../../scenarios/phanse2000/download.toml"));

const MSS: f64 = 1500.0;
/// The window of 64 KB holds 43 segments.
const GROWN: f64 = 43.0;
/// Congestion avoidance begins here, in segments.
const THRESHOLD: u32 = 8;

/// Section 5.4.1, figure 5.12.
pub(super) fn window_growth(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let mut finding = Finding::default();
    for row in &table.rows {
        let slow_start = row.params.text("phase") == Some("slow start");
        let [without, with] = [grow("fifo", slow_start)?, grow("sad", slow_start)?];
        let mut simulated = Values::new();
        for (name, growth) in [("without_sad", &without), ("with_sad", &with)] {
            simulated.set(format!("acks_arrived_{name}"), growth.acks);
            simulated.set(format!("segments_acknowledged_{name}"), rounded(growth.segments, 0));
            simulated.set(format!("window_segments_{name}"), rounded(growth.window, 1));
            simulated.set(format!("window_by_formula_segments_{name}"), rounded(growth.by_formula, 1));
        }
        let exact = [&without, &with].iter().all(|growth| (growth.window - growth.by_formula).abs() <= 1.0);
        finding.and(Finding::new(
            exact && with.segments > 1.1 * without.segments,
            format!(
                "{}: {:.0} segments acknowledged for a window of {:.0} without SAD, {:.0} with; {} and {} ACKs \
                 arrived, for which the formula \
                 gives {:.1} and {:.1}",
                if slow_start { "slow start" } else { "congestion avoidance" },
                without.segments,
                without.window,
                with.segments,
                without.acks,
                with.acks,
                without.by_formula,
                with.by_formula,
            ),
        ));
        result.rows.push(formulas(row, simulated));
    }
    let [slow, fast] = [finish("fifo")?, finish("sad")?];
    finding.and(Finding::new(fast < slow, format!("10 MB in {slow:.1} s without SAD, {fast:.1} s with")));
    result.claims.push(finding.claim(&table.claim));
    result.assumptions.push(format!(
        "The line of table 5.8 at 64 kbit/s. Slow start is followed until the window holds {GROWN:.0} segments, \
         congestion avoidance from {THRESHOLD} \
         segments (an initial threshold set for the purpose) until the window limits the flow."
    ));
    Ok(result)
}

/// A row whose published side is a formula in words.
fn formulas(row: &Row, simulated: Values) -> RowResult {
    RowResult { published: row.theory_printed.clone(), ..RowResult::new(row, simulated) }
}

/// How a window grew.
struct Growth {
    acks: i64,
    segments: f64,
    window: f64,
    by_formula: f64,
}

/// A download with this kind of queue upstream, up to the moment at which its window holds [`GROWN`] segments.
fn grow(queue: &str, slow_start: bool) -> Result<Growth, ExperimentError> {
    let overrides = overrides(queue, slow_start);
    let whole = Trial::until_complete(DOWNLOAD.0, DOWNLOAD.1, &overrides)?;
    let reached = whole.congestion_window("download").find(|(_, cwnd)| *cwnd >= GROWN * MSS);
    let (at, _) = reached.ok_or(ExperimentError::MissingSetting("recv_window_bytes"))?;
    let mut until = overrides.clone();
    until.set("duration", format_args!("{:.0} ms", at * 1e3));
    let trial = Trial::whole(DOWNLOAD.0, DOWNLOAD.1, &until)?;
    let window = trial.congestion_window("download").last().map_or(0.0, |(_, cwnd)| cwnd / MSS);
    let acks = trial.acks_received("download");
    let segments = trial.acked_bytes("download") / MSS;
    Ok(Growth {
        acks: i64::try_from(acks).unwrap_or(i64::MAX),
        segments,
        window,
        by_formula: if slow_start { after_slow_start(acks) } else { after_avoidance(acks) },
    })
}

/// One segment at first, and one more for each ACK.
fn after_slow_start(acks: u64) -> f64 {
    1.0 + acks as f64
}

/// Slow start up to the threshold, then as many ACKs for each further segment as the window has segments.
fn after_avoidance(acks: u64) -> f64 {
    let mut left = acks.saturating_sub(u64::from(THRESHOLD) - 1) as f64;
    let mut window = f64::from(THRESHOLD);
    while left >= window {
        left -= window;
        window += 1.0;
    }
    window + left / window
}

/// The duration of the whole download with this kind of queue upstream, from slow start, in s.
fn finish(queue: &str) -> Result<f64, ExperimentError> {
    Ok(Trial::until_complete(DOWNLOAD.0, DOWNLOAD.1, &overrides(queue, true))?.time_s())
}

fn overrides(queue: &str, slow_start: bool) -> Overrides {
    let mut overrides = Overrides::default();
    overrides.set("access.encapsulation", "ppp-llc-aal5");
    overrides.set("access.up.rate", "64 kbit/s");
    overrides.set("access.up.queue.kind", queue);
    // Fine enough to see each ACK at 64 kbit/s, two cells each.
    overrides.set("record.interval", "10 ms");
    if !slow_start {
        overrides.set("tcp.initial_ssthresh", format_args!("{} B", f64::from(THRESHOLD) * MSS));
    }
    overrides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_eight_needs_eight_acks_for_the_ninth_segment() {
        let is = |window: f64, segments: f64| assert!((window - segments).abs() < 1e-9, "{window} not {segments}");
        is(after_slow_start(0), 1.0);
        // Slow start has just ended.
        is(after_avoidance(7), 8.0);
        is(after_avoidance(7 + 8), 9.0);
        is(after_avoidance(7 + 8 + 9), 10.0);
    }
}

//! Brouer 2005, table A.1: pings of an idle line, next to the baseline and the serialisation of their cells.

use crate::data::Table;
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;
use crate::verdict::{Agreement, Finding};

use super::super::round_trips::RoundTrips;
use super::super::trial::{Overrides, Trial};
use super::files::UPLOADS;
use super::number;
use crate::error::ExperimentError;
use crate::rounding::significant;

/// Table A.1.
pub(super) fn idle_line(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(super::KEY, table);
    let baseline = number(&table.scenario, "baseline_ms")?;
    let ping = |bytes: u64| -> Result<f64, ExperimentError> {
        let mut overrides = Overrides::default();
        overrides.set("seed", 1);
        overrides.set("duration", "10 s");
        overrides.set("access.down.rate", "2 Mbit/s");
        overrides.set("access.up.rate", "512 kbit/s");
        overrides.set("access.encapsulation", "{ overhead = 0, framing = \"atm\" }");
        for key in ["access.down.delay", "access.up.delay"] {
            overrides.set(key, format_args!("{} us", (baseline * 500.0).round()));
        }
        overrides.set("access.backbone.delay", "0 ms");
        overrides.set("traffic.ping.size", format_args!("{bytes} B"));
        let trial = Trial::whole(UPLOADS.0, UPLOADS.1, &overrides)?;
        Ok(significant(RoundTrips::of(&trial, "ping", 0.0, 10.0).mean()))
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
        let mut ours = RowResult::new(row, values);
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
    let evidence =
        format!("simulated pings are {worst:.2} ms from baseline plus serialisation at most: the LAN and the core");
    result.agreement = Some(Agreement::of(&result.rows));
    result.claims.push(Finding::new(worst < 1.0, evidence).with_figures_of(&result.rows).claim(&table.claim));
    Ok(result)
}

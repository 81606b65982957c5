//! Brouer 2005, chapters 2 and 3: rates on the market, and what their asymmetry leaves to a download alone.

use lastmile_theory::{Fraction, asymmetry};

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::{Value, Values};

use super::super::closed_form::quoted;
use super::formulas::formulas;
use super::{KEY, whole};
use crate::error::ExperimentError;

/// Section 2.2: rates of two recommendations.
pub(super) fn rate_grids(table: &Table) -> Result<TableResult, ExperimentError> {
    Ok(quoted(KEY, table, |table| {
        let mut numbers = Vec::new();
        for row in &table.rows {
            for (_, value) in row.theory_printed.iter() {
                match value {
                    Value::List(values) => numbers.extend(values.iter().filter_map(Value::as_f64)),
                    value => numbers.extend(value.as_f64()),
                }
            }
        }
        let whole = numbers.iter().all(|number| number % 32.0 == 0.0);
        (whole && !numbers.is_empty(), format!("{} quoted rates, each a multiple of 32 kbit/s", numbers.len()))
    }))
}

/// Section 2.3.2.
pub(super) fn with_cells(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, normalised, |rows| {
        let bound = |k| asymmetry::utilisation_bound(k, Fraction::ONE).as_f64();
        let (at_one, above) = (bound(Fraction::ONE), bound(Fraction::whole(2)));
        let k = rows.first().and_then(|row| row.theory.number("k")).unwrap_or(f64::INFINITY);
        let evidence = format!(
            "k = {k}; with an ACK for each segment a download may use {:.0} % of its line at k = 1 and {:.0} % at k \
             = 2",
            100.0 * at_one,
            100.0 * above
        );
        (k <= 1.0 && at_one >= 1.0 && above < 1.0, evidence)
    })
}

/// Table 3.2.
pub(super) fn products(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = formulas(table, normalised, |rows| {
        let largest = rows.iter().filter_map(|row| row.theory.number("k")).fold(0.0, f64::max);
        (largest > 0.0 && largest <= 1.0, format!("k is {largest} at most; 2048 over 128 kbit/s would be 1"))
    })?;
    result.assumptions.push(
        "A packet of 1500 bytes takes 32 cells. Where PPPoE over LLC makes it 33, k is 3 % lower: the claim holds \
         there too."
            .to_owned(),
    );
    Ok(result)
}

fn normalised(settings: &Values) -> Result<Values, ExperimentError> {
    let rate = |bps, kbps| whole(settings, bps).or_else(|_| Ok::<_, ExperimentError>(1000 * whole(settings, kbps)?));
    let (down, up) = (rate("down_bps", "down_kbps")?, rate("up_bps", "up_kbps")?);
    let (data, ack) = (whole(settings, "data_wire_bytes")?, whole(settings, "ack_wire_bytes")?);
    let k = asymmetry::normalised(Fraction::whole(down), Fraction::whole(up), data, ack);
    let raw = down as f64 / up as f64;
    let mut values = Values::new();
    values.set("raw_ratio", raw);
    values.set("ratio", raw);
    values.set("size_ratio", data as f64 / ack as f64);
    values.set("k", k.ok_or(ExperimentError::MissingSetting("up_bps"))?.as_f64());
    // RFC 5681: an ACK for each segment to one for every second.
    values.set("d_min", 1.0);
    values.set("d_max", 2.0);
    Ok(values)
}

/// Table 4.1.
pub(super) fn service_classes(table: &Table) -> Result<TableResult, ExperimentError> {
    Ok(quoted(KEY, table, |table| {
        let jitter: Vec<u64> = table
            .rows
            .iter()
            .filter(|row| row.theory_printed.get("delay_variation_ms").is_some())
            .filter_map(|row| row.params.integer("service_class"))
            .collect();
        let bounded = table.rows.iter().filter(|row| row.theory_printed.get("delay_ms").is_some()).count();
        (
            jitter == [0, 1] && table.rows.len() == 6,
            format!("{bounded} classes have a delay bound, {jitter:?} one of jitter"),
        )
    }))
}

/// Section 4.4.
pub(super) fn delay_limits(table: &Table) -> Result<TableResult, ExperimentError> {
    Ok(quoted(KEY, table, |table| {
        let least = super::super::closed_form::range(table, "highly_interactive_ms").map_or(0.0, |(least, _)| least);
        let one_way = super::super::closed_form::range(table, "one_way_ms").map_or(0.0, |(least, _)| least);
        (
            (least, one_way) == (100.0, 150.0),
            format!("{least} ms where it is highly interactive, {one_way} ms otherwise"),
        )
    }))
}

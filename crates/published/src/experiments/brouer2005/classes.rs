//! Brouer 2005, sections 6.2.1, 8.1 and 9.3: the classes as configured, next to those that run here.

use lastmile_queueing::sched::htb;
use lastmile_queueing::spec::Spec;
use lastmile_scenario::Policy;

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::Values;

use super::super::closed_form::quotation;
use super::super::trial::Overrides;
use super::formulas::row_of;
use super::{KEY, number, whole};
use crate::error::ExperimentError;

/// Section 6.2.1: shares of the line.
pub(super) fn queue_control(table: &Table) -> Result<TableResult, ExperimentError> {
    let up = number(&table.scenario, "htb_rate_bps_accurate")? / 1e3;
    configured(table, super::files::MIDDLEBOX, up, up)
}

/// Section 8.1: shares of what the ACK class leaves.
pub(super) fn ack_priority(table: &Table) -> Result<TableResult, ExperimentError> {
    let up = number(&table.scenario, "up_bps")? / 1e3;
    configured(table, super::files::BOTH_FULL, up, number(&table.scenario, "left_kbps")?)
}

/// A table of classes next to those of the scenario that runs them.
fn configured(
    table: &Table,
    scenario: (&str, &str),
    line_kbps: f64,
    left_kbps: f64,
) -> Result<TableResult, ExperimentError> {
    let classes = classes_of(scenario)?;
    let mut result = TableResult::new(KEY, table);
    let (mut same, mut sum, mut shown) = (true, 0.0, Vec::new());
    for row in &table.rows {
        let printed = |name| row.theory_printed.number(name);
        let rate = printed("rate_kbps").unwrap_or_else(|| left_kbps * printed("rate_pct").unwrap_or_default() / 100.0);
        let ceil = line_kbps * printed("ceil_pct").unwrap_or(100.0) / 100.0;
        let mut theory = Values::new();
        theory.set("rate_kbps", rate);
        theory.set("ceil_kbps", ceil);
        result.rows.push(row_of(row, theory));
        sum += rate;
        let id = row.params.text("class_id").unwrap_or_default();
        let ours = classes.iter().find(|class| class.name == id);
        same &= ours.is_some_and(|class| {
            let near = |ours: f64, theirs: f64| (ours - theirs).abs() < 0.5;
            near(class.rate_kbps, rate)
                && near(class.ceil_kbps, ceil)
                && Some(f64::from(class.priority)) == printed("prio")
        });
        shown.push(format!("{id} {rate:.1}"));
    }
    let verb = if same { "runs" } else { "does not run" };
    let evidence = format!(
        "a configuration; {} {verb} these classes, kbit/s: {}, together {sum:.1} of {line_kbps}",
        scenario.0,
        shown.join(", ")
    );
    result.claims.push(quotation(table, same && sum <= line_kbps + 1e-9, evidence));
    Ok(result)
}

struct Class {
    name: String,
    rate_kbps: f64,
    ceil_kbps: f64,
    priority: u8,
}

/// The classes of the first HTB in a scenario.
fn classes_of((name, text): (&str, &str)) -> Result<Vec<Class>, ExperimentError> {
    let network = Overrides::default().scenario(name, text)?.network();
    let config = network.links.iter().find_map(|link| match &link.hop.queue {
        Spec::Htb(config) => Some(config),
        _ => None,
    });
    let kbps = |rate: lastmile_units::BitRate| rate.as_bps() as f64 / 1e3;
    let class = |class: &lastmile_queueing::sched::tree::Class<htb::Share>| Class {
        name: class.name.clone(),
        rate_kbps: kbps(class.share.rate),
        ceil_kbps: kbps(class.share.ceil.unwrap_or(class.share.rate)),
        priority: class.share.priority,
    };
    let config = config.ok_or_else(|| ExperimentError::Network(format!("{name} has no HTB")))?;
    Ok(config.tree.classes.iter().map(class).collect())
}

/// Section 9.3: percentages of what is left, and of the line.
pub(super) fn production(table: &Table) -> Result<TableResult, ExperimentError> {
    let (line, left) = (whole(&table.scenario, "up_bps")? / 1000, whole(&table.scenario, "left_kbps")?);
    let policy =
        Policy::load("adsl-optimizer", None, None).map_err(|report| ExperimentError::Network(report.to_string()))?;
    let policy_line = policy.line.up.map_or(0, lastmile_units::BitRate::as_bps);
    let policy_left = policy_line - policy.ack.map_or(0, |ack| ack.rate.as_bps());
    let mut result = TableResult::new(KEY, table);
    let mut same = true;
    for row in &table.rows {
        let printed = |name| row.theory_printed.integer(name);
        let rate = match (printed("rate_kbps"), printed("rate_pct")) {
            (Some(rate), _) => rate,
            (_, pct) => left * pct.unwrap_or_default() / 100,
        };
        let ceil = line * printed("ceil_pct").unwrap_or(100) / 100;
        result.rows.push(row_of(row, [("rate_kbps", rate as f64), ("ceil_kbps", ceil as f64)].into_iter().collect()));
        let name = row.params.text("name").unwrap_or_default().to_lowercase();
        same &= policy.classes.iter().any(|class| {
            let share = |bps: u64, of: u64| (bps * 100 + of / 2) / of;
            class.name == name
                && Some(u64::from(class.priority)) == printed("prio")
                && Some(share(class.ceil.as_bps(), policy_line)) == printed("ceil_pct")
                && printed("rate_pct")
                    .is_none_or(|pct| class.rate.map(|rate| share(rate.as_bps(), policy_left)) == Some(pct))
        });
    }
    let rows = &result.rows;
    let figure = |name: &str, row: &crate::reproduction::RowResult| row.theory.number(name).unwrap_or_default();
    let rates: f64 = rows.iter().map(|row| figure("rate_kbps", row)).sum();
    let exact = table.rows.iter().zip(rows).all(|(row, ours)| {
        ["rate_kbps", "ceil_kbps"].iter().all(|name| row.theory.number(name) == ours.theory.number(name))
    });
    let verb = if same { "has" } else { "has not" };
    let evidence = format!(
        "a configuration; rates of {rates} kbit/s in sum, {line} at most; the policy adsl-optimizer {verb} these \
         priorities, percentages and ceilings"
    );
    let supported = same && exact && rates <= line as f64;
    result.claims.push(quotation(table, supported, evidence));
    Ok(result)
}

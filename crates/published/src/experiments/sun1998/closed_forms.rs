//! Sun 1998, sections 3.3, 4.1 and 5.3: the algorithm step by step, the common parameters, and a rule about thresholds.

use lastmile_atm::aal5::Encapsulation;
use lastmile_atm::discard::{CellDrop, Discard, FrameState, LastCell, Occupancy, Rules, Scheme};
use lastmile_units::{ByteCount, CellCount};

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::{Value, Values};
use crate::verdict::{Claim, Finding, Verdict};

use super::KEY;
use super::whole;
use crate::error::ExperimentError;
use crate::rounding::significant;

/// A buffer, thresholds and occupancies that tell the cases apart.
const BUFFER: u32 = 1000;
const EPD: u32 = 700;
const SPD: u32 = 20;
const CONGESTED: u32 = 200;

/// Section 3.3: each step is asked of the discard that the simulated switches have.
pub(super) fn algorithm(table: &Table) -> Result<TableResult, ExperimentError> {
    let rules = Discard {
        scheme: Scheme::Spd {
            epd_threshold: CellCount::new(EPD.into()),
            vc_threshold: CellCount::new(SPD.into()),
            activation: CellCount::new(CONGESTED.into()),
        },
        last_cell: LastCell::Pass,
        ..Discard::default()
    }
    .rules(Some(CellCount::new(BUFFER.into())), None)
    .map_err(|error| ExperimentError::Network(error.to_string()))?;
    let mut result = TableResult::new(KEY, table);
    let mut differ = Vec::new();
    for row in &table.rows {
        let step = whole(&row.params, "step")?;
        let action = action(step, &rules).ok_or(ExperimentError::MissingSetting("step"))?;
        if row.theory.text("action") != Some(action) {
            differ.push(step.to_string());
        }
        result.rows.push(RowResult::new(row, [("action", action)].into_iter().collect()));
    }
    let evidence = if differ.is_empty() {
        format!("the switch does so in all {} steps", table.rows.len())
    } else {
        format!("the switch does otherwise in step {}", differ.join(", "))
    };
    result.claims.push(Finding::new(differ.is_empty(), evidence).claim(&table.claim));
    result.assumptions.push(
        "The steps are asked of the discard that the simulated switches use, with a buffer of 1000, EPD at 700, \
         SPDth 20 and CongestTh 200 cells."
            .to_owned(),
    );
    Ok(result)
}

/// The action of a switch in a step of the algorithm, in the words of the data. `None`: no such step.
fn action(step: u64, rules: &Rules) -> Option<&'static str> {
    let idle = |armed| FrameState { armed, ..FrameState::default() };
    let within = |discarding| FrameState { receiving: true, discarding, ..FrameState::default() };
    let (state, queue, vc, last) = match step {
        1 => (idle(false), 300, 0, false),
        2 => (idle(true), 300, SPD - 1, false),
        3 => (idle(true), 300, SPD, false),
        4 => (idle(false), 300, SPD, false),
        5 => (idle(true), EPD, SPD, false),
        6 => (within(Some(CellDrop::Spd)), 300, SPD, false),
        7 => (within(None), BUFFER, SPD, false),
        8 => (within(Some(CellDrop::Spd)), 300, SPD, true),
        _ => return None,
    };
    let mut after = state;
    let seen = Occupancy { queue, memory: queue, vc, active: 1 };
    let dropped = rules.admit(&mut after, &seen, last, false);
    Some(match (step, dropped, after) {
        (1, None, FrameState { armed: true, .. }) => "Dropping = true",
        (8, None, FrameState { receiving: false, discarding: None, .. }) => {
            "clear Receiving and Discarding; accept if Q < Qmax, even when the packet was being discarded"
        }
        (_, None, _) => "accept",
        (_, Some(CellDrop::Spd), FrameState { armed: false, .. }) => "discard the packet; Dropping = false",
        (_, Some(CellDrop::Epd), _) => "discard the packet (EPD)",
        (6, Some(_), _) => "discard",
        (_, Some(CellDrop::QueueFull), FrameState { discarding: Some(CellDrop::Ppd), .. }) => {
            "discard the rest (partial packet discard)"
        }
        _ => "something else",
    })
}

/// Section 4.1.
pub(super) fn parameters(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let packet = whole(&table.scenario, "packet_bytes")?;
    let cells = |bytes| Encapsulation::VcMux.cells(ByteCount::new(bytes)).map(i64::from);
    let (bare, headed) = (cells(packet), cells(packet + 40));
    let (Some(bare), Some(headed)) = (bare, headed) else {
        return Err(ExperimentError::MissingSetting("packet_bytes"));
    };
    for row in &table.rows {
        let mut theory = row.theory.clone();
        for (name, ours) in [
            ("cells_bare", bare),
            ("cells_with_tcp_ip_headers", headed),
            // 700 cells among 10 VCs.
            ("per_vc_cells", row.theory.number("aggregate_cells").map_or(0, |aggregate| (aggregate / 10.0) as i64)),
        ] {
            if theory.get(name).is_some() {
                theory.set(name, ours);
            }
        }
        result.rows.push(RowResult::closed_form(row, theory));
    }
    let evidence = format!(
        "settings, from which runs with other buffers and thresholds depart; a packet takes {headed} cells ({bare} \
         without headers), not the 20 of 1024 / 53, so that SPDth = 20 lies below one packet"
    );
    result.claims.push(Claim { text: table.claim.clone(), verdict: Verdict::Quoted, evidence });
    Ok(result)
}

/// Sections 5.3 and 6.1.
pub(super) fn room(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let (from, packet) = (whole(&table.scenario, "spd_threshold_cells")?, whole(&table.scenario, "packet_cells")?);
    for row in &table.rows {
        let gaps = gaps(row, from)?;
        let packets = gaps.iter().map(|gap| significant(gap / packet as f64));
        let mut theory = Values::new();
        theory.set("gap_cells", Value::List(gaps.iter().map(|gap| Value::Float(significant(*gap))).collect()));
        theory.set("gap_packets_of_23_cells", Value::List(packets.map(Value::Float).collect()));
        result.rows.push(RowResult::closed_form(row, theory));
    }
    let [with, without] = published_wins(2.0 * packet as f64, from)?;
    let evidence = format!(
        "of the published rows of tables 5.7, 5.8 and 5.10, SPD wins in {} of {} where two packets fit, and in {} \
         of {} where they do not: the rule does not tell them apart",
        with.0, with.1, without.0, without.1
    );
    // The rule would have to say where SPD does not win.
    let shown = with.0 == with.1 && 2 * without.0 < without.1;
    result.claims.push(Finding::new(shown, evidence).claim(&table.claim));
    Ok(result)
}

/// Cells between SPDth and the EPD threshold per VC, at the ends of a row's thresholds.
fn gaps(row: &Row, from: u64) -> Result<Vec<f64>, ExperimentError> {
    let vcs = whole(&row.params, "vcs")? as f64;
    let Some(Value::List(thresholds)) = row.params.get("epd_threshold_cells") else {
        return Err(ExperimentError::MissingSetting("epd_threshold_cells"));
    };
    Ok(thresholds.iter().filter_map(Value::as_f64).map(|threshold| threshold / vcs - from as f64).collect())
}

/// Published rows in which SPD wins, of all: with at least so much room, and with less.
fn published_wins(room: f64, from: u64) -> Result<[(u32, u32); 2], ExperimentError> {
    let publications = crate::publications().map_err(|error| ExperimentError::Network(error.to_string()))?;
    let ours = publications.iter().find(|publication| publication.key == KEY);
    let tables = ["5.7", "5.8", "5.10"].iter().filter_map(|id| ours?.table(id));
    let (mut with, mut without) = ((0, 0), (0, 0));
    for table in tables {
        let vcs = whole(&table.scenario, "vcs")? as f64;
        for row in &table.rows {
            let threshold = whole(&row.params, "epd_threshold_cells")? as f64;
            let side = if threshold / vcs - from as f64 >= room { &mut with } else { &mut without };
            side.0 += u32::from(row.check.number("spd_minus_best_epd").is_some_and(|lead| lead > 0.0));
            side.1 += 1;
        }
    }
    Ok([with, without])
}

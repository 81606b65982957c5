//! The cost of a cell at a hop of an ATM network: cell by cell, and in trains.

mod cost;
mod load;

use std::time::Instant as Clock;

use comfy_table::{LineStyle, Table, TableStyle};
use lastmile_units::{Duration, Instant};

use crate::measurement::Measurement;
pub(crate) use cost::CellCost;
use cost::{BRIEF, MEASURED};
use load::{Kind, Load};

/// The time in which frames fill the wires.
const WARM_UP: Duration = Duration::from_ms(300);
/// The goal: 12 s, in trains.
const WHOLE: Duration = Duration::from_s(180);
pub(crate) fn names() -> Vec<String> {
    cases().map(|(kind, trains)| name(kind, trains)).collect()
}

fn cases() -> impl Iterator<Item = (Kind, bool)> {
    Kind::ALL.into_iter().flat_map(|kind| [false, true].map(|trains| (kind, trains)))
}

fn name(kind: Kind, trains: bool) -> String {
    format!("atm: {}, {}", kind.name(), how(trains))
}

fn how(trains: bool) -> &'static str {
    if trains { "in trains" } else { "cell by cell" }
}

/// The function whose instructions count.
pub(crate) const COUNTED: &str = "lastmile_bench::atm::go_on";

/// `brief` selects a short run for counting instructions.
pub(crate) fn run(wanted: &str, brief: bool) -> Option<Measurement> {
    let (kind, trains) = cases().find(|(kind, trains)| name(*kind, *trains) == wanted)?;
    let mut load = Load::new(kind, trains);
    let start = Instant::ZERO + WARM_UP;
    load.run(start);
    let before = load.cells();
    let clock = Clock::now();
    go_on(&mut load, start + if brief { BRIEF } else { MEASURED });
    let wall_s = clock.elapsed().as_secs_f64();
    let after = load.cells();
    let cell_hops = after.0 - before.0;
    let cost = CellCost {
        what: kind.name().to_owned(),
        trains,
        cell_hops,
        trunk_cells: after.1 - before.1,
        ns_per_cell_hop: wall_s * 1e9 / cell_hops as f64,
        instructions_per_cell_hop: None,
    };
    Some(Measurement { atm: Some(cost), ..Measurement::of_events(wanted, wall_s, cell_hops) })
}

// A function of its own, so that callgrind can count its instructions separately.
#[inline(never)]
fn go_on(load: &mut Load, until: Instant) {
    load.run(until);
}

pub(crate) fn print_table(rows: &[Measurement]) {
    if rows.iter().all(|row| row.atm.is_none()) {
        return;
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header([
        "atm: 48 connections, OC-3, 18 s",
        "cells",
        "wall s",
        "M cell-hops",
        "180 s take s",
        "ns/cell-hop",
        "instr/cell-hop",
    ]);
    for (row, cost) in rows.iter().filter_map(|row| Some((row, row.atm.as_ref()?))) {
        table.add_row([
            cost.what.clone(),
            how(cost.trains).to_owned(),
            format!("{:.3}", row.wall_s),
            format!("{:.1}", cost.cell_hops as f64 / 1e6),
            format!("{:.1}", row.wall_s * WHOLE.as_secs_f64() / MEASURED.as_secs_f64()),
            format!("{:.1}", cost.ns_per_cell_hop),
            cost.instructions_per_cell_hop.map_or(String::new(), |count| format!("{count:.0}")),
        ]);
    }
    println!("{table}");
    println!("three hops each way: host, trunk, host; a tenth of 180 s, ACKs included");
}

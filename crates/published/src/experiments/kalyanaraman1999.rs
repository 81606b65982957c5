//! Kalyanaraman, Shekhar, Kidambi 1999: the AMP model; ACK dropping, ACK regeneration and two classes upstream.
//!
//! The paper simulated with ns, and says little of how: what is chosen here is listed with each table. Throughput is TCP
//! payload: 960 of a packet's 1000 bytes come nearest to the 93 to 95 % of the bound that the unlimited rows reach.

mod closed_forms;
mod single;
mod two_way;

use crate::data::Table;
use crate::reproduction::TableResult;

use super::trial::Overrides;
use super::{Experiment, ExperimentError, whole};

const KEY: &str = "kalyanaraman1999";

/// What reproduces which table.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    table("text-1", closed_forms::rates),
    table("text-2-example", closed_forms::worked_example),
    table("text-2-cbq", closed_forms::classes),
    table("1", single::unregulated),
    table("2", single::dropper),
    table("3", single::regenerator),
    table("4", two_way::fifo),
    table("5", two_way::classes),
    table("6", closed_forms::cell_tax),
];

const fn table(table: &'static str, run: fn(&Table) -> Result<TableResult, ExperimentError>) -> Experiment {
    Experiment { publication: KEY, table, run }
}

const OPEN: [&str; 5] = [
    "Delays are not stated: 5 ms each way.",
    "Queues are not stated: 50 packets downstream, the default of the simulator used; 1000 upstream, so that no ACK is lost there.",
    "TCP is not stated: Reno, windows of 64 KiB, an ACK for each segment, minimum RTO 1 s. The window and the downstream line hold more \
     than the queue, so that an unregulated flow meets a loss now and then.",
    "A packet of 1000 bytes is taken with its headers: 960 of payload, which is what throughput counts.",
    "The length of a run is not stated: 100 s from the start, slow start included.",
];

/// Rates of a row.
fn overrides(table: &Table, row: &crate::data::Row) -> Result<Overrides, ExperimentError> {
    let settings = table.settings(row);
    let mut overrides = Overrides::default();
    overrides.set("access.down.rate", format_args!("{} bit/s", whole(&settings, "down_bps")?));
    overrides.set("access.up.rate", format_args!("{} bit/s", whole(&settings, "up_bps")?));
    Ok(overrides)
}

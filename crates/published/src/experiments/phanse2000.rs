//! Phanse 2000: TCP over ADSL, plain, over ATM, over PPP over ATM; the Smart ACK Dropper.
//!
//! The simulated tables are in `experiments/phanse2000.toml`.

mod closed_forms;
mod growth;

pub(super) use super::keys::PHANSE2000 as KEY;
use super::tables::{Tables, whole};

/// The tables that are calculated, each with the function that does so. The plan of the publication has the others.
pub(super) const TABLES: Tables = &[
    ("2.1", closed_forms::applications),
    ("text-4.2", closed_forms::line_rates),
    ("text-3.4", closed_forms::worked_example),
    ("text-3.7.2", closed_forms::ppp_header),
    ("text-5.2.1", closed_forms::cell_tax_example),
    ("text-5.3", closed_forms::ack_cells),
    ("text-5.4.1", growth::window_growth),
];

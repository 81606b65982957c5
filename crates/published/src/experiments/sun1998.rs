//! Sun 1998: single packet discard (SPD), so that more of what TCP sends over UBR arrives usefully.
//!
//! The simulated tables are in `experiments/sun1998.toml`. The base case was fixed, with its
//! reasons, before any ratio was compared.

mod closed_forms;

pub(super) use super::keys::SUN1998 as KEY;
use super::tables::{Tables, whole};

/// The tables that are calculated, each with the function that does so. The plan of the publication has the others.
pub(super) const TABLES: Tables = &[
    ("text-3.3", closed_forms::algorithm),
    ("text-4.1", closed_forms::parameters),
    ("text-5.3-rule", closed_forms::room),
];

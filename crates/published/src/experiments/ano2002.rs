//! Ano, Decre and Hasegawa 2002: assured forwarding as SBR3 with selective cell discard, next to
//! best effort as UBR, on one OC-3c trunk.
//!
//! The measured tables are simulated by `experiments/ano2002.toml`. The base case was fixed, with
//! its reasons, before any throughput was compared.

mod closed_forms;

pub(super) use super::keys::ANO2002 as KEY;
use super::tables::{Tables, number, whole};

/// The tables that are calculated, each with the function that does so. The plan of the publication has the others.
pub(super) const TABLES: Tables =
    &[("fig-4", closed_forms::segment), ("text-3.2", closed_forms::contracts), ("text-4.1", closed_forms::shares)];

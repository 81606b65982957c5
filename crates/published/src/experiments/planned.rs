//! Publications whose tables are all run by their plans, `experiments/KEY.toml`.
//!
//! - CED, December 2006: downloads over cable whose acknowledgements wait for grants.
//! - Custura and others, ASMS 2020: ACKs of QUIC over a satellite.
//! - De Schepper and others, CoNEXT 2016: PI2 with classic and scalable flows.
//! - Hock and others, ICNP 2017: several BBR flows.
//! - Karlstad University, ANRW 2025: congestion controls over Starlink.
//! - Ware and others, IMC 2019: BBR beside loss-based flows.
//! - White and others, draft-white-tsvwg-lld-00: latency of DOCSIS by generation.

use super::keys::{CED2006, CUSTURA2020, DESCHEPPER2016, HOCK2017, STARLINK2025, WARE2019, WHITE2019};

/// Each publication with the ids of its tables.
pub(super) const PUBLICATIONS: [(&str, &[&str]); 7] = [
    (CED2006, &["rgt"]),
    (CUSTURA2020, &["ack-ratio", "ack-size", "return-bytes"]),
    (DESCHEPPER2016, &["coexistence", "starvation", "control"]),
    (HOCK2017, &["loss", "no-loss", "queue", "rtt"]),
    (STARLINK2025, &["single", "several", "hystart"]),
    (WARE2019, &["1c", "8a-1", "8a-4", "8c-1", "8c-4"]),
    (WHITE2019, &["1"]),
];

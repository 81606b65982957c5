//! The keys of the publications with calculated tables.

pub(super) const ANO2002: &str = "ano2002";
pub(super) const BROUER2005: &str = "brouer2005";
pub(super) const KALYANARAMAN1999: &str = "kalyanaraman1999";
pub(super) const PHANSE2000: &str = "phanse2000";
pub(super) const SUN1998: &str = "sun1998";

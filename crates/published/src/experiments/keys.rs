//! The keys of the publications.

pub(super) const ANO2002: &str = "ano2002";
pub(super) const BROUER2005: &str = "brouer2005";
pub(super) const CED2006: &str = "ced2006";
pub(super) const CUSTURA2020: &str = "custura2020";
pub(super) const DESCHEPPER2016: &str = "deschepper2016";
pub(super) const HOCK2017: &str = "hock2017";
pub(super) const KALYANARAMAN1999: &str = "kalyanaraman1999";
pub(super) const PHANSE2000: &str = "phanse2000";
pub(super) const STARLINK2025: &str = "starlink2025";
pub(super) const SUN1998: &str = "sun1998";
pub(super) const WARE2019: &str = "ware2019";
pub(super) const WHITE2019: &str = "white2019";

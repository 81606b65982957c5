//! The scenarios that ship for reproductions, by name.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name)))),*]
    };
}

const SCENARIOS: &[(&str, &str)] = shipped![
    "ced2006/download.toml",
    "kalyanaraman1999/both-ways.toml",
    "kalyanaraman1999/download.toml",
    "phanse2000/both-ways.toml",
    "phanse2000/download.toml",
    "phanse2000/policed-email.toml",
    "phanse2000/several-downloads.toml",
    "phanse2000/shared-dslam.toml",
    "phanse2000/upstream-load.toml",
    "sun1998/network.toml",
    "sun1998/two-sets.toml",
    "ano2002/testbed.toml",
    "brouer2005/line.toml",
    "brouer2005/uploads.toml",
    "brouer2005/middlebox.toml",
    "brouer2005/both-full.toml",
    "brouer2005/production.toml",
    "custura2020/satellite.toml",
    "deschepper2016/classic-flows.toml",
    "deschepper2016/two-kinds.toml",
    "hock2017/flows.toml",
    "hock2017/round-trips.toml",
    "starlink2025/download.toml",
    "ware2019/bottleneck.toml",
    "white2019/modem.toml",
];

/// The scenario called `name`.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// All names.
pub(crate) fn names() -> Vec<&'static str> {
    SCENARIOS.iter().map(|(name, _)| *name).collect()
}

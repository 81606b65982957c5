//! The scenarios of this publication that ship with the crate, by name and text.

pub(super) const LINE: (&str, &str) = ("brouer2005/line.toml", include_str!("../../../scenarios/brouer2005/line.toml"));
pub(super) const UPLOADS: (&str, &str) =
    ("brouer2005/uploads.toml", include_str!("../../../scenarios/brouer2005/uploads.toml"));
pub(super) const MIDDLEBOX: (&str, &str) =
    ("brouer2005/middlebox.toml", include_str!("../../../scenarios/brouer2005/middlebox.toml"));
pub(super) const BOTH_FULL: (&str, &str) =
    ("brouer2005/both-full.toml", include_str!("../../../scenarios/brouer2005/both-full.toml"));

pub(super) const PRODUCTION: (&str, &str) =
    ("brouer2005/production.toml", include_str!("../../../scenarios/brouer2005/production.toml"));

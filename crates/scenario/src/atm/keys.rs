//! The keys of traffic over cells.

use crate::schema::{Key, Kind};

pub(crate) const CONTRACT_KEY: Key = Key::optional(
    "contract",
    Kind::Text,
    "that of its code point, or none",
    "Contract of the virtual channels of its data, by name.",
);
pub(crate) const BACK_CONTRACT_KEY: Key = Key::optional(
    "back_contract",
    Kind::Text,
    "that of its code point without policing, or none",
    "Contract of the virtual channels of what comes back, by name.",
);
pub(crate) const VP_KEY: Key =
    Key::optional("vp", Kind::Text, "none", "Virtual path of the virtual channels of its data, by name.");
pub(crate) const VC_KEY: Key = Key::with_default(
    "vc",
    Kind::Choice(&["own", "shared"]),
    "own",
    "Over links of cells each of `count` has virtual channels of its own, or all share one, there and back.",
);

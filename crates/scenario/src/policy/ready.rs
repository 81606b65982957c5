//! The built-in policies.

/// The names of the built-in policies, from the simplest to the one that does most.
pub const NAMES: [&str; 11] = [
    "fifo",
    "ack-filter",
    "sad",
    "ack-priority",
    "sad-priority",
    "sad-cbq",
    "adsl-optimizer",
    "cake",
    "cake-autorate",
    "fq-codel-sqm",
    "full-both-ways",
];

/// The name for the line's own queues, without a policy.
pub const NONE: &str = "none";

/// The names, as a hint for a wrong one; with [`NONE`] where the line's own queues are a choice.
#[must_use]
pub fn hint(with_none: bool) -> String {
    let names: Vec<&str> = with_none.then_some(NONE).into_iter().chain(NAMES).collect();
    format!("built-in policies: {}", names.join(", "))
}

/// The file of the policy with this name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "fifo" => include_str!("../../policies/fifo.toml"),
        "ack-filter" => include_str!("../../policies/ack-filter.toml"),
        "ack-priority" => include_str!("../../policies/ack-priority.toml"),
        "sad" => include_str!("../../policies/sad.toml"),
        "sad-priority" => include_str!("../../policies/sad-priority.toml"),
        "sad-cbq" => include_str!("../../policies/sad-cbq.toml"),
        "adsl-optimizer" => include_str!("../../policies/adsl-optimizer.toml"),
        "cake" => include_str!("../../policies/cake.toml"),
        "cake-autorate" => include_str!("../../policies/cake-autorate.toml"),
        "fq-codel-sqm" => include_str!("../../policies/fq-codel-sqm.toml"),
        "full-both-ways" => include_str!("../../policies/full-both-ways.toml"),
        _ => return None,
    })
}

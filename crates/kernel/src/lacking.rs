//! Queueing disciplines that a kernel may lack, and what to use in their place.

/// The queueing disciplines that a set-up asks for without a choice, and what has the name of its option.
const DISCIPLINES: [&str; 4] = ["cake", "hfsc", "htb", "prio"];

/// The discipline that a command of tc(8) asks for.
#[must_use]
pub fn discipline_of(command: &str) -> Option<&'static str> {
    DISCIPLINES.into_iter().find(|kind| command.split(' ').any(|word| word == *kind))
}

/// A kernel without the discipline, and the way to get it.
#[must_use]
pub fn by_kernel(kind: &str) -> String {
    let instead = instead_of(kind);
    format!("this kernel has no {kind}: CONFIG_NET_SCH_{}, or `modprobe sch_{kind}`; {instead}", kind.to_uppercase())
}

/// A tc(8) without the discipline.
#[must_use]
pub fn by_tc(kind: &str) -> String {
    format!("this tc knows no {kind}: a later iproute2 does; {}", instead_of(kind))
}

fn instead_of(kind: &str) -> &'static str {
    match kind {
        "cake" => "or the policy fq-codel-sqm, which needs HTB and FQ-CoDel, or `lastmile shape`, which needs neither",
        _ => "or `lastmile shape`, which needs none of the kernel's shapers",
    }
}

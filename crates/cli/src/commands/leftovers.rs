//! What a killed run left, removed or named when the next one starts.

use lastmile_live::netns::leftovers;
use lastmile_live::user;

use crate::printer::Printer;

/// Removes network namespaces of runs that were killed. Names those that stay, with the command that removes them. Nothing here keeps
/// a run from starting.
pub(super) fn remove(printer: &mut Printer) {
    if !user::has_rights() {
        return;
    }
    let Ok(found) = leftovers::remove() else { return };
    if !found.removed.is_empty() {
        printer.talk(&format!("removed what a killed lastmile left: network namespace {}", found.removed.join(", ")));
    }
    for (name, error) in found.kept {
        printer.talk(&format!(
            "a killed lastmile left network namespace {name} ({error}); `ip netns delete {name}` removes it"
        ));
    }
}

//! Namespaces left by killed runs: removed or named at the next start.

use lastmile_live::netns::leftovers;
use lastmile_live::user;

use crate::printer::Printer;

/// Removes network namespaces of killed runs, and names those that it cannot remove, with the
/// command for it. A failure does not prevent the run.
pub(super) fn remove(printer: &mut Printer) {
    if !user::has_rights() {
        return;
    }
    let Ok(found) = leftovers::remove() else { return };
    if !found.removed.is_empty() {
        printer.talk(&format!("removed the network namespace of a killed lastmile: {}", found.removed.join(", ")));
    }
    for (name, error) in found.kept {
        printer.talk(&format!(
            "a killed lastmile left network namespace {name} ({error}); `ip netns delete {name}` removes it"
        ));
    }
}

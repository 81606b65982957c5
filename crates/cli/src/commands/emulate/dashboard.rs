//! The dashboard of an emulated line.

use std::sync::Arc;
use std::thread::Scope;

use lastmile_dashboard::hub::Program;
use lastmile_live::emulate::Handle;
use lastmile_live::stop::Stop;

use super::super::web::{Opened, publish};
use super::status::Teller;

/// A line, of which the page asks nothing: its settings cannot be changed.
pub(in crate::commands) struct Line;

impl Program for Line {}

/// Serves the dashboard until `end`, by threads of this scope.
pub(super) fn show<'scope>(
    dashboard: Opened,
    scope: &'scope Scope<'scope, '_>,
    (handle, teller): (&Handle, &'scope Teller),
    end: &'scope Stop,
) {
    let (hub, handle) = (dashboard.hub("lastmile emulate", Line), handle.clone());
    let reports = Arc::clone(&hub);
    let mut before = None;
    scope.spawn(move || {
        publish(&reports, end, |_| {
            let now = handle.states()?;
            let report = teller.report(before.as_ref(), &now);
            before = Some(now);
            Some(report)
        });
    });
    scope.spawn(move || dashboard.serve(end, &hub));
}

//! The dashboard of an emulated line.

use std::sync::Arc;
use std::thread::Scope;

use lastmile_lab::what_if::Alternatives;
use lastmile_live::emulate::Handle;
use lastmile_live::stop::Stop;

use super::super::web::{Opened, publish};
use super::status::Teller;
use super::what_if::Line;

/// A dashboard whose port is open, and what it can be asked.
pub(super) struct Dashboard {
    pub(super) opened: Opened,
    pub(super) alternatives: Option<Alternatives>,
}

/// Serves the dashboard until `end`, by threads of this scope.
pub(super) fn show<'scope>(
    Dashboard { opened, alternatives }: Dashboard,
    scope: &'scope Scope<'scope, '_>,
    (handle, teller): (&Handle, &'scope Teller),
    end: &'scope Stop,
) {
    let (handle, alternatives) = (handle.clone(), alternatives.map(Arc::new));
    alternatives.iter().for_each(|alternatives| alternatives.begin(handle.clone()));
    let hub = opened.hub("lastmile emulate", Line(alternatives.clone()));
    let reports = Arc::clone(&hub);
    let mut before = None;
    scope.spawn(move || {
        publish(&reports, end, |_| {
            let now = handle.states()?;
            let report = teller.report(before.as_ref(), &now, &handle);
            alternatives.iter().for_each(|alternatives| alternatives.push(before.as_ref(), &now));
            before = Some(now);
            Some(report)
        });
    });
    scope.spawn(move || opened.serve(end, &hub));
}

//! The dashboard of a shaper: its reports, and what it can be asked.

use std::sync::Arc;

use lastmile_dashboard::hub::{Hub, Program, Question, Reloading};
use lastmile_dashboard::report::Report;
use lastmile_lab::classes::classes;
use lastmile_live::bump::{States, intervals};
use lastmile_live::control::{Asker, Request, Verb};
use lastmile_live::links::Links;
use lastmile_scenario::policy::ready;

use super::super::control::{self, Answer};
use super::super::links::all_faults;
use super::super::web::what_if::asked;
use super::super::web::{charts, flows};
use super::shared::Shared;
use super::status::Status;
use super::what_if;

/// Makes the reports.
pub(super) struct Reporter {
    shared: Arc<Shared>,
    links: Arc<Links>,
    before: Option<States>,
    /// The number of the policy in force at the preceding report.
    policy: u64,
}

impl Reporter {
    pub(super) fn new(shared: Arc<Shared>, links: Arc<Links>) -> Self {
        Self { shared, links, before: None, policy: 0 }
    }

    /// The report of this second; `None` once the shaper has ended.
    pub(super) fn sample(&mut self, hub: &Hub) -> Option<Report> {
        let now = self.shared.handle.states()?;
        let in_force = self.shared.in_force();
        let mut recent = self.shared.recent();
        if self.policy != in_force.number {
            // Classes of two policies do not compare.
            recent.clear();
            if self.policy > 0 {
                hub.mark(in_force.since_ms, format!("{} is in force", in_force.name()));
            }
            self.policy = in_force.number;
        }
        recent.push(self.before.as_ref(), &now);
        drop(recent);
        let hops = intervals(self.before.as_ref(), &now);
        let (mut groups, mut tables) = (Vec::new(), Vec::new());
        for (shown, hop) in in_force.directions.iter().zip(&hops) {
            let classes = classes(&shown.classes, shown.shaper, hop);
            let rate_bps = shown.rate.map(lastmile_units::BitRate::as_bps);
            groups.push(charts::group(shown.name, shown.title(), rate_bps, hop, &classes));
            if !classes.is_empty() {
                tables.push(charts::table(format!("classes {}", shown.name), &classes, hop.wire_per_byte()));
            }
        }
        tables.extend(flows::tables(&self.shared.handle, now.at));
        let policy = format!("policy {}", in_force.name());
        drop(in_force);
        let (faults, _) = all_faults(&self.links);
        let status = std::iter::once(policy).chain(faults).collect::<Vec<_>>().join("; ");
        self.before = Some(now);
        Some(Report { status, groups, tables, ..Report::default() })
    }
}

/// A shaper, for the dashboard.
pub(super) struct Shaper {
    pub(super) shared: Arc<Shared>,
    pub(super) asker: Asker,
}

impl Program for Shaper {
    fn policies(&self) -> Vec<String> {
        ready::NAMES.iter().map(|name| (*name).to_owned()).collect()
    }

    fn what_if(&self, question: &Question) -> Result<String, String> {
        what_if::json(&self.shared, question)
    }

    fn reload(&self, policy: Option<&Question>) -> Option<Reloading> {
        let asker = self.asker.clone();
        let request = Request { policy: policy.map(asked), ..Verb::Reload.into() };
        Some(Box::pin(async move {
            let answer = asker.ask(request.to_string()).await.ok_or("the shaper ends")?;
            match Answer::<Status>::read(&answer) {
                Ok(Answer::Done { message }) => Ok(message),
                Ok(Answer::Failed { error }) => Err(error),
                Ok(Answer::Status(_)) => Err("the shaper answered something else".to_owned()),
                Err(failure) => Err(control::words(&failure)),
            }
        }))
    }
}

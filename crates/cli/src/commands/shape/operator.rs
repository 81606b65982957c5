//! The operator at the control socket of a shaper.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile_live::autorate::Steering;
use lastmile_live::control::Replacement;
use lastmile_live::links::Links;
use lastmile_live::shape::notify::Manager;
use lastmile_live::shape::{Handle, Snapshot};
use lastmile_scenario::file::Reading;
use lastmile_scenario::policy::Policy;

use super::super::control::{self, Program, words};
use super::super::links;
use super::replacement;
use super::start::{Start, directions};
use super::status::{Place, Reloads, Rights, Status};
use super::watch::InForce;

/// The answer of a shaper.
pub(super) type Answer = control::Answer<Status>;

/// Knows the policy in force and its history.
pub(super) struct Operator<'a> {
    start: &'a Start,
    policy: Policy,
    place: Place,
    rights: Rights,
    links: Arc<Links>,
    handle: Handle,
    reloads: Reloads,
    steering: &'a Steering,
    manager: Option<&'a Manager>,
    /// For the live view.
    in_force: Arc<Mutex<InForce>>,
}

impl<'a> Operator<'a> {
    pub(super) fn new(
        start: &'a Start,
        policy: Policy,
        (place, rights, links): (Place, Rights, Arc<Links>),
        (handle, steering): (Handle, &'a Steering),
        manager: Option<&'a Manager>,
        in_force: Arc<Mutex<InForce>>,
    ) -> Self {
        Self { start, policy, place, rights, links, handle, steering, reloads: Reloads::default(), manager, in_force }
    }

    pub(super) fn status_of(&self, snapshot: &Snapshot) -> Status {
        let (faults, left_bridge) = links::all_faults(&self.links);
        let place = Place { left_bridge, ..self.place.clone() };
        let status = Status::new(&self.policy, (&place, &self.rights), &self.reloads, snapshot);
        Status { faults, reflectors: self.steering.counts().map(Into::into), ..status }
    }

    /// Reads and checks the policy, builds its queues, and only then installs them.
    fn try_reload(&mut self, other: Option<&Replacement>) -> Answer {
        let read = match other {
            Some(other) => replacement::on_line(other, self.policy.line),
            None => self.start.load(Reading::Again),
        };
        let loaded = read.and_then(|policy| self.start.with_reflectors(policy)).and_then(|policy| {
            let (up, down) = directions(&policy);
            self.steering.begin(policy.autorate(), || self.handle.hand_over(&up, &down))?;
            Ok(policy)
        });
        match loaded {
            Ok(policy) => {
                self.reloads.done += 1;
                self.reloads.last_error = None;
                let odd = if policy.warnings.is_empty() { String::new() } else { format!("{}\n", policy.warnings) };
                let message = format!("{odd}{} is in force", policy.name);
                let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
                *in_force = InForce::new(&policy, in_force.number + 1);
                drop(in_force);
                self.policy = policy;
                Answer::Done { message }
            }
            Err(failure) => {
                let error = words(&failure);
                self.reloads.failed += 1;
                self.reloads.last_error = Some(error.clone());
                Answer::Failed { error }
            }
        }
    }
}

impl Program for Operator<'_> {
    type Status = Status;

    fn status(&self, whole: bool) -> Option<Status> {
        let status = self.handle.report().map(|snapshot| self.status_of(&snapshot))?;
        Some(if whole { status } else { status.brief() })
    }

    fn is_alive(&self) -> bool {
        self.handle.is_alive()
    }

    fn reload(&mut self, policy: Option<&Replacement>) -> Answer {
        self.manager.inspect(|manager| manager.reloading());
        let answer = self.try_reload(policy);
        // Ready in any case: an error leaves the policy in force.
        self.manager.inspect(|manager| manager.ready(&self.place.words()));
        answer
    }

    fn stop(&self) {
        self.handle.stop();
    }
}

impl lastmile_live::control::Operator for Operator<'_> {
    fn answer(&mut self, request: &str) -> String {
        self.answer_to(request)
    }

    fn hang_up(&mut self) {
        // The answer has no receiver.
        match self.reload(None) {
            Answer::Done { message } => links::tell(&message),
            Answer::Failed { error } => {
                let error = error.strip_prefix("error: ").unwrap_or(&error);
                links::tell(&format!("the reload is refused, and {} stays in force: {error}", self.policy.name));
            }
            _ => {}
        }
    }
}

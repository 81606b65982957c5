//! "What would change if", for a shaper: another policy on the line in force.

use lastmile_dashboard::hub::Question;
use lastmile_scenario::Policy;

use super::super::web::what_if::{self, Asked, HEADERS, OPEN_LOOP, Setup, TRUST, WINDOWS};
use super::replacement;
use super::shared::Shared;
use super::start::directions;
use crate::commands::control;

/// The limits of an answer, as the page shows them.
const LIMITS: [&str; 5] = [
    OPEN_LOOP,
    TRUST,
    "Downstream, packets have passed the provider's queue before they arrive here.",
    HEADERS,
    WINDOWS,
];

/// The queues of a policy in a middlebox.
fn setup(policy: &Policy) -> Setup {
    let (up, down) = directions(policy);
    let behind = policy.down.as_ref().map_or_else(Vec::new, |down| down.classes.clone());
    Setup {
        policy: policy.name.clone(),
        up: vec![up.hop("up")],
        down: vec![down.hop("down")],
        names: vec![("up".to_owned(), policy.classes.clone()), ("down".to_owned(), behind)],
    }
}

/// The last minute with another policy, as JSON.
pub(super) fn answer(shared: &Shared, question: &Question) -> Result<String, String> {
    let in_force = shared.in_force().policy();
    let other = replacement::on_line(&replacement::asked(question), in_force.line);
    let other = other.map_err(|failure| control::words(&failure))?;
    let (in_force, other) = (setup(&in_force), setup(&other));
    let asked = Asked { handle: &shared.handle, in_force: &in_force, other: &other, limits: &LIMITS };
    what_if::answer(&asked, shared.recent())
}

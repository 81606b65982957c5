//! "What would change if", for a shaper: another policy on the line in force.

use lastmile_dashboard::hub::Question;
use lastmile_lab::what_if::{Setup, answer};
use lastmile_scenario::Policy;

use super::super::control;
use super::super::web::what_if;
use super::replacement;
use super::shared::Shared;
use super::start::directions;

/// The limits of an answer, as the page shows them.
const LIMITS: [&str; 5] =
    what_if::limits("Downstream, packets have passed the provider's queue before they arrive here.");

/// The queues of a policy in a middlebox.
fn setup(policy: &Policy) -> Setup {
    let (up, down) = directions(policy);
    Setup::of_middlebox(policy, [up.hop("up"), down.hop("down")])
}

/// The last minute with another policy, as JSON.
pub(super) fn json(shared: &Shared, question: &Question) -> Result<String, String> {
    let in_force = shared.in_force().policy();
    let other = replacement::on_line(&what_if::asked(question), in_force.line);
    let other = other.map_err(|failure| control::words(&failure))?;
    let (in_force, other) = (setup(&in_force), setup(&other));
    what_if::json(&answer(&shared.handle, [&in_force, &other], &LIMITS, shared.recent())?)
}

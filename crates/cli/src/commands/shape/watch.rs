//! The display of a running shaper on its terminal.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile_dashboard::hub::now_ms;
use lastmile_linklayer::LinkLayer;
use lastmile_live::bump::{States, intervals};
use lastmile_live::shape::Handle;
use lastmile_live::stop::Stop;
use lastmile_scenario::policy::{Class, Policy};
use lastmile_terminal::Snapshot;
use lastmile_units::BitRate;

use super::super::live_view::hops::panel;
use super::super::live_view::{self, Display, classes};
use super::super::ticker;

/// The policy in force, as far as it is shown.
pub(super) struct InForce {
    policy: Arc<Policy>,
    pub(super) directions: [Shown; 2],
    /// Which policy it is since the start, from 1.
    pub(super) number: u64,
    /// When it came into force, in milliseconds since 1970.
    pub(super) since_ms: u64,
}

/// One direction.
pub(super) struct Shown {
    pub(super) name: &'static str,
    /// `None`: nothing shapes it.
    pub(super) rate: Option<BitRate>,
    /// The rate of its shaper in the policy.
    pub(super) shaper: Option<BitRate>,
    pub(super) link_layer: LinkLayer,
    pub(super) classes: Vec<Class>,
}

impl Shown {
    /// Its name, rate and encapsulation.
    pub(super) fn title(&self) -> String {
        let Self { name, rate, link_layer, .. } = self;
        let rate = rate.map_or_else(|| "not shaped".to_owned(), |rate| rate.to_string());
        format!("{name}: {rate}, {link_layer}")
    }
}

impl InForce {
    /// The first policy, or the one of this number.
    pub(super) fn new(policy: &Policy, number: u64) -> Self {
        let (line, rates, shapers) = (&policy.line, policy.shaped_line(), policy.shapers());
        let behind = policy.down.as_ref().map_or_else(Vec::new, |down| down.classes.clone());
        let of = |index: usize, link_layer, classes| {
            let (name, rate, shaper) = (["up", "down"][index], rates[index], shapers[index]);
            Shown { name, rate, shaper, link_layer, classes }
        };
        let directions = [of(0, line.up_layer, policy.classes.clone()), of(1, line.down_layer, behind)];
        Self { policy: Arc::new(policy.clone()), directions, number, since_ms: now_ms() }
    }

    pub(super) fn name(&self) -> &str {
        &self.policy.name
    }

    pub(super) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy)
    }

    /// The series of both directions and the tables of their classes.
    fn view(&self, before: Option<&States>, now: &States) -> Snapshot {
        let hops = intervals(before, now);
        let directions = || self.directions.iter().zip(&hops);
        let panels = directions()
            .map(|(shown, hop)| panel(hop, shown.title(), shown.rate.map(BitRate::as_bps), hop.now.shaper_rate));
        let tables = directions().filter(|(shown, _)| !shown.classes.is_empty());
        let tables = tables
            .map(|(shown, hop)| classes::table(&format!("class {}", shown.name), (&shown.classes, shown.shaper), hop));
        Snapshot { status: format!("policy {}", self.name()), panels: panels.collect(), tables: tables.collect() }
    }
}

/// The display.
pub(super) struct Watch {
    pub(super) display: Display,
    pub(super) handle: Handle,
    pub(super) in_force: Arc<Mutex<InForce>>,
    /// The messages before.
    pub(super) printed: String,
}

impl Watch {
    /// Shows the live view, and a line of counters without it, until `end`.
    pub(super) fn run(&self, end: &Stop) {
        if let Some(view) = self.display.view("lastmile shape", &self.printed) {
            let mut before = None;
            let left = live_view::show(&view, end, || {
                let now = self.handle.states()?;
                let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
                let snapshot = in_force.view(before.as_ref(), &now);
                before = Some(now);
                Some(snapshot)
            });
            if !left {
                return;
            }
        }
        if ticker::is_watched() {
            ticker::tick(&|| self.handle.glance(), end, &ticker::shaper);
        }
    }
}

//! One run of a study: read from the folder, or simulated and kept there.

use std::any::Any;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;

use lastmile_scenario::{Override, Report, Scenario};

use super::address::Address;
use super::measured;
use super::store::{Found, Kept, Store};
use crate::error::Error;
use crate::memory::Memory;
use crate::run::{Early, Input, Job, Watch, simulate};
use crate::variant::Variant;

/// Reads the scenario with overrides.
pub type Load<'a> = dyn Fn(&[Override]) -> Result<Scenario, Report> + Sync + 'a;

/// The means by which a study runs: its file, its folder, memory and threads.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Reads the scenario.
    pub load: &'a Load<'a>,
    /// The folder.
    pub store: &'a Store,
    /// Memory of all concurrent runs.
    pub memory: &'a Memory,
    /// Threads; one for each processor by default.
    pub threads: Option<NonZeroUsize>,
    /// True once the caller wants running simulations to end.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

/// The end of a run.
pub(super) enum Came {
    /// The folder had it.
    Known(Kept),
    /// It was simulated. The folder may have had a damaged file in its place.
    New(Kept, Option<PathBuf>),
    /// The folder does not have it, or has a damaged file in its place.
    Missing(Option<PathBuf>),
}

/// Why a run ended early.
pub(super) enum Stopped {
    /// The caller wished it.
    Wish,
    /// An invalid point, or a lack of memory.
    Wrong(Error),
    /// The folder cannot be read or written.
    Io(io::Error),
}

/// Reads a run of `input` from the folder; else simulates it if `simulates`. Messages call its point `words`.
pub(super) fn one(
    (number, input): (usize, &Input),
    (variant, words): (&Variant, &dyn Fn() -> String),
    means: Means<'_>,
    simulates: bool,
) -> Result<Came, Stopped> {
    let Means { load, store, memory, is_over, .. } = means;
    if is_over() {
        return Err(Stopped::Wish);
    }
    let wrong = |report: Report| {
        let words = words();
        Stopped::Wrong(if words.is_empty() { report } else { report.within(&words) }.into())
    };
    let scenario = load(&variant.overrides).map_err(wrong)?;
    scenario.needs_traffic(input.file.as_deref().unwrap_or("scenario")).map_err(wrong)?;
    let address = Address::of(&scenario, &input.origin(variant, &scenario).inputs);
    let damaged = match store.find(&address).map_err(Stopped::Io)? {
        Found::Kept(kept) => return Ok(Came::Known(kept)),
        Found::Damaged(path) => Some(path),
        Found::Nothing => None,
    };
    if !simulates {
        return Ok(Came::Missing(damaged));
    }
    let job = Job { number, input, variant, scenario: &scenario };
    let ended = panic::catch_unwind(AssertUnwindSafe(|| simulate(job, None, memory, &mut Slices(is_over))));
    memory.forget(number);
    let kept = match ended {
        Ok(Ok(finished)) => Kept::Measures(measured::of(&finished.run)),
        Ok(Err(Early::Stop(()))) => return Err(Stopped::Wish),
        Ok(Err(Early::Memory)) => {
            let reason = memory.outcome().err();
            return Err(reason.map_or(Stopped::Wish, Stopped::Wrong));
        }
        Ok(Err(Early::Refused(refused))) => Kept::Failed(refused.to_string()),
        Err(panic) => Kept::Failed(format!("the simulation has a fault: {}", message(&*panic))),
    };
    store.keep(&address, &kept).map_err(Stopped::Io)?;
    Ok(Came::New(kept, damaged))
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_else(|| "panic".to_owned())
}

/// A simulation that ends when the caller wishes.
struct Slices<'a>(&'a (dyn Fn() -> bool + Sync));

impl Watch for Slices<'_> {
    type Stop = ();

    fn pause(&mut self) -> Result<(), ()> {
        if (self.0)() { Err(()) } else { Ok(()) }
    }

    fn progress(&mut self, _: u64) -> Result<(), ()> {
        Ok(())
    }
}

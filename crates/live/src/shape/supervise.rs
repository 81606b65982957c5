//! A program that is started again when it dies or hangs: the parent of a shaper, where no service manager is.
//!
//! While no child lives, the bridge carries the line. A child that dies is followed by another after a pause that doubles from
//! [`FIRST_PAUSE`] to [`LONGEST_PAUSE`], and is short again after one that lived for a minute. A child that does not answer
//! twice in a row is killed. SIGINT and SIGTERM go to the child, which ends, and then all is over; so does SIGHUP, for a reload.

use std::os::fd::AsFd;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::error::{Context, Error};
use crate::stop::Stop;
use crate::sys::wait;

/// How often the child is asked whether it is alive.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// The pause before the first restart.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A child that lived as long was no failure to start.
const SETTLED: Duration = Duration::from_secs(60);

/// How long a child may go on after it was told to end.
const GRACE: Duration = Duration::from_secs(5);

/// What there is to tell of a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It did not answer and was killed.
    Hung,
    /// It ended, and the next one starts after this time.
    Ended(ExitStatus, Duration),
}

/// Keeps a child of `command` running until `stop`, or until one ends by itself with success. `alive` asks it whether it is alive,
/// and may take some seconds for it. A first child that ends without ever having been alive is not started again: what keeps it from
/// starting is for its user to mend.
///
/// # Errors
/// The program cannot be started.
pub fn supervise(
    command: &mut Command,
    alive: &dyn Fn() -> bool,
    stop: &Stop,
    hang_up: &Stop,
    tell: &mut dyn FnMut(Event),
) -> Result<ExitStatus, Error> {
    let (mut pause, mut ever_alive) = (FIRST_PAUSE, false);
    loop {
        let started = Instant::now();
        let (status, told_to_end) = one(command, alive, stop, hang_up, &mut ever_alive, tell)?;
        if told_to_end || status.success() || !ever_alive {
            return Ok(status);
        }
        if started.elapsed() > SETTLED {
            pause = FIRST_PAUSE;
        }
        tell(Event::Ended(status, pause));
        let [stopped] = wait::readable([Some(stop.as_fd())], Some(pause)).context(|| "waiting")?;
        if stopped {
            return Ok(status);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The life of one child; true if it was told to end.
fn one(
    command: &mut Command,
    alive: &dyn Fn() -> bool,
    stop: &Stop,
    hang_up: &Stop,
    ever_alive: &mut bool,
    tell: &mut dyn FnMut(Event),
) -> Result<(ExitStatus, bool), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|source| Error::Command { command: name, source })?;
    let what = || "watching the child";
    let handle = wait::process_handle(child.id()).context(what)?;
    let (mut misses, mut last) = (0, None);
    loop {
        // The first question comes soon, so that a start that succeeds is known as one.
        let patience = if *ever_alive { HEARTBEAT } else { FIRST_PAUSE };
        let [ended, stopped, hung_up] =
            wait::readable([Some(handle.as_fd()), Some(stop.as_fd()), Some(hang_up.as_fd())], Some(patience))
                .context(what)?;
        if ended {
            return Ok((child.wait().context(what)?, last.is_some()));
        }
        if stopped {
            stop.rearm().context(what)?;
            last = last.or(Some(Instant::now() + GRACE));
            wait::signal(&handle, stop.signal().unwrap_or(SIGTERM)).context(what)?;
        }
        if hung_up {
            hang_up.rearm().context(what)?;
            wait::signal(&handle, SIGHUP).context(what)?;
        }
        if last.is_some_and(|last| last < Instant::now()) {
            child.kill().context(what)?;
        }
        if stopped || hung_up || last.is_some() {
            continue;
        }
        if alive() {
            (misses, *ever_alive) = (0, true);
        } else if *ever_alive {
            misses += 1;
        }
        if misses >= 2 {
            tell(Event::Hung);
            child.kill().context(what)?;
            misses = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// `script` as a child; what was told, and how it ended.
    fn told(script: &str, alive: &dyn Fn() -> bool, stop_after: usize) -> (Vec<&'static str>, ExitStatus) {
        let (stop, hang_up) = (Stop::new().unwrap(), Stop::new().unwrap());
        let handle = stop.handle().unwrap();
        let events = RefCell::new(Vec::new());
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let status = supervise(&mut command, alive, &stop, &hang_up, &mut |event| {
            events.borrow_mut().push(match event {
                Event::Hung => "hung",
                Event::Ended(..) => "ended",
            });
            if events.borrow().len() == stop_after {
                handle.stop();
            }
        });
        (events.into_inner(), status.unwrap())
    }

    #[test]
    fn a_child_that_dies_is_followed_by_another_until_told_to_stop() {
        let (events, status) = told("sleep 0.3; exit 3", &|| true, 3);
        assert_eq!((events, status.code()), (vec!["ended"; 3], Some(3)));
    }

    #[test]
    fn one_that_ends_well_or_never_came_up_has_no_successor() {
        assert_eq!(told("exit 0", &|| true, 9).0, [""; 0]);
        let (events, status) = told("exit 2", &|| false, 9);
        assert_eq!((events, status.code()), (vec![], Some(2)));
    }

    /// It answers once and then no more: two questions later it is killed.
    #[test]
    fn one_that_hangs_is_killed() {
        let asked = Cell::new(0);
        let alive = || {
            asked.set(asked.get() + 1);
            asked.get() == 1
        };
        let (events, _) = told("sleep 100", &alive, 2);
        assert_eq!(events, ["hung", "ended"]);
        assert_eq!(asked.get(), 3);
    }
}

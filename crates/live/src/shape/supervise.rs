//! A program that is started again when it dies or hangs: the parent of a shaper, where no service manager is.
//!
//! While no child lives, the bridge carries the line. A child that dies is followed by another
//! after a pause that doubles from [`FIRST_PAUSE`] to [`LONGEST_PAUSE`], and is short again after
//! one that lived for a minute. SIGINT and SIGTERM go to the child, which ends, and then all is
//! over; so does SIGHUP, for a reload.
//!
//! The child's standard input is a socket whose other end its parent has. The child writes a byte
//! to it every [`BEAT`] while packets are carried ([`Heart`]), and is killed when none has come for
//! [`SILENCE`]. Nobody else has that socket, so no client of the control socket can make a healthy
//! child look dead, or a dead one healthy.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::error::{Context, Error};
use crate::stop::{Stop, forget};
use crate::sys::wait;

/// How often a child says that it is alive.
pub const BEAT: Duration = Duration::from_secs(1);

/// A child of which nothing has been heard for so long hangs.
pub const SILENCE: Duration = Duration::from_secs(10);

/// The pause before the first restart.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A child that lived as long was no failure to start.
const SETTLED: Duration = Duration::from_secs(60);

/// Time in which a child must end after the request to end.
const GRACE: Duration = Duration::from_secs(5);

/// Events in the life of a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Nothing was heard of it, and it was killed.
    Hung,
    /// It ended, and the next one starts after this time.
    Ended(ExitStatus, Duration),
}

/// The channel by which a child shows that it is alive.
#[derive(Debug)]
pub struct Heart(UnixStream);

impl Heart {
    /// The heart of this process, which a supervisor has started.
    ///
    /// # Errors
    /// Standard input is closed, or no descriptors are left.
    pub fn of_this_program() -> Result<Self, Error> {
        let socket = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
        let heart = socket.and_then(|socket| socket.set_nonblocking(true).map(|()| Self(socket)));
        heart.context(|| "taking standard input for the supervisor's socket")
    }

    /// It is alive.
    pub fn beat(&self) {
        // A supervisor that is gone, or has not come to read, needs no news.
        let _ = (&self.0).write(&[0]);
    }
}

/// Keeps a child of `command` running until `stop`, or until one ends by itself with success. A
/// first child that ends without ever having been alive is not started again: what keeps it from
/// starting is for its user to mend. `wait` waits between two children for this time, or until `stop`, and returns
/// whether it is time to stop.
///
/// # Errors
/// The program cannot be started.
pub fn supervise(
    command: &mut Command,
    stop: &Stop,
    hang_up: &Stop,
    tell: &mut dyn FnMut(Event),
    wait: &mut dyn FnMut(Duration) -> Result<bool, Error>,
) -> Result<ExitStatus, Error> {
    let mut supervisor = Supervisor { stop, hang_up, tell, wait, silence: SILENCE, ever_alive: false };
    supervisor.keep_running(command)
}

struct Supervisor<'a> {
    stop: &'a Stop,
    hang_up: &'a Stop,
    tell: &'a mut dyn FnMut(Event),
    wait: &'a mut dyn FnMut(Duration) -> Result<bool, Error>,
    silence: Duration,
    /// Whether any child has said so.
    ever_alive: bool,
}

impl Supervisor<'_> {
    fn keep_running(&mut self, command: &mut Command) -> Result<ExitStatus, Error> {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = Instant::now();
            let (status, told_to_end) = self.one(command)?;
            if told_to_end || status.success() || !self.ever_alive {
                return Ok(status);
            }
            if started.elapsed() > SETTLED {
                pause = FIRST_PAUSE;
            }
            (self.tell)(Event::Ended(status, pause));
            if (self.wait)(pause)? {
                return Ok(status);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The life of one child; true if it was asked to end.
    fn one(&mut self, command: &mut Command) -> Result<(ExitStatus, bool), Error> {
        let what = || "watching the child";
        let name = command.get_program().to_string_lossy().into_owned();
        let (pulse, heart) = UnixStream::pair().context(what)?;
        pulse.set_nonblocking(true).context(what)?;
        let mut child =
            command.stdin(OwnedFd::from(heart)).spawn().map_err(|source| Error::Command { command: name, source })?;
        let handle = wait::process_handle(child.id()).context(what)?;
        let mut watch = Watch { heard: Instant::now(), alive: false, reload: false, last: None };
        loop {
            let until = watch.last.unwrap_or(watch.heard + self.silence);
            let patience = until.saturating_duration_since(Instant::now()).clamp(FIRST_PAUSE, self.silence);
            let watched = [handle.as_fd(), self.stop.as_fd(), self.hang_up.as_fd(), pulse.as_fd()];
            let [ended, stopped, hung_up, beat] = wait::readable(watched.map(Some), Some(patience)).context(what)?;
            // A child that has ended meanwhile was alive, too.
            if beat {
                forget(&pulse).context(what)?;
                (watch.heard, watch.alive, self.ever_alive) = (Instant::now(), true, true);
            }
            if ended {
                return Ok((child.wait().context(what)?, watch.last.is_some()));
            }
            if stopped {
                self.stop.rearm().context(what)?;
                watch.last = watch.last.or(Some(Instant::now() + GRACE));
                wait::signal(&handle, self.stop.signal().unwrap_or(SIGTERM)).context(what)?;
            }
            if hung_up {
                self.hang_up.rearm().context(what)?;
                watch.reload = true;
            }
            // A child that does not carry packets yet might not catch it, and die.
            if watch.reload && watch.alive {
                watch.reload = false;
                wait::signal(&handle, SIGHUP).context(what)?;
            }
            self.end_if_hung(&mut watch, &mut child)?;
        }
    }

    /// Kills a child that does not end when asked to, or that shows no life.
    fn end_if_hung(&mut self, watch: &mut Watch, child: &mut Child) -> Result<(), Error> {
        let hung = match watch.last {
            Some(last) => last < Instant::now(),
            None => self.ever_alive && watch.heard.elapsed() > self.silence,
        };
        if hung {
            if watch.last.is_none() {
                (self.tell)(Event::Hung);
            }
            child.kill().context(|| "killing the child")?;
            // Its end comes next.
            watch.heard = Instant::now();
        }
        Ok(())
    }
}

/// State of a child.
struct Watch {
    /// When it was last heard, or started.
    heard: Instant,
    alive: bool,
    /// A SIGHUP waits for it.
    reload: bool,
    /// The time at which a child that was asked to end is killed.
    last: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// `script` as a child, whose heart is its standard input, and which hangs after this silence; the messages, and
    /// how it ended.
    fn told(script: &str, stop_after: usize, silence: Duration) -> (Vec<&'static str>, ExitStatus) {
        let (stop, hang_up) = (Stop::new().unwrap(), Stop::new().unwrap());
        let handle = stop.handle().unwrap();
        let events = RefCell::new(Vec::new());
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let tell = &mut |event| {
            events.borrow_mut().push(match event {
                Event::Hung => "hung",
                Event::Ended(..) => "ended",
            });
            if events.borrow().len() == stop_after {
                handle.stop();
            }
        };
        let wait = &mut |pause| stop.within(pause);
        let mut supervisor = Supervisor { stop: &stop, hang_up: &hang_up, tell, wait, silence, ever_alive: false };
        let status = supervisor.keep_running(&mut command).unwrap();
        (events.into_inner(), status)
    }

    #[test]
    fn a_child_that_dies_is_followed_by_another_until_told_to_stop() {
        let (events, status) = told("printf . >&0; exit 3", 3, SILENCE);
        assert_eq!((events, status.code()), (vec!["ended"; 3], Some(3)));
    }

    #[test]
    fn one_that_ends_well_or_never_came_up_has_no_successor() {
        assert_eq!(told("printf . >&0; exit 0", 9, SILENCE).0, [""; 0]);
        let (events, status) = told("exit 2", 9, SILENCE);
        assert_eq!((events, status.code()), (vec![], Some(2)));
    }

    #[test]
    fn one_that_is_not_heard_any_more_is_killed_and_one_that_beats_is_not() {
        let (started, short) = (Instant::now(), Duration::from_millis(500));
        assert_eq!(told("printf . >&0; exec sleep 100", 2, short).0, ["hung", "ended"]);
        assert!(started.elapsed() > short);
        // Half as long again as the silence, with a beat four times in it.
        let beats = "for i in 1 2 3 4 5 6; do printf . >&0; sleep 0.5; done";
        assert_eq!(told(beats, 9, Duration::from_secs(2)).0, [""; 0]);
    }

    /// A shell that does not catch SIGHUP dies of it.
    #[test]
    fn a_hang_up_waits_until_the_child_is_alive() {
        let (stop, hang_up) = (Stop::new().unwrap(), Stop::new().unwrap());
        hang_up.handle().unwrap().stop();
        // A shell cannot trap a signal that is ignored when it starts, as SIGHUP is below nohup(1).
        let mut command = Command::new("env");
        // A shell runs a trap between two commands; in `wait`, dash may end without it.
        let script = "sleep 0.3; trap 'exit 7' HUP; printf . >&0; while sleep 0.1; do :; done";
        command.args(["--default-signal=HUP", "sh", "-c", script]);
        let mut events = 0;
        let tell = &mut |_| {
            events += 1;
            stop.handle().unwrap().stop();
        };
        let wait = &mut |pause| stop.within(pause);
        let mut supervisor =
            Supervisor { stop: &stop, hang_up: &hang_up, tell, wait, silence: SILENCE, ever_alive: false };
        assert_eq!(supervisor.keep_running(&mut command).unwrap().code(), Some(7));
        assert_eq!(events, 1);
    }
}

//! SIGINT, SIGTERM, and SIGHUP (unless nohup(1) or another made this process ignore it) ask the
//! program to stop.
//!
//! The first signal is recorded, and the command stops between two steps. A step that does not
//! notice it within [`PATIENCE`] is cut off. A command without orderly end is cut off at once. The
//! second signal, of any of the three kinds, ends the program at once. No partial file has a final
//! name in either case.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use lastmile_results::atomic;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use crate::failure::{Exit, Failure};

/// The longest time that a command may continue after a signal.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state that all commands of the process share.
static HEARD: OnceLock<Heard> = OnceLock::new();
/// Locked while [`HEARD`] is created.
static MAKING: Mutex<()> = Mutex::new(());

/// The signal that was received, and the guards.
struct Heard {
    /// 0 for no signal.
    signal: Arc<AtomicUsize>,
    /// Number of living guards, by [`Manner`].
    guards: [AtomicUsize; 2],
}

/// The way in which a command ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// By itself, when it checks for the signal.
    InOrder,
    /// At once; it does not check.
    AtOnce,
}

/// Whether the user wants the program to stop. While the value lives, a command that does not stop
/// by itself is cut off.
#[derive(Debug)]
pub(crate) struct Interrupt(Manner);

impl Interrupt {
    /// From now on, the first signal is recorded instead of ending the program.
    ///
    /// # Errors
    /// The system refuses handlers, descriptors or a thread.
    pub(crate) fn watch() -> Result<Self, Failure> {
        Self::new(Manner::InOrder)
    }

    /// From now on, the first signal ends the program without unfinished files.
    ///
    /// # Errors
    /// The system refuses handlers, descriptors or a thread.
    pub(crate) fn at_once() -> Result<Self, Failure> {
        Self::new(Manner::AtOnce)
    }

    /// From now on, the second signal ends the program at once, also while other code handles the
    /// first.
    ///
    /// # Errors
    /// The system refuses handlers, descriptors or a thread.
    pub(crate) fn note() -> Result<(), Failure> {
        heard().map(drop)
    }

    fn new(manner: Manner) -> Result<Self, Failure> {
        let heard = heard()?;
        heard.guards[manner as usize].fetch_add(1, Ordering::SeqCst);
        Ok(Self(manner))
    }

    /// The exit code after a signal; `None` without a signal.
    pub(crate) fn requested(&self) -> Option<Exit> {
        HEARD.get().and_then(Heard::exit)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(heard) = HEARD.get() {
            heard.guards[self.0 as usize].fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Heard {
    fn has(&self, manner: Manner) -> bool {
        self.guards[manner as usize].load(Ordering::SeqCst) > 0
    }

    fn exit(&self) -> Option<Exit> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            number => Some(Exit::Interrupted(u8::try_from(number).unwrap_or(0))),
        }
    }
}

fn heard() -> Result<&'static Heard, Failure> {
    listen().map_err(|error| Failure::new(format_args!("cannot watch for signals: {error}")))
}

fn listen() -> io::Result<&'static Heard> {
    let _one_at_a_time = MAKING.lock();
    if let Some(heard) = HEARD.get() {
        return Ok(heard);
    }
    let signal = Arc::new(AtomicUsize::new(0));
    let (mut ear, bell) = UnixStream::pair()?;
    let asked = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM].into_iter().chain((!ignores(SIGHUP)).then_some(SIGHUP));
    for number in signals {
        // The recording handler first: from the first registration on, the system calls only the
        // registered handlers.
        let which = usize::try_from(number).expect("signals are numbered from 1");
        flag::register_usize(number, Arc::clone(&signal), which)?;
        low_level::pipe::register(number, bell.try_clone()?)?;
        // Handlers run in the order of registration: the first signal finds the flag cleared and
        // passes, the second ends the program.
        flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&asked))?;
        flag::register(number, Arc::clone(&asked))?;
    }
    // A write above the limit of file sizes is then an error, and leaves no file.
    flag::register(SIGXFSZ, Arc::default())?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let rung = ear.read_exact(&mut [0]);
        if rung.is_ok() {
            cut_off();
        }
    })?;
    Ok(HEARD.get_or_init(|| Heard { signal, guards: Default::default() }))
}

/// Ends the program if the running command does not notice the signal.
fn cut_off() {
    let Some(heard) = HEARD.get() else { return };
    if heard.has(Manner::InOrder) {
        thread::sleep(PATIENCE);
    }
    if !heard.has(Manner::InOrder) && !heard.has(Manner::AtOnce) {
        return;
    }
    if let Some(Exit::Interrupted(signal)) = heard.exit() {
        atomic::abandon(|| std::process::exit(128 + i32::from(signal)));
    }
}

/// Whether this process was started with `signal` ignored: `SigIgn` of proc_pid_status(5).
fn ignores(signal: i32) -> bool {
    let ignored = || {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
        Some(mask >> (signal - 1) & 1 == 1)
    };
    ignored().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runtime of Rust ignores SIGPIPE, and nothing in this process ignores SIGTERM.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_ignored_signal_is_seen() {
        assert!(ignores(signal_hook::consts::SIGPIPE));
        assert!(!ignores(SIGTERM));
    }
}

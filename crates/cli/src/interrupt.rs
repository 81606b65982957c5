//! SIGINT and SIGTERM: the first asks the program to stop, which it does between two steps and leaves nothing half-written;
//! the second ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// Whether the user wants the program to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// From now on, signals are noted instead of ending the program.
    pub(crate) fn watch() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM] {
            let asked = Arc::new(AtomicBool::new(false));
            // Handlers run in the order of registration: the first signal finds the flag down and passes, the second ends.
            flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&asked))?;
            flag::register(number, asked)?;
            flag::register_usize(
                number,
                Arc::clone(&signal),
                usize::try_from(number).expect("signals are numbered from 1"),
            )?;
        }
        Ok(Self(signal))
    }

    /// How the program is to end, if a signal has come.
    pub(crate) fn requested(&self) -> Option<Exit> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Interrupted(u8::try_from(number).unwrap_or(0))),
        }
    }
}

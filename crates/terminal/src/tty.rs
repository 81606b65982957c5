//! The terminal of the process: its settings, its size, its keys.
//!
//! There is one, so its state is static. [`leave`] may be called at any time, from any thread.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgid;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};

/// The name of the thread that draws.
pub(crate) const DRAWER: &str = "view";

/// ECMA-48 and xterm: the alternate screen, an invisible cursor, an empty screen.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// Plain type, a visible cursor, the usual screen.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The settings of the terminal before the view; `None` while there is no view on it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Held while the drawing thread writes to the terminal.
static WRITING: Mutex<()> = Mutex::new(());
/// True from a panic on: its message would be lost on a view.
static PANICKED: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if the three standard streams are a terminal that belongs to this process's group.
pub(crate) fn is_ours() -> bool {
    isatty(stdin()) && isatty(stdout()) && isatty(stderr()) && is_foreground()
}

fn is_foreground() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| getpgid(None) == Ok(group))
}

/// Takes over the terminal for the view, if `wanted` still holds once no one else writes.
///
/// # Errors
/// The terminal is gone, or refuses the settings.
pub(crate) fn enter(wanted: impl Fn() -> bool) -> io::Result<()> {
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.store(true, Ordering::Release);
            leave();
            usual(panic);
        }));
    });
    let _writing = lock(&WRITING);
    let mut before = lock(&BEFORE);
    if before.is_some() || panicked() || !wanted() {
        return Ok(());
    }
    let settings = tcgetattr(stdin())?;
    let mut own = settings.clone();
    // Keys arrive one by one and are not echoed; Ctrl-S does not stop the drawing. Signals stay.
    own.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    own.input_modes -= InputModes::IXON;
    own.special_codes[SpecialCodeIndex::VMIN] = 1;
    own.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(stdin(), OptionalActions::Now, &own)?;
    *before = Some(settings);
    Out.write_all(ENTER.as_bytes())
}

/// Whether a thread has panicked since [`forget_panics`]: then the view does not come again.
pub(crate) fn panicked() -> bool {
    PANICKED.load(Ordering::Acquire)
}

/// For a new view: panics before it were caught.
pub(crate) fn forget_panics() {
    PANICKED.store(false, Ordering::Release);
}

/// Gives the terminal its settings and contents back, if there is a view on it.
pub(crate) fn leave() {
    // The drawing thread may panic while it writes.
    let drawer = thread::current().name() == Some(DRAWER);
    let _writing = (!drawer).then(|| lock(&WRITING));
    let Some(settings) = lock(&BEFORE).take() else { return };
    // Nothing can be done about a terminal that is gone.
    let _ = Out.write_all(LEAVE.as_bytes());
    // In the background, the system would stop the process; the shell has set its own.
    if is_foreground() {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &settings);
    }
}

/// Runs `write` if there is a view on the terminal, and nothing else writes there meanwhile.
pub(crate) fn while_entered<T>(write: impl FnOnce() -> T) -> Option<T> {
    let _writing = lock(&WRITING);
    let entered = lock(&BEFORE).is_some();
    entered.then(write)
}

/// True if the process may take over the terminal: it is in the foreground, or again.
pub(crate) fn may_enter() -> bool {
    is_foreground()
}

/// The size of the terminal; 80x24 if it does not report one.
pub(crate) fn area() -> Rect {
    let (columns, rows) = tcgetwinsize(stdout()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
    Rect::new(0, 0, if columns == 0 { 80 } else { columns }, if rows == 0 { 24 } else { rows })
}

/// Keys that came within `patience`.
///
/// # Errors
/// The terminal is gone.
pub(crate) fn keys(patience: Duration) -> io::Result<Vec<u8>> {
    let mut polled = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut polled, Some(&patience)) {
        Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut keys = vec![0; 64];
    match rustix::io::read(stdin(), keys.as_mut_slice()) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) => {
            keys.truncate(count);
            Ok(keys)
        }
        Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Standard output without a buffer and without the lock of the standard library, which others may
/// hold.
pub(crate) struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(stdout(), bytes) {
                Ok(count) => return Ok(count),
                // Another program has changed the terminal's descriptor so that it does not wait.
                Err(Errno::AGAIN) => wait_for(stdout())?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn wait_for(out: BorrowedFd<'_>) -> io::Result<()> {
    match poll(&mut [PollFd::from_borrowed_fd(out, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

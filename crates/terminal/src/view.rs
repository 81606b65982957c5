//! The view: a thread draws what other threads have stored, and reads keys.

use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use signal_hook::consts::{SIGCONT, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::{SigId, flag, low_level};

use crate::draw::{Content, draw};
use crate::locale::{Look, look};
use crate::messages::{self, OPEN};
use crate::shared::{Shared, Stored};
use crate::snapshot::Snapshot;
use crate::tty::{self, Out};

/// The longest time from a key, a signal or a snapshot to its effect.
const REACTION: Duration = Duration::from_millis(100);
/// Ctrl-L of most programs: draw again.
const CTRL_L: u8 = 0x0c;

/// A live view on the terminal of this process. Dropping it gives the terminal back.
#[derive(Debug)]
pub struct View {
    shared: Arc<Shared>,
}

impl Shared {
    /// Gives the terminal back for good, and prints the messages that came meanwhile. On return this
    /// is done, by whichever thread.
    fn close(&self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        open.take();
        tty::leave();
        defaults(true);
        messages::print(std::mem::take(&mut self.content().kept));
    }
}

impl View {
    /// A view with this title, if one [`is_possible`].
    #[must_use]
    pub fn new(title: &str) -> Option<Self> {
        let look = look(|name| std::env::var(name).ok())?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_some() || !tty::is_ours() {
            return None;
        }
        let shown = Content { title: title.to_owned(), ..Content::default() };
        let content = Stored { shown, changed: true, ..Stored::default() };
        let closed = AtomicBool::new(false);
        let shared = Arc::new(Shared { content: Mutex::new(content), closed, begun: Instant::now() });
        let signals = Signals::new().ok()?;
        defaults(false);
        tty::forget_panics();
        let drawer = Drawer { shared: Arc::clone(&shared), look, signals, screen: None };
        if tty::enter(|| true).is_err()
            || thread::Builder::new().name(tty::DRAWER.into()).spawn(|| drawer.run()).is_err()
        {
            shared.closed.store(true, Ordering::Release);
            tty::leave();
            defaults(true);
            return None;
        }
        *open = Some(Arc::clone(&shared));
        drop(open);
        Some(Self { shared })
    }

    /// Shows a message that is printed already.
    pub fn note(&self, message: &str) {
        let mut content = self.shared.content();
        message.lines().for_each(|line| messages::push(&mut content.shown.log, line));
    }

    /// Shows `snapshot` from now on. Its values are the next column of the sparklines.
    pub fn update(&self, snapshot: Snapshot) {
        let mut content = self.shared.content();
        let Content { history, snapshot: shown, .. } = &mut content.shown;
        history.add(&snapshot, Instant::now());
        *shown = snapshot;
    }

    /// False once the user has left the view and the terminal is as before.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let open = !self.shared.is_closed();
        if !open {
            // The thread that closes it may still be at work.
            self.shared.close();
        }
        open
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// Whether a view can be shown now: the standard streams are a terminal in the foreground that can
/// place the cursor, and no view is open.
#[must_use]
pub fn is_possible() -> bool {
    let no_view = OPEN.lock().unwrap_or_else(PoisonError::into_inner).is_none();
    no_view && look(|name| std::env::var(name).ok()).is_some() && tty::is_ours()
}

/// Signals that change the terminal, which the drawing thread handles.
#[derive(Debug)]
struct Signals {
    end: Arc<AtomicBool>,
    quit: Arc<AtomicBool>,
    suspend: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
    registered: Vec<SigId>,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let [end, quit, suspend, resumed] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        let flags = [(SIGINT, &end), (SIGTERM, &end), (SIGQUIT, &quit), (SIGTSTP, &suspend), (SIGCONT, &resumed)];
        let mut signals = Self {
            end: end.clone(),
            quit: quit.clone(),
            suspend: suspend.clone(),
            resumed: resumed.clone(),
            registered: Vec::new(),
        };
        for (signal, flag) in flags {
            signals.registered.push(flag::register(signal, Arc::clone(flag))?);
        }
        Ok(signals)
    }
}

/// Whether SIGQUIT and SIGTSTP act by themselves. Once a handler was registered, they would
/// otherwise do nothing.
fn defaults(act: bool) {
    static ACT: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let flag = ACT.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(act));
        for signal in [SIGQUIT, SIGTSTP] {
            // Refused only for signals that cannot be caught.
            let _ = flag::register_conditional_default(signal, Arc::clone(&flag));
        }
        flag
    });
    flag.store(act, Ordering::Release);
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}

fn taken(flag: &AtomicBool) -> bool {
    flag.swap(false, Ordering::AcqRel)
}

/// The terminal with what is on it, for an area of this size.
struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Out>>>,
    area: Rect,
}

/// The drawing thread.
struct Drawer {
    shared: Arc<Shared>,
    look: Look,
    signals: Signals,
    /// `None`: the terminal must be drawn anew.
    screen: Option<Screen>,
}

impl Drawer {
    fn run(mut self) {
        while !self.shared.is_closed() {
            if self.turn().is_err() {
                break;
            }
        }
        self.shared.close();
    }

    /// Handles signals, draws if something has changed, and waits for keys.
    fn turn(&mut self) -> io::Result<()> {
        if taken(&self.signals.end) || tty::panicked() {
            self.shared.close();
            return Ok(());
        }
        if taken(&self.signals.quit) {
            self.shared.close();
            return low_level::emulate_default_handler(SIGQUIT);
        }
        if taken(&self.signals.suspend) {
            tty::leave();
            low_level::emulate_default_handler(SIGTSTP)?;
        }
        if taken(&self.signals.resumed) {
            // The shell may have changed the settings.
            tty::leave();
        }
        if !tty::may_enter() {
            // In the background, until the shell says otherwise.
            thread::sleep(REACTION);
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        if tty::while_entered(|| ()).is_none() {
            self.screen = None;
            tty::enter(|| !shared.is_closed())?;
        }
        self.draw()?;
        for key in tty::keys(REACTION)? {
            match key {
                b'q' | b'Q' => self.shared.close(),
                CTRL_L => self.screen = None,
                _ => {}
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> io::Result<()> {
        let area = tty::area();
        let same = self.screen.as_ref().is_some_and(|screen| screen.area == area);
        let buffer = {
            let mut content = self.shared.content.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::take(&mut content.changed) && same {
                return Ok(());
            }
            draw(&content.shown, area, self.look, self.shared.begun.elapsed())
        };
        let screen = self.screen.take().filter(|_| same);
        let drawn = tty::while_entered(|| {
            let mut screen = screen.map_or_else(|| Screen::new(area), Ok)?;
            screen.terminal.draw(|frame| frame.buffer_mut().clone_from(&buffer))?;
            Ok::<_, io::Error>(screen)
        });
        self.screen = drawn.transpose()?;
        Ok(())
    }
}

impl Screen {
    /// An empty terminal.
    fn new(area: Rect) -> io::Result<Self> {
        // ECMA-48: erase the screen.
        io::Write::write_all(&mut Out, b"\x1b[0m\x1b[2J")?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, Out));
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        Ok(Self { terminal: Terminal::with_options(backend, options)?, area })
    }
}

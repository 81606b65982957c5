//! A terminal for a program under test: a pseudo-terminal, and the screen that its output draws.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// The longest wait for something to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program on a terminal of its own.
pub(crate) struct Terminal {
    keys: File,
    /// Keeps the terminal open when the program ends, and asks for its settings.
    far_end: OwnedFd,
    /// The settings before the program.
    before: Termios,
    screen: Arc<Mutex<vt100::Parser>>,
    pub(crate) child: Child,
}

impl Terminal {
    /// Starts `command` on a terminal of this size, as the leader of its session.
    pub(crate) fn start(command: &Command, (columns, rows): (u16, u16)) -> Self {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let name = ptsname(&near, Vec::new()).unwrap();
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let far = || OwnedFd::from(File::options().read(true).write(true).open(path).unwrap());
        tcsetwinsize(&near, winsize(columns, rows)).unwrap();
        // setsid(1) of util-linux, since code before an exec would be unsafe.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        command.get_current_dir().map(|folder| session.current_dir(folder));
        let far_end = far();
        let before = tcgetattr(&far_end).unwrap();
        let child = session.stdin(far()).stdout(far()).stderr(far()).spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 1000)));
        let (mut output, drawn) = (File::from(near.try_clone().unwrap()), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                drawn.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { keys: near.into(), far_end, before, screen, child }
    }

    /// Types these keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(rows, columns);
        tcsetwinsize(&self.far_end, winsize(columns, rows)).unwrap();
    }

    /// The text on the screen.
    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Looks at the screen.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.screen.lock().unwrap().screen())
    }

    /// Waits until the screen is as `wanted` says; returns its text.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) -> String {
        let begun = Instant::now();
        while !self.look(&wanted) {
            assert!(begun.elapsed() < PATIENCE, "{what} did not come:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.text()
    }

    /// Waits until these words are on the screen; returns its text.
    #[track_caller]
    pub(crate) fn until_shown(&self, words: &str) -> String {
        self.until(words, |screen| screen.contents().contains(words))
    }

    /// The settings of the terminal now.
    fn settings(&self) -> Termios {
        tcgetattr(&self.far_end).unwrap()
    }

    /// Checks that a view is on the terminal, or that it is as before the program.
    #[track_caller]
    pub(crate) fn assert_view(&self, on: bool) {
        let cooked = self.settings().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        let (alternate, hidden) = self.look(|screen| (screen.alternate_screen(), screen.hide_cursor()));
        assert_eq!((alternate, hidden, cooked), (on, on, !on), "alternate screen, hidden cursor, usual settings");
        if !on {
            assert_eq!(format!("{:?}", self.settings()), format!("{:?}", self.before));
        }
    }

    /// Waits until all that was written is on the screen, which another thread draws.
    fn until_drawn(&self) {
        // xterm's bracketed paste: no program here asks for it, and nothing is drawn for it.
        let mark = |on: &[u8], is_on| {
            rustix::io::write(&self.far_end, on).unwrap();
            self.until("the last output", |screen| screen.bracketed_paste() == is_on);
        };
        mark(b"\x1b[?2004h", true);
        mark(b"\x1b[?2004l", false);
    }

    /// Waits for the end of the program, and until its output is on the screen.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.until_drawn();
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the program does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn winsize(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

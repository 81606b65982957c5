//! The live view of a running program: series as sparklines, tables and messages, on the whole
//! terminal.
//!
//! ```no_run
//! use lastmile_terminal::{Panel, Series, Snapshot, Unit, View};
//!
//! // `None`: no terminal, and the program prints lines.
//! if let Some(view) = View::new("lastmile measure example.net") {
//!     view.note("server 192.0.2.1, 4 streams");
//!     let rate = Series::new("rate", Unit::BitsPerSecond, Some(16e6)).out_of(20e6);
//!     let delay = Series::new("192.0.2.1", Unit::Seconds, Some(0.035));
//!     view.update(Snapshot {
//!         status: "download, 8 of 20 s".to_owned(),
//!         panels: vec![Panel::new("download", vec![rate]), Panel::new("latency under load", vec![delay])],
//!         ..Snapshot::default()
//!     });
//! } // The terminal is as before.
//! ```
//!
//! [`View::update`] stores a snapshot and returns; a thread of the view draws it, at most ten times
//! a second. Each snapshot is one column of the sparklines, so a caller takes them at a constant
//! interval, such as [`INTERVAL`], on a thread that carries no packets.
//!
//! The view reads `q` (leave the view; the program continues) and Ctrl-L (draw again). All other
//! keys act as without a view: Ctrl-C and Ctrl-\ are signals, and Ctrl-Z stops the program until
//! `fg`. The terminal gets its settings and its contents back when the view is dropped, at `q`, at
//! SIGINT, SIGTERM, SIGQUIT and SIGTSTP, and before the message of a panic. SIGINT and SIGTERM
//! close the view and do nothing else: the program must handle them.
//!
//! `ratatui` lays out and draws, with the escape sequences of `crossterm`. Keys are read here, since
//! a program that has given up the right to open files must not open the terminal again.

mod draw;
mod history;
mod locale;
mod messages;
mod shared;
mod snapshot;
mod text;
mod tty;
mod view;

use std::time::Duration;

pub use messages::say;
pub use snapshot::{Panel, Series, Snapshot, Unit};
pub use view::{View, is_possible};

/// The usual interval between snapshots.
pub const INTERVAL: Duration = Duration::from_millis(500);

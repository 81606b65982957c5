//! The devices at both ends of an emulated line, for a terminal.

use std::fmt::Write as _;

use lastmile_lab::line::{Direction, Live};
use lastmile_text::table::{Kind, Table};

/// The devices at both ends for a terminal, followed by notes for the user.
pub(in crate::commands) fn table(live: &Live) -> String {
    let columns = ["Packets in", "out", "Late p50", "p99", "p99.9", "max"].map(|title| (title, Kind::Number));
    let mut table = Table::new([("Devices", Kind::Name)].into_iter().chain(columns));
    let late = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.0} us", s * 1e6));
    let mut notes = String::new();
    for (name, direction) in [("up", &live.up), ("down", &live.down)] {
        let Direction { received, sent, lateness_s: lateness, .. } = direction;
        let numbers = [lateness.p50, lateness.p99, lateness.p999, lateness.max].map(late);
        table.row([name.to_owned(), received.to_string(), sent.to_string()].into_iter().chain(numbers));
        for (count, what) in direction.incidents() {
            // Writing to a string cannot fail.
            let _ = writeln!(notes, "{name}: {count} {what}");
        }
    }
    format!("{}{notes}", table.render())
}

//! Real packets: forwarders between two interfaces, and the emulated line. They need root and
//! create their own namespaces.

mod emulated;
mod forwarded;
mod row;

use comfy_table::{LineStyle, Table, TableStyle};

use crate::measurement::Measurement;
pub(crate) use row::Row;

/// Why these measurements cannot run on this machine.
pub(crate) fn obstacle() -> Option<&'static str> {
    let root = std::process::Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if !root {
        return Some("real packets need root");
    }
    let tun = std::path::Path::new("/dev/net/tun").exists();
    (!tun).then_some("real packets need /dev/net/tun")
}

pub(crate) fn names() -> Vec<String> {
    forwarded::names().into_iter().chain(emulated::names()).collect()
}

pub(crate) fn is_one(name: &str) -> bool {
    name.starts_with("live: ")
}

pub(crate) fn run(name: &str) -> Option<Measurement> {
    let clock = std::time::Instant::now();
    let rows = forwarded::run(name).or_else(|| emulated::run(name))?;
    let rows = rows.unwrap_or_else(|error| panic!("{name}: {error}"));
    Some(Measurement { live: rows, ..Measurement::of_events(name, clock.elapsed().as_secs_f64(), 0) })
}

/// Prints rows; a change of headings starts a new table.
pub(crate) fn print_tables(rows: &[Measurement]) {
    let rows: Vec<&Row> = rows.iter().flat_map(|row| &row.live).collect();
    for rows in rows.chunk_by(|one, next| one.headings == next.headings) {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
        table.set_header(&rows[0].headings);
        rows.iter().for_each(|row| {
            table.add_row(&row.cells);
        });
        println!("{table}");
    }
    if !rows.is_empty() {
        println!(
            "a CPU second: of the thread that carries, the kernel's work in its name included; all ways in turns; \
             where there are \
             a from and a to: medians of 31 turns, a quarter of which are below the one and above the other"
        );
    }
}

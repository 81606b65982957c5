//! Text that leaves the program: one escaping function for each kind of reader, and one table
//! printer.
//!
//! Names, descriptions and paths come from files and from other programs. Each reader interprets
//! some characters as commands: a shell, systemd, a terminal, a spreadsheet. Text for a reader must
//! pass through the reader's function in this crate.
//!
//! | reader | function | result |
//! | --- | --- | --- |
//! | terminal, log | [`escape::line`], [`escape::lines`] | hidden characters as `\u{1b}` |
//! | page (HTML, SVG) | [`escape::file`], after the markup's own escaping | hidden characters as `\u{1b}`; tabs stay |
//! | shell | [`shell::word`], [`shell::comment`] | one word; one comment without a line break |
//! | systemd | [`systemd::program`], [`systemd::word`], [`systemd::value`] | one word; one value on one line |
//! | terminal, over time | [`bars::line`] | numbers as one line of block characters |
//! | terminal, in columns | [`table::Table`] | a table whose cells are lines |
//! | table of a spreadsheet | [`csv::cell`] | one cell of RFC 4180 |
//!
//! Libraries escape JSON, Parquet, pcapng and OpenMetrics. The crate `results` writes JSON and also
//! escapes the characters of [`escape::is_hidden`].

pub mod bars;
pub mod csv;
pub mod escape;
pub mod shell;
pub mod systemd;
pub mod table;

//! Captures analysed: TCP connections, their limits and fairness, and a run's own counters compared with those of its
//! captures.
//!
//! | file | holds |
//! | --- | --- |
//! | `read.rs` | capture files and folders of results, read packet by packet |
//! | `document.rs`, `connection.rs`, `row.rs`, `flows.rs`, `run.rs` | the document of `--json`, and its parts |
//! | `without_data.rs` | connections without data, by kind |
//! | `group.rs` | groups of connections |
//! | `both_ends.rs` | two captures of the same packets |
//! | `tables.rs`, `csv.rs`, `samples.rs` | the result as text, as comma-separated values, as series |

mod both_ends;
mod connection;
mod csv;
mod document;
mod flows;
mod group;
mod read;
mod row;
mod run;
mod samples;
mod tables;
mod without_data;

use std::io::{self, Write};
use std::path::Path;

use lastmile_analysis::joined;
use lastmile_results::atomic::AtomicFile;
use lastmile_results::{Series, captured};
use serde::Serialize;

use self::both_ends::{BothEnds, Side};
use self::document::{Document, Files};
pub use self::group::GroupBy;
use self::read::Analysed;
pub use self::read::{STANDARD_INPUT, Tap, Wanted, is_one};
use crate::error::Error;

/// The width of a table that nothing limits: pages scroll.
const WHOLE: u16 = u16::MAX;

/// An analysed capture, or a folder with the results of a run and no capture.
pub struct Capture {
    read: Analysed,
    document: Document,
}

impl Capture {
    /// Analyses a capture, or all captures of a folder. `wanted` is kept of single packets. `tap` receives the packets
    /// of one capture; a folder with several is then an error.
    ///
    /// # Errors
    /// A file that is not there or no capture. A capture that ends early is analysed up to there.
    pub fn read(
        path: &Path,
        wanted: Wanted<'_>,
        group_by: Option<GroupBy>,
        tap: Option<&mut Tap<'_>>,
    ) -> Result<Vec<Self>, Error> {
        let analysed = read::all(path, wanted, tap)?;
        let capture = |read: Analysed| Self { document: Document::new(&read, group_by.as_ref()), read };
        Ok(analysed.into_iter().map(capture).collect())
    }

    /// Compares with a capture of the same packets at another position. This one must have kept its glimpses.
    ///
    /// # Errors
    /// The other capture cannot be read, or has none of the packets.
    pub fn join(&mut self, with: &Path) -> Result<(), Error> {
        let wanted = Wanted { glimpses: true, ..Wanted::default() };
        let mut second = read::all(with, wanted, None)?;
        let mut glimpses = second.iter_mut().filter_map(|file| file.glimpses.take());
        let pair = self.read.glimpses.take().zip(glimpses.next());
        let joined = pair.and_then(|(first, second)| joined::join(first, second));
        drop(glimpses);
        let (Some(joined), [second]) = (joined, &second[..]) else {
            return Err(Error::new(format_args!("{}: no packet of {}", with.display(), self.read.path.display()))
                .hint("the captures must be of the same packets, without address translation between them"));
        };
        let of_second = Document::new(second, None);
        let first = side(&self.document, &self.read);
        let both = BothEnds::new(&joined, &first, side(&of_second, second));
        self.document.joined = Some(both);
        Ok(())
    }

    /// The file, as it was named.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.document.file
    }

    /// False for a capture that could not be read to its end, or that was compared with such a one.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.document.complete && self.document.joined.as_ref().is_none_or(|both| both.with_complete)
    }

    /// For each capture that was not read to its end: the position of the error, and its cause.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        let second = self.document.joined.as_ref().and_then(both_ends::broken);
        tables::broken(&self.document).into_iter().chain(second).collect()
    }

    /// Packets that the analysis omits or corrects: a capture, and words.
    #[must_use]
    pub fn warnings(&self) -> Vec<(String, String)> {
        let of = |file: &str, texts: Vec<String>| texts.into_iter().map(|text| (file.to_owned(), text)).collect();
        let mut all: Vec<(String, String)> = of(&self.document.file, tables::warnings(&self.document));
        if let Some(both) = &self.document.joined {
            all.extend::<Vec<_>>(of(&both.with, both.warnings.clone()));
        }
        all
    }

    /// The tables in lines of at most `width` characters: at most `most` connections, their fairness, and the run's
    /// counters. 0 shows all connections.
    #[must_use]
    pub fn table(&self, most: usize, width: u16) -> String {
        tables::all(&self.document, most, width)
    }

    /// All results of the connection of this number, in lines of at most `width` characters.
    ///
    /// # Errors
    /// There is no such connection.
    pub fn connection(&self, number: usize, width: u16) -> Result<String, Error> {
        tables::one(&self.read, &self.document, number, width)
    }

    /// Events of connections as samples over time.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        samples::of(&self.read)
    }

    /// The largest connections as a page; `None` if no pictures were kept, or for a capture without connections with
    /// data and without flows.
    #[must_use]
    pub fn page(&self) -> Option<String> {
        let is_empty = self.document.connections.is_empty() && self.document.datagram_flows.is_empty();
        if is_empty { None } else { self.drawn(captured::page) }
    }

    /// The panels of these names ([`captured::PANELS`]) of the largest direction as a drawing; `None` if no
    /// pictures were kept, or without a direction to draw.
    #[must_use]
    pub fn drawing(&self, panels: &[&str]) -> Option<String> {
        self.drawn(|capture, pictures| captured::figure(capture, pictures, panels)).filter(|text| !text.is_empty())
    }

    fn drawn(&self, draw: impl FnOnce(&captured::Capture<'_>, &captured::Pictures) -> String) -> Option<String> {
        let pictures = self.read.pictures.as_ref()?;
        let document = &self.document;
        let lines: Vec<String> = tables::summary(document).lines().map(str::to_owned).collect();
        let warnings = self
            .warnings()
            .into_iter()
            .map(|(file, text)| if file == document.file { text } else { format!("{file}: {text}") });
        let warnings: Vec<String> = self.broken().into_iter().chain(warnings).collect();
        let mut texts = Vec::new();
        if !document.datagram_flows.is_empty() {
            texts.push(flows::table(&document.datagram_flows, captured::MOST_DRAWN, WHOLE));
        }
        if let Some(joined) = &document.joined {
            texts.push(both_ends::text(joined, &document.file, WHOLE));
        }
        let capture = captured::Capture {
            name: &document.file,
            lines: &lines,
            warnings: &warnings,
            connections: &self.read.connections,
            tables: &texts,
            version: env!("CARGO_PKG_VERSION"),
        };
        Some(draw(&capture, pictures))
    }

    /// Gives the file of segments its final name, if one was written.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn commit_segments(&mut self) -> io::Result<()> {
        self.read.segments.take().map_or(Ok(()), AtomicFile::commit)
    }
}

fn side<'a>(document: &'a Document, read: &'a Analysed) -> Side<'a> {
    Side {
        file: &document.file,
        connections: &read.connections,
        broken: document.broken.as_deref(),
        warnings: tables::warnings(document),
        clock_steps_back: document.incidents.clock.clock_steps_back,
        duration_s: document.duration_s,
    }
}

/// The document that `--json` prints.
#[must_use]
pub fn document(captures: &[Capture]) -> impl Serialize + '_ {
    Files { files: captures.iter().map(|capture| &capture.document).collect() }
}

/// A row of comma-separated values for each connection and direction.
///
/// # Errors
/// Errors of `to`.
pub fn write_csv(captures: &[Capture], to: &mut dyn Write) -> io::Result<()> {
    csv::write(captures.iter().map(|capture| &capture.document), to)
}

#[cfg(test)]
mod tests;

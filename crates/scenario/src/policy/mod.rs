//! Policies: one file that describes line, classes and rules. The simulator builds its queues from it;
//! so may a live shaper.
//!
//! A policy speaks of shares, and a line makes rates of them: [`Policy::parse`] takes the line of a
//! scenario, or reads the policy's own. The result is effective: every class with its rate, ceiling
//! and bursts, and a tree of disciplines for each direction, [`Policy::up`] and [`Down::queue`]. A
//! middlebox builds both with [`Spec::build_in`], each in an
//! [`Environment`](lastmile_queueing::Environment) of its direction's link layer ([`Line::up_layer`],
//! [`Line::down_layer`]), and hands what arrives from the line to that of the downstream with its time
//! of arrival in `Meta::arrived`.

mod acks;
pub(crate) mod autorate;
mod classes;
mod down;
mod form;
mod model;
mod numbers;
mod read;
pub mod ready;
pub(crate) mod reference;
mod scheduler;
mod schema;

use std::path::Path;

use lastmile_queueing::Match;
use lastmile_queueing::meter::drain;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::{Duration, Ratio};

use crate::diagnostics::{Diagnostic, Place, Report, Source, did_you_mean};
use crate::document::Document;
use crate::file::{self, Reading};
use crate::files::Files;
use crate::kinds::FileKind;
use crate::reader::Reader;

pub use form::scheduler_has;
pub use model::{AckRate, Class, Down, Line, LineOf, Police, Policy, Position, Promise, Regulated, Rule};
pub use numbers::{Numbers, class_at};
pub use reference::render as render_reference;
pub(crate) use schema::SECTIONS;

impl Policy {
    /// Reads the built-in policy of this name, or the file at this path, for `line`.
    ///
    /// # Errors
    /// All that is wrong with it; or that there is no such policy.
    pub fn load(name_or_path: &str, base: Option<&Path>, line: impl Into<LineOf>) -> Result<Self, Report> {
        Self::load_as(name_or_path, base, line, Reading::Once)
    }

    /// As [`Policy::load`], where a file is what may be read so.
    ///
    /// # Errors
    /// As [`Policy::load`]; or a file of another kind.
    pub fn load_as(
        name_or_path: &str,
        base: Option<&Path>,
        line: impl Into<LineOf>,
        reading: Reading,
    ) -> Result<Self, Report> {
        Self::found(name_or_path, base, line, false, |path| file::read(path, reading))
    }

    /// As [`Policy::load`], where a file is one of `files`, and the line's own queues are a choice that is not loaded.
    pub(crate) fn load_from(
        files: &dyn Files,
        name_or_path: &str,
        base: Option<&Path>,
        line: impl Into<LineOf>,
    ) -> Result<Self, Report> {
        Self::found(name_or_path, base, line, true, |path| {
            file::text(files.open(path).map_err(|error| file::failed(&error))?)
        })
    }

    fn found(
        name_or_path: &str,
        base: Option<&Path>,
        line: impl Into<LineOf>,
        or_none: bool,
        read: impl FnOnce(&Path) -> Result<String, String>,
    ) -> Result<Self, Report> {
        if let Some(text) = ready::text(name_or_path) {
            return Self::parse(name_or_path, text, line);
        }
        let whole = |message: String, hint: Option<String>| {
            let place = Place::WholeFile { name: name_or_path.to_owned() };
            Report::of(Diagnostic::error(place, message).maybe_hint(hint))
        };
        if !name_or_path.contains(['/', '.']) {
            let hint = did_you_mean(name_or_path, ready::NAMES)
                .unwrap_or_else(|| format!("{}; or the path of a file", ready::hint(or_none)));
            return Err(whole("no policy of this name".into(), Some(hint)));
        }
        let path = base.map_or_else(|| Path::new(name_or_path).to_owned(), |base| base.join(name_or_path));
        let text = read(&path).map_err(|problem| whole(problem, None))?;
        Self::parse(&path.display().to_string(), &text, line)
    }

    /// Reads `text`, which messages call `name`, for `line`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str, line: impl Into<LineOf>) -> Result<Self, Report> {
        let document = Document::parse(Source::new(name, text), &[])?;
        FileKind::Policy.check(&document, name)?;
        let reader = Reader::new(document);
        let read = read::policy(&reader.root().open(&schema::POLICY), name, line.into());
        let (report, _) = reader.finish();
        if report.has_errors() {
            return Err(report);
        }
        let policy = read.expect("what could not be read is in the report");
        Ok(Self { warnings: report, ..policy })
    }

    /// The queues of a middlebox between LAN and modem: for the upstream, whatever its place in the
    /// policy, and for the downstream.
    #[must_use]
    pub fn of_middlebox(&self) -> (Spec, Spec) {
        let up = match (self.place, self.rate) {
            (Position::Middlebox, _) | (_, None) => self.up.clone(),
            // A discipline for the modem takes into account that the line transmits one packet at a time.
            (Position::Modem, Some(line)) => Spec::Drain(Over {
                config: drain::Config {
                    line,
                    share: Ratio::ONE,
                    drain: None,
                    urgent: Match::Never,
                    largest: self.largest,
                    catch_up: Duration::ZERO,
                },
                queue: Box::new(self.up.clone()),
            }),
        };
        (up, self.down.as_ref().map_or_else(classes::unshaped, |down| down.queue.clone()))
    }
}

#[cfg(test)]
mod tests;

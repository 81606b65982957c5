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

mod classes;
mod down;
mod read;
pub mod ready;
pub(crate) mod reference;
mod scheduler;
mod schema;

use std::path::Path;

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Match;
use lastmile_queueing::meter::drain;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::{BitRate, ByteCount, Duration, Ratio, WireBytes};

use crate::diagnostics::{Diagnostic, Place, Report, Source, did_you_mean};
use crate::document::Document;
use crate::file::{self, Reading};
use crate::reader::Reader;

pub use down::Regulated;
pub use reference::render as render_reference;

/// The line that a policy is for.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Upstream rate of the wire.
    pub up: BitRate,
    /// Downstream rate of the wire.
    pub down: BitRate,
    /// The cost of an IP packet upstream.
    pub up_layer: LinkLayer,
    /// The cost of an IP packet downstream.
    pub down_layer: LinkLayer,
}

/// Which line a policy is read for.
#[derive(Clone, Copy, Debug)]
pub enum LineOf {
    /// The policy's own. A policy without one is refused.
    Policy,
    /// This one, in place of the policy's own.
    Caller(Line),
    /// The policy's own, or this one for a policy that has none.
    PolicyOr(Line),
}

/// A line in place of the policy's own; `None` is the policy's own.
impl From<Option<Line>> for LineOf {
    fn from(line: Option<Line>) -> Self {
        line.map_or(Self::Policy, Self::Caller)
    }
}

/// A policy on its line.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Its effect, in a line.
    pub about: String,
    /// The line.
    pub line: Line,
    /// The line is the policy's own.
    pub line_is_own: bool,
    /// The kind of its scheduler, as the file has it.
    pub scheduler: &'static str,
    /// Where the queue of the upstream stands.
    pub place: Position,
    /// The rate of the upstream that is used, on the wire.
    pub rate: BitRate,
    /// The largest IP packet to expect upstream.
    pub largest: ByteCount,
    /// The rate of the ACK class, if there is one.
    pub ack: Option<AckRate>,
    /// The classes, that of the ACKs first.
    pub classes: Vec<Class>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// The queue of the upstream, its regulators included.
    pub up: Spec,
    /// The discipline after the downstream line, if any.
    pub down: Option<Down>,
    /// The regulation of ACKs by `up` for the sake of the downstream.
    pub regulated: Regulated,
    /// Warnings about it.
    pub warnings: Report,
}

/// Packets that wait before a direction that nothing shapes: they never do.
const UNSHAPED: u64 = 1000;

/// Where the queue of the upstream stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// In the modem, in place of its queue.
    Modem,
    /// In a middlebox before the modem, whose queue stays.
    Middlebox,
}

/// The discipline after the downstream line, at its near end: the queue at its far end is unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Down {
    /// The kind of its scheduler, as the file has it; `none` without classes.
    pub scheduler: &'static str,
    /// The largest rate that it lets through; `None` if it does not shape.
    pub rate: Option<BitRate>,
    /// How it drains the queue at the far end.
    pub drain: Option<drain::Law>,
    /// The policer that packets pass on arrival.
    pub police: Option<Police>,
    /// The classes.
    pub classes: Vec<Class>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// All of that as one queue.
    pub queue: Spec,
}

/// An ingress policer: what exceeds it is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Police {
    /// Rate on the wire.
    pub rate: BitRate,
    /// The burst that conforms after a pause.
    pub burst: WireBytes,
}

/// How the rate of the ACK class came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckRate {
    /// The reserved rate.
    pub rate: BitRate,
    /// The file gives it; the rest says what would have been computed from.
    pub fixed: bool,
    /// Bytes on the downstream wire of a data packet.
    pub packet: WireBytes,
    /// Bytes on the upstream wire of an ACK.
    pub ack: WireBytes,
    /// Data packets for each ACK, in millionths.
    pub factor_ppm: u64,
}

/// A class on its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// The class above it.
    pub parent: Option<String>,
    /// The rate that it has whatever others do; `None` where its scheduler knows no rates.
    pub rate: Option<BitRate>,
    /// Its largest rate.
    pub ceil: BitRate,
    /// Priority: 0, the most urgent, to 7.
    pub priority: u8,
    /// The burst at its rate.
    pub burst: WireBytes,
    /// The burst at its ceiling.
    pub cburst: WireBytes,
    /// Where its packets wait; `None` if it has classes below.
    pub queue: Option<Spec>,
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The name of the class.
    pub class: String,
    /// Which packets.
    pub matches: Match,
    /// No further rule is asked.
    pub last: bool,
}

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
        if let Some(text) = ready::text(name_or_path) {
            return Self::parse(&format!("policies/{name_or_path}.toml"), text, line);
        }
        let whole = |message: String, hint: Option<String>| {
            let place = Place::WholeFile { name: name_or_path.to_owned() };
            Report::of(Diagnostic::error(place, message).maybe_hint(hint))
        };
        if !name_or_path.contains(['/', '.']) {
            let hint = did_you_mean(name_or_path, ready::NAMES)
                .unwrap_or_else(|| format!("known: {}; or the path of a file", ready::NAMES.join(", ")));
            return Err(whole("no policy of this name".into(), Some(hint)));
        }
        let path = base.map_or_else(|| Path::new(name_or_path).to_owned(), |base| base.join(name_or_path));
        let text = file::read(&path, reading).map_err(|problem| whole(problem, None))?;
        Self::parse(&path.display().to_string(), &text, line)
    }

    /// Reads `text`, which messages call `name`, for `line`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str, line: impl Into<LineOf>) -> Result<Self, Report> {
        let document = Document::parse(Source::new(name, text), &[])?;
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
        let up = match self.place {
            Position::Middlebox => self.up.clone(),
            // A discipline for the modem takes into account that the line transmits one packet at a time.
            Position::Modem => Spec::Drain(Over {
                config: drain::Config {
                    line: self.rate,
                    share: Ratio::ONE,
                    drain: None,
                    urgent: Match::Never,
                    largest: self.largest,
                    catch_up: Duration::ZERO,
                },
                queue: Box::new(self.up.clone()),
            }),
        };
        (up, self.down.as_ref().map_or_else(|| Spec::fifo(UNSHAPED), |down| down.queue.clone()))
    }
}

#[cfg(test)]
mod tests;

//! Findings about a file that lastmile read: file, line and column, the line itself with a caret, and the
//! expected form.
//!
//! ```text
//! error: scenarios/x.toml:7:1: unknown key "encapsulaton" in [access]
//!   |
//! 7 | encapsulaton = "bridged-vcmux-fcs"
//!   | ^^^^^^^^^^^^
//! hint: did you mean "encapsulation"?
//! ```
//!
//! The first line has all that a program or a hurried reader needs; the rest helps to mend the file. All
//! findings about a file are reported at once, up to [`Report::SHOWN`]. An argument of the command line
//! (`--set key=value`) has no line; it is named as it was typed.

use core::fmt;
use core::ops::Range;

use lastmile_text::escape;

/// A text that is read, and the name that messages give it.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    /// Byte offset of the start of each line.
    lines: Vec<usize>,
}

impl Source {
    /// `text`, which messages call `name`: usually the path as the user gave it.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = core::iter::once(0).chain(starts).collect();
        Self { name: name.into(), text, lines }
    }

    /// The name that messages use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of the bytes in `span`: its first line, since a caret spans one line.
    ///
    /// Any span is allowed; one outside the text is moved to its end.
    #[must_use]
    pub fn place(&self, span: Range<usize>) -> Place {
        let start = floor_char_boundary(&self.text, span.start);
        let index = self.lines.partition_point(|&line| line <= start) - 1;
        let line_start = self.lines[index];
        let line = self.text[line_start..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let before = self.text[line_start..start].chars().count();
        let length = line.chars().count();
        let before = before.min(length);
        let end = floor_char_boundary(&self.text, span.end.max(start));
        let width = self.text[start..end].split('\n').next().unwrap_or_default().trim_end_matches('\r').chars().count();
        let width = width.clamp(1, (length - before).max(1));
        Place::File {
            name: self.name.clone(),
            line: index + 1,
            column: before + 1,
            excerpt: Excerpt::cut(line, before, width),
        }
    }
}

/// The largest character boundary at or below `at`.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Where a finding is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A place in a text.
    File {
        /// Name of the text, usually a path.
        name: String,
        /// Line, the first is 1.
        line: usize,
        /// Column in characters, the first is 1.
        column: usize,
        /// The line, or the part of a long one that matters.
        excerpt: Excerpt,
    },
    /// A file as a whole: it is missing or cannot be read.
    WholeFile {
        /// The path of the file as the user gave it.
        name: String,
    },
    /// An argument of the command line, as it was typed.
    Argument {
        /// The argument, such as `--set access.up.rate=0`.
        text: String,
    },
}

/// A line of a file with the part that a caret points at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excerpt {
    text: String,
    /// Characters before the part.
    before: usize,
    /// Characters of the part, at least one.
    width: usize,
}

impl Excerpt {
    /// Longest excerpt, in characters.
    const LONGEST: usize = 100;
    /// Characters kept before the caret of a long line.
    const LEAD: usize = 30;

    /// Cuts a long line around the part. A tab becomes a blank, another hidden character its visible escape,
    /// under which the caret is as much longer.
    fn cut(line: &str, before: usize, width: usize) -> Self {
        let shown = |from: usize, to: usize| {
            let part: String = line.chars().map(|c| if c == '\t' { ' ' } else { c }).take(to).skip(from).collect();
            escape::line(&part).into_owned()
        };
        let length = line.chars().count();
        let skipped = if length <= Self::LONGEST { 0 } else { before.saturating_sub(Self::LEAD) };
        let end = length.min(skipped + Self::LONGEST);
        let lead = if skipped > 0 { "..." } else { "" };
        let [head, part, tail] = [
            format!("{lead}{}", shown(skipped, before)),
            shown(before, end.min(before + width)),
            shown(before + width, end) + if end < length { "..." } else { "" },
        ];
        let count = |text: &str| text.chars().count();
        Self { before: count(&head), width: count(&part).max(1), text: head + &part + &tail }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The file can be used, but hardly means what its author wanted.
    Warning,
    /// The file cannot be used.
    Error,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// The key that it is about, from the root of the file, such as `access.up.rate`; empty for the file as a whole.
    pub key: String,
    /// The problem, in one line.
    pub message: String,
    /// The expected form, in one line.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error.
    #[must_use]
    pub fn error(place: Place, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, place, key: String::new(), message: message.into(), hint: None }
    }

    /// A warning.
    #[must_use]
    pub fn warning(place: Place, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(place, message) }
    }

    /// This finding, about `key`.
    #[must_use]
    pub fn about(self, key: impl Into<String>) -> Self {
        Self { key: key.into(), ..self }
    }

    /// This finding with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// This finding with a hint, if there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// The first line alone: severity, place and message.
    #[must_use]
    pub fn headline(&self) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let message = escape::line(&self.message);
        match &self.place {
            Place::File { name, line, column, .. } => {
                format!("{severity}: {}:{line}:{column}: {message}", escape::line(name))
            }
            Place::WholeFile { name } => format!("{severity}: {}: {message}", escape::line(name)),
            Place::Argument { text } => format!("{severity}: {}: {message}", escape::line(text)),
        }
    }
}

/// The headline, the line of the file with a caret, the hint. No line break at the end.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        if let Place::File { line, excerpt, .. } = &self.place {
            let gutter = line.to_string().len();
            let caret = "^".repeat(excerpt.width);
            write!(
                f,
                "\n{:gutter$} |\n{line} | {}\n{:gutter$} | {:before$}{caret}",
                "",
                excerpt.text,
                "",
                "",
                before = excerpt.before
            )?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", escape::line(hint)),
            None => Ok(()),
        }
    }
}

/// All that is wrong with what was read, in the order of the file.
///
/// As an error (`Err(Report)`) it holds at least one [`Severity::Error`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    findings: Vec<Diagnostic>,
}

impl Report {
    /// The largest number of findings that is shown.
    pub const SHOWN: usize = 20;

    /// A report of one finding.
    #[must_use]
    pub fn of(finding: Diagnostic) -> Self {
        Self { findings: vec![finding] }
    }

    /// Adds a finding, if it is not there.
    pub fn push(&mut self, finding: Diagnostic) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// The findings, none left out.
    #[must_use]
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// True without a finding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// True if what was read cannot be used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// This report with `what` named in each finding about the file. Findings about an argument stay as they are.
    #[must_use]
    pub fn within(mut self, what: &str) -> Self {
        for finding in &mut self.findings {
            if !matches!(finding.place, Place::Argument { .. }) {
                finding.message = format!("{what}: {}", finding.message);
            }
        }
        self
    }

    /// This report with `hint` at its last finding about the file, in place of one that it may have.
    #[must_use]
    pub fn hinted(mut self, hint: &str) -> Self {
        let about_the_file = |finding: &&mut Diagnostic| !matches!(finding.place, Place::Argument { .. });
        if let Some(last) = self.findings.iter_mut().rfind(about_the_file) {
            last.hint = Some(hint.to_owned());
        }
        self
    }

    /// The findings that `other` does not have.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        Self { findings: self.findings.iter().filter(|finding| !other.findings.contains(finding)).cloned().collect() }
    }

    /// In the order of the file: what concerns it as a whole, then line by line, then the command line.
    pub(crate) fn sort(&mut self) {
        self.findings.sort_by_key(|finding| match &finding.place {
            Place::WholeFile { .. } => (0, 0, 0),
            Place::File { line, column, .. } => (1, *line, *column),
            Place::Argument { .. } => (2, 0, 0),
        });
    }
}

/// Each finding in full, an empty line between them. No line break at the end.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().take(Self::SHOWN).enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{finding}")?;
        }
        match self.findings.len().saturating_sub(Self::SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\n... and {more} more"),
        }
    }
}

impl core::error::Error for Report {}

/// The one of `known` that `word` most likely meant, if any is close: at most one edit in three letters, and not all
/// letters.
///
/// Edits are those of Damerau and Levenshtein: a letter too many, missing, wrong, or two swapped. Case and the choice
/// between `-` and `_` are no edits.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    const LONGEST_WORD: usize = 64;
    if word.len() > LONGEST_WORD {
        return None;
    }
    let plain = |s: &str| s.to_lowercase().replace('_', "-");
    let word = plain(word);
    known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&word, &plain(candidate)), candidate))
        .filter(|&(edits, candidate)| {
            let letters = word.chars().count().max(candidate.chars().count());
            edits <= (letters / 3).max(1) && edits < letters
        })
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate)
}

/// `did you mean "encapsulation"?`: the names that begin with `word` or have it between dashes, if these are few, or
/// else the [`nearest`].
#[must_use]
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    const SHORTEST_BEGINNING: usize = 3;
    const MOST_NAMES: usize = 5;
    let known: Vec<&str> = known.into_iter().collect();
    let begun = |name: &&&str| {
        word.len() >= SHORTEST_BEGINNING && (name.starts_with(word) || name.split('-').any(|part| part == word))
    };
    let mut names: Vec<String> = known.iter().filter(begun).map(|name| format!("{name:?}")).collect();
    if !(1..=MOST_NAMES).contains(&names.len()) {
        names = vec![format!("{:?}", nearest(word, known)?)];
    }
    let last = names.pop()?;
    let others = if names.is_empty() { String::new() } else { format!("{} or ", names.join(", ")) };
    Some(format!("did you mean {others}{last}?"))
}

#[cfg(test)]
mod tests;

//! The embedded files, and entries found by name.

use lastmile_scenario::diagnostics::nearest;

use crate::entry::{Home, Line};

/// The files of a folder of the library, by the names of its entries.
macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../library/", $folder, "/", $name, ".toml")))),*]
    };
}

/// Lines, from the slowest technology to the fastest, then radio and satellites.
const LINES: &[(&str, &str)] = files!("lines":
    "adsl2plus-6-0.8",
    "adsl2plus-12-1",
    "adsl2plus-24-1",
    "vdsl2-50-10",
    "vdsl2-100-40",
    "vdsl2-250-40",
    "gfast-330-50",
    "docsis-100-10",
    "docsis-250-25",
    "docsis-1000-50",
    "docsis-lld-1000-50",
    "gpon-300-150",
    "gpon-1000-500",
    "xgspon-2000-2000",
    "lte-40-10",
    "5g-fwa-300-30",
    "leo-200-20",
    "geo-50-5",
);

/// Homes, from one person to fifty subscribers.
const HOMES: &[(&str, &str)] =
    files!("homes": "single", "family", "evening", "gamers", "home-office", "small-office", "subscribers-50");

/// All lines of the library.
#[must_use]
pub fn lines() -> Vec<Line> {
    LINES.iter().map(|(name, text)| Line::read(name, text)).collect()
}

/// All homes of the library.
#[must_use]
pub fn homes() -> Vec<Home> {
    HOMES.iter().map(|(name, text)| Home::read(name, text)).collect()
}

/// The line of this name.
///
/// # Errors
/// An unknown name.
pub fn line(name: &str) -> Result<Line, Unknown> {
    find("line", name, LINES).map(|(name, text)| Line::read(name, text))
}

/// The home of this name.
///
/// # Errors
/// An unknown name.
pub fn home(name: &str) -> Result<Home, Unknown> {
    find("home", name, HOMES).map(|(name, text)| Home::read(name, text))
}

fn find<'a>(what: &'static str, name: &str, shelf: &'a [(&'static str, &'static str)]) -> Result<&'a Entry, Unknown> {
    let unknown = || {
        let names: Vec<&'static str> = shelf.iter().map(|(name, _)| *name).collect();
        Unknown { what, name: name.to_owned(), near: near(name, &names) }
    };
    shelf.iter().find(|(known, _)| *known == name).ok_or_else(unknown)
}

type Entry = (&'static str, &'static str);

/// A name that the library does not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown {what} {name:?}")]
pub struct Unknown {
    what: &'static str,
    name: String,
    near: Vec<&'static str>,
}

impl Unknown {
    /// The names that are nearest, or the way to all of them.
    #[must_use]
    pub fn hint(&self) -> String {
        self.hint_or("lastmile new --list prints all names")
    }

    /// The names that are nearest, or these words about the way to all of them.
    #[must_use]
    pub fn hint_or(&self, all: &str) -> String {
        match self.near.as_slice() {
            [] => all.to_owned(),
            [one] => format!("did you mean {one}?"),
            [others @ .., last] => format!("did you mean {} or {last}?", others.join(", ")),
        }
    }
}

/// The names that contain `word`, or else those of its technology, or else what it is closest to.
fn near(word: &str, names: &[&'static str]) -> Vec<&'static str> {
    let word = word.to_lowercase();
    let technology = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    let own = technology(&word);
    if own.is_empty() {
        return Vec::new();
    }
    let only = |keep: &dyn Fn(&str) -> bool| names.iter().copied().filter(|name| keep(name)).collect::<Vec<_>>();
    let containing = only(&|name| name.contains(&word));
    if !containing.is_empty() {
        return containing;
    }
    let alike = only(&|name| name.starts_with(&own));
    if !alike.is_empty() {
        return alike;
    }
    if let Some(name) = nearest(&word, names.iter().copied()) {
        return vec![name];
    }
    let known: Vec<String> = names.iter().map(|name| technology(name)).collect();
    match nearest(&own, known.iter().map(String::as_str)) {
        Some(closest) => only(&|name| technology(name) == closest),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_gives_the_nearest() {
        let hint = |name: &str| line(name).expect_err("it is unknown").hint();
        assert_eq!(hint("docsis-1000-5"), "did you mean docsis-1000-50?");
        assert_eq!(hint("gpon"), "did you mean gpon-300-150 or gpon-1000-500?");
        assert_eq!(hint("vdsl-16-1"), "did you mean vdsl2-50-10, vdsl2-100-40 or vdsl2-250-40?");
        assert_eq!(hint("GFAST-1000-200-bonded"), "did you mean gfast-330-50?");
        assert_eq!(hint("xgpson-2000-2000"), "did you mean xgspon-2000-2000?");
        assert_eq!(hint("xgpson-10000-10000"), "did you mean xgspon-2000-2000?");
        assert_eq!(hint("token-ring"), "lastmile new --list prints all names");
        assert_eq!(hint(""), "lastmile new --list prints all names");
        let unknown = home("familiy").expect_err("it is unknown");
        assert_eq!(unknown.to_string(), "unknown home \"familiy\"");
        assert_eq!(unknown.hint(), "did you mean family?");
    }

    #[test]
    fn every_file_of_the_library_is_on_the_shelf() {
        for (folder, shelf) in [("lines", LINES), ("homes", HOMES)] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../library").join(folder);
            let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<String> = files.map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
            let mut names: Vec<&str> = shelf.iter().map(|(name, _)| *name).collect();
            files.sort();
            names.sort_unstable();
            assert_eq!(files, names, "{}", path.display());
        }
    }
}

//! Results of earlier runs in the folder of `--out`, which nothing replaces.

use std::fs;
use std::path::{Path, PathBuf};

use lastmile_results::write;
use lastmile_studies::Variant;
use lastmile_studies::recording::file;

/// The results in a message by name; a number stands for the rest.
const NAMED: usize = 4;

/// The captures and folders of results below `out` that are not of `variants` with these captured links, in a sentence.
pub(super) fn left(out: &Path, variants: &[Variant], links: &[String]) -> Option<String> {
    let folders: Vec<PathBuf> = variants.iter().filter_map(|variant| variant.directory(out)).collect();
    let captures: Vec<String> = links.iter().map(|link| file(link)).collect();
    let mut others: Vec<String> = Vec::new();
    for folder in &folders {
        let stale = entries(folder).filter(|path| path.extension().is_some_and(|ending| ending == "pcapng"));
        let is_own = |path: &PathBuf| captures.iter().any(|own| path.file_name().is_some_and(|name| name == &**own));
        others.extend(stale.filter(|path| !is_own(path)).map(|path| below(out, &path)));
    }
    let runs = entries(out).filter(|path| path.join(write::SUMMARY).is_file() && !folders.contains(path));
    others.extend(runs.map(|path| below(out, &path)));
    others.sort();
    let rest = others.len().saturating_sub(NAMED);
    let mut named = others[..others.len() - rest].join(", ");
    if rest > 0 {
        named = format!("{named} and {rest} more");
    }
    (!named.is_empty()).then(|| format!("note: results of an earlier run stay in {}: {named}", out.display()))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn below(out: &Path, path: &Path) -> String {
    path.strip_prefix(out).unwrap_or(path).display().to_string()
}

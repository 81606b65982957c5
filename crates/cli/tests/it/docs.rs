//! Checks of the documents: commands run, shown output is current, versions, links and targets
//! exist.
//!
//! `UPDATE_DOCS=1 cargo test -p lastmile-cli --test it docs` (or `make docs`) writes the current
//! output of commands. Output with `...` in it is an excerpt and must be updated by hand.

use std::fmt::Write as _;
use std::path::Path;

use crate::transcript::{Scratch, blessing, difference, matches, steps};
use crate::workspace::{root, text_files};

/// Programs that documents may name without a test: they install, build, or need rights that a test
/// does not have.
const NOT_RUN: [&str; 10] = ["make", "cargo", "pip", "git", "cd", "sudo", "ip", "ping", "tshark", "cat"];

fn documents() -> Vec<(String, String)> {
    text_files().into_iter().filter(|(path, _)| path.ends_with(".md")).collect()
}

/// A fenced block: its language, the number of the line after its fence, its text.
struct Block<'a> {
    language: &'a str,
    line: usize,
    text: String,
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in document.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { language: language.trim(), line: number + 1, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn commands_in_the_documents_print_what_the_documents_show() {
    let mut failures = String::new();
    let mut run = 0;
    for (path, text) in documents() {
        let scratch = Scratch::new();
        let mut updated = text.clone();
        for block in blocks(&text).iter().filter(|b| b.language == "console" || b.language == "sh") {
            let steps = steps(&block.text);
            if steps.is_empty() {
                writeln!(failures, "{path}:{}: a {} block without a `$ ` command", block.line, block.language).unwrap();
            }
            let mut blessed = String::new();
            for step in steps {
                writeln!(blessed, "$ {}", step.command).unwrap();
                let program = step.command.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
                if NOT_RUN.contains(&program) {
                    blessed.push_str(&step.expected);
                    continue;
                }
                run += 1;
                let output = scratch.run(&step.command);
                let shown = if output.code == 0 { output.stdout } else { output.stdout + &output.stderr };
                let fits = step.expected.trim().is_empty() && output.code == 0 || matches(&step.expected, &shown);
                if fits {
                    blessed.push_str(&step.expected);
                } else if blessing("UPDATE_DOCS") && !step.expected.lines().any(|line| line == "...") {
                    blessed.push_str(&shown);
                } else {
                    let (line, code) = (block.line, output.code);
                    let difference = difference(&step.expected, &shown);
                    write!(failures, "{path}:{line}: $ {} (exit {code})\n{difference}\n", step.command).unwrap();
                }
            }
            updated = updated.replacen(&block.text, &blessed, 1);
        }
        if blessing("UPDATE_DOCS") && updated != text {
            std::fs::write(root().join(&path), updated).unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(run > 0, "no command was found in any document");
}

/// `make demo` in a document is a target of the Makefile.
#[test]
fn targets_named_in_the_documents_exist() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    for (path, text) in documents() {
        for rest in ["`make ", "$ make "].iter().flat_map(|start| text.split(start).skip(1)) {
            let target: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            assert!(makefile.contains(&format!("\n{target}:")), "{path} names `make {target}`, which is no target");
        }
    }
}

#[test]
fn versions_named_in_the_documents_are_those_of_the_manifest() {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let package = &manifest["workspace"]["package"];
    let (version, rust) = (package["version"].as_str().unwrap(), package["rust-version"].as_str().unwrap());
    let digits = |text: &str| -> String {
        let number: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        number.trim_end_matches('.').to_owned()
    };
    let mut seen = 0;
    for (path, text) in documents() {
        for (prefix, expected) in [("Rust ", rust), ("rustc ", rust), ("lastmile ", version), ("lastmile v", version)] {
            for rest in text.split(prefix).skip(1) {
                let found = digits(rest);
                if found.contains('.') {
                    assert_eq!(found, expected, "{path}: {prefix}{found}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 0, "README.md names the oldest Rust that builds this");
    let changes = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(changes.contains(&format!("## [{version}]")) || changes.contains("## [Unreleased]"));
}

/// Links to files of the repository lead to existing files, links to headings to existing headings,
/// and links of pages in docs/ to pages in docs/.
#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let mut broken = Vec::new();
    for (path, text) in documents() {
        let folder = root().join(Path::new(&path).parent().unwrap());
        for rest in text.split("](").skip(1) {
            let Some((target, _)) = rest.split_once(')') else { continue };
            let (file, heading) =
                target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
            if file.contains("://") {
                continue;
            }
            let linked = if file.is_empty() { root().join(&path) } else { folder.join(file) };
            let found = match heading {
                Some(heading) if linked.extension().is_some_and(|extension| extension == "md") => {
                    let linked = std::fs::read_to_string(&linked).unwrap_or_default();
                    anchors(&linked).iter().any(|anchor| anchor == heading)
                }
                _ => linked.exists(),
            };
            // The book has the pages of docs/ only.
            let book = root().join("docs");
            let outside = folder.starts_with(&book) && !linked.canonicalize().is_ok_and(|page| page.starts_with(&book));
            if !found || outside {
                broken.push(format!("{path}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// `docs/SUMMARY.md` is the contents of the book: each page of `docs/` once, and nothing else.
#[test]
fn the_contents_list_every_page_once() {
    let text = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let mut listed: Vec<String> = targets.map(|(target, _)| format!("docs/{target}")).collect();
    let documents = documents().into_iter().map(|(path, _)| path);
    let mut pages: Vec<String> =
        documents.filter(|path| path.starts_with("docs/") && path != "docs/SUMMARY.md").collect();
    listed.sort();
    pages.sort();
    assert_eq!(listed, pages, "docs/SUMMARY.md (left) lists the pages of docs/ (right)");
}

/// The anchors of a document's headings: lower case, dashes for blanks, without other characters,
/// and with a number for repeated headings.
fn anchors(document: &str) -> Vec<String> {
    let (mut plains, mut anchors) = (Vec::<String>::new(), Vec::new());
    let mut in_block = false;
    for line in document.lines() {
        in_block ^= line.starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !in_block) else { continue };
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let plain: String = heading.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect();
        let plain = plain.replace(' ', "-");
        let again = plains.iter().filter(|other| **other == plain).count();
        anchors.push(if again == 0 { plain.clone() } else { format!("{plain}-{again}") });
        plains.push(plain);
    }
    anchors
}

#[test]
fn a_heading_is_linked_by_its_words() {
    let document =
        "# Results\n\n```sh\n# no heading\n```\n## What a packet *costs*: `40 B`\n### kind = \"abr\"\n## Results\n";
    assert_eq!(anchors(document), ["results", "what-a-packet-costs-40-b", "kind--abr", "results-1"]);
}

/// The words between blanks, without code blocks and rows of tables.
fn words(document: &str) -> usize {
    let mut in_block = false;
    let counted = document.lines().filter(|line| {
        let fence = line.starts_with("```");
        in_block ^= fence;
        !in_block && !fence && !line.starts_with('|')
    });
    counted.map(|line| line.split_whitespace().count()).sum()
}

#[test]
fn a_guide_has_at_most_1500_words() {
    assert_eq!(words("# Two words\n\n```sh\nnot counted\n```\n| nor | this |\nbut *these three*, `and two`\n"), 3 + 5);
    let mut guides = 0;
    for (path, text) in documents().iter().filter(|(path, _)| path.starts_with("docs/guides/")) {
        assert!(words(text) <= 1500, "{path} has {} words: split it by its questions", words(text));
        guides += 1;
    }
    assert!(guides > 0, "docs/guides/ has the guides");
}

/// The map in crates/README.md names every crate.
#[test]
fn the_map_of_the_crates_names_every_crate() {
    let text = std::fs::read_to_string(root().join("crates/README.md")).unwrap();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            assert!(text.contains(&format!("`{name}`")), "crates/README.md does not name crates/{name}");
        }
    }
}

/// A complete scenario in a document runs.
#[test]
fn scenarios_in_the_documents_run() {
    let scratch = Scratch::new();
    let mut run = 0;
    for (path, text) in documents() {
        // A study names its scenario.
        let complete = |block: &&Block<'_>| {
            let has = |key: &str| block.text.lines().any(|line| line.starts_with(&format!("{key} = ")));
            block.language == "toml" && has("duration") && !has("scenario")
        };
        for block in blocks(&text).iter().filter(complete) {
            std::fs::write(scratch.path.join("shown.toml"), &block.text).unwrap();
            let output = scratch.run("lastmile run shown.toml");
            assert_eq!(output.code, 0, "{path}:{}:\n{}", block.line, output.stderr);
            assert_eq!(output.stderr, "", "{path}:{}", block.line);
            run += 1;
        }
    }
    assert!(run > 0, "no scenario was found in any document");
}

/// The command that draws the picture in README.md, without its `--out`.
pub(crate) const STARVATION: &str = "lastmile plot scenarios/line-of-today.toml scenarios/upload-starves-download.toml \
    --label 'Cable, 250 and 25 Mbit/s' --label 'ADSL, 2 Mbit/s and 512 kbit/s' \
    --policy 'no remedy=none' --policy 'CAKE both ways=cake' --policy full-both-ways \
    --panel 'Goodput of download' --panel 'Goodput of upload' --panel 'Round-trip time of ping'";

/// The picture in README.md shows runs of its scenarios.
#[test]
fn the_picture_shows_what_the_program_does() {
    let scratch = Scratch::new();
    let output = scratch.run(&format!("{STARVATION} --out drawn.svg"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let drawn = std::fs::read_to_string(scratch.path.join("drawn.svg")).unwrap();
    let path = root().join("docs/images/starvation.svg");
    if blessing("UPDATE_DOCS") {
        std::fs::write(&path, &drawn).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    // A message with whole pictures would be unreadable.
    assert!(shown == drawn, "docs/images/starvation.svg is out of date: `make docs` draws it anew; look at it");
}

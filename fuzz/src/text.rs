//! Text that leaves the program: for any names, descriptions and paths, each reader reads back the
//! exact text, and finds in it no command, directive or movement of the cursor.
//!
//! The input is a list of texts, separated by a byte 0xfe, which UTF-8 does not have.

mod read;

use lastmile_kernel::Configuration;
use lastmile_kernel::command::{Command, Step, table_of};
use lastmile_kernel::script::{self, Devices};
use lastmile_results::json;
use lastmile_scenario::{Diagnostic, Source};
use lastmile_text::{csv, escape, shell, systemd};

/// The longest text. Longer ones test nothing more, and their pages take long.
const LONGEST: usize = 4096;

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let texts = texts(input);
    check_shell(&texts);
    check_script(&texts);
    check_unit(&texts);
    check_terminal(&texts);
    check_data(&texts);
}

/// The texts of an input, at least one.
pub(crate) fn texts(input: &[u8]) -> Vec<String> {
    let input = &input[..input.len().min(LONGEST)];
    input.split(|byte| *byte == 0xfe).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

/// The text without NUL, which a shell and a unit cannot have.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\\u{0}")
}

fn check_shell(texts: &[String]) {
    let words: Vec<String> = texts.iter().map(|text| shell::word(text)).collect();
    let comments: String = texts.iter().map(|text| format!("# {}\n", shell::comment(text))).collect();
    let read = shlex::split(&format!("{comments}{}\n{comments}", words.join(" ")));
    let expected: Vec<String> = texts.iter().map(|text| without_nul(text)).collect();
    assert_eq!(read, Some(expected));
}

/// A script has the words of one with harmless names, except for those names.
fn check_script(texts: &[String]) {
    let text = |index: usize| texts[index % texts.len()].clone();
    let hostile = script(&text(0), &text(1), &text(2));
    assert!(!hostile.contains('\0'));
    let words = shlex::split(&hostile).expect("quotes are closed");
    let harmless = shlex::split(&script("about", "lacking-word", "class-word")).expect("quotes are closed");
    let named = harmless.into_iter().map(|word| match word.as_str() {
        "lacking-word" => without_nul(&text(1)),
        "class-word" => without_nul(&text(2)),
        "DEV=class-word" => format!("DEV={}", without_nul(&text(2))),
        "TABLE=lastmile-class-word" => format!("TABLE={}", table_of(&without_nul(&text(2)))),
        _ => word,
    });
    assert_eq!(words, named.collect::<Vec<_>>());
}

fn script(about: &str, lacking: &str, word: &str) -> String {
    let abouts = || vec![about.to_owned()];
    let run = Step::Run { about: abouts(), command: Command::new("tc class add dev $DEV").word(word) };
    let choice = Step::Choice {
        about: abouts(),
        first: Command::new("tc qdisc add dev $IFB"),
        then: vec![run.clone()],
        lacking: lacking.to_owned(),
        otherwise: vec![run],
    };
    let configuration = Configuration {
        name: about.to_owned(),
        about: abouts(),
        left_out: abouts(),
        steps: vec![Step::Heading(about.to_owned()), choice],
        has_ifb: true,
        counts_for: None,
        joins_segments: true,
        flood: None,
    };
    script::write(&configuration, Devices { device: Some(word), ifb: Some("ifb0") })
}

fn check_unit(texts: &[String]) {
    let words: Vec<String> = texts.iter().map(|text| systemd::word(text)).collect();
    let values: String = texts.iter().map(|text| format!("Description=of {}\n", systemd::value(text))).collect();
    let path = format!("/{}", texts[0]);
    let program = systemd::program(path.as_ref());
    let unit = format!("{values}ExecStart={} {}\n", program.as_deref().unwrap_or("/bin/true"), words.join(" "));
    assert!(!unit.contains(|c| escape::is_hidden(c) && c != '\n'), "{unit:?}");
    let directives = read::unit(&unit);
    let (exec, descriptions) = directives.split_last().expect("there is one");
    assert_eq!(descriptions.len(), texts.len(), "{unit:?}");
    for ((key, value), text) in descriptions.iter().zip(texts) {
        assert_eq!(*key, "Description");
        let plain = read::specifiers(value);
        let meant = format!("of {}", escape::line(text));
        assert!(plain == meant || plain == format!("{meant}\\"), "{plain:?} {meant:?}");
    }
    assert_eq!(exec.0, "ExecStart");
    let mut read = read::words(exec.1).into_iter();
    let first = read.next().map(|word| read::specifiers(&word));
    assert_eq!(first.as_deref(), Some(program.map_or("/bin/true", |_| path.as_str())));
    let read: Vec<String> = read.map(|word| read::specifiers(&word).replace("$$", "$")).collect();
    let expected: Vec<String> = texts.iter().map(|text| without_nul(text)).collect();
    assert_eq!(read, expected);
}

fn check_terminal(texts: &[String]) {
    for text in texts {
        let line = escape::line(text);
        assert!(!line.contains(escape::is_hidden), "{line:?}");
        assert_eq!(text.contains(escape::is_hidden), *line != **text, "only what is hidden is escaped");
        let lines = escape::lines(text);
        assert!(!lines.contains(|c| escape::is_hidden(c) && c != '\n'), "{lines:?}");
        assert_eq!(lines.split('\n').count(), text.split('\n').count());
    }
    let text = |index: usize| texts[index % texts.len()].as_str();
    let source = Source::new(text(0), text(1));
    for start in [0, text(1).len() / 2, text(1).len()] {
        let finding = Diagnostic::error(source.place(start..start + text(2).len()), text(2)).hint(text(3)).to_string();
        assert!(!finding.contains(|c| escape::is_hidden(c) && c != '\n'), "{finding:?}");
        let rows: Vec<&str> = finding.split('\n').collect();
        assert_eq!(rows.len(), 5, "{finding}");
        let [excerpt, caret] = [rows[2], rows[3]].map(|row| row.chars().count());
        assert!(rows[3].ends_with('^') && caret <= excerpt + 1, "{finding}");
    }
}

/// Data for programs is exact.
fn check_data(texts: &[String]) {
    let written = json::pretty(&texts);
    assert!(!written.contains(|c| escape::is_hidden(c) && c != '\n'), "{written:?}");
    assert_eq!(serde_json::from_str::<Vec<String>>(&written).expect("JSON"), texts);
    let cells: Vec<_> = texts.iter().map(|text| csv::cell(text)).collect();
    assert_eq!(read::records(&format!("{}\r\n", cells.join(","))), [texts]);
}

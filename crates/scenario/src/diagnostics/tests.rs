use super::*;

const TEXT: &str = "name = \"x\"\r\n\n[access]\nencapsulaton = \"bridged-vcmux-fcs\"\n\tup = 1\n";

fn place_of(needle: &str) -> Place {
    let start = TEXT.find(needle).unwrap();
    Source::new("scenarios/x.toml", TEXT).place(start..start + needle.len())
}

#[test]
fn a_finding_shows_place_line_caret_and_hint() {
    let finding = Diagnostic::error(place_of("encapsulaton"), "unknown key \"encapsulaton\" in [access]")
        .hint("did you mean \"encapsulation\"?");
    assert_eq!(
        finding.to_string(),
        "error: scenarios/x.toml:4:1: unknown key \"encapsulaton\" in [access]\n\
         \x20 |\n\
         4 | encapsulaton = \"bridged-vcmux-fcs\"\n\
         \x20 | ^^^^^^^^^^^^\n\
         hint: did you mean \"encapsulation\"?"
    );
}

#[test]
fn a_hint_names_those_that_begin_with_the_word_or_the_nearest() {
    let known = ["pppoa-vcmux", "pppoa", "pppoa-llc", "pppoe-vcmux", "pppoe-llcsnap", "pppoe-ptm"];
    assert_eq!(
        did_you_mean("pppoe", known).unwrap(),
        "did you mean \"pppoe-vcmux\", \"pppoe-llcsnap\" or \"pppoe-ptm\"?"
    );
    assert_eq!(did_you_mean("pppoe-pmt", known).unwrap(), "did you mean \"pppoe-ptm\"?");
    assert_eq!(did_you_mean("ppp", known), None, "six are too many");
    assert_eq!(did_you_mean("c", ["a", "b"]), None, "no letter is right");
    assert_eq!(did_you_mean("ac", ["a", "b"]).unwrap(), "did you mean \"a\"?");
}

#[test]
fn an_argument_is_named_as_typed() {
    let place = Place::Argument { text: "--set access.up.rate=0".into() };
    assert_eq!(
        Diagnostic::error(place, "a rate of zero").hint("at least 1 bit/s").to_string(),
        "error: --set access.up.rate=0: a rate of zero\nhint: at least 1 bit/s"
    );
}

#[test]
fn a_missing_file_has_no_line() {
    let place = Place::WholeFile { name: "no.toml".into() };
    assert_eq!(Diagnostic::error(place, "no such file").to_string(), "error: no.toml: no such file");
}

#[test]
fn tabs_count_as_one_column_and_line_ends_are_not_shown() {
    assert_eq!(
        Diagnostic::warning(place_of("up"), "odd").to_string(),
        "warning: scenarios/x.toml:5:2: odd\n  |\n5 |  up = 1\n  |  ^^"
    );
    assert_eq!(
        Diagnostic::error(place_of("\"x\"\r\n\n[acc"), "odd").to_string(),
        "error: scenarios/x.toml:1:8: odd\n  |\n1 | name = \"x\"\n  |        ^^^"
    );
}

#[test]
fn a_long_line_is_cut_around_the_caret() {
    let text = format!("{}WRONG{}", "x".repeat(500), "y".repeat(500));
    let Place::File { column, excerpt, .. } = Source::new("f", text).place(500..505) else { panic!("a file") };
    assert_eq!(column, 501);
    assert_eq!(excerpt.text, format!("...{}WRONG{}...", "x".repeat(30), "y".repeat(65)));
    assert_eq!(excerpt.text.get(excerpt.before..excerpt.before + excerpt.width), Some("WRONG"));
}

#[test]
fn columns_count_characters_and_any_span_has_a_place() {
    let text = "n = \"\u{e9}\u{e9}\" # caf\u{e9}\nlast";
    let source = Source::new("f", text);
    for start in 0..text.len() + 3 {
        for end in 0..text.len() + 3 {
            let shown = Diagnostic::error(source.place(start..end), "m").to_string();
            assert!(shown.contains('^'), "{start}..{end}: {shown}");
        }
    }
    assert!(matches!(source.place(9..10), Place::File { line: 1, column: 8, .. }));
    assert!(matches!(source.place(999..1000), Place::File { line: 2, column: 5, .. }));
}

#[test]
fn a_report_shows_twenty_findings_and_counts_the_rest() {
    let mut report = Report::default();
    for n in 0..23 {
        report.push(Diagnostic::error(Place::WholeFile { name: "f".into() }, format!("finding {n}")));
    }
    let shown = report.to_string();
    assert!(shown.contains("finding 19") && !shown.contains("finding 20"));
    assert!(shown.ends_with("\n\n... and 3 more"));
}

#[test]
fn a_finding_says_with_what_it_comes_and_is_told_once() {
    let of = |finding: &Diagnostic| Report::of(finding.clone());
    let (file, argument) = (Diagnostic::warning(place_of("up"), "odd"), Place::Argument { text: "--set up=1".into() });
    assert!(of(&file).within("case \"a\"").to_string().starts_with("warning: scenarios/x.toml:5:2: case \"a\": odd\n"));
    assert_eq!(of(&Diagnostic::error(argument, "odd")).within("case \"a\"").to_string(), "error: --set up=1: odd");
    let other = Diagnostic::warning(place_of("up"), "odder");
    let mut both = of(&file);
    both.push(other.clone());
    assert_eq!(both.beyond(&of(&file)), of(&other));
}

#[test]
fn control_characters_of_a_file_never_reach_the_terminal() {
    let source = Source::new("f", "a = \"\u{1b}[2J\"");
    let shown = Diagnostic::error(source.place(4..9), "odd \u{1b}[2J\nvalue").to_string();
    assert_eq!(shown, "error: f:1:5: odd \\u{1b}[2J\\nvalue\n  |\n1 | a = \"\\u{1b}[2J\"\n  |     ^^^^^^^^^^");
}

/// Carets stand under the escapes of what they point at, behind the escapes of what comes before.
#[test]
fn carets_line_up_under_escapes() {
    let source = Source::new("a\u{1b}c\n.toml", "\u{202e}\r\u{9b} = \"\tb\"");
    let shown = Diagnostic::error(source.place(9..12), "odd").hint("\u{7}beep").to_string();
    assert_eq!(
        shown,
        "error: a\\u{1b}c\\n.toml:1:7: odd\n  |\n1 | \\u{202e}\\r\\u{9b} = \" b\"\n  |                    ^^^\n\
         hint: \\u{7}beep"
    );
}

#[test]
fn a_long_line_of_hidden_characters_is_cut_and_its_caret_stands_right() {
    let text = format!("{}WRONG{}", "\u{1b}".repeat(500), "\u{1b}".repeat(500));
    let Place::File { excerpt, .. } = Source::new("f", text).place(500..505) else { panic!("a file") };
    assert!(excerpt.text.starts_with("...\\u{1b}") && excerpt.text.ends_with("\\u{1b}..."));
    assert_eq!(excerpt.text.get(excerpt.before..excerpt.before + excerpt.width), Some("WRONG"));
}

#[test]
fn the_nearest_word_is_close_or_none() {
    let known = ["encapsulation", "delay", "rate", "queue"];
    assert_eq!(nearest("encapsulaton", known), Some("encapsulation"));
    assert_eq!(nearest("dealy", known), Some("delay"));
    assert_eq!(nearest("Rate", known), Some("rate"));
    assert_eq!(nearest("duration", known), None);
    assert_eq!(nearest(&"x".repeat(10_000), known), None);
}

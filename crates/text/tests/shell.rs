//! Words and comments, read by real shells.

use std::process::Command;

use lastmile_text::shell::{comment, word};
use proptest::prelude::*;

/// Characters with a meaning in shells, mixed with others.
fn hostile() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            prop::sample::select(
                "'\"\\$`;&|<>(){}[]*?!#~=% \t\n\r\u{1b}\u{7f}-ax\u{e9}\u{2028}".chars().collect::<Vec<_>>()
            ),
            any::<char>().prop_filter("a command line has no NUL", |c| *c != '\0'),
        ],
        0..12,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The real `sh` receives exactly the words and runs nothing else, whatever a preceding comment
    /// contains.
    #[test]
    fn a_shell_reads_the_same_words_back(texts in prop::collection::vec(hostile(), 1..8), about in hostile()) {
        let words: Vec<String> = texts.iter().map(|text| word(text)).collect();
        let script = format!("# {}\nprintf '%s\\0' {}\n", comment(&about), words.join(" "));
        // No program can be found, so any command but the shell's own printf would be an error.
        let output = Command::new("/bin/sh").args(["-euc", &script]).env("PATH", "/nonexistent").output().unwrap();
        prop_assert!(output.status.success() && output.stderr.is_empty(), "{script:?}: {}",
            String::from_utf8_lossy(&output.stderr));
        let expected: Vec<u8> = texts.iter().flat_map(|text| text.bytes().chain([0])).collect();
        prop_assert_eq!(output.stdout, expected);
    }

    /// An independent tokenizer reads the words back.
    #[test]
    fn a_tokenizer_reads_the_same_words_back(texts in prop::collection::vec(hostile(), 1..8)) {
        let words: Vec<String> = texts.iter().map(|text| word(text)).collect();
        prop_assert_eq!(shlex::split(&words.join(" ")).unwrap(), texts);
    }
}

//! Minimal readers of the program's output, written from the manuals only.

/// The directives of a unit file, keys and values. systemd.syntax(7); systemd ends lines at `\n`,
/// `\r` and NUL.
pub(super) fn unit(text: &str) -> Vec<(&str, &str)> {
    let lines = text.split(['\n', '\r', '\0']).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    lines
        .map(|line| {
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            assert!(backslashes % 2 == 0, "the next line is joined: {line:?}");
            line.split_once('=').unwrap_or_else(|| panic!("no directive: {line:?}"))
        })
        .collect()
}

/// A value with its specifiers replaced, of which only `%%` may occur.
pub(super) fn specifiers(value: &str) -> String {
    let mut plain = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c == '%' {
            assert_eq!(chars.next(), Some('%'), "a specifier: {value:?}");
        }
        plain.push(c);
    }
    plain
}

/// The words of a command line. systemd.service(5), systemd.syntax(7), "Quoting".
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c == ' ' || c == '\t' {
            chars.next();
            continue;
        }
        let mut word = String::new();
        let mut quote = None;
        while let Some(c) = chars.next_if(|c| quote.is_some() || !matches!(c, ' ' | '\t')) {
            match c {
                _ if quote == Some(c) => quote = None,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '\\' => word.push(escape(&mut chars)),
                _ => word.push(c),
            }
        }
        assert_eq!(quote, None, "a quote is open: {line:?}");
        assert!(word != ";" || line.contains("\";\""), "another command: {line:?}");
        words.push(word);
    }
    words
}

/// The character of an escape, after its backslash.
fn escape(chars: &mut impl Iterator<Item = char>) -> char {
    let kind = chars.next().expect("an escape");
    let digits = match kind {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        '\\' | '"' => return kind,
        _ => panic!("an escape that nobody wrote: {kind:?}"),
    };
    let code: String = chars.take(digits).collect();
    let code = u32::from_str_radix(&code, 16).expect("hexadecimal digits");
    assert!(kind != 'x' || code < 0x80, "a byte that is no character");
    char::from_u32(code).expect("a character")
}

/// The records of a table. RFC 4180, 2.
pub(super) fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut chars, mut quoted) = (text.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => {
                assert!(quoted || cell.is_empty(), "a quote within a plain cell: {text:?}");
                quoted = !quoted;
            }
            ',' if !quoted => record.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {
                assert_eq!(chars.next(), Some('\n'), "{text:?}");
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            _ => cell.push(c),
        }
    }
    assert!(!quoted && record.is_empty(), "an open record: {text:?}");
    records
}

//! Packets that may be interrupted, and lines on which they cannot be.

use crate::{LINE, said};

/// The upstream with `interleave`, over PPPoA and with two classes where `rest` does not say otherwise.
fn interleaved(encapsulation: &str, rest: &str) -> String {
    let up = format!("up = {{ rate = \"512 kbit/s\", {rest} }}");
    LINE.replace("[access]\n", &format!("[access]\nencapsulation = \"{encapsulation}\"\n"))
        .replace("up = { rate = \"512 kbit/s\" }", &up)
}

#[test]
fn packets_that_cannot_be_interrupted() {
    let classes = "queue = { kind = \"priority\", classes = [{}, {}] }";
    let with = |value: &str| interleaved("pppoa-vcmux", &format!("{classes}, interleave = {value}"));
    for taken in ["\"none\"", "\"cells\"", "\"4 B\"", "\"160 B\"", "\"1 kB\""] {
        assert!(crate::parse(&with(taken)).is_ok(), "{taken}");
    }
    let hinted = |text: &str, headline: &str, hint: &str| {
        let said = said(text);
        assert!(said.starts_with(&format!("{headline}\n")) && said.ends_with(&format!("\nhint: {hint}")), "{said}");
    };
    hinted(
        &with("\"cels\""),
        "error: x.toml:5:93: unknown interleave \"cels\"",
        "\"none\", \"cells\", or the size of PPP multilink fragments, such as \"160 B\"",
    );
    for (value, size) in [("\"0 B\"", "0 bytes"), ("\"3 B\"", "3 bytes"), ("\"66 kB\"", "66000 bytes")] {
        let headline = format!(
            "error: x.toml:5:93: access.up.interleave: fragments of {size}; from 4 bytes, as long as the header of \
             each, to 65535 bytes"
        );
        hinted(&with(value), &headline, "such as \"160 B\"");
    }
    hinted(
        &interleaved("pppoa-vcmux", "interleave = \"cells\""),
        "error: x.toml:5:6: access.up: interleave without a queue of kind \"priority\"",
        "queue = { kind = \"priority\", classes = [...] }: a class may interrupt those below it",
    );
    hinted(
        &interleaved("pppoa-vcmux", &format!("{classes}, header_compression = \"vj\", interleave = \"cells\"")),
        "error: x.toml:5:6: access.up: interleave with header_compression = \"vj\", whose packets must arrive in \
         the order in which they were compressed",
        "header_compression = \"none\" on this direction",
    );
    hinted(
        &interleaved("ethernet", &format!("{classes}, interleave = \"cells\"")),
        "error: x.toml:5:93: access.up.interleave: packets interrupted between cells with framing \"none\"; that \
         needs framing \"atm\"",
        "such as encapsulation = \"pppoa-vcmux\"",
    );
    hinted(
        &interleaved("ipoa-vcmux", &format!("{classes}, interleave = \"160 B\"")),
        "error: x.toml:5:93: access.up.interleave: fragments are PPP frames (RFC 1990), and this encapsulation has \
         no PPP",
        "such as encapsulation = \"pppoa-vcmux\"",
    );
}

/// Whether there is PPP is a matter of headers, not of their sum: bridged and PPPoE, each behind
/// another multiplexing, both have 32 bytes.
#[test]
fn fragments_need_ppp_or_an_overhead_of_ones_own() {
    let classes = "queue = { kind = \"priority\", classes = [{}, {}] }, interleave = \"160 B\"";
    for (encapsulation, taken) in [
        ("\"pppoe-vcmux\"", true),
        ("\"bridged-llcsnap\"", false),
        ("\"l2tp/ipoa-vcmux\"", true),
        ("\"conservative\"", true),
        ("\"ip\"", false),
        ("{ overhead = 8, framing = \"atm\" }", true),
        ("{ overhead = 1, framing = \"atm\" }", false),
    ] {
        let text = interleaved("?", classes).replace("\"?\"", encapsulation);
        assert_eq!(crate::parse(&text).is_ok(), taken, "{encapsulation}");
    }
}

/// A policy in the modem replaces the queue with one that interrupts nothing; behind a middlebox the
/// queue of the line stays.
#[test]
fn a_policy_in_the_modem_interrupts_nothing() {
    let classes = "queue = { kind = \"priority\", classes = [{}, {}] }, interleave = \"cells\"";
    let with =
        |key: &str, rest: &str| interleaved("pppoa-vcmux", rest).replace("[access]\n", &format!("[access]\n{key}\n"));
    let said = said(&with("policy = \"fifo\"", classes));
    let headline =
        "error: x.toml:6:6: access.up: interleave with a policy in the modem, whose queues interrupt nothing\n";
    assert!(said.starts_with(headline), "{said}");
    assert!(said.ends_with("\nhint: leave out one of them"), "{said}");
    let acks_first = "queue = { kind = \"priority\" }, interleave = \"cells\"";
    for (key, rest) in [("policy = \"full-both-ways\"", classes), ("", acks_first)] {
        if let Err(report) = crate::parse(&with(key, rest)) {
            panic!("{key}: {report}");
        }
    }
}

//! Policies that would not hold, and their errors.

use super::*;

pub(super) fn class(name: &str, rest: &str) -> String {
    format!("[[class]]\nname = \"{name}\"\n{rest}\n")
}

#[test]
fn what_would_not_hold_is_said_with_its_numbers() {
    refused(
        &(class("a", "rate = \"300 kbit/s\"") + &class("b", "rate = \"300 kbit/s\"")),
        "error: p.toml:9:8: with class \"b\" 600 kbit/s are guaranteed, and the line has 512 kbit/s: the guarantees \
         would not hold",
    );
    refused(
        &class("a", "rate = \"120 %\""),
        "error: p.toml:6:8: class.a.rate: \"120 %\" is too large; a share of a whole is at most 100 %",
    );
    refused(
        &(class("default", "rate = \"10 %\"") + "[[rule]]\nclass = \"defualt\"\n"),
        "error: p.toml:8:9: no class is called \"defualt\": its packets would have nowhere to go",
    );
    refused(
        &(class("a", "rate = \"10 %\"\nparent = \"b\"")
            + &class("b", "rate = \"10 %\"\nparent = \"a\"")
            + &class("c", "rate = \"5 %\"")),
        "error: p.toml:7:10: class \"a\": its parents lead round in a circle, and never to the link",
    );
    refused(
        &class("a", "rate = \"10 %\"\nburst = \"1000 wire bytes\""),
        "error: p.toml:7:9: class.a.burst: a burst of 1000 wire bytes is smaller than the largest packet, which \
         takes 1500 wire bytes",
    );
    refused(
        &class("a", "rate = \"50 %\"\nceil = \"20 %\""),
        "error: p.toml:7:8: class.a.ceil: a ceil of 102.4 kbit/s is below the rate of 256 kbit/s",
    );
    // A ceiling says nothing where the classes have no rates.
    refused(
        &("[ack]\nrate = \"512 kbit/s\"\n".to_owned() + &class("a", "rate = \"10 %\"\nceil = \"50 %\"")),
        "error: p.toml:4:1: the ACKs of a full download need 512 kbit/s, and the line has 512 kbit/s",
    );
    refused(
        "[ack]\nfactor = 0.1",
        "error: p.toml:5:10: ack.factor: 0.1 is no number from 0.5 to 100 with at most six decimals, such as 1.5",
    );
    refused(
        &(class("a", "rate = \"1 %\"") + &class("a", "rate = \"1 %\"")),
        "error: p.toml:8:8: a second class is called \"a\"",
    );
    refused(
        &class("line", "rate = \"1 %\""),
        "error: p.toml:5:8: a class is called \"line\", which is the name of the line itself",
    );
    refused(&class("a", ""), "error: p.toml:4:1: missing key \"rate\" in [[class]] \"a\"");
    refused("", "error: p.toml: missing key \"class\" at the top level");
    refused(
        "[scheduler]\nkind = \"none\"\n[[class]]\nname = \"a\"\nrate = \"1 %\"",
        "error: p.toml:6:1: class without a scheduler of classes",
    );
    let alone = Policy::parse("p.toml", &class("a", "rate = \"1 %\""), None).expect_err("it has no line");
    assert_eq!(headlines(alone.findings()), ["error: p.toml: missing key \"line\" at the top level"]);
}

/// Errors that do not follow from each other are reported together, those of `[down]` too.
#[test]
fn all_errors_of_a_policy_are_told_at_once() {
    let text = "[scheduler]\ndefault = \"nobody\"\n".to_owned()
        + &class("a", "rate = \"60 %\"")
        + &class("b", "rate = \"60 %\"")
        + "[[rule]]\nclass = \"c\"\n[down]\nshare = \"120 %\"\n";
    let report = Policy::parse("p.toml", &format!("{LINE}{text}"), None).expect_err(&text);
    let expected = [
        "error: p.toml:5:11: no class is called \"nobody\": its packets would have nowhere to go",
        "error: p.toml:11:8: with class \"b\" 614.4 kbit/s are guaranteed, and the line has 512 kbit/s: the guarantees \
         would not hold",
        "error: p.toml:13:9: no class is called \"c\": its packets would have nowhere to go",
        "error: p.toml:15:9: down.share: \"120 %\" is too large; a share of a whole is at most 100 %",
    ];
    assert_eq!(headlines(report.findings()), expected);
}

/// All that is said of the mistakes that would quietly cost what a policy is there for: file, line,
/// key, and what would come of it.
#[test]
fn what_would_not_hold_is_told_whole() {
    let told = |text: &str, expected: &str| {
        let report = Policy::parse("p.toml", &format!("{LINE}{text}"), None).expect_err(text);
        assert_eq!(report.to_string(), expected, "{text}");
    };
    told(
        &(class("a", "rate = \"300 kbit/s\"") + &class("b", "rate = \"300 kbit/s\"")),
        "error: p.toml:9:8: with class \"b\" 600 kbit/s are guaranteed, and the line has 512 kbit/s: the guarantees \
         would not hold\n  \
         |\n9 | rate = \"300 kbit/s\"\n  |        ^^^^^^^^^^^^\nhint: lower a rate; percentages are of what the ACK \
         class leaves",
    );
    told(
        &class("a", "rate = \"120 %\""),
        "error: p.toml:6:8: class.a.rate: \"120 %\" is too large; a share of a whole is at most 100 %\n  \
         |\n6 | rate = \"120 %\"\n  |        ^^^^^^^",
    );
    told(
        &(class("default", "rate = \"10 %\"") + "[[rule]]\nclass = \"defualt\"\n"),
        "error: p.toml:8:9: no class is called \"defualt\": its packets would have nowhere to go\n  \
         |\n8 | class = \"defualt\"\n  |         ^^^^^^^^^\nhint: did you mean \"default\"?",
    );
    told(
        &(class("a", "rate = \"10 %\"\nparent = \"b\"")
            + &class("b", "rate = \"10 %\"\nparent = \"a\"")
            + &class("c", "rate = \"5 %\"")),
        "error: p.toml:7:10: class \"a\": its parents lead round in a circle, and never to the link\n  \
         |\n7 | parent = \"b\"\n  |          ^^^\nhint: none of them would ever send; a class on the line has no \
         parent",
    );
    told(
        &class("a", "rate = \"10 %\"\nburst = \"1000 wire bytes\""),
        "error: p.toml:7:9: class.a.burst: a burst of 1000 wire bytes is smaller than the largest packet, which \
         takes 1500 wire bytes\n  \
         |\n7 | burst = \"1000 wire bytes\"\n  |         ^^^^^^^^^^^^^^^^^\nhint: such a packet would never depart \
         in time",
    );
}

#[test]
fn a_class_that_no_rule_reaches_is_a_warning() {
    let text = format!("{LINE}{}{}", class("lonely", "rate = \"10 %\""), class("default", "rate = \"10 %\""));
    let policy = Policy::parse("p.toml", &text, None).unwrap();
    assert_eq!(
        headlines(policy.warnings.findings()),
        ["warning: p.toml:5:8: no rule leads to class \"lonely\": it will never have a packet"]
    );
}

#[test]
fn a_delay_that_cannot_be_kept_is_refused_with_its_reason() {
    let refused = |from: &str, to: &str| {
        let report = Policy::parse("own.toml", &HFSC.replace(from, to), None).expect_err("it is refused");
        report.findings()[0].headline()
    };
    let other = refused("kind = \"hfsc\"", "kind = \"htb\"");
    assert!(other.contains("delay with a scheduler that promises none"), "{other}");
    let too_short = refused("20 ms", "1 ps");
    assert!(too_short.starts_with("error: own.toml:9:9: "), "{too_short}");
    assert!(too_short.contains("faster than any line"), "{too_short}");
    let together = refused("20 ms", "19 ms");
    assert!(together.contains("1 Mbit/s"), "{together}");
}

/// Strict priority: of two classes of one level the second starves.
#[test]
fn classes_of_equal_priority_have_a_warning_where_nothing_else_divides_the_line() {
    let warned = |kind: &str, second: &str| {
        let rate = if kind == "priority" { "" } else { "rate = \"10 %\"\n" };
        let udp = "[[rule]]\nclass = \"work\"\nmatch = { protocol = \"udp\" }\n";
        let classes = class("work", rate) + &class("default", &format!("{rate}priority = {second}"));
        let text = format!("{LINE}[scheduler]\nkind = \"{kind}\"\n{classes}{udp}");
        headlines(Policy::parse("p.toml", &text, None).unwrap().warnings.findings())
    };
    let found = warned("priority", "4");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("\"default\" has the priority of \"work\", which goes first whenever it has a packet"));
    assert!(warned("priority", "5").is_empty() && warned("htb", "4").is_empty());
}

/// Keys of classes that a scheduler has no use for. CBQ has no ceiling between the rate and the line.
#[test]
fn a_key_without_an_effect_has_a_warning() {
    let warned = |kind: &str, keys: &str| {
        let rate = if kind == "priority" { "" } else { "rate = \"20 %\"\n" };
        let classes = class("work", &format!("{rate}{keys}")) + &class("default", rate);
        let text = format!("{LINE}[scheduler]\nkind = \"{kind}\"\n{classes}[[rule]]\nclass = \"work\"\n");
        let policy = Policy::parse("p.toml", &text, None).unwrap_or_else(|report| panic!("{report}"));
        let told: Vec<String> = headlines(policy.warnings.findings());
        told.iter()
            .filter(|headline| !headline.contains("has the priority of"))
            .map(|headline| {
                let (_, key) = headline.split_once("class.work.").unwrap_or_else(|| panic!("{headline}"));
                key.split_once(": no effect").unwrap_or_else(|| panic!("{headline}")).0.to_owned()
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let all = "ceil = \"40 %\"\npriority = 3\nburst = \"5000 wire bytes\"\ncburst = \"5000 wire bytes\"";
    assert_eq!(warned("htb", all), "");
    assert_eq!(warned("cbq", all), "ceil cburst");
    assert_eq!(warned("hfsc", all), "priority burst cburst");
    assert_eq!(warned("custom", all), "ceil priority burst cburst");
    assert_eq!(warned("priority", all), "ceil burst cburst");
    // It is bounded, or may have the whole line.
    assert_eq!((warned("cbq", "ceil = \"20 %\""), warned("cbq", "ceil = \"100 %\"")), (String::new(), String::new()));
    let acks = "[scheduler]\nkind = \"hfsc\"\n[ack]\npriority = 0\nburst = \"5000 wire bytes\"\n";
    let text = format!("{LINE}{acks}{}", class("default", "rate = \"10 %\""));
    let policy = Policy::parse("p.toml", &text, None).unwrap();
    let expected = [
        "warning: p.toml:7:12: ack.priority: no effect with the scheduler \"hfsc\"",
        "warning: p.toml:8:9: ack.burst: no effect with the scheduler \"hfsc\"",
    ];
    assert_eq!(headlines(policy.warnings.findings()), expected);
}

/// Classes of priority 0 pass a drain, whatever the scheduler.
#[test]
fn a_priority_has_an_effect_with_a_drain() {
    let warned = |down: &str| {
        let classes = "[[down.class]]\nname = \"default\"\nrate = \"10 %\"\npriority = 0\n";
        let up = class("default", "rate = \"10 %\"");
        let text = format!("{LINE}{up}[down]\nkind = \"custom\"\nshare = \"90 %\"\n{down}{classes}");
        headlines(Policy::parse("p.toml", &text, None).unwrap().warnings.findings())
    };
    assert!(warned("drain = true\n").is_empty());
    let told = ["warning: p.toml:13:12: down.class.default.priority: no effect with the scheduler \"custom\""];
    assert_eq!(warned(""), told);
}

/// The ACKs of 2 Mbit/s need 2 Mbit/s * 40 / (1500 * 1.5) = 35.556 kbit/s, rounded up to bits.
#[test]
fn a_ceiling_of_the_acks_below_their_rate_is_refused() {
    let policy = |kind: &str, ceil: &str| {
        let rate = if kind == "priority" { "" } else { "rate = \"10 %\"\npriority = 2" };
        let acks = format!("[scheduler]\nkind = \"{kind}\"\n[ack]\nceil = \"{ceil}\"\n");
        Policy::parse("p.toml", &format!("{LINE}{acks}{}", class("default", rate)), None)
    };
    for kind in ["htb", "cbq", "hfsc", "custom"] {
        let report = policy(kind, "35 kbit/s").expect_err(kind);
        let expected = "error: p.toml:7:8: ack.ceil: a ceil of 35 kbit/s is below the rate of 35.556 kbit/s";
        assert!(headlines(report.findings()).contains(&expected.to_owned()), "{kind}: {report}");
        assert!(policy(kind, "36 kbit/s").is_ok(), "{kind}");
    }
    assert!(policy("priority", "35 kbit/s").is_ok());
}

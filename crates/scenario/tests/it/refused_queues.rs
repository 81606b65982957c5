//! Queues and classes that are refused, and the whole of what is said about them.

use crate::refused::refused;
use crate::{LINE, said};

#[test]
fn pacing_and_clamping() {
    let with = |queue: &str| LINE.replace("up = { rate", &format!("up = {{ queue = {queue}, rate"));
    let at = |column: u32, rest: &str| format!("error: x.toml:4:{column}: {rest}");
    refused(
        &with("{ kind = \"ack-pacing\", rate = \"1 Mbit/s\", max_hold = \"501 ms\" }"),
        &at(69, "access.up.queue.max_hold: 501 ms is above 500 ms"),
    );
    refused(&with("{ kind = \"window-clamp\" }"), &at(16, "missing key \"window\" in [access.up.queue]"));
    refused(&with("{ kind = \"window-clamp\", window = \"9 kB\", rtt = \"40 ms\" }"), &at(64, "both window and rtt"));
    refused(&with("{ kind = \"window-clamp\", rtt = \"40 ms\" }"), &at(47, "rtt without rate"));
    refused(&with("{ kind = \"window-clamp\", rate = \"1 Mbit/s\" }"), &at(48, "rate without rtt"));
}

#[test]
fn classes_that_are_no_tree_or_are_promised_too_much() {
    let with = |queue: &str| {
        LINE.replace("{ rate = \"512 kbit/s\" }", &format!("{{ rate = \"512 kbit/s\", queue = {queue} }}"))
    };
    let classes = |classes: &str| with(&format!("{{ kind = \"htb\", classes = [{classes}] }}"));
    refused(
        &classes("{ name = \"a\", parent = \"b\", rate = \"1 kbit/s\" }"),
        "error: x.toml:4:87: access.up.queue.classes.a.parent: class \"a\": its parent \"b\" is no class",
    );
    refused(
        &classes("{ name = \"a\", rate = \"513 kbit/s\" }"),
        "error: x.toml:4:37: access.up.queue: the classes on the link are guaranteed 513 kbit/s together, and the \
         link has 512 kbit/s",
    );
    refused(
        &classes(
            "{ name = \"a\", rate = \"9 kbit/s\", limit = \"3 packets\" }, { name = \"b\", parent = \"a\", rate = \"1 kbit/s\" }",
        ),
        "error: x.toml:4:105: limit of a class with classes below it, which takes no packets itself",
    );
    refused(
        &with("{ kind = \"htb\", default = \"b\", classes = [{ name = \"a\", rate = \"1 kbit/s\" }] }"),
        "error: x.toml:4:63: access.up.queue.default: there is no class \"b\"",
    );
    refused(&with("{ kind = \"htb\" }"), "error: x.toml:4:37: missing key \"classes\" in [access.up.queue]");
    refused(
        &with("{ kind = \"cbq\", rate = \"513 kbit/s\", classes = [{ name = \"a\", share = \"10 %\" }] }"),
        "error: x.toml:4:37: access.up.queue: shares of 513 kbit/s, and the line has 512 kbit/s",
    );
    refused(
        &with("{ kind = \"cbq\", rate = \"512 kbit/s\", classes = [{ name = \"a\", share = \"101 %\" }] }"),
        "error: x.toml:4:107: access.up.queue.classes.a.share: \"101 %\" is too large; a share of a whole is at \
         most 100 %",
    );
    refused(
        &with("{ kind = \"custom\", classes = [{ packets = 2, bytes = \"40 wire bytes\" }] }"),
        "error: x.toml:4:79: both bytes and packets; a turn has one count",
    );
    refused(
        &with("{ kind = \"custom\", classes = [{ bytes = \"0 wire bytes\" }] }"),
        "error: x.toml:4:77: access.up.queue.classes.0.bytes: a count of zero: the class would never send",
    );
}

/// What a class or a flow would have is zero, or is said twice.
#[test]
fn shares_of_fair_queueing_that_would_not_do_what_they_say() {
    let with = |kind: &str, keys: &str| {
        LINE.replace("512 kbit/s\" }", &format!("512 kbit/s\", queue = {{ kind = \"{kind}\", {keys} }} }}"))
    };
    // The caret stands at `place`.
    let refused_at = |text: &str, place: &str, rest: &str| {
        let line = text.lines().nth(3).expect("a line of four");
        let column = line.find(place).expect("a place in the line") + 1;
        refused(text, &format!("error: x.toml:4:{column}: {rest}"));
    };
    for kind in ["drr", "wfq", "wf2q-plus"] {
        let both = with(kind, "limit = \"9 packets\", classes = [{}]");
        refused_at(&both, "\"9 packets\"", "both limit and classes, which have their own");
        let nobody = "access.up.queue.classes: 0 classes; there are 1 to 16";
        refused_at(&with(kind, "classes = []"), "[]", nobody);
        let many = format!("classes = [{}]", ["{}"; 17].join(", "));
        refused_at(&with(kind, &many), "[", "access.up.queue.classes: 17 classes; there are 1 to 16");
        let nothing = "access.up.queue.limit: a limit of zero: no packet would ever pass";
        refused_at(&with(kind, "limit = \"0 packets\""), "\"0 packets\"", nothing);
        let code_point = with(kind, "classes = [{ match = { dscp = 64 } }]");
        refused_at(&code_point, "64 }", "access.up.queue.classes.0.match.dscp: 64 is above 63");
        // Classes have no names here, so nothing can name one that is not there.
        let named = with(kind, "classes = [{ name = \"a\" }]");
        refused_at(&named, "name", "unknown key \"name\" in [[access.up.queue.classes]] \"a\"");
        let elsewhere = with(kind, "default = \"a\", classes = [{}]");
        refused_at(&elsewhere, "default", "unknown key \"default\" in [access.up.queue]");
    }
    let quantum = "quantum: a quantum of zero: nothing would ever be sent";
    let of_flows = with("drr", "quantum = \"0 wire bytes\"");
    refused_at(&of_flows, "\"0 wire bytes\"", &format!("access.up.queue.{quantum}"));
    let of_a_class = with("drr", "classes = [{}, { quantum = \"0 wire bytes\" }]");
    refused_at(&of_a_class, "\"0 wire bytes\"", &format!("access.up.queue.classes.1.{quantum}"));
    let both = with("drr", "quantum = \"1500 wire bytes\", classes = [{}]");
    refused_at(&both, "\"1500 wire bytes\"", "both quantum and classes, which have their own");
    let weight = with("drr", "classes = [{ weight = 2 }]");
    refused_at(&weight, "weight", "unknown key \"weight\" in [[access.up.queue.classes]] 0");
    for kind in ["wfq", "wf2q-plus"] {
        let nothing = with(kind, "classes = [{}, { weight = 0 }]");
        refused_at(&nothing, "0 }", "access.up.queue.classes.1.weight: 0 is below 1");
        let too_much = with(kind, "classes = [{ weight = 4294967296 }]");
        refused_at(&too_much, "4294967296", "access.up.queue.classes.0.weight: 4294967296 is above 4294967295");
        let quantum = with(kind, "quantum = \"1500 wire bytes\"");
        refused_at(&quantum, "quantum", "unknown key \"quantum\" in [access.up.queue]");
    }
}

/// The mistakes that would quietly cost what a tree of classes is there for, with all that is said of
/// each: file, line, key, and what would come of it.
#[test]
fn a_tree_of_classes_that_would_not_hold_is_told_whole() {
    let line = LINE.replace("up = { rate = \"512 kbit/s\" }", "up.rate = \"512 kbit/s\"");
    let told = |queue: &str, classes: &[&str], expected: &str| {
        let classes: String = classes.iter().map(|keys| format!("[[access.up.queue.classes]]\n{keys}\n")).collect();
        assert_eq!(said(&format!("{line}[access.up.queue]\n{queue}\n{classes}")), expected);
    };
    told(
        "kind = \"htb\"",
        &["name = \"a\"\nrate = \"300 kbit/s\"", "name = \"b\"\nrate = \"213 kbit/s\""],
        "error: x.toml:5:1: access.up.queue: the classes on the link are guaranteed 513 kbit/s together, and the \
         link has 512 kbit/s\n  \
         |\n5 | [access.up.queue]\n  | ^^^^^^^^^^^^^^^^^\n\
         hint: when all classes have packets, the guarantees would not hold; lower one of them",
    );
    told(
        "kind = \"htb\"",
        &["name = \"a\"\nrate = \"300 kbit/s\"", "name = \"b\"\nparent = \"a\"\nrate = \"301 kbit/s\""],
        "error: x.toml:9:8: access.up.queue.classes.a.rate: class \"a\": the classes below it are guaranteed 301 \
         kbit/s together, and it has 300 kbit/s\n  \
         |\n9 | rate = \"300 kbit/s\"\n  |        ^^^^^^^^^^^^\n\
         hint: when all classes have packets, the guarantees would not hold; lower one of them",
    );
    told(
        "kind = \"cbq\"\nrate = \"512 kbit/s\"",
        &["name = \"a\"\nshare = \"120 %\""],
        "error: x.toml:10:9: access.up.queue.classes.a.share: \"120 %\" is too large; a share of a whole is at most \
         100 %\n   \
         |\n10 | share = \"120 %\"\n   |         ^^^^^^^",
    );
    told(
        "kind = \"htb\"\ndefault = \"b\"",
        &["name = \"a\"\nrate = \"9 kbit/s\""],
        "error: x.toml:7:11: access.up.queue.default: there is no class \"b\"\n  \
         |\n7 | default = \"b\"\n  |           ^^^\nhint: what no class matches would have nowhere to go",
    );
    told(
        "kind = \"htb\"",
        &["name = \"a\"\nparent = \"b\"\nrate = \"9 kbit/s\"", "name = \"b\"\nparent = \"a\"\nrate = \"9 kbit/s\""],
        "error: x.toml:9:10: access.up.queue.classes.a.parent: class \"a\": its parents lead round in a circle, and \
         never to the link\n  \
         |\n9 | parent = \"b\"\n  |          ^^^\nhint: none of them would ever send; a class on the link has no \
         parent",
    );
    let small = "a burst of 1499 wire bytes is smaller than the largest packet, which takes 1500 wire bytes";
    for (key, caret) in [("burst", "        ^"), ("cburst", "         ^")] {
        let column = caret.len();
        told(
            "kind = \"htb\"",
            &[&format!("name = \"a\"\nrate = \"9 kbit/s\"\n{key} = \"1499 wire bytes\"")],
            &format!(
                "error: x.toml:10:{column}: access.up.queue.classes.a.{key}: class \"a\": {small}\n   \
                 |\n10 | {key} = \"1499 wire bytes\"\n   | {caret}^^^^^^^^^^^^^^^^\nhint: such a packet would never \
                 leave in time"
            ),
        );
    }
}

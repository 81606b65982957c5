//! Queues and classes that are refused, and the whole of what is said about them.

use crate::refused::{headlines, refused};
use crate::{LINE, parse, said};
use lastmile_scenario::Policy;

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
        &with("{ kind = \"htb\", default = \"a\", classes = [{ name = \"a\", rate = \"513 kbit/s\" }] }"),
        "error: x.toml:4:37: access.up.queue: the classes on the link are guaranteed 513 kbit/s together, and the \
         link has 512 kbit/s",
    );
    refused(
        &classes(
            "{ name = \"a\", rate = \"9 kbit/s\", limit = \"3 packets\" }, { name = \"b\", parent = \"a\", rate = \"1 \
             kbit/s\" }",
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

/// Shares of a class or a flow that are zero, or given twice, are errors.
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
    for (kind, keys) in [("cbq", "rate = \"512 kbit/s\", "), ("htb", ""), ("hfsc", "")] {
        let nobody = "access.up.queue.classes: 0 classes; there must be from 1 to 65000";
        refused_at(&with(kind, &format!("{keys}classes = []")), "[]", nobody);
        refused_at(&with(kind, keys), "{ kind", "missing key \"classes\" in [access.up.queue]");
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
        "kind = \"htb\"\ndefault = \"a\"",
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
                 depart in time"
            ),
        );
    }
}

/// The error stands at the queue below, which is at fault, and not at the line.
#[test]
fn a_regenerator_below_a_dropper() {
    refused(
        &LINE.replace(
            "\"2 Mbit/s\"",
            "\"2 Mbit/s\", queue = { kind = \"tbf\", rate = \"1 Mbit/s\", burst = \"1500 wire bytes\", \
             queue = { kind = \"sad\", queue = { kind = \"ack-regenerator\" } } }",
        ),
        "error: x.toml:3:131: access.down.queue.queue.queue: an ACK regenerator below a Smart ACK Dropper, which \
         would take what \
         it makes for what came; it belongs behind the line, or above the dropper",
    );
}

#[test]
fn a_burst_below_a_packet_is_told_at_its_key() {
    let with = |class: &str| {
        let queue =
            format!("queue = {{ kind = \"htb\", classes = [{{ name = \"a\", rate = \"1 Mbit/s\", {class} }}] }}");
        LINE.replace("\"2 Mbit/s\"", &format!("\"2 Mbit/s\", {queue}"))
    };
    let small = "\"100 wire bytes\"";
    for (class, key) in [
        (format!("burst = {small}"), "burst"),
        (format!("cburst = {small}"), "cburst"),
        (format!("burst = {small}, cburst = {small}"), "burst"),
    ] {
        let found = headlines(&with(&class));
        let expected = format!(
            "access.down.queue.classes.a.{key}: class \"a\": a burst of 100 wire bytes is smaller than the largest \
             packet, which takes \
             1500 wire bytes"
        );
        assert!(found.len() == 1 && found[0].ends_with(&expected), "{found:?}");
    }
}

#[test]
fn policers_that_would_not_do_what_they_say() {
    let with =
        |queue: &str| LINE.replace("\"2 Mbit/s\"", &format!("\"2 Mbit/s\", queue = {{ kind = \"policer\", {queue} }}"));
    let at = |column: usize, rest: &str| format!("error: x.toml:3:{column}: access.down.queue{rest}");
    refused(&with("exceed = \"drop\""), "error: x.toml:3:37: missing key \"meter\" in [access.down.queue]");
    refused(
        &with("meter = { kind = \"car\", rate = \"1 Mbit/s\", burst = \"1499 wire bytes\" }"),
        &at(
            108,
            ".meter.burst: a burst of 1499 wire bytes never lets the largest packet conform, which takes 1500 wire \
             bytes",
        ),
    );
    refused(
        &with(
            "meter = { kind = \"trtcm\", rate = \"2 Mbit/s\", burst = \"1500 wire bytes\", peak = \"1 Mbit/s\", \
             peak_burst = \"1500 wire bytes\" }",
        ),
        &at(136, ".meter.peak: a peak rate of 1 Mbit/s is below the committed rate of 2 Mbit/s (RFC 2698)"),
    );
    refused(
        &with(
            "meter = { kind = \"srtcm\", rate = \"2 Mbit/s\", burst = \"0 wire bytes\", excess_burst = \"0 wire \
             bytes\" }",
        ),
        &at(
            110,
            ".meter.burst: a committed and an excess burst of zero: at least one of them must be larger (RFC 2697)",
        ),
    );
    refused(
        &with("meter = { kind = \"gcra\", rate = \"2 Mbit/s\", tolerance = \"1 ms\" }"),
        &at(74, ".meter.kind: a meter of cells, but this line sends no cells"),
    );
    let bucket = "meter = { kind = \"token-bucket\", rate = \"1 Mbit/s\", burst = \"1500 wire bytes\" }";
    refused(
        &with(&format!("{bucket}, exceed = \"set-dscp-transmit\"")),
        &at(147, ".exceed: which code point is to be set?"),
    );
    refused(
        &with(&format!("{bucket}, exceed_dscp = 12")),
        "error: x.toml:3:152: exceed_dscp without an action that sets it",
    );
    refused(
        &with(&format!("{bucket}, exceed = \"set-dscp-transmit\", exceed_dscp = 64")),
        &at(182, ".exceed_dscp: 64 is above 63"),
    );
    refused(
        &with(&format!("{bucket}, rules = [{{ {bucket} }}]")),
        "error: x.toml:3:65: both meter and rules, which have their own",
    );
    refused(&with("rules = []"), &at(65, ".rules: 0 rules; there must be from 1 to 64"));
}

#[test]
fn a_cake_that_would_hold_nothing() {
    let with =
        |keys: &str| LINE.replace("\"2 Mbit/s\"", &format!("\"2 Mbit/s\", queue = {{ kind = \"cake\", {keys} }}"));
    refused(
        &with("memory = \"1499 B\""),
        "error: x.toml:3:63: access.down.queue.memory: a memory of 1499 bytes does not hold the largest packet, \
         which has 1500 bytes",
    );
    refused(&with("rtt = \"0 s\""), "error: x.toml:3:60: access.down.queue.rtt: 0 s is below 1 us");
    refused(
        &with("encapsulation = \"carrier-pigeon\""),
        "error: x.toml:3:70: unknown encapsulation \"carrier-pigeon\"",
    );
}

#[test]
fn thresholds_that_are_no_range() {
    let with =
        |keys: &str| LINE.replace("512 kbit/s\" }", &format!("512 kbit/s\", queue = {{ kind = \"red\", {keys} }} }}"));
    let range = |min, max| {
        format!(
            "error: x.toml:4:59: access.up.queue.max: a min of {min} and a max of {max}: both must be in the same \
             unit, \
             min at least 1 of it and below max, max at most 2^30"
        )
    };
    refused(&with("max = \"4 packets\""), &range("5 packets", "4 packets"));
    refused(&with("max = \"4000 B\""), &range("5 packets", "4000 bytes"));
    refused(
        &with("burst = \"9 packets\", weight = \"1 %\""),
        "error: x.toml:4:61: both a weight and a burst, from which the weight follows",
    );
}

/// What is no list has no number of entries.
#[test]
fn classes_that_are_no_list_are_one_error() {
    let headlines = |classes: &str| {
        headlines(&format!(
            "duration = \"1 s\"\n[access]\ndown = {{ rate = \"2 Mbit/s\" }}\n\
             up = {{ rate = \"512 kbit/s\", queue = {{ kind = \"drr\", classes = {classes} }} }}\n"
        ))
    };
    let wrong = headlines("5");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].contains("classes is a whole number, where a list of tables is expected"), "{wrong:?}");
    let wrong = headlines("[]");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].contains("0 classes; there are 1 to 16"), "{wrong:?}");
}

/// Limits in time need the rate, whose error is the only one.
#[test]
fn a_wrong_rate_is_reported_alone() {
    let errors =
        headlines(&LINE.replace("\"512 kbit/s\"", "\"12 MB/s\", queue = { kind = \"fifo\", limit = \"9 ms\" }"));
    assert_eq!(
        errors,
        ["error: x.toml:4:15: access.up.rate: \"12 MB/s\" counts bytes; a bit rate counts bits: write \"96 Mbit/s\""]
    );
}

/// Guarantees are those of the shaper or class ceiling above, whatever the line has: 512 kbit/s. HFSC passes an upper
/// limit by a guarantee.
#[test]
fn guarantees_below_a_shaper_are_within_its_rate() {
    let told = |queue: &str| {
        let text = LINE.replace("\"512 kbit/s\"", &format!("\"512 kbit/s\", queue = {queue}"));
        parse(&text).map_or_else(|report| report.findings()[0].headline(), |_| "taken".to_owned())
    };
    let tbf = |queue: &str| {
        format!("{{ kind = \"tbf\", rate = \"300 kbit/s\", burst = \"3000 wire bytes\", queue = {queue} }}")
    };
    let htb = |rate: u32| {
        format!("{{ kind = \"htb\", default = \"a\", classes = [{{ name = \"a\", rate = \"{rate} kbit/s\" }}] }}")
    };
    let hfsc = |rate: u32| format!("{{ kind = \"hfsc\", classes = [{{ name = \"a\", sc = \"{rate} kbit/s\" }}] }}");
    let cbq = |rate: u32| {
        format!("{{ kind = \"cbq\", rate = \"{rate} kbit/s\", classes = [{{ name = \"a\", share = \"10 %\" }}] }}")
    };
    let have = "error: x.toml:4:37: access.up.queue: ";
    let above = "300 kbit/s, the rate of the shaper or class above";
    let of_htb = format!("{have}the classes on the link are guaranteed 301 kbit/s together, and the link has {above}");
    let of_hfsc = format!("{have}the real-time curves ask for 301 kbit/s together at first, and the link has {above}");
    let of_cbq = format!("{have}shares of 301 kbit/s, and the line has {above}");
    let among = |head: &str, class: &str, leaf: &str, queue: &str| {
        let leaf = format!("{{ name = \"l\", parent = \"r\", {leaf}, queue = {queue} }}");
        format!("{{ kind = {head}, classes = [{{ name = \"r\", {class} }}, {leaf}] }}")
    };
    let borrows = "rate = \"100 kbit/s\", ceil = \"512 kbit/s\"";
    let (share, limited) = ("share = \"100 kbit/s\"", "ls = \"500 kbit/s\", ul = \"300 kbit/s\"");
    for (queue, expected) in [(htb(301), &of_htb), (hfsc(301), &of_hfsc), (cbq(301), &of_cbq)] {
        let fits = queue.replace("301 kbit/s", "300 kbit/s");
        let places: [&dyn Fn(&str) -> String; 4] = [
            &tbf,
            &|queue| among("\"htb\", default = \"l\"", "rate = \"300 kbit/s\"", borrows, queue),
            &|queue| among("\"hfsc\"", limited, "ls = \"100 kbit/s\"", queue),
            &|queue| among("\"cbq\", rate = \"512 kbit/s\"", "share = \"300 kbit/s\", borrow = false", share, queue),
        ];
        for place in places {
            assert_eq!((&told(&place(&queue)), &*told(&place(&fits))), (expected, "taken"), "{}", place(&queue));
        }
        assert_eq!(told(&queue), "taken");
    }
    let passed = "{ kind = \"hfsc\", classes = [{ name = \"r\", rt = \"400 kbit/s\", ls = \"400 kbit/s\", \
                  ul = \"300 kbit/s\", queue = HTB }] }";
    assert_eq!(told(&passed.replace("HTB", &htb(400))), "taken");
    assert!(told(&passed.replace("HTB", &htb(401))).contains("the link has 400 kbit/s, the rate of"));
    // Within a class of a policy.
    let policy = |rate: u32| {
        let class = format!("name = \"default\"\nrate = \"30 %\"\nceil = \"300 kbit/s\"\nqueue = {}", htb(rate));
        let text = format!("[line]\nup = \"512 kbit/s\"\ndown = \"2 Mbit/s\"\n[[class]]\n{class}\n");
        Policy::parse("p.toml", &text, None).map_or_else(|report| report.to_string(), |_| "taken".to_owned())
    };
    assert_eq!(policy(300), "taken");
    assert!(policy(301).contains("together, and the link has 300 kbit/s, the rate of"), "{}", policy(301));
}

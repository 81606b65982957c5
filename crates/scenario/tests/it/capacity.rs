//! The rate by which the capacity of a queue in time counts.

use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, fifo};
use lastmile_scenario::policy::Policy;
use lastmile_units::{BitRate, WireBytes};

use crate::{LINE, parse};

/// The queue of the upstream of 512 kbit/s.
fn up(queue: &str) -> Spec {
    let text = LINE.replace("\"512 kbit/s\"", &format!("\"512 kbit/s\", queue = {queue}"));
    let scenario = parse(&text).unwrap_or_else(|report| panic!("{queue}: {report}"));
    scenario.access().expect("an access line").up.queue.clone()
}

/// The last queue of a tree.
fn last(queue: &Spec) -> &Spec {
    queue.below().last().map_or(queue, |below| last(below))
}

/// The rate by which the capacity of the last queue counts, in kbit/s: it is 500 ms.
fn kbit(queue: &Spec) -> u64 {
    match last(queue) {
        Spec::Fifo(fifo::Config { limit: Limit::Wire(bytes), .. }) => bytes.as_u64() * 8 / 500,
        other => panic!("{other:?}"),
    }
}

/// Behind a shaper the slower of it and what follows empties a queue, and in a class the least ceiling from it up to
/// the link. Guarantees of HFSC pass upper limits. A class of CBQ that borrows has the whole line.
#[test]
fn a_capacity_in_time_counts_by_the_slowest_rate_on_the_way() {
    let tbf = |rate: u32, below: &str| {
        format!("{{ kind = \"tbf\", rate = \"{rate} kbit/s\", burst = \"3000 wire bytes\", {below} }}")
    };
    let tree = |kind: &str, classes: &str| format!("{{ kind = \"{kind}\", classes = [{classes}] }}");
    let (limit, below) = ("limit = \"500 ms\"", "parent = \"r\", limit = \"500 ms\"");
    let cbq = |classes: &str| format!("{{ kind = \"cbq\", rate = \"400 kbit/s\", classes = [{classes}] }}");
    for (queue, expected) in [
        (tbf(900, limit), 512),
        (tbf(256, limit), 256),
        (tbf(128, &format!("queue = {}", tbf(400, limit))), 128),
        (tbf(400, &format!("queue = {}", tbf(128, limit))), 128),
        (
            tree(
                "htb",
                &format!(
                    "{{ name = \"r\", rate = \"256 kbit/s\" }}, \
                     {{ name = \"a\", rate = \"64 kbit/s\", ceil = \"512 kbit/s\", {below} }}"
                ),
            ),
            256,
        ),
        (tree("htb", &format!("{{ name = \"a\", rate = \"64 kbit/s\", ceil = \"512 kbit/s\", {limit} }}")), 64),
        (
            tree(
                "hfsc",
                &format!(
                    "{{ name = \"r\", ls = \"256 kbit/s\", ul = \"256 kbit/s\" }}, \
                     {{ name = \"a\", ls = \"64 kbit/s\", {below} }}"
                ),
            ),
            256,
        ),
        (
            tree(
                "hfsc",
                &format!(
                    "{{ name = \"r\", ls = \"256 kbit/s\", ul = \"256 kbit/s\" }}, \
                     {{ name = \"a\", rt = \"384 kbit/s\", {below} }}"
                ),
            ),
            384,
        ),
        // Nothing serves a leaf without a share but its guarantee.
        (tree("hfsc", &format!("{{ name = \"a\", rt = \"128 kbit/s\", {limit} }}")), 128),
        (tree("hfsc", &format!("{{ name = \"a\", rt = \"128 kbit/s\", ls = \"1 kbit/s\", {limit} }}")), 512),
        (cbq(&format!("{{ name = \"a\", share = \"20 %\", borrow = false, {limit} }}")), 80),
        (cbq(&format!("{{ name = \"a\", share = \"20 %\", {limit} }}")), 512),
        (
            cbq(&format!(
                "{{ name = \"r\", share = \"50 %\", borrow = false }}, {{ name = \"a\", share = \"20 %\", {below} }}"
            )),
            200,
        ),
    ] {
        assert_eq!(kbit(&up(&queue)), expected, "{queue}");
    }
}

/// A class of HTB without a parent has nobody to borrow from, as in Linux.
#[test]
fn a_ceiling_without_a_parent_is_told() {
    let warnings = |ceil: &str| {
        let queue = format!(
            "{{ kind = \"htb\", default = \"a\", classes = [{{ name = \"a\", rate = \"64 kbit/s\"{ceil} }}] }}"
        );
        let text = LINE.replace("\"512 kbit/s\"", &format!("\"512 kbit/s\", queue = {queue}"));
        parse(&text).unwrap_or_else(|report| panic!("{report}")).warnings().to_string()
    };
    let told = warnings(", ceil = \"512 kbit/s\"");
    let expected = "access.up.queue.classes.a.ceil: no effect in a class without a parent, which has nobody to borrow \
                    from and sends at its rate of 64 kbit/s";
    assert!(told.contains(expected), "{told}");
    assert_eq!((warnings(", ceil = \"64 kbit/s\""), warnings("")), (String::new(), String::new()));
}

/// tc-htb(8): the burst counts at the speed of the ceiling. By default the burst of a ceiling is a packet.
#[test]
fn a_burst_without_an_effect_is_told() {
    let warnings = |class: &str| {
        let classes = format!(
            "{{ name = \"r\", rate = \"512 kbit/s\" }}, \
             {{ name = \"a\", parent = \"r\", rate = \"64 kbit/s\", burst = \"5000 wire bytes\"{class} }}"
        );
        let queue = format!("{{ kind = \"htb\", default = \"a\", classes = [{classes}] }}");
        let text = LINE.replace("\"512 kbit/s\"", &format!("\"512 kbit/s\", queue = {queue}"));
        parse(&text).unwrap_or_else(|report| panic!("{report}")).warnings().to_string()
    };
    let told = warnings("");
    let expected = "access.up.queue.classes.a.burst: no effect beyond cburst, 1500 wire bytes, since the ceil of the \
                    class is its rate";
    assert!(told.contains(expected), "{told}");
    assert!(warnings(", ceil = \"64 kbit/s\", cburst = \"4999 wire bytes\"").contains("4999 wire bytes"));
    assert_eq!(warnings(", cburst = \"5000 wire bytes\"") + &warnings(", ceil = \"65 kbit/s\""), "");
}

/// A capacity below a full packet has a warning, and one of a full packet none: 1500 bytes have 32 cells in AAL5.
#[test]
fn a_queue_that_holds_no_full_packet_is_told() {
    let warnings = |line: &str, queue: &str| {
        let text = LINE.replace("\"512 kbit/s\"", &format!("\"512 kbit/s\"{line}, queue = {queue}"));
        parse(&text).unwrap_or_else(|report| panic!("{report}")).warnings().to_string()
    };
    let cells = ", encapsulation = \"aal5\"";
    for (line, queue, key, least, less) in [
        ("", "{ limit = \"N B\" }", "limit: with 1499 bytes", 1500, 1499),
        ("", "{ kind = \"codel\", limit = \"N wire bytes\" }", "limit: with 1499 wire bytes", 1500, 1499),
        (cells, "{ limit = \"N cells\" }", "limit: with 31 cells", 32, 31),
        ("", "{ kind = \"fq-codel\", memory = \"N B\" }", "memory: with 1 byte", 1500, 1),
        ("", "{ kind = \"fq-pie\", memory = \"N B\" }", "memory: with 1499 bytes", 1500, 1499),
    ] {
        let told = |size: u32| warnings(line, &queue.replace('N', &size.to_string()));
        let expected = format!("access.up.queue.{key} no packet of 1500 bytes passes");
        assert!(told(less).contains(&expected), "{}", told(less));
        assert_eq!(told(least), "", "{queue}");
    }
}

/// The service flow of DOCSIS-PIE has the rate of the shaper above it, and 100 ms of it.
#[test]
fn a_service_flow_has_the_slowest_rate_on_the_way() {
    let inner =
        "{ kind = \"tbf\", rate = \"400 kbit/s\", burst = \"3000 wire bytes\", queue = { kind = \"docsis-pie\" } }";
    let queue =
        up(&format!("{{ kind = \"tbf\", rate = \"256 kbit/s\", burst = \"3000 wire bytes\", queue = {inner} }}"));
    let Spec::DocsisPie(config) = last(&queue) else { panic!("{queue:?}") };
    assert_eq!(config.sustained, BitRate::from_kbit_per_s(256));
    assert_eq!(config.limit, Limit::Wire(WireBytes::new(3200)));
}

/// The ceiling of a class of a policy holds for those below it, where the scheduler has ceilings. CBQ bounds a class at
/// its rate.
#[test]
fn a_class_of_a_policy_counts_by_the_ceilings_above_it() {
    let counted = |kind: &str, ceil: u32| {
        let policy = format!(
            "[line]\nup = \"512 kbit/s\"\ndown = \"2 Mbit/s\"\n[scheduler]\nkind = \"{kind}\"\n\
             [[class]]\nname = \"home\"\nrate = \"50 %\"\nceil = \"{ceil} %\"\n\
             [[class]]\nname = \"guest\"\nparent = \"home\"\nrate = \"10 %\"\nlimit = \"500 ms\"\n"
        );
        let policy = Policy::parse("p.toml", &policy, None).unwrap_or_else(|report| panic!("{report}"));
        (kbit(&policy.up), policy.classes[0].ceil.as_bps() / 1000)
    };
    assert_eq!((counted("htb", 50), counted("hfsc", 75), counted("cbq", 50)), ((256, 256), (384, 384), (256, 256)));
    assert_eq!(counted("cbq", 75), (512, 512));
    let flat = |kind: &str| {
        let policy = format!(
            "[line]\nup = \"512 kbit/s\"\ndown = \"2 Mbit/s\"\n[scheduler]\nkind = \"{kind}\"\n\
             [[class]]\nname = \"a\"\nrate = \"25 %\"\nceil = \"50 %\"\nlimit = \"500 ms\"\n"
        );
        kbit(&Policy::parse("p.toml", &policy, None).unwrap().up)
    };
    assert_eq!((flat("htb"), flat("custom"), flat("priority")), (256, 512, 512));
}

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{Meta, Protocol};

use super::*;

fn class(name: &str, parent: &str, leaf: bool) -> Class<()> {
    let parent = (!parent.is_empty()).then(|| parent.into());
    Class { name: name.into(), parent, share: (), queue: leaf.then(|| Spec::fifo(10)) }
}

fn tree(classes: Vec<Class<()>>) -> Tree<()> {
    Tree { classes, rules: vec![], default: None }
}

fn family() -> Tree<()> {
    tree(vec![class("child", "all", true), class("all", "", false), class("other", "all", true)])
}

fn rule(matches: Match, class: &str) -> Rule {
    Rule { matches, class: class.into() }
}

#[test]
fn classes_may_be_listed_in_any_order() {
    let shape = family().shape().unwrap();
    assert_eq!((shape.order.as_slice(), shape.positions().as_slice()), ([1, 0, 2].as_slice(), [1, 0, 2].as_slice()));
    let (positions, queues) = shape.leaves(vec!["of child", "of other"]);
    assert_eq!((positions, queues), (vec![Some(1), None, Some(2)], vec!["of child", "of other"]));
}

#[test]
fn an_invalid_tree_is_refused() {
    let refused = |tree: Tree<()>| tree.shape().unwrap_err().to_string();
    let ring = tree(vec![class("a", "b", false), class("b", "c", false), class("c", "a", false), class("d", "", true)]);
    assert_eq!(refused(ring), "class \"a\": its parents lead round in a circle, and never to the link");
    let itself = tree(vec![class("a", "a", true), class("b", "", true)]);
    assert_eq!(refused(itself), "class \"a\": its parents lead round in a circle, and never to the link");
    assert_eq!(refused(tree(vec![class("a", "b", true)])), "class \"a\": its parent \"b\" is no class");
    assert_eq!(refused(tree(vec![])), "0 classes; there must be from 1 to 65000");
    let many = (0..=MAX_CLASSES).map(|number| class(&number.to_string(), "", true));
    assert_eq!(refused(tree(many.collect())), "65001 classes; there must be from 1 to 65000");
    let twice = tree(vec![class("a", "", true), class("a", "", true)]);
    assert_eq!(refused(twice), "class \"a\": there are two classes of this name");
    assert_eq!(refused(tree(vec![class("", "", true)])), "class \"\": a class needs a name");
    assert_eq!(refused(tree(vec![class("a", "", false)])), "class \"a\": it has neither a queue nor classes below it");
    let queue = tree(vec![class("a", "", true), class("b", "a", true)]);
    assert_eq!(refused(queue), "class \"a\": it has classes below it, so its own queue would take no packet");
    let deep = (0..=MAX_DEPTH)
        .map(|n| class(&n.to_string(), &n.checked_sub(1).map_or(String::new(), |n| n.to_string()), n == MAX_DEPTH));
    assert_eq!(refused(tree(deep.collect())), "class \"64\": more than 64 classes above one another");
}

#[test]
fn rules_and_defaults_name_leaves() {
    let refused = |rules, default: Option<&str>| {
        let tree = Tree { rules, default: default.map(Into::into), ..family() };
        tree.shape().unwrap_err().to_string()
    };
    assert_eq!(refused(vec![rule(Match::Any, "nobody")], None), "there is no class \"nobody\"");
    assert_eq!(
        refused(vec![], Some("all")),
        "class \"all\" has classes below it, so it takes no packets itself; name one of those"
    );
}

/// A rule for a flow is found directly, but an earlier rule still has precedence.
#[test]
fn the_first_rule_that_matches_decides() {
    let flow = |number| Match::Flow(FlowId::new(number));
    let rules = vec![
        rule(flow(1), "child"),
        rule(Match::Protocol(Protocol::Udp), "other"),
        rule(flow(2), "child"),
        rule(flow(1), "other"),
        rule(Match::AtMostBytes(100), "other"),
    ];
    let tree = Tree { rules, ..family() };
    let environment = Environment::new(LinkLayer::new(0, Framing::None).unwrap());
    let mut rules = tree.rules(&tree.shape().unwrap(), &environment);
    let mut class = |flow, protocol, ip_len| {
        let packet = Meta { flow: FlowId::new(flow), protocol, ip_len, ..Meta::default() };
        rules.classify(Instant::ZERO, &packet)
    };
    let (child, other) = (Some(0), Some(2));
    assert_eq!(class(1, Protocol::Udp, 1500), child);
    assert_eq!(class(2, Protocol::Udp, 1500), other);
    assert_eq!(class(2, Protocol::Tcp, 40), child);
    assert_eq!(class(3, Protocol::Tcp, 40), other);
    assert_eq!(class(3, Protocol::Tcp, 1500), None);
}

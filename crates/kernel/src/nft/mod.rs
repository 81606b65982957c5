//! A list of rules as a table of nft(8), loaded by one transaction: the first rule that matches
//! sets the class of the packet.
//!
//! A rule sets the packet's priority to the handle of the class, where HTB and prio look first
//! (`htb_classify` and `prio_classify` of Linux). So tc needs no filter. Upstream the table stands
//! at `postrouting`, before the address is translated: rules see the addresses of the inside, and
//! packets that are bridged do not pass. Downstream it stands at the ingress of the device, before
//! connections are known, and sends each packet on through the intermediate device (`fwd`). The
//! egress of that device would not do: packets that tc has redirected do not pass there.
//!
//! A rule of nft is a conjunction. `not`, and all but the last `one_of` of a rule, therefore take a
//! bit of the packet's mark each: a line before the rule sets the bit. The upper eight bits of the
//! mark are used.
//!
//! Published: nft(8); tc-htb(8) on `skb->priority`. Differs from the datapath:
//! [`lastmile_packet::parse`] reads TCP options and IPv6 extension headers, where nft sees an ACK
//! with an unknown option as pure, and one with options of IPv4 or extension headers of IPv6 as not
//! pure. nft reads on behind a routing header of IPv6 with segments left (`ipv6_find_hdr`), where the
//! parser stops; at an authentication header both stop. At `postrouting` a datagram is whole that the
//! machine fragments later, or that connection tracking has reassembled (`nf_defrag`). New connections
//! count for a host in each family of addresses.
//! Cost: the lines up to the first rule that matches.

mod conjunction;
mod formula;
mod lines;
mod mark;
mod obstacle;
#[cfg(test)]
mod tests;

use lastmile_queueing::Match;

use crate::command::{Command, DEVICE, Expected, IFB, Object, TABLE, Value};
pub(crate) use formula::Memory;
use formula::Terms;
use lines::Lines;
use mark::{OTHER_BITS, PURE_ACK};
pub(crate) use obstacle::obstacle;

/// The handle of a class; the minor number 0 is the queue itself, which HTB passes by unshaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handle {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl core::fmt::Display for Handle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:x}:{:x}", self.major, self.minor)
    }
}

/// A condition, and the class of packets that meet it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) matches: &'a Match,
    pub(crate) class: Handle,
}

/// The command that loads the table for these rules; packets that none matches are of the class
/// `otherwise`. For [`IFB`] the table also sends every packet that comes in through that device.
///
/// Rules with an [`obstacle`] never match.
pub(crate) fn command(device: &'static str, rules: &[Rule<'_>], otherwise: Handle, memory: Memory) -> Command {
    // The end of a packet's way through the table.
    let onward = if device == IFB { format!("fwd to \"{IFB}\"") } else { "accept".to_owned() };
    let mut terms = Terms::new(memory);
    let whole = chain(rules, &mut terms, &onward);
    let fragments = chain(rules, &mut terms.of_fragments(), &onward);
    let classes = |chain: &[(String, Option<Handle>)]| chain.iter().filter_map(|(_, class)| *class).collect::<Vec<_>>();
    let handles: Vec<String> =
        std::iter::once(otherwise).chain(classes(&whole)).map(|handle| handle.to_string()).collect();

    let mut text = Text::default();
    let family = if device == IFB { "netdev" } else { "inet" };
    text.open(&format!("table {family} {TABLE}"));
    terms.declarations().iter().for_each(|line| text.line(line));
    if terms.asks_for_pure_acks() {
        text.open("chain pure-ack");
        pure_ack().iter().for_each(|line| text.line(line));
        text.close();
    }
    text.open("chain fragments");
    fragments.iter().for_each(|(line, _)| text.line(line));
    text.line(&onward);
    text.close();
    text.open("chain classes");
    if device == IFB {
        text.line(&format!("type filter hook ingress device \"{DEVICE}\" priority 0;"));
    } else {
        text.line("type filter hook postrouting priority mangle;");
        text.line(&format!("oifname != \"{DEVICE}\" accept"));
    }
    text.line(&format!("meta priority set {otherwise}"));
    text.line("ip frag-off & 0x3fff != 0 goto fragments");
    text.line("exthdr frag exists goto fragments");
    text.line(&format!("meta mark set meta mark & {OTHER_BITS:#010x}"));
    if terms.asks_for_pure_acks() {
        text.line("tcp flags & (fin | syn | rst | psh | ack | urg) == ack jump pure-ack");
    }
    whole.iter().for_each(|(line, _)| text.line(line));
    text.line(&onward);
    text.close();
    text.close();

    let values =
        vec![("kind", Value::Text(format!("{} classes", handles.len()))), ("classes", Value::Text(handles.join(" ")))];
    let expected = Expected { object: Object::Rules { device }, name: "rules".to_owned(), values };
    Command::new("nft -f -").reading(text.text).leaving(expected)
}

/// True if some rule asks for connections or hosts, and nft can evaluate it.
pub(crate) fn asks_for_memory(rules: &[Rule<'_>]) -> bool {
    rules
        .iter()
        .any(|rule| obstacle(rule.matches, Memory::Kept).is_none() && obstacle(rule.matches, Memory::None).is_some())
}

/// Lines for the rules; a line that sets a class comes with it.
fn chain(rules: &[Rule<'_>], terms: &mut Terms, onward: &str) -> Vec<(String, Option<Handle>)> {
    let mut chain = Vec::new();
    for rule in rules {
        let formula = terms.formula(rule.matches);
        // A rule with too many parts has an obstacle.
        let Some(Lines { before, last }) = Lines::of(&formula) else { continue };
        chain.extend(before.into_iter().map(|line| (line, None)));
        let class = rule.class;
        let sets = format!("meta priority set {class} {onward}");
        chain.extend(last.into_iter().map(|line| (line.then(&sets), Some(class))));
    }
    chain
}

/// A packet whose only flag but those of ECN is ACK has no payload if its length is that of its headers: 20 to 60
/// bytes of TCP behind 20 bytes of IPv4, or behind the 40 bytes that the length of IPv6 leaves out.
fn pure_ack() -> Vec<String> {
    let set = format!("meta mark set meta mark | {PURE_ACK:#010x} return");
    let line = |words: u32| {
        let tcp = 4 * words;
        let v4 = format!("tcp doff {words} ip hdrlength 5 ip length {} {set}", 20 + tcp);
        [v4, format!("tcp doff {words} ip6 nexthdr tcp ip6 length {tcp} {set}")]
    };
    (5..=15).flat_map(line).collect()
}

/// Text for `nft -f`, indented.
#[derive(Default)]
struct Text {
    text: String,
    depth: usize,
}

impl Text {
    fn open(&mut self, what: &str) {
        self.line(&format!("{what} {{"));
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }
}

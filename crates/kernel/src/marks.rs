//! Stateful conditions, by nft(8): a rule of nft sets a bit of the packet's mark if such a
//! condition holds, and the classifier tests the bit.
//!
//! | condition | nft |
//! | --- | --- |
//! | bytes of a connection | `ct bytes` of the packet's direction |
//! | new connections of a host | a set with a `limit` for each source address |
//! | FTP data | `ct helper`, which the kernel's `nf_conntrack_ftp` sets for announced connections |
//!
//! The rules clear and use the upper eight bits of the mark; the others are unchanged. All rules
//! are in a table of their own, [`TABLE`], at `postrouting`, where a packet still has its inside
//! address. Bridged packets do not pass it.

use lastmile_queueing::Match;
use lastmile_queueing::classify::Bound;
use lastmile_queueing::classify::rules::Rule;
use lastmile_units::Duration;

use crate::command::{Command, DEVICE, Step};
use crate::words;

/// The nft table of the rules.
pub const TABLE: &str = "inet lastmile";
const FIRST_BIT: u32 = 24;
const OTHER_BITS: u32 = 0x00ff_ffff;

/// The conditions, by their bit of the mark.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    conditions: Vec<Match>,
}

impl Marks {
    /// Bits for the first eight conditions of the rules that nft supports.
    pub(crate) fn of_rules(rules: &[Rule]) -> Self {
        let mut marks = Self::default();
        for rule in rules {
            marks.collect(&rule.matches);
        }
        marks
    }

    fn collect(&mut self, condition: &Match) {
        match condition {
            Match::Not(inner) => self.collect(inner),
            Match::All(inner) | Match::OneOf(inner) => inner.iter().for_each(|one| self.collect(one)),
            one if is_told(one)
                && !self.conditions.contains(one)
                && FIRST_BIT as usize + self.conditions.len() < 32 =>
            {
                self.conditions.push(one.clone());
            }
            _ => {}
        }
    }

    /// The bit of this condition.
    pub(crate) fn of(&self, condition: &Match) -> Option<u32> {
        let place = self.conditions.iter().position(|known| known == condition)?;
        Some(1 << (FIRST_BIT + u32::try_from(place).ok()?))
    }

    /// The steps that set the bits.
    pub(crate) fn steps(&self) -> Vec<Step> {
        if self.conditions.is_empty() {
            return Vec::new();
        }
        let chain = hook("outgoing", "postrouting", "mangle");
        let clear = Command::new(&format!("nft add rule {TABLE} outgoing oifname {DEVICE} meta mark set"))
            .words(&format!("meta mark and {OTHER_BITS:#010x}"));
        let mut then = vec![Step::run("", chain), Step::run("the upper eight bits of the mark are used", clear)];
        then.extend(self.conditions.iter().zip(FIRST_BIT..).map(|(condition, bit)| step(condition, bit)));
        let first = Command::new(&format!("nft add table {TABLE}"));
        let lacking = "nft(8), or nf_tables: stateful conditions never hold".to_owned();
        let about = vec!["marks for stateful conditions".to_owned()];
        vec![Step::Choice { about, first, then, lacking, otherwise: vec![] }]
    }
}

/// True for a condition that nft supports.
fn is_told(condition: &Match) -> bool {
    match condition {
        Match::ConnectionBytes(..) | Match::FtpData => true,
        Match::NewConnections { count, per, .. } => rate(*count, *per).is_some(),
        _ => false,
    }
}

/// The rate in a unit of time that `limit` supports.
fn rate(count: u32, per: Duration) -> Option<(u32, &'static str)> {
    let units = [(1, "second"), (60, "minute"), (3600, "hour")];
    units.into_iter().find_map(|(seconds, unit)| {
        let many = Duration::from_s(seconds) / per;
        let whole = many > 0 && per * many == Duration::from_s(seconds);
        Some((count.checked_mul(u32::try_from(many).ok().filter(|_| whole)?)?, unit))
    })
}

fn hook(name: &str, hook: &str, priority: &str) -> Command {
    Command::new(&format!("nft add chain {TABLE} {name} {{ type filter hook {hook} priority {priority} ; }}"))
}

/// A rule that sets the bit if `condition` holds.
fn rule(condition: &str, bit: u32) -> Command {
    let set = format!("meta mark set meta mark or {:#010x}", 1_u32 << bit);
    Command::new(&format!("nft add rule {TABLE} outgoing oifname {DEVICE} {condition} {set}"))
}

fn step(condition: &Match, bit: u32) -> Step {
    let about = vec![format!("bit {bit}: {}", words::condition(condition))];
    let lacking = "this condition: it never holds";
    let choice = |first: Command, then: Vec<Command>| {
        let then = then.into_iter().map(|command| Step::run("", command)).collect();
        Step::Choice { about: about.clone(), first, then, lacking: lacking.to_owned(), otherwise: vec![] }
    };
    match condition {
        Match::ConnectionBytes(bound, bytes) => {
            let sign = if *bound == Bound::Below { "<" } else { ">" };
            let of = |direction: &str| {
                let counted = format!("ct {direction} bytes {sign} {}", bytes.as_u64());
                rule(&format!("meta l4proto {{ tcp, udp }} ct direction {direction} {counted}"), bit)
            };
            choice(of("original"), vec![of("reply")])
        }
        Match::NewConnections { bound, count, per } => {
            let (count, unit) = rate(*count, *per).unwrap_or((*count, "second"));
            let over = if *bound == Bound::Below { "" } else { "over " };
            let set = |family: &str| {
                let kind = if family == "ip" { "ipv4_addr" } else { "ipv6_addr" };
                let options = format!("type {kind} ; size 4096 ; flags dynamic,timeout ; timeout 2h ;");
                Command::new(&format!("nft add set {TABLE} hosts{bit}{family} {{ {options} }}"))
            };
            let limit = |family: &str| {
                let limit = format!("{family} saddr limit rate {over}{count}/{unit} burst {count} packets");
                let opens = "tcp flags & ( syn | ack ) == syn";
                rule(&format!("{opens} update @hosts{bit}{family} {{ {limit} }}"), bit)
            };
            choice(set("ip"), vec![limit("ip"), set("ip6"), limit("ip6")])
        }
        // FTP data; no other condition has a mark.
        _ => {
            let helper =
                Command::new(&format!("nft add ct helper {TABLE} ftp-control {{ type \"ftp\" protocol tcp ; }}"));
            let ask = |chain: &str| {
                Command::new(&format!("nft add rule {TABLE} {chain} tcp dport 21 ct helper set \"ftp-control\""))
            };
            let (forwarded, own) = (hook("control", "prerouting", "filter"), hook("own-control", "output", "filter"));
            let data = rule("ct helper \"ftp\"", bit);
            choice(helper, vec![forwarded, ask("control"), own, ask("own-control"), data])
        }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::ByteCount;

    use super::*;

    #[test]
    fn limits_are_counted_in_the_units_of_nft() {
        assert_eq!(rate(5, Duration::from_s(1)), Some((5, "second")));
        assert_eq!(rate(5, Duration::from_s(10)), Some((30, "minute")));
        assert_eq!(rate(5, Duration::from_ms(250)), Some((20, "second")));
        assert_eq!(rate(7, Duration::from_s(3600)), Some((7, "hour")));
        assert_eq!(rate(7, Duration::from_s(7)), None);
    }

    #[test]
    fn equal_conditions_share_a_bit_and_inner_ones_have_theirs() {
        let bytes = |count| Match::ConnectionBytes(Bound::Below, ByteCount::new(count));
        let rule = |matches| Rule { matches, class: 0, last: false };
        let rules = [
            rule(Match::All(vec![Match::PureAck, bytes(1)])),
            rule(Match::Not(Box::new(Match::FtpData))),
            rule(bytes(1)),
        ];
        let marks = Marks::of_rules(&rules);
        assert_eq!([marks.of(&bytes(1)), marks.of(&Match::FtpData)], [Some(1 << 24), Some(1 << 25)]);
        assert_eq!([marks.of(&bytes(2)), marks.of(&Match::PureAck)], [None, None]);
    }
}

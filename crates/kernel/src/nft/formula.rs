//! Conditions of a policy as formulas over expressions of nft(8).

use std::net::IpAddr;
use std::ops::RangeInclusive;

use lastmile_packet::{Protocol, TcpFlags};
use lastmile_queueing::classify::{Bound, Prefix};
use lastmile_queueing::{End, Match};
use lastmile_units::Duration;

use super::conjunction::{Conjunction, Family};
use super::mark::PURE_ACK;

/// State that a table can use in addition to the headers of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Connections and hosts.
    Kept,
    /// No state.
    None,
}

/// A condition in the words of nft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Formula {
    True,
    False,
    Plain(Conjunction),
    /// True if this bit of the mark is set, or if it is not set.
    Bit {
        bit: u32,
        set: bool,
    },
    All(Vec<Formula>),
    OneOf(Vec<Formula>),
    Not(Box<Formula>),
}

impl Formula {
    fn one_of(alternatives: impl IntoIterator<Item = Conjunction>) -> Self {
        any(alternatives.into_iter().map(Self::Plain).collect())
    }
}

/// An expression of each family.
fn of_each_family(text: impl Fn(Family) -> String) -> [Conjunction; 2] {
    Family::BOTH.map(|family| Conjunction::new(text(family)).of_family(family))
}

/// An expression about a header of TCP.
fn of_tcp(text: impl Into<String>) -> Conjunction {
    Conjunction::new(text).of_transport(TCP)
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

fn all(mut parts: Vec<Formula>) -> Formula {
    if parts.contains(&Formula::False) {
        return Formula::False;
    }
    parts.retain(|part| *part != Formula::True);
    match parts.len() {
        0 => Formula::True,
        1 => parts.remove(0),
        _ => Formula::All(parts),
    }
}

fn any(mut parts: Vec<Formula>) -> Formula {
    if parts.contains(&Formula::True) {
        return Formula::True;
    }
    parts.retain(|part| *part != Formula::False);
    match parts.len() {
        0 => Formula::False,
        1 => parts.remove(0),
        _ => Formula::OneOf(parts),
    }
}

fn not(part: Formula) -> Formula {
    match part {
        Formula::True => Formula::False,
        Formula::False => Formula::True,
        Formula::Bit { bit, set } => Formula::Bit { bit, set: !set },
        Formula::Not(inner) => *inner,
        other => Formula::Not(Box::new(other)),
    }
}

/// Makes formulas of conditions, and gathers what they need next to their lines.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    memory: Memory,
    /// The packets are fragments of IP, in which no header behind IP is read.
    fragments: bool,
    pure_acks: bool,
    ftp: bool,
    /// Sets of hosts, an IPv4 and an IPv6 one for each limit of new connections.
    hosts: usize,
}

impl Terms {
    pub(super) const fn new(memory: Memory) -> Self {
        Self { memory, fragments: false, pure_acks: false, ftp: false, hosts: 0 }
    }

    /// Terms for fragments of IP.
    pub(super) const fn of_fragments(&self) -> Self {
        Self { fragments: true, ..Self::new(self.memory) }
    }

    pub(super) const fn asks_for_pure_acks(&self) -> bool {
        self.pure_acks
    }

    /// Sets, helpers and chains that the formulas refer to.
    pub(super) fn declarations(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for number in 0..self.hosts {
            for (name, kind) in [("ip", "ipv4_addr"), ("ip6", "ipv6_addr")] {
                let options = format!("type {kind}; size 4096; flags dynamic,timeout; timeout 2h;");
                lines.push(format!("set hosts{number}-{name} {{ {options} }}"));
            }
        }
        if self.ftp {
            lines.push("ct helper ftp-control { type \"ftp\" protocol tcp; }".to_owned());
            for (chain, hook) in [("control", "prerouting"), ("own-control", "output")] {
                let ask = "tcp dport 21 ct helper set \"ftp-control\"";
                lines.push(format!("chain {chain} {{ type filter hook {hook} priority filter; {ask}; }}"));
            }
        }
        lines
    }

    pub(super) fn formula(&mut self, condition: &Match) -> Formula {
        match condition {
            Match::Not(inner) => not(self.formula(inner)),
            Match::All(inner) => {
                let mut inner: Vec<&Match> = inner.iter().collect();
                // A limit counts the connections that meet the other conditions.
                inner.sort_by_key(|one| matches!(one, Match::NewConnections { .. }));
                all(inner.into_iter().map(|one| self.formula(one)).collect())
            }
            Match::OneOf(inner) => match ports_of_one_end(inner) {
                Some((end, ports)) => self.ports(end, &ports),
                None => any(inner.iter().map(|one| self.formula(one)).collect()),
            },
            Match::Any => Formula::True,
            Match::ProtocolNumber(number) => Formula::Plain(of_number(*number)),
            Match::Dscp(dscp) => Formula::one_of(of_each_family(|family| format!("{} dscp {dscp}", family.name()))),
            Match::TrafficClass { mask: 0, .. } => Formula::True,
            Match::TrafficClass { value, mask } => {
                // The byte is the second of IPv4; in IPv6 four bits stand before it and four behind it.
                let test = |family: Family| {
                    let behind = if family == Family::V6 { 4 } else { 0 };
                    let [mask, value] = [*mask, value & mask].map(|bits| u32::from(bits) << behind);
                    format!("meta protocol {} @nh,0,16 & {mask:#06x} == {value:#06x}", family.name())
                };
                Formula::one_of(of_each_family(test))
            }
            Match::AtMostBytes(bytes) => not(at_least(u32::from(*bytes) + 1)),
            Match::AtLeastBytes(bytes) => at_least((*bytes).into()),
            Match::Address(end, prefix) => address(*end, *prefix),
            Match::Protocol(Protocol::Other) if self.fragments => Formula::True,
            _ if self.fragments => Formula::False,
            other => self.transport(other),
        }
    }

    /// Conditions on headers behind IP, and on connections.
    fn transport(&mut self, condition: &Match) -> Formula {
        match condition {
            Match::PureAck | Match::SackAck => {
                self.pure_acks = true;
                let pure = Formula::Bit { bit: PURE_ACK, set: true };
                let sack = Formula::Plain(of_tcp("tcp option sack exists"));
                if *condition == Match::SackAck { all(vec![pure, sack]) } else { pure }
            }
            Match::Protocol(protocol) => of_protocol(*protocol),
            Match::TcpFlags(flags) => of_flags(*flags, *flags),
            Match::TcpFlagsOf { set, of } => of_flags(*set, *of),
            Match::Port(end, ports) => self.ports(*end, std::slice::from_ref(ports)),
            Match::ConnectionBytes(bound, bytes) if self.memory == Memory::Kept => {
                let sign = if *bound == Bound::Below { "<" } else { ">" };
                Formula::one_of(["original", "reply"].map(|direction| {
                    let counted = format!("ct {direction} bytes {sign} {}", bytes.as_u64());
                    Conjunction::new(format!("meta l4proto {{ tcp, udp }} ct direction {direction} {counted}"))
                }))
            }
            Match::NewConnections { bound, count, per } if self.memory == Memory::Kept => {
                let Some((count, unit)) = rate(*count, *per) else { return Formula::False };
                let over = if *bound == Bound::Below { "" } else { "over " };
                let number = self.hosts;
                self.hosts += 1;
                let limits = of_each_family(|family| {
                    let family = family.name();
                    let limit = format!("{family} saddr limit rate {over}{count}/{unit} burst {count} packets");
                    format!("tcp flags & 0x12 == 0x02 update @hosts{number}-{family} {{ {limit} }}")
                });
                Formula::one_of(limits.map(|limit| limit.of_transport(TCP)))
            }
            Match::FtpData if self.memory == Memory::Kept => {
                self.ftp = true;
                Formula::Plain(Conjunction::new("ct helper \"ftp\""))
            }
            // `obstacle` names the rest.
            _ => Formula::False,
        }
    }

    fn ports(&self, end: End, ports: &[RangeInclusive<u16>]) -> Formula {
        if self.fragments {
            return Formula::False;
        }
        let ports = match merged(ports).as_slice() {
            [one] => one.clone(),
            several => format!("{{ {} }}", several.join(", ")),
        };
        let test = |field: &str| Conjunction::new(format!("meta l4proto {{ tcp, udp }} th {field} {ports}"));
        Formula::one_of(fields(end, ["sport", "dport"]).into_iter().map(test))
    }
}

/// The ranges of ports of conditions that all ask for ports of one end.
fn ports_of_one_end(conditions: &[Match]) -> Option<(End, Vec<RangeInclusive<u16>>)> {
    let Match::Port(end, _) = conditions.first()? else { return None };
    let of_end = |one: &Match| match one {
        Match::Port(other, ports) if other == end => Some(ports.clone()),
        _ => None,
    };
    Some((*end, conditions.iter().map(of_end).collect::<Option<_>>()?))
}

/// Ranges in the words of nft, which takes none that overlap.
fn merged(ports: &[RangeInclusive<u16>]) -> Vec<String> {
    let mut ranges: Vec<(u16, u16)> = ports.iter().map(|range| (*range.start(), *range.end())).collect();
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if u32::from(first) <= u32::from(*end) + 1 => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    let word = |(first, last): &(u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    merged.iter().map(word).collect()
}

fn fields(end: End, [source, destination]: [&'static str; 2]) -> Vec<&'static str> {
    match end {
        End::Source => vec![source],
        End::Destination => vec![destination],
        End::Either => vec![source, destination],
    }
}

/// IP packets of at least this number of bytes. The length of IPv6 leaves out its header of 40 bytes.
fn at_least(bytes: u32) -> Formula {
    let test = |family: Family| {
        let least = if family == Family::V6 { bytes.saturating_sub(40) } else { bytes };
        let text = match least {
            0 => format!("meta protocol {}", family.name()),
            0x1_0000.. => return Formula::False,
            _ => format!("{} length >= {least}", family.name()),
        };
        Formula::Plain(Conjunction::new(text).of_family(family))
    };
    any(Family::BOTH.map(test).to_vec())
}

fn address(end: End, prefix: Prefix) -> Formula {
    let family = match prefix.network() {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    };
    let of_family = |text: String| Conjunction::new(text).of_family(family);
    if prefix.bits() == 0 {
        return Formula::Plain(of_family(format!("meta protocol {}", family.name())));
    }
    let test = |field: &str| of_family(format!("{} {field} {prefix}", family.name()));
    Formula::one_of(fields(end, ["saddr", "daddr"]).into_iter().map(test))
}

fn of_flags(set: TcpFlags, of: TcpFlags) -> Formula {
    Formula::Plain(match of.bits() {
        0 => of_number(TCP),
        of => of_tcp(format!("tcp flags & {of:#04x} == {:#04x}", set.bits() & of)),
    })
}

fn of_number(number: u8) -> Conjunction {
    Conjunction::new(format!("meta l4proto {number}")).of_transport(number)
}

fn of_protocol(protocol: Protocol) -> Formula {
    let v4 = |text: &str| Conjunction::new(text).of_family(Family::V4);
    let v6 = |text: &str| Conjunction::new(text).of_family(Family::V6);
    let echo = |kind: &str| {
        let [v4, v6] = [v4(&format!("icmp type {kind}")), v6(&format!("icmpv6 type {kind}"))];
        [v4.of_transport(ICMP), v6.of_transport(ICMP_V6)]
    };
    match protocol {
        Protocol::Tcp => Formula::Plain(of_number(TCP)),
        Protocol::Udp => Formula::Plain(of_number(UDP)),
        Protocol::EchoRequest => Formula::one_of(echo("echo-request")),
        Protocol::EchoReply => Formula::one_of(echo("echo-reply")),
        Protocol::Other => {
            let no_echo = echo("!= { echo-request, echo-reply }");
            let neither = Conjunction::new("meta l4proto != { tcp, udp, icmp, icmpv6 }");
            // ICMP of the other family.
            let strange = [v6("meta protocol ip6 meta l4proto icmp"), v4("meta protocol ip meta l4proto icmpv6")];
            let [of_v6, of_v4] = strange;
            let strange = [of_v6.of_transport(ICMP), of_v4.of_transport(ICMP_V6)];
            Formula::one_of(std::iter::once(neither).chain(no_echo).chain(strange))
        }
        // No real packet is a signal.
        Protocol::AckSignal => Formula::False,
    }
}

/// A count in a unit of time that `limit` has a word for.
pub(super) fn rate(count: u32, per: Duration) -> Option<(u32, &'static str)> {
    let units = [(1, "second"), (60, "minute"), (3600, "hour")];
    units.into_iter().find_map(|(seconds, unit)| {
        let many = Duration::from_s(seconds) / per;
        let whole = many > 0 && per * many == Duration::from_s(seconds);
        Some((count.checked_mul(u32::try_from(many).ok().filter(|_| whole)?)?, unit))
    })
}

#[cfg(test)]
mod tests {
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
    fn ranges_of_ports_that_meet_become_one() {
        assert_eq!(merged(&[80..=80, 443..=450, 445..=460, 81..=90, 7..=7]), ["7", "80-90", "443-460"]);
        assert_eq!(merged(&[65_000..=65_535, 65_535..=65_535]), ["65000-65535"]);
    }
}

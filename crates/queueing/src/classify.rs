//! Classifiers: which class of a scheduler a packet belongs to.
//!
//! A [`Matcher`] answers yes or no, a [`Classifier`] names a class, and [`FirstMatch`] makes the one from the other, as the
//! filters of tc(8) do: the first rule that matches decides. Both are traits, so that a rule with a state of its own (a
//! rate of new connections, a control connection that announces a port) stands beside the plain ones.
//!
//! A configuration writes conditions as [`Match`], plain data; a [`Condition`] is one at work: it knows the
//! [`Environment`] that it was built for, which tells the addresses of simulated flows, and keeps what it has to remember.
//!
//! Cost: the rules up to the first that matches.

use core::fmt;
use core::ops::RangeInclusive;
use std::sync::Arc;

use lastmile_packet::{FlowAddresses, FlowDirectory, FlowId, NumberedFlows, Packet, Protocol, TcpFlags};
use lastmile_units::Instant;

use crate::Environment;

/// A class of a scheduler, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct ClassIndex(u16);

impl ClassIndex {
    /// The class with this index.
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// The index of the class.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names the class of a packet.
pub trait Classifier<P> {
    /// The class of `packet`, which comes at `now`. A scheduler takes an index that it does not have for its last class.
    fn classify(&mut self, now: Instant, packet: &P) -> ClassIndex;
}

impl<P, F: FnMut(&P) -> ClassIndex> Classifier<P> for F {
    fn classify(&mut self, _now: Instant, packet: &P) -> ClassIndex {
        self(packet)
    }
}

/// Says whether a packet is meant.
pub trait Matcher<P> {
    /// True when `packet`, which comes at `now`, is meant.
    fn matches(&mut self, now: Instant, packet: &P) -> bool;
}

impl<P, F: FnMut(&P) -> bool> Matcher<P> for F {
    fn matches(&mut self, _now: Instant, packet: &P) -> bool {
        self(packet)
    }
}

/// A condition on a packet: plain data, as a configuration holds it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Match {
    /// Every packet.
    Any,
    /// No packet.
    #[default]
    Never,
    /// TCP segments that acknowledge and do nothing else ([`lastmile_packet::Meta::is_pure_ack`]).
    PureAck,
    /// Packets of this protocol.
    Protocol(Protocol),
    /// Packets with this differentiated services code point (RFC 2474), 0 to 63.
    Dscp(u8),
    /// TCP segments in which all of these flags are set.
    TcpFlags(TcpFlags),
    /// Packets of this flow.
    Flow(FlowId),
    /// IP packets of at most so many bytes.
    AtMostBytes(u16),
    /// TCP segments and UDP datagrams with a port of this range at this end.
    Port(End, RangeInclusive<u16>),
    /// Packets that the condition within does not match.
    Not(Box<Match>),
    /// Packets that every condition matches: all packets if there is none.
    All(Vec<Match>),
    /// Packets that some condition matches: no packet if there is none.
    OneOf(Vec<Match>),
}

/// The end of a packet's way that a condition looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
    /// One of them, or both.
    Either,
}

impl End {
    /// True if what stands at this end is meant.
    fn is_some<T>(self, source: T, destination: T, is_meant: impl Fn(T) -> bool) -> bool {
        match self {
            Self::Source => is_meant(source),
            Self::Destination => is_meant(destination),
            Self::Either => is_meant(source) || is_meant(destination),
        }
    }
}

/// A [`Match`] at work.
#[derive(Clone)]
pub struct Condition {
    condition: Match,
    flows: Arc<dyn FlowDirectory>,
}

impl Condition {
    /// The condition, for packets of this environment.
    #[must_use]
    pub fn new(condition: &Match, environment: &Environment) -> Self {
        Self { condition: condition.clone(), flows: Arc::clone(&environment.flows) }
    }
}

/// For flows that are known by their number alone.
impl From<Match> for Condition {
    fn from(condition: Match) -> Self {
        Self { condition, flows: Arc::new(NumberedFlows) }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl<P: Packet> Matcher<P> for Condition {
    fn matches(&mut self, _now: Instant, packet: &P) -> bool {
        covers(&self.condition, packet, &*self.flows)
    }
}

fn covers(condition: &Match, packet: &impl Packet, flows: &dyn FlowDirectory) -> bool {
    let meta = packet.meta();
    match condition {
        Match::Any => true,
        Match::Never => false,
        Match::PureAck => meta.is_pure_ack(),
        Match::Protocol(protocol) => meta.protocol == *protocol,
        Match::Dscp(dscp) => meta.dscp() == *dscp,
        Match::TcpFlags(flags) => meta.protocol == Protocol::Tcp && meta.flags.contains(*flags),
        Match::Flow(flow) => meta.flow == *flow,
        Match::AtMostBytes(bytes) => meta.ip_len <= *bytes,
        Match::Port(end, ports) => {
            matches!(meta.protocol, Protocol::Tcp | Protocol::Udp)
                && packet.key(flows).is_some_and(|key| {
                    let FlowAddresses { source_port, destination_port, .. } = key.addresses;
                    end.is_some(source_port, destination_port, |port| ports.contains(&port))
                })
        }
        Match::Not(inner) => !covers(inner, packet, flows),
        Match::All(conditions) => conditions.iter().all(|condition| covers(condition, packet, flows)),
        Match::OneOf(conditions) => conditions.iter().any(|condition| covers(condition, packet, flows)),
    }
}

/// The first rule that matches names the class.
pub struct FirstMatch<P> {
    rules: Vec<(Box<dyn Matcher<P> + Send>, ClassIndex)>,
    otherwise: ClassIndex,
}

impl<P> FirstMatch<P> {
    /// No rule yet: every packet is of class `otherwise`.
    #[must_use]
    pub const fn new(otherwise: ClassIndex) -> Self {
        Self { rules: Vec::new(), otherwise }
    }

    /// Adds a rule behind those that stand.
    #[must_use]
    pub fn rule(mut self, matcher: impl Matcher<P> + Send + 'static, class: ClassIndex) -> Self {
        self.rules.push((Box::new(matcher), class));
        self
    }
}

impl<P> Classifier<P> for FirstMatch<P> {
    fn classify(&mut self, now: Instant, packet: &P) -> ClassIndex {
        for (matcher, class) in &mut self.rules {
            if matcher.matches(now, packet) {
                return *class;
            }
        }
        self.otherwise
    }
}

#[cfg(test)]
mod tests {
    use lastmile_packet::Meta;

    use super::*;

    fn ack() -> Meta {
        Meta { ip_len: 40, header_len: 40, flags: TcpFlags::ACK, ..Meta::default() }
    }

    const NOW: Instant = Instant::ZERO;

    fn condition(condition: &Match) -> Condition {
        condition.clone().into()
    }

    fn covers(what: &Match, packet: &Meta) -> bool {
        condition(what).matches(NOW, packet)
    }

    fn class(index: u16) -> ClassIndex {
        ClassIndex::new(index)
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_the_rest_falls_through() {
        let mut classifier: FirstMatch<Meta> = FirstMatch::new(class(9))
            .rule(condition(&Match::PureAck), class(0))
            .rule(condition(&Match::Protocol(Protocol::Tcp)), class(1))
            .rule(condition(&Match::Dscp(46)), class(2));
        let data = Meta { ip_len: 1500, ..ack() };
        let voice = Meta { protocol: Protocol::Udp, traffic_class: 46 << 2, ..data };
        let other = Meta { protocol: Protocol::Udp, ..data };
        assert_eq!(classifier.classify(NOW, &ack()), class(0));
        assert_eq!(classifier.classify(NOW, &data), class(1));
        assert_eq!(classifier.classify(NOW, &voice), class(2));
        assert_eq!(classifier.classify(NOW, &other), class(9));
    }

    #[test]
    fn a_rule_may_keep_a_state() {
        let mut left = 2;
        let two_syns = move |packet: &Meta| {
            let takes = packet.flags.contains(TcpFlags::SYN) && left > 0;
            left -= i32::from(takes);
            takes
        };
        let mut classifier: FirstMatch<Meta> = FirstMatch::new(class(1)).rule(two_syns, class(0));
        let syn = Meta { flags: TcpFlags::SYN, ..ack() };
        let classes: Vec<_> = (0..3).map(|_| classifier.classify(NOW, &syn)).collect();
        assert_eq!(classes, [class(0), class(0), class(1)]);
    }

    #[test]
    fn conditions_combine() {
        let small_tcp = Match::All(vec![Match::Protocol(Protocol::Tcp), Match::AtMostBytes(64)]);
        let either = Match::OneOf(vec![Match::Flow(FlowId::new(7)), Match::TcpFlags(TcpFlags::SYN)]);
        assert!(covers(&small_tcp, &ack()));
        assert!(!covers(&Match::Not(Box::new(small_tcp)), &ack()));
        assert!(!covers(&either, &ack()));
        assert!(covers(&either, &Meta { flow: FlowId::new(7), ..ack() }));
        // A UDP packet has no TCP flags, whatever stands in its metadata.
        assert!(!covers(&either, &Meta { flags: TcpFlags::SYN, protocol: Protocol::Udp, ..ack() }));
        assert!(covers(&Match::All(vec![]), &ack()) && !covers(&Match::OneOf(vec![]), &ack()));
    }

    /// Flow 0 goes from port 50 000 to port 49 152 ([`lastmile_packet::FlowAddresses::of_simulated`]), flow 1 back.
    #[test]
    fn ports_are_those_of_the_directory_and_only_tcp_and_udp_have_any() {
        let far = |end| Match::Port(end, 49_152..=49_999);
        let back = Meta { flow: FlowId::new(1), ..ack() };
        assert!(covers(&far(End::Destination), &ack()) && !covers(&far(End::Destination), &back));
        assert!(covers(&far(End::Source), &back) && !covers(&far(End::Source), &ack()));
        assert!(covers(&far(End::Either), &ack()) && covers(&far(End::Either), &back));
        assert!(!covers(&far(End::Either), &Meta { protocol: Protocol::EchoRequest, ..back }));
    }
}

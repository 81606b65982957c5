//! Classifiers: which class of a scheduler a packet belongs to.
//!
//! A [`Matcher`] answers yes or no, a [`Classifier`] names a class, and [`FirstMatch`] makes the one from the other, as the
//! filters of tc(8) do: the first rule that matches decides. Both are traits, so that a rule with a state of its own (a
//! rate of new connections, a control connection that announces a port) stands beside the plain ones of [`Match`].
//!
//! Cost: the rules up to the first that matches.

use lastmile_packet::{FlowId, Packet, Protocol, TcpFlags};

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
    /// The class of `packet`. A scheduler takes an index that it does not have for its last class.
    fn classify(&mut self, packet: &P) -> ClassIndex;
}

impl<P, F: FnMut(&P) -> ClassIndex> Classifier<P> for F {
    fn classify(&mut self, packet: &P) -> ClassIndex {
        self(packet)
    }
}

/// Says whether a packet is meant.
pub trait Matcher<P> {
    /// True when `packet` is meant.
    fn matches(&mut self, packet: &P) -> bool;
}

impl<P, F: FnMut(&P) -> bool> Matcher<P> for F {
    fn matches(&mut self, packet: &P) -> bool {
        self(packet)
    }
}

/// A condition on the metadata of a packet: plain data, as a configuration holds it.
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
    /// Packets that the condition within does not match.
    Not(Box<Match>),
    /// Packets that every condition matches: all packets if there is none.
    All(Vec<Match>),
    /// Packets that some condition matches: no packet if there is none.
    OneOf(Vec<Match>),
}

impl Match {
    /// True when `packet` is meant.
    #[must_use]
    pub fn covers(&self, packet: &impl Packet) -> bool {
        let meta = packet.meta();
        match self {
            Self::Any => true,
            Self::Never => false,
            Self::PureAck => meta.is_pure_ack(),
            Self::Protocol(protocol) => meta.protocol == *protocol,
            Self::Dscp(dscp) => meta.dscp() == *dscp,
            Self::TcpFlags(flags) => meta.protocol == Protocol::Tcp && meta.flags.contains(*flags),
            Self::Flow(flow) => meta.flow == *flow,
            Self::AtMostBytes(bytes) => meta.ip_len <= *bytes,
            Self::Not(inner) => !inner.covers(packet),
            Self::All(conditions) => conditions.iter().all(|condition| condition.covers(packet)),
            Self::OneOf(conditions) => conditions.iter().any(|condition| condition.covers(packet)),
        }
    }
}

impl<P: Packet> Matcher<P> for Match {
    fn matches(&mut self, packet: &P) -> bool {
        self.covers(packet)
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
    fn classify(&mut self, packet: &P) -> ClassIndex {
        for (matcher, class) in &mut self.rules {
            if matcher.matches(packet) {
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

    fn class(index: u16) -> ClassIndex {
        ClassIndex::new(index)
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_the_rest_falls_through() {
        let mut classifier: FirstMatch<Meta> = FirstMatch::new(class(9))
            .rule(Match::PureAck, class(0))
            .rule(Match::Protocol(Protocol::Tcp), class(1))
            .rule(Match::Dscp(46), class(2));
        let data = Meta { ip_len: 1500, ..ack() };
        let voice = Meta { protocol: Protocol::Udp, traffic_class: 46 << 2, ..data };
        let other = Meta { protocol: Protocol::Udp, ..data };
        assert_eq!(classifier.classify(&ack()), class(0));
        assert_eq!(classifier.classify(&data), class(1));
        assert_eq!(classifier.classify(&voice), class(2));
        assert_eq!(classifier.classify(&other), class(9));
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
        let classes: Vec<_> = (0..3).map(|_| classifier.classify(&syn)).collect();
        assert_eq!(classes, [class(0), class(0), class(1)]);
    }

    #[test]
    fn conditions_combine() {
        let small_tcp = Match::All(vec![Match::Protocol(Protocol::Tcp), Match::AtMostBytes(64)]);
        let either = Match::OneOf(vec![Match::Flow(FlowId::new(7)), Match::TcpFlags(TcpFlags::SYN)]);
        assert!(small_tcp.covers(&ack()));
        assert!(!Match::Not(Box::new(small_tcp)).covers(&ack()));
        assert!(!either.covers(&ack()));
        assert!(either.covers(&Meta { flow: FlowId::new(7), ..ack() }));
        // A UDP packet has no TCP flags, whatever stands in its metadata.
        assert!(!either.covers(&Meta { flags: TcpFlags::SYN, protocol: Protocol::Udp, ..ack() }));
        assert!(Match::All(vec![]).covers(&ack()) && !Match::OneOf(vec![]).covers(&ack()));
    }
}

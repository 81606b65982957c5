//! Knowledge about all packets of some flows, and the conditions that it answers.
//!
//! An answer holds for each of the packets, whatever the state of connections: a condition on bytes so far, on rates or
//! on payload has none. [`Packets::default`] is every packet that may come.

use lastmile_packet::{FlowAddresses, Protocol};

use super::matching::Match;

/// Packets with data.
#[derive(Clone, Debug)]
pub struct Data {
    /// IP bytes of the shortest and of the longest.
    pub sizes: [u16; 2],
    /// Differentiated services code point. `None`: not known.
    pub dscp: Option<u8>,
    /// Their protocol.
    pub protocol: Protocol,
    /// Addresses and ports of each flow. Empty: not known.
    pub flows: Vec<FlowAddresses>,
    /// False: further flows have the addresses of these, and other ports.
    pub are_all_flows: bool,
}

/// Packets about which something may be known.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    data: Option<Data>,
    class: Class,
}

/// The class that packets carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Class {
    /// None: they have just arrived.
    #[default]
    None,
    Of(u16),
    /// One or another.
    Unknown,
}

impl From<Data> for Packets {
    fn from(data: Data) -> Self {
        Self { data: Some(data), class: Class::None }
    }
}

impl Packets {
    /// The packets after rules gave them `class`; `None` for one or another.
    pub(crate) fn of_class(&self, class: Option<u16>) -> Self {
        Self { class: class.map_or(Class::Unknown, Class::Of), ..self.clone() }
    }

    /// The packets in class `number` of a scheduler ([`lastmile_packet::Meta::join_class`]).
    pub(crate) fn joining(&self, number: usize) -> Self {
        match (self.class, u16::try_from(number)) {
            (Class::None, Ok(number)) => self.of_class(Some(number)),
            _ => self.clone(),
        }
    }

    /// The answer to `condition` that holds for every packet.
    pub(crate) fn answer(&self, condition: &Match) -> Option<bool> {
        match condition {
            Match::Any => Some(true),
            Match::Never => Some(false),
            Match::Not(inner) => Some(!self.answer(inner)?),
            Match::All(inner) => self.decided_by(inner, false),
            Match::OneOf(inner) => self.decided_by(inner, true),
            Match::Class(class) => match self.class {
                Class::None => Some(false),
                Class::Of(own) => Some(own == *class),
                Class::Unknown => None,
            },
            _ => self.data.as_ref()?.answer(condition),
        }
    }

    /// The index of the first of `conditions` that holds, by default that of the last: of every packet.
    pub(crate) fn first_match<'a>(&self, conditions: impl ExactSizeIterator<Item = &'a Match>) -> Option<usize> {
        let last = conditions.len().checked_sub(1)?;
        for (index, condition) in conditions.enumerate().take(last) {
            if self.answer(condition)? {
                return Some(index);
            }
        }
        Some(last)
    }

    /// The answer to several conditions: `decisive` if one of them gives it, the opposite if all give that.
    fn decided_by(&self, conditions: &[Match], decisive: bool) -> Option<bool> {
        let answers: Vec<_> = conditions.iter().map(|condition| self.answer(condition)).collect();
        if answers.contains(&Some(decisive)) {
            return Some(decisive);
        }
        (!answers.contains(&None)).then_some(!decisive)
    }
}

impl Data {
    fn answer(&self, condition: &Match) -> Option<bool> {
        let dscp = |differing: u8| self.dscp.map(|dscp| dscp << 2 ^ differing);
        match condition {
            Match::PureAck | Match::SackAck => Some(false),
            Match::Protocol(protocol) => Some(self.protocol == *protocol),
            Match::ProtocolNumber(number) => Some(self.protocol.number(false) == *number),
            Match::Dscp(other) => Some(dscp(other << 2)? == 0),
            // Queues mark congestion in the two bits of ECN.
            Match::TrafficClass { value, mask } => match dscp(*value)? & mask & !3 {
                0 => (mask & 3 == 0).then_some(true),
                _ => Some(false),
            },
            Match::AtMostBytes(bytes) => same(self.sizes.iter().map(|size| size <= bytes)),
            Match::AtLeastBytes(bytes) => same(self.sizes.iter().map(|size| size >= bytes)),
            Match::Port(end, ports) if self.are_all_flows => same(
                self.flows
                    .iter()
                    .map(|flow| end.is_some(flow.source_port, flow.destination_port, |port| ports.contains(&port))),
            ),
            Match::Address(end, prefix) => {
                same(self.flows.iter().map(|flow| {
                    end.is_some(flow.ip.source(), flow.ip.destination(), |address| prefix.contains(address))
                }))
            }
            _ => None,
        }
    }
}

/// The one answer of all.
fn same(mut answers: impl Iterator<Item = bool>) -> Option<bool> {
    let first = answers.next()?;
    answers.all(|answer| answer == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use lastmile_packet::FlowId;

    use super::super::matching::{Bound, End, Prefix};
    use super::*;
    use lastmile_units::ByteCount;

    fn upload(flows: u32, are_all_flows: bool) -> Packets {
        let flows = (0..flows).map(|connection| FlowAddresses::of_simulated(FlowId::new(2 * connection))).collect();
        Data { sizes: [41, 1500], dscp: Some(46), protocol: Protocol::Tcp, flows, are_all_flows }.into()
    }

    /// Ports 50 000 and 50 001 to 49 152; 46 << 2 is 184.
    #[test]
    fn an_answer_holds_for_every_packet() {
        let two = upload(2, true);
        let home = Prefix::new("10.0.0.0".parse().unwrap(), 24).unwrap();
        let port = |end, ports| two.answer(&Match::Port(end, ports));
        assert_eq!(port(End::Source, 50_000..=50_000), None, "one of two flows");
        assert_eq!(port(End::Source, 50_000..=50_001), Some(true));
        assert_eq!(port(End::Destination, 80..=80), Some(false));
        assert_eq!(upload(2, false).answer(&Match::Port(End::Destination, 80..=80)), None, "ports of further flows");
        assert_eq!(upload(2, false).answer(&Match::Address(End::Source, home)), Some(true));
        let class = |value, mask| two.answer(&Match::TrafficClass { value, mask });
        assert_eq!((class(184, 0xfc), class(0, 0xfc), class(184, 0xff), class(0, 0xff)), {
            (Some(true), Some(false), None, Some(false))
        });
        assert_eq!((two.answer(&Match::Dscp(46)), two.answer(&Match::Dscp(0))), (Some(true), Some(false)));
        let sizes = [40, 41, 1499, 1500].map(|size| two.answer(&Match::AtMostBytes(size)));
        assert_eq!(sizes, [Some(false), None, None, Some(true)]);
        let sizes = [41, 42, 1500, 1501].map(|size| two.answer(&Match::AtLeastBytes(size)));
        assert_eq!(sizes, [Some(true), None, None, Some(false)]);
    }

    #[test]
    fn a_part_without_answer_matters_only_where_no_other_decides() {
        let bytes = || Match::ConnectionBytes(Bound::Below, ByteCount::new(9));
        let data = upload(1, true);
        let answers = [
            Match::All(vec![bytes(), Match::PureAck]),
            Match::All(vec![bytes(), Match::Any]),
            Match::OneOf(vec![bytes(), Match::Protocol(Protocol::Tcp)]),
            Match::OneOf(vec![bytes(), Match::PureAck]),
            Match::Not(Box::new(bytes())),
        ]
        .map(|condition| data.answer(&condition));
        assert_eq!(answers, [Some(false), None, Some(true), None, None]);
        assert_eq!(Packets::default().answer(&Match::PureAck), None, "any packet may come");
        let first = |conditions: &[Match]| data.first_match(conditions.iter());
        assert_eq!(first(&[Match::PureAck, Match::Any]), Some(1));
        assert_eq!(first(&[Match::PureAck, Match::Never]), Some(1), "the last takes all others");
        assert_eq!(first(&[bytes(), Match::Any]), None);
    }

    #[test]
    fn the_class_of_rules_is_kept_by_schedulers() {
        let arrived = Packets::default();
        let classes = |packets: &Packets| [0, 1].map(|class| packets.answer(&Match::Class(class)));
        assert_eq!(classes(&arrived), [Some(false); 2]);
        assert_eq!(classes(&arrived.joining(1)), [Some(false), Some(true)]);
        assert_eq!(classes(&arrived.of_class(Some(0)).joining(1)), [Some(true), Some(false)]);
        assert_eq!(classes(&arrived.of_class(None).joining(1)), [None; 2]);
    }
}

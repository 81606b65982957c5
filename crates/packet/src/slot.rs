//! Packets as rings store them: of a [`Meta`] half, since most packets have no options, and their option words apart.
//!
//! A ring has a slot of equal size for each packet and beside them the words of those that have some, in the same order.
//! Every packet comes out as it went in, whatever its fields say of each other: words are told from none by their values.
//! Cost: 32 bytes a packet, and 8 for each two words that are not zero: a SACK block, a pair of timestamps.

use lastmile_units::{ByteCount, Instant};

use crate::{FlowId, Mark, Meta, OptionSet, OptionWords, Packet, Protocol, SeqNumber, TcpFlags};

/// A packet in a ring: what of it has the same size for all. What few packets have beside it lies apart.
pub trait Slot<P>: Sized {
    /// Nothing ever lies apart: the slot is the packet.
    const WHOLE: bool = false;

    /// Stores a packet, and hands what lies apart to `apart`.
    fn store(packet: P, apart: impl FnMut([u32; 2])) -> Self;

    /// The packet. `apart` gives back what [`Slot::store`] handed out, in the same order.
    fn load(self, apart: impl FnMut() -> [u32; 2]) -> P;

    /// The packet, if nothing of it lies apart and a copy of the slot is as good: [`Slot::load`] for most packets, sooner.
    fn copied(&self) -> Option<P>;

    /// [`Meta::arrived`] of the packet.
    fn arrived(&self) -> Instant;

    /// [`Meta::flow`] of the packet.
    fn flow(&self) -> FlowId;

    /// [`Meta::ip_bytes`] of the packet.
    fn ip_bytes(&self) -> ByteCount;
}

/// A packet may be stored whole.
impl<P: Packet> Slot<P> for P {
    const WHOLE: bool = true;

    #[inline]
    fn store(packet: P, _apart: impl FnMut([u32; 2])) -> Self {
        packet
    }

    #[inline]
    fn load(self, _apart: impl FnMut() -> [u32; 2]) -> P {
        self
    }

    #[inline]
    fn copied(&self) -> Option<P> {
        None
    }

    #[inline]
    fn arrived(&self) -> Instant {
        self.meta().arrived
    }

    #[inline]
    fn flow(&self) -> FlowId {
        self.meta().flow
    }

    #[inline]
    fn ip_bytes(&self) -> ByteCount {
        self.meta().ip_bytes()
    }
}

/// A [`Meta`] without its option words. Its mark tells which of them lie apart.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MetaSlot {
    arrived: Instant,
    flow: FlowId,
    seq: SeqNumber,
    ack: SeqNumber,
    ip_len: u16,
    ip_id: u16,
    window: u16,
    flags: TcpFlags,
    protocol: Protocol,
    traffic_class: u8,
    header_len: u8,
    mark: Mark,
    option_set: OptionSet,
}

const _: () = assert!(size_of::<MetaSlot>() == 32, "two packets wait in a cache line");

impl MetaSlot {
    #[inline]
    fn of(packet: &Meta) -> Self {
        Self {
            arrived: packet.arrived,
            flow: packet.flow,
            seq: packet.seq,
            ack: packet.ack,
            ip_len: packet.ip_len,
            ip_id: packet.ip_id,
            window: packet.window,
            flags: packet.flags,
            protocol: packet.protocol,
            traffic_class: packet.traffic_class,
            header_len: packet.header_len,
            mark: packet.mark,
            option_set: packet.option_set,
        }
    }

    #[inline]
    fn with(&self, mark: Mark, option_words: OptionWords) -> Meta {
        Meta {
            arrived: self.arrived,
            flow: self.flow,
            seq: self.seq,
            ack: self.ack,
            ip_len: self.ip_len,
            ip_id: self.ip_id,
            window: self.window,
            flags: self.flags,
            protocol: self.protocol,
            traffic_class: self.traffic_class,
            header_len: self.header_len,
            mark,
            option_set: self.option_set,
            option_words,
        }
    }
}

impl Slot<Meta> for MetaSlot {
    #[inline]
    fn store(packet: Meta, apart: impl FnMut([u32; 2])) -> Self {
        if packet.option_words.are_zero() {
            return Self::of(&packet);
        }
        let mut slot = Self::of(&packet);
        slot.mark.set_apart(put_apart(packet.option_words, apart));
        slot
    }

    #[inline]
    fn load(self, apart: impl FnMut() -> [u32; 2]) -> Meta {
        let mut mark = self.mark;
        let pairs = mark.take_apart();
        self.with(mark, take_apart(pairs, apart))
    }

    #[inline]
    fn copied(&self) -> Option<Meta> {
        if self.mark.has_apart() { None } else { Some(self.with(self.mark, OptionWords::default())) }
    }

    #[inline]
    fn arrived(&self) -> Instant {
        self.arrived
    }

    #[inline]
    fn flow(&self) -> FlowId {
        self.flow
    }

    #[inline]
    fn ip_bytes(&self) -> ByteCount {
        ByteCount::new(self.ip_len.into())
    }
}

/// Hands out the pairs of words that are not zero, and tells which they are: a bit for each.
#[inline(never)]
fn put_apart(words: OptionWords, mut apart: impl FnMut([u32; 2])) -> u8 {
    let mut pairs = 0;
    for (index, pair) in words.pairs().into_iter().enumerate() {
        if pair != [0, 0] {
            apart(pair);
            pairs |= 1 << index;
        }
    }
    pairs
}

/// The words of which these pairs lie apart.
#[inline(never)]
fn take_apart(pairs: u8, mut apart: impl FnMut() -> [u32; 2]) -> OptionWords {
    OptionWords::from_pairs([0, 1, 2, 3].map(|index| if pairs >> index & 1 != 0 { apart() } else { [0, 0] }))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::protocol;
    use crate::{Options, SackBlock};

    /// Stores all packets, loads them again; returns them and how many pairs lay apart.
    fn through_a_ring(packets: &[Meta]) -> (Vec<Meta>, usize) {
        let mut apart = VecDeque::new();
        let slots: Vec<_> =
            packets.iter().map(|packet| MetaSlot::store(*packet, |pair| apart.push_back(pair))).collect();
        let stored = apart.len();
        for (slot, packet) in slots.iter().zip(packets) {
            assert_eq!(
                (slot.arrived(), slot.flow(), slot.ip_bytes()),
                (packet.arrived, packet.flow, packet.ip_bytes()),
                "what can be asked of a packet without taking it out"
            );
        }
        let mut load = |slot: MetaSlot| {
            let copied = slot.copied();
            let loaded = slot.load(|| apart.pop_front().expect("as many as were stored"));
            assert_eq!(copied, (loaded.option_words == OptionWords::default()).then_some(loaded));
            loaded
        };
        let loaded = slots.into_iter().map(&mut load).collect();
        assert!(apart.is_empty());
        (loaded, stored)
    }

    #[test]
    fn only_words_that_are_not_zero_lie_apart() {
        let segment = Meta::default();
        let mut sack = segment;
        let block = SackBlock { left: SeqNumber::new(1), right: SeqNumber::new(2) };
        sack.set_options(Options::NONE.with_timestamps(5, 0).with_sack(&[block]));
        assert_eq!(through_a_ring(&[segment, sack, segment, sack]), (vec![segment, sack, segment, sack], 4));
    }

    /// Any packet, whether its fields fit each other or not.
    fn any_meta() -> impl Strategy<Value = Meta> {
        let word = || prop_oneof![Just(0), any::<u32>()];
        let words = prop_oneof![
            Just(OptionWords::default()),
            [[word(), word()], [word(), word()], [word(), word()], [word(), word()]].prop_map(OptionWords::from_pairs),
        ];
        let numbers = (any::<u64>(), any::<[u32; 3]>(), any::<[u16; 3]>());
        (numbers, words, any::<[u8; 4]>(), any::<[bool; 4]>(), protocol()).prop_map(
            |((arrived, [flow, seq, ack], [ip_len, ip_id, window]), option_words, bytes, marks, protocol)| {
                let mut mark = Mark::default();
                let set: [fn(&mut Mark); 4] =
                    [Mark::set_clp, Mark::set_ipv6, Mark::set_retransmission, Mark::set_unverified];
                set.iter().zip(marks).filter(|(_, marked)| *marked).for_each(|(set, _)| set(&mut mark));
                let [flags, traffic_class, header_len, option_set] = bytes;
                Meta {
                    arrived: Instant::from_ps(arrived),
                    flow: FlowId::new(flow),
                    seq: SeqNumber::new(seq),
                    ack: SeqNumber::new(ack),
                    option_words,
                    ip_len,
                    ip_id,
                    window,
                    flags: TcpFlags::from_bits(flags),
                    protocol,
                    traffic_class,
                    header_len,
                    mark,
                    option_set: OptionSet(option_set),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn every_packet_comes_out_as_it_went_in(packets in prop::collection::vec(any_meta(), 0..20)) {
            prop_assert_eq!(through_a_ring(&packets).0, packets);
        }
    }
}

//! The contents of packets that a network carries by their size alone.
//!
//! The payload of QUIC is encrypted: a network that keeps its packets' contents here, by their number, cannot depend on
//! them. A content is taken by the first packet of its number that arrives, so a copy that the network made is a
//! duplicate. Contents more than [`WINDOW`] numbers below the newest arrival are gone: their packets arrive as
//! duplicates, as at a receiver that has discarded so old a range (RFC 9000, section 13.2.3).
//! Cost: a pointer for each packet between the oldest one in the network and the newest.

use std::collections::VecDeque;

use crate::packet::Packet;

/// Numbers below the newest arrival whose contents are kept.
const WINDOW: u64 = 1024;

/// The contents of the packets in one direction of a connection.
#[derive(Clone, Debug, Default)]
pub struct InTransit {
    base: u64,
    packets: VecDeque<Option<Box<Packet>>>,
}

impl InTransit {
    /// A packet enters the network. Numbers count up by one.
    ///
    /// # Panics
    /// If a number is not the next one.
    pub fn send(&mut self, packet: Packet) {
        assert_eq!(packet.number, self.base + self.packets.len() as u64, "packet numbers count up by one");
        self.packets.push_back(Some(Box::new(packet)));
    }

    /// A packet leaves the network, of whose number the lowest 32 bits are `number`. `None` for a duplicate.
    pub fn arrive(&mut self, number: u32) -> Option<Packet> {
        // The number next to the newest ones of which these are the lowest bits.
        let index = number.wrapping_sub(self.base as u32) as usize;
        let packet = self.packets.get_mut(index)?.take();
        let keep = (index as u64).saturating_sub(WINDOW);
        let mut passed = 0;
        while let Some(slot) = self.packets.front()
            && (slot.is_none() || passed < keep)
        {
            self.packets.pop_front();
            self.base += 1;
            passed += 1;
        }
        packet.map(|packet| *packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Form, Frames};

    fn packet(number: u64) -> Packet {
        Packet { number, size: 1200, form: Form::Short, spin: false, frames: Frames::default() }
    }

    #[test]
    fn a_packet_arrives_once() {
        let mut transit = InTransit::default();
        (0..3).for_each(|number| transit.send(packet(number)));
        assert_eq!(transit.arrive(1).map(|packet| packet.number), Some(1));
        assert_eq!((transit.arrive(1), transit.arrive(3)), (None, None));
        assert_eq!(transit.arrive(0).map(|packet| packet.number), Some(0));
        assert_eq!((transit.arrive(0), transit.base), (None, 2));
    }

    #[test]
    fn lost_contents_are_forgotten_and_the_window_stays() {
        let mut transit = InTransit::default();
        for number in 0..5000 {
            transit.send(packet(number));
            if number % 100 != 0 {
                assert!(transit.arrive(number as u32).is_some());
            }
        }
        assert!(transit.packets.len() as u64 <= WINDOW + 100, "{}", transit.packets.len());
        assert!(transit.arrive(4900).is_some() && transit.arrive(3000).is_none());
    }
}

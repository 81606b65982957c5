//! The packets in flight: which of them an acknowledgement delivers, and which are lost.
//!
//! Published: RFC 9002, sections 6.1 (packet threshold 3, time threshold 9/8) and 7.6 (persistent congestion).
//! Differs: packets that elicit no acknowledgement are not tracked (section 2 excludes them from the bytes in flight).
//! A packet that was declared lost is forgotten; an acknowledgement that comes for it later has no effect.
//! Cost: O(1) for each packet that is delivered in order. While a packet is missing, each acknowledgement looks at the
//! records above it.

use std::collections::VecDeque;

use lastmile_tcp::controller::InFlight;
use lastmile_tcp::ranges::Range;
use lastmile_units::{Duration, Instant};

use crate::packet::{AckFrame, Chunk};

/// RFC 9002, section 6.1.1: kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;

/// The parts of a packet that are retransmitted if it is lost, or that its delivery confirms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) crypto: Option<Chunk>,
    pub(crate) streams: [Option<Chunk>; 2],
    pub(crate) max_data: bool,
    pub(crate) ack_frequency: bool,
    pub(crate) handshake_done: bool,
    /// The largest number that its ACK frame reported.
    pub(crate) reported: Option<u64>,
}

/// A packet in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) flight: InFlight,
    pub(crate) carried: Carried,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Slot {
    InFlight(Sent),
    Delivered,
    Lost,
    /// The packet elicits no acknowledgement.
    Silent,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SentPackets {
    /// The number of the first slot.
    base: u64,
    slots: VecDeque<Slot>,
    largest_acked: Option<u64>,
    in_flight: u64,
    /// When the last packet that elicits an acknowledgement was sent.
    last_eliciting: Option<Instant>,
}

/// The losses that are found at a point in time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Losses {
    /// Packets in the order of their numbers.
    pub(crate) packets: Vec<(u64, Sent)>,
    /// When the next packet is lost by its age.
    pub(crate) next: Option<Instant>,
}

impl SentPackets {
    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    pub(crate) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Packets in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn last_eliciting(&self) -> Option<Instant> {
        self.last_eliciting
    }

    /// The oldest packet in flight.
    pub(crate) fn oldest(&self) -> Option<&Sent> {
        self.slots.iter().find_map(|slot| match slot {
            Slot::InFlight(sent) => Some(sent),
            _ => None,
        })
    }

    /// The next packet is sent; `None` if it elicits no acknowledgement.
    pub(crate) fn push(&mut self, sent: Option<Sent>) {
        match sent {
            Some(sent) => {
                self.in_flight += 1;
                self.last_eliciting = Some(sent.flight.sent());
                self.slots.push_back(Slot::InFlight(sent));
            }
            None if self.slots.is_empty() => self.base += 1,
            None => self.slots.push_back(Slot::Silent),
        }
    }

    /// The packets that `frame` newly delivers, the highest numbers first. `false` for the second value: its largest
    /// number is not among them.
    pub(crate) fn deliver(&mut self, frame: &AckFrame) -> (Vec<Sent>, bool) {
        let end = self.next_number();
        let largest = frame.largest();
        debug_assert!(largest < end, "packet {largest} was never sent");
        let mut delivered = Vec::new();
        let mut has_largest = false;
        for Range { start, end: above } in frame.ranges() {
            for number in (start.max(self.base)..above.min(end)).rev() {
                let slot = &mut self.slots[(number - self.base) as usize];
                if let Slot::InFlight(sent) = *slot {
                    *slot = Slot::Delivered;
                    self.in_flight -= 1;
                    has_largest |= number == largest;
                    delivered.push(sent);
                }
            }
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        (delivered, has_largest)
    }

    /// Declares packets lost that are 3 numbers below the largest acknowledged one, or as old as `delay`.
    pub(crate) fn find_losses(&mut self, now: Instant, delay: Duration) -> Losses {
        let mut losses = Losses::default();
        let Some(largest) = self.largest_acked else { return losses };
        for number in self.base..largest {
            let Some(slot) = self.slots.get_mut((number - self.base) as usize) else { break };
            let Slot::InFlight(sent) = *slot else { continue };
            let lost_at = sent.flight.sent().saturating_add(delay);
            if number + PACKET_THRESHOLD <= largest || lost_at <= now {
                *slot = Slot::Lost;
                self.in_flight -= 1;
                losses.packets.push((number, sent));
            } else {
                losses.next = Some(losses.next.map_or(lost_at, |next| next.min(lost_at)));
            }
        }
        losses
    }

    /// RFC 9002, section 7.6.2: two of `lost` were sent `span` or more apart, both after `since`, and nothing that was
    /// sent between them was delivered.
    pub(crate) fn is_persistent(&self, lost: &[(u64, Sent)], span: Duration, since: Option<Instant>) -> bool {
        let Some(since) = since else { return false };
        let mut first: Option<(u64, Instant)> = None;
        for (number, sent) in lost {
            let at = sent.flight.sent();
            if at <= since {
                continue;
            }
            match first {
                Some((from, began)) if !self.delivered_between(from, *number) => {
                    if at.since(began) >= span {
                        return true;
                    }
                }
                _ => first = Some((*number, at)),
            }
        }
        false
    }

    fn delivered_between(&self, from: u64, to: u64) -> bool {
        (from.max(self.base)..to).any(|number| self.slots.get((number - self.base) as usize) == Some(&Slot::Delivered))
    }

    /// Forgets the packets below the oldest one in flight.
    pub(crate) fn forget(&mut self) {
        while let Some(slot) = self.slots.front()
            && !matches!(slot, Slot::InFlight(_))
        {
            self.slots.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_tcp::Variant;
    use lastmile_tcp::controller::Controller;

    use super::*;

    fn ms(count: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(count)
    }

    /// Packets sent at these times.
    fn sent_at(times: &[u64]) -> SentPackets {
        let mut controller = Controller::new(Variant::NewReno, 1200, 1);
        let mut packets = SentPackets::default();
        for at in times {
            packets.push(Some(Sent { flight: controller.on_sent(ms(*at), 1200), carried: Carried::default() }));
        }
        packets
    }

    fn ack(ranges: &[(u64, u64)]) -> AckFrame {
        let range = |&(first, last): &(u64, u64)| Range { start: first, end: last + 1 };
        AckFrame { first: range(&ranges[0]), more: ranges[1..].iter().map(range).collect(), delay: Duration::ZERO }
    }

    fn numbers(losses: &Losses) -> Vec<u64> {
        losses.packets.iter().map(|(number, _)| *number).collect()
    }

    /// RFC 9002, section 6.1.1: packet 0 is lost once packet 3 is acknowledged.
    #[test]
    fn three_later_packets_show_a_loss() {
        let mut packets = sent_at(&[0; 6]);
        let (delivered, largest) = packets.deliver(&ack(&[(1, 2)]));
        assert_eq!((delivered.len(), largest), (2, true));
        assert!(packets.find_losses(ms(1), Duration::from_ms(100)).packets.is_empty());
        packets.deliver(&ack(&[(1, 3)]));
        assert_eq!(numbers(&packets.find_losses(ms(1), Duration::from_ms(100))), [0]);
        packets.forget();
        assert_eq!((packets.base, packets.in_flight()), (4, 2));
    }

    /// RFC 9002, section 6.1.2: packet 0, sent at 10 ms, is lost by time at 10 + 90 ms if packet 1 is acknowledged.
    #[test]
    fn age_shows_a_loss_below_an_acknowledged_packet() {
        let mut packets = sent_at(&[10, 20, 30]);
        packets.deliver(&ack(&[(1, 1)]));
        let delay = Duration::from_ms(90);
        let losses = packets.find_losses(ms(99), delay);
        assert_eq!((numbers(&losses), losses.next), (vec![], Some(ms(100))));
        let losses = packets.find_losses(ms(100), delay);
        assert_eq!((numbers(&losses), losses.next), (vec![0], None));
    }

    /// RFC 9002, section 7.6.3: losses over 3 probe timeouts are persistent congestion, unless a packet between was
    /// delivered, or was sent before the first round trip was known.
    #[test]
    fn losses_without_a_delivery_between_are_persistent_congestion() {
        let span = Duration::from_ms(600);
        let judge = |since: Option<Instant>, acked: &[(u64, u64)]| {
            let mut packets = sent_at(&[0, 100, 300, 700, 800]);
            packets.deliver(&ack(acked));
            let losses = packets.find_losses(ms(2000), Duration::from_ms(100));
            packets.is_persistent(&losses.packets, span, since)
        };
        assert!(judge(Some(ms(0)), &[(4, 4)]));
        assert!(!judge(Some(ms(0)), &[(4, 4), (2, 2)]), "300 ms was delivered");
        assert!(!judge(Some(ms(200)), &[(4, 4)]), "from 300 to 700 ms");
        assert!(!judge(None, &[(4, 4)]));
    }

    #[test]
    fn a_second_acknowledgement_delivers_nothing() {
        let mut packets = sent_at(&[0; 3]);
        packets.push(None);
        assert_eq!(packets.deliver(&ack(&[(0, 3)])).0.len(), 3);
        let (again, largest) = packets.deliver(&ack(&[(0, 3)]));
        assert!(again.is_empty() && !largest);
        packets.forget();
        assert_eq!(packets.next_number(), 4);
    }
}

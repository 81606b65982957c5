//! How long a sender takes to answer what passes the capture, and what it knew when it sent a packet.
//!
//! By the timestamps of what goes to it (RFC 7323, section 3) and their echoes: the echo of a value answers the last packet that had it,
//! at the earliest. So a packet names the last ACK that had reached its sender, wherever the capture stands.
//! Cost: at most 8192 values remembered, a binary search for each packet.

use std::collections::VecDeque;

use lastmile_packet::{Meta, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};

use crate::roundtrip::RoundTrip;

const VALUES: usize = 8_192;
const ANSWERS: usize = 8;

/// A packet towards the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    /// When it passed the capture.
    pub(crate) at: Instant,
    /// What it acknowledges, and the window that it offers, unscaled.
    pub(crate) ack: Option<SeqNumber>,
    pub(crate) window: u16,
    /// Its window is not scaled (RFC 7323, section 2.2).
    pub(crate) is_syn: bool,
}

impl Told {
    pub(crate) fn new(at: Instant, packet: &Meta) -> Self {
        let ack = packet.flags.contains(TcpFlags::ACK).then_some(packet.ack);
        Self { at, ack, window: packet.window, is_syn: packet.flags.contains(TcpFlags::SYN) }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Turnaround {
    /// Timestamps that passed towards the sender, in their order, and the last packet that had each.
    values: VecDeque<(u32, Told)>,
    /// What the sender has last echoed.
    known: Option<(u32, Told)>,
    answers: VecDeque<Duration>,
    least: Option<Duration>,
    /// Answers of a sender that had data in flight: it sent because of what it answers.
    pub(crate) prompt: RoundTrip,
}

impl Turnaround {
    /// A packet towards the sender has this timestamp.
    pub(crate) fn passed(&mut self, value: u32, told: Told) {
        match self.values.back_mut() {
            Some((last, packet)) if *last == value => *packet = told,
            // Out of order.
            Some((last, _)) if !is_after(value, *last) => {}
            _ => {
                if self.values.len() == VALUES {
                    self.values.pop_front();
                }
                self.values.push_back((value, told));
            }
        }
    }

    /// A packet of the sender echoes this timestamp. Returns how long the answer took, if it is the first echo of it.
    pub(crate) fn echoed(&mut self, now: Instant, echo: u32) -> Option<Duration> {
        let place = self.values.partition_point(|(value, _)| is_after(echo, *value));
        let (_, told) = self.values.get(place).filter(|(value, _)| *value == echo)?;
        let told = *told;
        self.known = Some((echo, told));
        // An echo is told again with each packet until there is a newer one: only its first says anything.
        self.values.drain(..=place);
        if self.answers.len() == ANSWERS {
            self.answers.pop_front();
        }
        let took = now.since(told.at);
        self.answers.push_back(took);
        self.least = Some(self.least.map_or(took, |least| least.min(took)));
        Some(took)
    }

    /// The packet whose timestamp the sender echoes with `echo`, if it is the one that it has echoed last.
    pub(crate) fn known(&self, echo: u32) -> Option<Told> {
        self.known.filter(|(value, _)| *value == echo).map(|(_, told)| told)
    }

    /// The fastest of the last answers.
    pub(crate) fn fastest(&self) -> Option<Duration> {
        self.answers.iter().min().copied()
    }

    /// The fastest of all.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }
}

/// Timestamps wrap (RFC 7323, section 5.2).
fn is_after(value: u32, than: u32) -> bool {
    value.wrapping_sub(than).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO.saturating_add(Duration::from_ms(ms))
    }

    fn told(ms: u64) -> Told {
        Told { at: at(ms), ack: Some(SeqNumber::new(ms as u32)), window: 1, is_syn: false }
    }

    #[test]
    fn an_echo_answers_the_last_packet_with_its_value_once() {
        let mut turnaround = Turnaround::default();
        turnaround.passed(7, told(0));
        turnaround.passed(7, told(3));
        turnaround.passed(8, told(4));
        turnaround.echoed(at(10), 7);
        assert_eq!(turnaround.fastest(), Some(Duration::from_ms(7)));
        turnaround.echoed(at(90), 7);
        assert_eq!(turnaround.known(7), Some(told(3)));
        turnaround.echoed(at(104), 8);
        assert_eq!((turnaround.fastest(), turnaround.known(7)), (Some(Duration::from_ms(7)), None));
    }

    /// A value a millisecond, as Linux has them, over a round trip of 300 ms, across the wrap.
    #[test]
    fn round_trips_of_many_values_are_found() {
        let mut turnaround = Turnaround::default();
        let value = |ms: u64| (u32::MAX - 500).wrapping_add(ms as u32);
        for ms in 0..2_000 {
            turnaround.passed(value(ms), told(ms));
            if ms >= 300 {
                assert_eq!(turnaround.echoed(at(ms), value(ms - 300)), Some(Duration::from_ms(300)));
                assert_eq!(turnaround.known(value(ms - 300)), Some(told(ms - 300)));
            }
        }
    }
}

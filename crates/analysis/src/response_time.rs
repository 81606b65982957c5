//! A sender's response time as seen from the capture, and its knowledge when it sent a packet.
//!
//! The basis is timestamps towards the sender (RFC 7323, section 3) and their echoes: an echo shows
//! that the last packet with its value had arrived. Each packet thus identifies the last ACK that
//! had reached its sender, at any position of the capture. Cost: at most 8192 stored values, a
//! binary search for each packet.

use std::collections::VecDeque;

use lastmile_packet::{Meta, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};

use crate::roundtrip::RoundTrip;
use crate::timestamps;

const VALUES: usize = 8_192;
const ANSWERS: usize = 8;

/// A packet towards the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Feedback {
    /// Time at the capture.
    pub(crate) at: Instant,
    /// The acknowledgement number and the offered window, unscaled.
    pub(crate) ack: Option<SeqNumber>,
    pub(crate) window: u16,
    /// True for a SYN, whose window is not scaled (RFC 7323, section 2.2).
    pub(crate) is_syn: bool,
}

impl Feedback {
    pub(crate) fn new(at: Instant, packet: &Meta) -> Self {
        let ack = packet.flags.contains(TcpFlags::ACK).then_some(packet.ack);
        Self { at, ack, window: packet.window, is_syn: packet.flags.contains(TcpFlags::SYN) }
    }
}

/// The shorter of two response times, as far as both are known.
pub(crate) fn faster(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Turnaround {
    /// Timestamps sent towards the sender, in order, and the last packet with each.
    values: VecDeque<(u32, Feedback)>,
    /// The timestamp that the sender echoed last.
    known: Option<(u32, Feedback)>,
    /// The latest response times.
    answers: [Option<Duration>; ANSWERS],
    count: usize,
    least: Option<Duration>,
    /// Response times with data in flight: the answered ACK triggered the transmission.
    pub(crate) prompt: RoundTrip,
}

impl Turnaround {
    /// Records a packet towards the sender with this timestamp.
    pub(crate) fn passed(&mut self, value: u32, feedback: Feedback) {
        match self.values.back_mut() {
            Some((last, packet)) if *last == value => *packet = feedback,
            // The packet is out of order.
            Some((last, _)) if !timestamps::is_before(*last, value) => {}
            _ => {
                if self.values.len() == VALUES {
                    self.values.pop_front();
                }
                self.values.push_back((value, feedback));
            }
        }
    }

    /// Records a packet of the sender that echoes this timestamp. Returns the response time for the
    /// first echo of it.
    pub(crate) fn echoed(&mut self, now: Instant, echo: u32) -> Option<Duration> {
        // Nearly every echo is of the oldest value.
        let place = match self.values.front() {
            Some((oldest, _)) if !timestamps::is_before(*oldest, echo) => 0,
            _ => self.values.partition_point(|(value, _)| timestamps::is_before(*value, echo)),
        };
        let (_, feedback) = self.values.get(place).filter(|(value, _)| *value == echo)?;
        let feedback = *feedback;
        self.known = Some((echo, feedback));
        // Packets repeat an echo until there is a newer one; only the first gives a response time.
        (0..=place).for_each(|_| _ = self.values.pop_front());
        let took = now.since(feedback.at);
        self.answers[self.count % ANSWERS] = Some(took);
        self.count += 1;
        self.least = faster(self.least, Some(took));
        Some(took)
    }

    /// The packet whose timestamp is `echo`, if that is the sender's latest echo.
    pub(crate) fn known(&self, echo: u32) -> Option<Feedback> {
        self.known.filter(|(value, _)| *value == echo).map(|(_, feedback)| feedback)
    }

    /// The fastest of the latest response times.
    pub(crate) fn fastest(&self) -> Option<Duration> {
        self.answers.iter().flatten().min().copied()
    }

    /// The fastest of all response times.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO.saturating_add(Duration::from_ms(ms))
    }

    fn feedback(ms: u64) -> Feedback {
        Feedback { at: at(ms), ack: Some(SeqNumber::new(ms as u32)), window: 1, is_syn: false }
    }

    #[test]
    fn an_echo_answers_the_last_packet_with_its_value_once() {
        let mut turnaround = Turnaround::default();
        turnaround.passed(7, feedback(0));
        turnaround.passed(7, feedback(3));
        turnaround.passed(8, feedback(4));
        turnaround.echoed(at(10), 7);
        assert_eq!(turnaround.fastest(), Some(Duration::from_ms(7)));
        turnaround.echoed(at(90), 7);
        assert_eq!(turnaround.known(7), Some(feedback(3)));
        turnaround.echoed(at(104), 8);
        assert_eq!((turnaround.fastest(), turnaround.known(7)), (Some(Duration::from_ms(7)), None));
    }

    /// A value per millisecond, as in Linux, over a round trip of 300 ms, across the wrap.
    #[test]
    fn round_trips_of_many_values_are_found() {
        let mut turnaround = Turnaround::default();
        let value = |ms: u64| (u32::MAX - 500).wrapping_add(ms as u32);
        for ms in 0..2_000 {
            turnaround.passed(value(ms), feedback(ms));
            if ms >= 300 {
                assert_eq!(turnaround.echoed(at(ms), value(ms - 300)), Some(Duration::from_ms(300)));
                assert_eq!(turnaround.known(value(ms - 300)), Some(feedback(ms - 300)));
            }
        }
    }
}

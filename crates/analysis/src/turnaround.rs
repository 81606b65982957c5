//! How long a sender takes to answer what passes the capture: the way from here to it and back.
//!
//! By the timestamps of what goes to it (RFC 7323, section 3) and their echoes: the echo of a value answers the last packet that had it,
//! at the earliest. Of the last few answers the fastest counts, since a sender may have nothing to say at once.
//! Cost: at most 32 values remembered.

use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

const VALUES: usize = 32;
const ANSWERS: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Turnaround {
    /// Timestamps that passed towards the sender, and when each was last seen.
    values: VecDeque<(u32, Instant)>,
    answers: VecDeque<Duration>,
}

impl Turnaround {
    /// A packet towards the sender has this timestamp.
    pub(crate) fn passed(&mut self, now: Instant, value: u32) {
        match self.values.back_mut() {
            Some((last, at)) if *last == value => *at = now,
            _ => {
                if self.values.len() == VALUES {
                    self.values.pop_front();
                }
                self.values.push_back((value, now));
            }
        }
    }

    /// A packet of the sender echoes this timestamp.
    pub(crate) fn echoed(&mut self, now: Instant, echo: u32) {
        let Some(place) = self.values.iter().position(|(value, _)| *value == echo) else { return };
        let (_, at) = self.values[place];
        // An echo is told again with each packet until there is a newer one: only its first says anything.
        self.values.drain(..=place);
        if self.answers.len() == ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back(now.since(at));
    }

    /// The fastest of the last answers.
    pub(crate) fn fastest(&self) -> Option<Duration> {
        self.answers.iter().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_answers_the_last_packet_with_its_value_once() {
        let mut turnaround = Turnaround::default();
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_ms(ms));
        turnaround.passed(at(0), 7);
        turnaround.passed(at(3), 7);
        turnaround.passed(at(4), 8);
        turnaround.echoed(at(10), 7);
        assert_eq!(turnaround.fastest(), Some(Duration::from_ms(7)));
        turnaround.echoed(at(90), 7);
        turnaround.echoed(at(104), 8);
        assert_eq!(turnaround.fastest(), Some(Duration::from_ms(7)));
    }
}

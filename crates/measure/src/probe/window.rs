//! Requests that wait for their answers, by number.

use std::collections::{BTreeMap, BTreeSet};

/// Answered requests that are remembered, to recognise second answers.
const REMEMBERED: usize = 4096;

/// The requests of one prober. Numbers grow by one for each.
#[derive(Default, Debug)]
pub(crate) struct Window {
    /// Departures by the clock of the session and by the monotonic one.
    waiting: BTreeMap<u64, (f64, u64)>,
    answered: BTreeSet<u64>,
    next: u64,
}

/// Relation of an answer to the requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Answer {
    /// The first to its request, which was sent at this time.
    First { sent_s: f64, reordered: bool },
    /// A further one.
    Duplicate,
    /// To no request, or to one that was given up.
    Unknown,
}

impl Window {
    /// The number of the request that is sent now.
    pub(crate) fn send(&mut self, now_s: f64, now_ns: u64) -> u64 {
        let number = self.next;
        self.waiting.insert(number, (now_s, now_ns));
        self.next += 1;
        number
    }

    /// The departure of a request that waits, by the monotonic clock.
    pub(crate) fn sent_ns(&self, number: u64) -> Option<u64> {
        self.waiting.get(&number).map(|(_, sent_ns)| *sent_ns)
    }

    /// An answer has come.
    pub(crate) fn answer(&mut self, number: u64) -> Answer {
        match self.waiting.remove(&number) {
            Some((sent_s, _)) => {
                let reordered = self.answered.last().is_some_and(|latest| *latest > number);
                self.answered.insert(number);
                if self.answered.len() > REMEMBERED {
                    self.answered.pop_first();
                }
                Answer::First { sent_s, reordered }
            }
            None if self.answered.contains(&number) => Answer::Duplicate,
            None => Answer::Unknown,
        }
    }

    /// The number whose lowest 16 bits these are: the latest request that has them.
    pub(crate) fn number_of(&self, low: u16) -> Option<u64> {
        let latest = self.next.checked_sub(1)?;
        let candidate = (latest & !0xffff) | u64::from(low);
        if candidate <= latest { Some(candidate) } else { candidate.checked_sub(0x1_0000) }
    }

    /// Takes the requests out that were sent before `before_s`: number and time.
    pub(crate) fn given_up(&mut self, before_s: f64) -> Vec<(u64, f64)> {
        let late: Vec<(u64, f64)> =
            self.waiting.iter().map(|(n, (s, _))| (*n, *s)).take_while(|(_, sent_s)| *sent_s < before_s).collect();
        for (number, _) in &late {
            self.waiting.remove(number);
        }
        late
    }

    /// Whether no request waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_first_late_second_or_of_nobody() {
        let mut window = Window::default();
        for index in 0..4_u32 {
            assert_eq!(window.send(f64::from(index), 7), u64::from(index));
        }
        assert_eq!((window.sent_ns(1), window.sent_ns(4)), (Some(7), None));
        assert_eq!(window.answer(1), Answer::First { sent_s: 1.0, reordered: false });
        assert_eq!(window.answer(0), Answer::First { sent_s: 0.0, reordered: true });
        assert_eq!(window.answer(1), Answer::Duplicate);
        assert_eq!(window.answer(9), Answer::Unknown);
        assert_eq!(window.given_up(3.0), [(2, 2.0)]);
        assert_eq!(window.answer(2), Answer::Unknown, "it was given up");
        assert!(!window.is_empty());
    }

    #[test]
    fn numbers_of_16_bits_go_on_after_their_end() {
        let mut window = Window { next: 0x1_0003, ..Window::default() };
        assert_eq!(window.number_of(2), Some(0x1_0002));
        assert_eq!(window.number_of(0xffff), Some(0xffff));
        window.next = 1;
        assert_eq!(window.number_of(0), Some(0));
        assert_eq!(window.number_of(5), None);
    }
}

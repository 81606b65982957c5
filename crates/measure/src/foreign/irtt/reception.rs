//! Where a probe was lost, by what the server says it has received.

use std::collections::BTreeSet;

use crate::train::Way;

/// Numbers that are remembered behind the newest. Probes are given up long before.
const REMEMBERED: u64 = 4096;

/// Requests that the server has received or has not, as its replies tell.
#[derive(Default, Debug)]
pub(super) struct Reception {
    received: BTreeSet<u64>,
    missing: BTreeSet<u64>,
}

impl Reception {
    /// A reply to `number` with the server's window: a bit for each request from `number` back.
    ///
    /// irtt's server forgets its window when a request is overtaken by a later one. Such a window lacks requests that
    /// the server has answered, and shows nothing missing.
    pub(super) fn note(&mut self, number: u64, window: Option<u64>) {
        self.received.insert(number);
        let Some(window) = window else { return };
        let oldest = number.saturating_sub(63);
        let has = |earlier: u64| window >> (number - earlier) & 1 == 1;
        let is_whole = self.received.range(oldest..=number).all(|&earlier| has(earlier));
        for earlier in oldest..number {
            if has(earlier) {
                self.received.insert(earlier);
            } else if is_whole {
                self.missing.insert(earlier);
            }
        }
        let kept = number.saturating_sub(REMEMBERED);
        for numbers in [&mut self.received, &mut self.missing] {
            *numbers = numbers.split_off(&kept);
        }
    }

    /// The direction in which a request without an answer was lost; `None` where no reply shows it.
    pub(super) fn lost(&self, number: u64) -> Option<Way> {
        if self.received.contains(&number) {
            Some(Way::Down)
        } else {
            self.missing.contains(&number).then_some(Way::Up)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_show_the_direction_of_a_loss() {
        let mut reception = Reception::default();
        reception.note(0, Some(0b1));
        // 4, 3 and 1 and 0 have arrived, 2 has not.
        reception.note(4, Some(0b11011));
        assert_eq!(
            [1, 2, 3, 5].map(|number| reception.lost(number)),
            [Some(Way::Down), Some(Way::Up), Some(Way::Down), None]
        );
    }

    #[test]
    fn a_window_that_was_forgotten_shows_nothing_missing() {
        let mut reception = Reception::default();
        reception.note(5, Some(0b1));
        // 6 came after 7, and the server began anew with 6; 8 has a window without 7.
        reception.note(7, Some(0b101));
        reception.note(6, None);
        reception.note(8, Some(0b101));
        assert_eq!(reception.lost(7), Some(Way::Down));
        assert_eq!(reception.lost(4), Some(Way::Up), "by the window of 7");
        let mut late = Reception::default();
        late.note(7, Some(0b1));
        late.note(9, Some(0b1));
        assert_eq!(late.lost(8), None, "the window of 9 lacks 7");
    }

    #[test]
    fn memory_is_bounded() {
        let mut reception = Reception::default();
        for number in 0..100_000 {
            reception.note(number * 3, Some(0b1001));
        }
        assert!(reception.received.len() + reception.missing.len() < 5000);
    }
}

//! The numbers of a stream that have come, so that the copies of a packet count once.
//!
//! Cost: O(1) a number; a bit for each number from the first missing one on, for at most [`WINDOW`] numbers.

use std::collections::VecDeque;

/// Numbers that are told apart: one this far behind the latest counts as a repetition, as in the
/// window of RFC 6479.
pub const WINDOW: u64 = 65_536;
/// Numbers in a word.
const WORD: u64 = 64;

/// Which numbers have come.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Words before the first of `words`, whose numbers have all come or are too old.
    gone: u64,
    words: VecDeque<u64>,
}

impl Seen {
    /// Notes a number, counted from 0. True if it comes for the first time.
    pub fn is_first(&mut self, number: u64) -> bool {
        let Some(place) = (number / WORD).checked_sub(self.gone) else { return false };
        let bit = 1 << (number % WORD);
        // Far ahead, the oldest are forgotten.
        let place = if place >= WINDOW / WORD { self.forget(place + 1 - WINDOW / WORD, place) } else { place as usize };
        if self.words.len() <= place {
            self.words.resize(place + 1, 0);
        }
        let first = self.words[place] & bit == 0;
        self.words[place] |= bit;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.gone += 1;
        }
        first
    }

    /// Forgets that many words. Returns the new place of the word at `place`.
    fn forget(&mut self, words: u64, place: u64) -> usize {
        let kept = usize::try_from(words).map_or(self.words.len(), |words| words.min(self.words.len()));
        self.words.drain(..kept);
        self.gone += words;
        (place - words) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut seen = Seen::default();
        let new: Vec<u64> = [0, 1, 1, 63, 64, 64, 2, 0, 200, 63].into_iter().filter(|n| seen.is_first(*n)).collect();
        assert_eq!(new, [0, 1, 63, 64, 2, 200]);
    }

    /// In order, a word of numbers at a time is kept.
    #[test]
    fn numbers_in_order_take_no_memory() {
        let mut seen = Seen::default();
        assert!((0..1_000_000).all(|number| seen.is_first(number)));
        assert_eq!((seen.words.len(), seen.gone), (0, 15_625));
        assert!(!seen.is_first(999_999) && seen.is_first(1_000_000));
    }

    #[test]
    fn a_number_beyond_the_window_is_an_old_one() {
        let mut seen = Seen::default();
        assert!(seen.is_first(0) && seen.is_first(u64::MAX) && !seen.is_first(5));
        assert!(seen.is_first(u64::MAX - WINDOW + WORD) && !seen.is_first(u64::MAX - WINDOW - WORD));
        assert!(seen.words.len() as u64 <= WINDOW / WORD);
    }

    proptest! {
        #[test]
        fn it_is_a_set(numbers in prop::collection::vec(0..WINDOW, 0..300)) {
            let (mut seen, mut set) = (Seen::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(seen.is_first(number), set.insert(number));
            }
        }
    }
}

//! An ordered set of small numbers, and round robin over it. `BTreeSet` allocates, and compares numbers one by
//! one; here one instruction finds the next of 64.
//!
//! Cost: one step for each factor of 64 in the capacity, however many numbers are in the set. A
//! capacity up to 64 needs no allocation.

/// Numbers below a fixed capacity, in tiers of 64-bit words: each bit of a tier is one word of the
/// tier below.
#[derive(Clone, Debug)]
pub(super) struct OrderedSet {
    /// The whole set, if the capacity is at most 64.
    word: u64,
    /// The tiers of a larger set, the lowest first. Empty until the first insertion.
    words: Vec<u64>,
    capacity: usize,
}

impl OrderedSet {
    /// An empty set for numbers below `capacity`.
    pub(super) const fn new(capacity: usize) -> Self {
        Self { word: 0, words: Vec::new(), capacity }
    }

    const fn is_one_word(&self) -> bool {
        self.capacity <= 64
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.word == 0 && self.words.last().is_none_or(|top| *top == 0)
    }

    #[inline]
    pub(super) fn insert(&mut self, number: usize) {
        debug_assert!(number < self.capacity, "{number} is beyond a capacity of {}", self.capacity);
        if self.is_one_word() {
            self.word |= 1 << number;
        } else {
            self.insert_in_tiers(number);
        }
    }

    fn insert_in_tiers(&mut self, number: usize) {
        if self.words.is_empty() {
            self.words = vec![0; words_for(self.capacity)];
        }
        let (mut start, mut len, mut index) = (0, self.capacity.div_ceil(64), number);
        loop {
            let word = &mut self.words[start + index / 64];
            let was_empty = *word == 0;
            *word |= 1 << (index % 64);
            if !was_empty || len <= 1 {
                return;
            }
            (start, len, index) = (start + len, len.div_ceil(64), index / 64);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, number: usize) {
        if self.is_one_word() {
            self.word &= !(1 << number);
        } else {
            self.remove_from_tiers(number);
        }
    }

    fn remove_from_tiers(&mut self, number: usize) {
        let (mut start, mut len, mut index) = (0, self.capacity.div_ceil(64), number);
        while let Some(word) = self.words.get_mut(start + index / 64) {
            *word &= !(1 << (index % 64));
            if *word != 0 || len <= 1 {
                return;
            }
            (start, len, index) = (start + len, len.div_ceil(64), index / 64);
        }
    }

    /// The least number that is at least `from`.
    // Inlined: with one word it takes fewer instructions than a call.
    #[inline(always)]
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        if !self.is_one_word() {
            return self.next_in_tiers(from);
        }
        let rest = self.word & u64::MAX.checked_shl(from as u32).unwrap_or(0);
        (rest != 0).then(|| rest.trailing_zeros() as usize)
    }

    fn next_in_tiers(&self, from: usize) -> Option<usize> {
        if from >= self.capacity || self.words.is_empty() {
            return None;
        }
        // Upwards, until a word has a bit at or after the index.
        let (mut start, mut len, mut index) = (0, self.capacity.div_ceil(64), from);
        let mut tiers = [0; 4];
        let mut height = 0;
        let mut found = loop {
            if index / 64 < len {
                let rest = self.words[start + index / 64] & (u64::MAX << (index % 64));
                if rest != 0 {
                    break index / 64 * 64 + rest.trailing_zeros() as usize;
                }
            }
            if len <= 1 {
                return None;
            }
            tiers[height] = start;
            height += 1;
            (start, len, index) = (start + len, len.div_ceil(64), index / 64 + 1);
        };
        // Downwards, to the least number below that bit.
        while height > 0 {
            height -= 1;
            found = found * 64 + self.words[tiers[height] + found].trailing_zeros() as usize;
        }
        Some(found)
    }
}

fn words_for(capacity: usize) -> usize {
    let mut len = capacity.div_ceil(64);
    let mut sum = len;
    while len > 1 {
        len = len.div_ceil(64);
        sum += len;
    }
    sum
}

/// Members that take turns in the order of their numbers.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    pub(super) members: OrderedSet,
    /// The first member from this number on has the turn.
    from: usize,
}

impl RoundRobin {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { members: OrderedSet::new(capacity), from: 0 }
    }

    /// The member that has the turn. `None`: the round is over, and the next begins.
    #[inline]
    pub(super) fn current(&mut self) -> Option<usize> {
        let current = self.members.next(self.from);
        if current.is_none() {
            self.from = 0;
        }
        current
    }

    /// Ends the turn of `member`.
    pub(super) const fn end_turn(&mut self, member: usize) {
        self.from = member + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with the standard library, at capacities of one, two and three tiers.
        #[test]
        fn a_set_is_a_set(
            capacity in prop_oneof![1..130_usize, 4000..5000_usize, 60_000..66_000_usize],
            steps in prop::collection::vec((any::<u16>(), 0..3_u8), 1..300),
        ) {
            let (mut set, mut model) = (OrderedSet::new(capacity), BTreeSet::new());
            for (number, step) in steps {
                let number = usize::from(number) % capacity;
                match step {
                    0 => {
                        set.insert(number);
                        model.insert(number);
                    }
                    1 => {
                        set.remove(number);
                        model.remove(&number);
                    }
                    _ => {
                        if let Some(least) = model.pop_first() {
                            set.remove(least);
                        }
                    }
                }
                prop_assert_eq!(set.is_empty(), model.is_empty());
                for from in [0, number, number + 1, capacity] {
                    prop_assert_eq!(set.next(from), model.range(from..).next().copied());
                }
            }
        }
    }

    #[test]
    fn members_take_turns_and_a_round_has_an_end() {
        let mut turns = RoundRobin::new(10);
        for member in [7, 2, 5] {
            turns.members.insert(member);
        }
        let mut seen = Vec::new();
        for _ in 0..8 {
            let current = turns.current();
            seen.push(current);
            if let Some(member) = current {
                turns.end_turn(member);
            }
        }
        let round = [Some(2), Some(5), Some(7), None];
        assert_eq!(seen, [round, round].concat());
    }
}

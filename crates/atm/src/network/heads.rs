//! Which input of a stage has something first.
//!
//! A ring, sorted by time. Who has just been served comes again one spacing later, and where inputs have the same spacing that is
//! behind all others: then nothing is moved, however many there are. Where it is not, the shorter side is moved.
//! Cost: a comparison, or a logarithm and a move of at most half the inputs that hold something.

/// The picosecond in which an input has something, and which.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Head {
    pub(super) ps: u64,
    pub(super) input: u32,
}

const NOTHING: Head = Head { ps: u64::MAX, input: u32::MAX };

/// Inputs that hold something. Of equal picoseconds, that of the least number is first.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// Its length is a power of two, or none.
    ring: Vec<Head>,
    start: usize,
    len: usize,
}

impl Heads {
    #[inline]
    pub(super) fn first(&self) -> Option<Head> {
        (self.len > 0).then(|| self.at(0))
    }

    #[inline]
    pub(super) fn second(&self) -> Option<Head> {
        (self.len > 1).then(|| self.at(1))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// In the order of their times, from 0.
    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<Head> {
        (self.len > place).then(|| self.at(place))
    }

    /// An input has something.
    pub(super) fn add(&mut self, head: Head) {
        if self.len == self.ring.len() {
            self.grow();
        }
        self.start = self.start.wrapping_sub(1) & (self.ring.len() - 1);
        self.len += 1;
        self.settle(head);
    }

    /// The first input has nothing more.
    #[inline]
    pub(super) fn remove_first(&mut self) {
        self.start = (self.start + 1) & (self.ring.len() - 1);
        self.len -= 1;
    }

    /// The first input has something later.
    #[inline]
    pub(super) fn replace_first(&mut self, ps: u64) {
        let head = Head { ps, input: self.at(0).input };
        let last = self.at(self.len - 1);
        if head > last {
            self.start = (self.start + 1) & (self.ring.len() - 1);
            self.put(self.len - 1, head);
        } else {
            self.settle(head);
        }
    }

    /// Finds the place of `head`, that of the first being free and the others sorted.
    fn settle(&mut self, head: Head) {
        let (mut low, mut high) = (1, self.len);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.at(middle) < head { low = middle + 1 } else { high = middle }
        }
        // `low - 1` others stand before it.
        if low <= self.len / 2 {
            for place in 1..low {
                self.put(place - 1, self.at(place));
            }
        } else {
            self.start = (self.start + 1) & (self.ring.len() - 1);
            for place in (low - 1..self.len - 1).rev() {
                self.put(place + 1, self.at(place));
            }
        }
        self.put(low - 1, head);
    }

    #[inline]
    fn at(&self, place: usize) -> Head {
        self.ring.get((self.start + place) & (self.ring.len() - 1)).copied().unwrap_or(NOTHING)
    }

    #[inline]
    fn put(&mut self, place: usize, head: Head) {
        let place = (self.start + place) & (self.ring.len() - 1);
        self.ring[place] = head;
    }

    #[cold]
    fn grow(&mut self) {
        self.ring.rotate_left(self.start);
        self.start = 0;
        self.ring.resize((self.ring.len() * 2).max(4), NOTHING);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_always_the_earliest(steps in prop::collection::vec((0_u64..40, 0_u8..4), 1..300)) {
            let mut heads = Heads::default();
            let mut model: Vec<Head> = Vec::new();
            for (number, (ps, what)) in steps.into_iter().enumerate() {
                model.sort_unstable();
                match (what, model.first().copied()) {
                    (0, Some(_)) => {
                        heads.remove_first();
                        model.remove(0);
                    }
                    (1 | 2, Some(first)) => {
                        heads.replace_first(first.ps + ps);
                        model[0].ps += ps;
                    }
                    _ => {
                        let head = Head { ps: ps * 7, input: number as u32 };
                        heads.add(head);
                        model.push(head);
                    }
                }
                model.sort_unstable();
                prop_assert_eq!((heads.first(), heads.second()), (model.first().copied(), model.get(1).copied()));
            }
        }
    }
}

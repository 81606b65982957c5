//! Queues of a port in which something waits, by whose turn comes first.
//!
//! A binary heap of a level, a tag and a queue each, in one number: whose turn has come mostly stays in it with a later tag, so it
//! sinks from the top instead of being taken out and put in again.
//! Cost: a logarithm of the queues in which something waits.

/// Whose turn, in the order in which turns come: a lower level, then a lower tag, then a queue that stands before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Turn(u128);

impl Turn {
    #[inline]
    pub(super) const fn new(level: u16, tag: u64, queue: u16) -> Self {
        Self((level as u128) << 80 | (tag as u128) << 16 | queue as u128)
    }

    #[inline]
    pub(super) const fn level(self) -> u16 {
        (self.0 >> 80) as u16
    }

    #[inline]
    pub(super) const fn tag(self) -> u64 {
        (self.0 >> 16) as u64
    }

    #[inline]
    pub(super) const fn queue(self) -> u16 {
        self.0 as u16
    }
}

/// A turn of each queue in which something waits.
#[derive(Debug, Default)]
pub(super) struct Turns(Vec<Turn>);

impl Turns {
    #[inline]
    pub(super) fn first(&self) -> Option<Turn> {
        self.0.first().copied()
    }

    /// Whose turn comes behind the first.
    #[inline]
    pub(super) fn second(&self) -> Option<Turn> {
        match self.0[..] {
            [_, one, other, ..] => Some(one.min(other)),
            [_, one] => Some(one),
            _ => None,
        }
    }

    /// All of them, if they are two.
    #[inline]
    pub(super) fn pair(&self) -> Option<[Turn; 2]> {
        <[Turn; 2]>::try_from(&self.0[..]).ok()
    }

    /// These are all from now on.
    pub(super) fn replace_all(&mut self, turns: impl Iterator<Item = Turn>) {
        self.0.clear();
        turns.for_each(|turn| self.add(turn));
    }

    /// In no order.
    pub(super) fn all(&self) -> &[Turn] {
        &self.0
    }

    pub(super) fn add(&mut self, turn: Turn) {
        let mut at = self.0.len();
        self.0.push(turn);
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.0[parent] <= turn {
                break;
            }
            self.0[at] = self.0[parent];
            at = parent;
        }
        self.0[at] = turn;
    }

    /// The first has this turn next.
    #[inline]
    pub(super) fn replace_first(&mut self, turn: Turn) {
        let turns = &mut self.0[..];
        if let [first, other] = turns {
            (*first, *other) = if turn < *other { (turn, *other) } else { (*other, turn) };
            return;
        }
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < turns.len() && turns[child + 1] < turns[child] {
                child += 1;
            }
            if child >= turns.len() || turn <= turns[child] {
                break;
            }
            turns[at] = turns[child];
            at = child;
        }
        turns[at] = turn;
    }

    /// The first has no turn any more.
    pub(super) fn remove_first(&mut self) {
        if let Some(last) = self.0.pop()
            && !self.0.is_empty()
        {
            self.replace_first(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_what_it_was_made_of_and_levels_come_before_tags() {
        let turn = Turn::new(3, u64::MAX - 1, u16::MAX);
        assert_eq!((turn.level(), turn.tag(), turn.queue()), (3, u64::MAX - 1, u16::MAX));
        assert!(Turn::new(0, u64::MAX, 9) < Turn::new(1, 0, 0));
        assert!(Turn::new(1, 5, 0) < Turn::new(1, 5, 1));
    }

    #[test]
    fn turns_come_in_order() {
        let mut turns = Turns::default();
        for tag in [5, 3, 9, 1, 7, 2] {
            turns.add(Turn::new(0, tag, tag as u16));
        }
        turns.replace_first(Turn::new(0, 6, 1));
        assert_eq!(turns.pair(), None);
        let order = std::iter::from_fn(|| {
            let first = turns.first()?;
            let second = turns.second();
            turns.remove_first();
            assert_eq!(turns.first(), second);
            Some(first.tag())
        });
        assert_eq!(order.collect::<Vec<_>>(), [2, 3, 5, 6, 7, 9]);
        let [late, early] = [8, 4].map(|tag| Turn::new(0, tag, 0));
        turns.replace_all([late, early].into_iter());
        assert_eq!(turns.pair(), Some([early, late]));
    }
}

//! Times of many things, and the earliest of them.
//!
//! A tournament: leaves in pairs, above each pair the earlier of both, and so on to the top.
//! Cost: to look at the top nothing; to change a time, or to find the first that is due, a logarithm.

/// Times in picoseconds, `u64::MAX` for never.
#[derive(Debug)]
pub(super) struct Earliest {
    /// From 1 on, the children of n at 2n and 2n + 1; leaves from `leaves` on.
    nodes: Vec<u64>,
    leaves: usize,
}

impl Earliest {
    /// Times of `count` things, all never.
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        Self { nodes: vec![u64::MAX; 2 * leaves], leaves }
    }

    /// The earliest time.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.nodes[1]
    }

    /// Of the things from `from` on the first whose time is `by` or before, and not never.
    #[inline]
    pub(super) fn due(&self, by: u64, from: usize) -> Option<usize> {
        if from >= self.leaves {
            return None;
        }
        let by = by.min(u64::MAX - 1);
        let mut node = self.leaves + from;
        while self.nodes[node] > by {
            // Up to where something stands to the right.
            while node & 1 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.nodes[node] > by);
        }
        Some(node - self.leaves)
    }

    pub(super) fn set(&mut self, index: usize, ps: u64) {
        let mut node = self.leaves + index;
        self.nodes[node] = ps;
        while node > 1 {
            let earlier = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == earlier {
                return;
            }
            self.nodes[node] = earlier;
        }
    }

    /// Has something to do at `ps` already.
    #[inline]
    pub(super) fn lower(&mut self, index: usize, ps: u64) {
        if ps < self.nodes[self.leaves + index] {
            self.set(index, ps);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_due_comes_in_order(
            count in 1_usize..20,
            steps in prop::collection::vec((0_usize..20, prop_oneof![Just(u64::MAX), 0_u64..9], 0_u64..9), 1..60),
        ) {
            let mut earliest = Earliest::new(count);
            let mut model = vec![u64::MAX; count];
            for (index, ps, by) in steps {
                let index = index % count;
                if ps == 3 {
                    earliest.lower(index, ps);
                    model[index] = model[index].min(ps);
                } else {
                    earliest.set(index, ps);
                    model[index] = ps;
                }
                prop_assert_eq!(Some(earliest.first()), model.iter().copied().min());
                for from in 0..=count {
                    let due = (from..count).find(|index| model[*index] <= by);
                    prop_assert_eq!(earliest.due(by, from), due);
                }
            }
        }
    }
}

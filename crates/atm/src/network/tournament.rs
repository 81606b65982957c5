//! Times of many things, and the earliest of them.
//!
//! Leaves form pairs; the node above a pair has the earlier time of both, up to the root. `BinaryHeap` can neither
//! change the time of a thing nor find the first due thing by index.
//!
//! Cost: none to read the earliest time; a logarithm to set a time or to find the first that is due.

use lastmile_units::Instant;

/// A time for each of several things. `None` is never.
#[derive(Debug)]
pub(crate) struct Tournament {
    /// From 1: the children of n are 2n and 2n + 1, and leaves start at `leaves`.
    nodes: Vec<Option<Instant>>,
    leaves: usize,
}

/// The earlier of two times.
#[inline]
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

impl Tournament {
    /// `count` things, never.
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        Self { nodes: vec![None; 2 * leaves], leaves }
    }

    /// The earliest time.
    #[inline]
    pub(crate) fn first(&self) -> Option<Instant> {
        self.nodes[1]
    }

    /// The first thing, from index `from`, whose time is `by` or earlier.
    #[inline]
    pub(crate) fn due(&self, by: Instant, from: usize) -> Option<usize> {
        let is_due = |node: usize| self.nodes[node].is_some_and(|at| at <= by);
        let mut node = self.leaves + from;
        if from >= self.leaves {
            return None;
        }
        while !is_due(node) {
            // Up to the first ancestor that is a left child, and over to its sibling.
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
            node += usize::from(!is_due(node));
        }
        Some(node - self.leaves)
    }

    pub(crate) fn set(&mut self, index: usize, at: Option<Instant>) {
        let mut node = self.leaves + index;
        self.nodes[node] = at;
        while node > 1 {
            let first = earlier(self.nodes[node], self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == first {
                return;
            }
            self.nodes[node] = first;
        }
    }

    /// Sets a time to `at`, unless it is earlier already.
    #[inline]
    pub(crate) fn lower(&mut self, index: usize, at: Instant) {
        if self.nodes[self.leaves + index].is_none_or(|other| at < other) {
            self.set(index, Some(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_that_is_due_is_found_from_any_index(
            count in 1_usize..20,
            steps in prop::collection::vec((0_usize..20, prop::option::of(0_u64..9), 0_u64..9), 1..60),
        ) {
            let mut tournament = Tournament::new(count);
            let mut model = vec![None; count];
            for (index, ps, by) in steps {
                let (index, at, by) = (index % count, ps.map(Instant::from_ps), Instant::from_ps(by));
                match at {
                    Some(at) if ps == Some(3) => {
                        tournament.lower(index, at);
                        model[index] = earlier(model[index], Some(at));
                    }
                    _ => {
                        tournament.set(index, at);
                        model[index] = at;
                    }
                }
                prop_assert_eq!(tournament.first(), model.iter().flatten().min().copied());
                for from in 0..=count {
                    let due = (from..count).find(|index| model[*index].is_some_and(|at| at <= by));
                    prop_assert_eq!(tournament.due(by, from), due);
                }
            }
        }
    }
}

//! The largest value of a sliding window of time, from three candidates.
//!
//! Published: K. Nichols's windowed filter, as in Linux's `lib/minmax.c`.
//!
//! The best value of the window, the best since that one, and the best since the second are kept. When the best grows
//! older than the window, the second takes its place. A candidate is renewed after a quarter and after half of the
//! window, so that the value that follows is recent.
//! Cost: a few comparisons for each value; 48 bytes.

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Candidate<V> {
    at: u64,
    value: V,
}

/// The largest value of the last `window` rounds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct WindowedMax<V> {
    best: [Candidate<V>; 3],
}

impl<V: Copy + PartialOrd> WindowedMax<V> {
    pub(super) fn get(&self) -> V {
        self.best[0].value
    }

    /// A value at round `at`, which never falls.
    pub(super) fn update(&mut self, window: u64, at: u64, value: V) {
        let new = Candidate { at, value };
        if value >= self.best[0].value || at - self.best[2].at > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        self.expire(window, new);
    }

    fn expire(&mut self, window: u64, new: Candidate<V>) {
        let age = new.at - self.best[0].at;
        if age > window {
            self.best = [self.best[1], self.best[2], new];
            if new.at - self.best[0].at > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].at == self.best[0].at && age > window / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].at == self.best[1].at && age > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_maximum_lasts_for_the_window() {
        let mut max = WindowedMax::<u64>::default();
        max.update(10, 1, 100);
        for round in 2..=11 {
            max.update(10, round, 50);
            assert_eq!(max.get(), 100, "round {round}");
        }
        max.update(10, 12, 50);
        assert_eq!(max.get(), 50);
    }

    proptest! {
        /// The value is one of the window, at least the newest, and at most the true maximum of the window.
        #[test]
        fn the_value_is_of_the_window(values in proptest::collection::vec((0_u64..4, 1_u64..1000), 1..200)) {
            let mut max = WindowedMax::<u64>::default();
            let (mut at, mut seen) = (0, Vec::new());
            for (step, value) in values {
                at += step;
                max.update(10, at, value);
                seen.push((at, value));
                let recent = || seen.iter().filter(|(then, _)| at - then <= 10).map(|&(_, value)| value);
                let most = recent().max().expect("the newest");
                prop_assert!(recent().any(|value| value == max.get()));
                prop_assert!(max.get() >= value && max.get() <= most);
            }
        }
    }
}

//! Runs of consecutive packets that were not played, by their numbers.
//!
//! Packets that others overtake arrive later than they are skipped. So a packet is judged once [`WINDOW`] later ones
//! are known.
//!
//! Cost: O(1) a packet; memory only while a packet is missing, at most a byte for each of [`WINDOW`] packets.

use std::collections::VecDeque;

/// The packets that may overtake one.
const WINDOW: usize = 1_024;

#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// For each of the latest packets, from the first that was not played: whether it was.
    pending: VecDeque<bool>,
    in_run: bool,
    /// Number of runs.
    runs: u64,
    /// Packets in them.
    packets: u64,
}

impl Runs {
    /// The next packet was played.
    pub(crate) fn play(&mut self) {
        self.pending.push_back(true);
        self.settle(WINDOW);
    }

    /// The next packets, this many, were not played.
    pub(crate) fn skip(&mut self, packets: u64) {
        let Some(few) = usize::try_from(packets).ok().filter(|packets| *packets <= WINDOW) else {
            self.settle(0);
            self.count(packets);
            return;
        };
        self.pending.extend(std::iter::repeat_n(false, few));
        self.settle(WINDOW);
    }

    /// The packet that was skipped as the last but `later` was played after all.
    pub(crate) fn play_late(&mut self, later: u64) {
        let place = usize::try_from(later).ok().and_then(|later| self.pending.len().checked_sub(later + 1));
        if let Some(place) = place {
            self.pending[place] = true;
            self.settle(WINDOW);
        }
    }

    /// The runs and the packets in them, at the end.
    pub(crate) fn finish(mut self) -> (u64, u64) {
        self.settle(0);
        (self.runs, self.packets)
    }

    /// Counts the first packets until one is not played, and until at most `most` wait.
    fn settle(&mut self, most: usize) {
        while self.pending.front() == Some(&true) || self.pending.len() > most {
            match self.pending.pop_front() {
                Some(false) => self.count(1),
                _ => self.in_run = false,
            }
        }
    }

    fn count(&mut self, packets: u64) {
        self.runs += u64::from(!self.in_run);
        self.packets += packets;
        self.in_run = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of packets 0 to 9 these come too late or never: 2, 3 and 6. 4 and 8 are overtaken.
    #[test]
    fn packets_that_are_overtaken_divide_no_run_and_are_none() {
        let mut runs = Runs::default();
        runs.play();
        runs.play();
        runs.skip(3);
        runs.play();
        runs.play_late(1);
        runs.skip(1);
        runs.play();
        runs.skip(1);
        runs.play();
        runs.play_late(1);
        assert_eq!(runs.finish(), (2, 3));
    }

    #[test]
    fn a_long_gap_is_a_run_and_no_memory() {
        let mut runs = Runs::default();
        runs.skip(u64::MAX / 2);
        runs.skip(3);
        assert!(runs.pending.len() <= 3);
        runs.play();
        for _ in 0..3 * WINDOW {
            runs.skip(1);
            runs.play();
        }
        assert!(runs.pending.len() <= WINDOW);
        runs.play_late(10 * WINDOW as u64);
        assert_eq!(runs.finish(), (1 + 3 * WINDOW as u64, u64::MAX / 2 + 3 + 3 * WINDOW as u64));
    }
}

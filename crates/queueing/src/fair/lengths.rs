//! Finds the longest of many queues in constant time.
//!
//! Queues of one length are linked to each other, as in `net/sched/sch_sfq.c` of Linux. A queue
//! that grows or shrinks by a packet moves to a neighbouring list. Cost: O(1) a packet.

/// Queues, linked by the number of their packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    /// By length, the queue that reached it last.
    newest: Vec<Option<u32>>,
    /// By queue, its neighbours of equal length: the one that reached it later, and the one that
    /// reached it earlier.
    links: Vec<(Option<u32>, Option<u32>)>,
    longest: usize,
}

impl Lengths {
    /// The length of `queue` changed from `from` to `to`, by one packet.
    pub(crate) fn moved(&mut self, queue: u32, from: u32, to: u32) {
        debug_assert_eq!(from.abs_diff(to), 1, "queues change by a packet");
        if self.links.len() <= queue as usize {
            self.links.resize(queue as usize + 1, (None, None));
        }
        if from > 0 {
            self.unlink(queue, from as usize);
        }
        if to > 0 {
            self.link(queue, to as usize);
        }
        self.longest = self.longest.max(to as usize);
        if self.newest.get(self.longest).is_none_or(Option::is_none) {
            // The queue that shrank was the only one of this length, and stays the longest.
            self.longest = to as usize;
        }
    }

    fn unlink(&mut self, queue: u32, length: usize) {
        let (later, earlier) = self.links[queue as usize];
        match later {
            Some(later) => self.links[later as usize].1 = earlier,
            None => self.newest[length] = earlier,
        }
        if let Some(earlier) = earlier {
            self.links[earlier as usize].0 = later;
        }
    }

    fn link(&mut self, queue: u32, length: usize) {
        if self.newest.len() <= length {
            self.newest.resize(length + 1, None);
        }
        let earlier = self.newest[length].replace(queue);
        self.links[queue as usize] = (None, earlier);
        if let Some(earlier) = earlier {
            self.links[earlier as usize].0 = Some(queue);
        }
    }

    /// The longest queue; of several the one that reached its length last.
    pub(crate) fn longest(&self) -> Option<u32> {
        self.newest.get(self.longest).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a search of all queues.
        #[test]
        fn the_longest_queue_is_known(steps in prop::collection::vec((0..5_u32, any::<bool>()), 0..200)) {
            let mut lengths = Lengths::default();
            let mut model = [(0_u32, 0); 5];
            for (time, (queue, grows)) in steps.into_iter().enumerate() {
                let (length, changed) = &mut model[queue as usize];
                if !grows && *length == 0 {
                    continue;
                }
                let to = if grows { *length + 1 } else { *length - 1 };
                lengths.moved(queue, *length, to);
                (*length, *changed) = (to, time);
                let longest = (0..).zip(&model).filter(|(_, (length, _))| *length > 0).max_by_key(|(_, state)| **state);
                prop_assert_eq!(lengths.longest(), longest.map(|(queue, _)| queue));
            }
        }
    }
}

//! The arrivals of upstream trains.

use std::time::Instant;

/// The arrivals of upstream trains.
#[derive(Debug)]
pub(super) struct Receiving {
    /// The number of each train, and the arrivals of its packets.
    pub(super) trains: Vec<(u32, Vec<Option<u64>>)>,
    pub(super) missing: usize,
    pub(super) latest: Instant,
}

impl Receiving {
    /// Trains of these numbers and counts.
    pub(super) fn new(trains: impl IntoIterator<Item = (u32, usize)>) -> Self {
        let trains: Vec<_> = trains.into_iter().map(|(number, count)| (number, vec![None; count])).collect();
        let missing = trains.iter().map(|(_, arrivals)| arrivals.len()).sum();
        Self { trains, missing, latest: Instant::now() }
    }

    /// Packets that have not arrived.
    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// Notes a packet; `None` for one of no train.
    pub(super) fn arrived(&mut self, train: u32, index: u32, at_ns: u64) -> Option<()> {
        let (_, arrivals) = self.trains.iter_mut().find(|(number, _)| *number == train)?;
        let arrival = arrivals.get_mut(index as usize)?;
        if arrival.is_none() {
            *arrival = Some(at_ns);
            self.missing -= 1;
        }
        self.latest = Instant::now();
        Some(())
    }
}

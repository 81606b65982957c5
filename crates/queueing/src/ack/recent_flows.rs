//! State of recently seen flows, within bounds and by a rule that is equal in every run.

use core::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use lastmile_packet::FlowId;
use lastmile_units::{Duration, Instant};

use super::flow_map::FlowHasher;

/// State by flow, forgotten when the flow has been silent for some time.
///
/// There are two generations. Every look-up moves the entry into the young one; when that is old
/// enough or full, it replaces the old one, which is discarded. A look-up is therefore O(1), and at
/// most twice [`RecentFlows::CAPACITY`] flows are remembered: if there are more, those silent for longest
/// are forgotten first, to within a generation.
#[derive(Debug)]
pub(super) struct RecentFlows<T, K = FlowId, S = BuildHasherDefault<FlowHasher>> {
    young: HashMap<K, Seen<T>, S>,
    old: HashMap<K, Seen<T>, S>,
    /// When the young generation began.
    since: Instant,
    idle: Duration,
}

#[derive(Debug)]
struct Seen<T> {
    at: Instant,
    state: T,
}

impl<T> RecentFlows<T> {
    /// Remembers a flow until it has been silent for `idle`.
    pub(super) fn new(idle: Duration) -> Self {
        Self::with_hasher(idle, &BuildHasherDefault::default())
    }
}

impl<T, K: Eq + Hash, S: BuildHasher + Clone> RecentFlows<T, K, S> {
    /// Maximum number of flows in a generation.
    const CAPACITY: usize = 1 << 16;

    /// As [`RecentFlows::new`], with a hasher for keys that strangers choose.
    pub(super) fn with_hasher(idle: Duration, hasher: &S) -> Self {
        let empty = || HashMap::with_hasher(hasher.clone());
        Self { young: empty(), old: empty(), since: Instant::ZERO, idle }
    }

    /// The state of a flow. Does not count as seeing the flow.
    pub(super) fn get(&self, now: Instant, flow: &K) -> Option<&T> {
        let seen = self.young.get(flow).or_else(|| self.old.get(flow))?;
        (now.since(seen.at) < self.idle).then_some(&seen.state)
    }

    /// The state of a flow, however old. Does not count as seeing the flow.
    pub(super) fn get_mut(&mut self, flow: &K) -> Option<&mut T> {
        let seen = match self.young.get_mut(flow) {
            Some(seen) => seen,
            None => self.old.get_mut(flow)?,
        };
        Some(&mut seen.state)
    }

    /// Replaces the state of a flow.
    pub(super) fn insert(&mut self, now: Instant, flow: K, state: T) {
        self.forget(&flow);
        self.get_or_create(now, flow, || state);
    }

    pub(super) fn forget(&mut self, flow: &K) {
        self.young.remove(flow);
        self.old.remove(flow);
    }

    /// The state of a flow that is seen now; `make` creates it if there is none.
    pub(super) fn get_or_create(&mut self, now: Instant, flow: K, make: impl FnOnce() -> T) -> &mut T {
        if now.since(self.since) >= self.idle || self.young.len() >= Self::CAPACITY {
            let empty = HashMap::with_hasher(self.young.hasher().clone());
            self.old = std::mem::replace(&mut self.young, empty);
            self.since = now;
        }
        let known = match self.young.remove(&flow) {
            Some(seen) => Some(seen),
            None => self.old.remove(&flow),
        };
        let known = known.filter(|seen| now.since(seen.at) < self.idle);
        let state = known.map_or_else(make, |seen| seen.state);
        match self.young.entry(flow) {
            Entry::Occupied(_) => unreachable!("it was taken out just now"),
            Entry::Vacant(entry) => &mut entry.insert(Seen { at: now, state }).state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn recent() -> RecentFlows<u32> {
        RecentFlows::new(Duration::from_ms(100))
    }

    #[test]
    fn a_flow_is_forgotten_when_it_has_been_silent_for_as_long_and_not_before() {
        let mut recent = recent();
        let flow = FlowId::new(1);
        assert_eq!(recent.get_or_create(at(0), flow, || 7), &mut 7);
        assert_eq!(recent.get_or_create(at(99), flow, || 8), &mut 7);
        assert_eq!(recent.get_or_create(at(198), flow, || 8), &mut 7);
        assert_eq!(recent.get_or_create(at(298), flow, || 9), &mut 9);
    }

    /// Three flows in turn, each every 30 ms: none is silent for 100 ms, however often the
    /// generations change.
    #[test]
    fn flows_seen_in_turn_are_all_remembered() {
        let mut recent = recent();
        for n in 0..300 {
            let flow = n % 3;
            let known = *recent.get_or_create(at(10 * u64::from(n)), FlowId::new(flow), || n);
            assert_eq!(known, flow, "state was made when it was first heard of");
        }
    }

    #[test]
    fn silent_flows_are_discarded() {
        let mut recent = recent();
        for n in 0..10_000 {
            recent.get_or_create(at(u64::from(n)), FlowId::new(n), || n);
        }
        assert!(recent.young.len() + recent.old.len() <= 200);
    }

    #[test]
    fn an_insertion_replaces_the_state() {
        let mut recent = recent();
        let flow = FlowId::new(1);
        recent.insert(at(0), flow, 7);
        // Another generation begins.
        recent.insert(at(150), FlowId::new(2), 0);
        recent.insert(at(160), flow, 8);
        assert_eq!(recent.get(at(170), &flow), Some(&8));
        assert_eq!(recent.get_mut(&flow), Some(&mut 8));
        recent.forget(&flow);
        assert_eq!(recent.get_mut(&flow), None);
    }

    #[test]
    fn no_more_than_two_generations_are_remembered() {
        let mut recent = recent();
        for n in 0..200_000 {
            recent.get_or_create(at(0), FlowId::new(n), || n);
        }
        assert!(recent.young.len() + recent.old.len() <= 2 * RecentFlows::<u32>::CAPACITY);
        assert_eq!(recent.get_or_create(at(1), FlowId::new(199_999), || 0), &mut 199_999);
        assert_eq!(recent.get_or_create(at(1), FlowId::new(0), || 5), &mut 5);
    }
}

//! What is remembered of flows that were heard of lately, within bounds and by a rule that is the same in every run.

use core::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use lastmile_packet::FlowId;
use lastmile_units::{Duration, Instant};

use super::flow_map::FlowHasher;

/// Something by flow, forgotten when the flow has been silent for some time.
///
/// There are two generations. Whatever is looked up is in the young one; when that is old enough or full, it takes the place
/// of the old one, which goes. So a look-up is O(1), and no more than twice [`Recent::MOST`] flows are remembered: where
/// there are more, those not heard of for longest go first, give or take a generation.
#[derive(Debug)]
pub(super) struct Recent<T, K = FlowId, S = BuildHasherDefault<FlowHasher>> {
    young: HashMap<K, Seen<T>, S>,
    old: HashMap<K, Seen<T>, S>,
    /// When the young generation began.
    since: Instant,
    idle: Duration,
}

#[derive(Debug)]
struct Seen<T> {
    at: Instant,
    what: T,
}

impl<T> Recent<T> {
    /// Remembers a flow until it has been silent for `idle`.
    pub(super) fn new(idle: Duration) -> Self {
        Self::with_hasher(idle, &BuildHasherDefault::default())
    }
}

impl<T, K: Eq + Hash, S: BuildHasher + Clone> Recent<T, K, S> {
    /// Flows in a generation.
    const MOST: usize = 1 << 16;

    /// The same for flows that strangers name.
    pub(super) fn with_hasher(idle: Duration, hasher: &S) -> Self {
        let empty = || HashMap::with_hasher(hasher.clone());
        Self { young: empty(), old: empty(), since: Instant::ZERO, idle }
    }

    /// What is known of a flow; no sign of life.
    pub(super) fn get(&self, now: Instant, flow: &K) -> Option<&T> {
        let seen = self.young.get(flow).or_else(|| self.old.get(flow))?;
        (now.since(seen.at) < self.idle).then_some(&seen.what)
    }

    /// What is known of a flow, however long ago; no sign of life.
    pub(super) fn get_mut(&mut self, flow: &K) -> Option<&mut T> {
        let seen = match self.young.get_mut(flow) {
            Some(seen) => seen,
            None => self.old.get_mut(flow)?,
        };
        Some(&mut seen.what)
    }

    /// Remembers this of a flow, in place of what was known of it.
    pub(super) fn put(&mut self, now: Instant, flow: K, what: T) {
        self.forget(&flow);
        self.hear(now, flow, || what);
    }

    pub(super) fn forget(&mut self, flow: &K) {
        self.young.remove(flow);
        self.old.remove(flow);
    }

    /// What is known of a flow that is heard of now; made if there is nothing.
    pub(super) fn hear(&mut self, now: Instant, flow: K, make: impl FnOnce() -> T) -> &mut T {
        if now.since(self.since) >= self.idle || self.young.len() >= Self::MOST {
            let empty = HashMap::with_hasher(self.young.hasher().clone());
            self.old = std::mem::replace(&mut self.young, empty);
            self.since = now;
        }
        let known = match self.young.remove(&flow) {
            Some(seen) => Some(seen),
            None => self.old.remove(&flow),
        };
        let known = known.filter(|seen| now.since(seen.at) < self.idle);
        let what = known.map_or_else(make, |seen| seen.what);
        match self.young.entry(flow) {
            Entry::Occupied(_) => unreachable!("it was taken out just now"),
            Entry::Vacant(place) => &mut place.insert(Seen { at: now, what }).what,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn recent() -> Recent<u32> {
        Recent::new(Duration::from_ms(100))
    }

    #[test]
    fn a_flow_is_forgotten_when_it_has_been_silent_for_as_long_and_not_before() {
        let mut recent = recent();
        let flow = FlowId::new(1);
        assert_eq!(recent.hear(at(0), flow, || 7), &mut 7);
        assert_eq!(recent.hear(at(99), flow, || 8), &mut 7);
        assert_eq!(recent.hear(at(198), flow, || 8), &mut 7);
        assert_eq!(recent.hear(at(298), flow, || 9), &mut 9);
    }

    /// Three flows in turn, each every 30 ms: none is silent for 100 ms, however often the generations change.
    #[test]
    fn flows_that_are_heard_of_in_turn_are_all_remembered() {
        let mut recent = recent();
        for n in 0..300 {
            let flow = n % 3;
            let known = *recent.hear(at(10 * u64::from(n)), FlowId::new(flow), || n);
            assert_eq!(known, flow, "what was made when it was first heard of");
        }
    }

    #[test]
    fn what_is_not_heard_of_again_does_not_stay() {
        let mut recent = recent();
        for n in 0..10_000 {
            recent.hear(at(u64::from(n)), FlowId::new(n), || n);
        }
        assert!(recent.young.len() + recent.old.len() <= 200);
    }

    #[test]
    fn what_is_put_takes_the_place_of_what_was_known() {
        let mut recent = recent();
        let flow = FlowId::new(1);
        recent.put(at(0), flow, 7);
        // Another generation begins.
        recent.put(at(150), FlowId::new(2), 0);
        recent.put(at(160), flow, 8);
        assert_eq!(recent.get(at(170), &flow), Some(&8));
        assert_eq!(recent.get_mut(&flow), Some(&mut 8));
        recent.forget(&flow);
        assert_eq!(recent.get_mut(&flow), None);
    }

    #[test]
    fn no_more_than_two_generations_are_remembered() {
        let mut recent = recent();
        for n in 0..200_000 {
            recent.hear(at(0), FlowId::new(n), || n);
        }
        assert!(recent.young.len() + recent.old.len() <= 2 * Recent::<u32>::MOST);
        assert_eq!(recent.hear(at(1), FlowId::new(199_999), || 0), &mut 199_999);
        assert_eq!(recent.hear(at(1), FlowId::new(0), || 5), &mut 5);
    }
}

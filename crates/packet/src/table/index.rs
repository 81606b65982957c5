//! Numbers by the hash of what they stand for, eight bytes a place: open addressing with linear probing.
//!
//! Published: Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithms L (search and insertion) and R (deletion
//! without a trace).
//! It knows no keys, so whoever asks compares; it keeps hashes, so growing computes none.
//!
//! Cost: at most half of the places are taken, so a search looks at one or two of them, which share a cache line.

const FREE: u32 = u32::MAX;
const LEAST: usize = 16;

/// Which number has which hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// A power of two of them, or none.
    places: Vec<Place>,
    taken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    number: u32,
}

impl Index {
    /// Nothing noted.
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), taken: 0 }
    }

    /// The number with this hash that `is_it`.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let place = self.places[at];
            if place.number == FREE {
                return None;
            }
            if place.hash == hash && is_it(place.number) {
                return Some(place.number);
            }
            at = (at + 1) & mask;
        }
    }

    /// Reads the first place where something of this hash may stand.
    #[inline]
    pub(super) fn touch(&self, hash: u32) {
        if let Some(place) = self.places.get(hash as usize & self.places.len().wrapping_sub(1)) {
            std::hint::black_box(place.number);
        }
    }

    /// Notes a number, which is not noted yet. It is below `u32::MAX`.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        if self.taken * 2 >= self.places.len() {
            self.grow();
        }
        self.taken += 1;
        self.put(Place { hash, number });
    }

    /// Takes a number away, which has been noted with this hash.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let Some(mut hole) = self.places_of(hash).find(|at| [number, FREE].contains(&self.places[*at].number)) else {
            return;
        };
        debug_assert_eq!(self.places[hole].number, number, "what is taken away has been noted");
        self.taken -= 1;
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            self.places[hole].number = FREE;
            // The next one that may stand in the hole: its search begins there or before.
            loop {
                at = (at + 1) & mask;
                let Place { hash, number } = self.places[at];
                if number == FREE {
                    return;
                }
                let (from_home, from_hole) = (at.wrapping_sub(hash as usize) & mask, at.wrapping_sub(hole) & mask);
                if from_home >= from_hole {
                    break;
                }
            }
            self.places[hole] = self.places[at];
            hole = at;
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Every place once, from the first where something of this hash may stand.
    #[inline]
    fn places_of(&self, hash: u32) -> impl Iterator<Item = usize> + use<> {
        let len = self.places.len();
        (0..len).map(move |step| (hash as usize).wrapping_add(step) & (len - 1))
    }

    fn put(&mut self, place: Place) {
        let free = self.places_of(place.hash).find(|at| self.places[*at].number == FREE);
        self.places[free.expect("half of the places are free")] = place;
    }

    fn grow(&mut self) {
        let free = Place { hash: 0, number: FREE };
        let places = vec![free; (self.places.len() * 2).max(LEAST)];
        for place in std::mem::replace(&mut self.places, places) {
            if place.number != FREE {
                self.put(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted map, with hashes that often share a home or follow one another around the end.
        #[test]
        fn what_is_noted_is_found_until_it_is_taken_away(
            steps in prop::collection::vec((any::<bool>(), 0..60_u32, prop_oneof![0..4_u32, 14..18_u32, Just(u32::MAX)]), 1..300),
        ) {
            let (mut index, mut model) = (Index::default(), BTreeMap::new());
            for (add, number, hash) in steps {
                match (add, model.get(&number).copied()) {
                    (true, None) => {
                        index.insert(hash, number);
                        model.insert(number, hash);
                    }
                    (false, Some(hash)) => {
                        index.remove(hash, number);
                        model.remove(&number);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.taken, model.len());
                for number in 0..60 {
                    for hash in [0, 3, 15, 17, u32::MAX] {
                        let expected = (model.get(&number) == Some(&hash)).then_some(number);
                        prop_assert_eq!(index.find(hash, |found| found == number), expected);
                    }
                }
            }
        }
    }
}

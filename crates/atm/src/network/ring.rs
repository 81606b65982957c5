//! A queue of small things that are copied: a ring whose places are found by a mask.
//!
//! Differs from `VecDeque`: how many were put in and how many were taken out is counted on and on, and room is a power of two, so that neither
//! end is ever compared with the end of the room. Every cell goes through several of these.

/// First in, first out.
#[derive(Debug)]
pub(super) struct Ring<T> {
    /// As many as a power of two, or none.
    places: Vec<T>,
    taken: usize,
    put: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { places: Vec::new(), taken: 0, put: 0 }
    }
}

impl<T: Copy> Ring<T> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.places.get(self.place(self.taken)) }
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        let place = self.place(self.taken);
        if self.is_empty() { None } else { self.places.get_mut(place) }
    }

    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut T> {
        let place = self.place(self.put.wrapping_sub(1));
        if self.is_empty() { None } else { self.places.get_mut(place) }
    }

    /// That behind so many others.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        if index < self.len() { self.places.get(self.place(self.taken.wrapping_add(index))) } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let place = self.place(self.taken.wrapping_add(index));
        if index < self.len() { self.places.get_mut(place) } else { None }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        if self.len() == self.places.len() {
            self.grow(item);
        }
        let place = self.place(self.put);
        self.places[place] = item;
        self.put = self.put.wrapping_add(1);
    }

    /// Takes the first `count` out, of at least as many.
    #[inline]
    pub(super) fn skip(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "{count} of {}", self.len());
        self.taken = self.taken.wrapping_add(count);
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        (0..self.len()).map(|index| &self.places[self.place(self.taken.wrapping_add(index))])
    }

    #[inline]
    fn place(&self, count: usize) -> usize {
        count & self.places.len().wrapping_sub(1)
    }

    /// Makes room for twice as many; `filler` stands where nothing does yet.
    #[cold]
    fn grow(&mut self, filler: T) {
        let (first, len) = (self.place(self.taken), self.places.len());
        if len > 0 {
            self.places.rotate_left(first);
        }
        self.places.resize((2 * len).max(4), filler);
        (self.taken, self.put) = (0, len);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_in_comes_out_in_order(steps in prop::collection::vec((any::<bool>(), 0..6_usize), 1..200)) {
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for (number, (put, count)) in steps.into_iter().enumerate() {
                if put {
                    ring.push(number);
                    model.push_back(number);
                } else {
                    let count = count.min(model.len());
                    ring.skip(count);
                    model.drain(..count);
                }
                prop_assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((ring.front(), ring.get(2)), (model.front(), model.get(2)));
                prop_assert_eq!(ring.back_mut(), model.back_mut());
                prop_assert_eq!(ring.front_mut(), model.front_mut());
                prop_assert_eq!(ring.get_mut(3), model.get_mut(3));
                prop_assert!(ring.iter().eq(&model) && ring.iter().rev().eq(model.iter().rev()));
            }
        }
    }
}

//! A list that holds a few values within itself, some in a block of the heap, and many in a ring there.
//!
//! Cost: at the end and the front O(1), elsewhere a shift of the shorter side, or of at most 24; 24 bytes for values of
//! eight, and 48 of the heap for three to five of them.

use std::collections::VecDeque;

/// So many values need no memory of their own: enough for most of those who hold any.
const FEW: usize = 2;
/// Blocks hold so many: with values of eight bytes, and the heap's own, each fills what it takes. Beyond the last a ring is
/// worth the block that it takes for itself.
const SOME: [usize; 5] = [5, 7, 11, 17, 25];
/// A block of which less than this part is in use gives way to a smaller one.
const SPARE: usize = 3;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum List<T> {
    Few(u8, [T; FEW]),
    Some(u8, Box<[T]>),
    // Boxed: one pointer, so that the whole is no larger than the few.
    #[expect(clippy::box_collection, reason = "a ring alone takes four words in every list")]
    Many(Box<VecDeque<T>>),
}

impl<T: Copy + Default> Default for List<T> {
    fn default() -> Self {
        Self::Few(0, [T::default(); FEW])
    }
}

/// What a list that is no ring holds.
macro_rules! held {
    ($len:expr, $values:expr) => {
        $values[..usize::from(*$len)]
    };
}

impl<T: Copy + Default> List<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(len, _) | Self::Some(len, _) => usize::from(*len),
            Self::Many(ring) => ring.len(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        match self {
            Self::Few(len, few) => held!(len, few).get(index).copied(),
            Self::Some(len, some) => held!(len, some).get(index).copied(),
            Self::Many(ring) => ring.get(index).copied(),
        }
    }

    #[inline]
    pub(crate) fn last(&self) -> Option<T> {
        self.get(self.len().wrapping_sub(1))
    }

    #[inline]
    pub(crate) fn set(&mut self, index: usize, value: T) {
        match self {
            Self::Few(_, few) => few[index] = value,
            Self::Some(_, some) => some[index] = value,
            Self::Many(ring) => ring[index] = value,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        match self {
            Self::Few(len, few) if usize::from(*len) < FEW => {
                few[usize::from(*len)] = value;
                *len += 1;
            }
            Self::Some(len, some) if usize::from(*len) < some.len() => {
                some[usize::from(*len)] = value;
                *len += 1;
            }
            Self::Few(..) | Self::Some(..) => self.insert(self.len(), value),
            Self::Many(ring) => ring.push_back(value),
        }
    }

    pub(crate) fn insert(&mut self, index: usize, value: T) {
        match self {
            Self::Few(len, few) if usize::from(*len) < FEW => {
                few.copy_within(index..usize::from(*len), index + 1);
                few[index] = value;
                *len += 1;
            }
            Self::Some(len, some) if usize::from(*len) < some.len() => {
                some.copy_within(index..usize::from(*len), index + 1);
                some[index] = value;
                *len += 1;
            }
            Self::Few(_, few) => *self = Self::larger(few, index, value),
            Self::Some(_, some) => *self = Self::larger(some, index, value),
            Self::Many(ring) => ring.insert(index, value),
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, part: core::ops::Range<usize>) {
        match self {
            Self::Few(len, few) => {
                few.copy_within(part.end..usize::from(*len), part.start);
                *len -= part.len() as u8;
            }
            Self::Some(len, some) => {
                some.copy_within(part.end..usize::from(*len), part.start);
                *len -= part.len() as u8;
                // Not as soon as they would fit: one more would need the block again.
                if usize::from(*len) < (some.len() / SPARE).max(FEW) {
                    *self = Self::smaller(&held!(len, some));
                }
            }
            Self::Many(ring) => {
                match part.len() {
                    0 => {}
                    1 => drop(ring.remove(part.start)),
                    _ => drop(ring.drain(part)),
                }
                if ring.len() < SOME[SOME.len() - 1] / SPARE {
                    *self = Self::smaller(ring.make_contiguous());
                }
            }
        }
    }

    /// The same in the next larger block, and `value`.
    #[cold]
    fn larger(values: &[T], index: usize, value: T) -> Self {
        let Some(room) = SOME.into_iter().find(|room| *room > values.len()) else {
            let mut ring = VecDeque::with_capacity(values.len() * 3 / 2);
            ring.extend(values);
            ring.insert(index, value);
            return Self::Many(Box::new(ring));
        };
        let mut some = vec![T::default(); room].into_boxed_slice();
        some[..index].copy_from_slice(&values[..index]);
        some[index] = value;
        some[index + 1..=values.len()].copy_from_slice(&values[index..]);
        Self::Some(values.len() as u8 + 1, some)
    }

    /// The same with less room.
    #[cold]
    fn smaller(values: &[T]) -> Self {
        let room = SOME.into_iter().find(|room| *room > values.len() * 3 / 2);
        if let Some(room) = room
            && values.len() >= FEW
        {
            let mut some = vec![T::default(); room].into_boxed_slice();
            some[..values.len()].copy_from_slice(values);
            return Self::Some(values.len() as u8, some);
        }
        let mut few = [T::default(); FEW];
        few[..values.len()].copy_from_slice(values);
        Self::Few(values.len() as u8, few)
    }

    pub(crate) fn partition_point(&self, below: impl Fn(&T) -> bool) -> usize {
        match self {
            Self::Few(len, few) => held!(len, few).partition_point(below),
            Self::Some(len, some) => held!(len, some).partition_point(below),
            Self::Many(ring) => ring.partition_point(below),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn room<T>(list: &List<T>) -> usize {
        match list {
            List::Few(..) => FEW,
            List::Some(_, some) => some.len(),
            List::Many(ring) => ring.capacity(),
        }
    }

    fn values(list: &List<u64>) -> Vec<u64> {
        (0..list.len()).filter_map(|index| list.get(index)).collect()
    }

    proptest! {
        /// Values in and out anywhere, against a plain vector; and a block is never more than three times what it holds, but
        /// for the smallest.
        #[test]
        fn a_list_holds_what_was_put_into_it_and_little_room_beside(
            steps in prop::collection::vec((0_u8..8, any::<prop::sample::Index>(), 1_usize..30), 1..300),
        ) {
            let (mut list, mut plain) = (List::default(), Vec::new());
            for (number, (kind, place, count)) in (0_u64..).zip(steps) {
                match kind {
                    0..=3 => {
                        list.push(number);
                        plain.push(number);
                    }
                    4 | 5 => {
                        let index = place.index(plain.len() + 1);
                        list.insert(index, number);
                        plain.insert(index, number);
                    }
                    6 if !plain.is_empty() => {
                        let index = place.index(plain.len());
                        list.set(index, number);
                        plain[index] = number;
                    }
                    _ => {
                        let from = place.index(plain.len() + 1);
                        let to = (from + count).min(plain.len());
                        list.remove(from..to);
                        plain.drain(from..to);
                    }
                }
                prop_assert_eq!(values(&list), plain.clone());
                let block = !matches!(list, List::Many(_));
                prop_assert!(!block || room(&list) <= (SPARE * plain.len() + SPARE - 1).max(SOME[0]));
                prop_assert!(block || plain.len() >= SOME[SOME.len() - 1] / SPARE);
            }
        }
    }
}

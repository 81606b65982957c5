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
                // Not as soon as they are few: one more would need the block again.
                if usize::from(*len) < FEW {
                    *self = Self::few(&held!(len, some));
                }
            }
            Self::Many(ring) => {
                match part.len() {
                    0 => {}
                    1 => drop(ring.remove(part.start)),
                    _ => drop(ring.drain(part)),
                }
                if ring.len() < FEW {
                    *self = Self::few(ring.make_contiguous());
                }
            }
        }
    }

    /// The same in the next larger block, and `value`.
    #[cold]
    fn larger(values: &[T], index: usize, value: T) -> Self {
        let Some(room) = SOME.into_iter().find(|room| *room > values.len()) else {
            let mut ring = VecDeque::with_capacity(2 * values.len());
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

    fn few(values: &[T]) -> Self {
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

//! A list that holds a few values within itself, and more in a ring on the heap.
//!
//! Cost: at the end and the front O(1), elsewhere a shift of the shorter side; 24 bytes for values of eight.

use std::collections::VecDeque;

/// So many values need no memory of their own: enough for most of those who hold any.
const FEW: usize = 2;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum List<T> {
    Few(u8, [T; FEW]),
    // Boxed: one pointer, so that the whole is no larger than the few.
    #[expect(clippy::box_collection, reason = "a ring alone takes four words in every list")]
    Many(Box<VecDeque<T>>),
}

impl<T: Copy + Default> Default for List<T> {
    fn default() -> Self {
        Self::Few(0, [T::default(); FEW])
    }
}

impl<T: Copy + Default> List<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(len, _) => usize::from(*len),
            Self::Many(ring) => ring.len(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        match self {
            Self::Few(len, few) => few[..usize::from(*len)].get(index).copied(),
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
            Self::Few(..) => self.insert(self.len(), value),
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
            Self::Few(_, few) => {
                let mut ring = VecDeque::with_capacity(2 * FEW);
                ring.extend(*few);
                ring.insert(index, value);
                *self = Self::Many(Box::new(ring));
            }
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
            Self::Many(ring) => {
                match part.len() {
                    0 => {}
                    1 => drop(ring.remove(part.start)),
                    _ => drop(ring.drain(part)),
                }
                // Not as soon as they are few: one more would need the ring again.
                if ring.len() < FEW {
                    let mut few = Self::default();
                    for &value in ring.iter() {
                        few.push(value);
                    }
                    *self = few;
                }
            }
        }
    }

    pub(crate) fn partition_point(&self, below: impl Fn(&T) -> bool) -> usize {
        match self {
            Self::Few(len, few) => few[..usize::from(*len)].partition_point(below),
            Self::Many(ring) => ring.partition_point(below),
        }
    }
}

//! A window of entries with consecutive numbers: new ones are appended, and the oldest are forgotten.

use std::collections::VecDeque;

/// Entries with consecutive numbers from 0, of which the oldest are forgotten.
#[derive(Clone, Debug)]
pub(super) struct Numbered<T> {
    /// The number of the oldest entry.
    first: u64,
    entries: VecDeque<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { first: 0, entries: VecDeque::new() }
    }
}

impl<T> Numbered<T> {
    /// The number of the oldest entry, or of the next one without entries.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) fn push(&mut self, entry: T) {
        self.entries.push_back(entry);
    }

    /// The entry with this number; `None` if it is forgotten, or does not exist yet.
    pub(super) fn get(&self, number: u64) -> Option<&T> {
        self.entries.get(self.index(number)?)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let index = self.index(number)?;
        self.entries.get_mut(index)
    }

    /// Forgets the oldest entry, and returns it.
    pub(super) fn pop(&mut self) -> Option<T> {
        let oldest = self.entries.pop_front()?;
        self.first += 1;
        Some(oldest)
    }

    /// The entries, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_when_older_entries_are_forgotten() {
        let mut numbered = Numbered::default();
        ["a", "b", "c", "d"].into_iter().for_each(|entry| numbered.push(entry));
        assert_eq!(numbered.pop(), Some("a"));
        assert_eq!((numbered.get(0), numbered.get(1), numbered.get(4)), (None, Some(&"b"), None));
        assert_eq!((numbered.first(), numbered.next()), (1, 4));
        assert_eq!((numbered.pop(), numbered.iter().copied().collect::<String>()), (Some("b"), "cd".to_owned()));
    }
}

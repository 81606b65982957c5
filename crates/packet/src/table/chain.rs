//! Chains through the flows of a table, by their slots: first in, first out, and out of the middle in O(1).

/// Stands for no slot: a link then takes four bytes, and a flow one cache line. No table has so many.
const NO_SLOT: u32 = u32::MAX;

/// What a flow keeps of the chain that it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    before: u32,
    after: u32,
}

impl Links {
    /// In no chain.
    pub(super) const NONE: Self = Self { before: NO_SLOT, after: NO_SLOT };
}

/// Something that is in a chain.
pub(super) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// One chain; the links are in what it chains.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    first: u32,
    last: u32,
    len: u32,
}

impl Chain {
    pub(super) const fn new() -> Self {
        Self { first: NO_SLOT, last: NO_SLOT, len: 0 }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// The one that has been in the chain for longest.
    pub(super) const fn first(&self) -> Option<u32> {
        if self.first == NO_SLOT { None } else { Some(self.first) }
    }

    /// Puts one in that is in no chain.
    pub(super) fn push_back<T: Linked>(&mut self, all: &mut [T], slot: u32) {
        *all[slot as usize].links() = Links { before: self.last, after: NO_SLOT };
        match all.get_mut(self.last as usize) {
            Some(last) => last.links().after = slot,
            None => self.first = slot,
        }
        self.last = slot;
        self.len += 1;
    }

    /// Takes one out that is in this chain.
    pub(super) fn remove<T: Linked>(&mut self, all: &mut [T], slot: u32) {
        let Links { before, after } = std::mem::replace(all[slot as usize].links(), Links::NONE);
        match all.get_mut(before as usize) {
            Some(before) => before.links().after = after,
            None => self.first = after,
        }
        match all.get_mut(after as usize) {
            Some(after) => after.links().before = before,
            None => self.last = before,
        }
        self.len -= 1;
    }
}

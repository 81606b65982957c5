//! Chains of a table's flows, linked by slot: first in, first out, with removal from the middle in
//! O(1).

/// A link to no slot; above every slot of a table. With it a link has four bytes, and a flow one
/// cache line.
const NO_SLOT: u32 = u32::MAX;

/// The links of a flow to its neighbours in a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    before: u32,
    after: u32,
}

impl Links {
    /// The links of a flow in no chain.
    pub(super) const NONE: Self = Self { before: NO_SLOT, after: NO_SLOT };
}

/// An entry with links.
pub(super) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// One chain. The links are in the entries.
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

    /// The slot that has been in the chain longest.
    pub(super) const fn first(&self) -> Option<u32> {
        if self.first == NO_SLOT { None } else { Some(self.first) }
    }

    /// Appends a slot that is in no chain.
    pub(super) fn push_back<T: Linked>(&mut self, all: &mut [T], slot: u32) {
        *all[slot as usize].links() = Links { before: self.last, after: NO_SLOT };
        match all.get_mut(self.last as usize) {
            Some(last) => last.links().after = slot,
            None => self.first = slot,
        }
        self.last = slot;
        self.len += 1;
    }

    /// Removes a slot that is in this chain.
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

//! What a sender keeps of a repair: how to take it back, and what paces it. One box, made by the first of the two and gone
//! with the last.
//!
//! Cost: a pointer to follow in a repair; 48 bytes of the heap.

use crate::prr::Prr;
use crate::undo::Undo;

/// Nothing, for a sender that has lost nothing of late.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Repair(Option<Box<Parts>>);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Parts {
    undo: Option<Undo>,
    prr: Option<Prr>,
}

// A box of 40 bytes takes 48 of the heap.
impl Repair {
    #[inline]
    pub(crate) fn undo(&self) -> Option<&Undo> {
        self.0.as_ref()?.undo.as_ref()
    }

    #[inline]
    pub(crate) fn undo_mut(&mut self) -> Option<&mut Undo> {
        self.0.as_mut()?.undo.as_mut()
    }

    pub(crate) fn set_undo(&mut self, undo: Undo) {
        self.0.get_or_insert_default().undo = Some(undo);
    }

    pub(crate) fn take_undo(&mut self) -> Option<Undo> {
        let parts = self.0.as_mut()?;
        let undo = parts.undo.take();
        if parts.prr.is_none() {
            self.0 = None;
        }
        undo
    }

    #[inline]
    pub(crate) fn prr(&self) -> Option<&Prr> {
        self.0.as_ref()?.prr.as_ref()
    }

    pub(crate) fn set_prr(&mut self, prr: Prr) {
        self.0.get_or_insert_default().prr = Some(prr);
    }

    pub(crate) fn end_prr(&mut self) {
        let Some(parts) = &mut self.0 else { return };
        parts.prr = None;
        if parts.undo.is_none() {
            self.0 = None;
        }
    }
}

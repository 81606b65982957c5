//! Modes of classes, which follow their tokens, and the propagation of backlogged priorities to
//! lenders.

use lastmile_packet::Packet;
use lastmile_units::Instant;

use super::Sharing;
use super::class::{Bound, Mode};

impl<P: Packet> Sharing<P> {
    /// The mode of the class at `now`, and the time at which it may improve.
    #[inline]
    fn mode_at(&self, id: usize, now: Instant) -> (Mode, Option<Instant>) {
        let class = &self.classes[id];
        if class.owes_nothing(now) {
            return (Mode::CanSend, None);
        }
        if let Some(ceil) = &class.ceil
            && !ceil.conforms(now, self.slack.hysteresis && class.mode != Mode::CannotSend)
        {
            return (Mode::CannotSend, Some(ceil.ready_at()));
        }
        let refused = if class.borrows { Mode::MayBorrow } else { Mode::CannotSend };
        match &class.own {
            Bound::None => (Mode::CanSend, None),
            Bound::Bucket(own) if own.conforms(now, self.slack.hysteresis && class.mode == Mode::CanSend) => {
                (Mode::CanSend, None)
            }
            Bound::Bucket(own) => (refused, Some(own.ready_at())),
            Bound::Closed => (refused, None),
        }
    }

    /// Updates the mode of a class that is in no set.
    pub(super) fn refresh_mode(&mut self, id: usize, now: Instant) {
        self.set_mode(id, self.mode_at(id, now));
    }

    fn set_mode(&mut self, id: usize, (mode, until): (Mode, Option<Instant>)) {
        let class = &mut self.classes[id];
        class.tally.overlimits += u64::from(mode == Mode::CannotSend && class.mode != Mode::CannotSend);
        class.mode = mode;
        match until {
            Some(until) if class.active != 0 => {
                let since_start = until.since(Instant::ZERO).round_up_to(self.slack.timer);
                self.events.set(id, Instant::ZERO.saturating_add(since_start));
            }
            _ if class.is_leaf() && class.active == 0 => {}
            _ => self.events.cancel(id),
        }
    }

    /// Updates the mode of a class after its tokens changed, and moves its backlogged priorities
    /// accordingly.
    pub(super) fn update_mode(&mut self, id: usize, now: Instant) {
        let class = &self.classes[id];
        let (before, active) = (class.mode, class.active);
        let judged = self.mode_at(id, now);
        if judged == (before, None) && !self.events.has(id) {
            return;
        }
        if judged.0 == before || active == 0 {
            self.set_mode(id, judged);
        } else {
            self.detach(id, active);
            self.set_mode(id, judged);
            self.attach(id, active, now);
        }
    }

    /// Adds the backlogged priorities `mask` of a class to the lenders of its level if it can send,
    /// or to the borrowers of its parent.
    pub(super) fn attach(&mut self, mut id: usize, mut mask: u8, now: Instant) {
        loop {
            let class = &self.classes[id];
            match (class.mode, class.parent) {
                (Mode::CanSend, _) => {
                    self.lenders[usize::from(class.level)].insert(class.index_in_level as usize, mask);
                    return;
                }
                (Mode::MayBorrow, Some(parent)) => {
                    let sibling = class.index_among_siblings as usize;
                    id = parent as usize;
                    let content_index = self.classes[id].content_index as usize;
                    mask = self.borrowers[content_index].insert(sibling, mask);
                    if mask == 0 {
                        return;
                    }
                    let idle = self.classes[id].active == 0;
                    self.classes[id].active |= mask;
                    if idle {
                        self.refresh_mode(id, now);
                    }
                }
                _ => return,
            }
        }
    }

    /// Undoes [`Sharing::attach`].
    pub(super) fn detach(&mut self, mut id: usize, mut mask: u8) {
        loop {
            let class = &self.classes[id];
            match (class.mode, class.parent) {
                (Mode::CanSend, _) => {
                    self.lenders[usize::from(class.level)].remove(class.index_in_level as usize, mask);
                    return;
                }
                (Mode::MayBorrow, Some(parent)) => {
                    let sibling = class.index_among_siblings as usize;
                    id = parent as usize;
                    let content_index = self.classes[id].content_index as usize;
                    mask = self.borrowers[content_index].remove(sibling, mask);
                    if mask == 0 {
                        return;
                    }
                    self.classes[id].active &= !mask;
                    if self.classes[id].active == 0 {
                        self.events.cancel(id);
                    }
                }
                _ => return,
            }
        }
    }
}

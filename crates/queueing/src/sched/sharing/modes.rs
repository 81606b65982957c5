//! What classes may do, as their tokens come and go, and to whom they therefore offer what waits below them.

use lastmile_packet::Packet;
use lastmile_units::Instant;

use super::Sharing;
use super::class::{Bound, Mode};

impl<P: Packet> Sharing<P> {
    /// What the class may do at `now`, and when it may do more.
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

    /// Gives a class that is in no set the mode that it has by now.
    pub(super) fn settle(&mut self, id: usize, now: Instant) {
        self.settle_as(id, self.mode_at(id, now));
    }

    fn settle_as(&mut self, id: usize, (mode, until): (Mode, Option<Instant>)) {
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

    /// Looks at the tokens of a class, which may change its mode and so what it offers to whom.
    pub(super) fn judge(&mut self, id: usize, now: Instant) {
        let class = &self.classes[id];
        let (before, active) = (class.mode, class.active);
        let judged = self.mode_at(id, now);
        if judged == (before, None) && !self.events.has(id) {
            return;
        }
        if judged.0 == before || active == 0 {
            self.settle_as(id, judged);
        } else {
            self.detach(id, active);
            self.settle_as(id, judged);
            self.attach(id, active, now);
        }
    }

    /// Offers what waits at the priorities of `mask` below a class: to the line, or to the class above.
    pub(super) fn attach(&mut self, mut id: usize, mut mask: u8, now: Instant) {
        loop {
            let class = &self.classes[id];
            match (class.mode, class.parent) {
                (Mode::CanSend, _) => {
                    self.lenders[usize::from(class.level)].insert(class.place as usize, mask);
                    return;
                }
                (Mode::MayBorrow, Some(parent)) => {
                    let sibling = class.sibling as usize;
                    id = parent as usize;
                    let content = self.classes[id].content as usize;
                    mask = self.borrowers[content].insert(sibling, mask);
                    if mask == 0 {
                        return;
                    }
                    let idle = self.classes[id].active == 0;
                    self.classes[id].active |= mask;
                    if idle {
                        self.settle(id, now);
                    }
                }
                _ => return,
            }
        }
    }

    /// Takes back what [`Sharing::attach`] offers.
    pub(super) fn detach(&mut self, mut id: usize, mut mask: u8) {
        loop {
            let class = &self.classes[id];
            match (class.mode, class.parent) {
                (Mode::CanSend, _) => {
                    self.lenders[usize::from(class.level)].remove(class.place as usize, mask);
                    return;
                }
                (Mode::MayBorrow, Some(parent)) => {
                    let sibling = class.sibling as usize;
                    id = parent as usize;
                    let content = self.classes[id].content as usize;
                    mask = self.borrowers[content].remove(sibling, mask);
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

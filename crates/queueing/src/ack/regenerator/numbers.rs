//! Which numbers go ahead of an ACK, and with which windows.

use lastmile_packet::{AckFields, AckList, PureAck, SeqNumber};
use lastmile_units::Instant;

use super::stats::Stats;
use super::{Factor, Flow};
use crate::ack::Newest;

/// The window of a restored ACK between `before` and `carrier`. Where it closes it does so in proportion to the number, so that the
/// right edge lies between theirs; the number of `before` gets its window, and so is a duplicate.
pub(super) fn window_at(number: SeqNumber, before: Newest, carrier: &AckFields) -> u16 {
    let (at, span) = (number.distance_from(before.ack), carrier.ack.distance_from(before.ack));
    if carrier.window >= before.window || !carrier.ack.after(before.ack) || at > span {
        return carrier.window;
    }
    let closed = u64::from(before.window - carrier.window) * u64::from(at);
    // Rounded down, for the sender must not take more than it is given. No more than the difference.
    before.window - closed.div_ceil(u64::from(span)) as u16
}

/// The numbers to put ahead of one ACK, in the making.
pub(super) struct Made<'a> {
    pub(super) numbers: &'a mut Vec<SeqNumber>,
    pub(super) stats: &'a mut Stats,
    pub(super) factor: Factor,
}

impl Made<'_> {
    /// Those that a list tells, ahead of the ACK `carrier`. `known`: the flow's newest number is one that came before.
    pub(super) fn restore(&mut self, flow: &mut Flow, list: &AckList, carrier: SeqNumber, known: bool) {
        let mut previous = known.then_some(flow.newest.ack);
        let mut numbers = list.numbers(carrier).peekable();
        while let Some(number) = numbers.next() {
            let next = numbers.peek().copied().unwrap_or(carrier);
            if previous == Some(number) {
                self.numbers.push(number);
                self.stats.duplicates_restored += 1;
            } else {
                self.stats.restored += self.put(flow, number, next);
            }
            previous = Some(number);
        }
    }

    /// Those that a receiver would have sent between the newest number and that of `ack`.
    pub(super) fn interpolate(&mut self, flow: &mut Flow, ack: PureAck<'_>, before: Option<Instant>, stride: u32) {
        // What repeats the newest number has nothing between; what was overtaken does not come here.
        let missing = ack.ack.distance_from(flow.newest.ack).saturating_sub(1) / stride.max(1);
        if before.is_none() {
            self.stats.passed_first += 1;
        } else if missing == 0 {
            // Nothing is missing.
        } else if flow.hole {
            self.stats.passed_hole += 1;
        } else if missing > u32::from(AckList::MAX_COUNT) {
            self.stats.passed_too_far += 1;
        } else {
            let mut number = flow.newest.ack;
            for left in (0..missing).rev() {
                number = number.add(stride);
                let next = if left > 0 { number.add(stride) } else { ack.ack };
                self.stats.interpolated += self.put(flow, number, next);
            }
        }
    }

    /// Puts `number` and what else the factor asks for before `next`; returns how many.
    fn put(&mut self, flow: &mut Flow, number: SeqNumber, next: SeqNumber) -> u64 {
        let share = u64::from(flow.left_over) + u64::from(self.factor.numerator);
        let denominator = u64::from(self.factor.denominator);
        // Both fit: at most MOST + 1, and less than the denominator.
        let mut due = (share / denominator) as u32;
        flow.left_over = (share % denominator) as u32;
        let gap = next.distance_from(number);
        if gap == 0 {
            // Its duplicates would else be taken for the ACK that they repeat.
            due = 1;
        }
        let due = due.min(gap.max(1));
        for index in 0..due {
            let step = u64::from(gap) * u64::from(index) / u64::from(due);
            self.numbers.push(number.add(step as u32));
        }
        u64::from(due)
    }
}

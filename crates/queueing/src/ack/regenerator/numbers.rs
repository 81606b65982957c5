//! Numbers and windows of the restored ACKs that precede an ACK.

use lastmile_packet::{AckFields, AckList, PureAck, SeqNumber};
use lastmile_units::Instant;

use super::factor::Factor;
use super::flow::Flow;
use super::stats::Stats;
use crate::ack::Newest;

/// The window of a restored ACK between `before` and `carrier`. A closing window closes in
/// proportion to the number, so that the right edge lies between theirs. The number of `before`
/// gets its window, and so is a duplicate.
pub(super) fn window_at(number: SeqNumber, before: Newest, carrier: &AckFields) -> u16 {
    let (at, span) = (number.distance_from(before.ack), carrier.ack.distance_from(before.ack));
    if carrier.window >= before.window || !carrier.ack.after(before.ack) || at > span {
        return carrier.window;
    }
    let closed = u64::from(before.window - carrier.window) * u64::from(at);
    // Rounded down, since the sender must not exceed its window. At most the difference.
    before.window - closed.div_ceil(u64::from(span)) as u16
}

/// Collects the numbers that precede one ACK.
pub(super) struct NumberCollector<'a> {
    pub(super) numbers: &'a mut Vec<SeqNumber>,
    pub(super) stats: &'a mut Stats,
    pub(super) factor: Factor,
}

impl NumberCollector<'_> {
    /// Adds the numbers of a list, ahead of the ACK `carrier`. `known`: the flow's newest number
    /// arrived earlier.
    pub(super) fn restore(&mut self, flow: &mut Flow, list: &AckList, carrier: SeqNumber, known: bool) {
        let mut previous = known.then_some(flow.newest.ack);
        let mut numbers = list.numbers(carrier).peekable();
        while let Some(number) = numbers.next() {
            let next = numbers.peek().copied().unwrap_or(carrier);
            if previous == Some(number) {
                self.numbers.push(number);
                self.stats.duplicates_restored += 1;
            } else {
                self.stats.restored += self.add(flow, number, next);
            }
            previous = Some(number);
        }
    }

    /// Adds the numbers that a receiver would have sent between the newest number and that of
    /// `ack`.
    pub(super) fn interpolate(&mut self, flow: &mut Flow, ack: PureAck<'_>, before: Option<Instant>, stride: u32) {
        // An ACK that repeats the newest number has none between; a reordered one is handled by the
        // caller.
        let missing = ack.ack.distance_from(flow.newest.ack).saturating_sub(1) / stride.max(1);
        if before.is_none() {
            self.stats.not_interpolated.first += 1;
        } else if missing == 0 {
            // Nothing is missing.
        } else if ack.flags.ace() > 0 {
            self.stats.not_interpolated.marks += 1;
        } else if flow.may_be_hole {
            self.stats.not_interpolated.hole += 1;
        } else if missing > u32::from(AckList::MAX_COUNT) {
            self.stats.not_interpolated.too_far += 1;
        } else {
            let mut number = flow.newest.ack;
            for left in (0..missing).rev() {
                number = number.add(stride);
                let next = if left > 0 { number.add(stride) } else { ack.ack };
                self.stats.interpolated += self.add(flow, number, next);
            }
        }
    }

    /// Adds `number`, and the further numbers that the factor requires before `next`; returns how
    /// many.
    fn add(&mut self, flow: &mut Flow, number: SeqNumber, next: SeqNumber) -> u64 {
        let share = u64::from(flow.carry) + u64::from(self.factor.numerator);
        let denominator = u64::from(self.factor.denominator);
        // Both fit: at most MOST + 1, and less than the denominator.
        let mut due = (share / denominator) as u32;
        flow.carry = (share % denominator) as u32;
        let gap = next.distance_from(number);
        if gap == 0 {
            // Further numbers would be duplicates of the next ACK.
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

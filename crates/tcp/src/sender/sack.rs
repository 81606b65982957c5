//! SACK blocks: the octets that an acknowledgement newly delivers, recorded on the scoreboard (RFC 6675) or with the
//! transmissions (RACK).
//!
//! Published: RFC 2018; RFC 2883, section 4 (reports of duplicates); RFC 6675, section 4 (Update); RFC
//! 8985, section 6.2.
//! Cost: nothing while no octet is missing; then a visit to the record for each block.

use lastmile_packet::{Meta, SackBlock, SeqNumber};
use lastmile_units::{Duration, Instant};

use super::Sender;
use super::acknowledgement::{AckInfo, Delivery};
use super::flight::{Scoreboard, SegmentState, Transmission};
use super::repair::Duplicate;
use crate::Config;
use crate::ranges::Range;

impl Sender {
    /// Records an acknowledgement, whose number moved SND.UNA from `from`.
    #[cold]
    pub(super) fn deliver(&mut self, now: Instant, config: &Config, info: AckInfo<'_>, from: u64) -> Delivery {
        let (mss, retransmissions) = (self.mss, self.stats.retransmissions);
        let duplicate = self.reported_duplicate(info.segment);
        let duplicate = duplicate.filter(|one| self.data.repair.note_report(one, mss, retransmissions));
        if self.data.repair.is_rack() {
            self.deliver_by_transmissions(now, config, info, from, duplicate)
        } else {
            self.deliver_by_scoreboard(now, info, from, duplicate)
        }
    }

    fn deliver_by_scoreboard(
        &mut self,
        now: Instant,
        info: AckInfo<'_>,
        from: u64,
        duplicate: Option<Duplicate>,
    ) -> Delivery {
        let (una, mss) = (self.data.flight.una(), u32::from(self.mss));
        let before = self.data.flight.delivered() - una + from;
        if let Some(board) = self.data.flight.board_mut() {
            board.advance(from, una);
        }
        let lost = self.data.flight.board().map_or(0, Scoreboard::lost);
        self.count_duplicate(duplicate);
        let retransmitted = self.data.flight.transmissions().retransmitted();
        // The first newly SACKed octet that was sent once.
        let mut once: Option<u64> = None;
        let mut sacked = false;
        for block in info.segment.options().sack_blocks() {
            let Some(range) = self.block_range(block) else { continue };
            self.data.flight.begin_scoreboard().insert(range.start, range.end, |part| {
                sacked = true;
                let first = part.start.max(retransmitted);
                if first < part.end {
                    once = Some(once.map_or(first, |once| once.min(first)));
                }
            });
        }
        let mut newly_lost = false;
        if let Some(board) = self.data.flight.board_mut() {
            board.update(una, mss);
            newly_lost = board.lost() > lost;
        }
        let delivery = Delivery {
            sacked,
            octets: self.data.flight.delivered() - before,
            lost: newly_lost,
            age: once.and_then(|octet| self.data.flight.transmissions().age(now, octet)),
            ..Delivery::default()
        };
        if una > from && self.data.repair.is_open() {
            self.data.flight.settle_board(mss);
        }
        delivery
    }

    fn deliver_by_transmissions(
        &mut self,
        now: Instant,
        config: &Config,
        info: AckInfo<'_>,
        from: u64,
        duplicate: Option<Duplicate>,
    ) -> Delivery {
        let (una, recover) = (self.data.flight.una(), self.data.repair.recover());
        if self.data.flight.begin_by_transmissions() {
            self.data.repair.rack.begin(from);
        }
        self.adapt_to_dsack(duplicate);
        let least_us = self.rtt.least_us();
        let highest = self.data.repair.rack.highest();
        let before = self.data.flight.delivered() - una + from;
        let (records, rack) = (self.data.flight.transmissions_mut(), &mut self.data.repair.rack);
        let mut delivery = Delivery { advanced: una > from, ..Delivery::default() };
        let echo = info.segment.options().timestamps().map(|(_, echo)| echo);
        // RFC 8985, section 6.2, step 2. The echo is that of the octets below the acknowledgement number, and not that
        // of SACKed ones.
        let is_earlier = |sent: Transmission| {
            sent.retransmitted
                && echo.is_some_and(|echo| echo.wrapping_sub(config.timers.timestamp(sent.at(now))).cast_signed() < 0)
        };
        let (mut age_us, mut newest_us, mut retransmitted) = (None, None, false);
        records.settle(from, una, |part| {
            if let SegmentState::Sent(sent) = part.state {
                let age = rack.on_delivered(now, part.range, sent, least_us, highest, is_earlier(sent));
                age_us = age_us.or(Some(age));
                newest_us = Some(age);
                retransmitted |= sent.retransmitted;
                delivery.original |= !sent.retransmitted && part.range.start < recover;
            }
        });
        // Karn's algorithm.
        age_us = age_us.filter(|_| !retransmitted);
        newest_us = newest_us.filter(|_| !retransmitted);
        let (mut sacked_us, mut newest_sacked_us) = (None, None);
        for block in info.segment.options().sack_blocks() {
            let Some(range) = self.block_range(block) else { continue };
            let (records, rack) = (self.data.flight.transmissions_mut(), &mut self.data.repair.rack);
            let mut rate = self.data.rate.as_deref_mut();
            records.sack(una, range, |part| {
                if let Some(rate) = &mut rate {
                    rate.on_sacked(part.range);
                }
                if let SegmentState::Sent(sent) = part.state {
                    let age = rack.on_delivered(now, part.range, sent, least_us, highest, false);
                    delivery.sacked = true;
                    if !sent.retransmitted {
                        delivery.original |= part.range.start < recover;
                        sacked_us = sacked_us.max(Some(age));
                        newest_sacked_us = Some(newest_sacked_us.map_or(age, |newest: u32| newest.min(age)));
                    }
                }
            });
        }
        let duration = |us: u32| Duration::from_us(u64::from(us));
        delivery.age = age_us.or(sacked_us).map(duration);
        delivery.newest = newest_sacked_us.or(newest_us).map(duration);
        delivery.octets = self.data.flight.delivered() - before;
        self.count_duplicate(duplicate);
        delivery
    }

    /// RFC 8985, section 6.2, step 4, and section 7.4.2: the response to a reported duplicate.
    fn adapt_to_dsack(&mut self, duplicate: Option<Duplicate>) {
        self.data.repair.rack.expire_dsack_round(self.data.flight.una());
        let Some(duplicate) = duplicate else { return };
        let answered =
            |probe: &super::repair::TailProbe| probe.retransmission && duplicate.right == probe.end.cast_signed();
        if self.data.repair.probe.as_ref().is_some_and(answered) {
            // Both the last segment and the probe arrived.
            self.data.repair.probe = None;
        } else {
            self.data.repair.rack.on_dsack(self.data.flight.max());
        }
    }

    /// A reported duplicate counts towards the undo of the repair.
    #[inline]
    fn count_duplicate(&mut self, duplicate: Option<Duplicate>) {
        if let (Some(duplicate), Some(undo)) = (duplicate, &mut self.data.repair.undo) {
            undo.on_dsack(duplicate);
        }
    }

    /// RFC 2883, section 4: the first block reports a duplicate if it lies at or below the cumulative
    /// acknowledgement or within the second block.
    fn reported_duplicate(&self, segment: &Meta) -> Option<Duplicate> {
        let una = self.data.flight.una();
        let wire = self.wire(una);
        let offset = |edge: SeqNumber| una.cast_signed() + i64::from(edge.distance_from(wire).cast_signed());
        let options = segment.options();
        let mut blocks =
            options.sack_blocks().map(|block| Duplicate { left: offset(block.left), right: offset(block.right) });
        let first = blocks.next()?;
        let within = |second: Duplicate| second.left <= first.left && first.right <= second.right;
        let is_duplicate = first.right <= una.cast_signed() || blocks.next().is_some_and(within);
        (first.left < first.right && is_duplicate).then_some(first)
    }

    /// The part of a block above `una`; `None` for invalid blocks and for duplicates below it.
    fn block_range(&self, block: SackBlock) -> Option<Range> {
        let una = self.data.flight.una();
        let base = self.wire(una);
        let right = block.right.distance_from(base).cast_signed();
        let left = block.left.distance_from(base).cast_signed();
        if right <= 0 || left >= right {
            return None;
        }
        let end = una + u64::from(right.cast_unsigned());
        let start = una + u64::from(left.max(0).cast_unsigned());
        (end <= self.data.flight.max()).then_some(Range { start, end })
    }
}

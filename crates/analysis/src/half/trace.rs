//! The sender's congestion window along the packets, and the packets of a table of segments.

use lastmile_packet::Meta;
use lastmile_units::Instant;

use super::Half;
use super::state::Phase as Repair;
use crate::cause::Cause;
use crate::congestion::{Moment, Phase};
use crate::limit::Limit;
use crate::trace::{Acknowledgement, Data, Kind, SACK_BLOCKS, Sender};

impl Half {
    /// The sender at this moment.
    pub(super) fn moment(&self, now: Instant) -> Moment {
        let mss = self.size.mss().cast_signed();
        let in_network = self.sent.in_network();
        let counts = self.congestion.counts_duplicates() && self.recovery.phase == Repair::Fast && !self.sack.used;
        let departed = if counts { self.recovery.departed * mss } else { 0 };
        Moment {
            now,
            in_network: (in_network - departed).max(in_network.min(mss)),
            mss,
            limited: matches!(self.limit, Some(Limit::CongestionWindow | Limit::Recovery)),
        }
    }

    /// A repair begins with this packet, before it counts as retransmitted.
    pub(super) fn reduce(&mut self, begins: Repair) {
        let (una, next) = (self.stream.una, self.stream.next);
        let mss = self.size.mss().cast_signed();
        self.recovery.lost_to = una;
        match begins {
            Repair::Fast => self.congestion.lost(next - una, mss, self.sack.used),
            Repair::Loss => {
                self.sent.lose(una, next, None);
                self.congestion.timed_out(next - una, mss);
            }
            Repair::Open => {}
        }
    }

    /// A packet that the congestion window allowed, with few exceptions, was sent.
    pub(super) fn by_window(&mut self, now: Instant, cause: Option<Cause>) {
        let forced = match cause {
            // The window does not govern these.
            Some(Cause::Fast | Cause::Timeout | Cause::TailProbe | Cause::Unknown) => true,
            // NewReno retransmits at a partial ACK whatever its window.
            Some(Cause::InRecovery) => !self.sack.used && !self.congestion.counts_duplicates(),
            Some(Cause::AfterTimeout) | None => false,
        };
        if forced || self.stream.next <= self.stream.origin {
            return;
        }
        // New data before the first new ACK of a repair without SACK.
        if cause.is_none()
            && self.recovery.phase == Repair::Fast
            && !self.sack.used
            && self.recovery.lost_to == self.stream.una
        {
            let mss = self.size.mss().cast_signed();
            let departed = self.recovery.departed * mss;
            self.congestion.sent_in_repair(self.stream.next - self.stream.una, departed, mss);
        }
        let at = self.moment(now);
        // Limited transmit (RFC 3042): a segment for each of the first two duplicate ACKs.
        let is_open = self.recovery.phase == Repair::Open;
        let spare = if is_open { i64::from(self.recovery.dup_acks.min(2)) * at.mss } else { 0 };
        self.congestion.sent(at, spare);
    }

    /// The state of the sender.
    #[inline]
    fn state(&self) -> Sender {
        let phase = match (self.recovery.phase, self.limit) {
            (_, None | Some(Limit::Handshake)) => Phase::Handshake,
            (Repair::Fast, _) => Phase::Recovery,
            (Repair::Loss, _) => Phase::Timeout,
            (_, Some(Limit::ReceiveWindow)) => Phase::ReceiveWindow,
            (_, Some(Limit::Application)) => Phase::Application,
            _ if self.congestion.in_slow_start() => Phase::SlowStart,
            _ => Phase::Avoidance,
        };
        Sender {
            outstanding: (self.stream.next - self.stream.una).max(0).unsigned_abs(),
            in_network: self.sent.in_network().max(0).unsigned_abs(),
            congestion_window: self.congestion.window(),
            phase,
        }
    }

    /// The kind of the data of the last packet.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.last.data.map(|data| data.kind)
    }

    /// The data of the last packet, of this kind if it is known better.
    #[inline]
    pub(crate) fn traced_data(&self, kind: Option<Kind>) -> Option<Data> {
        let Data { start, end, kind: own, .. } = self.last.data?;
        Some(Data { start, end, kind: kind.unwrap_or(own), sender: self.state() })
    }

    /// The acknowledgement in the last packet of the other side, which is `packet`.
    #[inline]
    pub(crate) fn traced_ack(&self, packet: &Meta) -> Option<Acknowledgement> {
        let base = self.stream.base?;
        let mut sack = [(0, 0); SACK_BLOCKS];
        let options = packet.options();
        if options.sack_count() > 0 {
            for (slot, block) in sack.iter_mut().zip(options.sack_blocks()) {
                let offset = |seq| self.offset(base, self.stream.una, seq);
                *slot = (offset(block.left), offset(block.right));
            }
        }
        Some(Acknowledgement {
            offset: self.last.ack.offset,
            advance: self.last.ack.advance,
            window: self.window.bytes.map(i64::unsigned_abs),
            sack,
            round_trip: self.last.ack.round_trip,
            spacing: self.last.ack.spacing,
            duplicate: self.last.ack.duplicate,
            sender: self.state(),
        })
    }
}

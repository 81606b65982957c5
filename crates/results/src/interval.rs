//! The measurements between two snapshots of a run.

use lastmile_model::Link;
use lastmile_model::outcome::{Loss, Losses, Snapshot, Waits};
use lastmile_tcp::{LimitedTime, RoundTrips};
use lastmile_units::Instant;

use crate::format::to_f64;

/// The measurements between two snapshots. Lists are by flow, without pings, or by link.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// Payload bytes delivered.
    pub(crate) bytes: Vec<u64>,
    /// Time by limit; `None` for flows without TCP.
    pub(crate) limited: Vec<Option<LimitedTime>>,
    /// The data under way at both ends of it; `None` where they were not measured.
    pub(crate) under_way: Vec<Option<UnderWay>>,
    /// The receive window at the end; `None` where it was not measured.
    pub(crate) receive_window: Vec<Option<u64>>,
    /// Round trips of the octets that were acknowledged; of none for flows without TCP.
    pub(crate) round_trips: Vec<RoundTrips>,
    /// Retransmitted segments.
    pub(crate) retransmissions: Vec<u64>,
    /// Reductions of the window for CE marks.
    pub(crate) mark_reductions: Vec<u64>,
    /// Bits sent.
    pub(crate) wire_bits: Vec<u64>,
    /// Delays of the packets that left the queue.
    pub(crate) waits: Vec<Waits>,
    /// Delays of the pure ACKs that left the queue.
    pub(crate) ack_waits: Vec<Waits>,
    /// Dropped packets; flows are indices into [`lastmile_model::outcome::Outcome::flows`].
    pub(crate) losses: Losses,
}

/// The data of a transfer under way at both ends of an interval, in octets of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UnderWay {
    /// Sent before the interval, and not delivered before it.
    pub(crate) undelivered: u64,
    /// The part of the undelivered data that the receiver held: out of order, or not read yet.
    pub(crate) held: u64,
    /// Sent and not acknowledged at the end.
    pub(crate) unacknowledged: u64,
}

/// The share of `most` bits of a wire that `bits` are. What is counted in whole bits may be `excess` too many, and the
/// rate of a wire that sends what is granted is a mean: both are a full wire.
pub(crate) fn share_of_wire(link: &Link, bits: f64, most: f64, excess: f64) -> f64 {
    let is_full = link.hop.line.grants.is_some() || bits <= most + excess;
    if bits >= most && is_full { 1.0 } else { bits / most }
}

impl Interval {
    /// The length of the interval in seconds.
    pub(crate) fn length_s(&self) -> f64 {
        self.to.since(self.from).as_secs_f64()
    }

    /// The share of the time for which the wire of `link`, number `index`, was busy: its bits over those that it could
    /// carry. `None` without a rate, and in an outage. Bits are whole at both ends, so that a full wire may count one
    /// more than it carries. The rate of a wire that sends what is granted is a mean, above which it may be for a round
    /// of its pattern.
    pub(crate) fn utilisation(&self, index: usize, link: &Link) -> Option<f64> {
        let bps = link.hop.line.rate_between(self.from, self.to).filter(|bps| *bps > 0.0)?;
        Some(share_of_wire(link, to_f64(self.wire_bits[index]), bps * self.length_s(), 1.0))
    }

    /// The share of pure ACKs among the packets that left the queue of `link`.
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub(crate) fn ack_share(&self, link: usize) -> f64 {
        self.ack_waits[link].packets as f64 / (self.waits[link].packets.max(1)) as f64
    }

    /// The share of the pure ACKs at the queue of `link` that it did not drop.
    pub(crate) fn kept_acks(&self, link: usize) -> f64 {
        let lost = self.losses.iter().filter(|(loss, _)| loss.back && loss.link == link && loss.cause.is_of_queue());
        let (lost, left) = (lost.map(|(_, count)| count).sum::<u64>(), self.ack_waits[link].packets);
        if lost == 0 { 1.0 } else { to_f64(left) / to_f64(left + lost) }
    }

    /// Adds the following part.
    pub(crate) fn join(&mut self, next: Self) {
        self.to = next.to;
        add_each(&mut self.bytes, &next.bytes);
        add_each(&mut self.retransmissions, &next.retransmissions);
        add_each(&mut self.mark_reductions, &next.mark_reductions);
        add_each(&mut self.wire_bits, &next.wire_bits);
        self.losses.extend(next.losses);
        self.receive_window = next.receive_window;
        for (own, next) in self.under_way.iter_mut().zip(next.under_way) {
            *own = own.zip(next).map(|(own, next)| UnderWay { unacknowledged: next.unacknowledged, ..own });
        }
        for (own, next) in self.round_trips.iter_mut().zip(next.round_trips) {
            *own = own.plus(next);
        }
        for (own, next) in self.limited.iter_mut().zip(next.limited) {
            *own = match (*own, next) {
                (Some(own), Some(next)) => Some(own.plus(next)),
                (own, next) => own.or(next),
            };
        }
        for (own, next) in [(&mut self.waits, &next.waits), (&mut self.ack_waits, &next.ack_waits)] {
            own.iter_mut().zip(next).for_each(|(own, next)| own.join(next));
        }
    }

    pub(crate) fn between(before: &Snapshot, after: &Snapshot, places: &[usize]) -> Self {
        let difference = |of: fn(&Snapshot) -> &Vec<u64>| {
            let (old, new) = (of(before), of(after));
            places.iter().map(|place| new[*place].saturating_sub(old[*place])).collect()
        };
        let limited = places.iter().map(|place| {
            let new = after.limited[*place]?;
            Some(before.limited[*place].map_or(new, |old| less(new, old)))
        });
        let under_way = places.iter().map(|place| {
            let (old, new) = (before.streams[*place]?, after.streams[*place]?);
            let delivered = before.bytes_delivered[*place];
            Some(UnderWay {
                undelivered: old.sent.saturating_sub(delivered),
                held: old.arrived.saturating_sub(delivered),
                unacknowledged: new.sent.saturating_sub(new.acked),
            })
        });
        let wire_bits = after.wire_bits.iter().zip(&before.wire_bits).map(|(new, old)| new.saturating_sub(*old));
        let round_trips = places.iter().map(|place| {
            let [new, old] = [after, before].map(|snapshot| snapshot.round_trips[*place].unwrap_or_default());
            new.since(old)
        });
        Self {
            from: before.at,
            to: after.at,
            bytes: difference(|snapshot| &snapshot.bytes_delivered),
            limited: limited.collect(),
            under_way: under_way.collect(),
            receive_window: places.iter().map(|place| after.receive_window[*place]).collect(),
            round_trips: round_trips.collect(),
            retransmissions: difference(|snapshot| &snapshot.retransmissions),
            mark_reductions: difference(|snapshot| &snapshot.mark_reductions),
            wire_bits: wire_bits.collect(),
            waits: after.queue_delay.clone(),
            ack_waits: after.ack_queue_delay.clone(),
            losses: of_flows(&after.losses, places),
        }
    }
}

fn add_each(to: &mut [u64], more: &[u64]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

/// The `losses` of flows, by index into [`lastmile_model::outcome::Outcome::flows`]; those of pings are omitted.
pub(crate) fn of_flows(losses: &[(Loss, u64)], places: &[usize]) -> Losses {
    let of_flow = |(loss, count): &(Loss, u64)| {
        let flow = places.binary_search(&loss.flow).ok()?;
        Some((Loss { flow, ..*loss }, *count))
    };
    losses.iter().filter_map(of_flow).collect()
}

fn less(new: LimitedTime, old: LimitedTime) -> LimitedTime {
    LimitedTime {
        congestion_window: new.congestion_window.saturating_sub(old.congestion_window),
        receive_window: new.receive_window.saturating_sub(old.receive_window),
        send_buffer: new.send_buffer.saturating_sub(old.send_buffer),
        application: new.application.saturating_sub(old.application),
        pacing: new.pacing.saturating_sub(old.pacing),
        awaiting_ack: new.awaiting_ack.saturating_sub(old.awaiting_ack),
    }
}

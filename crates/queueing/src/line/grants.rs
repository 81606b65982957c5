//! A transmitter that may send only what was granted: the upstream of DOCSIS, PON, LTE, 5G and
//! satellite return links.
//!
//! A station asks a head end for capacity. A request leaves at a *request opportunity*, or with
//! granted data (*piggyback*). The head end answers with *grants*: spans of time on the wire, in
//! slots of one length. A pattern lists the parts of the slots that the station may use; an opportunity in a
//! slot of the other direction moves to the next. A grant takes
//! effect in the first slot that begins at least one *response* after the request. *Proactive*
//! grants need no request. The bytes that they carry count towards the requests that have already reached the
//! head end, and use the tokens of the service flow. A requested grant that covers the time of a proactive one
//! is one grant with it, of the requested size; of a satellite the two are apart. No time is granted twice.
//!
//! Sources: CableLabs MULPI v3.1 (requests, MAPs, piggyback, proactive grants), ITU-T G.984.3 and
//! G.9807.1 (status reports), 3GPP TS 36.321 and TS 38.321 (scheduling request, buffer status report,
//! configured grant), ETSI EN 301 545-2 (DVB-RCS2: CRA and VBDC).
//!
//! Differences from the sources: one station is simulated. Other stations appear as a share of the
//! slots and as a share of collided requests. The head end grants in the order of requests. A request
//! asks for the backlog at the time of the request, as bytes on the wire of packets of the mean size.
//!
//! Packets stay in the queue until a grant begins, so an AQM, a scheduler or an ACK filter acts until
//! then. From a queue that shapes they go into a buffer when its tokens allow, and wait for grants there.
//!
//! Cost: O(1) a packet; a wake-up for each request at an opportunity, and for each piece of a packet
//! that is cut.

use core::num::NonZeroU64;
use std::sync::Arc;

use super::trace::Steps;
use lastmile_units::{BitRate, Duration, Instant, Ratio, WireBytes};

mod capacity;
mod cycle;
mod head_end;
mod slots;
mod station;
#[cfg(test)]
mod tests;
mod unasked;
mod window;

pub use cycle::{Cycle, PerRequest};
pub use slots::{Slots, SlotsError, Span};
pub(super) use station::{Station, Waiting};

/// Parameters of a granted transmitter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Rate of the wire during a transmission; with a trace its highest.
    pub rate: BitRate,
    /// The rate of the wire over time. A grant has the least rate of its span, and none covers an outage.
    pub trace: Option<Arc<Steps>>,
    /// The spans of time that grants may cover.
    pub slots: Slots,
    /// How the station asks. `None`: every span belongs to the station, which never asks.
    pub requests: Option<Requests>,
    /// Grants are rounded up to a multiple of this size (minislots).
    pub unit: NonZeroU64,
    /// A packet may be cut at the end of a grant. Without it, requests and grants are for whole packets, and a grant
    /// extends over slots without a gap; only a packet larger than every grant is cut.
    pub fragmentation: bool,
    /// Capacity that is granted without requests.
    pub proactive: Option<Proactive>,
    /// Requested grants leave out the time of proactive ones, with `fragmentation` and where these leave them some, and
    /// what proactive grants carry is subtracted from no request. Otherwise a requested grant that covers the time of a
    /// proactive one is one grant with it.
    pub apart: bool,
    /// Token buckets: the sustained rate of a service flow, and its peak rate. Requested grants wait for tokens.
    /// Bytes in proactive grants use tokens too, and do not wait for them.
    pub limits: Vec<Bucket>,
    /// Packets leave the queue for a buffer of this size, and wait there for grants; for a queue that shapes. `None`:
    /// they stay in the queue until a grant begins.
    pub buffer: Option<WireBytes>,
    /// Seed of the back-off.
    pub seed: u64,
}

/// How a station asks for capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requests {
    /// Time between two request opportunities.
    pub every: Duration,
    /// Opportunities are shared with other stations. `None`: they belong to this station.
    pub contention: Option<Contention>,
    /// Granted data carries a request for the remaining backlog.
    pub piggyback: bool,
    /// The shortest time from a request to the start of its grant.
    pub response: Duration,
    /// The capacity that a request asks for.
    pub asks: Asks,
    /// Whether a further request may be made before an earlier one is granted.
    pub outstanding: Outstanding,
}

/// Opportunities that other stations use too: truncated binary exponential back-off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contention {
    /// The first attempt waits for 0 to 2^first - 1 opportunities.
    pub first: u8,
    /// Collisions double this range up to 2^last.
    pub last: u8,
    /// Share of requests that collide with those of others.
    pub collisions: Ratio,
}

/// The capacity that a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// One packet: no concatenation.
    Packet,
    /// The backlog.
    Backlog {
        /// The most that one request asks for.
        most: Option<WireBytes>,
        /// A request at an opportunity has no size and obtains this much; the backlog is reported
        /// with the data (scheduling request, then buffer status report).
        first: Option<WireBytes>,
    },
}

/// Requests on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outstanding {
    /// The station asks again when its last request has been granted in full.
    One,
    /// The station asks again for what it has not asked for yet.
    Many,
}

/// Capacity that is granted without requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proactive {
    /// Time between the starts of two grants.
    pub every: Duration,
    /// Size of each.
    pub bytes: WireBytes,
}

impl Proactive {
    /// The rate that such grants bring; `None` where it is no rate.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        BitRate::from_bps(capacity::rate_of(self.bytes, self.every))
    }
}

/// A token bucket of grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Rate of tokens.
    pub rate: BitRate,
    /// The capacity of the bucket; at least [`LARGEST_PACKET`].
    pub burst: WireBytes,
}

/// Tokens that a grant waits for before it is split, if it is that large: a full Ethernet frame with
/// its VLAN tags and the MAC header of a link.
pub const LARGEST_PACKET: WireBytes = WireBytes::new(1600);

/// Parameters that no line can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GrantsError {
    /// An opportunity every 0 s.
    #[error("request opportunities need a time between them")]
    NoOpportunity,
    /// Proactive grants every 0 s or of no bytes.
    #[error("proactive grants need a time between them and a size")]
    NoProactive,
    /// A bucket below a packet.
    #[error("a burst of {0} holds no packet of {LARGEST_PACKET}, so that it would never be granted")]
    SmallBurst(WireBytes),
    /// Packets that are never cut, and grants that are parts of what is needed.
    #[error(
        "without fragmentation a request must ask for whole packets: one packet, or the backlog with one request \
         outstanding and without a first size"
    )]
    NeedsFragmentation,
    /// A request for nothing.
    #[error("a request for no bytes")]
    NoSize,
    /// Spans too short for a byte.
    #[error("at {0} no usable span is long enough for a byte")]
    NoRoom(BitRate),
    /// A trace whose rates change faster than the slots repeat.
    #[error("no step of the trace has a rate that sends a byte in a slot, for {0}: two rounds of the slots")]
    ShortSteps(Duration),
    /// Whole packets, or tokens, for a rate that changes.
    #[error("with a trace packets are cut at the ends of grants, and no token bucket limits them")]
    NeedsConstantRate,
    /// Back-off ranges out of order.
    #[error("back-off from 2^{0} to 2^{1} opportunities; the first is at most the last, and that at most 2^16")]
    BackOff(u8, u8),
}

impl Config {
    /// A transmitter that sends in every usable span without requests.
    #[must_use]
    pub fn new(rate: BitRate, slots: Slots) -> Self {
        let unit = NonZeroU64::MIN;
        Self {
            rate,
            trace: None,
            slots,
            requests: None,
            unit,
            fragmentation: true,
            proactive: None,
            apart: false,
            limits: Vec::new(),
            buffer: None,
            seed: 1,
        }
    }

    /// Refuses parameters with which a packet could wait for ever.
    ///
    /// # Errors
    /// See [`GrantsError`].
    pub fn check(&self) -> Result<(), GrantsError> {
        if capacity::bytes_in(self.rate, self.slots.longest()) == 0 {
            return Err(GrantsError::NoRoom(self.rate));
        }
        if let Some(trace) = &self.trace {
            if !self.fragmentation || !self.limits.is_empty() {
                return Err(GrantsError::NeedsConstantRate);
            }
            let rounds = self.slots.round() * 2;
            if !trace.has_for(rounds, |rate| capacity::bytes_in(rate, self.slots.longest()) > 0) {
                return Err(GrantsError::ShortSteps(rounds));
            }
        }
        if let Some(requests) = &self.requests {
            if requests.every.is_zero() {
                return Err(GrantsError::NoOpportunity);
            }
            if let Some(Contention { first, last, .. }) = requests.contention
                && (first > last || last > 16)
            {
                return Err(GrantsError::BackOff(first, last));
            }
            if let Asks::Backlog { most, first } = requests.asks {
                if [most, first].contains(&Some(WireBytes::ZERO)) {
                    return Err(GrantsError::NoSize);
                }
                if !self.fragmentation && (first.is_some() || requests.outstanding == Outstanding::Many) {
                    return Err(GrantsError::NeedsFragmentation);
                }
            }
        }
        if self.proactive.is_some_and(|grant| grant.every.is_zero() || grant.bytes == WireBytes::ZERO) {
            return Err(GrantsError::NoProactive);
        }
        match self.limits.iter().find(|bucket| bucket.burst < LARGEST_PACKET) {
            Some(bucket) => Err(GrantsError::SmallBurst(bucket.burst)),
            None => Ok(()),
        }
    }

    /// The rate of the wire.
    fn wire(&self) -> capacity::Wire {
        capacity::Wire { rate: self.rate, trace: self.trace.clone() }
    }

    /// The trace of the line: what the usable spans let pass in each step, in the mean over its repetitions.
    #[must_use]
    pub fn usable_trace(&self) -> Option<Arc<Steps>> {
        let trace = self.trace.as_ref()?;
        Some(Arc::new(trace.with_rates(|rate, from, to| {
            let Some(to) = to else { return self.slots.mean_rate(rate).unwrap_or(rate) };
            let usable = u128::from(self.slots.usable(from, to, trace.period()).as_ps());
            let bps = u128::from(rate.as_bps()) * usable / u128::from((to - from).as_ps());
            // No outage, even if no usable span falls into the step.
            u64::try_from(bps.max(1)).ok().and_then(BitRate::from_bps).unwrap_or(rate)
        })))
    }

    /// Bits that the usable spans between two times let pass, times 10^12; `None` without a trace.
    pub(super) fn work_between(&self, from: Instant, to: Instant) -> Option<u128> {
        let trace = self.trace.as_ref()?;
        let (mut position, mut at, mut work) = (trace.position(from), from, 0);
        while at < to {
            let next = trace.after(position).filter(|(_, begins)| *begins < to);
            let end = next.map_or(to, |(_, begins)| begins);
            let [since, until] = [at, end].map(|at| at.since(Instant::ZERO));
            let usable = self.slots.usable(since, until, None).as_ps();
            work += u128::from(trace.at(position).rate.map_or(0, BitRate::as_bps)) * u128::from(usable);
            (position, at) = (next.map_or(position, |(position, _)| position), end);
        }
        Some(work)
    }

    /// The largest mean rate: that of the usable spans, or what buckets allow where that is less. Proactive grants are
    /// made whatever the buckets hold, so that their rate is the least.
    #[must_use]
    pub fn mean_rate(&self) -> Option<BitRate> {
        let wire = self.slots.mean_rate(self.rate)?;
        let asked = self.limits.iter().fold(wire, |least, bucket| least.min(bucket.rate)).as_bps();
        let brought = self.proactive.map(|grant| capacity::rate_of(grant.bytes, grant.every));
        let most = match (&self.requests, brought) {
            (Some(_), brought) => asked.max(brought.unwrap_or(0)),
            (None, Some(brought)) => brought,
            (None, None) => return Some(wire),
        };
        Some(BitRate::from_bps(most)?.min(wire))
    }

    /// The largest burst that is granted whole where packets are not cut: at most the largest request, the longest time
    /// without a gap, and the tokens of a full bucket, which gains those of a round while a grant waits for its slot.
    /// `None`: packets are cut.
    pub(super) fn whole_burst(&self) -> Option<u64> {
        let most = match &self.requests {
            Some(Requests { asks: Asks::Backlog { most: Some(most), .. }, .. }) => most.as_u64(),
            _ => u64::MAX,
        };
        let run = self.slots.longest_run().map_or(u64::MAX, |run| capacity::bytes_in(self.rate, run));
        let of_bucket = |bucket: &Bucket| {
            let in_a_round = capacity::bytes_in(bucket.rate, self.slots.round());
            bucket.burst.as_u64().saturating_sub(in_a_round).max(LARGEST_PACKET.as_u64())
        };
        let burst = self.limits.iter().map(of_bucket).fold(most.min(run), u64::min);
        (!self.fragmentation).then_some(burst)
    }

    /// The most that is ever sent: the mean rate, and the bytes beyond it in a span of time. A span may begin with full
    /// buckets, and have one proactive grant and one usable part of the pattern more than its length has in the mean.
    #[must_use]
    pub fn at_most(&self) -> Option<(BitRate, WireBytes)> {
        let burst: u64 = self.limits.iter().map(|bucket| bucket.burst.as_u64()).sum();
        let grant = self.proactive.map_or(0, |grant| grant.bytes.as_u64());
        let round = capacity::bytes_in(self.rate, self.slots.round());
        Some((self.mean_rate()?, WireBytes::new(round.saturating_add(burst).saturating_add(grant))))
    }

    /// The longest that a packet waits for a grant on an idle line: for an opportunity, for the answer, and for a slot.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        let asked = self.requests.as_ref().map_or(Duration::ZERO, |requests| requests.every + requests.response);
        asked + self.slots.round()
    }

    /// The longest that packets wait for grants on a line that carries much and is not full: as on an idle line, and
    /// with one request outstanding for the answer to the previous request, too.
    #[must_use]
    pub fn longest_wait_under_load(&self) -> Duration {
        let before = match &self.requests {
            Some(requests) if requests.outstanding == Outstanding::One => requests.response,
            _ => Duration::ZERO,
        };
        before + self.longest_wait()
    }

    /// The size of a buffer behind a queue that shapes: what the line sends in the longest wait for a grant, and two
    /// packets.
    #[must_use]
    pub fn buffer_behind_shaper(&self) -> WireBytes {
        let rate = self.mean_rate().unwrap_or(self.rate);
        let on_the_way = capacity::bytes_in(rate, self.longest_wait());
        LARGEST_PACKET + LARGEST_PACKET + WireBytes::new(on_the_way)
    }
}

/// Counters of a granted transmitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Requests, collided ones included.
    pub requests: u64,
    /// Requests that collided.
    pub collisions: u64,
    /// Requests that left with granted data.
    pub piggybacked: u64,
    /// Requested grants that have begun.
    pub grants: u64,
    /// Bytes of requested grants.
    pub granted: u64,
    /// Bytes of requested grants that passed unused, padding included.
    pub unused: u64,
    /// Bytes sent in grants that no request asked for.
    pub unasked: u64,
}

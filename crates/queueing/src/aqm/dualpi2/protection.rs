//! Queue protection: flows that build the shallow queue are moved to the classic queue.
//!
//! Published: RFC 9957; in brackets its names. Each flow has a score, a time that grows by its bytes while the shallow
//! queue is congested, and ages with the clock. The constants are the defaults of DOCSIS.

use lastmile_packet::FlowId;
use lastmile_units::{ByteCount, Duration, Instant};

use crate::aqm::pi::ONE;
use crate::random::split_mix;

/// Buckets for flows, besides the one that the flows without a bucket share.
const BUCKETS: usize = 32;
/// Buckets that a flow may take.
const ATTEMPTS: u32 = 2;
/// The score of a byte of congestion: a flow may cause 2^19 of them in 2^30 ns without a growing score (`LG_AGING` of
/// 19).
const SCORE_OF_A_BYTE: Duration = Duration::from_ns(1 << (30 - 19));
/// The largest score (`MAX_QLSCORE`).
const LARGEST_SCORE: Duration = Duration::from_s(5);
/// The score that is sanctioned at the critical wait (`CRITICALqLSCORE`); at longer waits a smaller one is.
const CRITICAL_SCORE: Duration = Duration::from_ms(4);

/// A flow and the time at which its score will have aged to zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket {
    flow: Option<FlowId>,
    expires: Instant,
}

/// The scores of flows.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    buckets: [Bucket; BUCKETS + 1],
    /// The wait of the shallow queue up to which no packet is sanctioned (`CRITICALqL`).
    critical: Duration,
    seed: u64,
}

impl Protection {
    /// No scores. `critical`: the wait from which each packet is marked (`MAXTH`), as is DOCSIS's default.
    pub(super) const fn new(critical: Duration, seed: u64) -> Self {
        Self { buckets: [Bucket { flow: None, expires: Instant::ZERO }; BUCKETS + 1], critical, seed }
    }

    /// The score of a flow with this packet, whose bytes count by the probability of a mark.
    pub(super) fn score(&mut self, now: Instant, flow: FlowId, size: ByteCount, probability: u64) -> Duration {
        let bucket = self.bucket(now, flow);
        bucket.expires = bucket.expires.max(now);
        let share = u128::from(size.as_u64() * SCORE_OF_A_BYTE.as_ps()) * u128::from(probability);
        let expires = bucket.expires.saturating_add(Duration::from_ps((share / u128::from(ONE)) as u64));
        bucket.expires = expires.min(now.saturating_add(LARGEST_SCORE));
        bucket.expires.since(now)
    }

    /// True if a packet of a flow with this score does not enter a shallow queue with this wait.
    pub(super) fn is_sanctioned(&self, wait: Duration, score: Duration) -> bool {
        let product = |wait: Duration, score: Duration| u128::from(wait.as_ps()) * u128::from(score.as_ps());
        wait > self.critical && product(wait, score) > product(self.critical, CRITICAL_SCORE)
    }

    /// The bucket of a flow: its own, one whose score has aged, or the shared one.
    fn bucket(&mut self, now: Instant, flow: FlowId) -> &mut Bucket {
        let mut state = self.seed ^ u64::from(flow.index());
        let hash = split_mix(&mut state);
        let mut free = None;
        for attempt in 0..ATTEMPTS {
            let index = (hash >> (5 * attempt)) as usize % BUCKETS;
            if self.buckets[index].flow == Some(flow) {
                return &mut self.buckets[index];
            }
            if free.is_none() && self.buckets[index].expires <= now {
                free = Some(index);
            }
        }
        let index = free.unwrap_or(BUCKETS);
        self.buckets[index].flow = (index < BUCKETS).then_some(flow);
        &mut self.buckets[index]
    }
}

//! The recent answers in handshakes, shared by all disciplines of one place.

use std::sync::{Mutex, PoisonError};

use lastmile_packet::{FlowKey, HashKey, SeqNumber};
use lastmile_units::{Duration, Instant};

use crate::ack::recent_flows::RecentFlows;

/// Time for which an answer is remembered: longer than the queueing delay of an ACK.
const REMEMBERED_FOR: Duration = Duration::from_s(60);

/// Recent answers.
#[derive(Debug)]
pub struct Handshakes(Mutex<RecentFlows<Answer, FlowKey, HashKey>>);

/// Content of a SYN-ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) ack: SeqNumber,
    /// Whether it has a window scale option; `None`: not known.
    pub(super) scales: Option<bool>,
}

impl Handshakes {
    /// No answers. `hash_key` is the key of a hash of addresses and ports.
    #[must_use]
    pub fn new(hash_key: HashKey) -> Self {
        Self(Mutex::new(RecentFlows::with_hasher(REMEMBERED_FOR, &hash_key)))
    }

    /// Whether the windows of both ends are scaled, by the answer to a SYN of the flow `syn_of`
    /// with the number `seq` and `data` bytes of data. `None` if no such answer was seen.
    pub(in crate::ack) fn scales(&self, now: Instant, syn_of: &FlowKey, seq: SeqNumber, data: u16) -> Option<bool> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = *seen.get(now, &syn_of.reversed())?;
        let (first, last) = (seq.add(1), seq.add(1 + u32::from(data)));
        let answers = answer.ack.at_or_after(first) && answer.ack.at_or_before(last);
        answer.scales.filter(|_| answers)
    }

    pub(super) fn note(&self, now: Instant, flow: FlowKey, answer: Answer) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.get_or_create(now, flow, || answer) = answer;
    }
}

/// With a fixed key, which is no secret.
impl Default for Handshakes {
    fn default() -> Self {
        Self::new(HashKey::default())
    }
}

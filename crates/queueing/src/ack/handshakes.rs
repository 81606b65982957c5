//! What the answers in TCP handshakes say, told from one direction to the other.
//!
//! A regulator of ACKs sees one direction. Whether the window scale that a client's SYN offers is in effect is said in the other, by
//! the server's SYN-ACK (RFC 7323, section 2.2: it carries the option only if the SYN did, and both ends scale only if both have
//! sent it). A [`Witness`] stands before a queue of that other direction, changes nothing, and notes the SYN-ACKs that come; whoever
//! stands in the same place ([`Environment::handshakes`]) may ask for the answer to a SYN.
//!
//! An answer belongs to a SYN by its acknowledgement number, which lies behind the SYN's own number and what data the SYN carries
//! (RFC 9293, section 3.10.7.3; RFC 7413). So an answer to an earlier connection between the same ports is none to the next. Of
//! a SYN-ACK with options that are not understood only the option that was found is believed, not that there was none.
//! Where nothing was seen there is no answer, and who asks does what it would do without. A damaged SYN-ACK is not seen.
//!
//! Flows are known by addresses and ports, since numbers of flows say nothing of which is the reverse of which.
//! Cost: a look at the flags of each packet; for a SYN-ACK, and for a question, a keyed hash and a lock that nobody else holds for
//! long. Memory: 131 072 answers at most, each for two minutes at most.

use std::sync::{Mutex, PoisonError};

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowKey, HashKey, Packet, Protocol, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};

use super::recent::Recent;
use crate::catalogue::Above;
use crate::discipline::{Counter, answers_of_below};
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};

/// How long an answer is remembered: longer than an ACK waits for its turn.
const REMEMBERED_FOR: Duration = Duration::from_s(60);

/// The answers that were seen lately.
#[derive(Debug)]
pub struct Handshakes(Mutex<Recent<Answer, FlowKey, HashKey>>);

/// What a SYN-ACK says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    ack: SeqNumber,
    /// Its window scale option was there or not; `None`: not known.
    scales: Option<bool>,
}

impl Handshakes {
    /// None seen. The key is that of a hash of addresses and ports.
    #[must_use]
    pub fn new(hash_key: HashKey) -> Self {
        Self(Mutex::new(Recent::with_hasher(REMEMBERED_FOR, &hash_key)))
    }

    /// Whether the windows of both ends are scaled, by the answer to a SYN of the flow `syn_of`, whose number is `seq` and which carries
    /// `data` bytes; `None` where no such answer was seen.
    pub(super) fn scales(&self, now: Instant, syn_of: &FlowKey, seq: SeqNumber, data: u16) -> Option<bool> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = *seen.get(now, &syn_of.reversed())?;
        let (first, last) = (seq.add(1), seq.add(1 + u32::from(data)));
        let answers = answer.ack.at_or_after(first) && answer.ack.at_or_before(last);
        answer.scales.filter(|_| answers)
    }

    fn note(&self, now: Instant, flow: FlowKey, answer: Answer) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.hear(now, flow, || answer) = answer;
    }
}

/// Under a key that is no secret.
impl Default for Handshakes {
    fn default() -> Self {
        Self::new(HashKey::default())
    }
}

/// A queue that notes the SYN-ACKs that come into it.
pub struct Witness<D> {
    queue: D,
    environment: Environment,
    noted: u64,
}

impl<D> Witness<D> {
    /// A witness before `queue`, for all that stand in this environment.
    #[must_use]
    pub fn new(environment: &Environment, queue: D) -> Self {
        Self { queue, environment: environment.clone(), noted: 0 }
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for Witness<D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let meta = packet.meta();
        if meta.protocol == Protocol::Tcp
            && meta.flags.contains(TcpFlags::SYN.with(TcpFlags::ACK))
            && let Some(meta) = packet.segment()
            && let Some(flow) = packet.key(&*self.environment.flows)
        {
            let scales = match meta.options().syn_options().window_scale {
                Some(_) => Some(true),
                None if meta.options().has_unknown() => None,
                None => Some(false),
            };
            self.environment.handshakes.note(now, flow, Answer { ack: meta.ack, scales });
            self.noted += 1;
        }
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.queue.dequeue(now, drops)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.queue.dequeue_urgent(now, drops)
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        visit(Counter { path: "", kind: "handshakes", name: "answers", value: self.noted });
        Counter::below("queue", &self.queue, visit);
    }

    answers_of_below!(self => self.queue);
}

/// A witness has no parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config;

impl Above for Config {
    fn check(&self, _queue: &Spec, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(())
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(Witness::new(environment, queue)))
    }
}

#[cfg(test)]
mod tests;

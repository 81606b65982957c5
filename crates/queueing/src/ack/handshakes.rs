//! The answers in TCP handshakes, passed from one direction to the other.
//!
//! A regulator of ACKs sees one direction. The server's SYN-ACK in the other direction decides
//! whether the window scale that a client's SYN offers is in effect (RFC 7323, section 2.2: it
//! carries the option only if the SYN did, and both ends scale only if both have sent it). A
//! [`Witness`] in front of a queue of that other direction changes nothing and records SYN-ACKs.
//! Disciplines in the same place ([`Environment::handshakes`]) can query the answer to a SYN.
//!
//! An answer belongs to a SYN if it acknowledges the SYN's number and none, some or all of the
//! SYN's data (RFC 9293, section 3.10.7.3; RFC 7413). An answer to an earlier connection between
//! the same ports therefore does not match. If a SYN-ACK has unknown options, a window scale option
//! found is believed, and its absence is not. Without a recorded answer, the caller proceeds as
//! without a witness. A damaged SYN-ACK is ignored.
//!
//! Flows are identified by addresses and ports, since flow numbers do not pair the two directions.
//! Cost: a test of the flags of each packet; for a SYN-ACK, and for a query, a keyed hash and a
//! briefly held lock. Memory: at most 131 072 answers, each for at most two minutes.

mod answers;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{Packet, Protocol, TcpFlags};
use lastmile_units::Instant;

use answers::Answer;
pub use answers::Handshakes;

use crate::catalogue::Above;
use crate::discipline::{Counter, answers_of_below};
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};

/// A queue that records arriving SYN-ACKs.
pub struct Witness<D> {
    queue: D,
    environment: Environment,
    noted: u64,
}

impl<D> Witness<D> {
    /// A witness in front of `queue`, for all disciplines in this environment.
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

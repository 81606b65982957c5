//! A link: its line, its pending events, and its record.

use std::sync::Arc;

use lastmile_packet::{FlowDirectory, Meta};
use lastmile_queueing::ack::Handshakes;
use lastmile_queueing::line::{self, Line};
use lastmile_queueing::{DropReason, DropSink, Environment};
use lastmile_units::{Duration, Instant};

use super::losses::LossCounts;
use super::route::LinkIndex;
use crate::engine::Wheel;
use crate::engine::event::{Event, Token};
use lastmile_model::outcome::{Buckets, LossCause, Waits};
use lastmile_model::{BuildError, Link, Network, Observer, Passage};

/// A link of the network.
pub(crate) struct LinkState {
    pub(crate) line: Line<Meta>,
    pub(crate) monitor: Monitor,
    /// The link carries cells, and its line stays idle.
    pub(crate) cells: bool,
    /// Each transmission has an event, so that a capture is in order of time.
    punctual: bool,
    /// The time of the pending transmission.
    pub(super) transmit_at: Option<Instant>,
    /// The time of the pending arrival.
    pub(super) arrive_at: Option<Instant>,
}

impl LinkState {
    pub(super) fn new(
        network: &Network,
        link: &Link,
        flows: &Arc<dyn FlowDirectory>,
        handshakes: &Arc<Handshakes>,
        punctual: bool,
    ) -> Result<Self, BuildError> {
        let hop = network.hop_of(link);
        let environment =
            Environment::new(hop.line.link_layer).with_flows(Arc::clone(flows)).with_handshakes(Arc::clone(handshakes));
        let line = hop
            .idle_line(network.seed, environment)
            .map_err(|source| BuildError::Queue { link: hop.name.clone(), source })?;
        Ok(Self {
            line: line.with_flows(Arc::clone(flows)),
            monitor: Monitor::default(),
            cells: false,
            punctual,
            transmit_at: None,
            arrive_at: None,
        })
    }

    /// The line, and the observer that records its packets.
    #[inline(always)]
    pub(super) fn observed<'a>(
        &'a mut self,
        index: LinkIndex,
        losses: &'a mut LossCounts,
        capture: &'a mut Option<Box<dyn Observer<Meta>>>,
    ) -> (&'a mut Line<Meta>, LineObserver<'a>) {
        let observer =
            LineObserver { link: index, monitor: &mut self.monitor, losses, capture: capture.as_deref_mut() };
        (&mut self.line, observer)
    }

    /// Schedules the next arrival and the next transmission. One that may wait has no event while a packet is to
    /// arrive: nothing sees it before.
    // Inlined: most calls find both scheduled.
    #[inline(always)]
    pub(super) fn arm(&mut self, index: LinkIndex, pending: &mut Wheel<Token>) {
        self.arm_arrival(index, pending);
        if self.arrive_at.is_some() && self.line.may_be_late() && !self.punctual {
            return;
        }
        if let Some(due) = self.line.next_transmission()
            && self.transmit_at.is_none_or(|at| due < at)
        {
            self.transmit_at = Some(due);
            pending.push(due, Event::Transmit(index).into());
        }
    }

    /// Schedules the next arrival.
    #[inline(always)]
    pub(super) fn arm_arrival(&mut self, index: LinkIndex, pending: &mut Wheel<Token>) {
        if self.arrive_at.is_some() && self.line.keeps_order() {
            return;
        }
        if let Some(arrival) = self.line.next_arrival()
            && self.arrive_at.is_none_or(|at| arrival < at)
        {
            self.arrive_at = Some(arrival);
            pending.push(arrival, Event::Arrive(index).into());
        }
    }
}

/// The record of a link beside the counters of its line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    /// Queueing delays of pure ACKs, and of all other packets.
    pub(crate) acks: QueueingDelays,
    pub(crate) others: QueueingDelays,
    /// Times from requests to the starts of their first grants.
    pub(crate) granted_ns: Buckets,
    pub(crate) max_backlog_packets: u64,
    pub(crate) max_backlog_bytes: u64,
    /// Queueing delay by class of the queue, up to the last class that sent.
    pub(crate) class_delay_ns: Vec<Buckets>,
}

/// Queueing delays of packets of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueingDelays {
    pub(crate) all_ns: Buckets,
    pub(crate) since_snapshot: Waits,
    pub(crate) since_sample: Waits,
}

impl Monitor {
    /// Records the present backlog of a queue that does not send at once.
    #[inline]
    pub(super) fn note_backlog(&mut self, line: &Line<Meta>) {
        if line.next_transmission().is_some() {
            let backlog = line.backlog();
            self.max_backlog_packets = self.max_backlog_packets.max(backlog.packets.as_u64());
            self.max_backlog_bytes = self.max_backlog_bytes.max(backlog.bytes.as_u64());
        }
    }

    // Not inlined: most queues have no classes.
    #[inline(never)]
    fn waited_in_class(&mut self, class: u16, waited: Duration) {
        let class = usize::from(class);
        if class >= self.class_delay_ns.len() {
            // Once a class, and schedulers have few.
            self.class_delay_ns.resize(class + 1, Buckets::default());
        }
        self.class_delay_ns[class].record(waited.as_ns());
    }

    // Inlined: counting is hardly more than the call.
    #[inline(always)]
    fn waited(&mut self, waited: Duration, packet: &Meta) {
        let delays = if packet.is_pure_ack() { &mut self.acks } else { &mut self.others };
        delays.all_ns.record(waited.as_ns());
        delays.since_snapshot.add(waited);
        delays.since_sample.add(waited);
        if let Some(class) = packet.class {
            self.waited_in_class(class, waited);
        }
    }
}

/// Records transmissions and drops of a line, and passes them on to the capture.
pub(super) struct LineObserver<'a> {
    pub(super) link: LinkIndex,
    pub(super) monitor: &'a mut Monitor,
    pub(super) losses: &'a mut LossCounts,
    pub(super) capture: Option<&'a mut (dyn Observer<Meta> + 'static)>,
}

impl DropSink<Meta> for LineObserver<'_> {
    fn dropped(&mut self, now: Instant, packet: Meta, reason: DropReason) {
        self.losses.add(self.link, &packet, LossCause::Packet(reason));
        if let Some(capture) = &mut self.capture {
            capture.packet(now, self.link as usize, Passage::Dropped(reason), &packet);
        }
    }
}

impl line::TransmissionSink<Meta> for LineObserver<'_> {
    #[inline(always)]
    fn transmitted(&mut self, start: Instant, _end: Instant, waited: Duration, packet: &Meta) {
        self.monitor.waited(waited, packet);
        if let Some(capture) = &mut self.capture {
            capture.packet(start, self.link as usize, Passage::Transmitted, packet);
        }
    }

    fn granted(&mut self, waited: Duration) {
        self.monitor.granted_ns.record(waited.as_ns());
    }
}

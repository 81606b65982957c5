//! Open-loop replay of a capture: packets depart at their captured times with their captured headers.
//!
//! Every flow of the capture is a flow of the run, so that queues and regulators can distinguish them. The
//! receiver counts packets and answers none: a TCP segment causes no ACK.
//!
//! Cost: 72 bytes a packet, shared between sources of one capture.

use std::sync::Arc;

use lastmile_packet::{FlowId, Meta};
use lastmile_units::{Duration, Instant};

use lastmile_model::Replay as Capture;

use super::DataCounts;

/// A replay of a capture.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) traffic: u32,
    pub(crate) counts: DataCounts,
    capture: Arc<Capture>,
    /// The flow number of flow 0 of the capture.
    first_flow: u32,
    start: Instant,
    stop: Option<Instant>,
}

impl Replay {
    pub(crate) fn new(capture: &Arc<Capture>, traffic: u32, first_flow: u32) -> Self {
        Self {
            traffic,
            counts: DataCounts::default(),
            capture: Arc::clone(capture),
            first_flow,
            start: Instant::ZERO,
            stop: None,
        }
    }

    /// Begins the replay. Returns the departure of its first packet.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) -> Option<Instant> {
        (self.start, self.stop) = (now, stop);
        self.due()
    }

    /// The next packet, and the departure of the one after it.
    pub(crate) fn next(&mut self) -> Option<(Meta, Option<Instant>)> {
        let (_, packet) = self.upcoming()?;
        self.counts.sent += 1;
        let number = self.first_flow + packet.flow.index();
        Some((Meta { flow: FlowId::new(2 * number), ..packet }, self.due()))
    }

    /// A packet arrives at the other end. One that the path made, a copy or a restored ACK, is none of the capture.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) {
        let payload = packet.ip_len.saturating_sub(packet.header_len.into()).into();
        let after = packet.sent.since(self.start);
        let same = |sent: &Meta| {
            self.first_flow + sent.flow.index() == packet.flow.index() / 2
                && (sent.seq, sent.ip_id) == (packet.seq, packet.ip_id)
        };
        let first = self.capture.packets.partition_point(|(before, _)| *before < after);
        let at_that_time = self.capture.packets[first..].iter().take_while(|(time, _)| *time == after);
        // Of equal ones at one time, the first that has not arrived.
        for (number, (_, sent)) in (first as u64..).zip(at_that_time) {
            if same(sent) && self.counts.arrived(now, number, payload) {
                break;
            }
        }
    }

    /// The packet after those that were sent.
    fn upcoming(&self) -> Option<(Duration, Meta)> {
        self.capture.packets.get(usize::try_from(self.counts.sent).ok()?).copied()
    }

    fn due(&self) -> Option<Instant> {
        let at = self.start + self.upcoming()?.0;
        self.stop.is_none_or(|stop| at < stop).then_some(at)
    }
}

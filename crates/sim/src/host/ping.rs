//! ICMP echo: a request at each interval, answered by the other end.

use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_units::{ByteCount, Duration, Instant};

use super::datagram;

/// A ping, both ends of it.
#[derive(Debug)]
pub(crate) struct Ping {
    pub(crate) traffic: usize,
    pub(crate) replies: Vec<(Instant, Duration)>,
    request: FlowId,
    reply: FlowId,
    interval: Duration,
    size: ByteCount,
    dscp: u8,
    stop: Option<Instant>,
    start: Instant,
    sent: u64,
}

impl Ping {
    pub(crate) fn new(flows: [FlowId; 2], traffic: usize, dscp: u8, interval: Duration, size: ByteCount) -> Self {
        Self {
            traffic,
            replies: Vec::new(),
            request: flows[0],
            reply: flows[1],
            interval,
            size,
            dscp,
            stop: None,
            start: Instant::ZERO,
            sent: 0,
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// The ping begins.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) {
        self.start = now;
        self.stop = stop;
    }

    /// Time for a request: the request, and when the next one leaves.
    pub(crate) fn next(&mut self, now: Instant) -> (Meta, Option<Instant>) {
        let packet = datagram(self.request, Protocol::EchoRequest, self.size, self.sent, self.dscp);
        self.sent += 1;
        let next = now + self.interval;
        (packet, self.stop.is_none_or(|stop| next < stop).then_some(next))
    }

    /// The answer to a request.
    pub(crate) fn answer(&self, request: &Meta) -> Meta {
        let number = u64::from(request.seq.raw());
        datagram(self.reply, Protocol::EchoReply, request.ip_bytes(), number, self.dscp)
    }

    /// A reply comes back. Requests leave at equal intervals, so its number says when its request left.
    pub(crate) fn replied(&mut self, now: Instant, reply: &Meta) {
        let left = self.start + self.interval * u64::from(reply.seq.raw());
        self.replies.push((left, now - left));
    }
}

//! Echo over ICMP or UDP: a request at each interval, answered by the other end.

use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_units::{ByteCount, Duration, Instant};

use super::datagram;
use lastmile_model::Echo;

/// A ping, both ends of it.
#[derive(Debug)]
pub(crate) struct Ping {
    pub(crate) traffic: usize,
    pub(crate) replies: Vec<(Instant, Duration)>,
    request: FlowId,
    reply: FlowId,
    interval: Duration,
    size: ByteCount,
    echo: Echo,
    dscp: u8,
    stop: Option<Instant>,
    /// When the first request leaves.
    pub(crate) start: Instant,
    sent: u64,
}

impl Ping {
    pub(crate) fn new(
        flows: [FlowId; 2],
        traffic: usize,
        dscp: u8,
        (interval, size, echo): (Duration, ByteCount, Echo),
    ) -> Self {
        Self {
            traffic,
            replies: Vec::new(),
            request: flows[0],
            reply: flows[1],
            interval,
            size,
            echo,
            dscp,
            stop: None,
            start: Instant::ZERO,
            sent: 0,
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// The ping begins: when its first request leaves. Requests over UDP leave half an interval later, so that those of a ping over ICMP beside
    /// them are not always just ahead.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) -> Option<Instant> {
        self.start = match self.echo {
            Echo::Icmp => now,
            Echo::Udp => now + self.interval / 2,
        };
        self.stop = stop;
        self.stop.is_none_or(|stop| self.start < stop).then_some(self.start)
    }

    /// Time for a request: the request, and when the next one leaves.
    pub(crate) fn next(&mut self, now: Instant) -> (Meta, Option<Instant>) {
        let protocol = match self.echo {
            Echo::Icmp => Protocol::EchoRequest,
            Echo::Udp => Protocol::Udp,
        };
        let packet = datagram(self.request, protocol, self.size, self.sent, self.dscp);
        self.sent += 1;
        let next = now + self.interval;
        (packet, self.stop.is_none_or(|stop| next < stop).then_some(next))
    }

    /// The answer to `packet` if it is a request.
    pub(crate) fn answer(&self, packet: &Meta) -> Option<Meta> {
        let protocol = match self.echo {
            Echo::Icmp => Protocol::EchoReply,
            Echo::Udp => Protocol::Udp,
        };
        let number = u64::from(packet.seq.raw());
        (packet.flow == self.request).then(|| datagram(self.reply, protocol, packet.ip_bytes(), number, self.dscp))
    }

    /// A reply comes back. Requests leave at equal intervals, so its number says when its request left.
    pub(crate) fn replied(&mut self, now: Instant, reply: &Meta) {
        let left = self.start + self.interval * u64::from(reply.seq.raw());
        self.replies.push((left, now - left));
    }
}

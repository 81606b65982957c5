//! Echo over ICMP or UDP: one end sends a request at each interval, and the other end answers it.

use lastmile_analysis::duplicates::Seen;
use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_units::{ByteCount, Duration, Instant};

use super::datagram;
use lastmile_model::{Echo, IpFields};

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
    ip: IpFields,
    stop: Option<Instant>,
    /// The departure of the first request.
    pub(crate) start: Instant,
    sent: u64,
    answered: Seen,
}

impl Ping {
    pub(crate) fn new(
        flows: [FlowId; 2],
        traffic: usize,
        ip: IpFields,
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
            ip,
            stop: None,
            start: Instant::ZERO,
            sent: 0,
            answered: Seen::default(),
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Begins the ping. Returns the departure of its first request. Requests over UDP depart half an interval later, so
    /// that requests of a parallel ping over ICMP are not always directly ahead of them.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) -> Option<Instant> {
        self.start = match self.echo {
            Echo::Icmp => now,
            Echo::Udp => now + self.interval / 2,
        };
        self.stop = stop;
        self.stop.is_none_or(|stop| self.start < stop).then_some(self.start)
    }

    /// The next request, and the departure of the one after it.
    pub(crate) fn next(&mut self, now: Instant) -> (Meta, Option<Instant>) {
        let protocol = match self.echo {
            Echo::Icmp => Protocol::EchoRequest,
            Echo::Udp => Protocol::Udp,
        };
        let packet = datagram(self.request, protocol, self.size, self.sent, self.ip);
        self.sent += 1;
        let next = now + self.interval;
        (packet, self.stop.is_none_or(|stop| next < stop).then_some(next))
    }

    /// The answer to `packet`, if it is a request.
    pub(crate) fn answer(&self, packet: &Meta) -> Option<Meta> {
        let protocol = match self.echo {
            Echo::Icmp => Protocol::EchoReply,
            Echo::Udp => Protocol::Udp,
        };
        let number = u64::from(packet.seq.raw());
        (packet.flow == self.request).then(|| datagram(self.reply, protocol, packet.ip_bytes(), number, self.ip))
    }

    /// A reply arrives; the first to a request counts. Its number yields the departure of its request, since requests
    /// depart at equal intervals.
    pub(crate) fn replied(&mut self, now: Instant, reply: &Meta) {
        let number = u64::from(reply.seq.raw());
        if self.answered.is_first(number) {
            let left = self.start + self.interval * number;
            self.replies.push((left, now - left));
        }
    }
}

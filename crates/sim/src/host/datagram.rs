//! UDP sources: Poisson, on/off with exponential periods, constant rate (voice, packet blast).

use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_queueing::random::Stream;
use lastmile_units::{ByteCount, Duration, Instant, Serialiser, WireBytes};

use crate::spec::Source;

use super::datagram;

/// A UDP flow, both ends of it.
#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) flow: FlowId,
    pub(crate) traffic: usize,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) bytes_delivered: u64,
    pub(crate) first_delivery: Option<Instant>,
    pub(crate) last_delivery: Option<Instant>,
    size: ByteCount,
    dscp: u8,
    stop: Option<Instant>,
    pattern: Pattern,
}

/// When packets leave.
#[derive(Debug)]
enum Pattern {
    Constant { interval: Duration },
    Poisson { mean: Duration, random: Stream },
    OnOff { packet_time: Serialiser, on: Duration, off: Duration, burst_ends: Instant, random: Stream },
}

impl Datagrams {
    /// A source of this kind; `None` for what is no datagram source.
    pub(crate) fn new(source: &Source, flow: FlowId, traffic: usize, dscp: u8, random: Stream) -> Option<Self> {
        let (size, pattern) = match *source {
            Source::Constant { interval, size, .. } => (size, Pattern::Constant { interval }),
            Source::Poisson { rate, size } => {
                (size, Pattern::Poisson { mean: rate.time_for(WireBytes::new(size.as_u64())), random })
            }
            Source::OnOff { peak, on, off, size } => {
                let packet_time = Serialiser::new(peak);
                (size, Pattern::OnOff { packet_time, on, off, burst_ends: Instant::ZERO, random })
            }
            Source::Bulk { .. } | Source::Web(_) | Source::Swarm(_) | Source::Replay(_) | Source::Ping { .. } => {
                return None;
            }
        };
        Some(Self {
            flow,
            traffic,
            sent: 0,
            received: 0,
            bytes_delivered: 0,
            first_delivery: None,
            last_delivery: None,
            size,
            dscp,
            stop: None,
            pattern,
        })
    }

    /// The flow begins: when its first packet leaves.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) -> Option<Instant> {
        self.stop = stop;
        let first = match &mut self.pattern {
            Pattern::Constant { .. } => now,
            Pattern::Poisson { mean, random } => now + random.exponential(*mean),
            Pattern::OnOff { on, burst_ends, random, .. } => {
                *burst_ends = now + random.exponential(*on);
                now
            }
        };
        self.unless_stopped(first)
    }

    /// Time for a packet: the packet, and when the next one leaves.
    pub(crate) fn next(&mut self, now: Instant) -> (Meta, Option<Instant>) {
        let packet = datagram(self.flow, Protocol::Udp, self.size, self.sent, self.dscp);
        self.sent += 1;
        let next = match &mut self.pattern {
            Pattern::Constant { interval } => now + *interval,
            Pattern::Poisson { mean, random } => now + random.exponential(*mean),
            Pattern::OnOff { packet_time, on, off, burst_ends, random } => {
                let next = now + packet_time.advance(WireBytes::new(self.size.as_u64()));
                if next < *burst_ends {
                    next
                } else {
                    // The burst is over, but never before its last packet is out.
                    let begins = next.max(*burst_ends) + random.exponential(*off);
                    *burst_ends = begins + random.exponential(*on);
                    begins
                }
            }
        };
        (packet, self.unless_stopped(next))
    }

    /// A packet arrives at the other end.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) {
        self.received += 1;
        self.bytes_delivered += u64::from(packet.payload_len());
        self.first_delivery.get_or_insert(now);
        self.last_delivery = Some(now);
    }

    fn unless_stopped(&self, at: Instant) -> Option<Instant> {
        self.stop.is_none_or(|stop| at < stop).then_some(at)
    }
}

//! A path with a bottleneck: a rate, a delay, a buffer and a threshold of marks, between two endpoints.
//!
//! Acknowledgements meet no queue. The harness checks each segment of new data against the congestion window.

use std::collections::BTreeMap;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber};
use lastmile_tcp::{Config, Endpoint, Open};
use lastmile_units::{Duration, Instant};

pub(crate) struct Path {
    pub(crate) now: Instant,
    /// Sender and receiver.
    pub(crate) ends: [Endpoint; 2],
    /// Octets of IP packets per second.
    pub(crate) rate: u64,
    /// Each way.
    pub(crate) delay: Duration,
    /// The longest queue, and the queue from which ECN-capable packets are marked.
    pub(crate) buffer: Duration,
    pub(crate) marks_above: Option<Duration>,
    /// Every n-th packet of data is lost.
    pub(crate) loses_every: Option<u64>,
    pub(crate) lost: u64,
    pub(crate) marked: u64,
    free_at: Instant,
    packets: u64,
    wire: BTreeMap<(Instant, u64), (usize, Meta)>,
    /// The queue that each packet of data met, since the last [`Path::take_queue`].
    queues: Vec<Duration>,
}

impl Path {
    pub(crate) fn new(config: &Config, rate_mbit: u64, delay_ms: u64, buffer_ms: u64) -> Self {
        let config = Arc::new(config.clone());
        let end = |index: u32, open| {
            Endpoint::new(Arc::clone(&config), FlowId::new(index), open, SeqNumber::new(1000 * index))
        };
        let mut ends = [end(0, Open::Active), end(1, Open::Passive)];
        ends[0].write_forever();
        ends[0].connect(Instant::ZERO);
        let mut path = Self {
            now: Instant::ZERO,
            ends,
            rate: rate_mbit * 125_000,
            delay: Duration::from_ms(delay_ms),
            buffer: Duration::from_ms(buffer_ms),
            marks_above: None,
            loses_every: None,
            lost: 0,
            marked: 0,
            free_at: Instant::ZERO,
            packets: 0,
            wire: BTreeMap::new(),
            queues: Vec::new(),
        };
        path.poll(0);
        path
    }

    /// Runs until `until`, and calls `each` after each event.
    pub(crate) fn run(&mut self, until: Instant, mut each: impl FnMut(&Self)) {
        while let Some(next) = self.next().filter(|next| *next <= until) {
            assert!(next >= self.now, "an event in the past");
            self.now = next;
            if self.wire.first_key_value().is_some_and(|((at, _), _)| *at == next) {
                let (_, (end, segment)) = self.wire.pop_first().expect("just seen");
                self.ends[end].on_segment(next, &segment);
                self.poll(end);
            } else {
                let end = usize::from(self.ends[0].next_timer() != Some(next));
                self.ends[end].on_timer(next);
                self.poll(end);
            }
            each(self);
        }
        self.now = until;
    }

    fn next(&self) -> Option<Instant> {
        let wire = self.wire.first_key_value().map(|((at, _), _)| *at);
        let timers = self.ends.iter().filter_map(Endpoint::next_timer);
        timers.chain(wire).min()
    }

    fn poll(&mut self, end: usize) {
        while let Some(segment) = self.ends[end].poll_transmit(self.now) {
            if end == 0 && segment.payload_len() > 0 && !segment.mark.retransmission() {
                let (sender, mss) = (&self.ends[0], u64::from(self.ends[0].mss()));
                let most = u64::from(sender.cwnd_bytes()) + mss;
                assert!(sender.in_flight() <= most, "{} in flight, window {most}", sender.in_flight());
            }
            self.send(end, segment);
        }
    }

    fn send(&mut self, end: usize, mut segment: Meta) {
        self.packets += 1;
        let mut arrival = self.now + self.delay;
        if end == 0 {
            let queue = self.free_at.max(self.now).since(self.now);
            let unlucky = segment.payload_len() > 0 && self.loses_every.is_some_and(|n| self.packets.is_multiple_of(n));
            if queue > self.buffer || unlucky {
                self.lost += 1;
                return;
            }
            if self.marks_above.is_some_and(|above| queue > above) && segment.ecn() != 0 {
                segment.traffic_class |= 3;
                self.marked += 1;
            }
            if segment.payload_len() > 0 {
                self.queues.push(queue);
            }
            let ps = u64::from(segment.ip_len) * 1_000_000_000_000 / self.rate;
            self.free_at = self.free_at.max(self.now) + Duration::from_ps(ps);
            arrival = self.free_at + self.delay;
        }
        self.wire.insert((arrival, self.packets), (1 - end, segment));
    }

    /// The median queue since the last call.
    pub(crate) fn take_queue(&mut self) -> Duration {
        let mut queues = std::mem::take(&mut self.queues);
        queues.sort_unstable();
        queues.get(queues.len() / 2).copied().unwrap_or_default()
    }

    /// The share of the bottleneck that data delivered from `from` octets and time on use, in percent of payload.
    pub(crate) fn utilisation(&self, since: Instant, delivered: u64) -> f64 {
        let octets = (self.ends[1].delivered() - delivered) as f64;
        let payload = f64::from(self.ends[0].mss());
        let header = if self.ends[0].mss() == 1448 { 52.0 } else { 40.0 };
        octets * (payload + header) / payload / self.now.since(since).as_secs_f64() / self.rate as f64 * 100.0
    }
}

pub(crate) fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

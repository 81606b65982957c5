//! Two endpoints joined by a channel that loses, delays, reorders, duplicates and marks; and watchers that
//! check every segment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber, TcpFlags};
use lastmile_tcp::{Config, Endpoint, Open, State};
use lastmile_units::{Duration, Instant};

/// The treatment of packets by the channel: probabilities in thousandths, delays in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) loss: u64,
    pub(crate) duplicate: u64,
    pub(crate) mark: u64,
    pub(crate) delay_us: u64,
    /// The largest addition to the delay, by which packets overtake each other.
    pub(crate) jitter_us: u64,
}

/// The behaviour of one application.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) iss: u32,
    /// Writes: the time after the last one in milliseconds, and the bytes.
    pub(crate) writes: Vec<(u64, u64)>,
    /// Pauses of reading: the time of reading before, and the pause, in milliseconds.
    pub(crate) pauses: Vec<(u64, u64)>,
}

impl App {
    pub(crate) fn total(&self) -> u64 {
        self.writes.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// SplitMix64: small, and equal on all platforms.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }
}

/// The view of one endpoint from outside.
#[derive(Default)]
struct Watcher {
    iss: u32,
    /// One past the highest octet sent, the SYN being octet 0; a refused probe does not count.
    highest: u64,
    /// One past the highest octet that the peer's window admitted, by the segments that arrived from it.
    edge: u64,
    /// The peer's shift, once agreed.
    shift: u8,
    /// Octets that arrived at the peer, as ranges.
    arrived: BTreeMap<u64, u64>,
    packets: u64,
    again: u64,
    probes: u32,
    /// The next segment may be a tail loss probe.
    may_probe: bool,
}

impl Watcher {
    fn offset(&self, seq: SeqNumber) -> u64 {
        // Streams of these tests are shorter than half of the number space, except for one that does not check this.
        u64::from(seq.distance_from(SeqNumber::new(self.iss)))
    }

    fn note_arrival(&mut self, start: u64, end: u64) {
        let held = self.arrived.entry(start).or_insert(end);
        *held = end.max(*held);
    }

    /// Octets that arrived without a gap, from the first on.
    fn prefix(&self) -> u64 {
        let mut next = 1;
        for (&start, &end) in &self.arrived {
            if start > next {
                break;
            }
            next = next.max(end);
        }
        next - 1
    }
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) ends: [Endpoint; 2],
    apps: [App; 2],
    watchers: [Watcher; 2],
    channel: Channel,
    random: Random,
    /// Packets in flight, by arrival time and number: the end that receives them, and the segment.
    wire: BTreeMap<(Instant, u64), (usize, Meta)>,
    /// Calls of the applications, by time.
    calls: BTreeMap<(Instant, u64), (usize, Call)>,
    count: u64,
    /// The last segments sent and received, shown when a check fails.
    log: VecDeque<String>,
}

impl Drop for Pair {
    #[expect(clippy::print_stdout, reason = "the harness shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in &self.log {
                println!("{line}");
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Write(u64),
    Close,
    Reading(bool),
}

impl Pair {
    pub(crate) fn new(apps: [App; 2], channel: Channel, seed: u64) -> Self {
        let end = |index: usize, open| {
            let app: &App = &apps[index];
            let config = Arc::new(app.config.clone());
            Endpoint::new(config, FlowId::new(index as u32), open, SeqNumber::new(app.iss))
        };
        let ends = [end(0, Open::Active), end(1, Open::Passive)];
        let watchers = [0, 1].map(|index| Watcher { iss: apps[index].iss, ..Watcher::default() });
        let mut pair = Self {
            now: Instant::ZERO,
            ends,
            watchers,
            channel,
            random: Random(seed),
            wire: BTreeMap::new(),
            calls: BTreeMap::new(),
            count: 0,
            apps,
            log: VecDeque::new(),
        };
        pair.plan_calls();
        pair.ends[0].connect(Instant::ZERO);
        pair.poll(0);
        pair
    }

    fn plan_calls(&mut self) {
        for index in 0..2 {
            let app = self.apps[index].clone();
            let mut at = Instant::ZERO;
            for (after_ms, bytes) in app.writes {
                at += Duration::from_ms(after_ms);
                self.call(at, index, Call::Write(bytes));
            }
            self.call(at, index, Call::Close);
            let mut at = Instant::ZERO;
            for (reading_ms, pause_ms) in app.pauses {
                at += Duration::from_ms(reading_ms);
                self.call(at, index, Call::Reading(false));
                at += Duration::from_ms(pause_ms);
                self.call(at, index, Call::Reading(true));
            }
        }
    }

    fn call(&mut self, at: Instant, end: usize, call: Call) {
        self.count += 1;
        self.calls.insert((at, self.count), (end, call));
    }

    /// Runs until no event is left or `steps` events have happened; true if none is left.
    pub(crate) fn run(&mut self, steps: u64) -> bool {
        (0..steps).any(|_| !self.step())
    }

    /// Handles the next event. False: there is none.
    fn step(&mut self) -> bool {
        let timers = [0, 1].map(|end| self.ends[end].next_timer().unwrap_or(Instant::MAX));
        let first = |time: Option<(&(Instant, u64), _)>| time.map_or(Instant::MAX, |((at, _), _)| *at);
        let wire = first(self.wire.first_key_value().map(|(key, _)| (key, ())));
        let call = first(self.calls.first_key_value().map(|(key, _)| (key, ())));
        let next = wire.min(call).min(timers[0]).min(timers[1]);
        if next == Instant::MAX {
            return false;
        }
        assert!(next >= self.now, "a timer in the past");
        self.now = next;
        if call == next {
            let (_, (end, call)) = self.calls.pop_first().expect("just seen");
            match call {
                Call::Write(bytes) => self.ends[end].write(bytes),
                // A listener that closes stops listening: the application waits for the connection.
                Call::Close if self.ends[end].state() == State::Listen => {
                    self.call(next + Duration::from_ms(10), end, Call::Close);
                }
                Call::Close => self.ends[end].close(),
                Call::Reading(reading) => self.ends[end].set_reading(reading),
            }
            self.poll(end);
        } else if wire == next {
            let (_, (end, segment)) = self.wire.pop_first().expect("just seen");
            self.arrive(end, segment);
            self.poll(end);
        } else {
            let end = usize::from(timers[1] == next && timers[0] != next);
            self.ends[end].on_timer(next);
            assert_ne!(self.ends[end].next_timer(), Some(next), "a timer that fires for ever");
            self.watchers[end].may_probe = self.apps[end].config.repair.tail_loss_probe;
            self.poll(end);
            self.watchers[end].may_probe = false;
        }
        true
    }

    fn note(&mut self, end: usize, what: &str, segment: &Meta) {
        let (from, to) = if what == ">" { (end, 1 - end) } else { (1 - end, end) };
        let line = format!(
            "{} {end} {what} flags {:02x} {}+{} ack {} win {} {:?} una+{} cwnd {}",
            self.now,
            segment.flags.bits(),
            self.watchers[from].offset(segment.seq),
            segment.payload_len(),
            self.watchers[to].offset(segment.ack),
            segment.window,
            self.ends[end].state(),
            self.ends[end].in_flight(),
            self.ends[end].cwnd_bytes(),
        );
        if self.log.len() == 40 {
            self.log.pop_front();
        }
        self.log.push_back(line);
    }

    fn arrive(&mut self, end: usize, segment: Meta) {
        self.note(end, "<", &segment);
        let sender = &mut self.watchers[1 - end];
        let start = sender.offset(segment.seq);
        if segment.payload_len() > 0 {
            sender.note_arrival(start, start + u64::from(segment.payload_len()));
        }
        let receiver = &mut self.watchers[end];
        let syn = segment.flags.contains(TcpFlags::SYN);
        if syn {
            let both = self.apps.iter().all(|app| app.config.window_scale != lastmile_tcp::WindowScale::Off);
            receiver.shift = segment.options().syn_options().window_scale.filter(|_| both).unwrap_or(0);
        }
        let window = u64::from(segment.window) << if syn { 0 } else { receiver.shift };
        let ack = if segment.flags.contains(TcpFlags::ACK) { receiver.offset(segment.ack) } else { 1 };
        receiver.edge = receiver.edge.max(ack + window);
        // The receiver accepted a probe's octet.
        receiver.highest = receiver.highest.max(ack);
        self.ends[end].on_segment(self.now, &segment);
        let (endpoint, peer) = (&self.ends[end], &self.watchers[1 - end]);
        assert!(endpoint.received() <= peer.prefix(), "data delivered that never came");
        assert!(endpoint.delivered() <= endpoint.received());
    }

    fn poll(&mut self, end: usize) {
        let mut polled = 0;
        while let Some(segment) = self.ends[end].poll_transmit(self.now) {
            polled += 1;
            assert!(polled < 100_000, "an endpoint that never stops sending");
            self.note(end, ">", &segment);
            self.check_segment(end, &segment);
            self.send(end, segment);
        }
        self.check_endpoint(end);
    }

    fn check_segment(&mut self, end: usize, segment: &Meta) {
        let (endpoint, watcher) = (&self.ends[end], &mut self.watchers[end]);
        let len = u64::from(segment.payload_len());
        assert!(len <= u64::from(endpoint.mss()), "more than a segment");
        watcher.packets += u64::from(len > 0);
        let start = watcher.offset(segment.seq);
        if segment.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST)) {
            watcher.highest = watcher.highest.max(1);
            return;
        }
        let last = start + len + u64::from(segment.flags.contains(TcpFlags::FIN));
        if endpoint.stats().window_probes > watcher.probes {
            watcher.probes += 1;
            assert_eq!(endpoint.stats().window_probes, watcher.probes);
            assert_eq!((start, len), (watcher.highest, 1), "a probe is the next octet");
            assert!(!segment.mark.retransmission());
            return;
        }
        assert!(start + len <= watcher.edge || len == 0, "beyond the window: {start} + {len} > {}", watcher.edge);
        if last > start {
            // The receiver may have accepted a probe's octet, which only an acknowledgement shows.
            let before = watcher.highest;
            if segment.mark.retransmission() {
                watcher.again += 1;
                assert!(start < before, "marked as sent before, but is not");
            } else {
                assert!(start >= before, "sent before, but not marked");
            }
            watcher.highest = before.max(last);
            let cwnd = u64::from(endpoint.cwnd_bytes());
            if !segment.mark.retransmission() {
                // Limited transmit adds two segments, and the FIN one octet. RFC 8985, section 7.3: a tail loss probe
                // is a new segment whatever the congestion window, which a mark may have halved.
                let most = cwnd + 2 * u64::from(endpoint.mss()) + 1;
                assert!(
                    endpoint.in_flight() <= most || watcher.may_probe,
                    "{} in flight, window {cwnd}",
                    endpoint.in_flight()
                );
                watcher.may_probe = false;
            }
        }
    }

    fn check_endpoint(&self, end: usize) {
        let endpoint = &self.ends[end];
        assert!(endpoint.cwnd_bytes() >= u32::from(endpoint.mss()), "less than a segment");
        assert!(endpoint.acked() <= endpoint.sent());
        let stats = endpoint.stats();
        let first_time = stats.data_bytes_sent - stats.retransmitted_bytes;
        // A probe's octet counts as sent once it is acknowledged.
        let probes = u64::from(stats.window_probes);
        assert!(first_time <= endpoint.sent() + probes && endpoint.sent() <= first_time, "bytes sent do not add up");
        assert_eq!(stats.data_packets, self.watchers[end].packets);
        assert!(endpoint.limited_by(self.now).total() <= self.now.since(Instant::ZERO));
        assert!(!endpoint.has_failed(), "given up in state {:?}", endpoint.state());
    }

    fn send(&mut self, from: usize, mut segment: Meta) {
        // RFC 3168: only ECN-capable packets are marked.
        if matches!(segment.ecn(), 1 | 2) && self.random.below(1000) < self.channel.mark {
            segment.traffic_class |= 3;
        }
        let copies = if self.random.below(1000) < self.channel.loss { 0 } else { 1 }
            + u64::from(self.random.below(1000) < self.channel.duplicate);
        for _ in 0..copies {
            let delay = self.channel.delay_us + self.random.below(self.channel.jitter_us + 1);
            self.count += 1;
            self.wire.insert((self.now + Duration::from_us(delay), self.count), (1 - from, segment));
        }
    }

    /// All written data have arrived, and both ends are closed.
    pub(crate) fn check_end(&self) {
        for end in 0..2 {
            let (endpoint, peer) = (&self.ends[end], &self.ends[1 - end]);
            let total = self.apps[end].total();
            assert_eq!(endpoint.acked(), total);
            assert_eq!(peer.delivered(), total);
            assert_eq!(self.watchers[end].prefix(), total);
            assert_eq!(endpoint.state(), State::Closed);
            assert_eq!(endpoint.in_flight(), 0);
            let stats = endpoint.stats();
            // The endpoint counts retransmitted SYNs, and the watcher does not.
            assert!(u64::from(stats.retransmissions) >= self.watchers[end].again);
            assert!(u64::from(stats.retransmissions) <= self.watchers[end].again + u64::from(stats.timeouts) + 20);
        }
    }
}

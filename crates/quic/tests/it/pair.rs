//! Two endpoints joined by a path with a delay, whose packets a test loses, delays or duplicates, and the timeline of
//! what they send.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use lastmile_quic::{Config, Endpoint, Form, Packet, Role};
use lastmile_units::{Duration, Instant};

/// What the path does to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Arrives,
    /// It arrives this much later than others.
    Late(Duration),
    Twice,
    Lost,
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

type Decide = Box<dyn FnMut(usize, Instant, &Packet) -> Fate>;

pub(crate) struct Pair {
    pub(crate) ends: [Endpoint; 2],
    pub(crate) now: Instant,
    datagram: u16,
    delay: Duration,
    decide: Decide,
    /// Packets on the path by arrival, then by order of transmission.
    path: BTreeMap<(Instant, u64), (usize, Packet)>,
    transmissions: u64,
    /// The numbers that each end has used.
    numbers: [BTreeSet<u64>; 2],
    pub(crate) log: String,
    /// The server ends its part of the stream once the client has.
    pub(crate) answer: bool,
}

impl Pair {
    pub(crate) fn new(config: Config, delay: Duration, decide: Decide) -> Self {
        let (datagram, config) = (config.datagram, Arc::new(config));
        let end = |role, seed| Endpoint::new(Arc::clone(&config), role, seed);
        Self {
            ends: [end(Role::Client, 1), end(Role::Server, 2)],
            now: Instant::ZERO,
            datagram,
            delay,
            decide,
            path: BTreeMap::new(),
            transmissions: 0,
            numbers: Default::default(),
            log: String::new(),
            answer: true,
        }
    }

    /// Runs until nothing happens any more, or until `until`.
    pub(crate) fn run(&mut self, until: Instant) {
        loop {
            self.pump();
            let timers = self.ends.iter().filter_map(Endpoint::next_timer);
            let arrival = self.path.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = timers.chain(arrival).min().filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.path.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, packet) = entry.remove();
                self.ends[to].on_packet(self.now, &packet);
                let closes = self.ends[SERVER].peer_closed() && self.answer;
                if to == SERVER && closes {
                    self.ends[SERVER].close();
                }
                self.pump();
            }
            self.ends.iter_mut().for_each(|end| end.on_timer(self.now));
        }
    }

    fn pump(&mut self) {
        for from in [CLIENT, SERVER] {
            while let Some(packet) = self.ends[from].poll_transmit(self.now) {
                assert!(self.numbers[from].insert(packet.number), "number {} is used twice", packet.number);
                assert!(packet.size <= self.datagram, "{packet:?}");
                let fate = (self.decide)(from, self.now, &packet);
                self.note(from, &packet, fate);
                let at = self.now + self.delay;
                match fate {
                    Fate::Lost => {}
                    Fate::Arrives => self.carry(at, from, packet),
                    Fate::Late(by) => self.carry(at + by, from, packet),
                    Fate::Twice => {
                        self.carry(at, from, packet.clone());
                        self.carry(at + Duration::from_ms(1), from, packet);
                    }
                }
            }
        }
    }

    fn carry(&mut self, at: Instant, from: usize, packet: Packet) {
        self.transmissions += 1;
        self.path.insert((at, self.transmissions), (1 - from, packet));
    }

    /// A line of the timeline: time in ms, `>` from the client and `<` from the server, number, frames, bytes.
    fn note(&mut self, from: usize, packet: &Packet, fate: Fate) {
        let frames = &packet.frames;
        let mut parts = Vec::new();
        match packet.form {
            Form::Initial => parts.push("Initial".to_owned()),
            Form::Handshake => parts.push("Handshake".to_owned()),
            Form::Short => {}
        }
        if let Some(ack) = &frames.ack {
            let ranges: Vec<String> = ack
                .ranges()
                .map(|range| match range.len() {
                    1 => range.start.to_string(),
                    _ => format!("{}-{}", range.start, range.end - 1),
                })
                .collect();
            let delay = if ack.delay.is_zero() { String::new() } else { format!(" after {}", ack.delay) };
            parts.push(format!("ack {}{delay}", ranges.join(",")));
        }
        parts.extend(frames.crypto.map(|chunk| format!("crypto {}:{}", chunk.start, chunk.end)));
        for chunk in frames.streams.iter().flatten() {
            let fin = if chunk.fin { " fin" } else { "" };
            parts.push(format!("stream {}:{}{fin}", chunk.start, chunk.end));
        }
        parts.extend(frames.max_data.map(|limit| format!("max_data {limit}")));
        parts.extend(
            frames
                .ack_frequency
                .map(|frame| format!("ack_frequency {} {} {}", frame.threshold, frame.max_delay, frame.reordering)),
        );
        let flags = [
            (frames.flags.ping, "ping"),
            (frames.flags.handshake_done, "handshake_done"),
            (frames.flags.immediate_ack, "immediate_ack"),
        ];
        parts.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name.to_owned()));
        let lost = if fate == Fate::Lost { " lost" } else { "" };
        let (ms, arrow) = (self.now.as_secs_f64() * 1e3, if from == CLIENT { '>' } else { '<' });
        let frames = parts.join("; ");
        writeln!(self.log, "{ms:.3} {arrow} {} {frames} {} B{lost}", packet.number, packet.size).expect("a string");
    }
}

//! The cost of TCP: a sender and a receiver, directly connected, and the time for each segment that
//! one of them sends or receives. `cargo run --release -p lastmile-bench --example pipe [SEGMENTS]`
#![expect(clippy::print_stdout, reason = "what it measured is for whoever runs it")]

use std::collections::VecDeque;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber};
use lastmile_tcp::{AckConfig, Config, Endpoint, Open, Variant};
use lastmile_units::{ByteCount, Duration, Instant};

/// Each direction delays segments by half of a round trip of 20 ms.
const ONE_WAY: Duration = Duration::from_ms(10);

struct Pair {
    now: Instant,
    ends: [Endpoint; 2],
    wires: [VecDeque<(Instant, Meta)>; 2],
    sent: u64,
    drop_one_in: u64,
    count: u64,
}

impl Pair {
    fn new(config: Config, drop_one_in: u64) -> Self {
        let config = Arc::new(config);
        let mut client = Endpoint::new(config.clone(), FlowId::new(0), Open::Active, SeqNumber::new(1));
        let server = Endpoint::new(config, FlowId::new(1), Open::Passive, SeqNumber::new(1));
        client.connect(Instant::ZERO);
        client.write_forever();
        Self { now: Instant::ZERO, ends: [client, server], wires: Default::default(), sent: 0, drop_one_in, count: 0 }
    }

    fn poll(&mut self, end: usize) {
        while let Some(segment) = self.ends[end].poll_transmit(self.now) {
            self.sent += 1;
            self.count += u64::from(segment.payload_len() > 0);
            if self.drop_one_in > 0 && segment.payload_len() > 0 && self.count.is_multiple_of(self.drop_one_in) {
                continue;
            }
            self.wires[end].push_back((self.now + ONE_WAY, segment));
        }
    }

    fn step(&mut self) {
        let due = |wire: &VecDeque<(Instant, Meta)>| wire.front().map_or(Instant::MAX, |(at, _)| *at);
        let arrival = due(&self.wires[0]).min(due(&self.wires[1]));
        let timer = self.ends.iter().filter_map(Endpoint::next_timer).min().unwrap_or(Instant::MAX);
        if timer < arrival {
            self.now = timer;
            for end in 0..2 {
                self.ends[end].on_timer(timer);
                self.poll(end);
            }
            return;
        }
        self.now = arrival;
        for end in 0..2 {
            if due(&self.wires[end]) == arrival
                && let Some((_, segment)) = self.wires[end].pop_front()
            {
                self.ends[1 - end].on_segment(arrival, &segment);
                self.poll(1 - end);
            }
        }
    }
}

/// The fastest of ten slices: other load on the machine can only slow one down.
fn run(name: &str, config: Config, drop_one_in: u64, slice: u64) {
    let mut pair = Pair::new(config, drop_one_in);
    pair.poll(0);
    let (mut per_segment, mut per_data) = (f64::MAX, f64::MAX);
    for _ in 0..10 {
        let (sent, data) = (pair.sent, pair.ends[0].stats().data_packets);
        let start = std::time::Instant::now();
        while pair.sent < sent + slice {
            pair.step();
        }
        let ns = start.elapsed().as_nanos() as f64;
        per_segment = per_segment.min(ns / (pair.sent - sent) as f64);
        per_data = per_data.min(ns / (pair.ends[0].stats().data_packets - data) as f64);
    }
    println!(
        "{name:<28} {per_segment:6.1} ns/segment {per_data:6.1} ns/data packet  ({} retransmissions, {} timeouts)",
        pair.ends[0].stats().retransmissions,
        pair.ends[0].stats().timeouts,
    );
}

fn main() {
    let slice = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(500_000);
    println!("{} bytes an endpoint", size_of::<Endpoint>());
    let window = ByteCount::new(1 << 20);
    let base = Config { receive_window: window, ..Config::default() };
    run("sack, no loss", base.clone(), 0, slice);
    run(
        "sack, ack every segment",
        Config { acks: AckConfig { delayed_ack: Duration::ZERO, ..AckConfig::default() }, ..base.clone() },
        0,
        slice,
    );
    run("sack, timestamps", Config { timestamps: true, ..base.clone() }, 0, slice);
    for variant in [Variant::Sack, Variant::NewReno, Variant::Reno, Variant::Tahoe, Variant::Cubic] {
        run(&format!("{variant:?}, 1 in 1000 lost"), Config { variant, ..base.clone() }, 1000, slice);
    }
    run("sack, 1 in 50 lost", base, 50, slice);
}

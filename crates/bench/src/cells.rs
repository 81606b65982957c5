//! Cells per second: full-size packets as AAL5 frames through a line, back to back.

use std::hint::black_box;
use std::time::Instant as Clock;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Meta};
use lastmile_queueing::fifo::{Fifo, Overflow};
use lastmile_queueing::line::{Config, Line, TransmissionSink};
use lastmile_queueing::random::Stream;
use lastmile_queueing::{DropReason, DropSink};
use lastmile_units::{BitRate, Duration, Instant, PacketCount};

use crate::measurement::Measurement;

const NAME: &str = "cells of 1500-byte frames at 149.76 Mbit/s";
const FRAMES: u64 = 2_000_000;

struct Nobody;

impl DropSink<Meta> for Nobody {
    fn dropped(&mut self, _now: Instant, _packet: Meta, _reason: DropReason) {}
}

impl TransmissionSink<Meta> for Nobody {
    fn transmitted(&mut self, _start: Instant, _end: Instant, _waited: Duration, _packet: &Meta) {}
}

pub(crate) fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

pub(crate) fn run(name: &str) -> Option<Measurement> {
    if name != NAME {
        return None;
    }
    let config = Config::new(
        Some(BitRate::from_kbit_per_s(149_760)),
        LinkLayer::from_name("ipoa-llcsnap").expect("a preset"),
        Duration::ZERO,
    );
    let queue = Box::new(Fifo::in_packets(PacketCount::new(1_000), Overflow::Tail));
    let mut line = Line::new(&config, queue, Stream::new(1, "loss"));
    let packet = Meta { flow: FlowId::new(0), ip_len: 1_500, header_len: 40, ..Meta::default() };
    let clock = Clock::now();
    let mut now = Instant::ZERO;
    for _ in 0..4 {
        line.enqueue(now, packet, &mut Nobody);
    }
    for _ in 0..FRAMES {
        now = line.next_arrival().expect("the line is never empty");
        line.transmit(now, &mut Nobody);
        black_box(line.take_arrival(now, &mut Nobody));
        line.enqueue(now, packet, &mut Nobody);
    }
    let wall_s = clock.elapsed().as_secs_f64();
    let cells = line.cells().expect("a line of cells").as_u64();
    Some(Measurement { hops: FRAMES, ..Measurement::of_events(name, wall_s, cells) })
}

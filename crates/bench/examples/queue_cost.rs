//! The cost of a packet in a queue: nanoseconds for enqueue and dequeue together, with one flow and
//! with many.
//!
//! `cargo run --release -p lastmile-bench --example queue_cost`

#![expect(clippy::print_stdout, reason = "what it measured is for whoever runs it")]

use std::collections::VecDeque;
use std::hint::black_box;

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{FlowId, Meta, SeqNumber, TcpFlags};
use lastmile_queueing::ack::filter::Rules;
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::ack::{filter, sad};
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::{ClassSpec, Over, Spec};
use lastmile_queueing::{DropReason, Limit, Match, Node, Overflow, fifo};
use lastmile_units::{ByteCount, CellCount, Instant, PacketCount};

const BATCHES: u32 = 40;
const CALLS: u32 = 50_000;

fn main() {
    let limit = Limit::Packets(PacketCount::new(100_000));
    let fifo = |limit| Spec::Fifo(fifo::Config { limit, drop: Overflow::Tail });
    let ack_filter = Spec::AckFilter(filter::Config { limit, drop: Overflow::Tail, rules: Rules::default() });
    let classes = vec![
        ClassSpec { matches: Match::PureAck, queue: fifo(limit) },
        ClassSpec { matches: Match::Any, queue: fifo(limit) },
    ];
    let sad = |duplicates| {
        Spec::Sad(Over {
            config: sad::Config { duplicates, report: Report::None, exempt: Match::Never },
            queue: Box::new(fifo(limit)),
        })
    };
    let rows = [
        ("fifo, packets", fifo(limit)),
        ("fifo, bytes", fifo(Limit::Bytes(ByteCount::new(100_000_000)))),
        ("fifo, cells", fifo(Limit::Cells(CellCount::new(100_000_000)))),
        ("priority over two fifos", Spec::Priority(priority::Config { classes })),
        ("sad over fifo", sad(Duplicates::Keep)),
        ("ack-filter", ack_filter),
    ];
    println!("a bare ring of 64-byte packets: {:.1} ns", bare_ring());
    println!("{:<26}{:>8}{:>12}{:>12}{:>12}", "ns a packet", "flows", "data", "acks apart", "acks merged");
    for (name, spec) in rows {
        for flows in [1, 10_000] {
            let data = measure(&spec, |n| packet(n % flows, n, 1500), 1);
            let apart = measure(&spec, |n| packet(n % flows, n, 40), 1);
            let merged = measure(&spec, |n| packet(n / 4 % flows, n, 40), 4);
            println!("{name:<26}{flows:>8}{data:>12.1}{apart:>12.1}{merged:>12.1}");
        }
    }
}

/// The machine's baseline: storing and fetching without a discipline.
fn bare_ring() -> f64 {
    let mut ring: VecDeque<Meta> = (0..1000).map(|n| packet(0, n, 1500)).collect();
    let mut n = 0;
    fastest(|| {
        ring.push_back(packet(0, n, 1500));
        black_box(ring.pop_front());
        n += 1;
    })
}

fn packet(flow: u32, number: u32, ip_len: u16) -> Meta {
    Meta {
        flow: FlowId::new(flow),
        ack: SeqNumber::new(number),
        flags: TcpFlags::ACK,
        header_len: 40,
        ip_len,
        ..Meta::default()
    }
}

/// Keeps 1000 packets in the queue: each arrival releases one, unless one was dropped in its
/// favour.
fn measure(spec: &Spec, make: impl Fn(u32) -> Meta, warm_up: u32) -> f64 {
    let line = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    let mut queue: Node<Meta> = spec.build(&line).expect("a tree that can be built");
    let now = Instant::ZERO;
    let mut dropped = 0_u64;
    let mut sink = |_: Instant, _: Meta, _: DropReason| dropped += 1;
    for n in 0..1000 * warm_up {
        queue.enqueue(now, make(n), &mut sink);
    }
    let mut n = 1000 * warm_up;
    fastest(|| {
        let before = dropped;
        queue.enqueue(now, make(n), &mut |_: Instant, _: Meta, _: DropReason| dropped += 1);
        if dropped == before {
            black_box(queue.dequeue(now, &mut |_: Instant, _: Meta, _: DropReason| dropped += 1));
        }
        n += 1;
    })
}

/// Nanoseconds per call in the fastest of many batches, because the others were disturbed.
fn fastest(mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let begin = std::time::Instant::now();
        for _ in 0..CALLS {
            call();
        }
        best = best.min(begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    best
}

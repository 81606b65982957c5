//! Captures of real packets, written by a thread of their own next to the one that carries the packets.
//!
//! Times are the line's: a transmission's begin and a packet's arrival by the line's clock, however late the program
//! woke up. The tap reports hop by hop, so the writer sorts packets by time. Packets that arrive faster than they can
//! be written are left out and counted, as tcpdump does; the line never waits for the writer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use lastmile_live::bump::Tap;
use lastmile_model::Passage;
use lastmile_units::{Duration, Instant};

/// Packets that wait to be written.
const MOST_WAITING: usize = 1 << 16;

/// The longest time for which the writer waits for earlier packets. A process that sleeps for longer only swaps two
/// packets of a file.
const LATENESS: Duration = Duration::from_s(1);

/// A packet at a hop. Packets of one time keep the order of their reports.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    at: Instant,
    number: u64,
    hop: usize,
    arrived: bool,
    bytes: Vec<u8>,
}

/// The tap of a run.
struct Reporter {
    /// By hop: whether what is sent into it and what arrives by it is to be written.
    wanted: Vec<[bool; 2]>,
    out: SyncSender<Seen>,
    number: u64,
    missed: Arc<AtomicU64>,
}

/// Writes the packets of captures.
pub trait PacketSink: Send + 'static {
    /// True if the sink writes packets of this passage at this hop.
    fn wants(&self, hop: usize, passage: Passage) -> bool;

    /// Writes a packet, from its IP header on. Times ascend.
    fn write(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]);
}

/// The captures of a run that goes on.
pub struct Recorder<S> {
    writer: JoinHandle<S>,
    missed: Arc<AtomicU64>,
}

/// A tap for a lab with `hops` hops, and the recorder that writes its packets to `sink`.
pub fn record<S: PacketSink>(sink: S, hops: usize) -> (Box<Tap>, Recorder<S>) {
    let (out, waiting) = sync_channel(MOST_WAITING);
    let missed = Arc::new(AtomicU64::new(0));
    let wanted = (0..hops).map(|hop| [Passage::Transmitted, Passage::Arrived].map(|passage| sink.wants(hop, passage)));
    let tap = Reporter { wanted: wanted.collect(), out, number: 0, missed: Arc::clone(&missed) };
    let writer = thread::spawn(move || write(sink, &waiting));
    (Box::new(tap), Recorder { writer, missed })
}

impl<S> Recorder<S> {
    /// The sink, once everything is written, and the number of packets that it missed. The tap must be gone.
    #[must_use]
    pub fn finish(self) -> (S, u64) {
        let sink = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (sink, self.missed.load(Ordering::Relaxed))
    }
}

impl lastmile_model::Observer<[u8]> for Reporter {
    fn packet(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]) {
        let arrived = passage == Passage::Arrived;
        if !self.wanted.get(hop).is_some_and(|wanted| wanted[usize::from(arrived)]) {
            return;
        }
        self.number += 1;
        let seen = Seen { at, number: self.number, hop, arrived, bytes: bytes.to_vec() };
        if self.out.try_send(seen).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write<S: PacketSink>(mut sink: S, waiting: &Receiver<Seen>) -> S {
    let mut heap = BinaryHeap::new();
    let mut put = |Seen { at, hop, arrived, bytes, .. }: Seen| {
        let passage = if arrived { Passage::Arrived } else { Passage::Transmitted };
        sink.write(at, hop, passage, &bytes);
    };
    for seen in waiting {
        let newest = seen.at;
        heap.push(Reverse(seen));
        while heap.peek().is_some_and(|Reverse(oldest)| oldest.at.saturating_add(LATENESS) < newest) {
            if let Some(Reverse(seen)) = heap.pop() {
                put(seen);
            }
        }
    }
    while let Some(Reverse(seen)) = heap.pop() {
        put(seen);
    }
    sink
}

//! The baseline of the machine: a bare binary heap of 24-byte events, popped and pushed at a
//! constant pending size, and the timing wheel under the same load.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant as Clock;

use lastmile_queueing::random::Stream;
use lastmile_sim::engine::Wheel;
use lastmile_units::{Duration, Instant};

use crate::measurement::Measurement;

const PENDING: [usize; 4] = [10, 1_000, 100_000, 1_000_000];
const ROUNDS: u64 = 4_000_000;
/// Mean time to the next event, independent of the pending size: a second of simulated time.
const MEAN: Duration = Duration::from_ms(1_000);

pub(crate) fn names() -> Vec<String> {
    PENDING.iter().flat_map(|pending| [format!("heap {pending} pending"), format!("wheel {pending} pending")]).collect()
}

pub(crate) fn run(name: &str) -> Option<Measurement> {
    let (kind, pending) = PENDING.iter().find_map(|pending| {
        let kind = name.strip_suffix(&format!(" {pending} pending"))?;
        Some((kind, *pending))
    })?;
    let spans = spans();
    let wall_s = match kind {
        "heap" => heap(pending, &spans),
        "wheel" => wheel(pending, &spans),
        _ => return None,
    };
    Some(Measurement::of_events(name, wall_s, ROUNDS))
}

/// Equal random spans for both, drawn before the measurement.
fn spans() -> Vec<Duration> {
    let mut random = Stream::new(1, "yardstick");
    (0..65_536).map(|_| random.exponential(MEAN)).collect()
}

fn heap(pending: usize, spans: &[Duration]) -> f64 {
    let mut heap = BinaryHeap::with_capacity(pending + 1);
    for number in 0..pending as u64 {
        heap.push(Reverse((Instant::ZERO + spans[number as usize % spans.len()], number)));
    }
    let clock = Clock::now();
    for number in 0..ROUNDS {
        let Some(Reverse((now, event))) = heap.pop() else { break };
        black_box(event);
        heap.push(Reverse((now + spans[number as usize % spans.len()], number)));
    }
    clock.elapsed().as_secs_f64()
}

fn wheel(pending: usize, spans: &[Duration]) -> f64 {
    let mut wheel = Wheel::new();
    for number in 0..pending as u64 {
        wheel.push(Instant::ZERO + spans[number as usize % spans.len()], number);
    }
    let clock = Clock::now();
    for number in 0..ROUNDS {
        let Some((now, event)) = wheel.pop(Instant::MAX) else { break };
        black_box(event);
        wheel.push(now + spans[number as usize % spans.len()], number);
    }
    clock.elapsed().as_secs_f64()
}

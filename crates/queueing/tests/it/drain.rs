//! The drain in a closed loop: senders with a window, the far queue, the line, the shaper, and
//! acknowledgements back.

use std::collections::BTreeSet;

use lastmile_linklayer::preset;
use lastmile_packet::Meta;
use lastmile_queueing::fifo::Fifo;
use lastmile_queueing::meter::drain::{Config, Law};
use lastmile_queueing::{Discipline as _, Drain, DropReason, Environment, Match, Overflow};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Ratio};
use proptest::prelude::*;

/// The line rate configured in the shaper.
const TOLD: BitRate = BitRate::from_kbit_per_s(2_000);

/// A window of packets of 1500 bytes, all of which are at the far end at the beginning.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// The rate of the line.
    rate: BitRate,
    window: u64,
    /// Delay from the shaper to the far queue, via the sender.
    delay: Duration,
    /// Maximum lateness of a packet's time stamp.
    late: Duration,
    share: u32,
    drain: bool,
    length: Duration,
}

/// Observations in the second half of the time.
struct Seen {
    /// Maximum number of packets at the far end.
    most: u64,
    /// Packets delivered, as a share of the line's capacity in that time.
    delivered: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A packet has crossed the line.
    Crossed,
    /// It is stamped, and enqueued in the shaper.
    Stamped,
    /// The shaper may dequeue a packet.
    Ready,
    /// An acknowledgement releases the next packet to the far end.
    Returned,
}

impl Loop {
    fn run(self) -> Seen {
        let percent = |share| Ratio::from_percent(share).expect("a share");
        let law = Law { depth: percent(80), patience: Duration::from_s(1), longest: Duration::from_s(5) };
        let config = Config {
            line: TOLD,
            share: percent(self.share),
            drain: self.drain.then_some(law),
            urgent: Match::Never,
            largest: ByteCount::new(1500),
            catch_up: Duration::ZERO,
        };
        let layer = preset::BRIDGED_VCMUX_FCS.link;
        let fifo = Fifo::in_packets(PacketCount::new(1000), Overflow::Tail);
        let mut shaper = Drain::new(&config, &Environment::new(layer), fifo).expect("a shaper");
        let mut none = |_: Instant, _: Meta, reason: DropReason| panic!("dropped: {reason:?}");
        let takes = self.rate.time_for(layer.on_wire(ByteCount::new(1500)));
        let (mut far, mut crossing, mut number) = (self.window, false, 0_u64);
        let (half, end) = (Instant::ZERO + self.length / 2, Instant::ZERO + self.length);
        let mut seen = Seen { most: 0, delivered: 0.0 };
        let mut delivered = 0_u64;
        let mut events = BTreeSet::new();
        let mut now = Instant::ZERO;
        while now < end {
            if !crossing && far > 0 {
                (crossing, number) = (true, number + 1);
                events.insert((now + takes, Event::Crossed, number));
            }
            let (at, event, tag) = events.pop_first().expect("packets are somewhere");
            now = at;
            match event {
                Event::Crossed => {
                    (crossing, far) = (false, far - 1);
                    // Lateness in a reproducible pattern.
                    let late = Duration::from_ps(self.late.as_ps() / 7 * (tag * 5 % 8));
                    events.insert((now + late, Event::Stamped, tag));
                }
                Event::Stamped => {
                    shaper.enqueue(now, Meta { ip_len: 1500, arrived: now, ..Meta::default() }, &mut none);
                }
                Event::Ready => {
                    if shaper.dequeue(now, &mut none).is_some() {
                        delivered += u64::from(now >= half);
                        number += 1;
                        events.insert((now + self.delay, Event::Returned, number));
                    }
                }
                Event::Returned => far += 1,
            }
            events.retain(|(_, event, _)| *event != Event::Ready);
            if let Some(ready) = shaper.next_ready(now) {
                events.insert((ready.max(now), Event::Ready, 0));
            }
            if now >= half {
                seen.most = seen.most.max(far);
            }
        }
        seen.delivered = delivered as f64 * takes.as_secs_f64() / (self.length / 2).as_secs_f64();
        seen
    }
}

/// 60 packets of 1696 bytes on the wire, 6.784 ms each: 407 ms at the far end.
const OVERSHOOT: Loop = Loop {
    rate: TOLD,
    window: 60,
    delay: Duration::from_ms(20),
    late: Duration::ZERO,
    share: 98,
    drain: true,
    length: Duration::from_s(10),
};

/// With 98 % and no drain, 2 % of 5 s, 100 ms of the 407, have departed from the far end by half
/// time. The drain takes one second to begin and, at 20 % of the line, two to empty it.
#[test]
fn a_drain_empties_the_far_queue_that_a_margin_leaves_there() {
    let plain = Loop { drain: false, ..OVERSHOOT }.run();
    assert!(plain.most > 35, "{}", plain.most);
    let drained = OVERSHOOT.run();
    assert!(drained.most <= 3, "{}", drained.most);
    assert!(drained.delivered > 0.975, "{}", drained.delivered);
}

/// The line is slower than configured by less than half of the margin, or faster.
#[test]
fn a_slightly_wrong_rate_changes_little() {
    for (rate, share) in [(1_990, 98), (1_980, 97), (2_020, 98), (2_100, 98)] {
        let rate = BitRate::from_kbit_per_s(rate);
        let seen = Loop { rate, share, ..OVERSHOOT }.run();
        assert!(seen.most <= 3, "{rate}: {}", seen.most);
        assert!(seen.delivered > 0.92, "{rate}: {}", seen.delivered);
    }
}

/// Slower by more than the margin: no queue can be avoided with this share, and no drain lasts for
/// ever.
#[test]
fn a_line_far_slower_than_configured_is_still_used() {
    let seen = Loop { rate: BitRate::from_kbit_per_s(1_900), ..OVERSHOOT }.run();
    assert!(seen.delivered > 0.97, "{}", seen.delivered);
}

proptest! {
    /// For any window, delay and lateness of stamps: the far queue is nearly empty in the end, and
    /// the line is full if the window suffices.
    #[test]
    fn the_far_queue_is_emptied(
        window in 1..150_u64,
        delay in 1..150_u64,
        late in 0..300_u64,
        rate in 1_990..2_040_u64,
        share in 96..=98_u32,
    ) {
        let case = Loop {
            rate: BitRate::from_kbit_per_s(rate),
            window,
            delay: Duration::from_ms(delay),
            late: Duration::from_us(late),
            share,
            length: Duration::from_s(24),
            ..OVERSHOOT
        };
        let seen = case.run();
        prop_assert!(seen.most <= 3, "{}", seen.most);
        prop_assert!(seen.delivered <= 1.0, "{}", seen.delivered);
        // 6.8 ms a packet, less where the line is faster: the packets that the delay and the line
        // hold, and a few queued ones.
        if window * 6 > delay + 30 {
            prop_assert!(seen.delivered > 0.92, "{}", seen.delivered);
        }
    }
}

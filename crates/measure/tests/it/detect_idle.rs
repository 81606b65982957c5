use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Limit;
use lastmile_units::{BitRate, ByteCount, Duration, Ratio};

use crate::simulated::{Before, Jitter, Queue, Side, Simulated};
use lastmile_measure::detect::idle::{Idle, detect};
use lastmile_measure::detect::{Options, Verdict};

fn side(bps: u64, preset: &str) -> Side {
    Side {
        rate: BitRate::from_bps(bps).unwrap(),
        link: LinkLayer::from_name(preset).unwrap(),
        delay: Duration::from_ms(10),
        buffer: Limit::Bytes(ByteCount::new(64_000)),
        queue: Queue::Fifo,
        before: Before::Nothing,
        jitter: Jitter::EachPacket(Duration::from_ms(5)),
        loss: Ratio::from_ppm(2000).unwrap(),
        cross: None,
        stalls: None,
    }
}

fn idle(down: u64, up: u64, preset: &str, seed: u64) -> Idle {
    let mut path = Simulated::new(side(down, preset), side(up, preset), ByteCount::new(1500), false, seed).unwrap();
    detect(&mut path, &Options::default()).unwrap()
}

/// Overheads modulo 48 by RFC 2684, 2364 and 2516.
#[test]
fn cells_of_a_slow_line_are_read_off_its_echoes() {
    for (preset, offset) in [("ipoa-vcmux", 8), ("pppoa-vcmux", 10), ("pppoe-llcsnap", 40), ("bridged-vcmux-fcs", 28)] {
        let idle = idle(2_000_000, 512_000, preset, 11);
        assert_eq!(idle.verdict, Verdict::Sure, "{idle:?}");
        assert_eq!(idle.candidates[0].offset_bytes, Some(offset), "{idle:?}");
        assert!(idle.candidates[0].presets.iter().any(|name| name == preset), "{idle:?}");
        assert!(idle.took_s < 180.0, "{idle:?}");
        // 8 bits at each rate.
        let byte_s = 8.0 / 2e6 + 8.0 / 512e3;
        assert!((idle.byte_s.value / byte_s - 1.0).abs() < 0.05, "{idle:?}");
    }
}

#[test]
fn a_slow_line_without_cells_is_told_from_one_with() {
    let idle = idle(2_000_000, 512_000, "docsis", 12);
    assert_eq!((idle.verdict, idle.candidates[0].offset_bytes), (Verdict::Sure, None), "{idle:?}");
}

/// A cell takes 4 us at 100 Mbit/s, below the jitter of 5 ms: nothing is claimed.
#[test]
fn a_fast_line_is_left_open() {
    let idle = idle(100_000_000, 40_000_000, "pppoa-vcmux", 13);
    assert_eq!(idle.verdict, Verdict::NotSure, "{idle:?}");
}

#[test]
fn a_path_without_answers_is_an_error() {
    let mut lost = side(2_000_000, "pppoa-vcmux");
    lost.loss = Ratio::ONE;
    let mut path = Simulated::new(lost, lost, ByteCount::new(1500), false, 1).unwrap();
    let error = detect(&mut path, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("too few were answered"), "{error}");
}

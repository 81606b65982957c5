use lastmile_units::ByteCount;

use super::*;
use crate::AckConfig;

#[test]
fn while_the_window_opens_each_segment_is_acknowledged() {
    let config = Config {
        acks: AckConfig { quick_acks: true, ..AckConfig::default() },
        autotune: true,
        receive_window: ByteCount::new(1 << 20),
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config);
    receiver.window.set_shift(&config, 7);
    let echoed = Some(Duration::from_ms(10));
    let mut opened = 0;
    // Four segments in a millisecond, more than the initial window admits in a round trip.
    for step in 1..200 {
        let before = receiver.window.buffer();
        let now = Instant::ZERO.saturating_add(Duration::from_us(250 * step));
        if receiver.window.tune(now, &config, (1460 * step, Held::default()), echoed) {
            receiver.acks.quick().on_window_opened();
        }
        let opens = receiver.window.buffer() > before;
        assert_eq!(receiver.acks.quick().is_quick(), opens, "segment {step}");
        receiver.acks.quick().on_ack_sent();
        opened += u32::from(opens);
    }
    assert!(opened > 5, "{opened}");
}

/// A capture of Linux 6.18 with 128 KiB of memory (`tcp_rmem`) begins so. The window opens from 45 segments to 5/8 of
/// the memory less a segment: 65 160 + 5 * 2896 = 79 640, then 80 472. None of these six acknowledgements uses the
/// grant of 16: 22 segments are acknowledged one by one, then each pair by its PSH.
#[test]
fn the_first_22_segments_are_acknowledged_one_by_one() {
    let config = Config {
        mss: 1448,
        acks: AckConfig { quick_acks: true, ..AckConfig::default() },
        autotune: true,
        receive_window: ByteCount::new(4 << 20),
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config);
    receiver.on_syn(SeqNumber::new(0), true);
    assert_eq!(receiver.window.for_syn(&config), 65_160);
    receiver.window.set_shift(&config, 7);
    let pace = || Pace { rto: Duration::from_ms(230), srtt: Some(Duration::from_ms(20)) };
    let (mut acked, mut windows) = (Vec::new(), Vec::new());
    for number in 1..=30 {
        let now = Instant::ZERO.saturating_add(Duration::from_us(1500 * number));
        let data = Data { ahead: 0, len: 1448, fin: false, push: number % 2 == 0, echoed: None, segments: 1 };
        receiver.on_data(now, &config, data, pace);
        windows.push(receiver.window.buffer());
        if receiver.acks.is_owed() {
            receiver.take_acknowledgement(&config);
            receiver.on_pure_ack_sent();
            acked.push(number);
        }
    }
    windows.dedup();
    assert_eq!(windows, [68_056, 70_952, 73_848, 76_744, 79_640, 80_472]);
    assert_eq!(acked, (1..=22).chain([24, 26, 28, 30]).collect::<Vec<_>>());
}

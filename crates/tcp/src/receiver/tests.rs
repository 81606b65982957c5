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

//! CUBIC's window against the formulas of RFC 9438, computed here in floating point.

use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, Options, SeqNumber, SynOptions, TcpFlags};
use lastmile_tcp::{Config, CongestionConfig, Endpoint, Open, Variant};
use lastmile_units::{ByteCount, Duration, Instant};

const MSS: u32 = 1000;

/// A sender whose peer, driven by the test, acknowledges every second segment a round trip after it was sent.
struct Sender {
    endpoint: Endpoint,
    now: Instant,
    una: u32,
    nxt: u32,
}

impl Sender {
    fn new(initial_ssthresh: u64) -> Self {
        let config = Config {
            variant: Variant::Cubic,
            mss: MSS as u16,
            congestion: CongestionConfig {
                initial_ssthresh: Some(ByteCount::new(initial_ssthresh)),
                idle_restart: false,
                ..CongestionConfig::default()
            },
            ..Config::default()
        };
        let mut endpoint = Endpoint::new(Arc::new(config), FlowId::new(0), Open::Active, SeqNumber::new(0));
        endpoint.connect(Instant::ZERO);
        endpoint.write_forever();
        while endpoint.poll_transmit(Instant::ZERO).is_some() {}
        let mut syn = segment(1, 0);
        syn.seq = SeqNumber::new(0);
        syn.flags = TcpFlags::SYN.with(TcpFlags::ACK);
        let options = SynOptions { mss: Some(MSS as u16), window_scale: Some(14), sack_permitted: true };
        syn.set_options(Options::syn(options));
        endpoint.on_segment(Instant::ZERO, &syn);
        let mut sender = Self { endpoint, now: Instant::ZERO, una: 1, nxt: 1 };
        sender.drain();
        sender
    }

    fn drain(&mut self) {
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            self.nxt = self.nxt.max(segment.seq.raw() + u32::from(segment.payload_len()));
        }
    }

    /// A round trip: the segments in flight are acknowledged in pairs, evenly over it.
    fn round_trip(&mut self, rtt: Duration) {
        let (start, end) = (self.now, self.nxt);
        let acks = u64::from((end - self.una).div_ceil(2 * MSS));
        for index in 1..=acks {
            self.now = start + rtt * index / acks;
            self.una = end.min(self.una + 2 * MSS);
            self.endpoint.on_segment(self.now, &segment(self.una, 0));
            self.drain();
        }
    }

    /// The first segment in flight is lost; recovery ends a round trip later.
    fn lose(&mut self, rtt: Duration) {
        let end = self.nxt;
        for held in 1..=3 {
            self.endpoint.on_segment(self.now, &segment(self.una, held));
            self.drain();
        }
        self.now += rtt;
        self.una = end;
        self.endpoint.on_segment(self.now, &segment(end, 0));
        self.drain();
    }

    /// The peer acknowledges all and shuts its window for `pause`. It answers each window probe 50 ms later.
    fn pause(&mut self, rtt: Duration, pause: Duration) {
        const ANSWER: Duration = Duration::from_ms(50);
        self.now += rtt;
        self.una = self.nxt;
        let shut = Meta { window: 0, ..segment(self.una, 0) };
        self.endpoint.on_segment(self.now, &shut);
        self.drain();
        assert_eq!(self.nxt, self.una, "nothing is sent into the shut window");
        let opens = self.now + pause;
        while let Some(due) = self.endpoint.next_timer().filter(|due| *due + ANSWER < opens) {
            self.endpoint.on_timer(due);
            while self.endpoint.poll_transmit(due).is_some() {}
            self.endpoint.on_segment(due + ANSWER, &shut);
            assert!(self.endpoint.poll_transmit(due + ANSWER).is_none());
        }
        self.now = opens;
        self.endpoint.on_segment(self.now, &segment(self.una, 0));
        self.drain();
    }
}

/// An acknowledgement; `held` segments after the first are SACKed.
fn segment(ack: u32, held: u32) -> Meta {
    let left = ack + MSS;
    let blocks = [lastmile_packet::SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(left + held * MSS) }];
    let mut meta = Meta {
        seq: SeqNumber::new(1),
        ack: SeqNumber::new(ack),
        flags: TcpFlags::ACK,
        window: u16::MAX,
        header_len: 40,
        ip_len: 40,
        ..Meta::default()
    };
    if held > 0 {
        meta.set_options(Options::NONE.with_sack(&blocks));
    }
    meta
}

/// RFC 9438, equation 1, in segments.
fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    0.4 * (t - k).powi(3) + w_max
}

/// A long fat path: 1000 segments, 100 ms. Reno's estimate stays far below, so the cubic curve applies: concave up to
/// the old maximum, flat there, convex beyond. `pause`: the time for which the peer's window is shut, 5 s
/// after the loss.
fn follow_the_curve(pause: Option<Duration>) {
    let rtt = Duration::from_ms(100);
    let mut sender = Sender::new(1_000_000);
    while sender.endpoint.cwnd_bytes() < 1_000_000 {
        sender.round_trip(rtt);
    }
    let w_max = f64::from(sender.endpoint.cwnd_bytes()) / f64::from(MSS);
    sender.lose(rtt);
    let start = f64::from(sender.endpoint.cwnd_bytes()) / f64::from(MSS);
    assert!((start / w_max - 0.7).abs() < 0.01, "from {w_max} to {start}");
    // RFC 9438, equation 2.
    let k = ((w_max - start) / 0.4).cbrt();
    let (mut epoch, mut pause) = (sender.now, pause);
    let mut seen_plateau = false;
    while sender.now.since(epoch) < Duration::from_s(16) {
        if let Some(pause) = pause.take_if(|_| sender.now.since(epoch) > Duration::from_s(5)) {
            let last_sent = sender.now;
            sender.pause(rtt, pause);
            epoch += sender.now.since(last_sent);
        }
        sender.round_trip(rtt);
        let t = sender.now.since(epoch).as_secs_f64();
        let window = f64::from(sender.endpoint.cwnd_bytes()) / f64::from(MSS);
        // The window approaches the curve of one round trip ahead within a round trip, so it lies between
        // the curve two round trips before and the curve one ahead.
        let (low, high) = (w_cubic(t - 0.2, k, w_max), w_cubic(t + 0.1, k, w_max));
        assert!(window > low - 1.0 && window < high + 1.0, "at {t}: {window}, not {low} to {high}");
        seen_plateau |= (t - k).abs() < 0.1 && (window - w_max).abs() < 1.0;
    }
    assert!(seen_plateau, "the window rests at {w_max} after {k} s");
}

#[test]
fn the_window_follows_the_cubic_curve_through_its_plateau() {
    follow_the_curve(None);
}

/// Linux (`cubictcp_cwnd_event`): the curve waits for the time since the last transmission, and goes on when data
/// depart. Window probes and their answers ask the sender several times before.
#[test]
fn a_shut_window_moves_the_curve_once() {
    follow_the_curve(Some(Duration::from_s(3)));
}

/// A short thin path: 20 segments, 10 ms. RFC 9438, section 4.3: Reno's estimate applies, which in Linux
/// grows by 8/15 segments a round trip, below the window before the loss and above it.
#[test]
fn on_a_short_path_the_window_is_that_of_reno() {
    let rtt = Duration::from_ms(10);
    let mut sender = Sender::new(20_000);
    while sender.endpoint.cwnd_bytes() < 20_000 {
        sender.round_trip(rtt);
    }
    sender.lose(rtt);
    let start = f64::from(sender.endpoint.cwnd_bytes()) / f64::from(MSS);
    for round in 1..=60 {
        sender.round_trip(rtt);
        let (window, estimate) =
            (f64::from(sender.endpoint.cwnd_bytes()) / f64::from(MSS), start + f64::from(round) * 8.0 / 15.0);
        // A round trip acknowledges the smaller window of the round before, and the window follows the
        // estimate once that is a whole segment ahead.
        assert!(window > 0.85 * estimate - 1.0 && window < estimate + 1.0, "round {round}: {window}, not {estimate}");
    }
}

/// 5 % a round trip before the first loss: from 100 segments to 200 at 10 ms takes ln 2 / ln 1.05 = 14
/// round trips. The curve alone, at 0.4 segments after the first second, would take 6.3 s.
#[test]
fn before_the_first_loss_the_window_doubles_in_fourteen_round_trips() {
    let rtt = Duration::from_ms(10);
    let mut sender = Sender::new(100_000);
    while sender.endpoint.cwnd_bytes() < 100_000 {
        sender.round_trip(rtt);
    }
    let mut rounds = 0;
    while sender.endpoint.cwnd_bytes() < 200_000 {
        sender.round_trip(rtt);
        rounds += 1;
    }
    assert!((14..=16).contains(&rounds), "{rounds}");
}

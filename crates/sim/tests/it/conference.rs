//! Conferences on lines with and without room, losses and other traffic.

use std::sync::Arc;

use lastmile_model::outcome::{ConferenceOutcome, Outcome};
use lastmile_model::{Audio, Conference, IpFields, Network, OpenedBy, Rates, Source};
use lastmile_queueing::line::trace::{Step, Steps, Trace};
use lastmile_queueing::spec::Spec;
use lastmile_sim::run;
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio};

use crate::build;

pub(crate) fn conference() -> Conference {
    Conference {
        rates: Rates {
            least: BitRate::from_kbit_per_s(100),
            start: BitRate::from_kbit_per_s(300),
            most: BitRate::from_kbit_per_s(2_500),
        },
        frame_rate: 30,
        packet: ByteCount::new(1_150),
        audio: Audio { interval: Duration::from_ms(20), payload: ByteCount::new(80) },
        feedback: Duration::from_ms(100),
    }
}

/// A conference down a line of `kbit` of bare IP and 20 ms, for two minutes.
fn network(kbit: u64) -> Network {
    let mut network = build::line(kbit, 2_000, "none", Duration::from_ms(20));
    network.duration = Duration::from_s(120);
    network.traffic.push(build::traffic("call", 1, 0, Source::Conference(Arc::new(conference()))));
    network
}

fn call(network: &Network) -> (Outcome, ConferenceOutcome) {
    let outcome = run(network).expect("the network runs");
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    let conference = outcome.applications.conferences[0].clone();
    (outcome, conference)
}

fn video_bps(conference: &ConferenceOutcome) -> f64 {
    conference.video_bytes as f64 * 8.0 / conference.active.as_secs_f64()
}

fn stalled(conference: &ConferenceOutcome) -> f64 {
    conference.freezes.iter().map(|freeze| freeze.as_secs_f64()).sum()
}

/// 8 % a second lead from 300 kbit/s to 2.5 Mbit/s in 27.5 s. The mean over 120 s is then (27.5 s of (2.5 - 0.3) / ln
/// 8.33 and 92.5 s of 2.5) / 120, less 55 kbit/s of audio: 2.11 Mbit/s.
#[test]
fn a_fast_line_carries_the_highest_rate_without_a_freeze() {
    let (_, conference) = call(&network(20_000));
    let rate = video_bps(&conference);
    assert!((rate / 2.11e6 - 1.0).abs() < 0.1, "{rate}");
    assert_eq!((conference.freezes.len(), conference.frames_lost, conference.retransmitted), (0, 0, 0));
    assert!(conference.captured - conference.frames.packets <= 2);
    assert_eq!(conference.key_frames, 1);
    // Intervals are rounded down to a picosecond, and the run includes its last instant.
    assert_eq!((conference.captured, conference.audio_sent), (3_601, 6_001));
    // The first packet of a frame is 20 ms on the way; pacing spreads a frame over 1 / 2.5 of its interval.
    let frames = &conference.frames;
    assert!(frames.min > Duration::from_ms(20), "{}", frames.min);
    assert!((20.0..45.0).contains(&(frames.mean_s().unwrap() * 1e3)), "{:?}", frames.mean_s());
}

/// The rate contains the headers, also of the small packets of low rates. At 345 kbit/s a mean frame of 30 a second has
/// 1208 bytes, as a full packet, so that half of the frames have two packets.
#[test]
fn a_fixed_rate_is_that_of_the_packets() {
    for (kbit, frame_rate) in [100, 200, 345].into_iter().flat_map(|kbit| [(kbit, 30), (kbit, 60)]) {
        let mut network = network(20_000);
        let fixed = BitRate::from_kbit_per_s(kbit);
        let rates = Rates { least: fixed, start: fixed, most: fixed };
        let model = Conference { rates, frame_rate, ..conference() };
        network.traffic[0].source = Source::Conference(Arc::new(model));
        let (_, conference) = call(&network);
        let share = (video_bps(&conference) + conference_audio()) / (kbit as f64 * 1e3);
        assert!((share - 1.0).abs() < 0.02, "{share} of {kbit} kbit/s at {frame_rate} frames a second");
    }
}

/// The control keeps below a line of 1 Mbit/s, and most of its queue empty.
#[test]
fn a_slow_line_is_used_with_a_short_queue() {
    let (outcome, conference) = call(&network(1_000));
    let rate = video_bps(&conference) + conference_audio();
    assert!((0.55e6..1.0e6).contains(&rate), "{rate}");
    let delay = conference.frames.mean_s().unwrap();
    assert!(delay < 0.25, "mean frame delay {delay} s");
    assert!(stalled(&conference) < 3.0, "{:?}", conference.freezes);
    assert!(outcome.links[1].stats.dropped.iter().map(|count| count.packets).sum::<u64>() < 100);
}

fn conference_audio() -> f64 {
    conference().audio_bps(IpFields::default())
}

/// 3 % of losses lower no rate by themselves. A report names the missing packets, which are retransmitted.
#[test]
fn lost_packets_are_repeated_and_few_frames_are_lost() {
    let mut network = network(20_000);
    network.links[1].hop.line.loss = Ratio::from_ppm(30_000).unwrap();
    let (_, conference) = call(&network);
    assert!(conference.retransmitted > 200, "{}", conference.retransmitted);
    assert!(conference.frames_lost * 20 < conference.captured, "{} frames", conference.frames_lost);
    let share = conference.audio_lost as f64 / conference.audio_sent as f64;
    assert!((share / 0.03 - 1.0).abs() < 0.3, "audio is not retransmitted: {share}");
}

/// Half of 20 % of losses leaves 0.9 of the rate, at most once in 340 ms.
#[test]
fn many_losses_lower_the_rate() {
    let mut network = network(20_000);
    network.links[1].hop.line.loss = Ratio::from_ppm(200_000).unwrap();
    let (_, lossy) = call(&network);
    assert!(video_bps(&lossy) < 0.4e6, "{}", video_bps(&lossy));
}

/// A transfer without an end fills the queue of 100 packets, 1.2 s of the line: the control gives way to it, and its
/// threshold adapts to the queue that the transfer fills, so that the transfer does not starve it (section 5.4).
#[test]
fn a_transfer_in_the_same_queue_takes_rate_and_adds_delay() {
    let shares = (1..=6).map(|seed| {
        let mut shared = network(1_000);
        shared.seed = seed;
        let (_, alone) = call(&shared);
        let tcp = Arc::new(Config::default());
        let (sender, receiver) = (Arc::clone(&tcp), tcp);
        let bulk = Source::Bulk { sender, receiver, bytes: None, request: 0, opened_by: OpenedBy::Receiver };
        shared.traffic.push(build::traffic("download", 1, 0, bulk));
        let (_, beside) = call(&shared);
        assert!(beside.frames.mean_s().unwrap() > 8.0 * alone.frames.mean_s().unwrap());
        video_bps(&beside) / video_bps(&alone)
    });
    let shares: Vec<f64> = shares.collect();
    assert!(shares.iter().all(|share| (0.25..0.92).contains(share)), "{shares:?}");
    assert!(shares.iter().sum::<f64>() / 6.0 < 0.8, "{shares:?}");
}

#[test]
fn a_conference_that_stops_sends_no_more() {
    let mut network = network(20_000);
    network.traffic[0].stop = Some(Instant::ZERO + Duration::from_s(30));
    let (outcome, conference) = call(&network);
    assert_eq!((conference.captured, conference.audio_sent), (901, 1_500));
    assert_eq!(conference.active, Duration::from_s(30));
    assert!(outcome.flows[0].deliveries.unwrap().last < Instant::ZERO + Duration::from_s(31));
}

/// A line that is faster than the control's highest rate by far, and a queue that separates flows: equal results with
/// and without a transfer, within its packets' transmission times.
#[test]
fn a_fair_queue_protects_a_conference() {
    let mut shared = network(20_000);
    let tcp = Arc::new(Config::default());
    let (sender, receiver) = (Arc::clone(&tcp), tcp);
    let bulk = Source::Bulk { sender, receiver, bytes: None, request: 0, opened_by: OpenedBy::Receiver };
    shared.traffic.push(build::traffic("download", 1, 0, bulk));
    shared.links[1].hop.queue = Spec::FqCodel(Default::default());
    let (_, conference) = call(&shared);
    assert!(video_bps(&conference) > 1.8e6, "{}", video_bps(&conference));
    assert_eq!(conference.freezes.len(), 0, "{:?}", conference.freezes);
}

/// `network` whose line down has these steps of time in ms, rate in Mbit/s and loss in percent.
fn with_steps(mut network: Network, steps: &[(u64, Option<u64>, u32)]) -> Network {
    let step = |(ms, mbit, percent): &(u64, Option<u64>, u32)| Step {
        at: Duration::from_ms(*ms),
        rate: mbit.map(BitRate::from_mbit_per_s),
        delay: Duration::from_ms(20),
        loss: Ratio::from_ppm(percent * 10_000).unwrap(),
    };
    let steps = Steps::new(steps.iter().map(step).collect(), None).unwrap();
    network.links[1].hop.line.trace = Some(Trace::Steps(Arc::new(steps)));
    network.links[1].hop.queue = build::fifo_bytes(100_000_000);
    network
}

/// Packets that wait in an outage of 8 s are late, and arrive: as many as their delays were measured of. None is lost,
/// and the picture freezes until the first of them, whose frame was captured before the outage.
#[test]
fn late_packets_are_received() {
    let mut held = with_steps(network(4_000), &[(0, Some(4), 0), (2_000, None, 0), (10_000, Some(4), 0)]);
    held.duration = Duration::from_s(20);
    let (outcome, conference) = call(&held);
    let flow = &outcome.flows[0];
    let measured = flow.data_delays.as_ref().unwrap();
    assert!(measured.max > Duration::from_s(7), "{measured:?}");
    assert_eq!(flow.data_packets_received, measured.packets);
    assert_eq!((conference.frames_lost, conference.audio_lost), (0, 0));
    let freezes = &conference.freezes;
    assert!(freezes.len() == 1 && freezes[0].as_secs_f64() < 8.1, "{freezes:?}");
}

/// An outage of 4 s fills a queue of 60 kB, and frames are dropped. Each report asks for a key frame until one arrives,
/// 600 ms after it was captured.
#[test]
fn repeated_requests_yield_one_key_frame() {
    let mut held = with_steps(network(5_000), &[(0, Some(5), 0), (20_000, None, 0), (24_000, Some(5), 0)]);
    held.links[0].hop.line.delay = Duration::from_ms(580);
    held.links[1].hop.queue = build::fifo_bytes(60_000);
    held.duration = Duration::from_s(60);
    let (_, conference) = call(&held);
    assert!(conference.frames_lost > 30, "{}", conference.frames_lost);
    assert_eq!(conference.key_frames, 2, "the first frame, and the one after the outage");
}

/// The frames and audio from 15 s on are on the wire at the end: 151 and 251 of 601 and 1001. The others are shown, and
/// the rate grows after 10 s, when reports come.
#[test]
fn a_delay_of_seconds_loses_nothing() {
    let mut far = network(20_000);
    far.links[1].hop.line.delay = Duration::from_s(5);
    far.links[0].hop.line.delay = Duration::from_s(5);
    far.duration = Duration::from_s(20);
    let (_, conference) = call(&far);
    assert_eq!((conference.audio.packets, conference.audio_lost, conference.frames_lost), (750, 0, 0));
    assert!((449..=451).contains(&conference.frames.packets), "{}", conference.frames.packets);
    assert_eq!(conference.audio.late + conference.audio.overdue, 0);
    // Ten seconds of 0.3 Mbit/s, then up to ten of growth by 8 % a second.
    assert!(video_bps(&conference) > 0.27e6, "{}", video_bps(&conference));
}

/// From 10 s on each packet is dropped: none of them is late. The audio packet of the last instant is under way.
#[test]
fn what_is_dropped_at_the_end_is_lost_and_not_late() {
    let mut dying = with_steps(network(20_000), &[(0, Some(20), 0), (10_000, Some(20), 100)]);
    dying.duration = Duration::from_s(30);
    let (outcome, conference) = call(&dying);
    let (audio, frames) = (&conference.audio, &conference.frames);
    assert_eq!((audio.late + audio.overdue, audio.packets + conference.audio_lost), (0, conference.audio_sent - 1));
    // A frame that was captured in the last 100 ms is not due yet, and one of them was not sent yet.
    assert_eq!(frames.late + frames.overdue, 0);
    let recent = conference.captured - frames.packets - conference.frames_lost;
    assert!((2..=4).contains(&recent), "{recent}");
    let flow = &outcome.flows[0];
    assert!(
        flow.data_packets_lost.is_some_and(|lost| lost > conference.audio_lost + conference.frames_lost),
        "{flow:?}"
    );
}

//! Games against arithmetic: response times of commands on idle and full lines.

use std::sync::Arc;

use lastmile_model::outcome::{GameOutcome, Outcome};
use lastmile_model::{Datagrams, Game, Network, OpenedBy, Source, Spread};
use lastmile_queueing::line::trace::{Step, Steps, Trace};
use lastmile_sim::run;
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Ratio};

use crate::build;

pub(crate) fn datagrams(interval_ms: u64, interval_scale_ms: u64, size: u64, size_scale: u64) -> Datagrams {
    Datagrams {
        interval: Spread { location: Duration::from_ms(interval_ms), scale: Duration::from_ms(interval_scale_ms) },
        size: Spread { location: ByteCount::new(size), scale: ByteCount::new(size_scale) },
        most: ByteCount::new(1_500),
    }
}

fn network(commands: Datagrams, updates: Datagrams) -> Network {
    let mut network = build::line(8_000, 1_000, "none", Duration::from_ms(15));
    network.duration = Duration::from_s(60);
    let game = Game { commands, updates, limit: Duration::from_ms(100) };
    network.traffic.push(build::traffic("player", 1, 0, Source::Game(Arc::new(game))));
    network
}

fn play(network: &Network) -> (Outcome, GameOutcome) {
    let outcome = run(network).expect("the network runs");
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    let game = outcome.applications.games[0].clone();
    (outcome, game)
}

/// A command of 100 bytes takes 0.8 ms at 1 Mbit/s and 15 ms of propagation: 15.8 ms. Commands depart every 40 ms,
/// updates every 50 ms from 50 ms on. Within 200 ms, commands reach the server at 15.8, 55.8, 95.8, 135.8 and 175.8 ms
/// and wait for the updates at 50, 100, 100, 150 and 200 ms: 34.2, 44.2, 4.2, 14.2, 24.2, a mean of 24.2 ms. An update
/// of 200 bytes takes 0.2 ms at 8 Mbit/s and 15 ms. So the mean is 15.8 + 24.2 + 15.2 = 55.2 ms.
#[test]
fn a_response_takes_both_delays_and_the_wait_for_the_tick() {
    let (_, game) = play(&network(datagrams(40, 0, 100, 0), datagrams(50, 0, 200, 0)));
    let mean = game.responses.iter().map(|took| took.as_secs_f64()).sum::<f64>() / game.responses.len() as f64;
    assert!((mean * 1e3 - 55.2).abs() < 0.1, "{} ms", mean * 1e3);
    let (least, most) = (game.responses.iter().min().unwrap(), game.responses.iter().max().unwrap());
    assert_eq!((*least, *most), (Duration::from_us(35_200), Duration::from_us(75_200)));
    // From 0 s and from 50 ms to the last instant of the run.
    assert_eq!((game.commands_sent, game.updates_sent), (1_501, 1_200));
    assert_eq!(game.lost, [0, 0]);
}

/// The mean of the extreme-value distribution is its location and 0.5772 of its scale (Euler's constant): 55 ms + 3.46
/// ms of ticks, 120 B + 20.8 B of sizes. The deviation is 1.2825 of the scale.
#[test]
fn sizes_and_intervals_have_the_mean_of_their_distribution() {
    let (outcome, game) = play(&network(datagrams(40, 0, 80, 6), datagrams(55, 6, 120, 36)));
    let expected = 60.0 / 0.058_46;
    assert!((game.updates_sent as f64 / expected - 1.0).abs() < 0.02, "{} of {expected}", game.updates_sent);
    let bytes = outcome.flows[0].bytes_delivered as f64 / game.updates.packets as f64;
    assert!((bytes + 28.0 - 140.8).abs() < 5.0, "{bytes} B of payload");
}

/// Of 10 % of the commands nothing is seen; the others are not later than without losses.
#[test]
fn a_lost_command_has_no_response() {
    let mut lossy = network(datagrams(40, 0, 100, 0), datagrams(50, 0, 200, 0));
    lossy.links[0].hop.line.loss = Ratio::from_ppm(100_000).unwrap();
    let (_, game) = play(&lossy);
    let share = game.lost[1] as f64 / game.commands_sent as f64;
    assert!((share - 0.1).abs() < 0.03, "{share}");
    assert!(game.responses.len() as u64 + game.lost[1] + 3 >= game.commands_sent);
    // Each command has a response or none.
    assert_eq!((game.responses.len() + game.unanswered.len()) as u64, game.commands_sent);
    assert!((game.lost[1]..=game.lost[1] + 3).contains(&(game.unanswered.len() as u64)));
    assert!(game.responses.iter().all(|took| *took <= Duration::from_us(75_200)));
}

/// A lost update delays the responses that it would have shown by a tick.
#[test]
fn a_lost_update_delays_responses_to_the_next() {
    let mut lossy = network(datagrams(40, 0, 100, 0), datagrams(50, 0, 200, 0));
    lossy.links[1].hop.line.loss = Ratio::from_ppm(100_000).unwrap();
    let (_, game) = play(&lossy);
    assert!(game.responses.len() as u64 + 3 >= game.commands_sent, "no command is lost");
    let later = game.responses.iter().filter(|took| **took > Duration::from_us(75_200)).count();
    let share = later as f64 / game.responses.len() as f64;
    assert!((0.03..0.13).contains(&share), "{share} of the responses");
}

/// An upload fills 100 packets of 1500 bytes: 1.2 s at 1 Mbit/s, in front of commands.
#[test]
fn an_upload_in_the_same_queue_makes_responses_late() {
    let mut full = network(datagrams(40, 0, 100, 0), datagrams(50, 0, 200, 0));
    let tcp = Arc::new(Config::default());
    let (sender, receiver) = (Arc::clone(&tcp), tcp);
    let bulk = Source::Bulk { sender, receiver, bytes: None, request: 0, opened_by: OpenedBy::Sender };
    full.traffic.push(build::traffic("upload", 0, 1, bulk));
    let (_, game) = play(&full);
    let late = game.responses.iter().filter(|took| **took > Duration::from_ms(100)).count();
    assert!(late * 10 > game.responses.len() * 9, "{late} of {}", game.responses.len());
}

/// From 50 s on each update is dropped as its transmission begins. Those of 50 to 60 s, one in 50 ms, are 201.
#[test]
fn updates_that_are_dropped_at_the_end_are_lost() {
    let mut dying = network(datagrams(40, 0, 100, 0), datagrams(50, 0, 200, 0));
    let step = |s, percent: u32| Step {
        at: Duration::from_s(s),
        rate: Some(BitRate::from_mbit_per_s(8)),
        delay: Duration::from_ms(15),
        loss: Ratio::from_ppm(percent * 10_000).unwrap(),
    };
    let steps = Steps::new(vec![step(0, 0), step(50, 100)], None).unwrap();
    dying.links[1].hop.line.trace = Some(Trace::Steps(Arc::new(steps)));
    let (_, game) = play(&dying);
    assert_eq!((game.updates_sent, game.updates.packets, game.lost), (1_200, 999, [201, 0]));
}

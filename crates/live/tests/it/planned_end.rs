//! A planned end: the bridge carries what comes from then on, and the program what came before. No frame is lost, and
//! none comes twice. Without tcx a frame may be lost that comes in the moment in which the kernel removes what keeps
//! the bridge from it.

use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_live::emulate::{Config, World as Emulated};
use lastmile_live::io::Path;
use lastmile_live::shape::{self, Snapshot, World};
use lastmile_live::stop::{Stop, StopHandle};
use lastmile_queueing::line;
use lastmile_units::{BitRate, Duration};

use crate::bridge::{between, wire};
use crate::frames::{datagram, everything_until, numbered, read_datagram, send, wait_until};
use crate::hosts::Hosts;
use crate::shape::{bytes, config, ports, shaped, unshaped};
use crate::world::needs_live;

const PATHS: [Path; 3] = [Path::PacketSockets, Path::PacketSocketsNft, Path::Xdp];

/// Datagrams pass every 2 ms, while the line is shaped three times and left to the bridge three times.
#[test]
#[ignore = "needs root: real packets"]
fn a_planned_end_of_a_shaper_loses_no_frame_and_doubles_none() {
    needs_live!();
    for path in PATHS {
        let hosts = Hosts::new(true);
        let config = shape::Config { path, ..config(&hosts, unshaped(), unshaped()) };
        none_is_lost(&hosts, path, |until| {
            let world = World::build(&config).unwrap();
            while_it_runs(|stop| world.run(stop).unwrap(), until);
        });
    }
}

/// The same with a line whose delay has packets on their way at the end.
#[test]
#[ignore = "needs root: real packets"]
fn a_planned_end_of_an_emulated_line_loses_no_frame_and_doubles_none() {
    needs_live!();
    let mut config = wire();
    config.up[0].line = line::Config::new(None, config.up[0].line.link_layer, Duration::from_ms(30));
    for path in PATHS {
        let hosts = Hosts::new(true);
        none_is_lost(&hosts, path, |until| {
            let mut world = Emulated::build(&between(&hosts, Config { path, ..config.clone() })).unwrap();
            while_it_runs(|stop| world.run(stop, None).unwrap(), until);
        });
    }
}

/// Runs `run` until `until` has returned, and waits for its end.
fn while_it_runs<T: Send>(run: impl FnOnce(&Stop) -> T + Send, until: &mut dyn FnMut()) -> T {
    let stop = Stop::new().unwrap();
    thread::scope(|scope| {
        let handle = stop.handle().unwrap();
        let stop = &stop;
        let running = scope.spawn(move || run(stop));
        until();
        handle.stop();
        running.join().unwrap()
    })
}

/// `once` runs the program until the function that it gets returns.
fn none_is_lost(hosts: &Hosts, what: Path, mut once: impl FnMut(&mut dyn FnMut())) {
    let at_an_end = if what == Path::PacketSockets { 0 } else { 1 };
    numbered(&hosts.left, &hosts.right, |datagrams| {
        for end in 1..=3 {
            let mut before = 0;
            once(&mut || {
                thread::sleep(StdDuration::from_millis(700));
                // At a start a frame may pass twice.
                before = datagrams.doubled();
            });
            thread::sleep(StdDuration::from_millis(100));
            wait_until(&format!("all have come after {what}"), || datagrams.missing() <= end * at_an_end);
            assert_eq!(datagrams.doubled(), before, "{what}: some came twice");
        }
    });
}

/// Ends a shaper of 512 kbit/s behind which `count` datagrams of 500 bytes wait; `again` says it once more. What came,
/// in its order, the counters, and the time until the end, from the first datagram and from the request.
fn ended_with(count: u32, path: Path, again: impl Fn(&StopHandle)) -> (Vec<u32>, Snapshot, [StdDuration; 2]) {
    let hosts = Hosts::new(true);
    let shaped = shaped(BitRate::from_kbit_per_s(512), bytes(1_000_000));
    let world = World::build(&shape::Config { path, ..config(&hosts, shaped, unshaped()) }).unwrap();
    let [mut from, mut to] = ports(&hosts);
    let (stop, asker) = (Stop::new().unwrap(), world.handle());
    let handle = stop.handle().unwrap();
    thread::scope(|scope| {
        let running = scope.spawn(|| world.run(&stop).unwrap());
        assert!(asker.is_alive());
        let sending = StdInstant::now();
        for first in (0..count).step_by(50) {
            send(&mut from, (first..count.min(first + 50)).map(|number| datagram(number, 0, 500)).collect());
        }
        wait_until("all are there", || asker.report().unwrap().up.received.packets >= u64::from(count));
        let begun = StdInstant::now();
        handle.stop();
        again(&handle);
        let snapshot = running.join().unwrap();
        let took = [sending, begun].map(|from| from.elapsed());
        let sent = snapshot.up.sent.packets as usize;
        let came = everything_until(&mut to, |came| came.len() >= sent);
        let numbers = came.iter().filter_map(|frame| Some(read_datagram(frame)?.2)).collect();
        assert!(snapshot.up.is_balanced(), "{:?}", snapshot.up);
        (numbers, snapshot, took)
    })
}

/// A datagram of 500 bytes takes 12 cells of 53 bytes, 9.9375 ms at 512 kbit/s: 40 of them take 0.4 s, of which the
/// bucket of 32 cells saves three datagrams.
#[test]
#[ignore = "needs root: real packets"]
fn what_waits_at_a_planned_end_departs_at_the_rate_of_the_line() {
    needs_live!();
    for path in PATHS {
        let (numbers, snapshot, [took, _]) = ended_with(40, path, |_| {});
        assert_eq!(numbers, (0..40).collect::<Vec<_>>(), "{path}");
        assert_eq!(snapshot.up.hops[0].queued.packets.as_u64(), 0, "{path}");
        assert!(took > StdDuration::from_millis(340), "{path}: {took:?} is faster than the line");
    }
}

/// 300 of them take 3 s: within the second of the end 101 depart, and some did before it.
#[test]
#[ignore = "needs root: real packets"]
fn a_planned_end_takes_no_longer_than_a_second_and_a_second_request_ends_it_at_once() {
    needs_live!();
    let (numbers, snapshot, [_, took]) = ended_with(300, Path::PacketSockets, |_| {});
    let queued = snapshot.up.hops[0].queued.packets.as_u64();
    assert_eq!(numbers.len() as u64 + queued, 300, "{snapshot:?}");
    assert!((95..190).contains(&numbers.len()), "{}", numbers.len());
    assert!(took > StdDuration::from_millis(950) && took < StdDuration::from_millis(1500), "{took:?}");

    let twice = |handle: &StopHandle| {
        thread::sleep(StdDuration::from_millis(100));
        handle.stop();
    };
    let (numbers, snapshot, [_, took]) = ended_with(300, Path::PacketSockets, twice);
    let queued = snapshot.up.hops[0].queued.packets.as_u64();
    assert_eq!(numbers.len() as u64 + queued, 300, "{snapshot:?}");
    assert!(queued > 150 && took < StdDuration::from_millis(700), "{queued} {took:?}");
}

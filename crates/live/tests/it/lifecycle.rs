//! Devices and namespaces that a world makes and removes, and its counters.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration as StdDuration;

use lastmile_live::Error;
use lastmile_live::clock::std_span;
use lastmile_live::emulate::{Ended, Place, World};
use lastmile_live::netns::Namespace;
use lastmile_live::probe::{Ping, ping};
use lastmile_live::stop::Stop;
use lastmile_units::{Duration, Instant};

use crate::world::{emulating, needs_live, two_megabit};

/// Namespaces and devices of this process that somebody outside could see.
fn traces() -> Vec<String> {
    let own = format!("lastmile-{}-", std::process::id());
    let names = |folder: &str| -> Vec<String> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let namespaces = names("/var/run/netns").into_iter().filter(|name| name.starts_with(&own));
    let devices = names("/sys/class/net").into_iter().filter(|name| name.starts_with("lastmile"));
    namespaces.chain(devices).collect()
}

#[test]
#[ignore = "needs root: real packets"]
fn a_signal_ends_a_run_with_its_report_and_nothing_is_left_behind() {
    needs_live!();
    let mut config = two_megabit();
    config.server = Place::Here;
    config.server_address = "198.18.250.1".parse().unwrap();
    config.client_address = "198.18.250.2".parse().unwrap();
    let mut world = World::build(&config).unwrap();
    assert_eq!(traces().len(), 2, "one namespace, one device: {:?}", traces());
    let stop = Stop::on_signals().unwrap();
    let outcome = thread::scope(|scope| {
        let carrier = scope.spawn(|| world.run(&stop, Some(Duration::from_s(20))).unwrap());
        thread::sleep(StdDuration::from_millis(100));
        signal_hook::low_level::raise(signal_hook::consts::SIGINT).unwrap();
        carrier.join().unwrap()
    });
    assert_eq!(outcome.ended, Ended::Signal(signal_hook::consts::SIGINT));
    assert!(outcome.elapsed < Duration::from_s(10), "{}", outcome.elapsed);
    drop(world);
    assert_eq!(traces(), [""; 0]);
}

/// A trace begins with the run, however long a server takes to start after the line is made.
#[test]
#[ignore = "needs root: real packets"]
fn the_time_of_a_line_begins_with_its_run() {
    needs_live!();
    let stop = Stop::new().unwrap();
    let mut world = World::build(&two_megabit()).unwrap();
    let (built, handle) = (std::time::Instant::now(), world.handle());
    thread::sleep(StdDuration::from_millis(500));
    let (at, elapsed) = thread::scope(|scope| {
        scope.spawn(|| world.run(&stop, Some(Duration::from_s(20))).unwrap());
        let (at, elapsed) = (handle.states().unwrap().at, built.elapsed());
        handle.stop();
        (at, elapsed)
    });
    assert!(std_span(at.since(Instant::ZERO)) + StdDuration::from_millis(490) < elapsed, "{at} after {elapsed:?}");
}

/// No router solicitation, neighbour discovery or multicast report takes the line's time.
#[test]
#[ignore = "needs root: real packets"]
fn a_line_that_nobody_uses_carries_nothing() {
    needs_live!();
    let (outcome, ()) = emulating(&two_megabit(), |_, _| thread::sleep(StdDuration::from_secs(2)));
    assert_eq!((outcome.up.received.packets, outcome.down.received.packets), (0, 0));
    assert_eq!(outcome.ended, Ended::Asked);
}

#[test]
#[ignore = "needs root: real packets"]
fn each_ping_is_counted_once_each_way() {
    needs_live!();
    let target = two_megabit().server_address.into();
    let request =
        Ping { target, count: 10, interval: Duration::from_ms(20), ip_len: 84, patience: Duration::from_s(1) };
    let (outcome, _) = emulating(&two_megabit(), |client, _| client.run(|| ping(&request)).unwrap().unwrap());
    for direction in [&outcome.up, &outcome.down] {
        assert_eq!((direction.received.packets, direction.received.bytes), (10, 840));
        assert_eq!((direction.sent.packets, direction.sent.bytes), (10, 840));
        assert_eq!(direction.hops[0].cells.unwrap().as_u64(), 30);
        assert_eq!((direction.unreadable, direction.oversize.packets), (0, 0));
        assert_eq!((direction.hops[0].waited.len(), direction.lateness.len()), (10, 10));
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn a_command_behind_the_line_decides_the_end_and_the_status() {
    needs_live!();
    let stop = Stop::new().unwrap();
    let mut world = World::build(&two_megabit()).unwrap();
    let outcome =
        world.run_command(&stop, Command::new("sh").args(["-c", "ip -4 -o addr | grep -q 198.18.0.2/30 && exit 7"]));
    let Ended::Command(status) = outcome.unwrap().ended else { panic!("not the command") };
    assert_eq!(status.code(), Some(7));

    let missing = world.run_command(&stop, &mut Command::new("lastmile-no-such-program")).unwrap_err();
    assert!(matches!(&missing, Error::Command { command, .. } if command == "lastmile-no-such-program"), "{missing}");
}

#[test]
#[ignore = "needs root: real packets"]
fn a_stop_ends_the_command_too() {
    needs_live!();
    let stop = Stop::new().unwrap();
    let handle = stop.handle().unwrap();
    let mut world = World::build(&two_megabit()).unwrap();
    thread::spawn(move || {
        thread::sleep(StdDuration::from_millis(200));
        handle.stop();
    });
    let outcome = world.run_command(&stop, Command::new("sleep").arg("30")).unwrap();
    let Ended::Command(status) = outcome.ended else { panic!("not the command") };
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(signal_hook::consts::SIGTERM));
    assert!(outcome.elapsed < Duration::from_s(5), "{}", outcome.elapsed);
}

#[test]
#[ignore = "needs root: network namespaces"]
fn a_namespace_of_someone_else_is_used_and_stays() {
    needs_live!();
    let name = format!("lastmile-{}-theirs", std::process::id());
    let theirs = Namespace::create(&name).unwrap();
    assert!(Namespace::create(&name).unwrap_err().to_string().contains(&name), "the name is taken");
    let mut config = two_megabit();
    config.client = Place::Existing(name.clone());
    drop(World::build(&config).unwrap());
    assert!(Path::new("/var/run/netns").join(&name).exists());
    drop(theirs);
    assert!(!Path::new("/var/run/netns").join(&name).exists());
    assert!(matches!(World::build(&config), Err(Error::NoNamespace { name: missing }) if missing == name));
}

#[test]
#[ignore = "needs root: network namespaces"]
fn both_ends_in_one_namespace_are_refused() {
    needs_live!();
    let mut config = two_megabit();
    (config.client, config.server) = (Place::Here, Place::Here);
    assert!(matches!(World::build(&config), Err(Error::SamePlace)));
}

#[test]
fn a_direction_without_a_line_is_refused() {
    let mut config = two_megabit();
    config.up.clear();
    assert!(matches!(World::build(&config), Err(Error::NoHops)));
}

//! A cable that is pulled and put back under load: the middlebox goes on, keeps its memory, and
//! counts what the device did not take.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as StdDuration;

use lastmile_live::io::{PacketSocket, Path};
use lastmile_live::shape::Config;
use lastmile_units::Duration;

use crate::bridge::pings;
use crate::frames::{datagram, send};
use crate::hosts::{AtEnd, Hosts, ip};
use crate::shape::{config, shaping_by, unshaped};
use crate::world::needs_live;

/// Pages of this process that are in memory, in bytes (proc_pid_statm(5)).
pub(crate) fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A counter of a device, by its name in /sys/class/net/DEVICE/statistics.
fn statistic(namespace: &str, device: &str, name: &str) -> u64 {
    let path = format!("/sys/class/net/{device}/statistics/{name}");
    let output = Command::new("ip").args(["netns", "exec", namespace, "cat", &path]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

/// More than the line takes; some 60 000 datagrams a second.
pub(crate) fn flood(hosts: &Hosts, over: &AtomicBool) {
    let mut from = PacketSocket::open(Some(&hosts.left), "eth").unwrap();
    for number in (0..).step_by(64) {
        if over.load(Ordering::Relaxed) {
            return;
        }
        send(&mut from, (number..number + 64).map(|number| datagram(number, 0, 200)).collect());
        thread::sleep(StdDuration::from_millis(1));
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn a_carrier_that_is_lost_under_load_comes_back_with_the_line() {
    needs_live!();
    for path in [Path::PacketSockets, Path::Xdp] {
        carrier_is_lost_and_comes_back(path);
    }
}

#[expect(clippy::print_stderr, reason = "a measurement that the test is about")]
fn carrier_is_lost_and_comes_back(path: Path) {
    let hosts = Hosts::new(true);
    let (middle, right) = (hosts.middle.name(), hosts.right.name());
    let taken_before = statistic(middle, "east", "tx_packets");
    let (snapshot, resident) = shaping_by(&Config { path, ..config(&hosts, unshaped(), unshaped()) }, |_| {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| flood(&hosts, &over));
            let _ending = AtEnd(|| over.store(true, Ordering::Relaxed));
            thread::sleep(StdDuration::from_millis(300));
            for _ in 0..3 {
                // The other end goes down, so this one has no carrier, and is up.
                ip(&format!("-n {right} link set eth down"));
                thread::sleep(StdDuration::from_secs(1));
                ip(&format!("-n {right} link set eth up"));
                thread::sleep(StdDuration::from_millis(200));
            }
            // The device itself goes down.
            ip(&format!("-n {middle} link set east down"));
            thread::sleep(StdDuration::from_millis(500));
            ip(&format!("-n {middle} link set east up"));
            thread::sleep(StdDuration::from_millis(200));
        });
        let resident = resident_bytes();
        let replies = pings(&hosts.left, 10, Duration::from_ms(10));
        assert_eq!(replies.sorted().len(), 10, "{path}: the line is dead");
        resident
    });
    let taken = statistic(middle, "east", "tx_packets") - taken_before;
    let refused: u64 = snapshot.up.refused.iter().map(|count| count.packets).sum();
    eprintln!(
        "{path}: {} sent, {taken} taken by the device, {refused} refused; {} MB resident",
        snapshot.up.sent.packets,
        resident >> 20
    );
    assert!(refused > 10_000, "{path}: no load while there was no carrier: {refused}");
    assert_eq!(snapshot.up.sent.packets, taken, "{path}: what the device took is what counts as sent");
    assert!(resident < 400 << 20, "{path}: {resident} bytes");
}

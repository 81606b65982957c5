//! Interfaces and shapers that go away.

use super::*;

#[test]
#[ignore = "needs root: real packets"]
fn interfaces_may_go_down_and_up_and_change_their_mtu() {
    needs_live!();
    let hosts = Hosts::new(true);
    let (_, replies) = shaping(&hosts, unshaped(), unshaped(), |_| {
        let middle = hosts.middle.name();
        let first = pings(&hosts.left, 10, Duration::from_ms(10));
        ip(&format!("-n {middle} link set east down"));
        thread::sleep(StdDuration::from_millis(100));
        ip(&format!("-n {middle} link set east up"));
        thread::sleep(StdDuration::from_millis(500));
        let second = pings(&hosts.left, 10, Duration::from_ms(10));
        for (namespace, device) in
            [(middle, "west"), (middle, "east"), (hosts.left.name(), "eth"), (hosts.right.name(), "eth")]
        {
            ip(&format!("-n {namespace} link set {device} mtu 3000"));
        }
        let large = lastmile_live::probe::Ping {
            target: RIGHT.into(),
            count: 10,
            interval: Duration::from_ms(10),
            ip_len: 3000,
            patience: Duration::from_s(1),
        };
        let third = hosts.left.run(|| lastmile_live::probe::ping(&large)).unwrap().unwrap();
        [first, second, third]
    });
    assert_eq!(replies.map(|replies| replies.sorted().len()), [10, 10, 10]);
}

/// Where the child finds its interfaces.
const MIDDLE: &str = "LASTMILE_TEST_SHAPED";

/// No test: the program that the next one kills.
#[test]
#[ignore = "a part of another test"]
fn the_shaper_in_the_middle() {
    let Ok(middle) = std::env::var(MIDDLE) else { return };
    let up = shaped(BitRate::from_kbit_per_s(768), Spec::fifo(100));
    let world = World::build(&Config {
        namespace: Some(middle),
        lan: "west".into(),
        wan: "east".into(),
        make_bridge: None,
        up,
        down: unshaped(),
        path: Path::default(),
        tuning: Tuning::default(),
        records: false,
    })
    .unwrap();
    say_ready();
    world.run(&Stop::new().unwrap()).unwrap();
}

/// A flood fills the queue when the shaper is killed: what waits is lost, and the bridge carries the next packet.
#[test]
#[ignore = "needs root: real packets"]
fn the_line_lives_when_the_shaper_is_killed_under_load() {
    needs_live!();
    let hosts = Hosts::new(true);
    let mut command = part("shape::restarts::the_shaper_in_the_middle");
    let mut child = started(command.env(MIDDLE, hosts.middle.name()));
    numbered(&hosts.left, &hosts.right, |datagrams| {
        // Of 500 a second the line takes 145; 100 wait, and then most are dropped.
        wait_until("the queue is full", || datagrams.missing() > 200);
        child.kill().unwrap();
        let gap_ms = datagrams.gap_ms();
        child.wait().unwrap();
        eprintln!("longest gap {gap_ms} ms");
        assert!(gap_ms < 500, "{gap_ms} ms");
    });
}

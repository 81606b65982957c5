//! A machine that shapes sends no frames of its own to the line.

use super::*;

/// A modem that serves one MAC address learns the first one: duplicate address detection comes within two seconds of
/// the link, and reports and solicitations of routers follow within four.
#[test]
#[ignore = "needs root: real packets"]
fn bridge_and_ports_send_no_frame_of_their_own() {
    needs_live!();
    let hosts = Hosts::new(false);
    let middle = hosts.middle.name();
    for port in ["west", "east"] {
        ip(&format!("-n {middle} link set {port} down"));
        ip(&format!("-n {middle} link set {port} addrgenmode eui64"));
    }
    let [_, mut modem] = ports(&hosts);
    let config = Config { make_bridge: Some("lm0".into()), ..config(&hosts, unshaped(), unshaped()) };
    let world = World::build(&config).unwrap();
    thread::sleep(StdDuration::from_secs(6));
    let mut heard = Vec::new();
    everything(&mut modem, &MonotonicClock::start(), &mut |_, frame| heard.push(frame.to_vec()));
    assert_eq!(heard, Vec::<Vec<u8>>::new());
    drop(world);
    assert_eq!(pings(&hosts.left, 5, Duration::from_ms(50)).sorted().len(), 5, "the ports are up");
}

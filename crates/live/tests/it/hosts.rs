//! Two hosts, and a bridge of the kernel between them that a program may take the place of.
//!
//! ```text
//!   left            middle                         right
//!   +----------+    +------------------------+    +-----------+
//!   | 10.9.0.1 |----| west -[ bridge ]- east |----| 10.9.0.2  |
//!   +----------+    +------------------------+    +-----------+
//! ```

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

use lastmile_live::netns::Namespace;

/// A program that ends with this value, unless it has ended.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

/// The round trips in the output of ping(8), in milliseconds and ascending order.
pub(crate) fn ping_times(text: &str) -> Vec<f64> {
    let time = |line: &str| -> Option<f64> { line.split_once("time=")?.1.split_once(' ')?.0.parse().ok() };
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Three namespaces, removed with this value.
pub(crate) struct Hosts {
    pub(crate) left: Namespace,
    pub(crate) middle: Namespace,
    pub(crate) right: Namespace,
}

impl Hosts {
    pub(crate) fn new(bridge: bool) -> Self {
        let named = |role| Namespace::create(&format!("lastmile-{}-{role}", std::process::id())).unwrap();
        let hosts = Self { left: named("left"), middle: named("middle"), right: named("right") };
        let middle = hosts.middle.name();
        for (end, address, port) in [(&hosts.left, "10.9.0.1/24", "west"), (&hosts.right, "10.9.0.2/24", "east")] {
            let end = end.name();
            ip(&format!("-n {middle} link add {port} type veth peer name eth netns {end}"));
            for (namespace, device) in [(end, "eth"), (middle, port)] {
                // No neighbour discovery of IPv6 among the packets that are counted.
                ip(&format!("-n {namespace} link set {device} addrgenmode none"));
            }
            ip(&format!("-n {end} addr add {address} dev eth"));
            ip(&format!("-n {end} link set eth up"));
            ip(&format!("-n {middle} link set {port} up"));
        }
        if bridge {
            // Without the delay that the spanning tree would put in front of each port.
            ip(&format!("-n {middle} link add bridge type bridge forward_delay 0 mcast_snooping 0"));
            ip(&format!("-n {middle} link set bridge addrgenmode none"));
            for port in ["west", "east"] {
                ip(&format!("-n {middle} link set {port} master bridge"));
            }
            ip(&format!("-n {middle} link set bridge up"));
        }
        hosts
    }
}

pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Does something at the end, also at that of a test that fails: it would wait for ever for what runs beside it.
pub(crate) struct AtEnd<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

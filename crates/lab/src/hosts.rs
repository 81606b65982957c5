//! The hosts: network namespaces whose TCP is set as the lab needs it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::IpAddr;

use lastmile_live::emulate;
use lastmile_live::error::Context;
use lastmile_live::netns::{Namespace, leftovers};
use lastmile_tcp::Ecn;

use crate::error::Error;
use crate::spec::{End, Flow, HostConfig};

/// The two hosts.
#[derive(Clone, Copy)]
pub(crate) struct Hosts<'a> {
    pub(crate) namespaces: [&'a Namespace; 2],
    /// The device of each that leads to the other.
    pub(crate) devices: [&'a str; 2],
}

impl Hosts<'_> {
    /// Adds the flows' addresses that are not of the line's devices, and default routes to the other host.
    pub(crate) fn add_addresses(&self, line: &emulate::Config, flows: &[Flow]) -> Result<(), Error> {
        let devices: [IpAddr; 4] = [
            line.client_address.into(),
            line.server_address.into(),
            line.client_address_v6.into(),
            line.server_address_v6.into(),
        ];
        let needs_ipv6 = flows.iter().any(|flow| flow.addresses[0].is_ipv6());
        for end in [End::Client, End::Server] {
            let of_flows = flows.iter().map(|flow| flow.addresses[end.index()]);
            let own: BTreeSet<IpAddr> = of_flows.filter(|address| !devices.contains(address)).collect();
            let namespace = self.namespaces[end.index()];
            namespace.add_addresses(own)?;
            namespace.set_default_route(self.devices[end.index()], needs_ipv6)?;
        }
        Ok(())
    }
}

/// A new namespace for this role, `lastmile-PID-ROLE`, set up for `hosts`.
pub(crate) fn namespace(role: &str, hosts: &HostConfig) -> Result<Namespace, Error> {
    let namespace = Namespace::create(&leftovers::name_of(role))?;
    let set_up = || -> Result<(), Error> {
        // A replayed packet to all hosts of a link has no answer, as over IPv4 (icmp_echo_ignore_broadcasts).
        let no_answers = "/proc/sys/net/ipv6/icmp/echo_ignore_multicast";
        if fs::exists(no_answers).context(|| "looking for IPv6")? {
            fs::write(no_answers, "1").context(|| format!("setting {no_answers}"))?;
        }
        for (name, value) in settings(hosts) {
            write(name, &value)
                .context(|| format!("setting net.ipv4.{name} in network namespace {}", namespace.name()))?;
        }
        Ok(())
    };
    namespace.run(set_up)??;
    Ok(namespace)
}

/// Sysctls below `net.ipv4`. Metrics of earlier connections (`tcp_no_metrics_save`) would make a run depend on earlier
/// runs.
fn settings(hosts: &HostConfig) -> Vec<(&'static str, String)> {
    let flags = [
        ("tcp_no_metrics_save", true),
        ("tcp_sack", hosts.sack),
        ("tcp_dsack", hosts.dsack),
        ("tcp_timestamps", hosts.timestamps),
        ("tcp_window_scaling", hosts.window_scaling),
        ("tcp_slow_start_after_idle", hosts.idle_restart),
    ];
    let mut all: Vec<_> = flags.into_iter().map(|(name, on)| (name, u8::from(on).to_string())).collect();
    let ecn = match hosts.ecn {
        Ecn::Off => 0,
        Ecn::Classic => 1,
        // Since Linux 6.18.
        Ecn::Accurate => 3,
    };
    all.push(("tcp_ecn", ecn.to_string()));
    if let Some(window) = hosts.largest_window {
        // Linux's defaults but for the largest. Five eighths of a buffer are window, the rest is overhead of full
        // segments.
        let most = (u64::from(window) * 8 / 5).min(i32::MAX.cast_unsigned().into());
        all.push(("tcp_moderate_rcvbuf", "1".to_owned()));
        all.push(("tcp_rmem", format!("4096 131072 {}", most.max(131_072))));
        all.push(("tcp_wmem", format!("4096 16384 {}", most.max(4 << 20))));
    }
    all
}

/// Writes a sysctl of the namespace of the calling thread.
fn write(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
}

//! The default gateways of the network namespace that the program is in, from `/proc/self/net`: proc_pid_net(5).

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::sys::packet;

/// `RTF_UP`, `RTF_GATEWAY` and `RTF_REJECT` of linux/route.h.
const UP: u32 = 0x1;
const GATEWAY: u32 = 0x2;
const REJECT: u32 = 0x200;

/// A default gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gateway {
    /// Its address, with the scope where the address needs one.
    pub address: SocketAddr,
    /// The interface to it.
    pub device: String,
}

/// A default route: with the least metric, it carries the packets to addresses without another route.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Route<A> {
    metric: u32,
    gateway: Option<A>,
    device: String,
}

/// The gateway of IPv4 with the least metric; `None` without one, as on a point-to-point line.
#[must_use]
pub fn v4() -> Option<Gateway> {
    let (address, device) = by_gateway(of_v4(&table("route")))?;
    Some(Gateway { address: (address, 0).into(), device })
}

/// The gateway of IPv6 with the least metric.
#[must_use]
pub fn v6() -> Option<Gateway> {
    let (address, device) = by_gateway(of_v6(&table("ipv6_route")))?;
    // Routers announce addresses of the link, which name a host together with the device.
    let scope = if address.is_unicast_link_local() { packet::index_of(&device).ok()?.cast_unsigned() } else { 0 };
    Some(Gateway { address: SocketAddrV6::new(address, 0, 0, scope).into(), device })
}

/// The devices of the default routes of IPv4 and IPv6 with the least metric, with or without a gateway: a
/// point-to-point line has none.
#[must_use]
pub fn devices() -> Vec<String> {
    let v4 = of_v4(&table("route")).into_iter().min().map(|route| route.device);
    let v6 = of_v6(&table("ipv6_route")).into_iter().min().map(|route| route.device);
    let mut devices: Vec<String> = v4.into_iter().chain(v6).collect();
    devices.dedup();
    devices
}

fn table(name: &str) -> String {
    fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default()
}

/// The gateway with the least metric, and its device.
fn by_gateway<A: Ord>(routes: Vec<Route<A>>) -> Option<(A, String)> {
    let route = routes.into_iter().filter(|route| route.gateway.is_some()).min()?;
    Some((route.gateway?, route.device))
}

/// Whether a route has a gateway; `None` of one that is not in use, or that refuses packets.
fn uses_gateway(flags: u32) -> Option<bool> {
    (flags & UP != 0 && flags & REJECT == 0).then_some(flags & GATEWAY != 0)
}

/// The default routes of `Iface Destination Gateway Flags RefCnt Use Metric Mask ...`: addresses in the order of the
/// machine's bytes.
fn of_v4(table: &str) -> Vec<Route<Ipv4Addr>> {
    let route = |line: &str| {
        let [device, destination, gateway, flags, _, _, metric, mask, ..] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let word = |hex| u32::from_str_radix(hex, 16).ok();
        let is_default = word(destination)? == 0 && word(mask)? == 0;
        let (metric, gateway) = (metric.parse().ok()?, Ipv4Addr::from(word(gateway)?.to_ne_bytes()));
        let gateway = uses_gateway(word(flags)?)?.then_some(gateway);
        is_default.then(|| Route { metric, gateway, device: device.to_owned() })
    };
    table.lines().filter_map(route).collect()
}

/// The default routes of `destination prefix source prefix gateway metric references use flags device`. The route of
/// `lo` is the kernel's refusal.
fn of_v6(table: &str) -> Vec<Route<Ipv6Addr>> {
    let route = |line: &str| {
        let [destination, prefix, _, _, gateway, metric, _, _, flags, device] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let word = |hex| u32::from_str_radix(hex, 16).ok();
        let address = |hex| u128::from_str_radix(hex, 16).ok().map(Ipv6Addr::from);
        let is_default = address(destination)? == Ipv6Addr::UNSPECIFIED && word(prefix)? == 0 && device != "lo";
        let (metric, gateway) = (word(metric)?, address(gateway)?);
        let gateway = uses_gateway(word(flags)?)?.then_some(gateway);
        is_default.then(|| Route { metric, gateway, device: device.to_owned() })
    };
    table.lines().filter_map(route).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.12 prints it on a little-endian machine.
    #[cfg(target_endian = "little")]
    #[test]
    fn the_gateway_with_the_least_metric_counts() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                     eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     ppp0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n\
                     eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
        let found = by_gateway(of_v4(table)).map(|(address, device)| (address.to_string(), device));
        assert_eq!(found, Some(("192.168.1.1".to_owned(), "eth0".to_owned())));
        // The route that packets take has no gateway.
        assert_eq!(of_v4(table).into_iter().min().unwrap().device, "ppp0");
        let refused = table.replace("ppp0\t00000000\t00000000\t0001", "*\t00000000\t00000000\t0201");
        assert_eq!(of_v4(&refused).into_iter().min().unwrap().device, "eth0");
        assert_eq!(of_v4("Iface\tDestination\n"), []);
    }

    #[test]
    fn a_router_of_ipv6_comes_with_its_device() {
        let none = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                    00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";
        let router = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      fe800000000000000000000000000001 00000400 00000002 00000000 00450003     eth0\n";
        let line = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                    00000000000000000000000000000000 00000001 00000002 00000000 00000001     ppp0\n";
        assert_eq!(of_v6(none), []);
        let found = |table: &str| by_gateway(of_v6(table)).map(|(address, device)| (address.to_string(), device));
        assert_eq!(found(&format!("{none}{line}{router}")), Some(("fe80::1".to_owned(), "eth0".to_owned())));
        assert_eq!(of_v6(&format!("{none}{line}{router}")).into_iter().min().unwrap().device, "ppp0");
    }
}

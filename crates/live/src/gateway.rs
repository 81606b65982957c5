//! The default gateways of the network namespace that the program is in, from `/proc/self/net`: proc_pid_net(5).

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::sys::packet;

/// `RTF_UP | RTF_GATEWAY` of linux/route.h.
const UP_BY_GATEWAY: u32 = 3;

/// A default gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gateway {
    /// Its address, with the scope where the address needs one.
    pub address: SocketAddr,
    /// The interface to it.
    pub device: String,
}

/// The gateway of IPv4 with the least metric; `None` without one, as on a point-to-point line.
#[must_use]
pub fn v4() -> Option<Gateway> {
    of_v4(&fs::read_to_string("/proc/self/net/route").ok()?)
}

/// The gateway of IPv6 with the least metric.
#[must_use]
pub fn v6() -> Option<Gateway> {
    let (address, device) = of_v6(&fs::read_to_string("/proc/self/net/ipv6_route").ok()?)?;
    // Routers announce addresses of the link, which name a host together with the device.
    let scope = if address.is_unicast_link_local() { packet::index_of(&device).ok()?.cast_unsigned() } else { 0 };
    Some(Gateway { address: SocketAddrV6::new(address, 0, 0, scope).into(), device })
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask ...`: addresses in the order of the machine's bytes.
fn of_v4(table: &str) -> Option<Gateway> {
    let route = |line: &str| {
        let [device, destination, gateway, flags, _, _, metric, mask, ..] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let word = |hex| u32::from_str_radix(hex, 16).ok();
        let default = word(destination)? == 0 && word(mask)? == 0 && word(flags)? & UP_BY_GATEWAY == UP_BY_GATEWAY;
        let address = Ipv4Addr::from(word(gateway)?.to_ne_bytes());
        default.then_some((metric.parse::<u32>().ok()?, address, device.to_owned()))
    };
    let (_, address, device) = table.lines().filter_map(route).min()?;
    Some(Gateway { address: (address, 0).into(), device })
}

/// `destination prefix source prefix gateway metric references use flags device`.
fn of_v6(table: &str) -> Option<(Ipv6Addr, String)> {
    let route = |line: &str| {
        let [destination, prefix, _, _, gateway, metric, _, _, flags, device] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let word = |hex| u32::from_str_radix(hex, 16).ok();
        let address = |hex| u128::from_str_radix(hex, 16).ok().map(Ipv6Addr::from);
        let default = address(destination)? == Ipv6Addr::UNSPECIFIED
            && word(prefix)? == 0
            && word(flags)? & UP_BY_GATEWAY == UP_BY_GATEWAY;
        default.then_some((word(metric)?, address(gateway)?, device.to_owned()))
    };
    let (_, address, device) = table.lines().filter_map(route).min()?;
    Some((address, device))
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
        let gateway = Gateway { address: "192.168.1.1:0".parse().unwrap(), device: "eth0".to_owned() };
        assert_eq!(of_v4(table), Some(gateway));
        assert_eq!(of_v4("Iface\tDestination\n"), None);
    }

    #[test]
    fn a_router_of_ipv6_comes_with_its_device() {
        let none = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                    00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";
        let router = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      fe800000000000000000000000000001 00000400 00000002 00000000 00450003     eth0\n";
        assert_eq!(of_v6(none), None);
        assert_eq!(of_v6(&format!("{none}{router}")), Some(("fe80::1".parse().unwrap(), "eth0".to_owned())));
    }
}

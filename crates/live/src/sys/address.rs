//! Addresses and routes of a network device: rtnetlink(7), and ip-sysctl of the kernel's documentation.
//!
//! All of it acts on the network namespace of the calling thread.

use std::fs;
use std::io;
use std::net::IpAddr;

use super::netlink::Message;
use super::packet;

/// The smallest MTU of a device with IPv6 (RFC 8200, section 5): the kernel takes IPv6 off a device with a smaller one.
pub(crate) const LEAST_MTU_V6: u16 = 1280;

/// Sysctls below `net.ipv6.conf.DEVICE` that keep a device silent: no duplicate address detection, no router
/// solicitations, and no link-local address, for which the kernel would do both.
const SILENT: [(&str, &str); 5] =
    [("addr_gen_mode", "1"), ("accept_ra", "0"), ("accept_dad", "0"), ("dad_transmits", "0"), ("disable_ipv6", "0")];

/// Switches IPv6 on for the device, which sends no packet of its own accord. False on a kernel or a device without
/// IPv6.
pub(crate) fn enable_ipv6_silently(name: &str) -> io::Result<bool> {
    let of_device = format!("/proc/sys/net/ipv6/conf/{name}");
    if !fs::exists(&of_device)? {
        return Ok(false);
    }
    for (key, value) in SILENT {
        fs::write(format!("{of_device}/{key}"), value)?;
    }
    Ok(true)
}

/// Keeps the device from taking addresses and routes of IPv6 from routers.
pub(crate) fn refuse_advertisements(name: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/ipv6/conf/{name}/accept_ra"), "0")
}

/// Gives the device an address in a network of `prefix_len` bits, usable when this returns: duplicate address
/// detection, which would end later even where it sends nothing, is left out. Struct `ifaddrmsg` of rtnetlink(7).
pub(crate) fn add(name: &str, address: IpAddr, prefix_len: u8) -> io::Result<()> {
    let index = packet::index_of(name)?.to_ne_bytes();
    let (family, address_flags, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, 0, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, libc::IFA_F_NODAD as u8, address.octets().to_vec()),
    };
    let about = [&[family as u8, prefix_len, address_flags, libc::RT_SCOPE_UNIVERSE], &index[..]].concat();
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
    let mut message = Message::with_body(libc::RTM_NEWADDR, flags as u16, &about);
    for kind in [libc::IFA_LOCAL, libc::IFA_ADDRESS] {
        message.attribute(kind, &bytes);
    }
    message.ask().map(drop)
}

/// The addresses of the device by which other machines may reach this one: those of a link alone are left out, which
/// the kernel gives by itself.
pub(crate) fn of(name: &str) -> io::Result<Vec<IpAddr>> {
    let all = if_addrs::get_if_addrs()?.into_iter().filter(|interface| interface.name == name);
    Ok(all.map(|interface| interface.ip()).filter(|address| !is_of_link(*address)).collect())
}

fn is_of_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// A family of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

/// Sends every packet of this family without a better route to the device. Struct `rtmsg` of rtnetlink(7).
pub(crate) fn set_default_route(name: &str, family: Family) -> io::Result<()> {
    // A route of IPv4 without a gateway has the scope of the link; routes of IPv6 have no scope.
    let (family, scope) = match family {
        Family::V4 => (libc::AF_INET, libc::RT_SCOPE_LINK),
        Family::V6 => (libc::AF_INET6, libc::RT_SCOPE_UNIVERSE),
    };
    let mut about = [0; 12];
    about[0] = family as u8;
    about[4] = libc::RT_TABLE_MAIN;
    about[5] = libc::RTPROT_STATIC;
    about[6] = scope;
    about[7] = libc::RTN_UNICAST;
    let flags = libc::NLM_F_CREATE | libc::NLM_F_ACK;
    let mut message = Message::with_body(libc::RTM_NEWROUTE, flags as u16, &about);
    message.attribute(libc::RTA_OIF, &packet::index_of(name)?.to_ne_bytes());
    message.ask().map(drop)
}

//! Network devices by rtnetlink(7), and the bridges that they are ports of.
//!
//! All of it acts on the network namespace of the calling thread.

use std::io;
use std::os::fd::OwnedFd;

use super::netlink::{self, ABOUT_LEN, HEADER_LEN, Message, attributes};
use super::packet;

// linux/if_link.h.
const BRIDGE_FORWARD_DELAY: u16 = 1;
const BRIDGE_MULTICAST_SNOOPING: u16 = 23;
const INET6_ADDR_GEN_MODE: u16 = 8;
const ADDR_GEN_MODE_NONE: u8 = 1;

/// `MAX_PHYS_ITEM_ID_LEN` of linux/netdevice.h.
const LONGEST_SWITCH: usize = 32;

/// A network device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// Its number.
    pub(crate) index: u32,
    /// It was brought up; it may still be without a carrier.
    pub(crate) up: bool,
    /// It has a carrier.
    pub(crate) carrier: bool,
    /// The largest packet that it takes.
    pub(crate) mtu: u32,
    /// The number of the device, such as a bridge, that it is a port of.
    pub(crate) master: Option<u32>,
    /// It is a port of a bridge.
    pub(crate) bridge_port: bool,
    /// It is a bridge.
    pub(crate) bridge: bool,
    /// Its frames are those of Ethernet, which a port of a bridge must have.
    pub(crate) ethernet: bool,
    /// The identifier of the switch that it, or the device below it, is a port of, padded with zeros.
    switch: Option<[u8; LONGEST_SWITCH]>,
}

impl Link {
    /// Whether both are ports of one switch (DSA, switchdev), whose chip carries frames between them once they are
    /// ports of one bridge: no frame reaches the processor then.
    pub(crate) fn shares_switch(&self, other: &Self) -> bool {
        self.switch.is_some() && self.switch == other.switch
    }
}

/// The device of this name; `None` if there is none.
pub(crate) fn find(name: &str) -> io::Result<Option<Link>> {
    let mut message = Message::new(libc::RTM_GETLINK, 0, 0, 0);
    message.string(libc::IFLA_IFNAME, name);
    match message.ask() {
        Ok(answer) => answer_to_link(&answer).map(Some),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EINVAL | libc::ERANGE)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A socket that asks for devices of the namespace that it was opened in.
#[derive(Debug)]
pub(crate) struct Asker(OwnedFd);

impl Asker {
    /// In the namespace of the calling thread.
    pub(crate) fn open() -> io::Result<Self> {
        netlink::route().map(Self)
    }

    /// The device of this number.
    pub(crate) fn ask(&self, index: u32) -> io::Result<Link> {
        answer_to_link(&Message::new(libc::RTM_GETLINK, 0, index, 0).ask_by(&self.0)?)
    }
}

/// The name of the device of this number.
pub(crate) fn name_of(index: u32) -> io::Result<String> {
    let answer = Message::new(libc::RTM_GETLINK, 0, index, 0).ask()?;
    let name = attributes(answer.get(HEADER_LEN + ABOUT_LEN..).unwrap_or_default())
        .find(|(kind, _)| *kind == libc::IFLA_IFNAME)
        .and_then(|(_, value)| std::str::from_utf8(value).ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(name.trim_end_matches('\0').to_owned())
}

/// Makes a bridge that is up and forwards at once, without spanning tree, without looking into multicast, and without
/// an address of IPv6.
pub(crate) fn add_bridge(name: &str) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_NEWLINK, (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16, 0, 0);
    message.string(libc::IFLA_IFNAME, name);
    message.nested(libc::IFLA_LINKINFO, |info| {
        info.string(libc::IFLA_INFO_KIND, "bridge");
        info.nested(libc::IFLA_INFO_DATA, |data| {
            data.attribute(BRIDGE_FORWARD_DELAY, &0_u32.to_ne_bytes());
            data.attribute(BRIDGE_MULTICAST_SNOOPING, &[0]);
        });
    });
    message.ask()?;
    // A new device takes no attributes of IPv6.
    keep_without_ipv6_address(name).and_then(|()| bring_up(name)).inspect_err(|_| drop(remove(name)))
}

/// Keeps a device that is down from giving itself a link-local address when it comes up, and with it from duplicate
/// address detection and from solicitations of routers. Without IPv6 there is nothing to keep it from.
pub(crate) fn keep_without_ipv6_address(name: &str) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_SETLINK, 0, index_of(name)?, 0);
    message.nested(libc::IFLA_AF_SPEC, |families| {
        families.nested(libc::AF_INET6 as u16, |v6| v6.attribute(INET6_ADDR_GEN_MODE, &[ADDR_GEN_MODE_NONE]));
    });
    match message.ask() {
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
        other => other.map(drop),
    }
}

/// Sets the largest packet that the kernel hands to the device.
pub(crate) fn set_mtu(name: &str, mtu: u16) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_SETLINK, 0, index_of(name)?, 0);
    message.attribute(libc::IFLA_MTU, &u32::from(mtu).to_ne_bytes());
    message.ask().map(drop)
}

/// The largest packet that the device sends.
pub(crate) fn mtu(name: &str) -> io::Result<u32> {
    Ok(find(name)?.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?.mtu)
}

/// Brings the device up.
pub(crate) fn bring_up(name: &str) -> io::Result<()> {
    Message::new(libc::RTM_SETLINK, 0, index_of(name)?, libc::IFF_UP as u32).ask().map(drop)
}

/// Takes the device down.
pub(crate) fn take_down(name: &str) -> io::Result<()> {
    Message::changing(libc::RTM_SETLINK, 0, index_of(name)?, (0, libc::IFF_UP as u32)).ask().map(drop)
}

/// Sets how many packets the kernel keeps until they are read. The ioctl for it, of netdevice(7), wants rights outside
/// of every user namespace.
pub(crate) fn set_tx_queue_len(name: &str, packets: u16) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_SETLINK, 0, index_of(name)?, 0);
    message.attribute(libc::IFLA_TXQLEN, &u32::from(packets).to_ne_bytes());
    message.ask().map(drop)
}

/// Makes a device a port of a bridge.
pub(crate) fn join(port: &str, bridge: &str) -> io::Result<()> {
    set_master(port, index_of(bridge)?)
}

/// Makes a device a port of nothing.
pub(crate) fn leave(port: &str) -> io::Result<()> {
    set_master(port, 0)
}

fn set_master(port: &str, master: u32) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_SETLINK, 0, index_of(port)?, 0);
    message.attribute(libc::IFLA_MASTER, &master.to_ne_bytes());
    message.ask().map(drop)
}

/// Removes the device.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    Message::new(libc::RTM_DELLINK, 0, index_of(name)?, 0).ask().map(drop)
}

fn index_of(name: &str) -> io::Result<u32> {
    packet::index_of(name).map(libc::c_int::cast_unsigned)
}

fn answer_to_link(answer: &[u8]) -> io::Result<Link> {
    let word = |at: usize| -> Option<u32> { Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?)) };
    let (index, flags) = word(20).zip(word(24)).ok_or(io::ErrorKind::InvalidData)?;
    let ethernet = answer.get(18..20) == Some(&libc::ARPHRD_ETHER.to_ne_bytes()[..]);
    let up = flags & libc::IFF_UP as u32 != 0;
    let carrier = flags & libc::IFF_LOWER_UP as u32 != 0;
    let (master, switch) = (None, None);
    let mut link = Link { index, up, carrier, mtu: 0, master, bridge_port: false, bridge: false, ethernet, switch };
    for (kind, value) in attributes(&answer[HEADER_LEN + ABOUT_LEN..]) {
        let number = value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        match kind {
            libc::IFLA_MTU => link.mtu = number.unwrap_or(0),
            libc::IFLA_MASTER => link.master = number,
            libc::IFLA_PHYS_SWITCH_ID => {
                link.switch = Some(std::array::from_fn(|at| value.get(at).copied().unwrap_or(0)));
            }
            libc::IFLA_LINKINFO => {
                let is_bridge =
                    |of: u16| attributes(value).any(|(kind, value)| kind == of && value.starts_with(b"bridge\0"));
                link.bridge_port = is_bridge(libc::IFLA_INFO_SLAVE_KIND);
                link.bridge = is_bridge(libc::IFLA_INFO_KIND);
            }
            _ => {}
        }
    }
    Ok(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// linux/if_link.h: a driver of a switch gives the identifier of its chip, such as the MAC address, to each port.
    #[test]
    fn ports_of_one_switch_are_told_by_its_identifier() {
        let port = |switch: Option<&[u8]>| {
            let mut answer = Message::new(libc::RTM_NEWLINK, 0, 7, libc::IFF_UP as u32);
            answer.attribute(libc::IFLA_MTU, &1500_u32.to_ne_bytes());
            if let Some(switch) = switch {
                answer.attribute(libc::IFLA_PHYS_SWITCH_ID, switch);
            }
            let link = answer_to_link(&answer.finish()).unwrap();
            assert_eq!((link.index, link.up, link.mtu), (7, true, 1500));
            link
        };
        let (one, other) = ([0, 0, 0x5e, 0, 0x53, 1], [0, 0, 0x5e, 0, 0x53, 2]);
        assert!(port(Some(&one)).shares_switch(&port(Some(&one))));
        assert!(!port(Some(&one)).shares_switch(&port(Some(&other))));
        assert!(!port(Some(&one)).shares_switch(&port(None)));
        assert!(!port(None).shares_switch(&port(None)), "without a switch");
    }

    #[test]
    fn the_loopback_device_is_found_and_is_a_port_of_nothing() {
        let link = find("lo").unwrap().unwrap();
        assert_eq!(name_of(link.index).unwrap(), "lo");
        assert_eq!((link.master, link.bridge_port, link.bridge, link.ethernet), (None, false, false, false));
        assert!(link.mtu > 1500, "{link:?}");
        assert_eq!(find("lastmile-none").unwrap(), None);
    }
}

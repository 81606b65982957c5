//! The bridge of the kernel that carries on when the program does not.

use crate::error::{Context, Error};
use crate::io::lookup;
use crate::netns::Namespace;
use crate::sys::link::Link;
use crate::sys::{address, link};

/// The bridge of two interfaces.
#[derive(Debug)]
pub(super) struct Bridge {
    /// Its name.
    pub(super) name: String,
    made: bool,
    /// The interfaces that became its ports here.
    joined: Vec<String>,
    /// The interfaces that were brought up here.
    raised: Vec<String>,
}

impl Bridge {
    /// Checks that `lan` and `wan` are two interfaces that are up and ports of one bridge, and not of one switch. With
    /// `make`, those that are ports of nothing become ports of the bridge of that name, which is made unless it exists,
    /// and which no third interface is a port of, and those that are down are brought up.
    ///
    /// Bridge and ports have no address of IPv6: a modem that counts the MAC addresses behind it would count those of
    /// the duplicate address detection, solicitations and reports that an address begins with.
    pub(super) fn under(
        namespace: Option<&Namespace>,
        lan: &str,
        wan: &str,
        make: Option<&str>,
    ) -> Result<Self, Error> {
        if lan == wan {
            return Err(Error::OneInterface { name: lan.to_owned() });
        }
        within(namespace, || here(lan, wan, make))?
    }

    /// Brings up both interfaces, and makes the free ones ports.
    fn with_ports(mut self, both: [(&str, Link); 2], free: &[&str]) -> Result<Self, Error> {
        for (name, port) in both {
            let added = self.add(name, port.up, free.contains(&name));
            added.inspect_err(|_| self.undo(None))?;
        }
        Ok(self)
    }

    fn add(&mut self, name: &str, is_up: bool, is_free: bool) -> Result<(), Error> {
        if is_free || !is_up {
            link::keep_without_ipv6_address(name).context(|| format!("keeping {name} without an address of IPv6"))?;
        }
        if !is_up {
            link::bring_up(name).context(|| format!("bringing {name} up"))?;
            self.raised.push(name.to_owned());
        }
        if is_free {
            link::join(name, &self.name).context(|| format!("making {name} a port of {}", self.name))?;
            self.joined.push(name.to_owned());
        }
        Ok(())
    }

    /// Removes what was made here, for a program that could not start: the interfaces are as they were.
    pub(super) fn undo(&self, namespace: Option<&Namespace>) {
        // What went wrong before is said.
        let _ = within(namespace, || {
            if self.made {
                let _ = link::remove(&self.name);
            } else {
                self.joined.iter().for_each(|port| drop(link::leave(port)));
            }
            self.raised.iter().for_each(|port| drop(link::take_down(port)));
        });
    }
}

/// Does `work` in the namespace, or in that of the calling thread.
fn within<T: Send>(namespace: Option<&Namespace>, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    match namespace {
        Some(namespace) => namespace.run(work),
        None => Ok(work()),
    }
}

/// In the namespace of the calling thread.
fn here(lan: &str, wan: &str, make: Option<&str>) -> Result<Bridge, Error> {
    let find = if make.is_some() { lookup::find_any } else { lookup::find };
    let (a, b) = (find(lan)?, find(wan)?);
    for (name, link) in [(lan, a), (wan, b)] {
        if link.bridge {
            return Err(Error::BridgeItself { name: name.to_owned(), ports: lookup::ports_of(link.index)? });
        }
        if !link.ethernet {
            return Err(Error::NotBridgeable { name: name.to_owned() });
        }
    }
    if a.shares_switch(&b) {
        return Err(Error::OneSwitch { lan: lan.to_owned(), wan: wan.to_owned() });
    }
    if let (Some(bridge), true) = (a.master, a.master == b.master && a.bridge_port && b.bridge_port) {
        let name = link::name_of(bridge).context(|| "asking for the name of the bridge")?;
        return Bridge { name, made: false, joined: vec![], raised: vec![] }.with_ports([(lan, a), (wan, b)], &[]);
    }
    let no_bridge = |remedy: String| Error::NoBridge { lan: lan.to_owned(), wan: wan.to_owned(), remedy };
    let existing = make.map(link::find).transpose().context(|| "asking for the bridge")?.flatten();
    let mut free = Vec::new();
    for (name, port) in [(lan, a), (wan, b)] {
        match port.master {
            None => free.push(name),
            Some(master) if existing.is_some_and(|bridge| bridge.index == master) => {}
            Some(master) => {
                let master = link::name_of(master).context(|| format!("asking for what {name} is a port of"))?;
                return Err(no_bridge(format!("{name} is a port of {master}; ip link set {name} nomaster frees it")));
            }
        }
    }
    let Some(name) = make else {
        return Err(no_bridge(format!(
            "--make-bridge makes one, or: ip link add lastmile0 up type bridge; ip link set {lan} master lastmile0; \
             ip link set {wan} master lastmile0"
        )));
    };
    if let Some(other) = existing {
        let mut ports = lookup::ports_of(other.index)?;
        ports.retain(|port| port != lan && port != wan);
        let odd = match (other.bridge, ports.is_empty()) {
            (true, true) => None,
            (true, false) => Some(format!("has other ports: {}", ports.join(", "))),
            (false, _) => Some("is no bridge".to_owned()),
        };
        if let Some(odd) = odd {
            return Err(no_bridge(format!(
                "{name} exists, and {odd}; another name behind --make-bridge, or `ip link del {name}`, which removes it"
            )));
        }
    }
    for &port in &free {
        let addresses = address::of(port).context(|| format!("asking for the addresses of {port}"))?;
        if !addresses.is_empty() {
            return Err(Error::HasAddresses { name: port.to_owned(), addresses });
        }
    }
    if existing.is_none() {
        link::add_bridge(name).context(|| format!("making the bridge {name}"))?;
        // Where /proc/sys is read-only, as in a unit of systemd, the bridge may take an address after the end.
        let _ = address::refuse_advertisements(name);
    }
    let bridge = Bridge { name: name.to_owned(), made: existing.is_none(), joined: vec![], raised: vec![] };
    bridge.with_ports([(lan, a), (wan, b)], &free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_bridged_is_refused_with_what_would_help() {
        let refused = Bridge::under(None, "lo", "lo", None).unwrap_err();
        assert!(matches!(refused, Error::OneInterface { name } if name == "lo"));
        let refused = Bridge::under(None, "lastmile-none", "lo", None).unwrap_err();
        assert_eq!(refused.to_string(), "no interface is called \"lastmile-none\"");
        assert!(refused.hint().unwrap().contains("lo"));
    }
}

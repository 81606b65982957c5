//! The bridge of the kernel that carries on when the program does not.

use crate::error::{Context, Error};
use crate::io::lookup;
use crate::netns::Namespace;
use crate::sys::{address, link};

/// The bridge of two interfaces.
#[derive(Debug)]
pub(super) struct Bridge {
    /// Its name.
    pub(super) name: String,
    made: bool,
}

impl Bridge {
    /// Checks that `lan` and `wan` are two interfaces that are up and ports of one bridge. With `make`, they become
    /// ports of a new bridge of that name if neither is a port of anything.
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

    /// Removes it if it was made here, for a program that could not start: the interfaces are as they were.
    pub(super) fn undo(&self, namespace: Option<&Namespace>) {
        if self.made {
            // What went wrong before is said.
            let _ = within(namespace, || link::remove(&self.name));
        }
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
    let (a, b) = (lookup::find(lan)?, lookup::find(wan)?);
    for (name, link) in [(lan, a), (wan, b)] {
        if link.bridge {
            return Err(Error::BridgeItself { name: name.to_owned(), ports: lookup::ports_of(link.index)? });
        }
        if !link.ethernet {
            return Err(Error::NotBridgeable { name: name.to_owned() });
        }
    }
    if let (Some(bridge), true) = (a.master, a.master == b.master && a.bridge_port && b.bridge_port) {
        let name = link::name_of(bridge).context(|| "asking for the name of the bridge")?;
        return Ok(Bridge { name, made: false });
    }
    let no_bridge = |remedy: String| Error::NoBridge { lan: lan.to_owned(), wan: wan.to_owned(), remedy };
    for (name, port) in [(lan, a), (wan, b)] {
        if let Some(master) = port.master {
            let master = link::name_of(master).context(|| format!("asking for what {name} is a port of"))?;
            return Err(no_bridge(format!("{name} is a port of {master}; ip link set {name} nomaster frees it")));
        }
    }
    let Some(name) = make else {
        return Err(no_bridge(format!(
            "--make-bridge makes one, or: ip link add lastmile0 up type bridge; ip link set {lan} master lastmile0; \
             ip link set {wan} master lastmile0"
        )));
    };
    for port in [lan, wan] {
        let addresses = address::of(port).context(|| format!("asking for the addresses of {port}"))?;
        if !addresses.is_empty() {
            return Err(Error::HasAddresses { name: port.to_owned(), addresses });
        }
    }
    link::add_bridge(name).context(|| format!("making the bridge {name}"))?;
    let bridge = Bridge { name: name.to_owned(), made: true };
    for port in [lan, wan] {
        let joined = link::join(port, name).context(|| format!("making {port} a port of {name}"));
        joined.inspect_err(|_| bridge.undo(None))?;
    }
    Ok(bridge)
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

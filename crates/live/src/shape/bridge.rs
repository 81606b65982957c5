//! The bridge of the kernel that carries on when the program does not.

use crate::error::{Context, Error};
use crate::io::lookup;
use crate::netns::Namespace;
use crate::sys::link;

/// Checks that `lan` and `wan` are two interfaces that are up and ports of one bridge, and returns
/// its name. With `make`, they become ports of a new bridge of that name if neither is a port of
/// anything.
pub(super) fn under(namespace: Option<&Namespace>, lan: &str, wan: &str, make: Option<&str>) -> Result<String, Error> {
    if lan == wan {
        return Err(Error::OneInterface { name: lan.to_owned() });
    }
    match namespace {
        Some(namespace) => namespace.run(|| here(lan, wan, make))?,
        None => here(lan, wan, make),
    }
}

/// In the namespace of the calling thread.
fn here(lan: &str, wan: &str, make: Option<&str>) -> Result<String, Error> {
    let (a, b) = (lookup::find(lan)?, lookup::find(wan)?);
    for (name, link) in [(lan, a), (wan, b)] {
        if link.bridge {
            return Err(Error::BridgeItself { name: name.to_owned(), ports: lookup::ports_of(link.index)? });
        }
    }
    if let (Some(bridge), true) = (a.master, a.master == b.master && a.bridge_port && b.bridge_port) {
        return link::name_of(bridge).context(|| "asking for the name of the bridge");
    }
    let no_bridge = |remedy: String| Error::NoBridge { lan: lan.to_owned(), wan: wan.to_owned(), remedy };
    for (name, port) in [(lan, a), (wan, b)] {
        if let Some(master) = port.master {
            let master = link::name_of(master).context(|| format!("asking for what {name} is a port of"))?;
            return Err(no_bridge(format!("{name} is a port of {master}; ip link set {name} nomaster frees it")));
        }
    }
    let Some(bridge) = make else {
        return Err(no_bridge(format!(
            "--make-bridge makes one, or: ip link add lastmile0 up type bridge; ip link set {lan} master lastmile0; \
             ip link set {wan} master lastmile0"
        )));
    };
    link::add_bridge(bridge).context(|| format!("making the bridge {bridge}"))?;
    for port in [lan, wan] {
        link::join(port, bridge).context(|| format!("making {port} a port of {bridge}"))?;
    }
    Ok(bridge.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_bridged_is_refused_with_what_would_help() {
        let refused = under(None, "lo", "lo", None).unwrap_err();
        assert!(matches!(refused, Error::OneInterface { name } if name == "lo"));
        let refused = under(None, "lastmile-none", "lo", None).unwrap_err();
        assert_eq!(refused.to_string(), "no interface is called \"lastmile-none\"");
        assert!(refused.hint().unwrap().contains("lo"));
    }
}

//! One end of an emulated line: its device, namespace and addresses.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command};

use super::config::{Config, Place};
use crate::error::Error;
use crate::holder::Program;
use crate::io::claim::{self, Claim};
use crate::io::tun::Settings;
use crate::io::{Device, Interface, Tun};
use crate::netns::{Namespace, leftovers};

/// The role of the end whose packets go up.
pub(super) const CLIENT: &str = "client";

/// The device of one end.
enum End {
    Tun(Tun),
    Interface(Interface),
}

impl End {
    fn device(&mut self) -> &mut dyn Device {
        match self {
            Self::Tun(tun) => tun,
            Self::Interface(interface) => &mut *interface.device,
        }
    }
}

/// One end of the line, as users meet it.
pub struct Side {
    // The device is removed before its namespace.
    end: End,
    name: String,
    /// Keeps other lines from having an end in the namespace.
    _claim: Option<Claim>,
    namespace: Option<Namespace>,
    address: Option<Ipv4Addr>,
    address_v6: Option<Ipv6Addr>,
}

impl Side {
    /// Where its packets come and go.
    pub(super) fn port(&mut self) -> &mut dyn Device {
        self.end.device()
    }

    /// Whether it is an interface, and not a device of this program.
    pub(super) fn is_interface(&self) -> bool {
        matches!(self.end, End::Interface(_))
    }

    /// Leaves an interface to the rest of the kernel, and says whether this end is one.
    pub(super) fn let_go(&mut self) -> bool {
        match &mut self.end {
            End::Tun(_) => false,
            End::Interface(interface) => {
                interface.let_go();
                true
            }
        }
    }

    /// Its namespace; `None` for that of the caller.
    #[must_use]
    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// Name of its device.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.name
    }

    /// By what packets come and go, and why.
    #[must_use]
    pub fn path(&self) -> &str {
        match &self.end {
            End::Tun(_) => "TUN",
            End::Interface(interface) => &interface.path,
        }
    }

    /// Why its packets count as arrived when they are read and not when they were given to the
    /// device; `None` where that is known, and for an interface, whose [`Side::path`] says it.
    #[must_use]
    pub fn without_stamps(&self) -> Option<&io::Error> {
        match &self.end {
            End::Tun(tun) => tun.without_stamps(),
            End::Interface(_) => None,
        }
    }

    /// Its address; `None` for an interface, which needs none.
    #[must_use]
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.address
    }

    /// Its IPv6 address; `None` for an interface, for a device with an MTU below 1280 bytes, and on
    /// a kernel without IPv6.
    #[must_use]
    pub fn address_v6(&self) -> Option<Ipv6Addr> {
        self.address_v6
    }

    /// Starts `command` here.
    ///
    /// # Errors
    /// There is no such program.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = match &self.namespace {
            Some(namespace) => namespace.run(|| command.spawn())?,
            None => command.spawn(),
        };
        child.map_err(|source| Error::Command { command: name, source })
    }

    pub(super) fn build(
        config: &Config,
        place: &Place,
        role: &str,
        (address, address_v6): (Ipv4Addr, Ipv6Addr),
    ) -> Result<Self, Error> {
        let namespace = match place {
            Place::New => Some(Namespace::create(&leftovers::name_of(role))?),
            Place::Unnamed => Some(Namespace::unnamed(role)?),
            Place::Existing(name) | Place::Interface { namespace: Some(name), .. } => Some(Namespace::open(name)?),
            Place::Here | Place::Interface { namespace: None, .. } => None,
        };
        if let Place::Interface { name, .. } = place {
            let end = End::Interface(Interface::open(namespace.as_ref(), name, config.path, Program::Emulate)?);
            return Ok(Self { end, name: name.clone(), _claim: None, namespace, address: None, address_v6: None });
        }
        let claim = match &namespace {
            // Nobody else has a way into one without a name.
            Some(namespace) if !namespace.is_named() => None,
            Some(namespace) => Some(namespace.run(|| claim::take_namespace(Some(namespace.name())))??),
            None => Some(claim::take_namespace(None)?),
        };
        let settings = Settings {
            name: "lastmile%d".into(),
            address,
            prefix_len: config.prefix_len,
            address_v6,
            prefix_len_v6: config.prefix_len_v6,
            mtu: config.mtu,
            // Only in a namespace of its own does everything lie behind the line; behind the client
            // lies nothing, and a server that asks for names hears at once that there is no way.
            default_route: matches!(place, Place::New | Place::Unnamed) && role == CLIENT,
        };
        let tun = Tun::create(namespace.as_ref(), &settings)?;
        let name = tun.name().to_owned();
        let address_v6 = tun.has_ipv6().then_some(address_v6);
        Ok(Self { end: End::Tun(tun), name, _claim: claim, namespace, address: Some(address), address_v6 })
    }
}

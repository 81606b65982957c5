//! An interface between which and another this program is the only way: by packet sockets or by AF_XDP.

use std::fmt;
use std::time::SystemTime;

use super::bypass::Means;
use super::claim::{self, Claim};
use super::{Bypass, Device, PacketSocket, Xdp};
use crate::error::{Context, Error};
use crate::holder::Program;
use crate::netns::Namespace;
use crate::sys::device;

/// By what frames shall come and go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Path {
    /// AF_XDP where it is faster and loses nothing, packet sockets elsewhere.
    #[default]
    Auto,
    /// [`PacketSocket`], and whatever the kernel has to hold the bridge back ([`Bypass`]).
    PacketSockets,
    /// Packet sockets, with [`Means::Nft`], which kernels before 6.6 have.
    PacketSocketsNft,
    /// [`Xdp`].
    Xdp,
}

impl Path {
    /// All of them, in the order of documentation.
    pub const ALL: [Self; 4] = [Self::Auto, Self::PacketSockets, Self::PacketSocketsNft, Self::Xdp];

    /// The name for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::PacketSockets => "packet-sockets",
            Self::PacketSocketsNft => "packet-sockets-nft",
            Self::Xdp => "xdp",
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An open interface. While it is open, the rest of the kernel gets no frame that arrives at it.
pub struct Interface {
    /// `None` with AF_XDP. It is dropped first, so that the bridge forwards while the kernel closes sockets.
    bypass: Option<Bypass>,
    /// Receives and sends frames.
    pub device: Box<dyn Device>,
    /// The packet path and its reason, for users: "packet sockets, because ...".
    pub path: String,
    /// Keeps other processes from opening the interface.
    _claim: Option<Claim>,
}

impl Interface {
    /// Opens the interface of this name in `namespace`, or in that of the calling thread, for `program`.
    ///
    /// # Errors
    /// Not root; no such interface; the interface is down, or another process has claimed it; the kernel lacks a
    /// feature.
    pub fn open(namespace: Option<&Namespace>, name: &str, path: Path, program: Program) -> Result<Self, Error> {
        let claim = match namespace {
            Some(namespace) => namespace.run(|| claim::take(name, program))?,
            None => claim::take(name, program),
        }?;
        let opened = Self::by(namespace, name, path)?;
        Ok(Self { _claim: Some(claim), ..opened })
    }

    /// Leaves the frames of the interface to the rest of the kernel, from now or within milliseconds. The device hands
    /// over those before ([`super::Port::has_let_go`]).
    pub fn let_go(&mut self) {
        let from = self.bypass.as_mut().map_or_else(SystemTime::now, Bypass::let_go);
        self.device.let_go(from);
    }

    fn by(namespace: Option<&Namespace>, name: &str, path: Path) -> Result<Self, Error> {
        match path {
            Path::Xdp => {
                let device = Xdp::open(namespace, name)?;
                let tags = match takes_off_tags(namespace, name)? {
                    true => format!("; VLAN tags that {name} takes off are lost (`ethtool -K {name} rxvlan off`)"),
                    false => String::new(),
                };
                let path = format!("AF_XDP {}, as asked for{tags}", in_the_driver(&device));
                Ok(Self { device: Box::new(device), path, bypass: None, _claim: None })
            }
            Path::PacketSockets => Self::by_packet_sockets(namespace, name, &BOTH, "as asked for"),
            Path::PacketSocketsNft => Self::by_packet_sockets(namespace, name, &[Means::Nft], "as asked for"),
            Path::Auto => Self::by_what_suits(namespace, name),
        }
    }

    /// AF_XDP carries more packets a second if it runs in the driver, and no more elsewhere.
    fn by_what_suits(namespace: Option<&Namespace>, name: &str) -> Result<Self, Error> {
        if takes_off_tags(namespace, name)? {
            let why = format!(
                "because AF_XDP would lose the VLAN tags that {name} takes off; they carry 10 to 60 % fewer packets: \
                 `ethtool -K {name} rxvlan off` lets AF_XDP carry them"
            );
            return Self::by_packet_sockets(namespace, name, &BOTH, &why);
        }
        match Xdp::open(namespace, name) {
            Ok(device) if device.is_native() => {
                let path = format!(
                    "AF_XDP {}, because the driver has it and {name} takes off no VLAN tags",
                    in_the_driver(&device)
                );
                Ok(Self { device: Box::new(device), path, bypass: None, _claim: None })
            }
            Ok(generic) => {
                // One or the other: AF_XDP takes the frames before packet sockets can have them.
                drop(generic);
                match Self::by_packet_sockets(namespace, name, &BOTH, "because the driver has no AF_XDP") {
                    Err(Error::NoBypass { .. }) => {
                        let device = Xdp::open(namespace, name)?;
                        let path = format!(
                            "AF_XDP {}, because the kernel has nothing else \
                             that lets the bridge carry on when this ends",
                            in_the_driver(&device)
                        );
                        Ok(Self { device: Box::new(device), path, bypass: None, _claim: None })
                    }
                    other => other,
                }
            }
            Err(error) => {
                Self::by_packet_sockets(namespace, name, &BOTH, &format!("because AF_XDP does not work: {error}"))
            }
        }
    }

    fn by_packet_sockets(namespace: Option<&Namespace>, name: &str, means: &[Means], why: &str) -> Result<Self, Error> {
        // First the tap, then what drops behind it: no frame is lost in between, and a few may pass twice.
        let device = Box::new(PacketSocket::open(namespace, name)?);
        let bypass = Bypass::hold(namespace, name, means)?;
        let path = format!("packet sockets, {why}; bypass by {}", bypass.means().name());
        Ok(Self { device, path, bypass: Some(bypass), _claim: None })
    }
}

/// The means that may hold frames back, the cheaper first.
const BOTH: [Means; 2] = [Means::Tcx, Means::Nft];

fn takes_off_tags(namespace: Option<&Namespace>, name: &str) -> Result<bool, Error> {
    let asked = match namespace {
        Some(namespace) => namespace.run(|| device::takes_off_tags(name))?,
        None => device::takes_off_tags(name),
    };
    asked.context(|| format!("asking for the offloads of {name}"))
}

fn in_the_driver(device: &Xdp) -> &'static str {
    if device.is_native() { "native copy" } else { "generic copy" }
}

//! The way round a middlebox: the line lives when the program does not.
//!
//! Both interfaces are ports of a bridge of the kernel. While the program lives, it must be the
//! only way through; when it is gone, however it went, the bridge must carry on. So something in
//! the kernel drops what comes in through each interface, behind the taps of packet sockets, which
//! already have their copy, and before the bridge. It hangs on a descriptor of this process alone:
//! when the process ends, be it by SIGKILL, the kernel closes the descriptor, frames are dropped by
//! nobody, and the next frame is the bridge's.
//!
//! | | is | needs |
//! | --- | --- | --- |
//! | [`Means::Tcx`] | a program of two instructions on a link: tcx, bpf(2) | Linux 6.6 |
//! | [`Means::Nft`] | a chain of policy drop, in a table with an owner: nft(8), ingress | Linux 5.12, nf_tables |
//!
//! The third is AF_XDP itself ([`super::Xdp`], Linux 5.9), whose program leads frames past the
//! bridge. A kernel that has none of them has no bypass, and then nothing is started: port
//! isolation of the bridge (`bridge link set dev IF isolated on`) would hold frames back too, but
//! nobody takes it back when the program dies.
//!
//! Frames that the program sends take a path that nothing is attached to. The machine's own stack
//! does not see the frames either: no address of its own is reachable through these interfaces, nor
//! the bridge's, while the program lives.

use std::io;
use std::os::fd::OwnedFd;

use crate::error::{Context, Error};
use crate::netns::Namespace;
use crate::sys::{bpf, nft, packet};

/// The means that holds frames back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// tcx.
    Tcx,
    /// nftables.
    Nft,
}

impl Means {
    /// The name for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcx => "tcx",
            Self::Nft => "nft",
        }
    }

    fn hold(self, device: &str) -> io::Result<OwnedFd> {
        match self {
            Self::Tcx => bpf::drop_ingress(packet::index_of(device)?),
            Self::Nft => nft::drop_ingress(device),
        }
    }
}

/// Keeps the kernel from handling what comes in through a device, for as long as this value, and the process, lives.
#[derive(Debug)]
pub struct Bypass {
    means: Means,
    _held: OwnedFd,
}

impl Bypass {
    /// From now on, what comes in through this device of `namespace`, or of that of the calling
    /// thread, comes to packet sockets alone: by the first of `means` that the kernel has.
    ///
    /// # Errors
    /// Not root, no such device, or a kernel that has none of them.
    pub fn hold(namespace: Option<&Namespace>, device: &str, means: &[Means]) -> Result<Self, Error> {
        let mut lacking = Vec::new();
        for &means in means {
            let held: io::Result<OwnedFd> = match namespace {
                Some(namespace) => namespace.run(|| means.hold(device))?,
                None => means.hold(device),
            };
            match held {
                Ok(held) => return Ok(Self { means, _held: held }),
                Err(error) if is_lacking(&error) => lacking.push(format!("{}: {error}", means.name())),
                Err(source) => {
                    let what = || format!("keeping the kernel from forwarding what comes through {device}");
                    return Err(source).context(what);
                }
            }
        }
        Err(Error::NoBypass { device: device.to_owned(), lacking })
    }

    /// The means that holds frames back.
    #[must_use]
    pub fn means(&self) -> Means {
        self.means
    }
}

/// Errors of a kernel that does not know the call, the hook, the family of sockets, or the flag of a table.
fn is_lacking(error: &io::Error) -> bool {
    let unknown =
        [libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP, libc::EPROTONOSUPPORT, libc::EAFNOSUPPORT, libc::ENOENT];
    error.raw_os_error().is_some_and(|errno| unknown.contains(&errno))
}

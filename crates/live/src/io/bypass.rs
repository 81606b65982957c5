//! The way round a middlebox: the line lives when the program does not.
//!
//! Both interfaces are ports of a bridge of the kernel. While the program lives, it must be the
//! only way through; when it is gone, however it went, the bridge must carry on. So something in
//! the kernel drops what comes in through each interface, behind the taps of packet sockets, which
//! already have their copy, and before the bridge. It hangs on a descriptor of this process alone:
//! when the process ends, be it by SIGKILL, the kernel closes the descriptor, frames are dropped by
//! nobody, and the next frame is the bridge's.
//!
//! At a planned end [`Bypass::let_go`] says from when on frames are the bridge's, before sockets are closed: closing
//! one takes the kernel some 10 ms. With tcx the program compares the time that the kernel gave each frame, which the
//! packet socket tells too: none is lost, and none passes twice. A table is removed at once, and a frame of these
//! microseconds may be lost.
//!
//! | | is | needs |
//! | --- | --- | --- |
//! | [`Means::Tcx`] | a program of eight instructions on a link: tcx, bpf(2) | Linux 6.6 |
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
use std::time::{Duration, SystemTime};

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

    fn hold(self, device: &str) -> io::Result<Held> {
        Ok(match self {
            Self::Tcx => Held::Program(bpf::drop_ingress(packet::index_of(device)?)?),
            Self::Nft => Held::Table(nft::drop_ingress(device)?),
        })
    }
}

/// The thing in the kernel.
#[derive(Debug)]
enum Held {
    Program(bpf::Dropping),
    /// Its owner.
    Table(OwnedFd),
}

/// Time until the program has the time at which it ends.
const LEAD: Duration = Duration::from_millis(2);

/// Keeps the kernel from handling what comes in through a device, for as long as this value, and the process, lives.
#[derive(Debug)]
pub struct Bypass {
    means: Means,
    held: Option<Held>,
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
            let held = match namespace {
                Some(namespace) => namespace.run(|| means.hold(device))?,
                None => means.hold(device),
            };
            match held {
                Ok(held) => return Ok(Self { means, held: Some(held) }),
                Err(error) if is_lacking(&error) => lacking.push(format!("{}: {error}", means.name())),
                Err(source) => {
                    let what = || format!("keeping the kernel from forwarding what comes through {device}");
                    return Err(source).context(what);
                }
            }
        }
        Err(Error::NoBypass { device: device.to_owned(), lacking })
    }

    /// Leaves the device to the kernel, and returns from when on: what it receives earlier is dropped, as before.
    pub fn let_go(&mut self) -> SystemTime {
        let now = SystemTime::now();
        match self.held.take() {
            Some(Held::Program(program)) => {
                program.end(now + LEAD);
                self.held = Some(Held::Program(program));
                // A thread that had to wait for a processor told the program too late.
                (now + LEAD).max(SystemTime::now())
            }
            // Closing the socket removes the table.
            Some(Held::Table(owner)) => {
                drop(owner);
                now
            }
            None => now,
        }
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

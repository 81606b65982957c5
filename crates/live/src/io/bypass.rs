//! The way round a middlebox: the line lives when the program does not.
//!
//! Both interfaces are ports of a bridge of the kernel. While the program lives, it must be the only way through; when it is
//! gone, however it went, the bridge must carry on. So a program of two instructions in the kernel drops what comes in
//! through each interface (tcx, bpf(2), since Linux 6.6): it runs behind the taps of packet sockets, which have their copy by then, and
//! before the bridge. It hangs on a link that lives by a descriptor of this process alone. When the process ends, be it by
//! SIGKILL, the kernel closes the descriptor, the link and the program go, and the next frame is the bridge's.
//!
//! What the program sends goes out by a way that nothing is attached to. The machine's own stack does not see the frames
//! either: no address of its own is reachable through these interfaces, nor the bridge's, while the program lives.
//!
//! On a kernel without tcx the bridge can be told not to forward between the two ports (`bridge link set dev IF isolated on`);
//! but nobody takes that back when the program dies, so a supervisor has to (`ExecStopPost=` of a systemd unit).

use std::io;
use std::os::fd::OwnedFd;

use crate::error::{Context, Error};
use crate::lab::Namespace;
use crate::sys::{bpf, packet};

/// Keeps the kernel from handling what comes in through a device, for as long as this value, and the process, lives.
#[derive(Debug)]
pub struct Bypass {
    _link: OwnedFd,
}

impl Bypass {
    /// From now on, what comes in through this device of `namespace`, or of that of the calling thread, comes to packet sockets
    /// alone.
    ///
    /// # Errors
    /// Not root, no such device, or a kernel older than 6.6.
    pub fn hold(namespace: Option<&Namespace>, device: &str) -> Result<Self, Error> {
        let hold = || bpf::drop_ingress(packet::index_of(device)?);
        let held: io::Result<OwnedFd> = match namespace {
            Some(namespace) => namespace.run(hold)?,
            None => hold(),
        };
        match held {
            Ok(link) => Ok(Self { _link: link }),
            Err(source) if matches!(source.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP)) => {
                Err(Error::NoBypass { device: device.to_owned(), source })
            }
            Err(source) => {
                Err(source).context(|| format!("keeping the kernel from forwarding what comes through {device}"))
            }
        }
    }
}

//! Where packets come in and go out.

pub mod bypass;
pub(crate) mod claim;
mod handover;
#[cfg(test)]
mod hostile;
pub mod interface;
pub(crate) mod lookup;
pub mod offload;
pub mod packet_socket;
pub mod tun;
pub mod xdp;

use std::io;
use std::os::fd::AsFd;
use std::time::SystemTime;

use lastmile_packet::Frame;
use lastmile_units::Instant;

use crate::clock::Clock;

pub use bypass::Bypass;
pub use claim::FOLDER as CLAIMS;
pub use interface::{Interface, Path};
pub use offload::Offloads;
pub use packet_socket::PacketSocket;
pub use tun::Tun;
pub use xdp::Xdp;

/// A device, seen from the datapath: gives packets that hosts sent and takes packets that hosts shall have.
pub trait Port {
    /// The device's name, for errors.
    fn name(&self) -> &str;

    /// The header that its packets begin with. It never changes.
    fn framing(&self) -> Framing;

    /// Hands at most `limit` waiting packets to `take`, oldest first, each with its arrival time,
    /// and returns up to when that is complete: every packet that arrived before the returned time
    /// has now been handed over. The datapath may go on to that time and no further, so a late
    /// wake-up or a full batch changes no departure.
    ///
    /// A device whose packets carry no time stamp says when it read them. Times never go back.
    ///
    /// # Errors
    /// The device is gone. That no packet waits is no error.
    fn receive(&mut self, clock: &dyn Clock, limit: usize, take: &mut dyn FnMut(Instant, &[u8]))
    -> io::Result<Instant>;

    /// Sends all of `frames`, in their order, and leaves none there. Never waits: `done` hears of
    /// each what became of it, in any order, and gets its memory. Refused frames are lost, as on a
    /// cable whose far end cannot take them.
    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, Result<(), Refusal>));

    /// Frames that the kernel receives at `from` or later are the kernel's, and are not handed over. A device that the
    /// kernel has no other use for goes on as before.
    fn let_go(&mut self, from: SystemTime) {
        let _ = from;
    }

    /// True when all frames have been handed over that come before the kernel's.
    fn has_let_go(&self) -> bool {
        true
    }

    /// Counts of frames that were not handed over unchanged.
    ///
    /// # Errors
    /// The device is gone.
    fn counters(&mut self) -> io::Result<Counters> {
        Ok(Counters::default())
    }
}

/// A port of the kernel, whose descriptor is readable when packets wait.
pub trait Device: Port + AsFd + Send {}

impl<T: Port + AsFd + Send> Device for T {}

/// Counters of a port for frames that it did not hand over unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that the kernel dropped before they could be read: this program was too slow for them.
    pub dropped_unread: u64,
    /// Frames longer than any buffer, dropped.
    pub cut_short: u64,
    /// Packets without an arrival time from the kernel: they count as arrived when they were read. AF_XDP, which
    /// never knows, counts none.
    pub unstamped: u64,
    /// Work on frames that was left to a device, and was done here.
    pub offloads: Offloads,
}

/// The header that a port's packets begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// The IP header: [`Frame::new`].
    Packet,
    /// The Ethernet header: [`Frame::ethernet`].
    Ethernet,
}

/// Why a device did not take a packet that had crossed the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Refusal {
    /// Its queue or the kernel's memory was full.
    Full,
    /// It is down.
    Down,
    /// The kernel takes no such packet: neither IPv4 nor IPv6, or a header that cannot be.
    Invalid,
    /// Anything else.
    Other,
}

impl Refusal {
    /// All of them, in the order of [`Refusal::index`].
    pub const ALL: [Self; 4] = [Self::Full, Self::Down, Self::Invalid, Self::Other];

    /// The place in [`Refusal::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "receiver_full",
            Self::Down => "receiver_down",
            Self::Invalid => "receiver_invalid",
            Self::Other => "receiver_other",
        }
    }
}

impl From<&io::Error> for Refusal {
    fn from(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Self::Full,
            // A TUN device that is down says EIO (tun_get_user in the kernel), a socket ENETDOWN.
            Some(libc::EIO | libc::ENETDOWN | libc::ENODEV | libc::EBADFD) => Self::Down,
            Some(libc::EINVAL | libc::EMSGSIZE) => Self::Invalid,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_place_and_a_name_of_its_own() {
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal.index(), index);
            assert_eq!(Refusal::ALL.iter().filter(|other| other.name() == refusal.name()).count(), 1);
        }
    }

    #[test]
    fn the_kernels_error_says_why_a_packet_was_refused() {
        for (errno, refusal) in [
            (libc::EAGAIN, Refusal::Full),
            (libc::EIO, Refusal::Down),
            (libc::EINVAL, Refusal::Invalid),
            (libc::EPERM, Refusal::Other),
        ] {
            assert_eq!(Refusal::from(&io::Error::from_raw_os_error(errno)), refusal);
        }
    }
}

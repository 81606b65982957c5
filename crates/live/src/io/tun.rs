//! A TUN device: a network device of the kernel whose other end is this program (tun of the kernel's documentation).
//!
//! Without `IFF_VNET_HDR`, so the kernel finishes checksums and cuts large segments before packets
//! come here, and a packet is at most one MTU long. One packet a system call.
//!
//! Packets carry no time stamp. A packet socket beside the device tells when each was given to it,
//! and that is when it arrived; where there can be none, or its ring was full, a packet counts as
//! arrived when it is read, and is counted as such ([`Counters::unstamped`]).

mod arrival_times;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::SystemTime;

use lastmile_packet::Frame;
use lastmile_units::Instant;

use super::{Counters, Framing, Port, Refusal};
use crate::clock::{Arrivals, Clock, StampMap};
use crate::error::{Context, Error};
use crate::netns::Namespace;
use crate::sys::address::{self, Family};
use crate::sys::outgoing::Outgoing;
use crate::sys::{device, link};
use arrival_times::Times;

/// The queue for the time in which this program is not running: enough for the longest lateness seen at the highest
/// packet rate, since a packet that is lost here would be missing from the line's own queue.
const TX_QUEUE_LEN: u16 = 4096;

/// No IP packet is longer.
const MAX_PACKET: usize = 65_535;

/// Settings of a device.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name; a `%d` becomes the first number that is free.
    pub name: String,
    /// IPv4 address of the host side.
    pub address: Ipv4Addr,
    /// Bits of its network.
    pub prefix_len: u8,
    /// IPv6 address of the host side.
    pub address_v6: Ipv6Addr,
    /// Bits of its network.
    pub prefix_len_v6: u8,
    /// Largest packet that the kernel hands to the device.
    pub mtu: u16,
    /// True to send every packet without a better route here.
    pub default_route: bool,
}

/// A TUN device. It goes when this value does.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    has_ipv6: bool,
    /// The counters of all devices in the namespace of this one: proc_net_dev(5).
    statistics: File,
    buffer: Vec<u8>,
    /// The source of the times at which packets were given to the device, or the error that leaves none.
    times: io::Result<Times<Outgoing>>,
    /// Packets that it could tell nothing of.
    unstamped: u64,
    /// Up to when all packets have been handed over.
    arrivals: Arrivals,
}

impl Tun {
    /// Makes a device in `namespace`, or in that of the calling thread, with its addresses, up. The
    /// kernel sends no packet of its own through it: neighbour and router discovery, which would
    /// share the line with what is measured, are off.
    ///
    /// # Errors
    /// No `/dev/net/tun`, not root, or settings that the kernel refuses.
    pub fn create(namespace: Option<&Namespace>, settings: &Settings) -> Result<Self, Error> {
        match namespace {
            Some(namespace) => namespace.run(|| Self::create_here(settings))?,
            None => Self::create_here(settings),
        }
    }

    fn create_here(settings: &Settings) -> Result<Self, Error> {
        let (file, name) = device::open_tun(&settings.name).map_err(|source| match source.kind() {
            // The device's file is not for this user (EACCES), or the namespace is not (EPERM).
            _ if source.raw_os_error() == Some(libc::EACCES) => Error::TunNotPermitted { source },
            io::ErrorKind::PermissionDenied => Error::system("creating a TUN device", source),
            _ => Error::NoTun { source },
        })?;
        let what = || format!("setting up the device {name}");
        link::set_mtu(&name, settings.mtu).context(what)?;
        let has_ipv6 = settings.mtu >= address::LEAST_MTU_V6 && address::enable_ipv6_silently(&name).context(what)?;
        link::set_tx_queue_len(&name, TX_QUEUE_LEN).context(what)?;
        address::add(&name, settings.address.into(), settings.prefix_len).context(what)?;
        // Before anything can be given to the device. It takes CAP_NET_RAW, which making devices does not.
        let times = Outgoing::open(&name).map(Times::new);
        link::bring_up(&name).context(what)?;
        if settings.default_route {
            address::set_default_route(&name, Family::V4).context(what)?;
        }
        if has_ipv6 {
            address::add(&name, settings.address_v6.into(), settings.prefix_len_v6).context(what)?;
            if settings.default_route {
                address::set_default_route(&name, Family::V6).context(what)?;
            }
        }
        let statistics = File::open("/proc/thread-self/net/dev").context(what)?;
        let (buffer, arrivals) = (vec![0; MAX_PACKET], Arrivals::new());
        Ok(Self { file, name, has_ipv6, statistics, buffer, times, unstamped: 0, arrivals })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if it has its IPv6 address; false on a kernel without IPv6, and with an MTU that is too small for it.
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        self.has_ipv6
    }

    /// Why packets count as arrived when they are read, if they all do.
    #[must_use]
    pub fn without_stamps(&self) -> Option<&io::Error> {
        self.times.as_ref().err()
    }

    /// One write is one packet, whole or not at all.
    fn write(&self, packet: &[u8]) -> Result<(), Refusal> {
        match (&self.file).write(packet) {
            Ok(written) if written == packet.len() => Ok(()),
            Ok(_) => Err(Refusal::Other),
            Err(error) => Err(Refusal::from(&error)),
        }
    }
}

impl Port for Tun {
    fn name(&self) -> &str {
        &self.name
    }

    fn framing(&self) -> Framing {
        Framing::Packet
    }

    fn receive(
        &mut self,
        clock: &dyn Clock,
        limit: usize,
        take: &mut dyn FnMut(Instant, &[u8]),
    ) -> io::Result<Instant> {
        let Self { file, buffer, times, unstamped, arrivals, .. } = self;
        let (before, mut map) = (clock.now(), None);
        let mut complete_to = before;
        for _ in 0..limit {
            match (&*file).read(buffer) {
                Ok(len) => {
                    let packet = &buffer[..len];
                    complete_to = match times.as_mut().ok().and_then(|times| times.of(packet)) {
                        Some(given) => {
                            // Not before the packet was there: the wall clock may have been set since.
                            let map = map.get_or_insert_with(|| StampMap::measure(clock));
                            arrivals.stamped(map, given, clock.now())
                        }
                        None => {
                            *unstamped += 1;
                            arrivals.at(clock.now())
                        }
                    };
                    take(complete_to, packet);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    times.iter_mut().for_each(|times| times.nothing_waits(SystemTime::now));
                    // A packet that is still unread came after this call.
                    return Ok(arrivals.at(before));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(complete_to)
    }

    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, Result<(), Refusal>)) {
        for frame in frames.drain(..) {
            let result = self.write(frame.bytes());
            done(frame, result);
        }
    }

    fn counters(&mut self) -> io::Result<Counters> {
        let mut table = String::new();
        self.statistics.seek(SeekFrom::Start(0))?;
        self.statistics.read_to_string(&mut table)?;
        let dropped_unread =
            transmit_drops(&table, &self.name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Counters { dropped_unread, unstamped: self.unstamped, ..Counters::default() })
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The fourth transmit counter of the line of `device` in proc_net_dev(5).
fn transmit_drops(table: &str, device: &str) -> Option<u64> {
    let counters = table.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        (name.trim() == device).then_some(counters)
    })?;
    counters.split_ascii_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_drops_are_found_by_the_whole_name() {
        let table = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier \
                     compressed
line10:       1       2    3    4    5     6          7         8       9      10   11   12   13    14      15 \
                     16
 line1:      17      18   19   20   21    22         23        24      25      26   27   28   29    30      31 \
                     32
";
        assert_eq!(transmit_drops(table, "line1"), Some(28));
        assert_eq!(transmit_drops(table, "line10"), Some(12));
        assert_eq!(transmit_drops(table, "line"), None);
    }
}

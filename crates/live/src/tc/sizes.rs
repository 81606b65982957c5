//! Test sizes: packets of one size at overload leave at the rate of the line by what each takes on
//! the wire, and nothing else.
//!
//! A set-up of its own between two network namespaces and a veth pair, so that nothing of the
//! machine's own traffic is touched or measured. ARP and IPv6 neighbour discovery would share the
//! line: neighbours are pinned, and IPv6 is off. The backlog of a flood would share it too, where
//! flows have queues of their own: each flood waits until the line is empty. The rate is the slope
//! through the kernel's receive times, so that a late packet counts for no more than another.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant, SystemTime};

use lastmile_kernel::{Configuration, Flood};
use lastmile_linklayer::LinkLayer;
use lastmile_units::{ByteCount, CellCount};

use super::{Lacking, Target, apply, run};
use crate::error::{Context, Error};
use crate::netns::{Namespace, leftovers};
use crate::stop::Stop;
use crate::sys::{socket, stamped};

const SENDER: Ipv4Addr = Ipv4Addr::new(198, 18, 9, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(198, 18, 9, 2);
/// Discard: no rule has an eye on it.
const PORT: u16 = 9;
const DEVICE: &str = "veth0";
/// IPv4 and UDP headers.
const HEADERS: u16 = 28;
/// The share of the time that is left out at the start: the burst, and the queue filling.
const SETTLING: f64 = 0.35;
/// The longest pause of the sender during which the queue stays full, and the least number of its packets in flight.
const AWAY_FOR: f64 = 0.025;
const IN_FLIGHT: f64 = 16.0;
/// A line is empty after a silence of this many times the duration of the largest packet.
const EMPTY_AFTER: f64 = 3.0;
/// The receive buffer.
const UNREAD: u32 = 8 << 20;
/// Bytes that Linux keeps with each packet, roughly.
const BESIDE: u32 = 768;

/// One size: what the line makes of it, and what was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Bytes of the IP packet.
    pub size: u16,
    /// Bytes on the wire.
    pub wire: u64,
    /// Packets a second, by the closed form.
    pub wanted: f64,
    /// Packets a second.
    pub measured: f64,
    /// Packets that were counted.
    pub packets: usize,
}

impl Measured {
    /// The relative deviation.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.measured / self.wanted - 1.0
    }
}

/// Sizes worth testing on a line: both sides of cell boundaries and of the minimum frame, and the largest.
#[must_use]
pub fn worth_testing(layer: LinkLayer, largest: ByteCount) -> Vec<u16> {
    let cells = [2, 3, 4, 8, 31].map(|cells| layer.largest_ip_in_cells(CellCount::new(cells)));
    let padded = u64::from(layer.min_frame()).checked_add_signed(-i64::from(layer.overhead())).map(ByteCount::new);
    let plain = [64, 65, 576].map(|size| layer.cells(largest).is_none().then_some(ByteCount::new(size)));
    let edges = cells.into_iter().chain([padded]).chain(plain).flatten().map(ByteCount::as_u64);
    let both = edges.flat_map(|edge| [edge, edge + 1]).chain([largest.as_u64()]);
    let least = u64::from(HEADERS) + 8;
    let mut sizes: Vec<u16> = both
        .filter(|size| (least..=largest.as_u64()).contains(size))
        .filter_map(|size| u16::try_from(size).ok())
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Two namespaces, and the veth pair between them; the sender's end is the device that faces the modem.
#[derive(Debug)]
pub struct Pair {
    sender: Namespace,
    receiver: Namespace,
    target: Target,
}

impl Pair {
    /// Makes them.
    ///
    /// # Errors
    /// Not root; no ip(8); no veth.
    pub fn new() -> Result<Self, Error> {
        let make = |side| Namespace::create(&leftovers::name_of(&format!("tc-{side}")));
        let target = Target { device: DEVICE.to_owned(), ifb: "ifb-veth0".to_owned() };
        let pair = Self { sender: make("sender")?, receiver: make("receiver")?, target };
        // Before there is a device: what it would send of its own accord takes time of the line.
        for place in [&pair.sender, &pair.receiver] {
            let off = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
            // A kernel without IPv6 has no such file.
            let _ = place.run(|| std::fs::write(off, "1"))?;
        }
        pair.run(
            &pair.sender,
            &format!("ip link add {DEVICE} type veth peer name veth1 netns {}", pair.receiver.name()),
        )?;
        let ends = [(&pair.sender, DEVICE, SENDER, 1, 2, RECEIVER), (&pair.receiver, "veth1", RECEIVER, 2, 1, SENDER)];
        for (place, device, own, number, other, peer) in ends {
            pair.run(place, &format!("ip link set {device} address 02:00:00:00:09:0{number}"))?;
            pair.run(place, &format!("ip addr add {own}/30 dev {device}"))?;
            pair.run(place, &format!("ip link set {device} up"))?;
            pair.run(place, &format!("ip neigh add {peer} lladdr 02:00:00:00:09:0{other} dev {device}"))?;
        }
        Ok(pair)
    }

    fn run(&self, place: &Namespace, command: &str) -> Result<String, Error> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        place.run(|| run(&words))?
    }

    /// The namespace from which packets go over the shaped device.
    #[must_use]
    pub const fn sender(&self) -> &Namespace {
        &self.sender
    }

    /// The namespace at the far end.
    #[must_use]
    pub const fn receiver(&self) -> &Namespace {
        &self.receiver
    }

    /// The devices of the set-up.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Addresses of the sender and of the receiver.
    #[must_use]
    pub const fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        (SENDER, RECEIVER)
    }

    /// Sets up a configuration, made for Ethernet, on the sender's device.
    ///
    /// # Errors
    /// As [`apply`].
    pub fn apply(&self, configuration: &Configuration) -> Result<Lacking, Error> {
        self.sender.run(|| apply(configuration, &self.target))?
    }

    /// Floods the set-up with packets of this size for so long, or until a signal comes.
    ///
    /// # Errors
    /// Sockets that cannot be had; too few packets came through.
    pub fn flood(&self, flood: &Flood, size: u16, lasting: StdDuration, stop: &Stop) -> Result<Measured, Error> {
        let what = || format!("flooding with packets of {size} bytes");
        let receiver = self.receiver.run(|| UdpSocket::bind((RECEIVER, PORT)))?.context(what)?;
        stamped::enable(receiver.as_fd()).context(what)?;
        socket::set_receive_buffer(receiver.as_fd(), UNREAD).context(what)?;
        let largest = EMPTY_AFTER / flood.packets_per_s(flood.largest);
        receiver.set_read_timeout(Some(StdDuration::from_secs_f64(largest.clamp(0.05, 2.0)))).context(what)?;
        until_empty(&receiver, stop).context(what)?;
        let sender = self.sender.run(|| UdpSocket::bind((SENDER, 0)))?.context(what)?;
        sender.connect((RECEIVER, PORT)).context(what)?;
        let wanted = flood.packets_per_s(ByteCount::new(size.into()));
        let in_flight = (wanted * AWAY_FOR).max(IN_FLIGHT) as u32;
        stamped::set_send_buffer(sender.as_fd(), in_flight.saturating_mul(u32::from(size) + BESIDE) / 2)
            .context(what)?;
        let payload = vec![0; usize::from(size.saturating_sub(HEADERS))];
        let over = AtomicBool::new(false);
        let times = thread::scope(|scope| {
            // A full buffer blocks, so that the queue is never empty and nothing is dropped.
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if sender.send(&payload).is_err() {
                        break;
                    }
                }
            });
            let times = arrivals(&receiver, payload.len(), lasting, stop);
            over.store(true, Ordering::Relaxed);
            times
        });
        let times = times.context(what)?;
        let settled: Vec<f64> =
            times.iter().copied().filter(|time| times.first().is_some_and(|first| *time > first + SETTLING)).collect();
        let measured = slope(&settled).ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut)).context(what)?;
        let wire = flood.layer.on_wire(ByteCount::new(size.into())).as_u64();
        Ok(Measured { size, wire, wanted, measured, packets: settled.len() })
    }
}

/// Reads what an earlier flood has left in the queue, until nothing comes within the socket's time for reading.
fn until_empty(socket: &UdpSocket, stop: &Stop) -> io::Result<()> {
    let mut buffer = [0; 2048];
    while stop.signal().is_none() && stamped::receive(socket.as_fd(), &mut buffer)?.is_some() {}
    Ok(())
}

/// When datagrams of `len` bytes were received, in seconds.
fn arrivals(socket: &UdpSocket, len: usize, lasting: StdDuration, stop: &Stop) -> io::Result<Vec<f64>> {
    let (start, mut times, mut first) = (StdInstant::now(), Vec::new(), None);
    let mut buffer = [0; 2048];
    while start.elapsed() < lasting && stop.signal().is_none() {
        let Some((received, Some(stamp))) = stamped::receive(socket.as_fd(), &mut buffer)? else { continue };
        if received != len {
            continue;
        }
        let first: &SystemTime = first.get_or_insert(stamp);
        times.push(stamp.duration_since(*first).unwrap_or_default().as_secs_f64());
    }
    Ok(times)
}

/// Packets a second by least squares.
#[expect(clippy::cast_precision_loss, reason = "a few thousand packets")]
fn slope(times: &[f64]) -> Option<f64> {
    if times.len() < 8 {
        return None;
    }
    let count = times.len() as f64;
    let mean_time = times.iter().sum::<f64>() / count;
    let mean_index = (count - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (index, time) in times.iter().enumerate() {
        above += (index as f64 - mean_index) * (index as f64 - mean_index);
        below += (index as f64 - mean_index) * (time - mean_time);
    }
    Some(above / below)
}

#[cfg(test)]
mod tests {
    use lastmile_linklayer::preset;

    use super::*;

    /// 28 bytes of overhead: two cells take 68 bytes, three 116, four 164, eight 356, 31 cells
    /// 1460. The minimum frame of 74 bytes holds 46.
    #[test]
    fn both_sides_of_every_edge_are_tested() {
        let sizes = worth_testing(preset::BRIDGED_VCMUX_FCS.link, ByteCount::new(1500));
        assert_eq!(sizes, [46, 47, 68, 69, 116, 117, 164, 165, 356, 357, 1460, 1461, 1500]);
        let sizes = worth_testing(preset::ETHERNET.link, ByteCount::new(1500));
        assert_eq!(sizes, [46, 47, 64, 65, 66, 576, 577, 1500]);
        assert_eq!(worth_testing(preset::IP.link, ByteCount::new(576)), [64, 65, 66, 576]);
    }

    #[test]
    fn a_steady_stream_has_its_rate() {
        let times: Vec<f64> = (0..100).map(|index| f64::from(index) * 0.01).collect();
        assert!((slope(&times).unwrap() - 100.0).abs() < 1e-9);
        assert_eq!(slope(&times[..7]), None);
    }
}

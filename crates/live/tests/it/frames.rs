//! Frames of every kind, from one host to another that knows nothing of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration as StdDuration;

use lastmile_live::clock::{Clock as _, MonotonicClock};
use lastmile_live::io::{PacketSocket, Port};
use lastmile_live::netns::Namespace;
use lastmile_packet::Frame;
use lastmile_packet::checksum::Sum;
use lastmile_units::{Duration, Instant};

use crate::hosts::AtEnd;

/// The destination of the frames: no host.
pub(crate) const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x99];

/// The source of the frames.
const SOMEBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x98];

/// A frame of this type for nobody.
pub(crate) fn ethernet(ether_type: u16, behind: &[u8]) -> Vec<u8> {
    [&NOBODY[..], &SOMEBODY, &ether_type.to_be_bytes(), behind].concat()
}

/// An IPv4 packet of `ip_len` bytes with zeros behind what it carries, sealed.
pub(crate) fn ipv4(protocol: u8, dscp: u8, ip_len: u16, carried: &[u8]) -> Vec<u8> {
    let [high, low] = ip_len.to_be_bytes();
    let mut packet = vec![0x45, dscp << 2, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([198, 18, 0, 2, 198, 18, 0, 1]);
    packet.extend_from_slice(carried);
    packet.resize(ip_len.into(), 0);
    seal(&mut packet);
    packet
}

/// Makes the checksum of an IPv4 packet right, and that of TCP in it.
pub(crate) fn seal(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(&packet[..20]).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    if packet[9] == 6 && packet.len() >= 40 {
        packet[36..38].fill(0);
        let pseudo_header = Sum::ZERO.bytes(&packet[12..20]).word(6).word(packet.len() as u16 - 20);
        let checksum = pseudo_header.bytes(&packet[20..]).checksum();
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Where the number of a [`datagram`] stands.
const NUMBER_AT: usize = 14 + 20 + 8;

/// A UDP datagram as an IP packet of `ip_len` bytes, at least 32, with its number behind the
/// headers; a bridge that looks into packets for filters takes it.
pub(crate) fn datagram(number: u32, dscp: u8, ip_len: u16) -> Frame {
    let [high, low] = (ip_len - 20).to_be_bytes();
    let carried = [&[0x23, 0x8C, 0, 9, high, low, 0, 0], &number.to_be_bytes()[..]].concat();
    Frame::ethernet(ethernet(0x0800, &ipv4(17, dscp, ip_len, &carried))).0
}

/// DSCP, length as an IP packet and number of what [`datagram`] made; `None` for anything else.
pub(crate) fn read_datagram(frame: &[u8]) -> Option<(u8, u16, u32)> {
    if frame.len() < NUMBER_AT + 4 || frame[..6] != NOBODY || frame[12..15] != [0x08, 0x00, 0x45] {
        return None;
    }
    let number = frame[NUMBER_AT..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes))?;
    Some((frame[15] >> 2, (frame.len() - 14) as u16, number))
}

/// Sends frames, each of which the device must take.
pub(crate) fn send(port: &mut PacketSocket, mut frames: Vec<Frame>) {
    port.send(&mut frames, &mut |_, result| assert_eq!(result, Ok(())));
}

/// All that has come.
pub(crate) fn everything(port: &mut PacketSocket, clock: &MonotonicClock, take: &mut dyn FnMut(Instant, &[u8])) {
    const BATCH: usize = 64;
    let mut came = BATCH;
    while came == BATCH {
        came = 0;
        let mut count = |at, bytes: &[u8]| {
            came += 1;
            take(at, bytes);
        };
        port.receive(clock, BATCH, &mut count).unwrap();
    }
}

/// Collects what comes until `all` of it is there, and hears for 30 ms whether more does; or until
/// nothing has come for ten seconds.
pub(crate) fn everything_until(port: &mut PacketSocket, mut all: impl FnMut(&[Vec<u8>]) -> bool) -> Vec<Vec<u8>> {
    let (clock, mut came) = (MonotonicClock::start(), Vec::new());
    let (mut latest, mut is_all) = (clock.now(), false);
    while clock.now() - latest < if is_all { Duration::from_ms(30) } else { Duration::from_s(10) } {
        thread::sleep(StdDuration::from_millis(1));
        let before = came.len();
        everything(port, &clock, &mut |_, frame| came.push(frame.to_vec()));
        if !is_all && all(&came) {
            is_all = true;
            latest = clock.now();
        }
        if came.len() > before {
            latest = clock.now();
        }
    }
    came
}

/// The interval of the datagrams of [`numbered`].
const INTERVAL: StdDuration = StdDuration::from_millis(2);

/// Numbered datagrams of 500 bytes on their way, of which one goes every [`INTERVAL`] at most.
#[derive(Default)]
pub(crate) struct Numbered {
    sent: AtomicU32,
    came: AtomicU32,
    /// One more than the highest number that came.
    newest: AtomicU32,
    doubled: AtomicU32,
    over: AtomicBool,
}

impl Numbered {
    /// The number of frames that were sent and have not come. One that comes at once may be counted before it is sent.
    pub(crate) fn missing(&self) -> u32 {
        self.sent.load(Ordering::Relaxed).saturating_sub(self.came.load(Ordering::Relaxed))
    }

    /// The number of frames that came a second time.
    pub(crate) fn doubled(&self) -> u32 {
        self.doubled.load(Ordering::Relaxed)
    }

    /// Waits until one comes that is sent from now on; for how long none did, in ms. The measure is
    /// what was sent, so a sender that has to wait for its turn makes no gap.
    pub(crate) fn gap_ms(&self) -> u128 {
        let next = self.sent.load(Ordering::Relaxed);
        wait_until("datagrams come", || self.newest.load(Ordering::Relaxed) > next);
        u128::from(self.newest.load(Ordering::Relaxed) - 1 - next) * INTERVAL.as_millis()
    }

    fn hear(&self, to: &mut PacketSocket) {
        let (clock, mut seen) = (MonotonicClock::start(), BTreeSet::new());
        while !self.over.load(Ordering::Relaxed) {
            everything(to, &clock, &mut |_, frame| {
                let Some((_, _, number)) = read_datagram(frame) else { return };
                let counter = if seen.insert(number) { &self.came } else { &self.doubled };
                counter.fetch_add(1, Ordering::Relaxed);
                self.newest.fetch_max(number + 1, Ordering::Relaxed);
            });
            thread::sleep(StdDuration::from_micros(300));
        }
    }
}

/// Waits until it is so, for ten seconds at most.
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let clock = MonotonicClock::start();
    while !so() {
        assert!(clock.now() - Instant::ZERO < Duration::from_s(10), "not within ten seconds: {what}");
        thread::sleep(StdDuration::from_micros(300));
    }
}

/// Sends datagrams from one host to the other while `work` runs.
pub(crate) fn numbered(left: &Namespace, right: &Namespace, work: impl FnOnce(&Numbered)) {
    let open = |host| PacketSocket::open(Some(host), "eth").unwrap();
    let (mut from, mut to, datagrams) = (open(left), open(right), Numbered::default());
    thread::scope(|scope| {
        // Also at the end of a test that fails.
        let _ending = AtEnd(|| datagrams.over.store(true, Ordering::Relaxed));
        scope.spawn(|| {
            while !datagrams.over.load(Ordering::Relaxed) {
                send(&mut from, vec![datagram(datagrams.sent.load(Ordering::Relaxed), 0, 500)]);
                datagrams.sent.fetch_add(1, Ordering::Relaxed);
                thread::sleep(INTERVAL);
            }
        });
        scope.spawn(|| datagrams.hear(&mut to));
        work(&datagrams);
    });
}

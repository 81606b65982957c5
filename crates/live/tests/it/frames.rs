//! Frames of every kind, from one host to another that knows nothing of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as StdDuration;

use lastmile_live::clock::{Clock as _, MonotonicClock};
use lastmile_live::io::{PacketSocket, Port};
use lastmile_live::lab::Namespace;
use lastmile_packet::Frame;
use lastmile_units::{Duration, Instant};

/// Who gets the frames: no host.
pub(crate) const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x99];

/// Who sends them.
const SOMEBODY: [u8; 6] = [2, 0, 0, 0, 0, 0x98];

/// A frame of this type for nobody.
pub(crate) fn ethernet(ether_type: u16, behind: &[u8]) -> Vec<u8> {
    [&NOBODY[..], &SOMEBODY, &ether_type.to_be_bytes(), behind].concat()
}

/// An IPv4 packet of `ip_len` bytes with zeros behind what it carries, and no checksum.
pub(crate) fn ipv4(protocol: u8, dscp: u8, ip_len: u16, carried: &[u8]) -> Vec<u8> {
    let [high, low] = ip_len.to_be_bytes();
    let mut packet = vec![0x45, dscp << 2, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([198, 18, 0, 2, 198, 18, 0, 1]);
    packet.extend_from_slice(carried);
    packet.resize(ip_len.into(), 0);
    packet
}

/// Where the number of a [`datagram`] stands.
const NUMBER_AT: usize = 14 + 20 + 8;

/// A UDP datagram as an IP packet of `ip_len` bytes, at least 32, with its number behind the headers.
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

/// Collects what comes until `all` of it is there, and hears for 30 ms whether more does; or until nothing has come for ten seconds.
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
pub(crate) const INTERVAL: StdDuration = StdDuration::from_millis(2);

/// What became of numbered datagrams of 500 bytes, of which one went every [`INTERVAL`] at most.
pub(crate) struct Numbered {
    pub(crate) sent: u32,
    /// How often each came that did.
    came: BTreeMap<u32, u32>,
}

impl Numbered {
    /// How many came.
    pub(crate) fn came(&self) -> usize {
        self.came.len()
    }

    /// How many came more than once.
    pub(crate) fn doubled(&self) -> usize {
        self.came.values().filter(|times| **times > 1).count()
    }

    /// The most in a row that did not come, between those that did. What counts is what was sent, so a sender that has to wait for its
    /// turn makes no gap.
    pub(crate) fn longest_gap(&self) -> u32 {
        let numbers = || self.came.keys().copied();
        numbers().zip(numbers().skip(1)).map(|(one, next)| next - one - 1).max().unwrap_or(self.sent)
    }
}

/// Sends datagrams from one host to the other while `work` runs.
pub(crate) fn numbered(left: &Namespace, right: &Namespace, work: impl FnOnce()) -> Numbered {
    let open = |host| PacketSocket::open(Some(host), "eth").unwrap();
    let (mut from, mut to, over) = (open(left), open(right), AtomicBool::new(false));
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                send(&mut from, vec![datagram(sent, 0, 500)]);
                sent += 1;
                thread::sleep(INTERVAL);
            }
            sent
        });
        work();
        over.store(true, Ordering::Relaxed);
        let sent = sender.join().unwrap();
        let mut came = BTreeMap::new();
        for frame in everything_until(&mut to, |came| came.iter().any(|frame| number_of(frame) == Some(sent - 1))) {
            number_of(&frame).into_iter().for_each(|number| *came.entry(number).or_insert(0) += 1);
        }
        Numbered { sent, came }
    })
}

fn number_of(frame: &[u8]) -> Option<u32> {
    read_datagram(frame).map(|(_, _, number)| number)
}

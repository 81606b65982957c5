//! A host that sends numbered packets of many flows, and one that receives them.

use std::thread;
use std::time::Duration as StdDuration;

use lastmile_live::clock::{Clock as _, MonotonicClock};
use lastmile_live::io::PacketSocket;
use lastmile_live::shape::Snapshot;
use lastmile_packet::Frame;
use lastmile_units::{Duration, Instant};

use super::frames::{self, ethernet, everything, ipv4, seal, send};
use crate::hosts::Hosts;

/// Number of kinds of flows, by the flow's number: one kind for each class.
pub(super) const KINDS: u32 = 6;

/// A packet of a flow, with its position in it: pure ACKs have it as their acknowledgement number,
/// TCP as its sequence number, UDP in its payload.
pub(super) fn packet(flow: u32, place: u32) -> Frame {
    let kind = flow % KINDS;
    let tcp = |port: u16, sequence: u32, ack: u32| {
        let mut header = [50_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
        header.extend(sequence.to_be_bytes());
        header.extend(ack.to_be_bytes());
        header.extend([0x50, 0x10, 0x20, 0, 0, 0, 0, 0]);
        header
    };
    let len = 60 + (flow / KINDS % 4) as u16 * 120;
    let (protocol, len, carried) = match kind {
        0 => (6, 40, tcp(80, 1, place)),
        // Chat, received mail, sent mail: each in the class of its rule, independent of the
        // connection's history.
        1 => (6, len, tcp(5222, place, 1)),
        2 => (6, len, tcp(110, place, 1)),
        3 => (6, len, tcp(25, place, 1)),
        // Other traffic, and a port of file sharing.
        _ => {
            let port: u16 = if kind == 4 { 9000 } else { 6881 };
            let header = [50_000_u16.to_be_bytes(), port.to_be_bytes(), (len - 20).to_be_bytes(), [0, 0]].concat();
            (17, len, [header, place.to_be_bytes().to_vec()].concat())
        }
    };
    let mut bytes = ethernet(0x0800, &ipv4(protocol, 0, len, &carried));
    bytes[FLOW].copy_from_slice(&flow.to_be_bytes());
    seal(&mut bytes[14..]);
    Frame::ethernet(bytes).0
}

/// The source address, which identifies the flow.
pub(super) const FLOW: std::ops::Range<usize> = 26..30;

/// Flow and position of a frame made by [`packet`].
pub(super) fn read(frame: &[u8]) -> Option<(u32, u32)> {
    if frame.len() < 54 || frame[..6] != frames::NOBODY {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let flow = word(FLOW.start);
    Some((flow, word(if (1..=3).contains(&(flow % KINDS)) { 38 } else { 42 })))
}

/// A host that sends, and one that receives behind the middlebox.
pub(super) struct Load<'a> {
    /// The counters of the program in between.
    report: &'a dyn Fn() -> Snapshot,
    asked: Instant,
    from: PacketSocket,
    pub(super) to: PacketSocket,
    clock: MonotonicClock,
    pub(super) sent: u64,
    pub(super) came: u64,
    /// Packets dropped by the program in between, at the last report.
    pub(super) dropped: u64,
    /// The last position received, by flow.
    pub(super) last: Vec<u32>,
    pub(super) overtaken: u64,
    pub(super) unknown: u64,
}

impl<'a> Load<'a> {
    pub(super) fn new(hosts: &Hosts, report: &'a dyn Fn() -> Snapshot, flows: usize) -> Self {
        let open = |host| PacketSocket::open(Some(host), "eth").unwrap();
        Self {
            report,
            asked: Instant::ZERO,
            from: open(&hosts.left),
            to: open(&hosts.right),
            clock: MonotonicClock::start(),
            sent: 0,
            came: 0,
            dropped: 0,
            last: vec![0; flows],
            overtaken: 0,
            unknown: 0,
        }
    }

    pub(super) fn receive(&mut self) {
        let Self { to, clock, came, last, overtaken, unknown, .. } = self;
        everything(to, clock, &mut |_, frame| {
            let Some((flow, place)) = read(frame) else {
                *unknown += 1;
                return;
            };
            *came += 1;
            // A flow of one packet cannot be reordered.
            let Some(last) = last.get_mut(flow as usize) else { return };
            *overtaken += u64::from(place.wrapping_sub(*last).cast_signed() <= 0);
            *last = place;
        });
    }

    fn on_their_way(&self) -> u64 {
        self.sent.saturating_sub(self.came + self.dropped)
    }

    /// Sends a batch as soon as fewer than `window` packets are in flight, so that no queue of the
    /// kernel overflows.
    pub(super) fn send(&mut self, window: u64, batch: Vec<Frame>) {
        loop {
            self.receive();
            if self.on_their_way() < window {
                break;
            }
            // No packet is carried while a report is made.
            if self.clock.now() - self.asked > Duration::from_ms(5) {
                self.ask();
            }
            thread::sleep(StdDuration::from_micros(100));
        }
        self.sent += batch.len() as u64;
        send(&mut self.from, batch);
    }

    pub(super) fn ask(&mut self) {
        self.dropped = (self.report)().up.hops[0].dropped_packets();
        self.asked = self.clock.now();
    }

    /// Waits until the middlebox has read all sent packets, because the kernel buffers only a
    /// limited number.
    pub(super) fn wait_until_read(&mut self) {
        let end = self.clock.now() + Duration::from_s(2);
        while (self.report)().up.received.packets < self.sent && self.clock.now() < end {
            thread::sleep(StdDuration::from_millis(1));
        }
        self.receive();
    }

    /// Receives the remaining packets. True if all have been received or were dropped by the
    /// middlebox.
    pub(super) fn finish(&mut self) -> bool {
        let mut quiet_since = self.clock.now();
        while self.clock.now() - quiet_since < Duration::from_s(2) {
            let came = self.came;
            self.receive();
            if self.came != came {
                quiet_since = self.clock.now();
            }
            self.ask();
            if self.on_their_way() == 0 {
                return true;
            }
            thread::sleep(StdDuration::from_millis(1));
        }
        false
    }
}

//! Which packet belongs to which connection, and who opened it.
//!
//! A connection is two addresses and two ports, until a SYN with another sequence number says that they are used again. Where no SYN was seen
//! the side with the larger port is taken for the one that opened: servers have small ports.
//! Cost: one look-up a packet, none where the packet before was of the same connection.

use std::collections::HashMap;

use lastmile_packet::{FlowKey, HashKey, Meta, Parsed, Protocol, SynOptions, TcpFlags};
use lastmile_units::{Duration, Instant};

use crate::half::Half;
use crate::outcome::{Connection, Handshake, Opener};
use crate::turnaround::Told;

/// Where a capture of several interfaces saw a packet.
///
/// A host that forwards shows each packet once for each interface. Of each direction of a connection the interface counts that showed it
/// first; another takes its place with the first packet that tells something new.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sighting {
    /// A number of the interface.
    pub interface: u32,
    /// True if the host sent the packet there.
    pub sent: bool,
}

/// The state machine: packets in, connections out.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    connections: Vec<State>,
    by_key: HashMap<FlowKey, usize, HashKey>,
    /// The connection of the packet before.
    latest: Option<(FlowKey, usize)>,
    now: Instant,
    other_packets: u64,
    packets_back_in_time: u64,
    packets_seen_before: u64,
}

#[derive(Clone, Debug)]
struct State {
    /// The lesser of the keys of its two directions.
    key: FlowKey,
    /// Sent in the direction of the key, and against it.
    halves: [Half; 2],
    /// Where each half's packets are seen.
    sightings: [Option<Sighting>; 2],
    /// Which half is the opener's.
    opener: Option<usize>,
    from: Instant,
    to: Instant,
    reset: bool,
    syn: Option<(Instant, SynOptions, bool)>,
    syn_ack: Option<(Instant, SynOptions, bool)>,
    first_syn: Option<Instant>,
    took: Option<Duration>,
    /// How long each half's sender took to answer in the handshake.
    opened: [Option<Duration>; 2],
}

impl Analysis {
    /// An analysis that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet that passed the capture at `now`. Times may be equal; one that goes back counts as the one before, and is counted.
    pub fn packet(&mut self, now: Instant, packet: &Parsed) {
        self.packet_at(now, Sighting::default(), packet);
    }

    /// The same of a capture of several interfaces.
    pub fn packet_at(&mut self, now: Instant, sighting: Sighting, packet: &Parsed) {
        self.packets_back_in_time += u64::from(now < self.now);
        self.now = self.now.max(now);
        if packet.meta.protocol != Protocol::Tcp {
            self.other_packets += 1;
            return;
        }
        let reversed = packet.key.reversed();
        let (key, side) = if packet.key <= reversed { (packet.key, 0) } else { (reversed, 1) };
        let place = match self.latest {
            Some((latest, place)) if latest == key => Some(place),
            _ => self.by_key.get(&key).copied(),
        };
        let place = match place {
            Some(place) if !self.connections[place].is_reused(side, &packet.meta) => place,
            _ => {
                self.connections.push(State::new(key, self.now));
                let place = self.connections.len() - 1;
                self.by_key.insert(key, place);
                place
            }
        };
        self.latest = Some((key, place));
        let connection = &mut self.connections[place];
        if connection.was_seen(side, sighting, &packet.meta) {
            self.packets_seen_before += 1;
        } else {
            connection.packet(self.now, side, &packet.meta);
        }
    }

    /// Packets that were no TCP segment that can be read: other protocols, and fragments.
    #[must_use]
    pub const fn other_packets(&self) -> u64 {
        self.other_packets
    }

    /// Packets whose time was before that of the packet before.
    #[must_use]
    pub const fn packets_back_in_time(&self) -> u64 {
        self.packets_back_in_time
    }

    /// Packets that are left out since another interface had shown them.
    #[must_use]
    pub const fn packets_seen_before(&self) -> u64 {
        self.packets_seen_before
    }

    /// The connections, in the order of their first packets.
    #[must_use]
    pub fn finish(self) -> Vec<Connection> {
        self.connections.into_iter().map(State::finish).collect()
    }
}

impl State {
    fn new(key: FlowKey, now: Instant) -> Self {
        Self {
            key,
            halves: [Half::default(), Half::default()],
            sightings: [None; 2],
            opener: None,
            from: now,
            to: now,
            reset: false,
            syn: None,
            syn_ack: None,
            first_syn: None,
            took: None,
            opened: [None; 2],
        }
    }

    /// True for a SYN that opens another connection.
    fn is_reused(&self, side: usize, packet: &Meta) -> bool {
        let flags = packet.flags;
        flags.contains(TcpFlags::SYN)
            && !flags.contains(TcpFlags::ACK)
            && self.halves[side].initial() != Some(packet.seq)
    }

    /// True for a packet that another interface has shown.
    fn was_seen(&mut self, side: usize, sighting: Sighting, packet: &Meta) -> bool {
        let is_new = || self.halves[side].is_news(&self.halves[1 - side], packet);
        if self.sightings[side].is_some_and(|own| own != sighting) && !is_new() {
            return true;
        }
        self.sightings[side] = Some(sighting);
        false
    }

    fn packet(&mut self, now: Instant, side: usize, packet: &Meta) {
        self.to = now;
        self.reset |= packet.flags.contains(TcpFlags::RST);
        self.handshake(now, side, packet);
        let opened = self.opened[side];
        let [forward, backward] = &mut self.halves;
        let (own, other) = if side == 0 { (forward, backward) } else { (backward, forward) };
        if let Some((value, echo)) = packet.options().timestamps() {
            // The same in every segment (RFC 7323, appendix A).
            own.size.options = 12;
            if packet.flags.contains(TcpFlags::ACK) {
                own.answer = own.turnaround.echoed(now, echo);
            }
            other.turnaround.passed(value, Told::new(now, packet));
        }
        if packet.flags.contains(TcpFlags::SYN) {
            other.size.announced = packet.options().syn_options().mss;
        }
        other.on_ack(now, packet);
        own.on_packet(now, packet, opened);
    }

    /// Notes options and times of the packets that open the connection.
    fn handshake(&mut self, now: Instant, side: usize, packet: &Meta) {
        let flags = packet.flags;
        let told = (now, packet.options().syn_options(), packet.options().timestamps().is_some());
        match (flags.contains(TcpFlags::SYN), flags.contains(TcpFlags::ACK)) {
            (true, false) => {
                self.opener.get_or_insert(side);
                self.first_syn.get_or_insert(now);
                if self.syn_ack.is_none() {
                    self.syn = Some(told);
                }
            }
            (true, true) => {
                self.opener.get_or_insert(1 - side);
                if let (Some((at, ..)), None) = (self.syn, self.opened[side]) {
                    self.opened[side] = Some(now.since(at));
                }
                if self.took.is_none() {
                    self.syn_ack = Some(told);
                }
                self.agree();
            }
            (false, true) if self.took.is_none() && self.opener == Some(side) => {
                if let Some((at, ..)) = self.syn_ack {
                    self.opened[side] = Some(now.since(at));
                    self.took = Some(now.since(self.first_syn.unwrap_or(at)));
                }
            }
            _ => {}
        }
    }

    /// Both sides have said what they can.
    fn agree(&mut self) {
        let (Some((_, syn, _)), Some((_, answer, _)), Some(opener)) = (self.syn, self.syn_ack, self.opener) else {
            return;
        };
        // RFC 7323, section 2.2: windows are scaled if both sides said so, each by its own.
        let scaled = syn.window_scale.zip(answer.window_scale);
        self.halves[opener].shift = Some(scaled.map_or(0, |(_, answer)| answer));
        self.halves[1 - opener].shift = Some(scaled.map_or(0, |(own, _)| own));
        for half in &mut self.halves {
            half.may_sack = syn.sack_permitted && answer.sack_permitted;
        }
    }

    fn finish(self) -> Connection {
        let Self { key, halves, from, .. } = self;
        let addresses = key.addresses;
        let by_port = usize::from(addresses.source_port < addresses.destination_port);
        let (opener, side) = self.opener.map_or((Opener::Guessed, by_port), |side| (Opener::Seen, side));
        let closed = halves.iter().all(Half::fin_seen);
        let [forward, backward] = &halves;
        let ways = [forward.to_receiver(backward), backward.to_receiver(forward)];
        let [forward, backward] = halves;
        let forward = forward.finish(from, [ways[1], ways[0]]);
        let backward = backward.finish(from, ways);
        let (up, down) = if side == 0 { (forward, backward) } else { (backward, forward) };
        Connection {
            addresses: if side == 0 { addresses } else { addresses.reversed() },
            opener,
            from,
            to: self.to,
            reset: self.reset,
            closed,
            handshake: Handshake {
                syn: self.syn.map(|(_, options, timestamps)| (options, timestamps)),
                syn_ack: self.syn_ack.map(|(_, options, timestamps)| (options, timestamps)),
                took: self.took,
            },
            up,
            down,
        }
    }
}

//! Assigns packets to connections, and finds the side that opened each.
//!
//! A connection is two addresses and two ports. A SYN with another sequence number starts a new
//! connection on the same ports, and so does a SYN-ACK where the capture lacks the SYN. Both sides may open one
//! connection with a SYN each. Without a SYN the side with the larger port counts as the opener,
//! because servers use small ports. Cost: one look-up a packet; a comparison of keys if one of the
//! preceding packets belongs to the same direction of a connection.

use std::collections::HashMap;

use lastmile_packet::{FlowKey, HashKey, Meta, Parsed, Protocol, SynOptions, TcpFlags};
use lastmile_units::{Duration, Instant};

use crate::clock_steps::{ClockStep, ClockSteps, Stamps};
use crate::ecn::EcnFeedback;
use crate::half::Half;
use crate::outcome::{Connection, Handshake, Opener};
use crate::remote::Remote;
use crate::response_time::{Feedback, faster};
use crate::trace::Traced;

/// The interface at which a packet was captured, in a capture of several interfaces.
///
/// A forwarding host shows each packet once per interface. Each direction of a connection counts at
/// the interface that showed it first. Another interface replaces it with the first packet that
/// carries new information.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sighting {
    /// Number of the interface.
    pub interface: u32,
    /// True if the host sent the packet on this interface.
    pub sent: bool,
}

/// The state machine that turns packets into connections.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    connections: Vec<State>,
    by_key: HashMap<FlowKey, usize, HashKey>,
    /// Directions of preceding packets, by their ports.
    recent: Recent,
    now: Instant,
    other_packets: u64,
    packets_back_in_time: u64,
    packets_seen_before: u64,
    clock_steps: ClockSteps,
}

/// A direction of a connection: its key, the index of the connection and the side.
type Place = (FlowKey, usize, usize);

/// The last direction for each slot of its ports. Connections take turns packet by packet, and the keyed
/// hash of the table costs more than a comparison.
#[derive(Clone, Debug)]
struct Recent(Box<[Option<Place>; Self::SLOTS]>);

impl Default for Recent {
    fn default() -> Self {
        Self(Box::new([None; Self::SLOTS]))
    }
}

impl Recent {
    const SLOTS: usize = 256;

    /// Both directions of a connection have slots of their own, and so have consecutive ports of a client.
    fn slot(&mut self, key: &FlowKey) -> &mut Option<Place> {
        let (source, destination) = (key.addresses.source_port, key.addresses.destination_port);
        let pair = 2 * usize::from(source ^ destination) + usize::from(source < destination);
        &mut self.0[pair % Self::SLOTS]
    }
}

/// The options in a packet that opens the connection.
#[derive(Clone, Copy, Debug)]
struct Offer {
    at: Instant,
    flags: TcpFlags,
    options: SynOptions,
    timestamps: bool,
    /// True if the capture cut the options: those not seen are unknown.
    is_cut: bool,
}

impl Offer {
    fn new(at: Instant, packet: &Meta) -> Self {
        let options = packet.options();
        let timestamps = options.timestamps().is_some();
        let flags = packet.flags;
        Self { at, flags, options: options.syn_options(), timestamps, is_cut: options.is_cut() }
    }

    /// True if it may offer to scale windows.
    fn may_scale(&self) -> bool {
        self.options.window_scale.is_some() || self.is_cut
    }

    fn may_permit_sack(&self) -> bool {
        self.options.sack_permitted || self.is_cut
    }
}

#[derive(Clone, Debug)]
struct State {
    /// The lesser of the keys of the two directions.
    key: FlowKey,
    /// The direction of the key, and the reverse.
    halves: [Half; 2],
    /// The halves whose sender is far from the capture, as those saw them.
    remotes: [Option<Box<Remote>>; 2],
    /// The interface that counts for each half.
    sightings: [Option<Sighting>; 2],
    stamps: [Stamps; 2],
    /// Index of the opener's half.
    opener: Option<usize>,
    from: Instant,
    to: Instant,
    reset: bool,
    syn: Option<Offer>,
    syn_ack: Option<Offer>,
    first_syn: Option<Instant>,
    took: Option<Duration>,
    /// The time of the packet that completed the handshake.
    completed: Option<Instant>,
    /// The time in which each half's sender answered in the handshake.
    opened: [Option<Duration>; 2],
}

impl Analysis {
    /// An analysis without packets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet that passed the capture at `now`. Times may be equal. An earlier time is
    /// replaced by the preceding packet's, and counted.
    pub fn packet(&mut self, now: Instant, packet: &Parsed) {
        self.packet_at(now, Sighting::default(), packet);
    }

    /// Adds a packet of a capture of several interfaces. Times are handled as in
    /// [`Analysis::packet`].
    pub fn packet_at(&mut self, now: Instant, sighting: Sighting, packet: &Parsed) {
        self.place(now, sighting, packet);
    }

    /// Adds a packet as [`Analysis::packet_at`] does, and returns what the analysis makes of it;
    /// `None` for a packet that is no TCP segment, or that another interface has shown.
    #[inline]
    pub fn traced(&mut self, now: Instant, sighting: Sighting, packet: &Parsed) -> Option<Traced> {
        let (place, side) = self.place(now, sighting, packet)?;
        Some(self.connections[place].traced((self.now, place, side), &packet.meta))
    }

    /// Adds a packet, and returns the index of its connection and its side.
    fn place(&mut self, now: Instant, sighting: Sighting, packet: &Parsed) -> Option<(usize, usize)> {
        self.packets_back_in_time += u64::from(now < self.now);
        self.now = self.now.max(now);
        if packet.meta.protocol != Protocol::Tcp {
            self.other_packets += 1;
            return None;
        }
        let recent = self.recent.slot(&packet.key).as_ref().filter(|(key, ..)| *key == packet.key);
        let (place, side) = match recent {
            Some(&(_, place, side)) if !self.connections[place].is_reused(side, &packet.meta) => (place, side),
            _ => self.find(packet),
        };
        let connection = &mut self.connections[place];
        if connection.was_seen(side, sighting, &packet.meta) {
            self.packets_seen_before += 1;
            return None;
        }
        connection.packet(self.now, side, &packet.meta);
        if let Some(step) = connection.clock_step(self.now, side, &packet.meta) {
            self.clock_steps.note(step);
        }
        Some((place, side))
    }

    /// The connection and the side of a packet, by the table of all connections.
    fn find(&mut self, packet: &Parsed) -> (usize, usize) {
        let reversed = packet.key.reversed();
        let (key, side) = if packet.key <= reversed { (packet.key, 0) } else { (reversed, 1) };
        let place = match self.by_key.get(&key).copied() {
            Some(place) if !self.connections[place].is_reused(side, &packet.meta) => place,
            _ => {
                self.connections.push(State::new(key, self.now));
                let place = self.connections.len() - 1;
                self.by_key.insert(key, place);
                // The ports may be those of an earlier connection.
                *self.recent.slot(&packet.key.reversed()) = None;
                place
            }
        };
        *self.recent.slot(&packet.key) = Some((packet.key, place, side));
        (place, side)
    }

    /// Packets that were no readable TCP segment: other protocols, and fragments.
    #[must_use]
    pub const fn other_packets(&self) -> u64 {
        self.other_packets
    }

    /// Packets with an earlier time than the preceding packet.
    #[must_use]
    pub const fn packets_back_in_time(&self) -> u64 {
        self.packets_back_in_time
    }

    /// Packets omitted because another interface showed them.
    #[must_use]
    pub const fn packets_seen_before(&self) -> u64 {
        self.packets_seen_before
    }

    /// Steps forward of the capture's clock, where the timestamps of connections show them.
    #[must_use]
    pub fn clock_steps(&self) -> &[ClockStep] {
        self.clock_steps.all()
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
            remotes: [None, None],
            sightings: [None; 2],
            stamps: [Stamps::default(); 2],
            opener: None,
            from: now,
            to: now,
            reset: false,
            syn: None,
            syn_ack: None,
            first_syn: None,
            took: None,
            completed: None,
            opened: [None; 2],
        }
    }

    /// True for a SYN that opens another connection on the same ports, or the answer to it.
    fn is_reused(&self, side: usize, packet: &Meta) -> bool {
        let flags = packet.flags;
        if !flags.contains(TcpFlags::SYN) {
            return false;
        }
        let (own, other) = (&self.halves[side], &self.halves[1 - side]);
        if flags.contains(TcpFlags::ACK) {
            return own.is_left_by(packet) && !other.is_connecting();
        }
        let is_simultaneous = !own.has_begun() && other.is_connecting();
        own.initial() != Some(packet.seq) && !is_simultaneous
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
        self.reset |= packet.flags.contains(TcpFlags::RST) && !self.halves[side].resets_an_earlier(packet);
        if self.halves[1 - side].discards(packet) {
            self.halves[side].on_packet(now, packet, None);
            return;
        }
        self.handshake(now, side, packet);
        let opened = self.opened[side];
        let [forward, backward] = &mut self.halves;
        let (own, other) = if side == 0 { (forward, backward) } else { (backward, forward) };
        if let Some((value, echo)) = packet.options().timestamps() {
            // Every segment has these options (RFC 7323, appendix A).
            own.size.with_options(12);
            if packet.flags.contains(TcpFlags::ACK) {
                own.sender.answer = own.sender.turnaround.echoed(now, echo);
            }
            other.sender.turnaround.passed(value, Feedback::new(now, packet));
        }
        if packet.flags.contains(TcpFlags::SYN) {
            other.size.announce(packet.options().syn_options().mss);
        }
        self.remote(now, side, packet, opened);
        let [forward, backward] = &mut self.halves;
        let (own, other) = if side == 0 { (forward, backward) } else { (backward, forward) };
        other.on_ack(now, packet);
        // Who accepts a connection sends no data before the handshake is complete.
        let accepted = self.completed.filter(|_| self.opener == Some(1 - side) && packet.payload_len() > 0);
        let answer = faster(other.fastest_round_trip(), accepted.map(|at| now.since(at)));
        own.sender.plain_answer = faster(own.sender.plain_answer, answer);
        own.on_packet(now, packet, opened);
    }

    /// The step of the capture's clock that a packet with a timestamp shows.
    fn clock_step(&mut self, now: Instant, side: usize, packet: &Meta) -> Option<ClockStep> {
        let (value, _) = packet.options().timestamps()?;
        let [forward, backward] = &mut self.stamps;
        let (own, other) = if side == 0 { (forward, backward) } else { (backward, forward) };
        own.note(now, value);
        own.step(other)
    }

    /// Follows senders that are far from the capture.
    fn remote(&mut self, now: Instant, side: usize, packet: &Meta, opened: Option<Duration>) {
        if let Some(other) = &mut self.remotes[1 - side] {
            other.towards(now, packet);
        }
        let begins =
            self.remotes[side].is_none() && packet.payload_len() > 0 && packet.options().timestamps().is_some();
        if !begins && self.remotes[side].is_none() {
            return;
        }
        let distance = self.halves[side].to_distant_sender(opened);
        if begins && let Some(distance) = distance {
            self.remotes[side] = Some(Box::new(Remote::new(&self.halves[side], distance)));
        }
        if let Some(own) = &mut self.remotes[side]
            && !distance.is_some_and(|distance| own.sent(now, packet, distance))
        {
            self.remotes[side] = None;
        }
    }

    /// The last packet, of this side.
    #[inline]
    fn traced(&self, (at, connection, side): (Instant, usize, usize), packet: &Meta) -> Traced {
        let has_ack = packet.flags.contains(TcpFlags::ACK) && !packet.flags.contains(TcpFlags::RST);
        let seen = self.remotes[side].as_ref().and_then(|remote| remote.kind());
        Traced {
            at,
            connection,
            from_opener: self.opener_side() == side,
            flags: packet.flags,
            ecn: packet.ecn(),
            payload: packet.payload_len(),
            data: self.halves[side].traced_data(seen),
            ack: if has_ack { self.halves[1 - side].traced_ack(packet) } else { None },
        }
    }

    /// The side that opened the connection; without a SYN that of the larger port.
    fn opener_side(&self) -> usize {
        let addresses = &self.key.addresses;
        self.opener.unwrap_or(usize::from(addresses.source_port < addresses.destination_port))
    }

    /// Stores options and times of the packets that open the connection.
    fn handshake(&mut self, now: Instant, side: usize, packet: &Meta) {
        let flags = packet.flags;
        if self.took.is_some() && !flags.contains(TcpFlags::SYN) {
            return;
        }
        let offered = Offer::new(now, packet);
        match (flags.contains(TcpFlags::SYN), flags.contains(TcpFlags::ACK)) {
            (true, false) => {
                let is_openers = *self.opener.get_or_insert(side) == side;
                self.first_syn.get_or_insert(now);
                if is_openers && self.syn_ack.is_none() {
                    self.syn = Some(offered);
                }
            }
            // Where both sides open the connection, the opener is the first, and answers as well.
            (true, true) if self.opener != Some(side) => {
                self.opener.get_or_insert(1 - side);
                if let (Some(syn), None) = (self.syn, self.opened[side]) {
                    self.opened[side] = Some(now.since(syn.at));
                }
                if self.took.is_none() {
                    self.syn_ack = Some(offered);
                }
                self.agree();
            }
            (false, true) if self.took.is_none() && self.opener == Some(side) => {
                if let Some(answer) = self.syn_ack {
                    self.opened[side] = Some(now.since(answer.at));
                    self.completed = Some(now);
                    self.took = Some(now.since(self.first_syn.unwrap_or(answer.at)));
                }
            }
            _ => {}
        }
    }

    /// Applies the options on which SYN and SYN-ACK agree.
    fn agree(&mut self) {
        let (Some(syn), Some(answer), Some(opener)) = (self.syn, self.syn_ack, self.opener) else { return };
        // RFC 7323, section 2.2: windows are scaled if both sides offered it, each by its own
        // shift. A SYN-ACK offers it only in answer to an offer. Cut options leave a shift unknown.
        let [by_opener, by_answerer] = if !(syn.may_scale() && answer.may_scale()) {
            [Some(0); 2]
        } else if answer.options.window_scale.is_some() {
            [syn.options.window_scale, answer.options.window_scale]
        } else {
            [None; 2]
        };
        self.halves[opener].window.shift = by_answerer;
        self.halves[1 - opener].window.shift = by_opener;
        for half in &mut self.halves {
            half.sack.allowed = syn.may_permit_sack() && answer.may_permit_sack();
        }
    }

    fn finish(self) -> Connection {
        let Self { key, halves, remotes, from, .. } = self;
        let addresses = key.addresses;
        let by_port = usize::from(addresses.source_port < addresses.destination_port);
        let (opener, side) = self.opener.map_or((Opener::Guessed, by_port), |side| (Opener::Seen, side));
        let closed = halves.iter().all(Half::fin_seen);
        let has_closed = [0, 1].map(|side: usize| halves[side].fin_seen() && !self.reset);
        let [forward, backward] = &halves;
        let ways = [forward.to_receiver(backward), backward.to_receiver(forward)];
        let [forward, backward] = halves;
        let [near, far] = remotes.map(|remote| remote.map(|remote| remote.finish()));
        let forward = forward.finish(from, [ways[1], ways[0]], near, has_closed[1]);
        let backward = backward.finish(from, ways, far, has_closed[0]);
        let (up, down) = if side == 0 { (forward, backward) } else { (backward, forward) };
        Connection {
            addresses: if side == 0 { addresses } else { addresses.reversed() },
            opener,
            from,
            to: self.to,
            reset: self.reset,
            closed,
            handshake: Handshake {
                syn: self.syn.map(|offer| (offer.options, offer.timestamps)),
                syn_ack: self.syn_ack.map(|offer| (offer.options, offer.timestamps)),
                cut: [self.syn, self.syn_ack].map(|offer| offer.is_some_and(|offer| offer.is_cut)),
                ecn: self.syn.zip(self.syn_ack).map(|(syn, answer)| EcnFeedback::of(syn.flags, answer.flags)),
                took: self.took,
            },
            up,
            down,
        }
    }
}

//! Packets that reach a host, and the segments that TCP endpoints send.

use lastmile_packet::{Meta, Protocol};
use lastmile_units::Instant;

use super::state::Simulation;
use crate::engine::event::Event;
use crate::hosts::{Progress, Transfer};
use crate::network::Net;
use crate::network::flow::{Side, StateIndex};

impl Simulation<'_> {
    /// A packet has reached its host.
    // Inlined: all events but those of cells are in one function.
    #[inline(always)]
    pub(super) fn deliver(&mut self, packet: &Meta) {
        let now = self.now;
        match self.net.state_of(packet.flow) {
            // A signal to an ACK regenerator that none has taken: hosts do not know its protocol.
            StateIndex::Transfer(_) if packet.protocol == Protocol::AckSignal => {}
            StateIndex::Transfer(index) => {
                let side = Side::bound_for(packet.flow);
                let transfer = &mut self.hosts.transfers[index as usize];
                let progress = transfer.on_segment(now, side, packet);
                pump(&mut self.net, transfer, now, (index, side));
                if progress != Progress::Ongoing {
                    self.snapshot();
                }
            }
            StateIndex::Opened(index) => self.deliver_opened(index, packet),
            StateIndex::Datagrams(index) => self.hosts.datagrams[index as usize].arrived(now, packet),
            StateIndex::Dialogue(index) => {
                self.hosts.dialogues[index as usize].arrived(now, packet);
                self.schedule_dialogue(packet.flow.index() / 2, index);
            }
            StateIndex::Replay(index) => self.hosts.replays[index as usize].arrived(now, packet),
            StateIndex::Closed | StateIndex::Client(_) | StateIndex::Swarm(_) => {}
            StateIndex::Autorate(index) => match self.hosts.autorates[index as usize].arrived(now, packet) {
                Some(mut reply) => self.net.send(now, &mut reply),
                None => self.steer(index),
            },
            StateIndex::Ping(index) => {
                let ping = &mut self.hosts.pings[index as usize];
                match ping.answer(packet) {
                    Some(mut reply) => self.net.send(now, &mut reply),
                    None => ping.replied(now, packet),
                }
            }
        }
    }

    /// Gives the shapers of a controller its rates.
    // Not inlined: most packets are of transports.
    #[inline(never)]
    pub(super) fn steer(&mut self, index: u32) {
        for (link, rate) in self.hosts.autorates[index as usize].take_changes() {
            self.net.set_rate(self.now, link, rate);
        }
    }

    /// Sends the segments that an endpoint has ready, and schedules its timer.
    pub(super) fn pump(&mut self, index: u32, side: Side) {
        pump(&mut self.net, &mut self.hosts.transfers[index as usize], self.now, (index, side));
    }
}

/// Sends the segments that an endpoint of the transfer number `index` has ready, and schedules its timer.
// Inlined: an end that only receives has mostly nothing to send.
#[inline(always)]
pub(super) fn pump(net: &mut Net, transfer: &mut Transfer, now: Instant, (index, side): (u32, Side)) {
    let end = transfer.end(side);
    // By reference: each move of a segment is a copy.
    while let Some(segment) = &mut end.poll_transmit(now) {
        net.send(now, segment);
    }
    transfer.note_in_flight(side);
    let Some(at) = transfer.next_wake(now, side) else { return };
    if let Some(wake) = transfer.wake(side) {
        if net.pending.time(wake) <= at {
            // The pending event comes no later, and pumps again.
            return;
        }
        net.pending.cancel(wake);
    }
    transfer.set_wake(side, net.schedule(at, Event::Timer(index, side)));
}

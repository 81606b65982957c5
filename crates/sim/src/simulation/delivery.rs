//! Packets that reach a host, and the segments that TCP endpoints send.

use lastmile_packet::{Meta, Protocol};

use super::state::Simulation;
use crate::engine::event::Event;
use crate::hosts::Progress;
use crate::network::flow::{Side, StateIndex};

impl Simulation<'_> {
    /// A packet has reached its host.
    #[inline]
    pub(super) fn deliver(&mut self, packet: &Meta) {
        let now = self.now;
        match self.net.state_of(packet.flow) {
            // A signal to an ACK regenerator that none has taken: hosts do not know its protocol.
            StateIndex::Transfer(_) if packet.protocol == Protocol::AckSignal => {}
            StateIndex::Transfer(index) => {
                let side = Side::bound_for(packet.flow);
                let progress = self.hosts.transfers[index as usize].on_segment(now, side, packet);
                self.pump(index, side);
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
            StateIndex::Ping(index) => {
                let ping = &mut self.hosts.pings[index as usize];
                match ping.answer(packet) {
                    Some(reply) => self.net.send(now, &reply),
                    None => ping.replied(now, packet),
                }
            }
        }
    }

    /// Sends the segments that an endpoint has ready, and schedules its timer.
    #[inline]
    pub(super) fn pump(&mut self, index: u32, side: Side) {
        let now = self.now;
        let transfer = &mut self.hosts.transfers[index as usize];
        let end = transfer.end(side);
        while let Some(segment) = end.poll_transmit(now) {
            self.net.send(now, &segment);
        }
        transfer.note_in_flight(side);
        let Some(at) = transfer.next_wake(now, side) else { return };
        if let Some(wake) = transfer.wake(side) {
            if self.net.pending.time(wake) <= at {
                // The pending event comes no later, and pumps again.
                return;
            }
            self.net.pending.cancel(wake);
        }
        transfer.set_wake(side, self.net.schedule(at, Event::Timer(index, side)));
    }
}

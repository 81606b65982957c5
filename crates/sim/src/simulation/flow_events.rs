//! Events of applications: a flow starts or stops, and its source sends the next packet or writes the next data.

use super::state::Simulation;
use crate::engine::event::Event;
use crate::hosts::Due;
use crate::network::flow::{Side, StateIndex};

impl Simulation<'_> {
    pub(super) fn start(&mut self, flow: u32) {
        let now = self.now;
        match self.net.flows[flow as usize].state() {
            StateIndex::Transfer(index) => {
                let side = self.hosts.transfers[index as usize].begin(now);
                self.pump(index, side);
                self.schedule_write(flow, index);
            }
            StateIndex::Datagrams(index) => {
                let source = &mut self.hosts.datagrams[index as usize];
                let stop = self.network.traffic[source.traffic].stop;
                if let Some(first) = source.start(now, stop) {
                    self.net.schedule(first, Event::Source(flow));
                }
            }
            StateIndex::Ping(index) => {
                let ping = &mut self.hosts.pings[index as usize];
                let stop = self.network.traffic[ping.traffic].stop;
                if let Some(first) = ping.start(now, stop) {
                    self.net.schedule(first, Event::Source(flow));
                }
            }
            StateIndex::Replay(index) => {
                let replay = &mut self.hosts.replays[index as usize];
                let stop = self.network.traffic[replay.traffic as usize].stop;
                if let Some(first) = replay.start(now, stop) {
                    self.net.schedule(first, Event::Source(flow));
                }
            }
            StateIndex::Dialogue(index) => {
                let dialogue = &mut self.hosts.dialogues[index as usize];
                let stop = self.network.traffic[dialogue.traffic()].stop;
                dialogue.start(now, stop);
                self.schedule_dialogue(flow, index);
            }
            StateIndex::Client(_) | StateIndex::Swarm(_) | StateIndex::Autorate(_) => self.source(flow),
            StateIndex::Opened(_) | StateIndex::Closed => {}
        }
    }

    pub(super) fn stop(&mut self, flow: u32) {
        self.snapshot();
        match self.net.flows[flow as usize].state() {
            StateIndex::Transfer(index) => {
                self.hosts.transfers[index as usize].stop();
                self.pump(index, Side::Sender);
            }
            _ => self.stop_owner(flow),
        }
    }

    pub(super) fn source(&mut self, flow: u32) {
        let now = self.now;
        let (mut packet, next) = match self.net.flows[flow as usize].state() {
            StateIndex::Datagrams(index) => self.hosts.datagrams[index as usize].next(now),
            StateIndex::Ping(index) => self.hosts.pings[index as usize].next(now),
            StateIndex::Replay(index) => match self.hosts.replays[index as usize].next() {
                Some(next) => next,
                None => return,
            },
            StateIndex::Client(client) => {
                self.hosts.clients[client as usize].user.decide().wake(now);
                return self.browse(flow, client);
            }
            StateIndex::Dialogue(index) => {
                self.report_drops();
                let net = &mut self.net;
                self.hosts.dialogues[index as usize].wake(now, &mut |mut packet| net.send(now, &mut packet));
                return self.schedule_dialogue(flow, index);
            }
            StateIndex::Autorate(index) => return self.autorate(flow, index),
            StateIndex::Swarm(swarm) => return self.rechoke(flow, swarm),
            StateIndex::Transfer(index) => return self.write(flow, index),
            StateIndex::Opened(_) | StateIndex::Closed => return,
        };
        self.net.send(now, &mut packet);
        if let Some(next) = next {
            self.net.schedule(next, Event::Source(flow));
        }
    }

    /// A controller of shapers pings, or measures the load.
    fn autorate(&mut self, flow: u32, index: u32) {
        let (now, autorate) = (self.now, &mut self.hosts.autorates[index as usize]);
        let next = match autorate.due(flow) {
            Due::Turn(ping, next) => {
                ping.into_iter().for_each(|mut ping| self.net.send(now, &mut ping));
                next
            }
            Due::Load => {
                let sent = autorate.shapers.map(|link| self.net.links[link as usize].line.stats().wire_bytes);
                let next = autorate.measure(now, sent);
                self.steer(index);
                next
            }
        };
        self.net.schedule(next, Event::Source(flow));
    }

    /// Conferences and games learn which of their packets were dropped.
    pub(super) fn report_drops(&mut self) {
        for (flow, number) in std::mem::take(&mut self.net.losses.unreported) {
            if let StateIndex::Dialogue(index) = self.net.state_of(flow) {
                self.hosts.dialogues[index as usize].dropped(flow, number);
            }
        }
    }

    /// Schedules the next event of a conference or a game.
    pub(super) fn schedule_dialogue(&mut self, flow: u32, index: u32) {
        if let Some(at) = self.hosts.dialogues[index as usize].take_wake(self.now) {
            self.net.schedule(at, Event::Source(flow));
        }
    }

    /// The application of a transfer writes its next data.
    fn write(&mut self, flow: u32, index: u32) {
        let Some(size) = self.hosts.writer(index).map(|writer| writer.size()) else { return };
        self.hosts.transfers[index as usize].write(size);
        self.pump(index, Side::Sender);
        self.schedule_write(flow, index);
    }

    fn schedule_write(&mut self, flow: u32, index: u32) {
        let now = self.now;
        if let Some(next) = self.hosts.writer(index).and_then(|writer| writer.next(now)) {
            self.net.schedule(next, Event::Source(flow));
        }
    }
}

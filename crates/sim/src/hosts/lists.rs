//! The lists of everything on hosts, by kind.

use std::sync::Arc;

use lastmile_packet::{FlowId, SeqNumber};
use lastmile_queueing::random::Stream;

use super::{Autorate, Client, Datagrams, Dialogue, Ping, Replay, Swarm, Totals, Transfer, Writer};
use crate::network::flow::StateIndex;
use lastmile_model::{Source, Traffic};

/// The state of everything on hosts.
#[derive(Default)]
pub(crate) struct Hosts {
    pub(crate) transfers: Vec<Transfer>,
    /// In the order of their transfers.
    writers: Vec<Writer>,
    pub(crate) datagrams: Vec<Datagrams>,
    pub(crate) pings: Vec<Ping>,
    pub(crate) clients: Vec<Client>,
    pub(crate) dialogues: Vec<Dialogue>,
    pub(crate) swarms: Vec<Swarm>,
    pub(crate) replays: Vec<Replay>,
    pub(crate) autorates: Vec<Autorate>,
}

/// A flow to add: its traffic with its index, and its numbers there and back.
pub(crate) struct NewFlow<'a> {
    pub(crate) traffic: &'a Traffic,
    pub(crate) index: u32,
    pub(crate) ids: [FlowId; 2],
}

/// The index of the latest element of a list.
fn latest<T>(list: &[T]) -> u32 {
    u32::try_from(list.len() - 1).expect("Network::check limits the number of flows")
}

impl Hosts {
    /// Adds a replay whose first flow has the number `first`.
    pub(crate) fn add_replay(&mut self, capture: &Arc<lastmile_model::Replay>, traffic: u32, first: u32) -> StateIndex {
        self.replays.push(Replay::new(capture, traffic, first));
        StateIndex::Replay(latest(&self.replays))
    }

    /// Adds the state of a flow that is no replay. TCP draws its initial sequence numbers, and QUIC its
    /// seeds, from `initial_numbers`.
    pub(crate) fn add(
        &mut self,
        NewFlow { traffic, index, ids }: NewFlow<'_>,
        random: impl FnOnce() -> Stream,
        initial_numbers: &mut Stream,
    ) -> StateIndex {
        let Traffic { source, ip, stop, .. } = traffic;
        match source {
            Source::Bulk { .. } | Source::Quic { .. } | Source::Writes { .. } => {
                let iss = [(); 2].map(|()| SeqNumber::new(initial_numbers.bits() as u32));
                self.transfers.push(Transfer::new(source, ids, iss, *ip).expect("all three are transfers"));
                let transfer = latest(&self.transfers);
                if matches!(source, Source::Writes { .. }) {
                    self.writers.extend(Writer::new(source, transfer, *stop, random()));
                }
                StateIndex::Transfer(transfer)
            }
            Source::Ping { interval, size, echo } => {
                self.pings.push(Ping::new(ids, index as usize, *ip, (*interval, *size, *echo)));
                StateIndex::Ping(latest(&self.pings))
            }
            Source::Web(_) | Source::Video(_) | Source::Backup(_) => {
                let client = Client::new(index, source, random());
                self.clients.push(client.expect("the three kinds request data"));
                StateIndex::Client(latest(&self.clients))
            }
            Source::Conference(_) | Source::Game(_) => {
                let dialogue = Dialogue::new(traffic, index as usize, ids, random());
                self.dialogues.push(dialogue.expect("both kinds are dialogues"));
                StateIndex::Dialogue(latest(&self.dialogues))
            }
            Source::Swarm(spec) => {
                self.swarms.push(Swarm::new(spec, random()));
                StateIndex::Swarm(latest(&self.swarms))
            }
            Source::Replay(_) => unreachable!("add_replay adds replays"),
            Source::Constant { .. } | Source::Poisson { .. } | Source::OnOff { .. } => {
                let source = Datagrams::new(source, ids[0], index as usize, *ip, random());
                self.datagrams.push(source.expect("the three kinds are datagram sources"));
                StateIndex::Datagrams(latest(&self.datagrams))
            }
        }
    }

    /// Payload bytes that a flow has delivered to its receiving application.
    pub(crate) fn bytes_delivered(&self, state: StateIndex) -> u64 {
        match state {
            StateIndex::Transfer(index) => self.transfers[index as usize].bytes_delivered(),
            StateIndex::Datagrams(index) => self.datagrams[index as usize].counts.bytes_delivered,
            StateIndex::Client(index) => self.clients[index as usize].totals.bytes,
            StateIndex::Swarm(index) => self.swarms[index as usize].totals.bytes,
            StateIndex::Dialogue(index) => self.dialogues[index as usize].counts().bytes_delivered,
            StateIndex::Replay(index) => self.replays[index as usize].counts.bytes_delivered,
            StateIndex::Ping(_) | StateIndex::Autorate(_) | StateIndex::Opened(_) | StateIndex::Closed => 0,
        }
    }

    /// The totals of an application or swarm, without the packet counts of open connections.
    pub(crate) fn totals(&mut self, state: StateIndex) -> Option<&mut Totals> {
        match state {
            StateIndex::Client(index) => Some(&mut self.clients[index as usize].totals),
            StateIndex::Swarm(index) => Some(&mut self.swarms[index as usize].totals),
            _ => None,
        }
    }

    /// The totals of an application or swarm, without the packet counts of open connections.
    pub(crate) fn totals_of(&self, state: StateIndex) -> Option<&Totals> {
        match state {
            StateIndex::Client(index) => Some(&self.clients[index as usize].totals),
            StateIndex::Swarm(index) => Some(&self.swarms[index as usize].totals),
            _ => None,
        }
    }

    /// The totals of an application or swarm, and a transfer.
    pub(crate) fn totals_and_transfer(&mut self, state: StateIndex, transfer: u32) -> Option<(&mut Totals, &Transfer)> {
        let transfer = &self.transfers[transfer as usize];
        match state {
            StateIndex::Client(index) => Some((&mut self.clients[index as usize].totals, transfer)),
            StateIndex::Swarm(index) => Some((&mut self.swarms[index as usize].totals, transfer)),
            _ => None,
        }
    }

    /// The writer of a transfer, if it has one.
    pub(crate) fn writer(&mut self, transfer: u32) -> Option<&mut Writer> {
        let index = self.writers.binary_search_by_key(&transfer, |writer| writer.transfer).ok()?;
        Some(&mut self.writers[index])
    }
}

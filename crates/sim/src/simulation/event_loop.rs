//! The loop over events: here each event fires.

use lastmile_packet::Meta;
use lastmile_units::Instant;

use super::delivery::pump;
use super::state::Simulation;
use crate::engine::event::Event;
use crate::hosts::Progress;
use crate::record::outcome::{outcome, snapshot};
use lastmile_model::outcome::Outcome;
use lastmile_model::{BuildError, Network};

/// The result of [`Simulation::advance_by`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Advance {
    /// All events up to the given time are handled.
    Reached,
    /// The granted work is done, and more may be due.
    Paused,
}

impl Simulation<'_> {
    /// Handles every event up to and including `until`, but not past the end of the run.
    pub fn advance_to(&mut self, until: Instant) {
        while self.advance_by(until, u64::MAX) == Advance::Paused {}
    }

    /// Handles the events up to and including `until`, and pauses after about `work` events and sent packets.
    /// Pauses do not change the outcome. The work may exceed `work` by one event with all the packets that it
    /// sends.
    pub fn advance_by(&mut self, until: Instant, work: u64) -> Advance {
        let until = until.min(Instant::ZERO + self.network.duration);
        let pause = self.work().saturating_add(work);
        while self.work() < pause {
            let Some((at, token)) = self.net.pending.pop(until) else {
                self.now = self.now.max(until);
                self.net.catch_up(self.now);
                return Advance::Reached;
            };
            self.now = at;
            self.events += 1;
            self.handle(token.event());
        }
        Advance::Paused
    }

    /// Events and sent packets so far: one event may send a window of packets.
    #[inline]
    fn work(&self) -> u64 {
        self.events + self.net.sent.packets
    }

    /// Runs to the end and returns the outcome.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let end = Instant::ZERO + self.network.duration;
        self.advance_to(end);
        self.take_snapshot();
        self.net.advance_cells_before(end);
        self.add_open_connections();
        self.report_drops();
        outcome(self)
    }

    // Inlined: all events but those of cells are in one function.
    #[inline(always)]
    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Transmit(link) => self.net.transmit(now, link),
            Event::Arrive(link) => {
                // By reference: each move of a packet is a copy.
                if let Some(packet) = &self.net.take_arrival(now, link)
                    && self.net.arrived(now, link, packet)
                {
                    self.deliver(packet);
                }
            }
            Event::Timer(transfer, side) => {
                let of = &mut self.hosts.transfers[transfer as usize];
                let before = of.bytes_delivered();
                let progress = of.on_wake(now, side);
                let delivered = of.bytes_delivered() - before;
                pump(&mut self.net, of, now, (transfer, side));
                if of.owner().is_some() {
                    self.report(transfer, delivered, progress);
                } else if progress != Progress::Ongoing {
                    self.snapshot();
                }
            }
            Event::Start(flow) => self.start(flow),
            Event::Stop(flow) => self.stop(flow),
            Event::Source(flow) => self.source(flow),
            Event::Cells => self.cells(),
            Event::Sample => self.sample(),
            Event::Mark => self.snapshot(),
        }
    }

    #[inline(never)]
    fn deliver_from_cells(&mut self, packet: &Meta) {
        self.deliver(packet);
    }

    /// Packets depart from the links of cells.
    #[inline(never)]
    fn cells(&mut self) {
        let departures = self.net.advance_cells(self.now);
        for departure in &departures {
            if let Some(packet) = self.net.depart(departure) {
                self.deliver_from_cells(&packet);
            }
        }
        self.net.put_back(departures);
        while let Some(released) = self.net.release_ack(self.now) {
            if let Some(packet) = released {
                self.deliver_from_cells(&packet);
            }
        }
        self.net.arm_cells();
    }

    fn sample(&mut self) {
        let Some(mut sampler) = self.sampler.take() else { return };
        self.net.catch_up(self.now);
        let next = sampler.sample(self.now, &mut self.net, &self.hosts);
        self.sampler = Some(sampler);
        self.net.schedule(next, Event::Sample);
    }

    /// Records a snapshot before the end. That of the end is taken after all events of its time.
    pub(super) fn snapshot(&mut self) {
        if self.now < Instant::ZERO + self.network.duration {
            self.take_snapshot();
        }
    }

    /// Records a snapshot, at most one for each point in time, if there are at most `flow_limit` flows.
    fn take_snapshot(&mut self) {
        if self.net.declared > self.network.record.flow_limit {
            return;
        }
        if self.snapshots.last().is_some_and(|latest| latest.at == self.now) {
            return;
        }
        self.net.catch_up(self.now);
        let latest = snapshot(self);
        self.snapshots.push(latest);
    }
}

/// Runs `network` from its beginning to its end.
///
/// # Errors
/// As [`Simulation::new`].
pub fn run(network: &Network) -> Result<Outcome, BuildError> {
    Ok(Simulation::new(network, None)?.finish())
}

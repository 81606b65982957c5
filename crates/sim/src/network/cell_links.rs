//! The network's part in links of cells: packets enter them, leave them, and are lost in them.

use lastmile_atm::{Departure, Fate};
use lastmile_packet::Meta;
use lastmile_queueing::DropReason;
use lastmile_units::Instant;

use super::Net;
use super::route::LinkIndex;
use crate::atm::Departed;
use crate::engine::event::Event;
use lastmile_model::Passage;
use lastmile_model::outcome::LossCause;

impl Net {
    /// Makes a frame of a packet that enters a link of cells.
    pub(super) fn offer(&mut self, now: Instant, index: LinkIndex, mut packet: Meta) {
        let traffic = self.entry(packet.flow).traffic;
        let cells = self.cells.as_mut().expect("there are links of cells");
        let refused = cells.offer(now, (index, traffic), &mut packet);
        if let Some(reason) = refused {
            let cause = match reason {
                DropReason::Policed => LossCause::Edge,
                DropReason::TooLarge => LossCause::TooLarge,
                reason => LossCause::Packet(reason),
            };
            self.losses.add(index, &packet, cause);
        }
        if let Some(capture) = &mut self.capture {
            let passage = refused.map_or(Passage::Transmitted, Passage::Dropped);
            capture.packet(now, index as usize, passage, &packet);
        }
        if refused.is_none() {
            self.arm_cells();
        }
    }

    /// The event of the cells: they advance to `now`. Returns their departures; give the list back by
    /// [`Net::put_back`].
    pub(crate) fn advance_cells(&mut self, now: Instant) -> Vec<Departure> {
        let Some(cells) = &mut self.cells else { return Vec::new() };
        cells.wake = None;
        cells.advance(now);
        std::mem::take(&mut cells.departures)
    }

    /// Takes a departed packet from the cells. Forwards it, or returns it at its destination.
    pub(crate) fn depart(&mut self, departure: &Departure) -> Option<Meta> {
        let cells = self.cells.as_mut()?;
        match cells.departed(departure) {
            Departed::Whole(link, packet) => {
                let traffic = self.flows[packet.flow.index() as usize / 2].traffic;
                if cells.hold(departure, (traffic, link), &packet) {
                    return None;
                }
                self.arrived(departure.at, link, &packet).then_some(packet)
            }
            Departed::Lost(link, packet, reason) => {
                let cause = match departure.fate {
                    Fate::Dropped(drop) => LossCause::Cell(drop),
                    Fate::Joined => LossCause::Joined,
                    Fate::Lost | Fate::Whole => LossCause::CellOnWire,
                };
                self.losses.add(link, &packet, cause);
                if let Some(capture) = &mut self.capture {
                    capture.packet(departure.at, link as usize, Passage::Dropped(reason), &packet);
                }
                None
            }
        }
    }

    /// Releases the next ACK that an edge device has held until `now` or before: forwards it, or returns it at its
    /// destination. The outer `None`: no ACK is due.
    pub(crate) fn release_ack(&mut self, now: Instant) -> Option<Option<Meta>> {
        let (link, packet) = self.cells.as_mut()?.release(now)?;
        Some(self.arrived(now, link, &packet).then_some(packet))
    }

    /// Advances the cells to the picosecond before `now`, so that their state can be read.
    pub(crate) fn advance_cells_before(&mut self, now: Instant) {
        let Some(cells) = &mut self.cells else { return };
        cells.advance_before(now);
        let departures = std::mem::take(&mut cells.departures);
        for departure in &departures {
            let lost = self.depart(departure);
            debug_assert!(lost.is_none(), "a packet that arrives has an event of its own");
        }
        self.put_back(departures);
    }

    /// Gives back a list of departures, for its capacity.
    pub(crate) fn put_back(&mut self, mut departures: Vec<Departure>) {
        departures.clear();
        if let Some(cells) = &mut self.cells {
            cells.departures = departures;
        }
    }

    /// Schedules the next time at which a packet may leave the cells.
    pub(crate) fn arm_cells(&mut self) {
        let Some(cells) = &mut self.cells else { return };
        if let Some(due) = cells.next()
            && cells.wake.is_none_or(|wake| due < self.pending.time(wake))
        {
            cells.wake.into_iter().for_each(|wake| self.pending.cancel(wake));
            cells.wake = Some(self.pending.push(due, Event::Cells.into()));
        }
    }
}

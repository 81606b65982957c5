//! The time at which the last cell of a frame departs from its source.
//!
//! The cell transfer delay of ITU-T I.356 needs it: the delay runs from the start of a cell's transmission at
//! the source to the end of its reception at the far end of the virtual channel.
//!
//! The time is known for sources that send frames back to back, in order of arrival: their first link carries
//! only virtual channels that begin there, in one queue without limit and without a policer. They send at the
//! link's cell rate, or at the peak cell rate of the one channel that is shaped to it. Other sources (several
//! shaped channels, available bit rate, classes) have no transfer delay in the results.
//!
//! Cost: O(1) a frame.

use lastmile_atm::network::Upc;
use lastmile_atm::{NetworkSpec, Queues};
use lastmile_linklayer::aal5::CELL_BYTES;
use lastmile_units::{BitRate, Instant, WireBytes};

/// The sources of all virtual channels.
#[derive(Debug)]
pub(super) struct CellSources {
    /// By VC: the index of its source, if its departures are known.
    of_vc: Vec<Option<usize>>,
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    rate: BitRate,
    /// The end of the transmission of the latest frame.
    free: Instant,
}

impl CellSources {
    pub(super) fn new(spec: &NetworkSpec) -> Self {
        let mut of_vc = vec![None; spec.vcs.len()];
        let mut sources = Vec::new();
        for id in spec.link_ids() {
            let link = &spec.links[id.index()];
            let crossing: Vec<usize> = (0..spec.vcs.len()).filter(|vc| spec.vcs[*vc].route.contains(&id)).collect();
            let begin_here = |vc: &usize| spec.vcs[*vc].route.first() == Some(&id) && spec.vcs[*vc].abr.is_none();
            let policed = |upc: &Option<Upc>| upc.is_some_and(|upc| upc.at == id);
            let free = !spec.vcs.iter().any(|vc| policed(&vc.upc)) && !spec.vps.iter().any(|vp| policed(&vp.upc));
            let unlimited = matches!(&link.queues, Queues::Fifo(queue) if queue.limit.is_none());
            let own_memory = spec.nodes[link.from.index()].shared_memory.is_none();
            let shaped: Vec<BitRate> = crossing.iter().filter_map(|vc| spec.vcs[*vc].pcr).collect();
            let simple = shaped.is_empty() || crossing.len() == 1;
            if crossing.is_empty() || !crossing.iter().all(begin_here) || !free || !unlimited || !own_memory || !simple
            {
                continue;
            }
            let rate = shaped.into_iter().chain([link.pace.unwrap_or(link.rate)]).min().expect("there is one");
            crossing.iter().for_each(|vc| of_vc[*vc] = Some(sources.len()));
            sources.push(Source { rate, free: Instant::ZERO });
        }
        Self { of_vc, sources }
    }

    /// A frame of `cells` cells arrives at its VC. Returns the start of the transmission of its last cell.
    pub(super) fn offer(&mut self, now: Instant, vc: usize, cells: u64) -> Option<Instant> {
        let source = &mut self.sources[self.of_vc[vc]?];
        let begins = source.free.max(now);
        let time = |cells: u64| source.rate.time_for(WireBytes::new(cells * CELL_BYTES));
        let last = begins + time(cells.saturating_sub(1));
        source.free = begins + time(cells);
        Some(last)
    }
}

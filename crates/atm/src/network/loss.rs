//! Cells that a link loses, at random and independent of each other.
//!
//! Every VC has a generator of its own at every link that loses cells, which draws how many of its
//! cells pass until the next is lost. The cells of a VC keep their order, so neither runs nor other
//! VCs change which cells are lost; a run is split at them. A cell is lost at the end of its link:
//! before it is policed at the next switch, or at the far end.
//! Cost: nothing for links without loss; otherwise a comparison for each run and a logarithm for
//! each lost cell.

use lastmile_queueing::random::Stream;

use super::in_flight::InFlight;
use super::spec::{LinkSpec, NetworkSpec, VcSpec};
use crate::cell::{CellCounts, Payload, Run};

/// The losses of a VC on a link.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    random: Stream,
    loss_ppb: u32,
    /// Cells that pass before the next is lost.
    gap: u64,
    /// Cells lost.
    pub(crate) lost: CellCounts,
}

impl Loss {
    /// The losses of `vc` on `link` in the run with this seed. `None`: the link loses no cells.
    pub(crate) fn new(spec: &NetworkSpec, seed: u64, link: &LinkSpec, vc: &VcSpec) -> Option<Self> {
        let [from, to] = [link.from, link.to].map(|node| &spec.nodes[node.index()].name);
        let mut random = Stream::new(seed, &format!("cells of {} lost from {from} to {to}", vc.name));
        let gap = random.geometric(link.loss_ppb)?;
        Some(Self { random, loss_ppb: link.loss_ppb, gap, lost: CellCounts::default() })
    }

    #[cold]
    fn lose(&mut self, cell: &Run, in_flight: &mut InFlight) {
        self.lost.add(cell);
        self.gap = self.random.geometric(self.loss_ppb).expect("a link that loses cells");
        match cell.header.payload {
            Payload::Frame(frame) => in_flight.frames.lose_cell(frame, cell.at.instant()),
            Payload::Rm(rm) => {
                in_flight.rm_cells.remove(rm);
            }
        }
    }
}

/// The first cells of a run come off a link: those that pass (`None`: one cell is lost), and the
/// others.
#[inline]
pub(crate) fn cross(loss: &mut Option<Loss>, run: Run, in_flight: &mut InFlight) -> (Option<Run>, Option<Run>) {
    let Some(loss) = loss else { return (Some(run), None) };
    if loss.gap == 0 {
        let (cell, rest) = run.split(1);
        loss.lose(&cell, in_flight);
        return (None, rest);
    }
    let (passing, rest) = run.split(loss.gap.min(run.cells.into()) as u16);
    loss.gap -= u64::from(passing.cells);
    (Some(passing), rest)
}

#[cfg(test)]
mod tests {
    use lastmile_units::{BitRate, ByteCount, Duration, Instant};

    use super::*;
    use crate::cell::{Clp, Header};
    use crate::network::Network;
    use crate::time::{Moment, Spacing};

    /// The cells that pass are all cells but those drawn, and the last cell ends the frame if it
    /// passes.
    #[test]
    fn a_run_is_split_at_the_cells_that_are_lost() {
        let mut spec = NetworkSpec::new();
        let (from, to) = (spec.node("from"), spec.node("to"));
        let link = LinkSpec::new(from, to, BitRate::from_mbit_per_s(10), Duration::ZERO);
        let link = spec.link(LinkSpec { loss_ppb: 300_000_000, ..link });
        let vc = spec.vc(VcSpec::new("vc", 32, vec![link]));
        let mut ends = [0; 2];
        for seed in 0..20 {
            let mut network = Network::seeded(&spec, seed).expect("a network");
            // The frame to which the cells belong.
            network.offer(Instant::ZERO, vc, ByteCount::new(12 * 48 - 16), 0).expect("a packet");
            let mut loss = Loss::new(&spec, seed, &spec.links[0], &spec.vcs[0]);
            let Loss { random: mut draws, mut gap, .. } = loss.clone().expect("it loses cells");
            let mut expected = Vec::new();
            for cell in 0..12 {
                if gap == 0 {
                    gap = draws.geometric(300_000_000).expect("a gap");
                } else {
                    gap -= 1;
                    expected.push((100 + 10 * cell, cell == 11));
                }
            }
            let header = Header { payload: Payload::Frame(0), clp: Clp::Zero, efci: false, last: true };
            let (at, spacing) = (Moment::at(Instant::from_ps(100)), Spacing::of(Duration::from_ps(10)));
            let (mut passed, mut rest) = (Vec::new(), Some(Run { at, spacing, header, vc: 0, cells: 12 }));
            while let Some(run) = rest {
                let (piece, others) = cross(&mut loss, run, &mut network.in_flight);
                let cell = |run: Run, n: u16| {
                    (run.at.plus(spacing.times(n.into())).ps(), run.header.last && n + 1 == run.cells)
                };
                passed.extend(piece.into_iter().flat_map(|run| (0..run.cells).map(move |n| cell(run, n))));
                rest = others;
            }
            assert_eq!(passed, expected, "seed {seed}");
            let loss = loss.expect("it loses cells");
            assert_eq!((loss.lost.all, loss.lost.low_priority, loss.gap), (12 - expected.len() as u64, 0, gap));
            ends[usize::from(expected.last().is_some_and(|(_, ends)| *ends))] += 1;
        }
        assert!(ends.iter().all(|count| *count > 0), "the last cell is lost in some cases, not in all: {ends:?}");
    }
}

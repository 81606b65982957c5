//! Cells that a link loses on the wire, at random and each alone.
//!
//! Every VC has a generator of its own at every link that loses cells. It says how many of its cells pass until the next is lost. Since the cells of
//! a VC keep their order, neither trains nor other VCs change which those are; a run is split at them.
//! Loss is told where cells come off the link: at the entry of the next stage, before anything else, or at the far end. Nothing goes past a port at
//! either end of such a link ([`super::passage`]).
//! Cost: nothing where no link loses cells; else a comparison a run and a logarithm a lost cell.

use lastmile_queueing::random::Stream;

use super::fabric::Fabric;
use super::run::Run;
use super::spec::{LinkSpec, NetworkSpec, VcSpec};
use crate::time::Spacing;

/// A link as a VC finds it.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    random: Stream,
    loss_ppb: u32,
    /// Cells that pass before the next is lost.
    gap: u64,
    /// Cells lost.
    pub(super) lost: u64,
    /// Those of them with CLP = 1.
    pub(super) lost_low: u64,
}

impl Wire {
    /// A link as `vc` finds it in the run with this seed. `None`: it loses nothing.
    pub(super) fn new(spec: &NetworkSpec, seed: u64, link: &LinkSpec, vc: &VcSpec) -> Option<Self> {
        let [from, to] = [link.from, link.to].map(|node| &spec.nodes[node.index()].name);
        let mut random = Stream::new(seed, &format!("cells of {} lost from {from} to {to}", vc.name));
        let gap = random.geometric(link.loss_ppb)?;
        Some(Self { random, loss_ppb: link.loss_ppb, gap, lost: 0, lost_low: 0 })
    }

    /// How many of the next cells meet the same fate, at most `cells`, and whether that is to pass; or one is lost.
    #[inline]
    pub(super) fn next(&self, cells: u16) -> (u16, bool) {
        if self.gap == 0 { (1, false) } else { (self.gap.min(cells.into()) as u16, true) }
    }

    /// So many cells have passed, no more than may.
    #[inline]
    pub(super) fn pass(&mut self, cells: u16) {
        self.gap -= u64::from(cells);
    }

    /// The next cell is lost, in picosecond `ps`.
    #[cold]
    pub(super) fn lose(&mut self, cell: &Run, ps: u64, fabric: &mut Fabric) {
        self.lost += 1;
        self.lost_low += u64::from(cell.low());
        self.gap = self.random.geometric(self.loss_ppb).expect("a link that loses cells");
        if cell.rm() {
            fabric.rms.remove(cell.frame);
        } else {
            fabric.frames.lose_cell(cell.frame, ps);
        }
    }

    /// What comes of a run that comes off the link goes `into`.
    pub(super) fn cross(&mut self, mut run: Run, spacing: Spacing, into: &mut Vec<Run>, fabric: &mut Fabric) {
        loop {
            let (cells, passes) = self.next(run.cells());
            let done = cells == run.cells();
            let piece = run.split(cells, spacing);
            if passes {
                self.pass(cells);
                into.push(piece);
            } else {
                self.lose(&piece, piece.ps(), fabric);
            }
            if done {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::{BitRate, ByteCount, Duration, Instant};

    use super::*;
    use crate::network::Network;
    use crate::network::run::END;
    use crate::time::Moment;

    /// What is left of a run, cell by cell, is all of it but the cells that are drawn; and the last cell ends the frame if it is left.
    #[test]
    fn a_run_is_split_at_the_cells_that_are_lost() {
        let mut spec = NetworkSpec::new();
        let (from, to) = (spec.node("from"), spec.node("to"));
        let link = LinkSpec::new(from, to, BitRate::from_mbit_per_s(10), Duration::ZERO);
        let link = spec.link(LinkSpec { loss_ppb: 300_000_000, ..link });
        let vc = spec.vc(VcSpec::new("vc", 32, vec![link]));
        let spacing = Spacing::of(Duration::from_ps(10));
        let mut ends = [0; 2];
        for seed in 0..20 {
            let mut network = Network::seeded(&spec, seed).expect("a network");
            // The frame of which the cells are.
            network.offer(Instant::ZERO, vc, ByteCount::new(12 * 48 - 16), 0).expect("a packet");
            let mut wire = Wire::new(&spec, seed, &spec.links[0], &spec.vcs[0]).expect("it loses cells");
            let (mut draws, mut gap) = (wire.random.clone(), wire.gap);
            let mut expected = Vec::new();
            for cell in 0..12 {
                if gap == 0 {
                    gap = draws.geometric(300_000_000).expect("a gap");
                } else {
                    gap -= 1;
                    expected.push((100 + 10 * cell, cell == 11));
                }
            }
            let mut left = Vec::new();
            let run = Run::new(Moment::at(Instant::from_ps(100)), 0, 0, 12, 2, END);
            wire.cross(run, spacing, &mut left, &mut network.fabric);
            let cells = left.iter().flat_map(|run| {
                let cell = |index: u16| {
                    let at = run.at().plus(spacing.times(index.into()));
                    (at.ps(), run.ends() && index + 1 == run.cells())
                };
                (0..run.cells()).map(cell)
            });
            assert_eq!(cells.collect::<Vec<_>>(), expected, "seed {seed}");
            assert_eq!((wire.lost, wire.lost_low, wire.gap), (12 - expected.len() as u64, 0, gap));
            ends[usize::from(expected.last().is_some_and(|(_, ends)| *ends))] += 1;
        }
        assert!(
            ends.iter().all(|count| *count > 0),
            "the last cell is lost in some cases and left in others: {ends:?}"
        );
    }
}

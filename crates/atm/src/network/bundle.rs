//! Trains that come side by side: of one spacing, their cells in turn.
//!
//! Cells of sources that are shaped alike alternate as long as no train among them ends and no other begins: first, second, ... last, and one spacing
//! later the same again. So many rounds are merged without a look at the order, and a FIFO that is busy (or idle) all the while handles them in
//! closed form: of k trains each leaves as a train again, its cells k intervals apart. At a scheduler whose queues hold more than may leave meanwhile,
//! they join their queues together.
//! The last cell of each train is left to be merged alone.
//! Cost: a look at each train, whatever the rounds; where a port must see the cells, an addition a cell.

use super::fabric::Fabric;
use super::heads::Heads;
use super::run::Run;
use crate::discard::{FrameState, Rules};
use crate::policer::SeenRun;
use crate::time::{Moment, Spacing};

/// Trains at once; more are merged cell by cell.
const MOST: usize = 16;
/// Cells that are handed on one by one at once, or some fewer.
const CELLS: usize = 512;

/// Trains side by side.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    /// In the order in which their cells come, each from its next cell on, as policers leave them.
    pub(super) trains: Vec<Run>,
    /// The same as they came.
    pub(super) came: Vec<Run>,
    /// Their inputs.
    inputs: Vec<u32>,
    pub(super) spacing: Spacing,
    /// How often all of them have a cell before anything else comes; less than each has cells.
    pub(super) rounds: u16,
}

/// What a port did with a bundle, or may do with one of its trains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Bundled {
    /// All that comes of it.
    Done,
    /// Nothing: it must see the cells of the next round one by one.
    Round,
    /// Nothing: it must see all cells one by one.
    Cells,
}

impl Bundled {
    /// With a train of a VC in this state: nothing is asked of its cells but whether there is room; or of those behind the next; or each may be dropped, or find that
    /// SPD may take a frame again.
    pub(super) fn of(rules: &Rules, state: &FrameState) -> Self {
        if rules.goes_on(state) {
            Self::Done
        } else if state.receiving {
            Self::Cells
        } else {
            Self::Round
        }
    }
}

impl Bundle {
    /// Looks whether what comes next are trains side by side, for two rounds at least by picosecond `until`.
    pub(super) fn find(&mut self, heads: &Heads, inputs: &[u32], until: u64, fabric: &Fabric) -> bool {
        self.trains.clear();
        self.inputs.clear();
        let front =
            |input: u32| *fabric.streams[inputs[input as usize] as usize].front().expect("it is among the heads");
        let Some(head) = heads.first() else { return false };
        let first = front(head.input);
        if first.cells() < 3 || heads.second().is_none() {
            return false;
        }
        self.spacing = fabric.spacings[first.class() as usize];
        let mut bound = until;
        let mut last = first.at();
        // So much apart in exact time, two stay apart in whole picoseconds, in every round.
        let round_ends = first.at().plus(self.spacing).minus(Spacing::PICOSECOND);
        self.trains.push(first);
        self.inputs.push(head.input);
        for place in 1.. {
            let Some(head) = heads.get(place) else { break };
            let run = front(head.input);
            let alike = run.class() == first.class() && run.cells() > 2 && self.trains.len() < MOST;
            if !alike || run.at() < last.plus(Spacing::PICOSECOND) || run.at() > round_ends {
                bound = bound.min(head.ps.saturating_sub(1));
                break;
            }
            last = run.at();
            self.trains.push(run);
            self.inputs.push(head.input);
        }
        if self.trains.len() < 2 || last.ps() > bound {
            return false;
        }
        self.came.clone_from(&self.trains);
        let by_time = Moment::from_parts(bound, u32::MAX).since(last).divided_by(self.spacing) + 1;
        let by_cells = self.trains.iter().map(|train| train.cells() - 1).min().unwrap_or(0);
        self.rounds = by_time.min(by_cells.into()).min((CELLS / self.trains.len()) as u64) as u16;
        self.rounds > 1
    }

    /// What a policer sees of a train in all rounds.
    pub(super) fn seen(&self, train: usize) -> SeenRun {
        let came = &self.came[train];
        let (spacing, cells, low_priority) = (self.spacing, self.rounds, came.low());
        SeenRun { at: came.at(), spacing, cells, low_priority, ends: false }
    }

    /// When the first cell of a train comes in a round.
    pub(super) fn at(&self, train: usize, round: u16) -> Moment {
        self.trains[train].at().plus(self.spacing.times(round.into()))
    }

    /// How many cells of all trains come in all rounds.
    pub(super) fn count(&self) -> u32 {
        self.trains.len() as u32 * u32::from(self.rounds)
    }

    /// When the last cell of the last round comes.
    pub(super) fn last_at(&self) -> Moment {
        self.at(self.trains.len() - 1, self.rounds - 1)
    }

    /// The cells of the first rounds as they came, one by one.
    pub(super) fn cells(&self, rounds: u16, into: &mut Vec<Run>) {
        into.reserve(self.trains.len() * usize::from(rounds));
        let mut later = Spacing::ZERO;
        for _ in 0..rounds {
            for train in &self.came {
                into.push(Run::of(train.at().plus(later), train.frame, train.about.with_cells(1).without_end()));
            }
            later = later.plus(self.spacing);
        }
    }

    /// The first rounds have come.
    pub(super) fn take(&self, rounds: u16, heads: &mut Heads, inputs: &[u32], fabric: &mut Fabric) {
        for (train, input) in self.came.iter().zip(&self.inputs) {
            let mut rest = *train;
            rest.split(rounds, self.spacing);
            heads.replace_first(rest.at().ps());
            fabric.streams[inputs[*input as usize] as usize].replace_front(rest);
        }
    }
}

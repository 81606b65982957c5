//! Cells between ports: streams of them to each switch and far end, and the frames to which they
//! belong.
//!
//! A port appends the cells that it sends to a stream, with their arrival times; the receiver takes
//! them up to any time. Cells that continue the run at the end of a stream join it, unless
//! [`NetworkSpec::trains`] is off. Results are equal with runs and with single cells.
//!
//! [`NetworkSpec::trains`]: super::NetworkSpec::trains

use std::collections::VecDeque;

use lastmile_units::Instant;

use super::frames::Frames;
use super::tournament::Tournament;
use crate::abr::rm::RmCells;
use crate::cell::Run;
use crate::time::{Moment, Spacing};

/// Cells on their way to a switch or a far end, in order of time.
#[derive(Debug)]
pub(crate) struct Stream {
    runs: VecDeque<Run>,
    /// Arrival times of the last cells of frames among them.
    frame_ends: VecDeque<Moment>,
    /// The receiver, as index of [`InFlight::next`].
    receiver: u32,
    /// Index among the receiver's inputs. `None`: the receiver is a far end.
    input: Option<u32>,
    /// The shortest time from the receiver to the far end of a VC.
    pub(crate) onward: Spacing,
}

impl Stream {
    pub(crate) fn new(receiver: u32, input: Option<u32>, onward: Spacing) -> Self {
        Self { runs: VecDeque::new(), frame_ends: VecDeque::new(), receiver, input, onward }
    }

    /// Arrival of the first cell.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        Some(self.runs.front()?.at.instant())
    }

    pub(crate) fn cells(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.cells)).sum()
    }
}

/// All cells between ports.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) streams: Vec<Stream>,
    pub(crate) frames: Frames,
    pub(crate) rm_cells: RmCells,
    /// When each switch has something to do, in the order of the network; then when each far end has.
    pub(crate) next: Tournament,
    /// By switch: inputs that were empty and have cells.
    pub(crate) woken: Vec<Vec<u32>>,
    /// By stream, then by switch: no frame that ends there is at its far end before this time.
    pub(crate) bounds: Tournament,
    /// Cells are joined to runs.
    pub(crate) trains: bool,
}

impl InFlight {
    pub(crate) fn new(streams: Vec<Stream>, switches: usize, far_ends: usize, trains: bool) -> Self {
        Self {
            bounds: Tournament::new(streams.len() + switches),
            streams,
            frames: Frames::default(),
            rm_cells: RmCells::default(),
            next: Tournament::new(switches + far_ends),
            woken: vec![Vec::new(); switches],
            trains,
        }
    }

    /// Appends a run to a stream. Its first cell is not earlier than any in the stream.
    #[inline]
    pub(crate) fn push(&mut self, stream: u32, run: Run) {
        let index = stream as usize;
        let Stream { runs, frame_ends, receiver, input, onward } = &mut self.streams[index];
        if run.header.last {
            let end = run.last_at();
            if frame_ends.is_empty() {
                self.bounds.set(index, Some(end.plus(*onward).instant()));
            }
            frame_ends.push_back(end);
        }
        if let Some(back) = runs.back_mut() {
            if self.trains && back.join(&run) {
                return;
            }
        } else {
            self.next.lower(*receiver as usize, run.at.instant());
            if let Some(input) = input {
                self.woken[*receiver as usize].push(*input);
            }
        }
        runs.push_back(run);
    }

    /// Appends the cells of a run one by one.
    pub(crate) fn push_cells(&mut self, stream: u32, run: Run) {
        let mut rest = Some(run);
        while let Some(run) = rest {
            let (cell, others) = run.split(1);
            self.push(stream, cell);
            rest = others;
        }
    }

    /// Takes the cells of the first run that arrive in picosecond `until` or earlier. `None`: there
    /// are none.
    #[inline]
    pub(crate) fn take_until(&mut self, stream: u32, until: Instant) -> Option<Run> {
        let index = stream as usize;
        let Stream { runs, frame_ends, onward, .. } = &mut self.streams[index];
        let front = runs.front_mut().filter(|front| front.at.instant() <= until)?;
        let (taken, rest) = front.split(front.cells_until(until));
        match rest {
            Some(rest) => *front = rest,
            None => {
                runs.pop_front();
            }
        }
        if taken.header.last {
            frame_ends.pop_front();
            self.bounds.set(index, frame_ends.front().map(|end| end.plus(*onward).instant()));
        }
        Some(taken)
    }
}

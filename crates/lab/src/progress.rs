//! The progress of a run, for a display.

use std::sync::{Mutex, PoisonError};

use lastmile_live::emulate::Handle;
use lastmile_units::{Duration, Instant};

/// Replies kept between two looks.
const MOST_REPLIES: usize = 1000;

/// The progress of a run, at the time of a tick.
pub struct Progress<'a> {
    /// The time since the traffic could begin.
    pub now: Instant,
    /// The links.
    pub line: &'a Handle,
    pub(crate) flows: &'a Flows,
}

/// The progress of one flow.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FlowProgress {
    /// Payload bytes that the receiving host has read.
    pub bytes_delivered: u64,
    /// Round trips of the echo replies that came since the last look.
    pub replies: Vec<Duration>,
}

/// The latest progress of all flows, which the generator's thread writes and a display takes.
#[derive(Default)]
pub(crate) struct Flows(Mutex<Vec<FlowProgress>>);

impl Progress<'_> {
    /// Takes the progress of each flow, in the order of the plan; nothing before the traffic begins.
    #[must_use]
    pub fn take_flows(&self) -> Vec<FlowProgress> {
        let mut flows = self.flows.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = |flow: &mut FlowProgress| FlowProgress {
            bytes_delivered: flow.bytes_delivered,
            replies: std::mem::take(&mut flow.replies),
        };
        flows.iter_mut().map(copy).collect()
    }
}

impl Flows {
    /// Updates the flows, unless a display reads them at this moment: the generator never waits.
    pub(crate) fn publish(&self, flows: impl ExactSizeIterator<Item = FlowProgress>) {
        let Ok(mut published) = self.0.try_lock() else { return };
        published.resize_with(flows.len(), FlowProgress::default);
        for (published, flow) in published.iter_mut().zip(flows) {
            published.bytes_delivered = flow.bytes_delivered;
            let room = MOST_REPLIES.saturating_sub(published.replies.len());
            published.replies.extend(flow.replies.into_iter().take(room));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_taken_once_and_bounded() {
        let flows = Flows::default();
        let flow = |bytes_delivered, replies| FlowProgress { bytes_delivered, replies };
        let ms = Duration::from_ms;
        flows.publish([flow(10, vec![ms(1)])].into_iter());
        flows.publish([flow(20, vec![ms(2)])].into_iter());
        let take = || std::mem::take(&mut flows.0.lock().unwrap()[0].replies);
        assert_eq!(take(), [ms(1), ms(2)]);
        assert_eq!(take(), []);
        for _ in 0..2 * MOST_REPLIES {
            flows.publish([flow(30, vec![ms(3)])].into_iter());
        }
        assert_eq!(take().len(), MOST_REPLIES);
        assert_eq!(flows.0.lock().unwrap()[0].bytes_delivered, 30);
    }
}

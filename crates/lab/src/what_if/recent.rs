//! The last minute of a line as it was: states, and each second.

use std::collections::VecDeque;

use lastmile_live::bump::{Interval, States, WaitCounts, Waited, intervals};
use lastmile_units::{Duration, Instant};
use serde::Serialize;

/// Time between two states that a question may begin at.
const CHECKPOINTS: Duration = Duration::from_s(10);

/// The time that a question is about.
pub(super) const MINUTE: Duration = Duration::from_s(60);

/// One second of all hops.
#[derive(Clone)]
pub(super) struct Seconds {
    /// Its end.
    pub(super) at: Instant,
    pub(super) hops: Vec<Second>,
    /// The 99th percentile of the delay over all hops, up and down.
    pub(super) crossed_p99_s: [Option<f32>; 2],
}

impl Seconds {
    pub(super) fn of(before: Option<&States>, now: &States) -> Self {
        let then = before.unwrap_or(now);
        Self {
            at: now.at,
            hops: intervals(before, now).iter().map(Second::of).collect(),
            crossed_p99_s: [0, 1].map(|way: usize| p99_s(&then.crossed[way].all, &now.crossed[way].all)),
        }
    }
}

/// The 99th percentile of the delays between two moments; `None` without any.
#[expect(clippy::cast_possible_truncation, reason = "for the eye only")]
fn p99_s(before: &WaitCounts, now: &WaitCounts) -> Option<f32> {
    Waited::of(Some(before), now).p99.map(|s| s as f32)
}

/// The last minute as it was.
#[derive(Default)]
pub struct Recent {
    /// States at times [`CHECKPOINTS`] apart, oldest first, all with the policy in force.
    pub(super) checkpoints: VecDeque<States>,
    /// Each second, oldest first.
    pub(super) seconds: VecDeque<Seconds>,
}

impl Recent {
    /// Adds the state of a second, and forgets what is older than a minute.
    pub fn push(&mut self, before: Option<&States>, now: &States) {
        let age = |at: Instant| now.at.since(at);
        while self.checkpoints.get(1).is_some_and(|state| age(state.at) >= MINUTE) {
            self.checkpoints.pop_front();
        }
        if self.checkpoints.back().is_none_or(|state| age(state.at) >= CHECKPOINTS) {
            self.checkpoints.push_back(now.clone());
        }
        while self.seconds.front().is_some_and(|second| age(second.at) > MINUTE + CHECKPOINTS) {
            self.seconds.pop_front();
        }
        self.seconds.push_back(Seconds::of(before, now));
    }

    /// Another policy is in force, or another line.
    pub fn clear(&mut self) {
        self.checkpoints.clear();
        self.seconds.clear();
    }
}

/// One second of a hop.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Second {
    rate_bps: f32,
    queue_bytes: f32,
    /// Of the packets that departed in it; `None` without any.
    p99_s: Option<f32>,
    drops: f32,
}

impl Second {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "for the eye only")]
    fn of(hop: &Interval<'_>) -> Self {
        Self {
            rate_bps: hop.rate_bps() as f32,
            queue_bytes: hop.now.queued.bytes.as_u64() as f32,
            p99_s: p99_s(&hop.before.waited, &hop.now.waited),
            drops: hop.lost().values().sum::<u64>() as f32,
        }
    }
}

//! The allowance for acknowledgements that arrive in bursts: the most octets that arrived beyond the estimated rate.
//!
//! Published: Linux's `tcp_bbr.c` (`bbr_update_ack_aggregation`, `bbr_ack_aggregation_cwnd`).

use lastmile_units::{Duration, Instant};

use crate::sender::delivery_rate::RateSample;
use crate::sender::octet_rate::OctetRate;

/// `bbr_extra_acked_win_rtts`: each of the two windows has this many rounds.
const WINDOW_ROUNDS: u8 = 5;
/// `bbr_ack_epoch_acked_reset_thresh`, in segments.
const LONGEST_EPOCH: u64 = 1 << 20;
/// `bbr_extra_acked_max_us`.
const MOST: Duration = Duration::from_ms(100);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Aggregation {
    /// The most octets beyond the expected ones, in the current window of rounds and in the previous one.
    extra: [u64; 2],
    current: usize,
    rounds: u8,
    /// The current epoch: its start, and the octets delivered in it.
    since: Instant,
    acked: u64,
}

impl Aggregation {
    /// A new epoch begins.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.since, self.acked) = (now, 0);
    }

    pub(super) fn on_ack(&mut self, sample: &RateSample, rate: OctetRate, round_started: bool, cwnd: u64, mss: u64) {
        if sample.acked == 0 || sample.segment.and_then(|segment| segment.interval).is_none() {
            return;
        }
        if round_started {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.current ^= 1;
                self.extra[self.current] = 0;
            }
        }
        let mut expected = rate.octets_in(sample.now.since(self.since));
        if self.acked <= expected || self.acked + sample.acked >= LONGEST_EPOCH * mss {
            self.begin(sample.now);
            expected = 0;
        }
        self.acked += sample.acked;
        let extra = self.acked.saturating_sub(expected).min(cwnd);
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    /// Octets that the window has beyond the bandwidth-delay product: at most the whole segments of [`MOST`].
    pub(super) fn allowance(&self, rate: OctetRate, mss: u64) -> u64 {
        let most = rate.octets_in(MOST);
        self.extra[0].max(self.extra[1]).min(most - most % mss)
    }
}

//! The parameters of a drain.

use lastmile_units::{BitRate, ByteCount, Duration, Ratio};

use crate::Match;
use crate::classify::MatchError;

/// Parameters of a shaper behind a line, or in front of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Rate of the line, on the wire.
    pub line: BitRate,
    /// Share of the line's rate that is passed while the far end has no standing queue.
    pub share: Ratio,
    /// Draining of the queue at the far end. `None`: no drains, only the margin, as in front of a
    /// line.
    pub drain: Option<Law>,
    /// Urgent packets, which are charged but do not wait. For packets behind the line that have
    /// been delayed enough.
    pub urgent: Match,
    /// The largest IP packet to expect.
    pub largest: ByteCount,
    /// Maximum lateness of a caller that does not cost rate, as [`crate::meter::tbf::Config::catch_up`].
    pub catch_up: Duration,
}

/// Parameters of drains. The share of the shaper must then be below the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Law {
    /// Share of the line's rate that is passed during a drain: below the share of the shaper.
    pub depth: Ratio,
    /// Time without idle time after which a drain begins.
    pub patience: Duration,
    /// Maximum duration of a drain.
    pub longest: Duration,
}

/// Shares or times with which the shaper would pass or drain nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DrainError {
    /// Without a margin the line is not idle even when the far queue is empty, so a queue cannot be
    /// detected.
    #[error("a share of {0}; it must be below 100 %, so that the line is idle when its far end has no queue")]
    NoMargin(Ratio),
    /// A drain that passes no less than the shaper does otherwise.
    #[error("a drain to {depth} that is not below the share of {share}")]
    NoDrain {
        /// The configured depth.
        depth: Ratio,
        /// The configured share.
        share: Ratio,
    },
    /// A share of the rate that rounds to zero.
    #[error("{share} of {line} is nothing")]
    Nothing {
        /// The configured share.
        share: Ratio,
        /// The rate of the line.
        line: BitRate,
    },
    /// An invalid condition.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// A bucket without capacity, or a drain without duration.
    #[error("a time of zero: patience and longest must be above zero")]
    ZeroTime,
}

impl Config {
    /// Checks shares and times.
    ///
    /// # Errors
    /// A share or time with which the shaper would pass or drain nothing.
    pub fn check(&self) -> Result<(), DrainError> {
        self.urgent.check()?;
        self.rate(self.share)?;
        let Some(law) = self.drain else { return Ok(()) };
        if self.share >= Ratio::ONE {
            return Err(DrainError::NoMargin(self.share));
        }
        if law.depth >= self.share {
            return Err(DrainError::NoDrain { depth: law.depth, share: self.share });
        }
        if self.required_idleness().of(law.patience.as_ps()) == 0 || law.longest.is_zero() {
            return Err(DrainError::ZeroTime);
        }
        self.rate(law.depth).map(|_| ())
    }

    pub(super) fn rate(&self, share: Ratio) -> Result<BitRate, DrainError> {
        share.of_rate(self.line).ok_or(DrainError::Nothing { share, line: self.line })
    }

    /// The required share of idle time, below which the far end has a standing queue: half of the
    /// margin.
    pub(super) fn required_idleness(&self) -> Ratio {
        let margin = Ratio::ONE.as_parts_per_billion() - self.share.as_parts_per_billion();
        Ratio::from_parts_per_billion(margin / 2).unwrap_or(Ratio::ZERO)
    }
}

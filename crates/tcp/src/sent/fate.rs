//! When octets last went out, and what became of them, in four bytes.

use lastmile_units::{Duration, Instant};

/// When octets last went out, and what became of them: microseconds as far as nine minutes tell them, and three flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fate(u32);

impl Fate {
    /// SACKed.
    pub(super) const HELD: Self = Self(1);
    const LOST: u32 = 2;
    const AGAIN: u32 = 4;
    const FLAGS: u32 = 3;

    #[inline]
    pub(crate) fn sent(now: Instant) -> Self {
        Self(((now.as_ps() / 1_000_000) as u32) << Self::FLAGS)
    }

    pub(super) fn sent_again(now: Instant) -> Self {
        Self(Self::sent(now).0 | Self::AGAIN)
    }

    /// Microseconds since.
    #[inline]
    pub(crate) fn age_us(self, now: Instant) -> u32 {
        (Self::sent(now).0.wrapping_sub(self.0 & (u32::MAX << Self::FLAGS))) >> Self::FLAGS
    }

    #[inline]
    pub(super) fn age(self, now: Instant) -> Duration {
        Duration::from_us(u64::from(self.age_us(now)))
    }

    pub(crate) fn is_held(self) -> bool {
        self == Self::HELD
    }

    pub(crate) fn is_lost(self) -> bool {
        self.0 & Self::LOST != 0
    }

    /// More than once.
    pub(crate) fn is_again(self) -> bool {
        self.0 & Self::AGAIN != 0
    }

    pub(super) fn lost(self) -> Self {
        Self(self.0 | Self::LOST)
    }

    pub(super) fn not_lost(self) -> Self {
        Self(self.0 & !Self::LOST)
    }
}

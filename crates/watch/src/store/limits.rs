//! The age and the size that a store keeps.

/// The days that rows of each kind are kept, and the size of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Raw rows.
    pub raw_days: u32,
    /// Minutes.
    pub minute_days: u32,
    /// Hours, and events.
    pub hour_days: u32,
    /// The bytes of all files of the store.
    pub limit_bytes: u64,
}

impl Default for Limits {
    /// A week of raw rows, 90 days of minutes, five years of hours, 1 GB.
    fn default() -> Self {
        Self { raw_days: 7, minute_days: 90, hour_days: 1826, limit_bytes: 1_000_000_000 }
    }
}

impl Limits {
    /// The least limit: the write-ahead log and some hours.
    pub const LEAST_LIMIT_BYTES: u64 = 32_000_000;
}

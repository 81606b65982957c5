//! The bound of delays.

/// Longest delay of a wire: beyond the moon and back.
pub(crate) const MAX_DELAY: &str = "60 s";

//! Sources of readings: hosts that are pinged, shapers that are asked, counters of the kernel.

pub mod kernel;
pub mod names;
pub mod pings;
pub mod shaper;

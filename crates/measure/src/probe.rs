//! The probes that are timed while the line is idle or full.

pub(crate) mod exchange;
mod icmp;
mod prober;
mod tcp;
pub(crate) mod window;

use std::time::Duration;

pub use self::icmp::Icmp;
pub use self::prober::{Clocks, Kind, PATIENCE, Prober, Sample, Subject};
pub use self::tcp::TcpConnect;

/// The usual time between two probes of a series.
pub const INTERVAL: Duration = Duration::from_millis(100);

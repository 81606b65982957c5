//! The probes that are timed while the line is idle or full.

mod icmp;
mod prober;
mod tcp;
pub(crate) mod window;

use std::time::Duration;

pub use self::icmp::Icmp;
pub(crate) use self::icmp::{is_passing, next_due, reply};
pub use self::prober::{Clocks, Kind, PATIENCE, Prober, Sample, Subject};
pub use self::tcp::TcpConnect;

/// The usual time between two probes of a series.
pub const INTERVAL: Duration = Duration::from_millis(100);

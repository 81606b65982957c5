//! The limits of the clients of a server.

use std::time::Duration;

use lastmile_units::BitRate;

/// Connections beside those of sessions: while all sessions have all their streams, so many have not proved that they
/// have the key.
pub const STRANGERS: usize = 32;

/// Time for the proof of the key, from the start of a connection.
pub const HANDSHAKE: Duration = Duration::from_secs(5);

/// The limits of clients.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// Sessions at a time.
    pub sessions: u32,
    /// TCP connections of a load, in each direction.
    pub streams: u32,
    /// Rate of each load, and of the trains of each request, in each direction.
    pub rate: BitRate,
    /// Longest load.
    pub load: Duration,
    /// Longest session.
    pub session: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 4,
            streams: 16,
            rate: BitRate::from_mbit_per_s(1000),
            load: Duration::from_secs(60),
            session: Duration::from_secs(900),
        }
    }
}

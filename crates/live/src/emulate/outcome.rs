//! How a run of the emulator went.

use std::process::ExitStatus;

use lastmile_units::Duration;

use crate::bump::DirectionReport;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Somebody in the program said so.
    Asked,
    /// SIGINT or SIGTERM.
    Signal(i32),
    /// The time was up.
    Limit,
    /// The command behind the line ended.
    Command(ExitStatus),
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ended: Ended,
    /// The duration of the run.
    pub elapsed: Duration,
    /// From the client to the server.
    pub up: DirectionReport,
    /// From the server to the client.
    pub down: DirectionReport,
}

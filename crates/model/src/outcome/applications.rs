//! What applications did for the people who use them.

use lastmile_units::Duration;

/// The outcomes of applications, by kind.
#[derive(Clone, Debug, Default)]
pub struct Applications {
    /// One row per web user.
    pub browsing: Vec<BrowsingOutcome>,
    /// One row per video viewer.
    pub viewing: Vec<ViewingOutcome>,
}

/// The outcome of a web user.
#[derive(Clone, Debug)]
pub struct BrowsingOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run; also that of its flow.
    pub name: String,
    /// Pages requested.
    pub pages: u64,
    /// Objects received whole.
    pub objects: u64,
    /// Response time of each page received whole, in order: from the request to the last byte of
    /// its last object.
    pub responses: Vec<Duration>,
}

/// The outcome of a video viewer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewingOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run; also that of its flow.
    pub name: String,
    /// Time from the request for the first segment to the first picture; `None` if there was none.
    pub start: Option<Duration>,
    /// For each segment received whole, in order, the step of its bit rate in the ladder.
    pub segments: Vec<u16>,
    /// Media played.
    pub played: Duration,
    /// The length of each stall, in order; the last one may last until the end.
    pub stalls: Vec<Duration>,
}

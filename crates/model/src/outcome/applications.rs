//! Results of applications as a person notices them.

use lastmile_analysis::stream::Reception;
use lastmile_units::{Duration, Instant};

/// The outcomes of applications, by kind.
#[derive(Clone, Debug, Default)]
pub struct Applications {
    /// One row per web user.
    pub browsing: Vec<BrowsingOutcome>,
    /// One row per video viewer.
    pub viewing: Vec<ViewingOutcome>,
    /// One row per backup.
    pub backups: Vec<BackupOutcome>,
    /// One row per direction of a conference.
    pub conferences: Vec<ConferenceOutcome>,
    /// One row per player of a game.
    pub games: Vec<GameOutcome>,
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
    /// The end of each of those pages.
    pub ends: Vec<Instant>,
    /// Response time of each main object, in order.
    pub mains: Vec<Duration>,
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
    /// The arrival of each segment.
    pub arrivals: Vec<Instant>,
    /// Media played.
    pub played: Duration,
    /// The length of each stall, in order; the last one may last until the end.
    pub stalls: Vec<Duration>,
    /// The start of each stall.
    pub stalled_at: Vec<Instant>,
}

/// The outcome of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run; also that of its flow.
    pub name: String,
    /// For each file that was copied, in the order of their ends, the time from its request to its end.
    pub took: Vec<Duration>,
    /// The end of each of those files.
    pub ends: Vec<Instant>,
    /// Bytes of those files.
    pub bytes: u64,
    /// The part of those times in which no octet of the file or of its request arrived: from the request to the first
    /// octet, and from the last octet to the answer.
    pub waited: Duration,
    /// Time from the start to the end of the last file; `None` if files are missing, or have no end.
    pub end: Option<Duration>,
    /// Time from the start to the end of the last file, to the stop, or to the end of the run.
    pub active: Duration,
}

/// The outcome of one direction of a conference.
#[derive(Clone, Debug)]
pub struct ConferenceOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run; also that of its flow.
    pub name: String,
    /// Frames captured.
    pub captured: u64,
    /// Key frames among those.
    pub key_frames: u64,
    /// Packets of video that were retransmitted.
    pub retransmitted: u64,
    /// IP bytes of video that were sent.
    pub video_bytes: u64,
    /// Audio packets sent.
    pub audio_sent: u64,
    /// Time from the start to the stop, or to the end of the run.
    pub active: Duration,
    /// Frames shown: delay from capture, lateness.
    pub frames: Reception,
    /// Frames that were skipped.
    pub frames_lost: u64,
    /// Lengths of freezes.
    pub freezes: Vec<Duration>,
    /// The start of each freeze.
    pub frozen_at: Vec<Instant>,
    /// Audio packets that arrived.
    pub audio: Reception,
    /// Audio packets that did not arrive before later ones.
    pub audio_lost: u64,
}

/// The outcome of a player of a game.
#[derive(Clone, Debug)]
pub struct GameOutcome {
    /// Index of its traffic in the network's list.
    pub traffic: usize,
    /// Name, unique in the run; also that of its flow.
    pub name: String,
    /// Updates that the server sent.
    pub updates_sent: u64,
    /// Commands that the client sent.
    pub commands_sent: u64,
    /// Updates that arrived.
    pub updates: Reception,
    /// Commands that arrived.
    pub commands: Reception,
    /// Updates, and commands, that did not arrive before later ones.
    pub lost: [u64; 2],
    /// Time from each command to the first update that shows its effect, in the order of the commands.
    pub responses: Vec<Duration>,
    /// The arrival of each of those updates.
    pub response_ends: Vec<Instant>,
    /// The departures of the commands whose effect no update has shown.
    pub unanswered: Vec<Instant>,
    /// The end of the session, or of the run.
    pub end: Instant,
}

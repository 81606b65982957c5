//! Results of applications for the people who use them. Web pages are in `probe.rs`.

use serde::{Deserialize, Serialize};

use crate::format;

use super::{Datagrams, OneWay, PageResponse, RoundTrip};

/// Results of applications, by kind.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Applications {
    /// One row per video viewer.
    pub videos: Vec<Video>,
    /// One row per backup.
    pub backups: Vec<Backup>,
    /// One row per direction of a conference.
    pub conferences: Vec<Conference>,
    /// One row per player of a game.
    pub games: Vec<Game>,
}

/// A viewer of a video.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Video {
    /// Name, also that of its flow.
    pub name: String,
    /// Time from the request for the first segment to the first picture, handshake included;
    /// `null` if there was no picture.
    pub start_s: Option<f64>,
    /// Media played.
    pub played_s: f64,
    /// Segments that arrived whole.
    pub segments: u64,
    /// Stalls after the first picture, one that lasted until the end included.
    pub stalls: u64,
    /// The total time of the stalls.
    pub stalled_s: f64,
    /// The longest stall; `null` without any.
    pub stall_max_s: Option<f64>,
    /// The share of stalls in the time from the first picture on.
    pub stalled_share: Option<f64>,
    /// Mean bit rate of the segments.
    pub bit_rate_mean_bps: Option<f64>,
    /// Segments with another bit rate than the previous segment.
    pub switches: u64,
    /// The share of segments of each bit rate, in the order of the ladder.
    pub ladder: Vec<LadderStep>,
    /// Quality of Yin and others (SIGCOMM 2015), for each segment: the mean bit rate, less the mean
    /// change between segments, less the highest bit rate for each second of start and stalls, over
    /// the number of segments. `null` without a picture.
    pub quality_bps: Option<f64>,
}

/// A bit rate of a video, and the share of segments that had it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LadderStep {
    /// The bit rate.
    pub bit_rate_bps: f64,
    /// Share of the segments that arrived.
    pub share: f64,
}

/// Files that were copied one after another.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Backup {
    /// Name, also that of its flow.
    pub name: String,
    /// `down`, `up`, or the scenario's word.
    pub direction: String,
    /// Files to copy; `null` for as many as the run had time for.
    pub files: Option<u64>,
    /// Files that were copied.
    pub copied: u64,
    /// Bytes of the copied files.
    pub copied_bytes: u64,
    /// Time from the start to the end of the last file; `null` if files are missing or have no end.
    pub end_s: Option<f64>,
    /// Copied files over the time from the start to the end of the last, or to the end of the run.
    pub files_per_s: f64,
    /// Bits of the copied files over that time.
    pub rate_bps: f64,
    /// Time from the request for a file to its end.
    pub file_s: PageResponse,
    /// The part of those times in which nothing of a file arrived: from the request to the first octet, and from the
    /// last octet to the answer. `null` without a copied file.
    pub waiting_share: Option<f64>,
}

/// One direction of a video conference.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Conference {
    /// Name, also that of its flow.
    pub name: String,
    /// `down`, `up`, or the scenario's word.
    pub direction: String,
    /// Rate of the video that was sent, in IP bits per second over its active time.
    pub video_bps: f64,
    /// Frames that the camera captured.
    pub frames_captured: u64,
    /// Frames that were shown.
    pub frames_shown: u64,
    /// Frames that were shown later than the fastest of the last second and the play-out buffer, or were still due at
    /// the end.
    pub frames_late: u64,
    /// Frames that were skipped because packets of them, or of earlier ones, were missing, and those for which such
    /// packets had been dropped at the end.
    pub frames_lost: u64,
    /// Key frames that were sent.
    pub key_frames: u64,
    /// Packets of video that were retransmitted.
    pub retransmitted_packets: u64,
    /// Time from the capture of a frame to its display.
    pub frame_delay_s: OneWay,
    /// Freezes: gaps between shown frames of at least three mean gaps, and of the mean and 150 ms.
    pub freezes: u64,
    /// The total time of the freezes.
    pub frozen_s: f64,
    /// The longest freeze; `null` without any.
    pub freeze_max_s: Option<f64>,
    /// The audio that accompanies the video.
    pub audio: Datagrams,
}

impl Conference {
    /// Share of the captured frames that were late or skipped.
    pub(crate) fn bad_share(&self) -> f64 {
        if self.frames_captured == 0 {
            return 0.0;
        }
        format::to_f64(self.frames_late + self.frames_lost) / format::to_f64(self.frames_captured)
    }
}

/// A player of a networked game.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Game {
    /// Name, also that of its flow.
    pub name: String,
    /// Commands that the client sent.
    pub commands: u64,
    /// Commands that later ones overtook, or that were dropped at the end: no update shows their effect.
    pub commands_lost: u64,
    /// Updates that the server sent.
    pub updates: u64,
    /// Updates that did not arrive before later ones.
    pub updates_lost: u64,
    /// Time from a command to the arrival of the first update that shows its effect. Percentiles rank commands without
    /// one above all others, and are `null` where they are such a command's.
    pub response_s: RoundTrip,
    /// The limit above which a response is late.
    pub limit_s: f64,
    /// Share of the commands whose response took longer, or that had none at its end; `null` without commands that old.
    pub late_share: Option<f64>,
    /// Share of the commands without a response; `null` without commands to judge.
    pub unanswered_share: Option<f64>,
    /// One-way delay of updates.
    pub update_delay_s: OneWay,
    /// Mean interarrival jitter of updates (RFC 3550).
    pub update_jitter_s: Option<f64>,
    /// One-way delay of commands.
    pub command_delay_s: OneWay,
    /// Mean interarrival jitter of commands.
    pub command_jitter_s: Option<f64>,
}

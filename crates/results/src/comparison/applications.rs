//! Results of the worst video, backup, conference and game of a run.

use serde::Serialize;

use super::cell::{Cell, Quantity};
use crate::schema::{Conference, Summary};

/// The worst viewer, backup, conference and player of a run, over its whole length. All `None` without such
/// applications.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct WorstApplications {
    /// The longest time to the first picture of a video; `None` if one has no picture.
    pub video_start_max_s: Option<f64>,
    /// The largest share of the time for which a video stalled; `None` if one has no picture.
    pub video_stalled_share_max: Option<f64>,
    /// The lowest mean bit rate of a video; `None` if no segment of one arrived.
    pub video_bit_rate_min_bps: Option<f64>,
    /// The longest time to the end of a backup; `None` if one has not ended.
    pub backup_end_max_s: Option<f64>,
    /// The fewest files a second of a backup.
    pub backup_files_per_s_min: Option<f64>,
    /// The lowest rate of the video of a conference.
    pub conference_video_min_bps: Option<f64>,
    /// The longest time for which the picture of a conference was frozen; `None` if one has shown no frame.
    pub conference_frozen_max_s: Option<f64>,
    /// R factor (ITU-T G.107) of the worst audio of a conference.
    pub conference_r_factor_min: Option<f64>,
    /// The largest 99th percentile of the response time of a game; `None` if more than 1 % of the commands of one
    /// have no response.
    pub game_response_p99_max_s: Option<f64>,
}

impl WorstApplications {
    pub(super) fn of(summary: &Summary) -> Self {
        let videos = || summary.applications.videos.iter();
        let conferences = || summary.applications.conferences.iter();
        let games = || summary.applications.games.iter();
        let backups = || summary.applications.backups.iter();
        let frozen = |row: &Conference| (row.frames_shown > 0).then_some(row.frozen_s);
        Self {
            video_start_max_s: largest(videos().map(|video| video.start_s)),
            video_stalled_share_max: largest(videos().map(|video| video.start_s.and(video.stalled_share))),
            video_bit_rate_min_bps: smallest(videos().map(|video| video.bit_rate_mean_bps)),
            backup_end_max_s: largest(backups().map(|backup| backup.end_s)),
            backup_files_per_s_min: backups().map(|backup| backup.files_per_s).min_by(f64::total_cmp),
            conference_video_min_bps: conferences().map(|conference| conference.video_bps).min_by(f64::total_cmp),
            conference_frozen_max_s: largest(conferences().map(frozen)),
            conference_r_factor_min: conferences()
                .filter_map(|conference| Some(conference.audio.voice.as_ref()?.r_factor))
                .min_by(f64::total_cmp),
            game_response_p99_max_s: largest(games().map(|game| game.response_s.p99)),
        }
    }

    pub(super) fn cells(&self) -> [Cell; 9] {
        [
            Cell::new("video start", Quantity::Time, self.video_start_max_s),
            Cell::new("video stalled", Quantity::Share, self.video_stalled_share_max),
            Cell::new("video rate", Quantity::Rate, self.video_bit_rate_min_bps),
            Cell::new("backup end", Quantity::Time, self.backup_end_max_s),
            Cell::new("files/s", Quantity::Index(2), self.backup_files_per_s_min),
            Cell::new("conference rate", Quantity::Rate, self.conference_video_min_bps),
            Cell::new("frozen", Quantity::Time, self.conference_frozen_max_s),
            Cell::new("conference R", Quantity::Index(1), self.conference_r_factor_min),
            Cell::new("game p99", Quantity::Time, self.game_response_p99_max_s),
        ]
    }
}

/// The largest of the values; `None` if one of them is.
fn largest(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
}

/// The smallest of the values; `None` if one of them is.
fn smallest(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>()?.into_iter().min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Applications, Backup, Game, RoundTrip, Video};

    #[test]
    fn the_worst_of_each_kind_speaks_for_all() {
        let video = |start_s, share, rate| Video {
            start_s: Some(start_s),
            stalled_share: Some(share),
            bit_rate_mean_bps: Some(rate),
            ..Video::default()
        };
        let game = |p99| Game { response_s: RoundTrip { p99: Some(p99), ..RoundTrip::default() }, ..Game::default() };
        let applications = Applications {
            videos: vec![video(1.0, 0.2, 2e6), video(3.0, 0.0, 1e6)],
            conferences: vec![
                Conference { video_bps: 5e5, frames_shown: 9, frozen_s: 2.0, ..Conference::default() },
                Conference { video_bps: 9e5, frames_shown: 9, ..Conference::default() },
            ],
            games: vec![game(0.1), game(0.3)],
            backups: vec![
                Backup { end_s: Some(9.0), files_per_s: 2.0, ..Backup::default() },
                Backup { end_s: None, files_per_s: 0.5, ..Backup::default() },
            ],
        };
        let people = WorstApplications::of(&Summary { applications, ..Summary::default() });
        let expected = WorstApplications {
            video_start_max_s: Some(3.0),
            video_stalled_share_max: Some(0.2),
            video_bit_rate_min_bps: Some(1e6),
            backup_end_max_s: None,
            backup_files_per_s_min: Some(0.5),
            conference_video_min_bps: Some(5e5),
            conference_frozen_max_s: Some(2.0),
            conference_r_factor_min: None,
            game_response_p99_max_s: Some(0.3),
        };
        assert_eq!(people, expected);
        assert_eq!(WorstApplications::of(&Summary::default()), WorstApplications::default());
    }

    /// One of two viewers has two segments and no picture, one of two conferences no frame, one of two games no
    /// response.
    #[test]
    fn an_application_that_has_not_worked_has_no_worst_value() {
        let works = Video { start_s: Some(1.0), stalled_share: Some(0.0), ..Video::default() };
        let shows_nothing = Video { bit_rate_mean_bps: Some(3e6), ..Video::default() };
        let game = |p99| Game { response_s: RoundTrip { p99, ..RoundTrip::default() }, ..Game::default() };
        let applications = Applications {
            videos: vec![Video { bit_rate_mean_bps: Some(1e6), ..works }, shows_nothing],
            conferences: vec![Conference { frames_shown: 1, ..Conference::default() }, Conference::default()],
            games: vec![game(Some(0.1)), game(None)],
            ..Applications::default()
        };
        let worst = WorstApplications::of(&Summary { applications, ..Summary::default() });
        assert_eq!((worst.video_start_max_s, worst.video_stalled_share_max), (None, None));
        assert_eq!(worst.video_bit_rate_min_bps, Some(1e6));
        assert_eq!((worst.conference_frozen_max_s, worst.game_response_p99_max_s), (None, None));
    }
}

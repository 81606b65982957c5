//! The results of applications that people notice, in words and as one number by which runs are compared.

use crate::format;
use crate::schema::{Conference, Summary};

/// The results of one application that people notice in a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Noticed {
    /// Name of the application.
    pub name: String,
    /// In words.
    pub words: String,
    /// A time that grows with what bothers people: of pages the 95th percentile of the response, of a video start and
    /// stalls, of a backup the mean time for a file, of a conference the time that late, skipped and frozen frames
    /// take, of a game the 99th percentile of the response.
    pub bother_s: f64,
}

/// The results of each application of a run that people notice.
#[must_use]
pub fn noticed(summary: &Summary) -> Vec<Noticed> {
    let all = &summary.applications;
    let pages = summary.pages.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: pages(row.complete, row.response_s.p50, row.response_s.p95),
        // Without a whole page people wait for the whole run.
        bother_s: row.response_s.p95.unwrap_or(summary.run.duration_s),
    });
    let videos = all.videos.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: match row.start_s {
            Some(start_s) => {
                let played = video(row.stalls, row.stalled_s, row.bit_rate_mean_bps);
                format!("first picture after {}, {played}", format::seconds(start_s))
            }
            None => "no picture".to_owned(),
        },
        bother_s: row.start_s.unwrap_or(summary.run.duration_s) + row.stalled_s,
    });
    let backups = all.backups.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: match row.end_s {
            Some(end_s) => format!("complete after {}, {}", format::seconds(end_s), backup(row.files_per_s)),
            None => backup(row.files_per_s),
        },
        bother_s: if row.files_per_s > 0.0 { row.files_per_s.recip() } else { summary.run.duration_s },
    });
    let conferences = all.conferences.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: match row.frames_shown {
            0 => NO_FRAME.to_owned(),
            _ => {
                let freezes = conference(row.freezes, row.frozen_s);
                format!("{} of frames late or skipped, {freezes}", format::percent(row.bad_share()))
            }
        },
        bother_s: bad_s(row, summary.run.duration_s),
    });
    let games = all.games.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: game(row.response_s.p50, row.late_share, row.limit_s),
        bother_s: row.response_s.p99.unwrap_or(summary.run.duration_s),
    });
    pages.chain(videos).chain(backups).chain(conferences).chain(games).collect()
}

/// The time that late, skipped and frozen frames take: the whole run without a frame.
fn bad_s(row: &Conference, duration_s: f64) -> f64 {
    if row.frames_shown == 0 { duration_s } else { row.bad_share() * duration_s + row.frozen_s }
}

/// A conference without a picture.
pub(crate) const NO_FRAME: &str = "no frame shown";

/// Pages that arrived whole.
pub(crate) fn pages(count: u64, p50: Option<f64>, p95: Option<f64>) -> String {
    match (count, p50, p95) {
        (1, Some(only), _) => format!("one page, in {}", format::seconds(only)),
        (_, Some(p50), Some(p95)) => {
            let (p50, p95) = (format::seconds(p50), format::seconds(p95));
            format!("{} pages, half of them within {p50}, 95 % within {p95}", format::grouped(count))
        }
        _ => "no page whole".to_owned(),
    }
}

/// Stalls, and the mean bit rate of segments.
pub(crate) fn video(stalls: u64, stalled_s: f64, bit_rate_bps: Option<f64>) -> String {
    let stalled = match stalls {
        0 => "no stall".to_owned(),
        1 => format!("one stall of {}", format::seconds(stalled_s)),
        several => format!("{several} stalls of {} together", format::seconds(stalled_s)),
    };
    match bit_rate_bps {
        Some(bps) => format!("{stalled}, segments of {}", format::rate(bps)),
        None => stalled,
    }
}

/// Files a second.
pub(crate) fn backup(files_per_s: f64) -> String {
    if files_per_s > 0.0 { format!("{files_per_s:.2} files a second") } else { "no file".to_owned() }
}

/// Freezes.
pub(crate) fn conference(freezes: u64, frozen_s: f64) -> String {
    match freezes {
        0 => "no freeze".to_owned(),
        1 => format!("one freeze of {}", format::seconds(frozen_s)),
        several => format!("{several} freezes of {} together", format::seconds(frozen_s)),
    }
}

/// Responses, and those that exceed the limit.
pub(crate) fn game(p50: Option<f64>, late_share: Option<f64>, limit_s: f64) -> String {
    let late = late_share.filter(|share| *share > 0.0);
    let limit = format::seconds(limit_s);
    let late =
        late.map_or_else(String::new, |share| format!(", {} of them later than {limit}", format::percent(share)));
    match p50 {
        Some(p50) => format!("half of the responses within {}{late}", format::seconds(p50)),
        None => "no response".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Applications, Backup, Game, PageResponse, Pages, RoundTrip, RunFacts, Video};

    fn summary() -> Summary {
        Summary { run: RunFacts { duration_s: 60.0, ..RunFacts::default() }, ..Summary::default() }
    }

    #[test]
    fn each_application_has_its_words() {
        let response_s = PageResponse { p50: Some(0.5), p95: Some(2.0), ..PageResponse::default() };
        let applications = Applications {
            videos: vec![Video {
                name: "film".into(),
                start_s: Some(1.5),
                stalls: 2,
                stalled_s: 6.0,
                bit_rate_mean_bps: Some(3e6),
                ..Video::default()
            }],
            backups: vec![Backup { name: "files".into(), files_per_s: 4.0, ..Backup::default() }],
            conferences: vec![Conference {
                name: "talk".into(),
                frames_captured: 100,
                frames_shown: 98,
                frames_late: 3,
                frames_lost: 2,
                freezes: 1,
                frozen_s: 0.5,
                ..Conference::default()
            }],
            games: vec![Game {
                name: "game".into(),
                response_s: RoundTrip { p50: Some(0.06), p99: Some(0.3), ..RoundTrip::default() },
                limit_s: 0.1,
                late_share: Some(0.25),
                ..Game::default()
            }],
        };
        let pages = vec![Pages { name: "web".into(), complete: 7, response_s, ..Pages::default() }];
        let all = noticed(&Summary { applications, pages, ..summary() });
        let words: Vec<(&str, &str)> = all.iter().map(|one| (&*one.name, &*one.words)).collect();
        let expected = [
            ("web", "7 pages, half of them within 500 ms, 95 % within 2 s"),
            ("film", "first picture after 1.5 s, 2 stalls of 6 s together, segments of 3 Mbit/s"),
            ("files", "4.00 files a second"),
            ("talk", "5 % of frames late or skipped, one freeze of 500 ms"),
            ("game", "half of the responses within 60 ms, 25 % of them later than 100 ms"),
        ];
        assert_eq!(words, expected);
        let bothers: Vec<f64> = all.iter().map(|one| one.bother_s).collect();
        assert_eq!(bothers, [2.0, 7.5, 0.25, 3.5, 0.3]);
    }

    #[test]
    fn an_application_of_which_nothing_arrived_bothers_for_the_whole_run() {
        let applications = Applications {
            videos: vec![Video { name: "film".into(), ..Video::default() }],
            conferences: vec![Conference { name: "talk".into(), frames_captured: 9, ..Conference::default() }],
            games: vec![Game { name: "game".into(), ..Game::default() }],
            ..Applications::default()
        };
        let all = noticed(&Summary { applications, ..summary() });
        let told: Vec<(&str, f64)> = all.iter().map(|one| (&*one.words, one.bother_s)).collect();
        assert_eq!(told, [("no picture", 60.0), ("no frame shown", 60.0), ("no response", 60.0)]);
    }
}

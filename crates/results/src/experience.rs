//! The results of applications that people notice, in words and as one number by which runs are compared.

use crate::format;
use crate::schema::Summary;

/// The results of one application that people notice in a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Noticed {
    /// Name of the application.
    pub name: String,
    /// In words.
    pub words: String,
    /// A time that grows with what bothers people: of pages the 95th percentile of the response, of a video start and
    /// stalls, of a backup the mean time for a file, of a conference the time that late and skipped frames take, or
    /// that of the freezes if it is longer, of a game the 99th percentile of the response, or the time that commands
    /// without effect take where there is none. An application without any result has bothered for its whole life.
    pub bother_s: f64,
}

/// The results of each application of a run that people notice.
#[must_use]
pub fn noticed(summary: &Summary) -> Vec<Noticed> {
    let all = &summary.applications;
    let pages = summary.pages.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: pages(row.complete, row.response_s.p50, row.response_s.p95),
        bother_s: row.response_s.p95.unwrap_or_else(|| lived_s(summary, &row.name)),
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
        bother_s: row.start_s.unwrap_or_else(|| lived_s(summary, &row.name)) + row.stalled_s,
    });
    let backups = all.backups.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: match row.end_s {
            Some(end_s) => format!("complete after {}, {}", format::seconds(end_s), backup(row.files_per_s)),
            None => backup(row.files_per_s),
        },
        bother_s: if row.files_per_s > 0.0 { row.files_per_s.recip() } else { lived_s(summary, &row.name) },
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
        // A skipped frame may also be a part of a freeze.
        bother_s: match row.frames_shown {
            0 => lived_s(summary, &row.name),
            _ => (row.bad_share() * lived_s(summary, &row.name)).max(row.frozen_s),
        },
    });
    let games = all.games.iter().map(|row| Noticed {
        name: row.name.clone(),
        words: game(row.response_s.p50, [row.late_share, row.unanswered_share], row.limit_s),
        bother_s: row
            .response_s
            .p99
            .unwrap_or_else(|| row.unanswered_share.unwrap_or(1.0) * lived_s(summary, &row.name)),
    });
    pages.chain(videos).chain(backups).chain(conferences).chain(games).collect()
}

/// The life of the flow of this application. One that delivered nothing lives from its start to the end of the run.
fn lived_s(summary: &Summary, name: &str) -> f64 {
    let duration_s = summary.run.duration_s;
    let flow = summary.flows.iter().find(|flow| flow.name == name);
    flow.map_or(duration_s, |flow| flow.lived_s().unwrap_or((duration_s - flow.start_s).max(0.0)))
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

/// Responses, and the shares of commands that have none within the limit, and none at all.
pub(crate) fn game(p50: Option<f64>, [late, unanswered]: [Option<f64>; 2], limit_s: f64) -> String {
    let told = |share: Option<f64>, words: String| {
        share.filter(|share| *share > 0.0).map(|share| format!("{} of commands {words}", format::percent(share)))
    };
    let half = p50.map(|p50| format!("half of the commands answered within {}", format::seconds(p50)));
    let late = told(late.filter(|_| p50.is_some()), format!("not within {}", format::seconds(limit_s)));
    let words: Vec<String> =
        [half, late, told(unanswered, "without effect".to_owned())].into_iter().flatten().collect();
    if words.is_empty() { "no response".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{
        Applications, Backup, Conference, Flow, Game, PageResponse, Pages, RoundTrip, RunFacts, Video,
    };

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
            ("game", "half of the commands answered within 60 ms, 25 % of commands not within 100 ms"),
        ];
        assert_eq!(words, expected);
        let bothers: Vec<f64> = all.iter().map(|one| one.bother_s).collect();
        // 5 % of 60 s are longer than the freeze.
        assert_eq!(bothers, [2.0, 7.5, 0.25, 3.0, 0.3]);
    }

    #[test]
    fn commands_without_effect_are_told_and_bother_for_their_time() {
        let told = |p50, late, unanswered, p99| {
            let response_s = RoundTrip { p50, p99, ..RoundTrip::default() };
            let (late_share, unanswered_share) = (Some(late), Some(unanswered));
            let row = Game { response_s, limit_s: 0.1, late_share, unanswered_share, ..Game::default() };
            let applications = Applications { games: vec![row], ..Applications::default() };
            let one = noticed(&Summary { applications, ..summary() }).remove(0);
            (one.words, one.bother_s)
        };
        assert_eq!(told(None, 0.9, 0.9, None), ("90 % of commands without effect".to_owned(), 54.0));
        let words = "half of the commands answered within 60 ms, 5 % of commands not within 100 ms, 1 % of commands \
                     without effect";
        assert_eq!(told(Some(0.06), 0.05, 0.01, Some(0.2)), (words.to_owned(), 0.2));
    }

    /// A conference of the last 5 s of 60 s: 40 % of its frames are 2 s, and a freeze of 3 s contains them.
    #[test]
    fn a_short_conference_bothers_no_longer_than_it_lasts() {
        let talk = |(frames_shown, frozen_s)| {
            let row = Conference {
                name: "talk".into(),
                frames_captured: 150,
                frames_shown,
                frames_lost: 60,
                frozen_s,
                ..Conference::default()
            };
            let applications = Applications { conferences: vec![row], ..Applications::default() };
            let (start_s, bytes_delivered, goodput_bps) = (55.0, 187_500, 3e5);
            let flow = Flow { name: "talk".into(), start_s, bytes_delivered, goodput_bps, ..Flow::default() };
            noticed(&Summary { applications, flows: vec![flow], ..summary() })[0].bother_s
        };
        let bothers: Vec<f64> = [(90, 0.0), (90, 3.0), (0, 0.0)].into_iter().map(talk).collect();
        assert_eq!(bothers, [2.0, 3.0, 5.0]);
    }

    #[test]
    fn an_application_of_which_nothing_arrived_bothers_from_its_start() {
        let applications = Applications {
            videos: vec![Video { name: "film".into(), ..Video::default() }],
            conferences: vec![Conference { name: "talk".into(), frames_captured: 9, ..Conference::default() }],
            games: vec![Game { name: "game".into(), ..Game::default() }],
            ..Applications::default()
        };
        let flows = vec![Flow { name: "game".into(), start_s: 40.0, ..Flow::default() }];
        let all = noticed(&Summary { applications, flows, ..summary() });
        let told: Vec<(&str, f64)> = all.iter().map(|one| (&*one.words, one.bother_s)).collect();
        assert_eq!(told, [("no picture", 60.0), ("no frame shown", 60.0), ("no response", 20.0)]);
    }
}

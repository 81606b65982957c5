//! Results of applications for the people who use them.

use lastmile_model::outcome::{
    BackupOutcome, BrowsingOutcome, ConferenceOutcome, GameOutcome, Outcome, ViewingOutcome,
};
use lastmile_model::{Network, Source, Traffic, Video as Model};
use lastmile_units::{Duration, Instant};

use super::statistics::{page_response, response};
use super::streams::{heard, one_way};
use crate::format::{self, to_f64};
use crate::schema::{Applications, Backup, Conference, Game, LadderStep, Pages, RoundTrip, Video};

/// Results of the users of each web traffic.
pub(super) fn pages(network: &Network, outcome: &Outcome) -> Vec<Pages> {
    let web = network.traffic.iter().enumerate().filter_map(|(index, traffic)| match &traffic.source {
        Source::Web(model) => Some((index, traffic, model)),
        _ => None,
    });
    web.map(|(index, traffic, model)| {
        let users = || outcome.applications.browsing.iter().filter(|browsing| browsing.traffic == index);
        let sorted = |times: fn(&BrowsingOutcome) -> &[Duration]| {
            let mut all: Vec<Duration> = users().flat_map(|user| times(user).iter().copied()).collect();
            all.sort_unstable();
            all
        };
        let times = sorted(|user| &user.responses);
        Pages {
            name: traffic.name.clone(),
            http: if model.tls { format!("{} tls", model.http.name()) } else { model.http.name().to_owned() },
            users: traffic.count.into(),
            pages: users().map(|user| user.pages).sum(),
            complete: times.len() as u64,
            objects: users().map(|user| user.objects).sum(),
            response_s: page_response(&times),
            main_s: page_response(&sorted(|user| &user.mains)),
        }
    })
    .collect()
}

/// Results of all applications except web pages.
pub(super) fn applications(network: &Network, outcome: &Outcome) -> Applications {
    let all = &outcome.applications;
    let videos = all.viewing.iter().filter_map(|viewer| match &network.traffic[viewer.traffic].source {
        Source::Video(model) => Some(video(model, viewer)),
        _ => None,
    });
    let backups = all.backups.iter().filter_map(|client| {
        let traffic = &network.traffic[client.traffic];
        match &traffic.source {
            Source::Backup(model) => Some(backup(traffic, model.files, client)),
            _ => None,
        }
    });
    let conferences = all.conferences.iter().filter_map(|conference| {
        let traffic = &network.traffic[conference.traffic];
        match &traffic.source {
            Source::Conference(model) => Some(talk(traffic, model.audio.interval, conference)),
            _ => None,
        }
    });
    let games = all.games.iter().filter_map(|player| match &network.traffic[player.traffic].source {
        Source::Game(model) => Some(game(model.limit, player)),
        _ => None,
    });
    Applications {
        videos: videos.collect(),
        backups: backups.collect(),
        conferences: conferences.collect(),
        games: games.collect(),
    }
}

fn backup(traffic: &Traffic, files: Option<u64>, client: &BackupOutcome) -> Backup {
    let copied = client.took.len() as u64;
    let active_s = client.active.as_secs_f64();
    let per_second = |count: f64| if active_s > 0.0 { count / active_s } else { 0.0 };
    let took_s: f64 = client.took.iter().map(|took| took.as_secs_f64()).sum();
    let mut sorted = client.took.clone();
    sorted.sort_unstable();
    Backup {
        name: client.name.clone(),
        direction: traffic.direction.clone(),
        files,
        copied,
        copied_bytes: client.bytes,
        end_s: client.end.map(Duration::as_secs_f64),
        files_per_s: per_second(to_f64(copied)),
        rate_bps: per_second(to_f64(client.bytes) * 8.0),
        file_s: page_response(&sorted),
        waiting_share: (took_s > 0.0).then(|| client.waited.as_secs_f64() / took_s),
    }
}

fn talk(traffic: &Traffic, interval: Duration, outcome: &ConferenceOutcome) -> Conference {
    let frozen = outcome.freezes.iter().fold(Duration::ZERO, |sum, freeze| sum + *freeze);
    let active_s = outcome.active.as_secs_f64();
    Conference {
        name: outcome.name.clone(),
        direction: traffic.direction.clone(),
        video_bps: if active_s > 0.0 { to_f64(outcome.video_bytes) * 8.0 / active_s } else { 0.0 },
        frames_captured: outcome.captured,
        frames_shown: outcome.frames.packets,
        frames_late: outcome.frames.late + outcome.frames.overdue,
        frames_lost: outcome.frames_lost,
        key_frames: outcome.key_frames,
        retransmitted_packets: outcome.retransmitted,
        frame_delay_s: one_way(&outcome.frames),
        freezes: outcome.freezes.len() as u64,
        frozen_s: frozen.as_secs_f64(),
        freeze_max_s: outcome.freezes.iter().max().map(|freeze| freeze.as_secs_f64()),
        audio: heard(traffic, Some(interval), &outcome.audio, outcome.audio_lost),
    }
}

/// The responses to the commands of a player.
pub(super) struct Responses {
    pub(super) response_s: RoundTrip,
    /// The share of commands whose response is late or has not come within the limit.
    pub(super) late_share: Option<f64>,
    pub(super) unanswered_share: Option<f64>,
}

impl Responses {
    /// Those of the times that are `within` a part of the run. A command without a response counts at the end of its
    /// limit. It is unanswered if also the longest response to another would have come.
    pub(super) fn of(player: &GameOutcome, limit: Duration, within: impl Fn(Instant) -> bool) -> Self {
        let answered = player.responses.iter().zip(&player.response_ends).filter(|(_, end)| within(**end));
        let times: Vec<Duration> = answered.map(|(took, _)| *took).collect();
        let longest = player.responses.iter().copied().max().unwrap_or_default();
        let older = |than| {
            let sent = player.unanswered.iter().filter(|sent| within(**sent + limit));
            sent.filter(|sent| **sent + than <= player.end).count()
        };
        let (overdue, unanswered) = (older(limit), older(limit.max(longest)));
        let late = times.iter().filter(|took| **took > limit).count() + overdue;
        let share = |count: usize, of: usize| (of > 0).then(|| to_f64(count as u64) / to_f64(of as u64));
        Self {
            late_share: share(late, times.len() + overdue),
            unanswered_share: share(unanswered, times.len() + unanswered),
            response_s: response(times, unanswered),
        }
    }
}

fn game(limit: Duration, player: &GameOutcome) -> Game {
    let Responses { response_s, late_share, unanswered_share } = Responses::of(player, limit, |_| true);
    let [updates_lost, commands_lost] = player.lost;
    Game {
        name: player.name.clone(),
        commands: player.commands_sent,
        commands_lost,
        updates: player.updates_sent,
        updates_lost,
        response_s,
        limit_s: limit.as_secs_f64(),
        late_share,
        unanswered_share,
        update_delay_s: one_way(&player.updates),
        update_jitter_s: player.updates.jitter_mean_s(),
        command_delay_s: one_way(&player.commands),
        command_jitter_s: player.commands.jitter_mean_s(),
    }
}

/// The cause that limited the connections of an application for most of the time, in words.
pub(super) fn limit(source: &Source, cause: &str, share: f64) -> String {
    let percent = format::percent(share);
    match (source, cause) {
        (Source::Video(_), "application") => {
            format!("nothing to send for {percent} of the time: a request was on its way, or the player's buffer full")
        }
        (Source::Backup(_), "application") => {
            format!("nothing to send for {percent} of the time: it waited for an answer, a request or the next file")
        }
        (Source::Video(_), _) => format!("its connection: {}, {percent} of the time", cause.replace('_', " ")),
        _ => format!("all its connections together: {}, {percent} of their time", cause.replace('_', " ")),
    }
}

fn video(model: &Model, viewer: &ViewingOutcome) -> Video {
    let rate = |step: &u16| to_f64(model.ladder[usize::from(*step)].as_bps());
    let rates: Vec<f64> = viewer.segments.iter().map(rate).collect();
    let segments = to_f64(rates.len() as u64);
    let seen = !rates.is_empty();
    let stalled: Duration = viewer.stalls.iter().fold(Duration::ZERO, |sum, stall| sum + *stall);
    let (played_s, stalled_s) = (viewer.played.as_secs_f64(), stalled.as_secs_f64());
    let of_step = |step: usize| viewer.segments.iter().filter(|other| usize::from(**other) == step).count() as u64;
    let ladder = model.ladder.iter().enumerate().map(|(step, rate)| LadderStep {
        bit_rate_bps: to_f64(rate.as_bps()),
        share: if seen { to_f64(of_step(step)) / segments } else { 0.0 },
    });
    let changes: f64 = rates.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    let top = model.ladder.last().map_or(0.0, |rate| to_f64(rate.as_bps()));
    let start_s = viewer.start.map(Duration::as_secs_f64);
    let sum: f64 = rates.iter().sum();
    Video {
        name: viewer.name.clone(),
        start_s,
        played_s,
        segments: viewer.segments.len() as u64,
        stalls: viewer.stalls.len() as u64,
        stalled_s,
        stall_max_s: viewer.stalls.iter().max().map(|stall| stall.as_secs_f64()),
        stalled_share: (played_s + stalled_s > 0.0).then(|| stalled_s / (played_s + stalled_s)),
        bit_rate_mean_bps: seen.then(|| sum / segments),
        switches: viewer.segments.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64,
        ladder: ladder.collect(),
        quality_bps: start_s.filter(|_| seen).map(|start_s| (sum - changes - top * (stalled_s + start_s)) / segments),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lastmile_analysis::stream::Reception;
    use lastmile_model::{Rule, Transport};
    use lastmile_units::BitRate;

    use super::*;

    fn model() -> Model {
        Model {
            transport: Transport::Tcp(Arc::new(lastmile_tcp::Config::default())),
            segment: Duration::from_s(4),
            ladder: [1, 3].map(BitRate::from_mbit_per_s).into(),
            rule: Rule::Throughput,
            startup: Duration::from_s(4),
            buffer: Duration::from_s(30),
            length: None,
            request: 350,
        }
    }

    /// Segments of 1, 3, 3 and 1 Mbit/s: a mean of 2 Mbit/s, two switches, 4 Mbit/s of changes. A start of 1 s and
    /// stalls of 0.5 and 1.5 s cost 3 x 3 Mbit: (8 - 4 - 9) / 4 = -1.25 Mbit/s a segment.
    #[test]
    fn a_viewer_has_rates_switches_stalls_and_a_quality() {
        let viewer = ViewingOutcome {
            traffic: 0,
            name: "film".into(),
            start: Some(Duration::from_s(1)),
            segments: vec![0, 1, 1, 0],
            arrivals: [1, 2, 3, 4].map(|s| Instant::ZERO + Duration::from_s(s)).into(),
            played: Duration::from_s(14),
            stalls: vec![Duration::from_ms(500), Duration::from_ms(1500)],
            stalled_at: [5, 8].map(|s| Instant::ZERO + Duration::from_s(s)).into(),
        };
        let video = video(&model(), &viewer);
        assert_eq!((video.bit_rate_mean_bps, video.switches, video.segments), (Some(2e6), 2, 4));
        assert_eq!((video.stalls, video.stalled_s, video.stall_max_s), (2, 2.0, Some(1.5)));
        assert_eq!(video.stalled_share, Some(0.125));
        assert_eq!(video.quality_bps, Some(-1.25e6));
        assert_eq!(video.ladder.iter().map(|step| step.share).collect::<Vec<_>>(), [0.5, 0.5]);
    }

    /// Two files of 1 MB in 1 s and 3 s, of which 0.4 s passed in waiting, over 5 s with a pause of 1 s.
    #[test]
    fn a_backup_has_rates_over_its_time_and_the_share_of_waiting_over_that_of_its_files() {
        let scenario = lastmile_scenario::Scenario::parse(
            "f",
            "duration = \"9 s\"\n[access]\ndown = { rate = \"8 Mbit/s\" }\nup = { rate = \"8 Mbit/s\" }\n\
             [[traffic]]\nkind = \"backup\"\nfiles = 2\n",
            &[],
        );
        let network = scenario.unwrap().network();
        let client = BackupOutcome {
            traffic: 0,
            name: "backup".into(),
            took: vec![Duration::from_s(3), Duration::from_s(1)],
            ends: [3, 5].map(|s| Instant::ZERO + Duration::from_s(s)).into(),
            bytes: 2_000_000,
            waited: Duration::from_ms(400),
            end: Some(Duration::from_s(5)),
            active: Duration::from_s(5),
        };
        let backup = backup(&network.traffic[0], Some(2), &client);
        assert_eq!((backup.copied, backup.files_per_s, backup.rate_bps), (2, 0.4, 3.2e6));
        assert_eq!((backup.end_s, backup.waiting_share), (Some(5.0), Some(0.1)));
        assert_eq!((backup.file_s.p50, backup.file_s.max), (Some(1.0), Some(3.0)));
        assert_eq!(&*backup.direction, "up");
    }

    /// A player of 4 s who sends a command each 40 ms, of which each tenth has an effect within `took` ms.
    fn player(took: u64) -> GameOutcome {
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let answered = (0..100).filter(|number| number % 10 == 0);
        GameOutcome {
            traffic: 0,
            name: "game".into(),
            updates_sent: 70,
            commands_sent: 100,
            updates: Reception::default(),
            commands: Reception::default(),
            lost: [0, 90],
            responses: vec![Duration::from_ms(took); 10],
            response_ends: answered.map(|number| at(40 * number + took)).collect(),
            unanswered: (0..100).filter(|number| number % 10 != 0).map(|number| at(40 * number)).collect(),
            end: at(5_000),
        }
    }

    /// 90 of 100 commands have no effect, and the others one in 60 ms.
    #[test]
    fn a_command_without_a_response_is_late() {
        let row = game(Duration::from_ms(100), &player(60));
        assert_eq!((row.late_share, row.unanswered_share), (Some(0.9), Some(0.9)));
        assert_eq!((row.response_s.max, row.response_s.p50, row.response_s.p99), (Some(0.06), None, None));
    }

    /// The session ends at 3.76 s. Of the 92 commands up to 3.66 s 82 have no effect. Where the others take 1 s, 63 of
    /// the 70 up to 2.76 s are without effect, and the effect of later ones may be to come.
    #[test]
    fn a_command_is_judged_once_its_response_should_have_come() {
        let end = Instant::ZERO + Duration::from_ms(3_760);
        let row = |took| game(Duration::from_ms(100), &GameOutcome { end, ..player(took) });
        assert_eq!((row(60).late_share, row(60).unanswered_share), (Some(82.0 / 92.0), Some(82.0 / 92.0)));
        assert_eq!((row(1_000).late_share, row(1_000).unanswered_share), (Some(1.0), Some(63.0 / 73.0)));
    }

    #[test]
    fn a_viewer_without_a_segment_has_no_rates_and_no_quality() {
        let viewer = ViewingOutcome {
            traffic: 0,
            name: "film".into(),
            start: None,
            segments: Vec::new(),
            arrivals: Vec::new(),
            played: Duration::ZERO,
            stalls: Vec::new(),
            stalled_at: Vec::new(),
        };
        let video = video(&model(), &viewer);
        assert_eq!((video.start_s, video.bit_rate_mean_bps, video.quality_bps), (None, None, None));
        assert_eq!((video.stalled_share, video.stall_max_s), (None, None));
    }
}

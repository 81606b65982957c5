//! Results of applications as a person notices them.

use super::columns::{columns, without_empty_columns};
use super::{Kind, Table};
use crate::format;
use crate::schema::{Backup, Conference, Game, OneWay, PageResponse, RoundTrip, Summary, Video};

/// One row per video viewer.
pub(crate) fn videos(summary: &Summary) -> Table {
    use Kind::{Name, Number, Words};
    let columns = columns(&[
        ("Video", Name),
        ("Start", Number),
        ("Played", Number),
        ("Stalls", Number),
        ("Stalled", Number),
        ("Longest", Number),
        ("Bit rate", Number),
        ("Switches", Number),
        ("Quality", Number),
        ("Segments by bit rate", Words),
    ]);
    let rows = summary.applications.videos.iter().map(video).collect();
    without_empty_columns(Table { title: "Videos".to_owned(), columns, rows })
}

fn video(video: &Video) -> Vec<String> {
    let stalled = (video.stalls > 0).then_some(video.stalled_s);
    let shares = video.ladder.iter().filter(|step| step.share > 0.0);
    let shares = shares.map(|step| format!("{} {}", format::rate(step.bit_rate_bps), format::percent(step.share)));
    vec![
        video.name.clone(),
        format::or_dash(video.start_s, format::seconds),
        format::seconds(video.played_s),
        format::grouped(video.stalls),
        format::or_dash(stalled, format::seconds),
        format::or_dash(video.stall_max_s, format::seconds),
        format::or_dash(video.bit_rate_mean_bps, format::rate),
        format::grouped(video.switches),
        format::or_dash(video.quality_bps, format::signed_rate),
        shares.collect::<Vec<_>>().join(", "),
    ]
}

/// One row per backup.
pub(crate) fn backups(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Backup", Name),
        ("Files", Number),
        ("Data", Number),
        ("Complete\nafter", Number),
        ("Files/s", Number),
        ("Rate", Number),
        ("Waiting", Number),
        ("A file\np50", Number),
        ("p99", Number),
        ("max", Number),
    ]);
    let rows = summary.applications.backups.iter().map(backup).collect();
    without_empty_columns(Table { title: "Backups".to_owned(), columns, rows })
}

fn backup(row: &Backup) -> Vec<String> {
    let copied = format::grouped(row.copied);
    let PageResponse { p50, p99, max, .. } = row.file_s;
    let mut cells = vec![
        row.name.clone(),
        row.files.map_or_else(|| copied.clone(), |files| format!("{copied} of {}", format::grouped(files))),
        format::bytes(row.copied_bytes),
        format::or_dash(row.end_s, format::seconds),
        format!("{:.2}", row.files_per_s),
        format::rate(row.rate_bps),
        format::or_dash(row.waiting_share, format::percent),
    ];
    cells.extend([p50, p99, max].map(|value| format::or_dash(value, format::seconds)));
    cells
}

/// One row per direction of a conference.
pub(crate) fn conferences(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Conference", Name),
        ("Video", Number),
        ("Frames\nshown", Number),
        ("late", Number),
        ("lost", Number),
        ("Delay\np50", Number),
        ("p99", Number),
        ("max", Number),
        ("Freezes", Number),
        ("Frozen", Number),
        ("Longest", Number),
        ("Audio\nlost", Number),
        ("late", Number),
        ("R", Number),
        ("MOS", Number),
    ]);
    let rows = summary.applications.conferences.iter().map(conference).collect();
    without_empty_columns(Table { title: "Conferences".to_owned(), columns, rows })
}

fn conference(row: &Conference) -> Vec<String> {
    let voice = row.audio.voice.as_ref();
    let shown = format!("{} of {}", format::grouped(row.frames_shown), format::grouped(row.frames_captured));
    let mut cells = vec![row.name.clone(), format::rate(row.video_bps), shown];
    cells.extend([row.frames_late, row.frames_lost].map(format::grouped));
    let OneWay { p50, p99, max, .. } = row.frame_delay_s;
    cells.extend([p50, p99, max].map(|value| format::or_dash(value, format::seconds)));
    cells.push(format::grouped(row.freezes));
    cells.push(format::or_dash((row.freezes > 0).then_some(row.frozen_s), format::seconds));
    cells.push(format::or_dash(row.freeze_max_s, format::seconds));
    cells.extend([row.audio.lost_packets, row.audio.late_packets].map(format::grouped));
    cells.push(format::or_dash(voice, |voice| format!("{:.1}", voice.r_factor)));
    cells.push(format::or_dash(voice, |voice| format!("{:.2}", voice.mos)));
    cells
}

/// One row per player.
pub(crate) fn games(summary: &Summary) -> Table {
    use Kind::{Name, Number};
    let columns = columns(&[
        ("Game", Name),
        ("Commands", Number),
        ("lost", Number),
        ("Updates", Number),
        ("lost", Number),
        ("Response\np50", Number),
        ("mean", Number),
        ("p99", Number),
        ("max", Number),
        ("late", Number),
        ("for a\nlimit of", Number),
        ("without\neffect", Number),
        ("Jitter of\nupdates", Number),
        ("of\ncommands", Number),
    ]);
    let rows = summary.applications.games.iter().map(game).collect();
    without_empty_columns(Table { title: "Games".to_owned(), columns, rows })
}

fn game(row: &Game) -> Vec<String> {
    let RoundTrip { p50, mean, p99, max, .. } = row.response_s;
    let mut cells = vec![row.name.clone()];
    cells.extend([row.commands, row.commands_lost, row.updates, row.updates_lost].map(format::grouped));
    cells.extend([p50, mean, p99, max].map(|value| format::or_dash(value, format::seconds)));
    cells.push(format::or_dash(row.late_share, format::percent));
    cells.push(format::seconds(row.limit_s));
    cells.push(format::or_dash(row.unanswered_share.filter(|share| *share > 0.0), format::percent));
    cells.extend([row.update_jitter_s, row.command_jitter_s].map(|value| format::or_dash(value, format::seconds)));
    cells
}
